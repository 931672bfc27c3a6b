// A separate plug-in for RocksDB through cgo: it is built if librocksdb is installed; the other engines in Go do not
// depend on it.
package main

// #cgo LDFLAGS: -lrocksdb
// // Test hooks that RocksDB compiles only without NDEBUG, that is, with its assertions.
// extern void kvdyno_rocksdb_sync_point(void) __asm__("_ZN7rocksdb9SyncPoint11GetInstanceEv") __attribute__((weak));
// static int kvdyno_rocksdb_asserts(void) { return kvdyno_rocksdb_sync_point != 0; }
import "C"

import "kvdyno/driver"

func init() { driver.Register(rocksdb{}) }

func main() {}

// hasAssertions reports how the library was built.
func hasAssertions() bool { return C.kvdyno_rocksdb_asserts() != 0 }

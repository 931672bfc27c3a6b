// Calls through the boundary, like the core's.

package main

/*
#cgo CFLAGS: -std=c11 -O2 -I${SRCDIR}/../../../driver/include
#include <stdlib.h>
#include "driver.h"

static uint32_t call_open(const kv_driver *driver, kv_config *config, kv_opened *opened, kv_database **database) {
  return driver->open(config, opened, database);
}
static uint32_t call_session(const kv_driver *driver, kv_database *database, kv_session **session) {
  kv_arena arena = {NULL, 0};
  return driver->session(database, &arena, session, NULL);
}
static uint32_t call_execute(const kv_driver *driver, kv_session *session, kv_batch *batch) {
  return driver->execute(session, batch);
}
static uint32_t call_end(const kv_driver *driver, kv_session *session, kv_database *database) {
  uint32_t status = driver->session_end(session, NULL);
  return status != KV_OK ? status : driver->close(database, NULL);
}
static uintptr_t handle_of(kv_database *database) { return *(uintptr_t *)database; }
static const kv_driver *table(const kv_drivers *list, uint32_t index) { return list->drivers[index]; }
*/
import "C"

import (
	"log"
	"unsafe"

	"kvdyno/driver"
)

// slot of the arena is one op's key, value and room for the value read, in C memory, used by both sides.
type slot struct {
	key, value, out []byte
}

// through is a database that was opened through the boundary's C calls, like the core opens it.
type through struct {
	table    *C.kv_driver
	database *C.kv_database
	session  *C.kv_session
	batch    *C.kv_batch
	ops      []C.kv_op
	slots    []slot
}

func inC(size int) []byte { return unsafe.Slice((*byte)(C.calloc(1, C.size_t(size))), size) }

func open(name, path string, level driver.Level) *through {
	list := C.kv_plugin()
	t := &through{}
	for index := range list.count {
		if table := C.table(list, index); C.GoString(table.name) == name {
			t.table = table
		}
	}
	if t.table == nil {
		log.Fatalf("no driver named %s", name)
	}
	config := (*C.kv_config)(C.calloc(1, C.sizeof_kv_config))
	opened := (*C.kv_opened)(C.calloc(1, C.sizeof_kv_opened))
	defer C.free(unsafe.Pointer(config))
	defer C.free(unsafe.Pointer(opened))
	config.abi, config.size, config.path = C.KV_ABI, C.sizeof_kv_config, C.CString(path)
	config.level, config.flags, config.keyspaces, config.threads = C.uint32_t(level), C.KV_CREATE, 1, 1
	config.cache_bytes = 256 << 20
	database := (**C.kv_database)(C.calloc(2, C.sizeof_size_t))
	if C.call_open(t.table, config, opened, database) != C.KV_OK {
		log.Fatalf("open: %s", C.GoString(&opened.error[0]))
	}
	session := (**C.kv_session)(unsafe.Add(unsafe.Pointer(database), C.sizeof_size_t))
	if C.call_session(t.table, *database, session) != C.KV_OK {
		log.Fatal("no session")
	}
	t.database, t.session = *database, *session
	t.layOut()
	return t
}

// layOut makes a batch as the core does, with every page touched.
func (t *through) layOut() {
	t.batch = (*C.kv_batch)(C.calloc(1, C.sizeof_kv_batch))
	ops := C.calloc(batchSize, C.sizeof_kv_op)
	t.ops = unsafe.Slice((*C.kv_op)(ops), batchSize)
	t.batch.ops, t.batch.stop = &t.ops[0], (*C.uint32_t)(C.calloc(1, 4))
	t.batch.clock = C.uint32_t(driver.BestClock)
	keys, values, outs := inC(batchSize*keySize), inC(batchSize*valueSize), inC(batchSize*outSize)
	for i := range t.ops {
		s := slot{keys[i*keySize:][:keySize], values[i*valueSize:][:valueSize], outs[i*outSize:][:outSize]}
		clear(s.out)
		t.slots = append(t.slots, s)
		op := &t.ops[i]
		op.key, op.value = (*C.uint8_t)(&s.key[0]), (*C.uint8_t)(&s.value[0])
		op.out, op.out_size, op.key_length = (*C.uint8_t)(&s.out[0]), outSize, keySize
	}
}

// engine returns the database that the driver uses.
func (t *through) engine() any {
	return driver.DatabaseOf(uintptr(C.handle_of(t.database))).(interface{ Engine() any }).Engine()
}

// run runs `count` ops of a kind through the boundary and returns the ticks inside each, and those that, according to
// the kit, belong to no op.
func (t *through) run(kind kind, count int, latencies []uint64) uint64 {
	for i := range count {
		op := &t.ops[i]
		op.kind, op.value_length, op.limit = C.uint8_t(kind), 0, 0
		if kind == put {
			op.value_length = valueSize
		} else if kind == scan {
			op.limit = scanRows
		}
	}
	t.batch.count, t.batch.waited = C.uint32_t(count), 0
	if C.call_execute(t.table, t.session, t.batch) != C.KV_OK {
		log.Fatalf("execute: %s", C.GoString(&t.batch.error[0]))
	}
	for i := range count {
		latencies[i] = uint64(t.ops[i].end - t.ops[i].start)
	}
	return uint64(t.batch.waited)
}

func (t *through) close() {
	if C.call_end(t.table, t.session, t.database) != C.KV_OK {
		log.Fatal("close failed")
	}
}

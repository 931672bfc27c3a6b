// The plug-in of all engines in Go: there can be only one Go runtime in a process.
package main

import (
	"kvdyno/driver"
	"kvdyno/engines/badger"
	"kvdyno/engines/bbolt"
	"kvdyno/engines/bolt"
	"kvdyno/engines/buntdb"
	"kvdyno/engines/example"
	"kvdyno/engines/goleveldb"
	"kvdyno/engines/kv"
	"kvdyno/engines/lotusdb"
	"kvdyno/engines/memory"
	"kvdyno/engines/null"
	"kvdyno/engines/nutsdb"
	"kvdyno/engines/pebble"
	"kvdyno/engines/pogreb"
	"kvdyno/engines/rosedb"
	"kvdyno/engines/sniper"
)

func init() {
	driver.Register(
		null.Driver{}, null.Driver{Keeps: true},
		badger.Driver{}, badger.Driver{InMemory: true},
		bbolt.Driver{},
		bolt.Driver{},
		buntdb.Driver{}, buntdb.Driver{InMemory: true},
		example.Driver{},
		goleveldb.Driver{},
		kv.Driver{},
		lotusdb.Driver{},
		memory.Driver{}, memory.Driver{InMemory: true},
		memory.Driver{Ordered: true}, memory.Driver{Ordered: true, InMemory: true},
		nutsdb.Driver{},
		pebble.Driver{},
		pogreb.Driver{},
		rosedb.Driver{},
		sniper.Driver{},
	)
}

func main() {}

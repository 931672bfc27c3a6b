// The plain loops, one for each engine.

package main

import (
	"bytes"
	"encoding/binary"
	"log"

	"github.com/akrylysov/pogreb"
	pebbledb "github.com/cockroachdb/pebble/v2"
	badgerdb "github.com/dgraph-io/badger/v4"
	"github.com/nutsdb/nutsdb"
	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/util"
	"go.etcd.io/bbolt"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// appendRow appends a row to the output of a scan, in the layout of driver.h.
func appendRow(out []byte, at int, key, value []byte) int {
	binary.NativeEndian.PutUint32(out[at:], uint32(len(key)))
	binary.NativeEndian.PutUint32(out[at+4:], uint32(len(value)))
	copy(out[at+8:], key)
	copy(out[at+8+len(key):], value)
	return at + 8 + len(key) + len(value)
}

func onPebble(write *pebbledb.WriteOptions) func(engine any) hand {
	return func(engine any) hand { return pebbleHand(engine.(*pebbledb.DB), write) }
}

func pebbleHand(db *pebbledb.DB, write *pebbledb.WriteOptions) hand {
	return hand{
		put: func(key, value []byte) { must(db.Set(key, value, write)) },
		get: func(key, out []byte) int {
			value, closer, err := db.Get(key)
			must(err)
			length := copy(out, value)
			must(closer.Close())
			return length
		},
		scan: func(from, out []byte) (at int) {
			iterator, err := db.NewIter(&pebbledb.IterOptions{LowerBound: from})
			must(err)
			rows := 0
			for is := iterator.First(); is && rows < scanRows; is = iterator.Next() {
				at = appendRow(out, at, iterator.Key(), iterator.Value())
				rows++
			}
			must(iterator.Error())
			must(iterator.Close())
			return at
		},
	}
}

func onBbolt(engine any) hand {
	db := engine.(*bbolt.DB)
	name := []byte("0")
	return hand{
		put: func(key, value []byte) {
			must(db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(name).Put(key, value) }))
		},
		get: func(key, out []byte) int {
			tx, err := db.Begin(false)
			must(err)
			length := copy(out, tx.Bucket(name).Get(key))
			must(tx.Rollback())
			return length
		},
		scan: func(from, out []byte) (at int) {
			tx, err := db.Begin(false)
			must(err)
			cursor := tx.Bucket(name).Cursor()
			rows := 0
			for key, value := cursor.Seek(from); key != nil && rows < scanRows; key, value = cursor.Next() {
				at = appendRow(out, at, key, value)
				rows++
			}
			must(tx.Rollback())
			return at
		},
	}
}

func onBadger(engine any) hand {
	db := engine.(*badgerdb.DB)
	return hand{
		put: func(key, value []byte) {
			txn := db.NewTransaction(true)
			must(txn.Set(key, value))
			must(txn.Commit())
		},
		get: func(key, out []byte) (length int) {
			txn := db.NewTransaction(false)
			item, err := txn.Get(key)
			must(err)
			must(item.Value(func(value []byte) error {
				length = copy(out, value)
				return nil
			}))
			txn.Discard()
			return length
		},
		scan: func(from, out []byte) (at int) {
			txn := db.NewTransaction(false)
			how := badgerdb.DefaultIteratorOptions
			how.PrefetchValues = false
			iterator := txn.NewIterator(how)
			rows := 0
			for iterator.Seek(from); iterator.Valid() && rows < scanRows; iterator.Next() {
				item := iterator.Item()
				must(item.Value(func(value []byte) error {
					at = appendRow(out, at, item.Key(), value)
					return nil
				}))
				rows++
			}
			iterator.Close()
			txn.Discard()
			return at
		},
	}
}

func onPogreb(engine any) hand {
	db := engine.(*pogreb.DB)
	return hand{
		put: func(key, value []byte) { must(db.Put(key, value)) },
		get: func(key, out []byte) int {
			value, err := db.Get(key)
			must(err)
			return copy(out, value)
		},
	}
}

func onGoleveldb(engine any) hand {
	db := engine.(*leveldb.DB)
	return hand{
		put: func(key, value []byte) { must(db.Put(key, value, nil)) },
		get: func(key, out []byte) int {
			value, err := db.Get(key, nil)
			must(err)
			return copy(out, value)
		},
		scan: func(from, out []byte) (at int) {
			iterator := db.NewIterator(&util.Range{Start: from}, nil)
			rows := 0
			for is := iterator.First(); is && rows < scanRows; is = iterator.Next() {
				at = appendRow(out, at, iterator.Key(), iterator.Value())
				rows++
			}
			must(iterator.Error())
			iterator.Release()
			return at
		},
	}
}

// onNutsdb copies what is put, because the engine keeps it.
func onNutsdb(engine any) hand {
	db := engine.(*nutsdb.DB)
	const bucket = "0"
	return hand{
		put: func(key, value []byte) {
			tx, err := db.Begin(true)
			must(err)
			must(tx.Put(bucket, bytes.Clone(key), bytes.Clone(value), nutsdb.Persistent))
			must(tx.Commit())
		},
		get: func(key, out []byte) int {
			tx, err := db.Begin(false)
			must(err)
			value, err := tx.Get(bucket, key)
			must(err)
			length := copy(out, value)
			must(tx.Rollback())
			return length
		},
		scan: func(from, out []byte) (at int) {
			tx, err := db.Begin(false)
			must(err)
			iterator := nutsdb.NewIterator(tx, bucket, nutsdb.IteratorOptions{})
			iterator.Seek(from)
			for rows := 0; iterator.Valid() && rows < scanRows; rows++ {
				value, err := iterator.Value()
				must(err)
				at = appendRow(out, at, iterator.Key(), value)
				iterator.Next()
			}
			iterator.Release()
			must(tx.Rollback())
			return at
		},
	}
}

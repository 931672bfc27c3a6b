// Command redcon serves GET and SET of one Go engine in the plain way, as a comparison for `kvdyno serve`: redcon, one
// goroutine per connection, one engine call per command. The engines' settings are those of kvdyno's drivers (engines/go).
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/dgraph-io/badger/v4"
	"github.com/tidwall/buntdb"
	"github.com/tidwall/redcon"
	"go.etcd.io/bbolt"
)

// engine has the calls that a plain server needs.
type engine struct {
	get func(key []byte, give func(value []byte)) (isThere bool, err error)
	set func(key, value []byte) error
}

var engines = map[string]func(folder string) (engine, error){
	"bbolt": openBbolt, "badger": openBadger, "pebble": openPebble, "buntdb": openBuntdb,
}

func openBbolt(folder string) (engine, error) {
	options := *bbolt.DefaultOptions
	options.NoSync, options.NoGrowSync = true, true
	db, err := bbolt.Open(filepath.Join(folder, "bbolt.db"), 0o600, &options)
	if err != nil {
		return engine{}, err
	}
	name := []byte("0")
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(name)
		return err
	})
	return engine{
		get: func(key []byte, give func([]byte)) (isThere bool, err error) {
			err = db.View(func(tx *bbolt.Tx) error {
				if value := tx.Bucket(name).Get(key); value != nil {
					isThere = true
					give(value)
				}
				return nil
			})
			return isThere, err
		},
		set: func(key, value []byte) error {
			return db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(name).Put(key, value) })
		},
	}, err
}

func openBadger(folder string) (engine, error) {
	db, err := badger.Open(badger.DefaultOptions(folder).WithLogger(nil).WithMetricsEnabled(true).WithNumCompactors(4))
	return engine{
		get: func(key []byte, give func([]byte)) (isThere bool, err error) {
			err = db.View(func(tx *badger.Txn) error {
				item, err := tx.Get(key)
				if err == badger.ErrKeyNotFound {
					return nil
				} else if err != nil {
					return err
				}
				isThere = true
				return item.Value(func(value []byte) error {
					give(value)
					return nil
				})
			})
			return isThere, err
		},
		set: func(key, value []byte) error {
			return db.Update(func(tx *badger.Txn) error { return tx.Set(key, value) })
		},
	}, err
}

// quiet discards the log of Pebble.
type quiet struct{}

func (quiet) Infof(string, ...any)         {}
func (quiet) Errorf(string, ...any)        {}
func (quiet) Fatalf(form string, a ...any) { panic(fmt.Sprintf(form, a...)) }

func openPebble(folder string) (engine, error) {
	options := &pebble.Options{
		MemTableSize: 4 << 20, MemTableStopWritesThreshold: 2, MaxOpenFiles: 1000, Logger: quiet{},
		Cache:                      pebble.NewCache(8 << 20),
		CompactionConcurrencyRange: func() (int, int) { return 1, 1 },
	}
	for level := range options.Levels {
		options.Levels[level].BlockSize = 4096
		options.Levels[level].Compression = func() *block.CompressionProfile { return block.SnappyCompression }
	}
	db, err := pebble.Open(folder, options)
	return engine{
		get: func(key []byte, give func([]byte)) (bool, error) {
			value, closer, err := db.Get(key)
			if err == pebble.ErrNotFound {
				return false, nil
			} else if err != nil {
				return false, err
			}
			give(value)
			return true, closer.Close()
		},
		set: func(key, value []byte) error { return db.Set(key, value, pebble.NoSync) },
	}, err
}

func openBuntdb(folder string) (engine, error) {
	db, err := buntdb.Open(filepath.Join(folder, "bunt.aof"))
	if err != nil {
		return engine{}, err
	}
	var settings buntdb.Config
	if err := db.ReadConfig(&settings); err != nil {
		return engine{}, err
	}
	settings.SyncPolicy = buntdb.Never
	return engine{
		get: func(key []byte, give func([]byte)) (isThere bool, err error) {
			err = db.View(func(tx *buntdb.Tx) error {
				value, err := tx.Get(string(key))
				if err == buntdb.ErrNotFound {
					return nil
				} else if err != nil {
					return err
				}
				isThere = true
				give([]byte(value))
				return nil
			})
			return isThere, err
		},
		set: func(key, value []byte) error {
			return db.Update(func(tx *buntdb.Tx) error {
				_, _, err := tx.Set(string(key), string(value), nil)
				return err
			})
		},
	}, db.SetConfig(settings)
}

func serve(engine engine, conn redcon.Conn, cmd redcon.Command) {
	switch name := strings.ToLower(string(cmd.Args[0])); {
	case name == "get" && len(cmd.Args) == 2:
		isThere, err := engine.get(cmd.Args[1], conn.WriteBulk)
		if err != nil {
			conn.WriteError("ERR " + err.Error())
		} else if !isThere {
			conn.WriteNull()
		}
	case name == "set" && len(cmd.Args) == 3:
		if err := engine.set(cmd.Args[1], cmd.Args[2]); err != nil {
			conn.WriteError("ERR " + err.Error())
			return
		}
		conn.WriteString("OK")
	case name == "echo" && len(cmd.Args) == 2:
		conn.WriteBulk(cmd.Args[1])
	case name == "ping":
		conn.WriteString("PONG")
	case name == "config":
		conn.WriteArray(0)
	default:
		conn.WriteError("ERR unknown command '" + name + "'")
	}
}

func main() {
	if len(os.Args) != 4 || engines[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: redcon bbolt|badger|pebble|buntdb FOLDER PORT")
		os.Exit(2)
	}
	engine, err := engines[os.Args[1]](os.Args[2])
	if err == nil {
		err = redcon.ListenAndServe("127.0.0.1:"+os.Args[3],
			func(conn redcon.Conn, cmd redcon.Command) { serve(engine, conn, cmd) },
			func(redcon.Conn) bool { return true }, func(redcon.Conn, error) {})
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

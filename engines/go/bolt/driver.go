// Package bolt drives Bolt 1.3.1, the copy-on-write B+tree that bbolt was forked from, as measured by KVBench.
package bolt

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/boltdb/bolt"

	"kvdyno/driver"
	"kvdyno/engines/bbolt/tree"
)

// Driver is the driver of Bolt.
type Driver struct{}

func init() { driver.Register(Driver{}) }

// Info describes the engine.
func (Driver) Info() driver.Info {
	return driver.Info{
		Name: "bolt", Engine: "copy-on-write B+tree in a memory map, no longer developed", Family: "b+tree",
		Capabilities: tree.Capabilities,
		Levels:       []driver.Level{driver.Process, driver.Power},
		KeySizeMax:   bolt.MaxKeySize,
		Options: []driver.Option{
			{Name: "fill_percent", Kind: "count", Default: "50", Help: "fill of a page after a split in percent, 10 to 100"},
			{Name: "initial_map", Kind: "bytes", Default: "0", Help: "size of the map at open in bytes; 0 = as large as the file"},
			{Name: "bucket", Kind: "text", Default: "0", Help: "name of the bucket of the first keyspace"},
		},
	}
}

type database struct {
	*tree.Database[*bolt.Tx, *bolt.Bucket, *bolt.Cursor]
	db *bolt.DB
}

// Open opens a database: one file, a bucket for each keyspace.
func (Driver) Open(config *driver.Config, opened *driver.Opened) (driver.Database, error) {
	level, err0 := config.Pick(driver.Power)
	fillPercent, err1 := config.Number("fill_percent")
	initial, err2 := config.Number("initial_map")
	if err := errors.Join(err0, err1, err2); err != nil {
		return nil, err
	}
	if fillPercent < 10 || fillPercent > 100 {
		return nil, driver.Fail(driver.Failed, "option fill_percent: expected 10 to 100, got %d", fillPercent)
	}
	options := &bolt.Options{Timeout: time.Second, InitialMmapSize: int(initial)}
	db, err := bolt.Open(filepath.Join(config.Path, "bolt.db"), 0o600, options)
	if err != nil {
		return nil, err
	}
	// Not an option of open in this version.
	db.NoSync = level == driver.Process
	db.NoGrowSync = db.NoSync
	made, err := tree.New(db, config.Keyspaces, config.Text("bucket"), func(bucket *bolt.Bucket) {
		bucket.FillPercent = float64(fillPercent) / 100
	})
	if err != nil {
		return nil, err
	}
	opened.Level, opened.Version, opened.Compression = level, driver.ModuleVersion("github.com/boltdb/bolt"), "none"
	opened.Effective("no_sync", db.NoSync)
	opened.Effective("fill_percent", fillPercent)
	opened.Effective("initial_map", initial)
	opened.Effective("bucket", config.Text("bucket"))
	return &database{made, db}, nil
}

// Stats reports statistics of the engine.
func (d *database) Stats(add func(name string, value any)) {
	stats := d.db.Stats()
	add("free_pages", stats.FreePageN)
	add("pending_pages", stats.PendingPageN)
	add("freelist_bytes", stats.FreelistInuse)
	add("read_transactions", stats.TxN)
	add("page_allocations", stats.TxStats.PageCount)
	add("page_allocation_bytes", stats.TxStats.PageAlloc)
	add("rebalances", stats.TxStats.Rebalance)
	add("splits", stats.TxStats.Split)
	add("page_writes", stats.TxStats.Write)
}

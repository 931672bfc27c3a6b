// Package bbolt drives bbolt: a copy-on-write B+tree in a memory map, in Go.
package bbolt

import (
	"errors"
	"path/filepath"

	"go.etcd.io/bbolt"

	"kvdyno/driver"
	"kvdyno/engines/bbolt/tree"
)

// Driver is the driver of bbolt.
type Driver struct{}

func init() { driver.Register(Driver{}) }

// Info describes the engine.
func (Driver) Info() driver.Info {
	return driver.Info{
		Name: "bbolt", Engine: "copy-on-write B+tree in a memory map, from etcd", Family: "b+tree",
		Capabilities: tree.Capabilities,
		Levels:       []driver.Level{driver.Process, driver.Power},
		KeySizeMax:   bbolt.MaxKeySize,
		Options: []driver.Option{
			{Name: "freelist", Kind: "choice:array|map", Default: "array", Help: "how free pages are stored in memory"},
			{Name: "freelist_sync", Kind: "flag", Default: "true", Help: "write the list of free pages at each commit"},
			{Name: "page_size", Kind: "bytes", Default: "0", Help: "page size in bytes; 0 = the system's"},
			{Name: "fill_percent", Kind: "count", Default: "50", Help: "fill of a page after a split in percent, 10 to 100"},
			{Name: "initial_map", Kind: "bytes", Default: "0", Help: "size of the map at open in bytes; 0 = as large as the file"},
			{Name: "bucket", Kind: "text", Default: "0", Help: "name of the bucket of the first keyspace"},
		},
	}
}

type database struct {
	*tree.Database[*bbolt.Tx, *bbolt.Bucket, *bbolt.Cursor]
	db *bbolt.DB
}

// Open opens a database: one file, a bucket for each keyspace.
func (Driver) Open(config *driver.Config, opened *driver.Opened) (driver.Database, error) {
	level, err := config.Pick(driver.Power)
	if err != nil {
		return nil, err
	}
	options, fillPercent, err := readOptions(config, opened)
	if err != nil {
		return nil, err
	}
	options.NoSync = level == driver.Process
	options.NoGrowSync = options.NoSync
	db, err := bbolt.Open(filepath.Join(config.Path, "bbolt.db"), 0o600, options)
	if err != nil {
		return nil, err
	}
	made, err := tree.New(db, config.Keyspaces, config.Text("bucket"), func(bucket *bbolt.Bucket) {
		bucket.FillPercent = float64(fillPercent) / 100
	})
	if err != nil {
		return nil, err
	}
	opened.Level, opened.Version, opened.Compression = level, driver.ModuleVersion("go.etcd.io/bbolt"), "none"
	opened.Effective("no_sync", options.NoSync)
	return &database{made, db}, nil
}

func readOptions(config *driver.Config, opened *driver.Opened) (*bbolt.Options, uint64, error) {
	pageSize, err1 := config.Number("page_size")
	fillPercent, err2 := config.Number("fill_percent")
	initial, err3 := config.Number("initial_map")
	freelistSync, err4 := config.Flag("freelist_sync")
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, 0, err
	}
	options := *bbolt.DefaultOptions
	options.FreelistType = bbolt.FreelistType(map[string]string{"array": "array", "map": "hashmap"}[config.Text("freelist")])
	options.PageSize, options.InitialMmapSize = int(pageSize), int(initial)
	options.NoFreelistSync = !freelistSync
	switch {
	case options.FreelistType == "":
		return nil, 0, driver.Fail(driver.Failed, "option freelist: expected array or map, got `%s`", config.Text("freelist"))
	case fillPercent < 10 || fillPercent > 100:
		return nil, 0, driver.Fail(driver.Failed, "option fill_percent: expected 10 to 100, got %d", fillPercent)
	case pageSize&(pageSize-1) != 0 || (pageSize != 0 && pageSize < 1024) || pageSize > 1<<16:
		return nil, 0, driver.Fail(driver.Failed, "option page_size: expected a power of two from 1024 to 65536, got %d", pageSize)
	}
	for _, name := range []string{"freelist", "freelist_sync", "page_size", "fill_percent", "initial_map", "bucket"} {
		opened.Effective(name, config.Text(name))
	}
	return &options, fillPercent, nil
}

// Stats reports statistics of the engine.
func (d *database) Stats(add func(name string, value any)) {
	stats := d.db.Stats()
	add("free_pages", stats.FreePageN)
	add("pending_pages", stats.PendingPageN)
	add("freelist_bytes", stats.FreelistInuse)
	add("read_transactions", stats.TxN)
	add("page_allocations", stats.TxStats.GetPageCount())
	add("page_allocation_bytes", stats.TxStats.GetPageAlloc())
	add("rebalances", stats.TxStats.GetRebalance())
	add("splits", stats.TxStats.GetSplit())
	add("page_writes", stats.TxStats.GetWrite())
}

// Engine returns the database itself, for the bench that compares the driver with a plain loop.
func (d *database) Engine() any { return d.db }

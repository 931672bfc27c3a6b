// Package lotusdb drives LotusDB: memory tables with logs, values in separate logs, and B+trees that index them.
package lotusdb

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/lotusdblabs/lotusdb/v2"

	"kvdyno/driver"
)

// Importing the engine creates an empty folder in the temporary directory, whether or not a database is opened.
func init() { _ = os.Remove(lotusdb.DefaultOptions.DirPath) }

// Driver is the driver of LotusDB.
type Driver struct{}

func init() { driver.Register(Driver{}) }

const keyBytesMax = 32768

// Info describes the engine. Not level power, even with sync=true (README.md).
func (Driver) Info() driver.Info {
	return driver.Info{
		Name: "lotusdb", Engine: "memory tables with logs, values in separate logs, indexed by B+trees", Family: "lsm",
		Capabilities: driver.Ordered | driver.CanReverse | driver.CanPrefix | driver.MultiGet | driver.Transaction |
			driver.TransactionReads | driver.CanDelete | driver.Overwrite | driver.CanNew | driver.SingleWriter | driver.NoEmptyValues,
		Levels:     []driver.Level{driver.Process},
		KeySizeMax: keyBytesMax,
		Options: []driver.Option{
			{Name: "sync", Kind: "flag", Default: "false", Help: "sync the log of the memory table at each commit"},
			{Name: "memtable", Kind: "bytes", Default: "67108864", Help: "size of a memory table in bytes, before it is written out"},
			{Name: "memtables", Kind: "count", Default: "15", Help: "maximum number of memory tables"},
			{Name: "partitions", Kind: "count", Default: "3", Help: "partitions of the index and of the value log"},
		},
	}
}

type database struct {
	db        *lotusdb.DB
	options   lotusdb.BatchOptions
	mostBytes int // limit for the writes of a group
}

// Open opens a database.
func (Driver) Open(config *driver.Config, opened *driver.Opened) (driver.Database, error) {
	level, err0 := config.Pick(driver.Process)
	isSync, err1 := config.Flag("sync")
	memtable, err2 := config.Number("memtable")
	memtables, err3 := config.Number("memtables")
	partitions, err4 := config.Number("partitions")
	if err := errors.Join(err0, err1, err2, err3, err4); err != nil {
		return nil, err
	}
	switch {
	case memtable < 1<<20 || memtable > math.MaxInt32:
		return nil, driver.Fail(driver.Failed, "option memtable: expected 1048576 to 2147483647 bytes, got %d", memtable)
	case memtables < 2 || memtables > 1000:
		return nil, driver.Fail(driver.Failed, "option memtables: expected 2 to 1000, got %d", memtables)
	case partitions < 1 || partitions > 1000:
		return nil, driver.Fail(driver.Failed, "option partitions: expected 1 to 1000, got %d", partitions)
	}
	options := lotusdb.DefaultOptions
	options.DirPath = filepath.Join(config.Path, "lotusdb")
	options.MemtableSize, options.MemtableNums, options.PartitionNum = uint32(memtable), int(memtables), int(partitions)
	// A writer that waits for room blocks the flush that would make room: let it time out soon, and retry.
	options.WaitMemSpaceTimeout = time.Millisecond
	// One cache for each part of the value log; none as shipped.
	options.BlockCache = uint32(min(config.CacheBytes/partitions, 1<<30))
	db, err := lotusdb.Open(options)
	if err != nil {
		return nil, err
	}
	dropSignals()
	opened.Level, opened.Version, opened.Compression = level, driver.ModuleVersion("github.com/lotusdblabs/lotusdb/v2"), "none"
	opened.CacheBytes = uint64(options.BlockCache) * partitions
	opened.Effective("sync", isSync)
	opened.Effective("memtable", memtable)
	opened.Effective("memtables", memtables)
	opened.Effective("partitions", partitions)
	batch := lotusdb.BatchOptions{WriteOptions: lotusdb.WriteOptions{Sync: isSync}}
	// Data larger than a memory table, which reserves half its size, ends the process.
	mostBytes := int(memtable / 4)
	opened.Effective("value_size_max", mostBytes-rowBytes-min(int(config.KeySizeMax), keyBytesMax))
	return &database{db, batch, mostBytes}, nil
}

// Session returns a session for one thread.
func (d *database) Session() (driver.Session, error) { return d, nil }

// End ends a session.
func (d *database) End() error { return nil }

// Close closes the database.
func (d *database) Close() error {
	settle()
	return d.db.Close()
}

// Maintain syncs, or waits for flushes. It does not offer the compaction of the value log, which does not exclude
// readers.
func (d *database) Maintain(work driver.Work) (bool, error) {
	switch work {
	case driver.Flush:
		return true, d.db.Sync()
	case driver.Settle:
		settle()
		return true, nil
	}
	return false, nil
}

func failed(err error) error {
	if errors.Is(err, lotusdb.ErrKeyIsEmpty) {
		return driver.Fail(driver.TooLarge, "%v", err)
	}
	return err
}

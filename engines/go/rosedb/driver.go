// Package rosedb drives RoseDB: an index of all keys in memory over an append-only log.
package rosedb

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/rosedblabs/rosedb/v2"
	"github.com/rosedblabs/wal"

	"kvdyno/driver"
)

// Importing the engine creates an empty folder in the temporary directory, whether or not a database is opened.
func init() { _ = os.Remove(rosedb.DefaultOptions.DirPath) }

// Driver is the driver of RoseDB.
type Driver struct{}

func init() { driver.Register(Driver{}) }

// Info describes the engine.
func (Driver) Info() driver.Info {
	return driver.Info{
		Name: "rosedb", Engine: "index of all keys in memory over an append-only log, like Bitcask", Family: "log",
		Capabilities: driver.Ordered | driver.CanReverse | driver.CanPrefix | driver.MultiGet | driver.Transaction |
			driver.TransactionReads | driver.CanDelete | driver.Overwrite | driver.CanNew | driver.TimeToLive |
			driver.KeepsKey | driver.SingleWriter,
		Levels: []driver.Level{driver.Process, driver.Power},
		Options: []driver.Option{
			{Name: "segment", Kind: "bytes", Default: "1073741824", Help: "size of a file of the log in bytes"},
		},
	}
}

type database struct {
	db     *rosedb.DB
	isSync bool
}

// Open opens a database. Its merge creates a folder next to its own, so that its own is below the trial's.
func (Driver) Open(config *driver.Config, opened *driver.Opened) (driver.Database, error) {
	level, err1 := config.Pick(driver.Process)
	segment, err2 := config.Number("segment")
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if segment < 1<<20 || segment > math.MaxInt32 {
		return nil, driver.Fail(driver.Failed, "option segment: expected 1048576 to 2147483647 bytes, got %d", segment)
	}
	options := rosedb.DefaultOptions
	options.DirPath, options.SegmentSize = filepath.Join(config.Path, "rosedb"), int64(segment)
	// As shipped there is no cache; it must not be larger than a file.
	opened.CacheBytes = min(config.CacheBytes, segment)
	options.BlockCache = uint32(opened.CacheBytes)
	db, err := rosedb.Open(options)
	if err != nil {
		return nil, err
	}
	opened.Level, opened.Version, opened.Compression = level, driver.ModuleVersion("github.com/rosedblabs/rosedb/v2"), "none"
	opened.Effective("sync", level == driver.Power)
	opened.Effective("segment", segment)
	return &database{db, level == driver.Power}, nil
}

// Session returns a session for one thread.
func (d *database) Session() (driver.Session, error) { return d, nil }

// End ends a session.
func (d *database) End() error { return nil }

// Close closes the database.
func (d *database) Close() error { return d.db.Close() }

// Maintain syncs, or merges the files of the log into new ones; not at level power, because it does not sync those.
func (d *database) Maintain(work driver.Work) (bool, error) {
	switch {
	case work == driver.Flush:
		return true, d.db.Sync()
	case work == driver.Compact && !d.isSync:
		return true, d.db.Merge(true)
	}
	return work == driver.Settle, nil // nothing runs in the background
}

// Stats reports statistics of the engine.
func (d *database) Stats(add func(name string, value any)) {
	stat := d.db.Stat()
	add("keys", stat.KeysNum)
	add("disk_bytes", stat.DiskSize)
}

func failed(err error) error {
	if errors.Is(err, rosedb.ErrKeyIsEmpty) || errors.Is(err, wal.ErrValueTooLarge) || errors.Is(err, wal.ErrPendingSizeTooLarge) {
		return driver.Fail(driver.TooLarge, "%v", err)
	}
	return err
}

func apply(batch *rosedb.Batch, op *driver.Op) (driver.Status, error) {
	switch op.Kind() {
	case driver.Get:
		value, err := batch.Get(op.Key)
		return delivered(op, value, err)
	case driver.Put:
		if op.IsNew() {
			if is, err := batch.Exist(op.Key); is || err != nil {
				return driver.Exists, err
			}
		}
		if op.SecondsToLive() != 0 {
			return driver.OK, batch.PutWithTTL(op.Key, op.Value, time.Duration(op.SecondsToLive())*time.Second)
		}
		return driver.OK, batch.Put(op.Key, op.Value)
	case driver.Delete:
		return driver.OK, batch.Delete(op.Key)
	}
	return driver.Unsupported, driver.Fail(driver.Unsupported, "a transaction may have only gets, puts and deletes")
}

func delivered(op *driver.Op, value []byte, err error) (driver.Status, error) {
	if err == rosedb.ErrKeyNotFound {
		return driver.NotFound, nil
	} else if err != nil {
		return driver.Failed, failed(err)
	}
	return op.Deliver(value), nil
}

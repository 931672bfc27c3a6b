// Package nutsdb drives NutsDB: an ordered index in memory over an append-only log.
package nutsdb

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/nutsdb/nutsdb"

	"kvdyno/driver"
)

// Driver is the driver of NutsDB.
type Driver struct{}

func init() { driver.Register(Driver{}) }

// Info describes the engine.
func (Driver) Info() driver.Info {
	return driver.Info{
		Name: "nutsdb", Engine: "ordered index in memory over an append-only log, like Bitcask", Family: "log",
		Capabilities: driver.Ordered | driver.CanReverse | driver.CanPrefix | driver.MultiGet | driver.Transaction |
			driver.TransactionReads | driver.CanDelete | driver.DeleteTells | driver.Overwrite | driver.CanNew |
			driver.Keyspaces | driver.KeepsKey | driver.KeepsValue | driver.SingleWriter,
		Levels: []driver.Level{driver.Process, driver.Power},
		Options: []driver.Option{
			{Name: "index", Kind: "choice:values|keys", Default: "values", Help: "what is kept in memory; with keys, values are read from the log"},
			{Name: "segment", Kind: "bytes", Default: "268435456", Help: "size of a file of the log in bytes, allocated at creation"},
			{Name: "cached_entries", Kind: "count", Default: "0", Help: "entries of the value cache; with index=keys"},
			{Name: "merge_interval_s", Kind: "count", Default: "7200", Help: "seconds between background merges; 0 = none"},
		},
	}
}

type database struct {
	db      *nutsdb.DB
	buckets []string
}

// Open opens a database: a bucket for each keyspace.
func (Driver) Open(config *driver.Config, opened *driver.Opened) (driver.Database, error) {
	level, err := config.Pick(driver.Power)
	if err != nil {
		return nil, err
	}
	options, err := readOptions(config, opened)
	if err != nil {
		return nil, err
	}
	options.Dir, options.SyncEnable = config.Path, level == driver.Power
	db, err := nutsdb.Open(options)
	if err != nil {
		return nil, err
	}
	made := &database{db: db}
	for keyspace := range config.Keyspaces {
		made.buckets = append(made.buckets, strconv.Itoa(keyspace))
	}
	if err := made.makeBuckets(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	opened.Level, opened.Version, opened.Compression = level, driver.ModuleVersion("github.com/nutsdb/nutsdb"), "none"
	opened.Effective("sync", options.SyncEnable)
	return made, nil
}

func readOptions(config *driver.Config, opened *driver.Opened) (nutsdb.Options, error) {
	options := nutsdb.DefaultOptions
	numbers := map[string]uint64{}
	for _, name := range []string{"segment", "cached_entries", "merge_interval_s"} {
		number, err := config.Number(name)
		if err != nil {
			return options, err
		}
		numbers[name] = number
		opened.Effective(name, number)
	}
	if segment := numbers["segment"]; segment < 1<<20 || segment > math.MaxInt32 {
		return options, driver.Fail(driver.Failed, "option segment: expected 1048576 to 2147483647 bytes, got %d", segment)
	}
	options.SegmentSize, options.MergeInterval = int64(numbers["segment"]), time.Duration(numbers["merge_interval_s"])*time.Second
	index := config.Text("index")
	switch index {
	case "values":
	case "keys":
		options.EntryIdxMode = nutsdb.HintKeyAndRAMIdxMode
		options.HintKeyAndRAMIdxCacheSize = int(numbers["cached_entries"])
		if options.HintKeyAndRAMIdxCacheSize == 0 {
			opened.Capabilities &^= driver.KeepsValue // with a cache, the cache keeps them
		}
	default:
		return options, driver.Fail(driver.Failed, "option index: expected values or keys, got `%s`", index)
	}
	opened.Effective("index", index)
	return options, nil
}

func (d *database) makeBuckets() error {
	return d.db.Update(func(tx *nutsdb.Tx) error {
		for _, bucket := range d.buckets {
			if tx.ExistBucket(nutsdb.DataStructureBTree, bucket) {
				continue
			}
			if err := tx.NewKVBucket(bucket); err != nil {
				return err
			}
		}
		return nil
	})
}

// Session returns a session for one thread.
func (d *database) Session() (driver.Session, error) { return d, nil }

// End ends a session.
func (d *database) End() error { return nil }

// Close closes the database.
func (d *database) Close() error { return d.db.Close() }

// Maintain merges the files of the log into new ones; there is no call for a sync.
func (d *database) Maintain(work driver.Work) (bool, error) {
	if work != driver.Compact {
		return false, nil
	}
	err := d.db.Merge()
	if errors.Is(err, nutsdb.ErrDontNeedMerge) {
		err = nil // there is only one file
	}
	return true, err
}

// Stats reports statistics of the engine.
func (d *database) Stats(add func(name string, value any)) {
	add("log_files", d.db.MaxFileID+1)
	add("records_written", d.db.KeyCount)
}

func failed(err error) error {
	if errors.Is(err, nutsdb.ErrKeyEmpty) || errors.Is(err, nutsdb.ErrDataSizeExceed) {
		return driver.Fail(driver.TooLarge, "%v", err)
	}
	return err
}

// Engine returns the database itself, for the bench that compares the driver with a plain loop.
func (d *database) Engine() any { return d.db }

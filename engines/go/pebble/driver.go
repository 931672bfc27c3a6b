// Package pebble drives Pebble: CockroachDB's log-structured merge tree, in Go.
package pebble

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable/block"

	"kvdyno/driver"
)

// Driver is the driver of Pebble.
type Driver struct{}

func init() { driver.Register(Driver{}) }

// Info describes the engine. Not level process: an unsynced write stays in the log writer's memory for a while
// (README.md).
func (Driver) Info() driver.Info {
	return driver.Info{
		Name: "pebble", Engine: "CockroachDB's log-structured merge tree", Family: "lsm",
		Capabilities: driver.Ordered | driver.CanReverse | driver.CanPrefix | driver.Transaction | driver.TransactionReads |
			driver.CanDelete | driver.Overwrite | driver.CanTouch | driver.MergeAdd | driver.LiveStats,
		Levels: []driver.Level{driver.None, driver.Power},
		Options: []driver.Option{
			{Name: "memtable", Kind: "bytes", Default: "4194304", Help: "size of a memtable in bytes, before it becomes a file"},
			{Name: "memtables", Kind: "count", Default: "2", Help: "number of memtables at which writes stop"},
			{Name: "block_size", Kind: "bytes", Default: "4096", Help: "size of a block in bytes, before compression"},
			{Name: "bloom_bits", Kind: "count", Default: "0", Help: "bits per key of a Bloom filter; 0 = no filter, as shipped"},
			{Name: "compression", Kind: "choice:snappy|zstd|none", Default: "snappy", Help: "compression of blocks"},
			{Name: "open_files", Kind: "count", Default: "1000", Help: "files that may be open at the same time"},
			{Name: "wal", Kind: "flag", Default: "false", Help: "at level none: write the log, after the acknowledgement (pebble.NoSync)"},
			{Name: "compactions", Kind: "count", Default: "1", Help: "compactions that may run at the same time"},
			{Name: "readers", Kind: "count", Default: "0", Help: "goroutines that share groups of 32 or more gets, at one snapshot; 0 = none"},
		},
	}
}

type database struct {
	db      *pebble.DB
	cache   *pebble.Cache
	write   *pebble.WriteOptions
	readers int
}

const defaultCacheBytes = 8 << 20

// Open opens a database.
func (Driver) Open(config *driver.Config, opened *driver.Opened) (driver.Database, error) {
	level, err := config.Pick(driver.Power)
	if err != nil {
		return nil, err
	}
	options, err := readOptions(config, opened)
	if err != nil {
		return nil, err
	}
	hasLog, err := config.Flag("wal")
	if err != nil {
		return nil, err
	}
	options.DisableWAL = level == driver.None && !hasLog
	options.ErrorIfExists, options.ErrorIfNotExists = config.Create, !config.Create
	opened.CacheBytes = config.CacheBytes
	if opened.CacheBytes == 0 {
		opened.CacheBytes = defaultCacheBytes
	}
	made := &database{cache: pebble.NewCache(int64(opened.CacheBytes)), write: pebble.NoSync}
	if level == driver.Power {
		made.write = pebble.Sync
	}
	options.Cache = made.cache
	if err := made.share(config, opened); err != nil {
		made.cache.Unref()
		return nil, err
	}
	if made.db, err = pebble.Open(config.Path, options); err != nil {
		made.cache.Unref()
		return nil, err
	}
	opened.Level, opened.Version = level, driver.ModuleVersion("github.com/cockroachdb/pebble/v2")
	opened.Effective("sync", level == driver.Power)
	opened.Effective("wal", !options.DisableWAL)
	return made, nil
}

func readOptions(config *driver.Config, opened *driver.Opened) (*pebble.Options, error) {
	numbers := map[string]uint64{}
	for _, name := range []string{"memtable", "memtables", "block_size", "bloom_bits", "open_files", "compactions"} {
		number, err := config.Number(name)
		if err != nil {
			return nil, err
		}
		numbers[name] = number
		opened.Effective(name, number)
	}
	compressions := map[string]*block.CompressionProfile{
		"snappy": block.SnappyCompression, "zstd": block.ZstdCompression, "none": block.NoCompression,
	}
	opened.Compression = config.Text("compression")
	profile, isKnown := compressions[opened.Compression]
	if !isKnown {
		return nil, driver.Fail(driver.Failed, "option compression: expected snappy, zstd or none, got `%s`", opened.Compression)
	}
	options := &pebble.Options{
		MemTableSize:                numbers["memtable"],
		MemTableStopWritesThreshold: int(numbers["memtables"]),
		MaxOpenFiles:                int(numbers["open_files"]),
		CompactionConcurrencyRange:  func() (int, int) { return 1, max(1, int(numbers["compactions"])) },
		Logger:                      quiet{},
		Merger:                      &adder,
	}
	for level := range options.Levels {
		options.Levels[level].BlockSize = int(numbers["block_size"])
		options.Levels[level].Compression = func() *block.CompressionProfile { return profile }
		if numbers["bloom_bits"] != 0 {
			options.Levels[level].FilterPolicy = bloom.FilterPolicy(numbers["bloom_bits"])
		}
	}
	return options, nil
}

// quiet drops Pebble's output, and turns what would end the process into a panic, which becomes an error.
type quiet struct{}

func (quiet) Infof(string, ...any)                   {}
func (quiet) Errorf(string, ...any)                  {}
func (quiet) Fatalf(format string, arguments ...any) { panic(fmt.Sprintf(format, arguments...)) }

// Session returns a session for one thread.
func (d *database) Session() (driver.Session, error) { return d, nil }

// End ends a session.
func (d *database) End() error { return nil }

// Close closes the database. Without a log, it flushes memtables first: the next open finds all acknowledged writes.
func (d *database) Close() error {
	err := errors.Join(d.db.Flush(), d.db.Close())
	d.cache.Unref()
	return err
}

// Maintain flushes, compacts everything, or waits until no flush and no compaction runs.
func (d *database) Maintain(work driver.Work) (bool, error) {
	switch work {
	case driver.Flush:
		return true, d.db.Flush()
	case driver.Compact:
		return true, d.compact()
	}
	// Idle several times in a row: one job starts the next immediately. The engine's estimate of pending compactions
	// includes data that it does not compact, so it need never reach 0.
	for calm := 0; calm < 5; time.Sleep(5 * time.Millisecond) {
		calm++
		metrics := d.db.Metrics()
		if metrics.Compact.NumInProgress != 0 || metrics.Flush.NumInProgress != 0 {
			calm = 0
		}
	}
	return true, nil
}

// compact compacts the complete range; the bounds of Compact must be real keys.
func (d *database) compact() error {
	iterator, err := d.db.NewIter(nil)
	if err != nil {
		return err
	}
	var first, last []byte
	if iterator.First() {
		first = append(first, iterator.Key()...)
	}
	if iterator.Last() {
		last = append(append(last, iterator.Key()...), 0)
	}
	if err := iterator.Close(); err != nil || last == nil {
		return err
	}
	return d.db.Compact(context.Background(), first, last, true)
}

// Stats reports statistics of the engine.
func (d *database) Stats(add func(name string, value any)) {
	metrics := d.db.Metrics()
	add("block_cache_hits", metrics.BlockCache.Hits)
	add("block_cache_misses", metrics.BlockCache.Misses)
	add("block_cache_bytes", metrics.BlockCache.Size)
	add("memtable_bytes", metrics.MemTable.Size)
	add("log_bytes_written", metrics.WAL.BytesWritten)
	add("flushes", metrics.Flush.Count)
	add("compactions", metrics.Compact.Count)
	add("read_amplification", metrics.ReadAmp())
	for level := range metrics.Levels {
		add("files_at_level_"+strconv.Itoa(level), metrics.Levels[level].TablesCount)
	}
}

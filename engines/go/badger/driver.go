// Package badger drives Badger: a log-structured merge tree that stores large values separately.
package badger

import (
	"errors"
	"math"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"kvdyno/driver"
)

// Driver is the driver of Badger.
type Driver struct {
	// InMemory: without files.
	InMemory bool
}

func init() { driver.Register(Driver{}, Driver{InMemory: true}) }

const capabilities = driver.Ordered | driver.CanReverse | driver.CanPrefix | driver.MultiGet | driver.Transaction |
	driver.TransactionReads | driver.CanDelete | driver.Overwrite | driver.CanNew | driver.TimeToLive | driver.CanTouch

var settings = []driver.Option{
	{Name: "memtable", Kind: "bytes", Default: "67108864", Help: "size of a memtable in bytes, before it becomes a file"},
	{Name: "memtables", Kind: "count", Default: "5", Help: "memtables that may wait to be written"},
	{Name: "value_threshold", Kind: "bytes", Default: "1048576", Help: "larger values are stored separately, in the value log"},
	{Name: "value_log_file", Kind: "bytes", Default: "1073741823", Help: "size of a file of the value log in bytes"},
	{Name: "block_size", Kind: "bytes", Default: "4096", Help: "size of a block in bytes, before compression"},
	{Name: "compactors", Kind: "count", Default: "4", Help: "goroutines that compact"},
	{Name: "compression", Kind: "choice:snappy|zstd|none", Default: "snappy", Help: "compression of blocks"},
	{Name: "index_cache", Kind: "bytes", Default: "0", Help: "cache for indexes and filters of files; 0 = all are kept in memory"},
	{Name: "detect_conflicts", Kind: "flag", Default: "true", Help: "retry transactions that read what another one has written"},
}

// Info describes the engine.
func (d Driver) Info() driver.Info {
	info := driver.Info{
		Name: "badger", Engine: "log-structured merge tree with large values stored separately", Family: "lsm",
		Capabilities: capabilities, Levels: []driver.Level{driver.Process, driver.Power}, KeySizeMax: 65000, Options: settings,
	}
	if d.InMemory {
		info.Name, info.Engine = "badger-memory", "Badger's in-memory mode, without files"
		info.Capabilities |= driver.InMemory
		info.Levels = []driver.Level{driver.None}
	}
	return info
}

type database struct {
	db            *badger.DB
	seesConflicts bool
	valueBytesMax int64
}

// Open opens a database.
func (d Driver) Open(config *driver.Config, opened *driver.Opened) (driver.Database, error) {
	authors := driver.Process
	if d.InMemory {
		authors = driver.None
	}
	level, err := config.Pick(authors)
	if err != nil {
		return nil, err
	}
	settings, err := readOptions(config, opened)
	if err != nil {
		return nil, err
	}
	most := settings.ValueLogFileSize
	if d.InMemory {
		settings = settings.WithDir("").WithValueDir("").WithInMemory(true)
		// There is no value log. A value that is exactly as large as the threshold ends the process.
		most = settings.ValueThreshold - 1
	}
	opened.Effective("value_size_max", most)
	settings.SyncWrites = level == driver.Power
	db, err := badger.Open(settings)
	if err != nil {
		return nil, err
	}
	opened.Level, opened.Version = level, driver.ModuleVersion("github.com/dgraph-io/badger/v4")
	opened.Effective("sync_writes", settings.SyncWrites)
	return &database{db, settings.DetectConflicts, most}, nil
}

func readOptions(config *driver.Config, opened *driver.Opened) (badger.Options, error) {
	settings := badger.DefaultOptions(config.Path).WithLogger(nil).WithMetricsEnabled(true)
	numbers := map[string]int64{}
	for _, name := range []string{"memtable", "memtables", "value_threshold", "value_log_file", "block_size", "compactors", "index_cache"} {
		number, err := config.Number(name)
		if err == nil && number > math.MaxInt64 {
			err = driver.Fail(driver.Failed, "option %s: too large", name)
		}
		if err != nil {
			return settings, err
		}
		numbers[name] = int64(number)
		opened.Effective(name, number)
	}
	conflicts, err := config.Flag("detect_conflicts")
	if err != nil {
		return settings, err
	}
	opened.Effective("detect_conflicts", conflicts)
	opened.Compression = config.Text("compression")
	kinds := map[string]options.CompressionType{"snappy": options.Snappy, "zstd": options.ZSTD, "none": options.None}
	kind, isKnown := kinds[opened.Compression]
	if !isKnown {
		return settings, driver.Fail(driver.Failed, "option compression: expected snappy, zstd or none, got `%s`", opened.Compression)
	}
	if config.CacheBytes != 0 {
		settings.BlockCacheSize = int64(config.CacheBytes)
	}
	opened.CacheBytes = uint64(settings.BlockCacheSize)
	settings.MemTableSize, settings.NumMemtables = numbers["memtable"], int(numbers["memtables"])
	settings.ValueThreshold, settings.ValueLogFileSize = numbers["value_threshold"], numbers["value_log_file"]
	settings.BlockSize, settings.NumCompactors = int(numbers["block_size"]), int(numbers["compactors"])
	settings.IndexCacheSize, settings.DetectConflicts, settings.Compression = numbers["index_cache"], conflicts, kind
	return settings, nil
}

// Session returns a session for one thread.
func (d *database) Session() (driver.Session, error) { return d, nil }

// End ends a session.
func (d *database) End() error { return nil }

// Close closes the database.
func (d *database) Close() error { return d.db.Close() }

// Maintain syncs, or moves everything to one level; the engine does not report whether it is compacting.
func (d *database) Maintain(work driver.Work) (bool, error) {
	switch work {
	case driver.Flush:
		if d.db.Opts().InMemory {
			return false, nil
		}
		return true, d.db.Sync()
	case driver.Compact:
		return true, d.db.Flatten(2)
	}
	return false, nil
}

// Stats reports statistics of the engine.
func (d *database) Stats(add func(name string, value any)) {
	if metrics := d.db.BlockCacheMetrics(); metrics != nil {
		add("block_cache_hits", metrics.Hits())
		add("block_cache_misses", metrics.Misses())
	}
	tree, values := d.db.Size()
	add("tree_bytes", tree)
	add("value_log_bytes", values)
	for _, level := range d.db.Levels() {
		if level.NumTables != 0 {
			add("files_at_level_"+string(rune('0'+level.Level)), level.NumTables)
		}
	}
}

func failed(err error) error {
	if errors.Is(err, badger.ErrEmptyKey) || errors.Is(err, badger.ErrInvalidKey) || errors.Is(err, badger.ErrTxnTooBig) {
		return driver.Fail(driver.TooLarge, "%v", err)
	}
	return err
}

// Engine returns the database itself, for the bench that compares the driver with a plain loop.
func (d *database) Engine() any { return d.db }

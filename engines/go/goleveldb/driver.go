// Package goleveldb drives goleveldb: LevelDB rewritten in Go.
package goleveldb

import (
	"strconv"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/filter"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/util"

	"kvdyno/driver"
)

// Driver is the driver of goleveldb.
type Driver struct{}

func init() { driver.Register(Driver{}) }

// Info describes the engine.
func (Driver) Info() driver.Info {
	return driver.Info{
		Name: "goleveldb", Engine: "log-structured merge tree: LevelDB rewritten in Go", Family: "lsm",
		Capabilities: driver.Ordered | driver.CanReverse | driver.CanPrefix | driver.Transaction | driver.TransactionReads |
			driver.CanDelete | driver.Overwrite,
		Levels: []driver.Level{driver.None, driver.Process, driver.Power},
		Options: []driver.Option{
			{Name: "write_buffer", Kind: "bytes", Default: "4194304", Help: "size of the memtable in bytes, before it becomes a file"},
			{Name: "block_size", Kind: "bytes", Default: "4096", Help: "size of a block in bytes, before compression"},
			{Name: "file_size", Kind: "bytes", Default: "2097152", Help: "size of a file in bytes at which the next one starts"},
			{Name: "open_files", Kind: "count", Default: "500", Help: "files that may be open at the same time"},
			{Name: "bloom_bits", Kind: "count", Default: "0", Help: "bits per key of a Bloom filter; 0 = no filter, as shipped"},
			{Name: "compression", Kind: "choice:snappy|none", Default: "snappy", Help: "compression of blocks"},
		},
	}
}

type database struct {
	db    *leveldb.DB
	write *opt.WriteOptions
}

// Open opens a database. Level none writes files without any sync, even where the engine's own structure needs one.
func (Driver) Open(config *driver.Config, opened *driver.Opened) (driver.Database, error) {
	level, err := config.Pick(driver.Process)
	if err != nil {
		return nil, err
	}
	options, err := readOptions(config, opened)
	if err != nil {
		return nil, err
	}
	options.NoSync = level == driver.None
	options.ErrorIfExist, options.ErrorIfMissing = config.Create, !config.Create
	db, err := leveldb.OpenFile(config.Path, options)
	if err != nil {
		return nil, err
	}
	opened.Level, opened.Version = level, driver.ModuleVersion("github.com/syndtr/goleveldb")
	opened.Effective("sync", level == driver.Power)
	opened.Effective("no_sync", options.NoSync)
	return &database{db, &opt.WriteOptions{Sync: level == driver.Power}}, nil
}

func readOptions(config *driver.Config, opened *driver.Opened) (*opt.Options, error) {
	numbers := map[string]int{}
	for _, name := range []string{"write_buffer", "block_size", "file_size", "open_files", "bloom_bits"} {
		number, err := config.Number(name)
		if err != nil {
			return nil, err
		}
		numbers[name] = int(number)
		opened.Effective(name, number)
	}
	opened.Compression = config.Text("compression")
	compression, isKnown := map[string]opt.Compression{"snappy": opt.SnappyCompression, "none": opt.NoCompression}[opened.Compression]
	if !isKnown {
		return nil, driver.Fail(driver.Failed, "option compression: expected snappy or none, got `%s`", opened.Compression)
	}
	opened.CacheBytes = config.CacheBytes
	if opened.CacheBytes == 0 {
		opened.CacheBytes = uint64(opt.DefaultBlockCacheCapacity)
	}
	options := &opt.Options{
		WriteBuffer:            numbers["write_buffer"],
		BlockSize:              numbers["block_size"],
		CompactionTableSize:    numbers["file_size"],
		OpenFilesCacheCapacity: numbers["open_files"],
		BlockCacheCapacity:     int(opened.CacheBytes),
		Compression:            compression,
	}
	if numbers["bloom_bits"] != 0 {
		options.Filter = filter.NewBloomFilter(numbers["bloom_bits"])
	}
	return options, nil
}

// Session returns a session for one thread.
func (d *database) Session() (driver.Session, error) { return d, nil }

// End ends a session.
func (d *database) End() error { return nil }

// Close closes the database.
func (d *database) Close() error { return d.db.Close() }

// Maintain flushes with a synced write, and compacts everything; the engine does not report whether it is compacting.
func (d *database) Maintain(work driver.Work) (bool, error) {
	switch work {
	case driver.Flush:
		// A transaction flushes the memtable into a file, which is synced, together with the rows of an earlier log.
		transaction, err := d.db.OpenTransaction()
		if err != nil {
			return true, err
		}
		return true, transaction.Commit()
	case driver.Compact:
		return true, d.db.CompactRange(util.Range{})
	}
	return false, nil
}

// Stats reports statistics of the engine.
func (d *database) Stats(add func(name string, value any)) {
	var stats leveldb.DBStats
	if d.db.Stats(&stats) != nil {
		return
	}
	add("block_cache_bytes", stats.BlockCacheSize)
	add("open_tables", stats.OpenedTablesCount)
	add("write_delays", stats.WriteDelayCount)
	add("write_delay_ns", stats.WriteDelayDuration.Nanoseconds())
	add("memtable_compactions", stats.MemComp)
	add("level0_compactions", stats.Level0Comp)
	add("other_compactions", stats.NonLevel0Comp+stats.SeekComp)
	for level, tables := range stats.LevelTablesCounts {
		add("files_at_level_"+strconv.Itoa(level), tables)
	}
}

type reader interface {
	Get(key []byte, ro *opt.ReadOptions) ([]byte, error)
}

func get(from reader, op *driver.Op) (driver.Status, error) {
	value, err := from.Get(op.Key, nil)
	if err == leveldb.ErrNotFound {
		return driver.NotFound, nil
	} else if err != nil {
		return driver.Failed, err
	}
	return op.Deliver(value), nil
}

// Get reads a value; the engine returns a copy.
func (d *database) Get(op *driver.Op) (driver.Status, error) { return get(d.db, op) }

// Put writes a value.
func (d *database) Put(op *driver.Op) (driver.Status, error) {
	return driver.OK, d.db.Put(op.Key, op.Value, d.write)
}

// Delete deletes a key.
func (d *database) Delete(op *driver.Op) (driver.Status, error) {
	return driver.OK, d.db.Delete(op.Key, d.write)
}

// Scan uses a separate iterator over the range that the scan may deliver.
func (d *database) Scan(op *driver.Op) (driver.Status, error) {
	from, to := op.Range()
	iterator := d.db.NewIterator(&util.Range{Start: from, Limit: to}, nil)
	defer iterator.Release()
	rows := op.Rows()
	first, next := iterator.First, iterator.Next
	if op.IsReverse() {
		first, next = iterator.Last, iterator.Prev
	}
	for is := first(); is && rows.Push(iterator.Key(), iterator.Value()); is = next() {
	}
	return rows.Status(), iterator.Error()
}

// Engine returns the database itself, for the bench that compares the driver with a plain loop.
func (d *database) Engine() any { return d.db }

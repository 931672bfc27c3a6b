// Open: converts options to RocksDB's own.

package main

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/linxGnu/grocksdb"

	"kvdyno/driver"
)

// The options of the engine called from C++, except its statistics.
var options = []driver.Option{
	{Name: "write_buffer", Kind: "bytes", Default: "67108864", Help: "size of a memtable in bytes, before it becomes a file"},
	{Name: "write_buffers", Kind: "count", Default: "2", Help: "maximum number of memtables, including the active one"},
	{Name: "block_size", Kind: "bytes", Default: "4096", Help: "size of a block in bytes, before compression"},
	{Name: "file_size", Kind: "bytes", Default: "67108864", Help: "size of a file of level 1 in bytes"},
	{Name: "level_size", Kind: "bytes", Default: "268435456", Help: "size of level 1 in bytes; each further level has ten times as much"},
	{Name: "open_files", Kind: "count", Default: "0", Help: "files that may be open at the same time; 0 = no limit, as shipped"},
	{Name: "bloom_bits", Kind: "count", Default: "0", Help: "bits per key of a Bloom filter; 0 = no filter, as shipped"},
	{Name: "cache_index", Kind: "flag", Default: "false", Help: "index and filter blocks also in the block cache, those of level 0 pinned"},
	{Name: "compression", Kind: "choice:snappy|none|lz4|lz4hc|zlib|bzip2|zstd", Default: "snappy", Help: "compression of blocks"},
	{Name: "compaction", Kind: "choice:level|universal", Default: "level", Help: "compaction style"},
	{Name: "background_threads", Kind: "count", Default: "0", Help: "threads for flushes and compactions; 0 = as shipped: two jobs"},
	{Name: "wal", Kind: "choice:auto|true|false", Default: "auto", Help: "the write-ahead log; auto: on unless the level is none"},
	{Name: "use_fsync", Kind: "flag", Default: "false", Help: "fsync instead of fdatasync"},
	{Name: "direct_reads", Kind: "flag", Default: "false", Help: "reads bypass the page cache"},
	{Name: "direct_writes", Kind: "flag", Default: "false", Help: "flushes and compactions bypass the page cache"},
}

const shippedCacheBytes = 8 << 20

var compressions = map[string]grocksdb.CompressionType{
	"none": grocksdb.NoCompression, "snappy": grocksdb.SnappyCompression, "zlib": grocksdb.ZLibCompression,
	"bzip2": grocksdb.Bz2Compression, "lz4": grocksdb.LZ4Compression, "lz4hc": grocksdb.LZ4HCCompression,
	"zstd": grocksdb.ZSTDCompression,
}

var compactions = map[string]grocksdb.CompactionStyle{
	"level": grocksdb.LevelCompactionStyle, "universal": grocksdb.UniversalCompactionStyle,
}

func choice[T any](config *driver.Config, name string, choices map[string]T) (T, error) {
	chosen, isKnown := choices[config.Text(name)]
	if !isKnown {
		return chosen, driver.Fail(driver.Failed, "option %s: unknown choice `%s`", name, config.Text(name))
	}
	return chosen, nil
}

// Open opens a database: a column family for each keyspace.
func (rocksdb) Open(config *driver.Config, opened *driver.Opened) (driver.Database, error) {
	made := &database{write: grocksdb.NewDefaultWriteOptions(), read: grocksdb.NewDefaultReadOptions(), options: grocksdb.NewDefaultOptions()}
	opened.CacheBytes = config.CacheBytes
	if opened.CacheBytes == 0 {
		opened.CacheBytes = shippedCacheBytes
	}
	made.cache = grocksdb.NewLRUCache(opened.CacheBytes)
	if err := made.open(config, opened); err != nil {
		made.free()
		return nil, failed(err)
	}
	opened.Version = version(config.Path)
	opened.Effective("grocksdb", driver.ModuleVersion("github.com/linxGnu/grocksdb"))
	opened.Effective("assertions", map[bool]string{true: "on", false: "off"}[hasAssertions()])
	return made, nil
}

func (d *database) open(config *driver.Config, opened *driver.Opened) error {
	if err := d.setLevel(config, opened); err != nil {
		return err
	}
	if err := d.set(config, opened); err != nil {
		return err
	}
	// RocksDB opens LevelDB's databases and converts them: never without a request.
	_, current := os.Stat(filepath.Join(config.Path, "CURRENT"))
	_, identity := os.Stat(filepath.Join(config.Path, "IDENTITY"))
	if current == nil && os.IsNotExist(identity) {
		return driver.Fail(driver.Failed, "the database was created by LevelDB")
	}
	names, each := []string{"default"}, []*grocksdb.Options{d.options}
	for keyspace := 1; keyspace < config.Keyspaces; keyspace++ {
		names, each = append(names, "k"+strconv.Itoa(keyspace)), append(each, d.options)
	}
	var err error
	d.db, d.columns, err = grocksdb.OpenDbColumnFamilies(d.options, config.Path, names, each)
	return err
}

func (d *database) setLevel(config *driver.Config, opened *driver.Opened) error {
	wal, err := choice(config, "wal", map[string]string{"auto": "auto", "true": "true", "false": "false"})
	if err != nil {
		return err
	}
	authors := driver.Process
	if wal == "false" {
		authors = driver.None
	}
	level, err := config.Pick(authors)
	if err != nil {
		return err
	}
	switch {
	case wal == "false" && level != driver.None:
		return driver.Fail(driver.Failed, "option wal: without the log only level none is possible")
	case wal == "true" && level == driver.None:
		level = driver.Process
	}
	d.hasLog = level != driver.None
	d.write.DisableWAL(!d.hasLog)
	d.write.SetSync(level == driver.Power)
	opened.Level = level
	opened.Effective("wal", d.hasLog)
	opened.Effective("sync", level == driver.Power)
	return nil
}

// set sets the engine's options and reports them.
func (d *database) set(config *driver.Config, opened *driver.Opened) error {
	numbers, flags := map[string]uint64{}, map[string]bool{}
	for _, option := range options {
		var err error
		switch option.Kind {
		case "bytes", "count":
			numbers[option.Name], err = config.Number(option.Name)
			if err == nil && option.Kind == "count" && numbers[option.Name] > math.MaxInt32 {
				err = driver.Fail(driver.Failed, "option %s: at most %d", option.Name, math.MaxInt32)
			}
		case "flag":
			flags[option.Name], err = config.Flag(option.Name)
		}
		if err != nil {
			return err
		}
		if option.Name != "wal" && option.Name != "compression" && option.Name != "background_threads" {
			opened.Effective(option.Name, config.Text(option.Name))
		}
	}
	compression, err1 := choice(config, "compression", compressions)
	compaction, err2 := choice(config, "compaction", compactions)
	if err1 != nil || err2 != nil {
		return errors.Join(err1, err2)
	}
	opened.Compression = config.Text("compression")
	o := d.options
	o.SetCreateIfMissing(config.Create)
	o.SetCreateIfMissingColumnFamilies(config.Create)
	o.SetErrorIfExists(config.Create)
	o.SetWriteBufferSize(numbers["write_buffer"])
	o.SetMaxWriteBufferNumber(int(numbers["write_buffers"]))
	o.SetTargetFileSizeBase(numbers["file_size"])
	o.SetMaxBytesForLevelBase(numbers["level_size"])
	o.SetMaxOpenFiles(int(numbers["open_files"]))
	if numbers["open_files"] == 0 {
		o.SetMaxOpenFiles(-1)
	}
	o.SetCompression(compression)
	o.SetCompactionStyle(compaction)
	if threads := numbers["background_threads"]; threads != 0 {
		o.IncreaseParallelism(int(threads))
	}
	o.SetUseFsync(flags["use_fsync"])
	o.SetUseDirectReads(flags["direct_reads"])
	o.SetUseDirectIOForFlushAndCompaction(flags["direct_writes"])
	o.SetUint64AddMergeOperator()
	opened.Effective("background_threads", o.GetMaxBackgroundJobs())
	o.SetBlockBasedTableFactory(d.table(numbers, flags["cache_index"]))
	return nil
}

func (d *database) table(numbers map[string]uint64, isIndexCached bool) *grocksdb.BlockBasedTableOptions {
	table := grocksdb.NewDefaultBlockBasedTableOptions()
	table.SetBlockCache(d.cache)
	table.SetBlockSize(int(numbers["block_size"]))
	table.SetCacheIndexAndFilterBlocks(isIndexCached)
	table.SetPinL0FilterAndIndexBlocksInCache(isIndexCached)
	if bits := numbers["bloom_bits"]; bits != 0 {
		table.SetFilterPolicy(grocksdb.NewBloomFilter(float64(bits)))
	}
	return table
}

// version returns the library's version, which it writes into the options file of a database; there is no call for it.
func version(path string) string {
	files, _ := filepath.Glob(filepath.Join(path, "OPTIONS-*"))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		for line := range strings.Lines(string(text)) {
			if number, is := strings.CutPrefix(strings.TrimSpace(line), "rocksdb_version="); is {
				return number
			}
		}
	}
	return ""
}

// The driver's declaration, and its database.

package main

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/linxGnu/grocksdb"

	"kvdyno/driver"
)

// rocksdb is the driver: RocksDB through cgo, to compare with the engine called from C++.
type rocksdb struct{}

// Info describes the engine.
func (rocksdb) Info() driver.Info {
	return driver.Info{
		Name: "grocksdb", Engine: "RocksDB called from Go, through cgo", Family: "lsm",
		Capabilities: driver.Ordered | driver.CanReverse | driver.CanPrefix | driver.MultiGet | driver.Transaction |
			driver.TransactionReads | driver.MergeAdd | driver.CanDelete | driver.Overwrite | driver.Keyspaces | driver.CanTouch,
		Levels:  []driver.Level{driver.None, driver.Process, driver.Power},
		Options: options,
	}
}

type database struct {
	db      *grocksdb.DB
	columns []*grocksdb.ColumnFamilyHandle // by keyspace
	cache   *grocksdb.Cache
	options *grocksdb.Options
	write   *grocksdb.WriteOptions
	read    *grocksdb.ReadOptions
	hasLog  bool
}

// Close closes the database. Without a log, RocksDB writes out the memtables, but ignores that it could not.
func (d *database) Close() (err error) {
	if !d.hasLog {
		err = d.flush()
	}
	for _, column := range d.columns {
		column.Destroy()
	}
	d.db.Close()
	d.free()
	return err
}

func (d *database) free() {
	d.read.Destroy()
	d.write.Destroy()
	d.options.Destroy()
	d.cache.Destroy()
}

// Maintain flushes, compacts everything, or waits until no flush and no compaction is running or pending.
func (d *database) Maintain(work driver.Work) (bool, error) {
	switch work {
	case driver.Flush:
		return true, d.flush()
	case driver.Compact:
		for _, column := range d.columns {
			d.db.CompactRangeCF(column, grocksdb.Range{})
		}
	case driver.Settle:
		return true, d.settle()
	}
	return true, nil
}

func (d *database) flush() error {
	how := grocksdb.NewDefaultFlushOptions()
	defer how.Destroy()
	for _, column := range d.columns {
		if err := d.db.FlushCF(column, how); err != nil {
			return failed(err)
		}
	}
	return nil
}

// settle waits until the engine is idle twice in a row: one job may start the next.
func (d *database) settle() error {
	for calm := 0; calm < 2; time.Sleep(2 * time.Millisecond) {
		calm++
		for _, column := range d.columns {
			if d.number(column, "background-errors") != 0 {
				return errors.New("settle: a flush or compaction has failed")
			}
			for _, name := range []string{"mem-table-flush-pending", "num-running-flushes", "compaction-pending", "num-running-compactions"} {
				if d.number(column, name) != 0 {
					calm = 0
				}
			}
		}
	}
	return nil
}

// number returns a number of the engine's statistics; 0 if there is none.
func (d *database) number(column *grocksdb.ColumnFamilyHandle, name string) uint64 {
	number, _ := strconv.ParseUint(d.db.GetPropertyCF("rocksdb."+name, column), 10, 64)
	return number
}

// Stats reports statistics of the engine.
func (d *database) Stats(add func(name string, value any)) {
	for name, property := range map[string]string{
		"memtable_bytes": "cur-size-all-mem-tables", "table_reader_bytes": "estimate-table-readers-mem",
		"live_file_bytes": "live-sst-files-size", "pending_compaction_bytes": "estimate-pending-compaction-bytes",
		"rows_estimated": "estimate-num-keys",
	} {
		sum := uint64(0)
		for _, column := range d.columns {
			sum += d.number(column, property)
		}
		add(name, sum)
	}
	add("block_cache_bytes", d.cache.GetUsage())
	add("block_cache_pinned_bytes", d.cache.GetPinnedUsage())
	for level := range 7 {
		files := uint64(0)
		for _, column := range d.columns {
			files += d.number(column, "num-files-at-level"+strconv.Itoa(level))
		}
		add("level_"+strconv.Itoa(level)+"_files", files)
	}
}

// failed gives an error, which is only a text, its status.
func failed(err error) error {
	if err != nil && strings.Contains(err.Error(), "No space left") {
		return driver.Fail(driver.Full, "%v", err)
	}
	return err
}

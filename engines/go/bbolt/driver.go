// Package bbolt drives bbolt: a copy-on-write B+tree in a memory map, in Go.
package bbolt

import (
	"errors"
	"path/filepath"
	"strconv"
	"syscall"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"kvdyno/driver"
)

// Driver of bbolt.
type Driver struct{}

// Info of it.
func (Driver) Info() driver.Info {
	return driver.Info{
		Name: "bbolt", Engine: "copy-on-write B+tree in a memory map, of etcd", Family: "b+tree",
		Capabilities: driver.Ordered | driver.CanReverse | driver.CanPrefix | driver.MultiGet | driver.Transaction |
			driver.TransactionReads | driver.CanDelete | driver.DeleteTells | driver.Overwrite | driver.CanNew |
			driver.Keyspaces | driver.SingleWriter | driver.CanTouch,
		Levels:     []driver.Level{driver.Process, driver.Power},
		KeySizeMax: bbolt.MaxKeySize,
		Options: []driver.Option{
			{Name: "freelist", Kind: "choice:array|map", Default: "array", Help: "how free pages are kept in memory"},
			{Name: "freelist_sync", Kind: "flag", Default: "true", Help: "write the list of free pages at each commit"},
			{Name: "page_size", Kind: "bytes", Default: "0", Help: "bytes of a page; 0 = the system's"},
			{Name: "fill_percent", Kind: "count", Default: "50", Help: "how full a split leaves a page, 10 to 100"},
			{Name: "initial_map", Kind: "bytes", Default: "0", Help: "bytes of the map at open; 0 = as large as the file"},
		},
	}
}

type database struct {
	db          *bbolt.DB
	buckets     [][]byte
	fillPercent float64
}

// Open of a database: one file, a bucket for each keyspace.
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
	made := &database{db: db, fillPercent: float64(fillPercent) / 100}
	err = db.Update(func(tx *bbolt.Tx) error {
		for keyspace := range config.Keyspaces {
			name := []byte(strconv.Itoa(keyspace))
			made.buckets = append(made.buckets, name)
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	opened.Level, opened.Version, opened.Compression = level, driver.ModuleVersion("go.etcd.io/bbolt"), "none"
	opened.InForce("no_sync", options.NoSync)
	return made, nil
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
	for _, name := range []string{"freelist", "freelist_sync", "page_size", "fill_percent", "initial_map"} {
		opened.InForce(name, config.Text(name))
	}
	return &options, fillPercent, nil
}

// Session of a thread: it has no state, for a transaction does not outlive its op.
func (d *database) Session() (driver.Session, error) { return d, nil }

// End of a session.
func (d *database) End() error { return nil }

// Close of the database.
func (d *database) Close() error { return errors.Join(d.db.Sync(), d.db.Close()) }

// Maintain flushes; nothing runs in the background, and it compacts only into a copy.
func (d *database) Maintain(work driver.Work) (bool, error) {
	if work == driver.Flush {
		return true, d.db.Sync()
	}
	return work == driver.Settle, nil
}

// Stats of the engine.
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

func failed(err error) error {
	switch {
	case errors.Is(err, berrors.ErrKeyTooLarge), errors.Is(err, berrors.ErrValueTooLarge), errors.Is(err, berrors.ErrKeyRequired):
		return driver.Fail(driver.TooLarge, "%v", err)
	case errors.Is(err, syscall.ENOSPC):
		return driver.Fail(driver.Full, "%v", err)
	}
	return err
}

func (d *database) bucket(tx *bbolt.Tx, op *driver.Op) *bbolt.Bucket {
	bucket := tx.Bucket(d.buckets[op.Keyspace()])
	bucket.FillPercent = d.fillPercent
	return bucket
}

// apply runs one op in a transaction.
func (d *database) apply(tx *bbolt.Tx, op *driver.Op) (driver.Status, error) {
	bucket := d.bucket(tx, op)
	switch op.Kind() {
	case driver.Get:
		value := bucket.Get(op.Key)
		if value == nil {
			return driver.NotFound, nil
		}
		return op.Deliver(value), nil
	case driver.Put:
		if op.IsNew() && bucket.Get(op.Key) != nil {
			return driver.Exists, nil
		}
		return driver.OK, failed(bucket.Put(op.Key, op.Value))
	case driver.Delete:
		if bucket.Get(op.Key) == nil {
			return driver.NotFound, nil
		}
		return driver.OK, failed(bucket.Delete(op.Key))
	}
	return driver.Unsupported, driver.Fail(driver.Unsupported, "a transaction is of gets, puts and deletes only")
}

// Get of a key, in a read transaction of its own.
func (d *database) Get(op *driver.Op) (driver.Status, error) {
	tx, err := d.db.Begin(false)
	if err != nil {
		return driver.Failed, err
	}
	defer func() { _ = tx.Rollback() }() // never fails on a read transaction that is open
	return d.apply(tx, op)
}

// Put of a key, in a write transaction of its own.
func (d *database) Put(op *driver.Op) (driver.Status, error) { return d.write(op) }

// Delete of a key, in a write transaction of its own.
func (d *database) Delete(op *driver.Op) (driver.Status, error) { return d.write(op) }

// errNothing ends a transaction that has changed nothing without a commit.
var errNothing = errors.New("nothing has changed")

func (d *database) write(op *driver.Op) (status driver.Status, err error) {
	err = d.db.Update(func(tx *bbolt.Tx) error {
		var err error
		if status, err = d.apply(tx, op); err == nil && status != driver.OK {
			return errNothing
		}
		return err
	})
	if err == errNothing {
		err = nil
	}
	return status, failed(err)
}

// Group is one transaction; of gets only, one snapshot.
func (d *database) Group(ops []driver.Op, _ bool) (driver.Status, error) {
	isRead := true
	for i := range ops {
		isRead = isRead && ops[i].Kind() == driver.Get
	}
	body := func(tx *bbolt.Tx) error {
		for i := range ops {
			status, err := d.apply(tx, &ops[i])
			if err != nil {
				return err
			}
			ops[i].SetStatus(status)
			if status == driver.Short && !isRead {
				return errNothing // a short op in a group has had no effect
			}
		}
		return nil
	}
	if isRead {
		return driver.OK, d.db.View(body)
	}
	err := d.db.Update(body)
	if err == errNothing {
		return driver.Short, nil
	}
	return driver.OK, failed(err)
}

// Scan in a read transaction of its own.
func (d *database) Scan(op *driver.Op) (driver.Status, error) {
	tx, err := d.db.Begin(false)
	if err != nil {
		return driver.Failed, err
	}
	defer func() { _ = tx.Rollback() }()
	rows := op.Rows()
	cursor := d.bucket(tx, op).Cursor()
	key, value, next := start(cursor, op)
	for key != nil && rows.Push(key, value) {
		key, value = next()
	}
	return rows.Status(), nil
}

// start puts the cursor where the scan begins.
func start(cursor *bbolt.Cursor, op *driver.Op) (key, value []byte, next func() ([]byte, []byte)) {
	place := op.Place()
	if !op.IsReverse() {
		if len(place.Key) == 0 {
			key, value = cursor.First()
		} else {
			key, value = cursor.Seek(place.Key)
		}
		return key, value, cursor.Next
	}
	if len(place.Key) != 0 {
		key, value = cursor.Seek(place.Key)
	}
	if key == nil {
		key, value = cursor.Last()
	} else if place.IsBefore(key) {
		key, value = cursor.Prev()
	}
	return key, value, cursor.Prev
}

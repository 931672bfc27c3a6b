// Package tree runs ops on Bolt's interface, which is the same for bolt and bbolt except for their types.
package tree

import (
	"errors"
	"strconv"
	"strings"

	"kvdyno/driver"
)

// Cursor of a bucket.
type Cursor interface {
	First() (key, value []byte)
	Last() (key, value []byte)
	Next() (key, value []byte)
	Prev() (key, value []byte)
	Seek(seek []byte) (key, value []byte)
}

// Bucket of a transaction.
type Bucket[C Cursor] interface {
	Get(key []byte) []byte
	Put(key, value []byte) error
	Delete(key []byte) error
	Cursor() C
}

// Tx is a transaction.
type Tx[B any] interface {
	Bucket(name []byte) B
	CreateBucketIfNotExists(name []byte) (B, error)
	Rollback() error
}

// DB is an open file.
type DB[T any] interface {
	Begin(writable bool) (T, error)
	Update(call func(T) error) error
	View(call func(T) error) error
	Sync() error
	Close() error
}

// Capabilities of both.
const Capabilities = driver.Ordered | driver.CanReverse | driver.CanPrefix | driver.MultiGet | driver.Transaction |
	driver.TransactionReads | driver.CanDelete | driver.DeleteTells | driver.Overwrite | driver.CanNew |
	driver.Keyspaces | driver.SingleWriter | driver.CanTouch

// Database is the database and a session in one: a transaction does not outlive its op.
type Database[T Tx[B], B Bucket[C], C Cursor] struct {
	DB      DB[T]
	buckets [][]byte
	prepare func(bucket B)
}

// New creates the missing buckets, one for each keyspace; that of the first has the name `first`. `prepare` is called for each
// bucket that is used. The file is closed if that fails.
func New[T Tx[B], B Bucket[C], C Cursor](db DB[T], keyspaces int, first string, prepare func(bucket B)) (*Database[T, B, C], error) {
	d := &Database[T, B, C]{DB: db, prepare: prepare}
	err := db.Update(func(tx T) error {
		for keyspace := range keyspaces {
			name := []byte(strconv.Itoa(keyspace))
			if keyspace == 0 {
				name = []byte(first)
			} else if string(name) == first {
				return driver.Fail(driver.Failed, "option bucket: `%s` is the bucket of another keyspace", first)
			}
			d.buckets = append(d.buckets, name)
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return d, nil
}

// Session returns a session for one thread: it has no state, because a transaction does not outlive its op.
func (d *Database[T, B, C]) Session() (driver.Session, error) { return d, nil }

// End ends a session.
func (d *Database[T, B, C]) End() error { return nil }

// Close closes the database.
func (d *Database[T, B, C]) Close() error { return errors.Join(d.DB.Sync(), d.DB.Close()) }

// Maintain flushes; nothing runs in the background, and compaction can only write a copy.
func (d *Database[T, B, C]) Maintain(work driver.Work) (bool, error) {
	if work == driver.Flush {
		return true, d.DB.Sync()
	}
	return work == driver.Settle, nil
}

func failed(err error) error {
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "too large"), strings.Contains(err.Error(), "key required"):
		return driver.Fail(driver.TooLarge, "%v", err)
	}
	return err
}

func (d *Database[T, B, C]) bucket(tx T, op *driver.Op) B {
	bucket := tx.Bucket(d.buckets[op.Keyspace()])
	d.prepare(bucket)
	return bucket
}

// apply runs one op in a transaction.
func (d *Database[T, B, C]) apply(tx T, op *driver.Op) (driver.Status, error) {
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
	return driver.Unsupported, driver.Fail(driver.Unsupported, "a transaction may have only gets, puts and deletes")
}

// Get reads a value, in a separate read transaction.
func (d *Database[T, B, C]) Get(op *driver.Op) (driver.Status, error) {
	tx, err := d.DB.Begin(false)
	if err != nil {
		return driver.Failed, err
	}
	defer func() { _ = tx.Rollback() }() // never fails on an open read transaction
	return d.apply(tx, op)
}

// Put writes a value, in a separate write transaction.
func (d *Database[T, B, C]) Put(op *driver.Op) (driver.Status, error) { return d.write(op) }

// Delete deletes a key, in a separate write transaction.
func (d *Database[T, B, C]) Delete(op *driver.Op) (driver.Status, error) { return d.write(op) }

// errNothing ends a transaction without a change, and without a commit.
var errNothing = errors.New("nothing has changed")

func (d *Database[T, B, C]) write(op *driver.Op) (status driver.Status, err error) {
	err = d.DB.Update(func(tx T) error {
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

// Group is one transaction; gets alone read one snapshot.
func (d *Database[T, B, C]) Group(ops []driver.Op, _ bool) (driver.Status, error) {
	isRead := true
	for i := range ops {
		isRead = isRead && ops[i].Kind() == driver.Get
	}
	body := func(tx T) error {
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
		return driver.OK, d.DB.View(body)
	}
	err := d.DB.Update(body)
	if err == errNothing {
		return driver.Short, nil
	}
	return driver.OK, failed(err)
}

// Scan in a separate read transaction.
func (d *Database[T, B, C]) Scan(op *driver.Op) (driver.Status, error) {
	tx, err := d.DB.Begin(false)
	if err != nil {
		return driver.Failed, err
	}
	defer func() { _ = tx.Rollback() }()
	rows := op.Rows()
	cursor := d.bucket(tx, op).Cursor()
	key, value := start(cursor, op)
	if op.IsReverse() {
		for key != nil && rows.Push(key, value) {
			key, value = cursor.Prev()
		}
		return rows.Status(), nil
	}
	for key != nil && rows.Push(key, value) {
		key, value = cursor.Next()
	}
	return rows.Status(), nil
}

// start moves the cursor to the start of the scan.
func start(cursor Cursor, op *driver.Op) (key, value []byte) {
	place := op.Place()
	if !op.IsReverse() {
		if len(place.Key) == 0 {
			return cursor.First()
		}
		return cursor.Seek(place.Key)
	}
	if len(place.Key) != 0 {
		key, value = cursor.Seek(place.Key)
	}
	if key == nil {
		key, value = cursor.Last()
	} else if place.IsBefore(key) {
		key, value = cursor.Prev()
	}
	return key, value
}

// Ops, each in a separate transaction, and groups.

package nutsdb

import (
	"errors"

	"github.com/nutsdb/nutsdb"

	"kvdyno/driver"
)

func (d *database) apply(tx *nutsdb.Tx, op *driver.Op) (driver.Status, error) {
	bucket := d.buckets[op.Keyspace()]
	switch op.Kind() {
	case driver.Get:
		value, err := tx.Get(bucket, op.Key)
		if err == nutsdb.ErrKeyNotFound {
			return driver.NotFound, nil
		} else if err != nil {
			return driver.Failed, err
		}
		return op.Deliver(value), nil
	case driver.Put:
		if op.IsNew() {
			// The engine's PutIfNotExists does not report whether it stored the row.
			is, err := tx.Has(bucket, op.Key)
			if is {
				return driver.Exists, nil
			} else if err != nil && err != nutsdb.ErrKeyNotFound && err != nutsdb.ErrBucketNotExist {
				return driver.Failed, err
			}
		}
		return driver.OK, tx.Put(bucket, op.Key, op.Value, nutsdb.Persistent)
	case driver.Delete:
		err := tx.Delete(bucket, op.Key)
		if err == nutsdb.ErrKeyNotFound {
			return driver.NotFound, nil
		}
		return driver.OK, err
	}
	return driver.Unsupported, driver.Fail(driver.Unsupported, "a transaction may have only gets, puts and deletes")
}

// one runs an op in a separate transaction.
func (d *database) one(op *driver.Op) (driver.Status, error) {
	isWrite := op.Kind() != driver.Get
	tx, err := d.db.Begin(isWrite)
	if err != nil {
		return driver.Failed, err
	}
	status, err := d.apply(tx, op)
	if err != nil || !isWrite {
		return status, errors.Join(failed(err), tx.Rollback())
	}
	return status, failed(tx.Commit())
}

// Get reads a value.
func (d *database) Get(op *driver.Op) (driver.Status, error) { return d.one(op) }

// Put writes a value.
func (d *database) Put(op *driver.Op) (driver.Status, error) { return d.one(op) }

// Delete deletes a key.
func (d *database) Delete(op *driver.Op) (driver.Status, error) { return d.one(op) }

// Group is one transaction; gets alone are a read transaction. It is rolled back on an error or a value that does not
// fit.
func (d *database) Group(ops []driver.Op, _ bool) (driver.Status, error) {
	isWrite := false
	for i := range ops {
		isWrite = isWrite || ops[i].Kind() != driver.Get
	}
	tx, err := d.db.Begin(isWrite)
	if err != nil {
		return driver.Failed, err
	}
	for i := range ops {
		status, err := d.apply(tx, &ops[i])
		if err != nil {
			return driver.Failed, errors.Join(failed(err), tx.Rollback())
		} else if status == driver.Short && isWrite {
			return driver.Short, tx.Rollback()
		}
		ops[i].SetStatus(status)
	}
	if !isWrite {
		return driver.OK, tx.Rollback()
	}
	return driver.OK, failed(tx.Commit())
}

// Scan runs in a separate transaction.
func (d *database) Scan(op *driver.Op) (driver.Status, error) {
	tx, err := d.db.Begin(false)
	if err != nil {
		return driver.Failed, err
	}
	iterator := nutsdb.NewIterator(tx, d.buckets[op.Keyspace()], nutsdb.IteratorOptions{Reverse: op.IsReverse()})
	place := op.Place()
	rows := op.Rows()
	if len(place.Key) != 0 && !iterator.Seek(place.Key) && op.IsReverse() {
		iterator.Rewind() // it was past the last row
	}
	for ; err == nil && iterator.Valid(); iterator.Next() {
		key := iterator.Key()
		if op.IsReverse() && len(place.Key) != 0 && place.IsBefore(key) {
			continue // it was moved to the first key at or above the place
		}
		var value []byte
		if !op.KeysOnly() {
			value, err = iterator.Value()
		}
		if err != nil || !rows.Push(key, value) {
			break
		}
	}
	iterator.Release()
	return rows.Status(), errors.Join(err, tx.Rollback())
}

// Ops through batches, groups, and scans.

package rosedb

import (
	"errors"
	"time"

	"github.com/rosedblabs/rosedb/v2"

	"kvdyno/driver"
)

// one runs a write in a separate batch: the only way to sync it (README.md). A put that finds its key has an answer
// and not an error, and the batch, which is empty, writes nothing.
func (d *database) one(op *driver.Op) (driver.Status, error) {
	batch := d.db.NewBatch(rosedb.BatchOptions{Sync: d.isSync})
	status, err := apply(batch, op)
	if err != nil {
		return status, errors.Join(failed(err), batch.Rollback())
	}
	return status, failed(batch.Commit())
}

// Get reads a value.
func (d *database) Get(op *driver.Op) (driver.Status, error) {
	value, err := d.db.Get(op.Key)
	return delivered(op, value, err)
}

// Put writes a value.
func (d *database) Put(op *driver.Op) (driver.Status, error) {
	switch {
	case d.isSync || op.IsNew():
		return d.one(op)
	case op.SecondsToLive() != 0:
		return driver.OK, failed(d.db.PutWithTTL(op.Key, op.Value, time.Duration(op.SecondsToLive())*time.Second))
	}
	return driver.OK, failed(d.db.Put(op.Key, op.Value))
}

// Delete deletes a key.
func (d *database) Delete(op *driver.Op) (driver.Status, error) {
	if d.isSync {
		return d.one(op)
	}
	return driver.OK, failed(d.db.Delete(op.Key))
}

// Group is one batch, which blocks all others; gets alone are a read batch. It is rolled back on an error or a value
// that does not fit.
func (d *database) Group(ops []driver.Op, _ bool) (driver.Status, error) {
	isRead := true
	for i := range ops {
		isRead = isRead && ops[i].Kind() == driver.Get
	}
	batch := d.db.NewBatch(rosedb.BatchOptions{Sync: d.isSync, ReadOnly: isRead})
	for i := range ops {
		status, err := apply(batch, &ops[i])
		if err != nil {
			return driver.Failed, errors.Join(failed(err), batch.Rollback())
		} else if status == driver.Short && !isRead {
			return driver.Short, batch.Rollback()
		}
		ops[i].SetStatus(status)
	}
	return driver.OK, failed(batch.Commit())
}

// Scan reads the index; a row's value is read from the log, even if only the key is requested.
func (d *database) Scan(op *driver.Op) (driver.Status, error) {
	rows := op.Rows()
	place := op.Place()
	push := func(key, value []byte) (bool, error) {
		isAbove := op.IsReverse() && len(place.Key) != 0 && place.IsBefore(key)
		return isAbove || rows.Push(key, value), nil
	}
	switch {
	case op.IsReverse() && len(place.Key) == 0:
		d.db.Descend(push)
	case op.IsReverse():
		d.db.DescendLessOrEqual(place.Key, push)
	case len(place.Key) == 0:
		d.db.Ascend(push)
	default:
		d.db.AscendGreaterOrEqual(place.Key, push)
	}
	return rows.Status(), nil
}

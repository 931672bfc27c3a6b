// Groups of writes as batches.

package lotusdb

import (
	"errors"

	"github.com/lotusdblabs/lotusdb/v2"

	"kvdyno/driver"
)

// Group is one batch, which blocks all others; gets alone are a read batch.
func (d *database) Group(ops []driver.Op, _ bool) (driver.Status, error) {
	isRead, bytes := true, 0
	for i := range ops {
		if ops[i].Kind() == driver.Get {
			continue
		}
		isRead = false
		bytes += size(&ops[i])
		if err := d.check(&ops[i]); err != nil {
			return driver.Failed, err
		}
	}
	switch {
	case isRead:
		return d.read(ops)
	case bytes > d.mostBytes:
		return driver.Failed, d.tooLarge(bytes)
	}
	return try(&ops[0], func() (driver.Status, error) { return d.transact(ops) })
}

func (d *database) read(ops []driver.Op) (driver.Status, error) {
	batch := d.db.NewBatch(lotusdb.BatchOptions{ReadOnly: true})
	for i := range ops {
		value, err := batch.Get(ops[i].Key)
		status, err := delivered(&ops[i], value, err)
		if err != nil {
			return driver.Failed, errors.Join(err, batch.Commit())
		}
		ops[i].SetStatus(status)
	}
	return driver.OK, batch.Commit()
}

// transact runs ops in one batch. Writes in a batch cannot be undone, and it ends with a commit, so the writes are
// added to it last, when all ops have their answer.
func (d *database) transact(ops []driver.Op) (driver.Status, error) {
	batch := d.db.NewBatch(d.options)
	last := map[string]*driver.Op{}
	for i := range ops {
		status, err := answer(batch, last, &ops[i])
		if err != nil || status == driver.Short {
			return status, errors.Join(err, batch.Commit())
		}
		ops[i].SetStatus(status)
	}
	for _, op := range last {
		if err := stage(batch, op); err != nil {
			return driver.Failed, errors.Join(err, batch.Commit())
		}
	}
	return driver.OK, batch.Commit()
}

// answer answers an op, taking into account the group's last write to its key.
func answer(batch *lotusdb.Batch, last map[string]*driver.Op, op *driver.Op) (driver.Status, error) {
	earlier := last[string(op.Key)]
	isThere := earlier != nil && earlier.Kind() == driver.Put
	switch {
	case op.Kind() == driver.Get && isThere:
		return op.Deliver(earlier.Value), nil
	case op.Kind() == driver.Get && earlier != nil:
		return driver.NotFound, nil
	case op.Kind() == driver.Get:
		value, err := batch.Get(op.Key)
		return delivered(op, value, err)
	case op.IsNew() && earlier == nil:
		is, err := batch.Exist(op.Key)
		if is || err != nil {
			return driver.Exists, err
		}
	case op.IsNew() && isThere:
		return driver.Exists, nil
	}
	last[string(op.Key)] = op
	return driver.OK, nil
}

// Scan uses an iterator, which blocks all others.
func (d *database) Scan(op *driver.Op) (driver.Status, error) {
	iterator, err := d.db.NewIterator(lotusdb.IteratorOptions{Reverse: op.IsReverse()})
	if err != nil {
		return driver.Failed, err
	}
	place := op.Place()
	rows := op.Rows()
	if len(place.Key) != 0 {
		iterator.Seek(place.Key)
	}
	for ; iterator.Valid(); iterator.Next() {
		key := iterator.Key()
		if op.IsReverse() && len(place.Key) != 0 && place.IsBefore(key) {
			continue
		}
		var value []byte
		if !op.KeysOnly() {
			value = iterator.Value()
		}
		if !rows.Push(key, value) {
			break
		}
	}
	return rows.Status(), iterator.Close()
}

package lotusdb

import (
	"errors"
	"time"

	"github.com/lotusdblabs/lotusdb/v2"

	"kvdyno/driver"
)

// mostTries at a write for which there is no room in memory, some milliseconds each.
const mostTries = 20_000

// try writes until there is room.
func try(op *driver.Op, write func() (driver.Status, error)) (driver.Status, error) {
	for range mostTries {
		status, err := write()
		if !errors.Is(err, lotusdb.ErrWaitMemtableSpaceTimeOut) {
			return status, failed(err)
		}
		op.Retried()
		time.Sleep(time.Millisecond)
	}
	return driver.Failed, lotusdb.ErrWaitMemtableSpaceTimeOut
}

// size of a write in a memory table, at most.
func size(op *driver.Op) int { return len(op.Key) + len(op.Value) + 200 }

func (d *database) tooLarge(bytes int) error {
	return driver.Fail(driver.TooLarge, "writes of %d bytes do not fit into a memory table; see option memtable", bytes)
}

// check refuses what the engine takes and then answers wrong, or dies of.
func (d *database) check(op *driver.Op) error {
	switch op.Kind() {
	case driver.Put:
		if len(op.Value) == 0 {
			return driver.Fail(driver.TooLarge, "an empty value is taken for none as long as it is in memory")
		}
	case driver.Delete:
	default:
		return driver.Fail(driver.Unsupported, "a transaction is of gets, puts and deletes only")
	}
	if len(op.Key) == 0 {
		return driver.Fail(driver.TooLarge, "%v", lotusdb.ErrKeyIsEmpty)
	} else if size(op) > d.mostBytes {
		return d.tooLarge(size(op))
	}
	return nil
}

func delivered(op *driver.Op, value []byte, err error) (driver.Status, error) {
	if err == lotusdb.ErrKeyNotFound {
		return driver.NotFound, nil
	} else if err != nil {
		return driver.Failed, failed(err)
	}
	return op.Deliver(value), nil
}

// Get of a key.
func (d *database) Get(op *driver.Op) (driver.Status, error) {
	value, err := d.db.Get(op.Key)
	return delivered(op, value, err)
}

// Put of a key.
func (d *database) Put(op *driver.Op) (driver.Status, error) { return d.write(op) }

// Delete of a key.
func (d *database) Delete(op *driver.Op) (driver.Status, error) { return d.write(op) }

func stage(batch *lotusdb.Batch, op *driver.Op) error {
	if op.Kind() == driver.Delete {
		return batch.Delete(op.Key)
	}
	return batch.Put(op.Key, op.Value)
}

// write an op in a batch of its own: PutWithOptions and DeleteWithOptions forget their options.
func (d *database) write(op *driver.Op) (driver.Status, error) {
	if err := d.check(op); err != nil {
		return driver.Failed, err
	}
	return try(op, func() (driver.Status, error) {
		batch := d.db.NewBatch(d.options)
		if op.IsNew() {
			if is, err := batch.Exist(op.Key); is || err != nil {
				return driver.Exists, errors.Join(err, batch.Commit())
			}
		}
		return driver.OK, errors.Join(stage(batch, op), batch.Commit())
	})
}

// Group is one batch, which keeps all others out; of gets only, one that reads.
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

// transact runs ops in one batch. What was put into a batch cannot be taken out again, and it ends with a commit: so the
// writes are put into it last, when all ops have their answer.
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

// answer of an op, with regard to the group's last write to its key.
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

// Scan with an iterator, which keeps all others out.
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

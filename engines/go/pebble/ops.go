// Ops, groups as batches, scans, and the merge of counters.

package pebble

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"kvdyno/driver"
)

func get(reader pebble.Reader, op *driver.Op) (driver.Status, error) {
	value, closer, err := reader.Get(op.Key)
	if err == pebble.ErrNotFound {
		return driver.NotFound, nil
	} else if err != nil {
		return driver.Failed, err
	}
	return op.Deliver(value), closer.Close()
}

// Get reads a value.
func (d *database) Get(op *driver.Op) (driver.Status, error) { return get(d.db, op) }

// Put writes a value.
func (d *database) Put(op *driver.Op) (driver.Status, error) {
	return driver.OK, d.db.Set(op.Key, op.Value, d.write)
}

// Delete deletes a key.
func (d *database) Delete(op *driver.Op) (driver.Status, error) {
	return driver.OK, d.db.Delete(op.Key, d.write)
}

// Merge adds to a counter.
func (d *database) Merge(op *driver.Op) (driver.Status, error) {
	return driver.OK, d.db.Merge(op.Key, op.Value, d.write)
}

// Group of writes is one atomic batch; with gets, which see its writes, it is an indexed batch. Gets alone have no
// special call: they run one by one, at one snapshot if atomic, or are distributed over goroutines.
func (d *database) Group(ops []driver.Op, isAtomic bool) (driver.Status, error) {
	gets := 0
	for i := range ops {
		if ops[i].Kind() == driver.Get {
			gets++
		}
	}
	if gets == len(ops) && d.readers > 0 && gets >= sharedGets {
		return d.shared(ops)
	} else if gets == len(ops) && isAtomic {
		return d.snapshot(ops)
	} else if gets == len(ops) {
		return driver.NotRun, nil
	}
	batch := d.db.NewBatch()
	if gets != 0 {
		batch = d.db.NewIndexedBatch()
	}
	status, err := fill(batch, ops)
	if err == nil && status == driver.OK {
		err = batch.Commit(d.write)
	}
	return status, errors.Join(err, batch.Close())
}

// snapshot reads all of a group at one point in time.
func (d *database) snapshot(ops []driver.Op) (driver.Status, error) {
	snapshot := d.db.NewSnapshot()
	err := getAll(snapshot, ops)
	return driver.OK, errors.Join(err, snapshot.Close())
}

func getAll(snapshot *pebble.Snapshot, ops []driver.Op) error {
	for i := range ops {
		status, err := get(snapshot, &ops[i])
		if err != nil {
			return err
		}
		ops[i].SetStatus(status)
	}
	return nil
}

func fill(batch *pebble.Batch, ops []driver.Op) (driver.Status, error) {
	for i := range ops {
		op := &ops[i]
		status, err := driver.OK, error(nil)
		switch op.Kind() {
		case driver.Get:
			status, err = get(batch, op)
		case driver.Put:
			err = batch.Set(op.Key, op.Value, nil)
		case driver.Delete:
			err = batch.Delete(op.Key, nil)
		case driver.Merge:
			err = batch.Merge(op.Key, op.Value, nil)
		default:
			err = driver.Fail(driver.Unsupported, "a transaction may not have scans")
		}
		if err != nil || status == driver.Short {
			return status, err
		}
		op.SetStatus(status)
	}
	return driver.OK, nil
}

// Scan uses a separate iterator over the range that the scan may deliver.
func (d *database) Scan(op *driver.Op) (driver.Status, error) {
	from, to := op.Range()
	iterator, err := d.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return driver.Failed, err
	}
	rows := op.Rows()
	first, next := iterator.First, iterator.Next
	if op.IsReverse() {
		first, next = iterator.Last, iterator.Prev
	}
	for is := first(); is && rows.Push(iterator.Key(), iterator.Value()); is = next() {
	}
	return rows.Status(), errors.Join(iterator.Error(), iterator.Close())
}

const counterSize = 8

// adder adds little-endian numbers; a value that is not a counter counts as 0.
var adder = pebble.Merger{
	Name: "kvdyno.add",
	Merge: func(_, value []byte) (pebble.ValueMerger, error) {
		sum := sum(number(value))
		return &sum, nil
	},
}

type sum uint64

func number(value []byte) uint64 {
	if len(value) != counterSize {
		return 0
	}
	return binary.LittleEndian.Uint64(value)
}

func (s *sum) MergeNewer(value []byte) error { *s += sum(number(value)); return nil }
func (s *sum) MergeOlder(value []byte) error { *s += sum(number(value)); return nil }
func (s *sum) Finish(bool) ([]byte, io.Closer, error) {
	return binary.LittleEndian.AppendUint64(nil, uint64(*s)), nil, nil
}

// Engine returns the database itself, for the bench that compares the driver with a plain loop.
func (d *database) Engine() any { return d.db }

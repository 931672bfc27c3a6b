// Ops outside groups, and scans.

package lotusdb

import (
	"errors"
	"time"

	"github.com/lotusdblabs/lotusdb/v2"

	"kvdyno/driver"
)

// mostTries is the number of attempts of a write for which there is no room in memory, some milliseconds each.
const mostTries = 20_000

// try retries a write until there is room.
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

// size is the maximum size of a write in a memory table.
func size(op *driver.Op) int { return len(op.Key) + len(op.Value) + rowBytes }

// rowBytes is what a row takes in a memory table besides its key and value.
const rowBytes = 200

func (d *database) tooLarge(bytes int) error {
	return driver.Fail(driver.TooLarge, "writes of %d bytes do not fit into a memory table; see option memtable", bytes)
}

// check refuses what the engine would accept but answer wrongly, or crash on.
func (d *database) check(op *driver.Op) error {
	switch op.Kind() {
	case driver.Put:
		if len(op.Value) == 0 {
			return driver.Fail(driver.TooLarge, "empty values are not supported: the engine treats them as absent while they are in memory")
		}
	case driver.Delete:
	default:
		return driver.Fail(driver.Unsupported, "a transaction may have only gets, puts and deletes")
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

// Get reads a value.
func (d *database) Get(op *driver.Op) (driver.Status, error) {
	value, err := d.db.Get(op.Key)
	return delivered(op, value, err)
}

// Put writes a value.
func (d *database) Put(op *driver.Op) (driver.Status, error) { return d.write(op) }

// Delete deletes a key.
func (d *database) Delete(op *driver.Op) (driver.Status, error) { return d.write(op) }

func stage(batch *lotusdb.Batch, op *driver.Op) error {
	if op.Kind() == driver.Delete {
		return batch.Delete(op.Key)
	}
	return batch.Put(op.Key, op.Value)
}

// write runs an op in a separate batch: PutWithOptions and DeleteWithOptions ignore their options.
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

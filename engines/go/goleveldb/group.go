// Groups: batches, snapshots and transactions.

package goleveldb

import (
	"github.com/syndtr/goleveldb/leveldb"

	"kvdyno/driver"
)

// Group of writes is one atomic batch; gets alone read a snapshot if they are a transaction; a group of both is one of
// the engine's transactions, which block all other writers.
func (d *database) Group(ops []driver.Op, isAtomic bool) (driver.Status, error) {
	gets := 0
	for i := range ops {
		if ops[i].Kind() == driver.Get {
			gets++
		}
	}
	switch {
	case gets == 0:
		return d.batch(ops)
	case gets < len(ops):
		return d.transaction(ops)
	case isAtomic:
		return d.snapshot(ops)
	}
	return driver.NotRun, nil
}

var errKind = driver.Fail(driver.Unsupported, "a transaction may have only gets, puts and deletes")

func (d *database) batch(ops []driver.Op) (driver.Status, error) {
	var batch leveldb.Batch
	for i := range ops {
		switch ops[i].Kind() {
		case driver.Put:
			batch.Put(ops[i].Key, ops[i].Value)
		case driver.Delete:
			batch.Delete(ops[i].Key)
		default:
			return driver.Unsupported, errKind
		}
		ops[i].SetStatus(driver.OK)
	}
	return driver.OK, d.db.Write(&batch, d.write)
}

func (d *database) snapshot(ops []driver.Op) (driver.Status, error) {
	snapshot, err := d.db.GetSnapshot()
	if err != nil {
		return driver.Failed, err
	}
	defer snapshot.Release()
	for i := range ops {
		status, err := get(snapshot, &ops[i])
		if err != nil {
			return driver.Failed, err
		}
		ops[i].SetStatus(status)
	}
	return driver.OK, nil
}

func (d *database) transaction(ops []driver.Op) (driver.Status, error) {
	transaction, err := d.db.OpenTransaction()
	if err != nil {
		return driver.Failed, err
	}
	for i := range ops {
		op := &ops[i]
		status := driver.OK
		switch op.Kind() {
		case driver.Get:
			status, err = get(transaction, op)
		case driver.Put:
			err = transaction.Put(op.Key, op.Value, d.write)
		case driver.Delete:
			err = transaction.Delete(op.Key, d.write)
		default:
			err = errKind
		}
		if err != nil || status == driver.Short {
			transaction.Discard()
			return status, err
		}
		op.SetStatus(status)
	}
	return driver.OK, transaction.Commit()
}

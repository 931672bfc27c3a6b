// Ops, each in a separate transaction, and groups.

package badger

import (
	"bytes"
	"errors"
	"time"

	"github.com/dgraph-io/badger/v4"

	"kvdyno/driver"
)

func get(txn *badger.Txn, op *driver.Op) (status driver.Status, err error) {
	item, err := txn.Get(op.Key)
	if err == badger.ErrKeyNotFound {
		return driver.NotFound, nil
	} else if err != nil {
		return driver.Failed, failed(err)
	}
	err = item.Value(func(value []byte) error {
		status = op.Deliver(value)
		return nil
	})
	return status, err
}

func (d *database) put(txn *badger.Txn, op *driver.Op) (driver.Status, error) {
	if int64(len(op.Value)) > d.valueBytesMax {
		return driver.Failed, driver.Fail(driver.TooLarge, "a value has at most %d bytes", d.valueBytesMax)
	}
	if op.IsNew() {
		if _, err := txn.Get(op.Key); err == nil {
			return driver.Exists, nil
		} else if err != badger.ErrKeyNotFound {
			return driver.Failed, err
		}
	}
	entry := badger.NewEntry(op.Key, op.Value)
	if op.SecondsToLive() != 0 {
		entry = entry.WithTTL(time.Duration(op.SecondsToLive()) * time.Second)
	}
	return driver.OK, txn.SetEntry(entry)
}

func (d *database) apply(txn *badger.Txn, op *driver.Op) (driver.Status, error) {
	switch op.Kind() {
	case driver.Get:
		return get(txn, op)
	case driver.Put:
		return d.put(txn, op)
	case driver.Delete:
		return driver.OK, txn.Delete(op.Key)
	}
	return driver.Unsupported, driver.Fail(driver.Unsupported, "a transaction may have only gets, puts and deletes")
}

// transact runs ops in one transaction, and retries it if another one has changed what they read.
func (d *database) transact(ops []driver.Op) (driver.Status, error) {
	for {
		status, err := d.attempt(ops)
		if !errors.Is(err, badger.ErrConflict) {
			return status, failed(err)
		}
		ops[0].Retried()
	}
}

// attempt stores the answer of each op in it; driver.Short for all if one value does not fit.
func (d *database) attempt(ops []driver.Op) (driver.Status, error) {
	txn := d.db.NewTransaction(true)
	defer txn.Discard()
	for i := range ops {
		status, err := d.apply(txn, &ops[i])
		if err != nil {
			return driver.Failed, err
		} else if status == driver.Short {
			return driver.Short, nil
		}
		ops[i].SetStatus(status)
	}
	return driver.OK, txn.Commit()
}

func (d *database) write(op *driver.Op) (driver.Status, error) {
	for {
		txn := d.db.NewTransaction(true)
		status, err := d.apply(txn, op)
		if err == nil && status == driver.OK {
			err = txn.Commit()
		}
		txn.Discard()
		if !errors.Is(err, badger.ErrConflict) {
			return status, failed(err)
		}
		op.Retried()
	}
}

// Get reads a value, in a separate read transaction.
func (d *database) Get(op *driver.Op) (driver.Status, error) {
	txn := d.db.NewTransaction(false)
	defer txn.Discard()
	return get(txn, op)
}

// Put writes a value, in a separate transaction.
func (d *database) Put(op *driver.Op) (driver.Status, error) { return d.write(op) }

// Delete deletes a key, in a separate transaction.
func (d *database) Delete(op *driver.Op) (driver.Status, error) { return d.write(op) }

// Group of gets is one read transaction; plain writes that need not be atomic are a write batch, which makes
// transactions as large as allowed; any other group is one transaction.
func (d *database) Group(ops []driver.Op, isAtomic bool) (driver.Status, error) {
	gets, isPlain := 0, true
	for i := range ops {
		kind := ops[i].Kind()
		if kind == driver.Get {
			gets++
		}
		isPlain = isPlain && (kind == driver.Delete || (kind == driver.Put && !ops[i].IsNew() && ops[i].SecondsToLive() == 0))
	}
	switch {
	case gets == len(ops):
		return d.read(ops)
	case isPlain && !isAtomic:
		return d.batch(ops)
	}
	return d.transact(ops)
}

func (d *database) read(ops []driver.Op) (driver.Status, error) {
	txn := d.db.NewTransaction(false)
	defer txn.Discard()
	for i := range ops {
		status, err := get(txn, &ops[i])
		if err != nil {
			return driver.Failed, err
		}
		ops[i].SetStatus(status)
	}
	return driver.OK, nil
}

func (d *database) batch(ops []driver.Op) (driver.Status, error) {
	batch := d.db.NewWriteBatch()
	defer batch.Cancel()
	for i := range ops {
		var err error
		if ops[i].Kind() == driver.Put {
			err = batch.Set(ops[i].Key, ops[i].Value)
		} else {
			err = batch.Delete(ops[i].Key)
		}
		if err != nil {
			return driver.Failed, failed(err)
		}
		ops[i].SetStatus(driver.OK)
	}
	return driver.OK, failed(batch.Flush())
}

// Scan in a separate read transaction.
func (d *database) Scan(op *driver.Op) (driver.Status, error) {
	txn := d.db.NewTransaction(false)
	defer txn.Discard()
	how := badger.DefaultIteratorOptions
	how.Reverse, how.PrefetchValues = op.IsReverse(), false
	if op.IsPrefix() && !op.IsReverse() {
		how.Prefix = op.Value
	}
	iterator := txn.NewIterator(how)
	defer iterator.Close()
	place := op.Place()
	rows := op.Rows()
	if len(place.Key) == 0 {
		iterator.Rewind()
	} else {
		iterator.Seek(place.Key)
	}
	if place.Exclusive && iterator.Valid() && bytes.Equal(iterator.Item().Key(), place.Key) {
		iterator.Next()
	}
	for more := true; more && iterator.Valid(); iterator.Next() {
		item := iterator.Item()
		if op.KeysOnly() {
			more = rows.Push(item.Key(), nil)
			continue
		}
		err := item.Value(func(value []byte) error {
			more = rows.Push(item.Key(), value)
			return nil
		})
		if err != nil {
			return driver.Failed, err
		}
	}
	return rows.Status(), nil
}

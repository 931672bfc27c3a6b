// Ops, each in a separate transaction, and groups.

package buntdb

import (
	"errors"
	"time"

	"github.com/tidwall/buntdb"

	"kvdyno/driver"
)

func apply(tx *buntdb.Tx, op *driver.Op) (driver.Status, error) {
	switch op.Kind() {
	case driver.Get:
		value, err := tx.Get(string(op.Key))
		if err == buntdb.ErrNotFound {
			return driver.NotFound, nil
		} else if err != nil {
			return driver.Failed, err
		}
		return op.DeliverString(value), nil
	case driver.Put:
		key := string(op.Key)
		if op.IsNew() {
			if _, err := tx.Get(key); err == nil {
				return driver.Exists, nil
			}
		}
		var options *buntdb.SetOptions
		if op.SecondsToLive() != 0 {
			options = &buntdb.SetOptions{Expires: true, TTL: time.Duration(op.SecondsToLive()) * time.Second}
		}
		_, _, err := tx.Set(key, string(op.Value), options)
		return driver.OK, err
	case driver.Delete:
		_, err := tx.Delete(string(op.Key))
		if err == buntdb.ErrNotFound {
			return driver.NotFound, nil
		}
		return driver.OK, err
	}
	return driver.Unsupported, driver.Fail(driver.Unsupported, "a transaction may have only gets, puts and deletes")
}

// errUndo ends a transaction without an effect; it is not a failure.
var errUndo = errors.New("undo")

func (d *database) write(op *driver.Op) (status driver.Status, err error) {
	err = d.db.Update(func(tx *buntdb.Tx) error {
		var err error
		status, err = apply(tx, op)
		return err
	})
	return status, err
}

// Get reads a value.
func (d *database) Get(op *driver.Op) (status driver.Status, err error) {
	err = d.db.View(func(tx *buntdb.Tx) error {
		var err error
		status, err = apply(tx, op)
		return err
	})
	return status, err
}

// Put writes a value.
func (d *database) Put(op *driver.Op) (driver.Status, error) { return d.write(op) }

// Delete deletes a key.
func (d *database) Delete(op *driver.Op) (driver.Status, error) { return d.write(op) }

// Group is one transaction; gets alone are a read transaction.
func (d *database) Group(ops []driver.Op, _ bool) (driver.Status, error) {
	isRead := true
	for i := range ops {
		isRead = isRead && ops[i].Kind() == driver.Get
	}
	run := d.db.Update
	if isRead {
		run = d.db.View
	}
	err := run(func(tx *buntdb.Tx) error {
		for i := range ops {
			status, err := apply(tx, &ops[i])
			if err != nil {
				return err
			}
			ops[i].SetStatus(status)
			if status == driver.Short && !isRead {
				return errUndo // a short op in a group has had no effect
			}
		}
		return nil
	})
	if err == errUndo {
		return driver.Short, nil
	}
	return driver.OK, err
}

// Scan runs in a separate transaction.
func (d *database) Scan(op *driver.Op) (driver.Status, error) {
	rows := op.Rows()
	place := op.Place()
	push := func(key, value string) bool {
		return (place.Exclusive && key == string(place.Key)) || rows.PushStrings(key, value)
	}
	err := d.db.View(func(tx *buntdb.Tx) error {
		switch {
		case op.IsReverse() && len(place.Key) == 0:
			return tx.Descend("", push)
		case op.IsReverse():
			return tx.DescendLessOrEqual("", string(place.Key), push)
		case len(place.Key) == 0:
			return tx.Ascend("", push)
		}
		return tx.AscendGreaterOrEqual("", string(place.Key), push)
	})
	return rows.Status(), err
}

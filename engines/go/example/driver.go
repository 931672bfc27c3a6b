// Package example is the smallest complete driver in Go: sorted rows behind a lock. Made for copying.
package example

import (
	"bytes"
	"slices"
	"sync"

	"kvdyno/driver"
)

// Driver of the engine.
type Driver struct{}

// Info of it: what it is, what it can do, all of it and no more.
func (Driver) Info() driver.Info {
	return driver.Info{
		Name:   "example-go",
		Engine: "sorted rows behind a lock, in Go; the driver to copy",
		Family: "example", // keeps it out of comparisons of all engines; yours says lsm, b+tree ...
		Capabilities: driver.Ordered | driver.CanReverse | driver.CanPrefix | driver.CanDelete | driver.DeleteTells |
			driver.Overwrite | driver.CanNew | driver.Transaction | driver.InMemory,
		Levels:  []driver.Level{driver.None},
		Options: []driver.Option{{Name: "room", Kind: "count", Default: "1024", Help: "rows to make room for when it is opened"}},
	}
}

type row struct{ key, value []byte }

// database is also its own session: there is nothing that a thread would keep.
type database struct {
	lock sync.RWMutex
	rows []row // ascending by key
}

// Open reads options, takes the weakest level at or above the one asked for, and reports what is in force.
func (Driver) Open(config *driver.Config, opened *driver.Opened) (driver.Database, error) {
	level, err := config.Pick(driver.None)
	if err != nil {
		return nil, err
	}
	room, err := config.Number("room")
	if err != nil {
		return nil, err
	}
	if room > 1<<32 {
		return nil, driver.Fail(driver.Failed, "option room: %d rows are too many", room)
	}
	opened.Level, opened.Version, opened.Compression = level, "1", "none"
	opened.InForce("room", room)
	return &database{rows: make([]row, 0, room)}, nil
}

// Session of a thread.
func (d *database) Session() (driver.Session, error) { return d, nil }

// End of a session.
func (d *database) End() error { return nil }

// Close of the database.
func (d *database) Close() error { return nil }

// Maintain has nothing to flush and nothing to wait for, and cannot compact.
func (d *database) Maintain(work driver.Work) (bool, error) { return work != driver.Compact, nil }

// Stats of the engine.
func (d *database) Stats(add func(name string, value any)) {
	d.lock.RLock()
	defer d.lock.RUnlock()
	add("rows", len(d.rows))
}

// find gives the place of a key's row, or where it would be, and whether it is there.
func (d *database) find(key []byte) (int, bool) {
	return slices.BinarySearchFunc(d.rows, key, func(r row, key []byte) int { return bytes.Compare(r.key, key) })
}

// Get of a key: the value is copied into the op's buffer.
func (d *database) Get(op *driver.Op) (driver.Status, error) {
	d.lock.RLock()
	defer d.lock.RUnlock()
	at, is := d.find(op.Key)
	if !is {
		return driver.NotFound, nil
	}
	return op.Deliver(d.rows[at].value), nil
}

// Put of a key. Key and value are the caller's until the call returns, so both are copied.
func (d *database) Put(op *driver.Op) (driver.Status, error) {
	d.lock.Lock()
	defer d.lock.Unlock()
	return d.apply(op), nil
}

// Delete of a key.
func (d *database) Delete(op *driver.Op) (driver.Status, error) {
	d.lock.Lock()
	defer d.lock.Unlock()
	return d.apply(op), nil
}

// apply makes one change, which cannot fail.
func (d *database) apply(op *driver.Op) driver.Status {
	at, is := d.find(op.Key)
	switch {
	case op.Kind() == driver.Delete && !is:
		return driver.NotFound
	case op.Kind() == driver.Delete:
		d.rows = slices.Delete(d.rows, at, at+1)
	case is && op.IsNew():
		return driver.Exists
	case is:
		d.rows[at].value = bytes.Clone(op.Value)
	default:
		d.rows = slices.Insert(d.rows, at, row{bytes.Clone(op.Key), bytes.Clone(op.Value)})
	}
	return driver.OK
}

// Group makes all of a group's changes under one lock; NotRun leaves it to the kit to run its ops one by one.
func (d *database) Group(ops []driver.Op, isAtomic bool) (driver.Status, error) {
	for i := range ops {
		if kind := ops[i].Kind(); kind == driver.Put || kind == driver.Delete {
			continue
		} else if isAtomic {
			return driver.Unsupported, driver.Fail(driver.Unsupported, "a transaction is of puts and deletes only")
		}
		return driver.NotRun, nil
	}
	d.lock.Lock()
	defer d.lock.Unlock()
	for i := range ops {
		ops[i].SetStatus(d.apply(&ops[i]))
	}
	return driver.OK, nil
}

// Scan from the op's place on; rows go into the op's buffer until Push says that it is enough.
func (d *database) Scan(op *driver.Op) (driver.Status, error) {
	d.lock.RLock()
	defer d.lock.RUnlock()
	rows, place := op.Rows(), op.Place()
	at, _ := d.find(place.Key)
	if !op.IsReverse() {
		for ; at < len(d.rows) && rows.Push(d.rows[at].key, d.rows[at].value); at++ {
		}
		return rows.Status(), nil
	}
	if len(place.Key) == 0 {
		at = len(d.rows)
	}
	if at == len(d.rows) || place.IsBefore(d.rows[at].key) {
		at--
	}
	for ; at >= 0 && rows.Push(d.rows[at].key, d.rows[at].value); at-- {
	}
	return rows.Status(), nil
}

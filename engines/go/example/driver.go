// Package example is the smallest complete driver in Go: sorted rows behind a lock. Copy it to start a driver.
package example

import (
	"bytes"
	"slices"
	"sync"

	"kvdyno/driver"
)

// Driver is the driver of the engine.
type Driver struct{}

func init() { driver.Register(Driver{}) }

// Info describes the engine, with all of its capabilities and no more.
func (Driver) Info() driver.Info {
	return driver.Info{
		Name:   "example-go",
		Engine: "sorted rows behind a lock, in Go; the Go driver to copy",
		Family: "example", // excludes it from comparisons of all engines; yours is lsm, b+tree ...
		Capabilities: driver.Ordered | driver.CanReverse | driver.CanPrefix | driver.CanDelete | driver.DeleteTells |
			driver.Overwrite | driver.CanNew | driver.Transaction | driver.InMemory,
		Levels:  []driver.Level{driver.None},
		Options: []driver.Option{{Name: "room", Kind: "count", Default: "1024", Help: "rows to reserve space for at open"}},
	}
}

type row struct{ key, value []byte }

// database is also its own session: a thread needs no state.
type database struct {
	lock sync.RWMutex
	rows []row // ascending by key
}

// Open reads options, picks the weakest level at or above the requested one, and reports what is in effect.
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
		return nil, driver.Fail(driver.Failed, "option room: %d is too large", room)
	}
	opened.Level, opened.Version, opened.Compression = level, "1", "none"
	opened.Effective("room", room)
	return &database{rows: make([]row, 0, room)}, nil
}

// Session returns a session for one thread.
func (d *database) Session() (driver.Session, error) { return d, nil }

// End ends a session.
func (d *database) End() error { return nil }

// Close closes the database.
func (d *database) Close() error { return nil }

// Maintain has nothing to flush and nothing to wait for, and cannot compact.
func (d *database) Maintain(work driver.Work) (bool, error) { return work != driver.Compact, nil }

// Stats reports statistics of the engine.
func (d *database) Stats(add func(name string, value any)) {
	d.lock.RLock()
	defer d.lock.RUnlock()
	add("rows", len(d.rows))
}

// find returns the index of a key's row, or where it would be, and whether it exists.
func (d *database) find(key []byte) (int, bool) {
	return slices.BinarySearchFunc(d.rows, key, func(r row, key []byte) int { return bytes.Compare(r.key, key) })
}

// Get reads a value: it is copied into the op's buffer.
func (d *database) Get(op *driver.Op) (driver.Status, error) {
	d.lock.RLock()
	defer d.lock.RUnlock()
	at, is := d.find(op.Key)
	if !is {
		return driver.NotFound, nil
	}
	return op.Deliver(d.rows[at].value), nil
}

// Put writes a value. The caller owns key and value, so both are copied.
func (d *database) Put(op *driver.Op) (driver.Status, error) {
	d.lock.Lock()
	defer d.lock.Unlock()
	return d.apply(op), nil
}

// Delete deletes a key.
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

// Group makes all of a group's changes under one lock; with NotRun the kit runs its ops one by one.
func (d *database) Group(ops []driver.Op, isAtomic bool) (driver.Status, error) {
	for i := range ops {
		if kind := ops[i].Kind(); kind == driver.Put || kind == driver.Delete {
			continue
		} else if isAtomic {
			return driver.Unsupported, driver.Fail(driver.Unsupported, "a transaction may have only puts and deletes")
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

// Scan starts at the op's place; rows go into the op's buffer until Push returns false.
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

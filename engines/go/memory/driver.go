// Package memory stores rows in a Go map or in tidwall's B-tree, with an optional append-only file, like KVBench's map
// and btree stores.
package memory

import (
	"bytes"
	"path/filepath"
	"sync"

	"github.com/tidwall/btree"

	"kvdyno/driver"
)

// Driver is one of the four drivers.
type Driver struct {
	// Ordered: the B-tree, otherwise the map.
	Ordered bool
	// InMemory: without a file.
	InMemory bool
}

func init() {
	driver.Register(Driver{}, Driver{InMemory: true}, Driver{Ordered: true}, Driver{Ordered: true, InMemory: true})
}

const both = driver.MultiGet | driver.Transaction | driver.TransactionReads | driver.CanDelete | driver.DeleteTells |
	driver.Overwrite | driver.CanNew | driver.SingleWriter | driver.CanTouch | driver.CanPrefix

// Info describes the engine.
func (d Driver) Info() driver.Info {
	info := driver.Info{
		Name: "go-map", Engine: "Go's map behind a lock, with an append-only file", Family: "memory", Capabilities: both,
		Levels: []driver.Level{driver.None, driver.Process, driver.Power},
	}
	if d.Ordered {
		info.Name, info.Engine = "go-btree", "tidwall's B-tree behind a lock, with an append-only file"
		info.Capabilities |= driver.Ordered | driver.CanReverse
	}
	if d.InMemory {
		info.Name, info.Engine = info.Name+"-memory", info.Engine[:len(info.Engine)-len(", with an append-only file")]
		info.Capabilities |= driver.InMemory
		info.Levels = []driver.Level{driver.None}
	}
	return info
}

type database struct {
	lock sync.RWMutex
	rows rows
	tree *btree.Map[string, []byte] // the same as rows, if it is ordered
	log  *appendOnly                // nil: in memory only
}

// Open opens a database: reads the file.
func (d Driver) Open(config *driver.Config, opened *driver.Opened) (driver.Database, error) {
	authors := driver.Process
	if d.InMemory {
		authors = driver.None
	}
	level, err := config.Pick(authors)
	if err != nil {
		return nil, err
	}
	made := &database{}
	opened.Level, opened.Version, opened.Compression = level, driver.GoVersion(), "none"
	if d.Ordered {
		made.tree = &btree.Map[string, []byte]{}
		made.rows = made.tree
		opened.Version = driver.ModuleVersion("github.com/tidwall/btree")
	} else {
		made.rows = goMap{}
	}
	if !d.InMemory {
		path := filepath.Join(config.Path, "rows.aof")
		if made.log, err = openLog(path, level, made.replay); err != nil {
			return nil, err
		}
	}
	return made, nil
}

func (d *database) replay(kind driver.Kind, key, value []byte) {
	if kind == driver.Put {
		d.rows.Set(string(key), bytes.Clone(value))
	} else {
		d.rows.Delete(string(key))
	}
}

// Session returns a session for one thread.
func (d *database) Session() (driver.Session, error) { return d, nil }

// End ends a session.
func (d *database) End() error { return nil }

// Close closes the database.
func (d *database) Close() error {
	if d.log == nil {
		return nil
	}
	return d.log.close()
}

// Maintain syncs the file; nothing runs in the background.
func (d *database) Maintain(work driver.Work) (bool, error) {
	if work == driver.Flush && d.log != nil {
		d.lock.Lock()
		defer d.lock.Unlock()
		return true, d.log.sync()
	}
	return work != driver.Compact, nil
}

func (d *database) get(op *driver.Op) driver.Status {
	value, is := d.rows.Get(string(op.Key))
	if !is {
		return driver.NotFound
	}
	return op.Deliver(value)
}

// Get reads a value.
func (d *database) Get(op *driver.Op) (driver.Status, error) {
	d.lock.RLock()
	defer d.lock.RUnlock()
	return d.get(op), nil
}

// Put writes a value.
func (d *database) Put(op *driver.Op) (driver.Status, error) { return d.write(op) }

// Delete deletes a key.
func (d *database) Delete(op *driver.Op) (driver.Status, error) { return d.write(op) }

// write logs a change before it applies it.
func (d *database) write(op *driver.Op) (driver.Status, error) {
	d.lock.Lock()
	defer d.lock.Unlock()
	_, is := d.rows.Get(string(op.Key))
	if op.Kind() == driver.Put && op.IsNew() && is {
		return driver.Exists, nil
	} else if op.Kind() == driver.Delete && !is {
		return driver.NotFound, nil
	}
	if d.log != nil {
		d.log.add(op)
		if err := d.log.commit(); err != nil {
			return driver.Failed, err
		}
	}
	d.apply(op)
	return driver.OK, nil
}

func (d *database) apply(op *driver.Op) {
	if op.Kind() == driver.Put {
		d.rows.Set(string(op.Key), bytes.Clone(op.Value))
	} else {
		d.rows.Delete(string(op.Key))
	}
}

// Scan reads the B-tree; for the map, a prefix scan checks all keys.
func (d *database) Scan(op *driver.Op) (driver.Status, error) {
	d.lock.RLock()
	defer d.lock.RUnlock()
	rows := op.Rows()
	if d.tree == nil {
		d.rows.(goMap).scan(op, &rows)
		return rows.Status(), nil
	}
	place := op.Place()
	push := func(key string, value []byte) bool {
		return (place.Exclusive && key == string(place.Key)) || rows.PushString(key, value)
	}
	switch {
	case op.IsReverse() && len(place.Key) == 0:
		d.tree.Reverse(push)
	case op.IsReverse():
		d.tree.Descend(string(place.Key), push)
	default:
		d.tree.Ascend(string(place.Key), push)
	}
	return rows.Status(), nil
}

// Package pogreb drives Pogreb: a hash table on disk, optimized for reads.
package pogreb

import (
	"io"
	"log"
	"path/filepath"

	"github.com/akrylysov/pogreb"

	"kvdyno/driver"
)

// Driver is the driver of Pogreb.
type Driver struct{}

func init() { driver.Register(Driver{}) }

// Info describes the engine.
func (Driver) Info() driver.Info {
	return driver.Info{
		Name: "pogreb", Engine: "hash table on disk, optimized for reads", Family: "hash",
		Capabilities: driver.Overwrite | driver.SingleWriter | driver.CanDelete,
		Levels:       []driver.Level{driver.Process, driver.Power},
		KeySizeMax:   pogreb.MaxKeyLength,
	}
}

type database struct{ db *pogreb.DB }

// Open opens a database.
func (Driver) Open(config *driver.Config, opened *driver.Opened) (driver.Database, error) {
	level, err := config.Pick(driver.Process)
	if err != nil {
		return nil, err
	}
	pogreb.SetLogger(log.New(io.Discard, "", 0))
	options := &pogreb.Options{}
	if level == driver.Power {
		options.BackgroundSyncInterval = -1 // sync after every write
	}
	db, err := pogreb.Open(filepath.Join(config.Path, "pogreb"), options)
	if err != nil {
		return nil, err
	}
	opened.Level, opened.Version, opened.Compression = level, driver.ModuleVersion("github.com/akrylysov/pogreb"), "none"
	opened.Effective("sync", level == driver.Power)
	return &database{db}, nil
}

// Session returns a session for one thread.
func (d *database) Session() (driver.Session, error) { return d, nil }

// End ends a session.
func (d *database) End() error { return nil }

// Close closes the database.
func (d *database) Close() error { return d.db.Close() }

// Maintain syncs and compacts; with these options nothing runs in the background.
func (d *database) Maintain(work driver.Work) (bool, error) {
	switch work {
	case driver.Flush:
		return true, d.db.Sync()
	case driver.Compact:
		_, err := d.db.Compact()
		return true, err
	}
	return true, nil
}

// Stats reports statistics of the engine.
func (d *database) Stats(add func(name string, value any)) {
	metrics := d.db.Metrics()
	add("puts", metrics.Puts.Value())
	add("gets", metrics.Gets.Value())
	add("hash_collisions", metrics.HashCollisions.Value())
}

// Get reads a value; the engine returns a copy, and nil for an absent key.
func (d *database) Get(op *driver.Op) (driver.Status, error) {
	value, err := d.db.Get(op.Key)
	if err != nil {
		return driver.Failed, err
	} else if value == nil {
		return driver.NotFound, nil
	}
	return op.Deliver(value), nil
}

// Put writes a value.
func (d *database) Put(op *driver.Op) (driver.Status, error) {
	return driver.OK, d.db.Put(op.Key, op.Value)
}

// Delete deletes a key, repeatedly while it exists: the engine may have it twice (README.md).
func (d *database) Delete(op *driver.Op) (driver.Status, error) {
	for {
		if err := d.db.Delete(op.Key); err != nil {
			return driver.Failed, err
		}
		if is, err := d.db.Has(op.Key); err != nil || !is {
			return driver.OK, err
		}
	}
}

// Engine returns the database itself, for the bench that compares the driver with a plain loop.
func (d *database) Engine() any { return d.db }

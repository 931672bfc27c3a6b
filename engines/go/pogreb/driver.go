// Package pogreb drives Pogreb: a hash table on disk for reading.
package pogreb

import (
	"io"
	"log"
	"path/filepath"

	"github.com/akrylysov/pogreb"

	"kvdyno/driver"
)

// Driver of Pogreb.
type Driver struct{}

// Info of it.
func (Driver) Info() driver.Info {
	return driver.Info{
		Name: "pogreb", Engine: "hash table on disk, for reading", Family: "hash",
		Capabilities: driver.Overwrite | driver.SingleWriter | driver.CanDelete,
		Levels:       []driver.Level{driver.Process, driver.Power},
		KeySizeMax:   pogreb.MaxKeyLength,
	}
}

type database struct{ db *pogreb.DB }

// Open of a database.
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
	opened.InForce("sync", level == driver.Power)
	return &database{db}, nil
}

// Session of a thread.
func (d *database) Session() (driver.Session, error) { return d, nil }

// End of a session.
func (d *database) End() error { return nil }

// Close of the database.
func (d *database) Close() error { return d.db.Close() }

// Maintain syncs and compacts; nothing runs in the background as it is opened here.
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

// Stats of the engine.
func (d *database) Stats(add func(name string, value any)) {
	metrics := d.db.Metrics()
	add("puts", metrics.Puts.Value())
	add("gets", metrics.Gets.Value())
	add("hash_collisions", metrics.HashCollisions.Value())
}

// Get of a key; the engine hands out a copy, and tells an absent key by nil.
func (d *database) Get(op *driver.Op) (driver.Status, error) {
	value, err := d.db.Get(op.Key)
	if err != nil {
		return driver.Failed, err
	} else if value == nil {
		return driver.NotFound, nil
	}
	return op.Deliver(value), nil
}

// Put of a key.
func (d *database) Put(op *driver.Op) (driver.Status, error) {
	return driver.OK, d.db.Put(op.Key, op.Value)
}

// Delete of a key, again while it is there: the engine may have it twice (README.md).
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

// Engine is the database itself, for the bench of the driver against a plain loop.
func (d *database) Engine() any { return d.db }

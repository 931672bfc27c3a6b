// Package sniper drives Sniper: hash tables in memory over 256 files of values.
package sniper

import (
	"errors"
	"time"

	"github.com/recoilme/sniper"

	"kvdyno/driver"
)

// Driver is the driver of Sniper.
type Driver struct{}

func init() { driver.Register(Driver{}) }

// valueRoom is the limit for a key, a value and the engine's eight bytes together.
const valueRoom = 512 << 10

// keyBytesMax: the engine writes the length of a key as 16 bits, and cuts longer ones without an error.
const keyBytesMax = 65535

// Info describes the engine.
func (Driver) Info() driver.Info {
	return driver.Info{
		Name: "sniper", Engine: "hash tables in memory over 256 files of values", Family: "hash",
		Capabilities: driver.CanDelete | driver.DeleteTells | driver.Overwrite,
		Levels:       []driver.Level{driver.Process}, KeySizeMax: keyBytesMax,
		Options: []driver.Option{
			{Name: "sync_seconds", Kind: "count", Default: "0", Help: "seconds between background syncs; 0 = none"},
			{Name: "collisions", Kind: "count", Default: "4", Help: "chunks to try for keys with the same hash"},
		},
	}
}

type database struct{ store *sniper.Store }

// Open opens a database.
func (Driver) Open(config *driver.Config, opened *driver.Opened) (driver.Database, error) {
	level, err0 := config.Pick(driver.Process)
	seconds, err1 := config.Number("sync_seconds")
	collisions, err2 := config.Number("collisions")
	if err := errors.Join(err0, err1, err2); err != nil {
		return nil, err
	}
	store, err := sniper.Open(sniper.Dir(config.Path), sniper.ChunksCollision(int(collisions)),
		sniper.SyncInterval(time.Duration(seconds)*time.Second), sniper.ExpireInterval(0))
	if err != nil {
		return nil, err
	}
	opened.Level, opened.Version, opened.Compression = level, driver.ModuleVersion("github.com/recoilme/sniper"), "none"
	opened.Effective("value_size_max", valueRoom-8-min(config.KeySizeMax, keyBytesMax))
	opened.Effective("sync_seconds", seconds)
	opened.Effective("collisions", collisions)
	return &database{store}, nil
}

// Session returns a session for one thread.
func (d *database) Session() (driver.Session, error) { return d, nil }

// End ends a session.
func (d *database) End() error { return nil }

// Close closes the database.
func (d *database) Close() error { return d.store.Close() }

// Get reads a value.
func (d *database) Get(op *driver.Op) (driver.Status, error) {
	value, err := d.store.Get(op.Key)
	if errors.Is(err, sniper.ErrNotFound) {
		return driver.NotFound, nil
	} else if err != nil {
		return driver.Failed, err
	}
	return op.Deliver(value), nil
}

// Put writes a value.
func (d *database) Put(op *driver.Op) (driver.Status, error) {
	if len(op.Key)+len(op.Value)+8 > valueRoom {
		return driver.TooLarge, driver.Fail(driver.TooLarge, "key and value together have more than %d bytes", valueRoom-8)
	}
	return driver.OK, d.store.Set(op.Key, op.Value, 0)
}

// Delete deletes a key.
func (d *database) Delete(op *driver.Op) (driver.Status, error) {
	deleted, err := d.store.Delete(op.Key)
	if err == nil && !deleted {
		return driver.NotFound, nil
	}
	return driver.OK, err
}

// Package kv drives modernc.org/kv, which is cznic/kv: a B-tree in a file behind a write-ahead log.
package kv

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	"modernc.org/kv"

	"kvdyno/driver"
)

// Driver is the driver of kv.
type Driver struct{}

func init() { driver.Register(Driver{}) }

// contentBytes is the limit for a key, and for a value.
const contentBytes = 65787

// Info describes the engine. Level none: updates stay in memory for a second or more before they are written, and
// neither the time nor the mode can be set from outside the package.
func (Driver) Info() driver.Info {
	return driver.Info{
		Name: "kv", Engine: "B-tree in a file behind a write-ahead log (modernc.org/kv, cznic/kv)", Family: "b+tree",
		Capabilities: driver.Ordered | driver.CanReverse | driver.CanPrefix | driver.CanDelete | driver.Overwrite |
			driver.CanNew | driver.MergeAdd | driver.Transaction | driver.TransactionReads | driver.SingleWriter,
		Levels:     []driver.Level{driver.None},
		KeySizeMax: contentBytes,
	}
}

// The engine enumerates correctly only in a tree that does not change meanwhile, and its transactions have no
// isolation: all threads share one. So readers block writers; the engine itself runs one call at a time.
type database struct {
	db   *kv.DB
	lock sync.RWMutex
}

type session struct {
	*database
	found []byte // keeps its capacity from get to get
}

// Open opens a database.
func (Driver) Open(config *driver.Config, opened *driver.Opened) (driver.Database, error) {
	level, err := config.Pick(driver.None)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(config.Path, "kv.db")
	call := kv.Open
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		call = kv.Create
	}
	// Its own lock is a file that remains after a crash and then blocks every open.
	unlocked := func(string) (io.Closer, error) { return io.NopCloser(nil), nil }
	db, err := call(path, &kv.Options{Locker: unlocked})
	if err != nil {
		return nil, err
	}
	opened.Level, opened.Version, opened.Compression = level, driver.ModuleVersion("modernc.org/kv"), "zappy"
	opened.Effective("value_size_max", contentBytes)
	return &database{db: db}, nil
}

// Session returns a session for one thread.
func (d *database) Session() (driver.Session, error) { return &session{database: d}, nil }

// Close closes the database, which writes pending updates.
func (d *database) Close() error { return d.db.Close() }

// End ends a session.
func (s *session) End() error { return nil }

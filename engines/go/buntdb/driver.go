// Package buntdb drives BuntDB: an ordered map in memory with an append-only file.
package buntdb

import (
	"errors"
	"path/filepath"

	"github.com/tidwall/buntdb"

	"kvdyno/driver"
)

// Driver is the driver of BuntDB.
type Driver struct {
	// InMemory: without a file.
	InMemory bool
}

func init() { driver.Register(Driver{}, Driver{InMemory: true}) }

const capabilities = driver.Ordered | driver.CanReverse | driver.CanPrefix | driver.MultiGet | driver.Transaction |
	driver.TransactionReads | driver.CanDelete | driver.DeleteTells | driver.Overwrite | driver.CanNew |
	driver.TimeToLive | driver.SingleWriter

// Info describes the engine.
func (d Driver) Info() driver.Info {
	if d.InMemory {
		return driver.Info{
			Name: "buntdb-memory", Engine: "ordered map in memory, without a file", Family: "memory",
			Capabilities: capabilities | driver.InMemory, Levels: []driver.Level{driver.None},
		}
	}
	return driver.Info{
		Name: "buntdb", Engine: "ordered map in memory with an append-only file", Family: "memory",
		Capabilities: capabilities, Levels: []driver.Level{driver.Process, driver.Power},
		Options: []driver.Option{
			{Name: "sync", Kind: "choice:never|every-second", Default: "never", Help: "background syncs at level process; as shipped: every-second"},
			{Name: "shrink_percent", Kind: "count", Default: "100", Help: "growth in percent since the last shrink at which the file is rewritten"},
			{Name: "shrink_size", Kind: "bytes", Default: "33554432", Help: "smaller files are not rewritten"},
		},
	}
}

type database struct {
	db *buntdb.DB
}

// Open opens a database.
func (d Driver) Open(config *driver.Config, opened *driver.Opened) (driver.Database, error) {
	opened.Version, opened.Compression = driver.ModuleVersion("github.com/tidwall/buntdb"), "none"
	path := ":memory:"
	authors := driver.None
	if !d.InMemory {
		path, authors = filepath.Join(config.Path, "bunt.aof"), driver.Process
	}
	level, err := config.Pick(authors)
	if err != nil {
		return nil, err
	}
	opened.Level = level
	db, err := buntdb.Open(path)
	if err != nil {
		return nil, err
	}
	if !d.InMemory {
		if err := configure(db, level, config, opened); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return &database{db}, nil
}

func configure(db *buntdb.DB, level driver.Level, config *driver.Config, opened *driver.Opened) error {
	percent, err1 := config.Number("shrink_percent")
	size, err2 := config.Number("shrink_size")
	var settings buntdb.Config
	if err := errors.Join(err1, err2, db.ReadConfig(&settings)); err != nil {
		return err
	}
	settings.AutoShrinkPercentage, settings.AutoShrinkMinSize = int(percent), int(size)
	switch sync := config.Text("sync"); {
	case sync != "never" && sync != "every-second":
		return driver.Fail(driver.Failed, "option sync: expected never or every-second, got `%s`", sync)
	case level == driver.Power:
		settings.SyncPolicy = buntdb.Always
		opened.Effective("sync", "always")
	case sync == "never":
		settings.SyncPolicy = buntdb.Never
		opened.Effective("sync", sync)
	default:
		settings.SyncPolicy = buntdb.EverySecond
		opened.Effective("sync", sync)
	}
	opened.Effective("shrink_percent", percent)
	opened.Effective("shrink_size", size)
	return db.SetConfig(settings)
}

// Session returns a session for one thread.
func (d *database) Session() (driver.Session, error) { return d, nil }

// End ends a session.
func (d *database) End() error { return nil }

// Close closes the database.
func (d *database) Close() error { return d.db.Close() }

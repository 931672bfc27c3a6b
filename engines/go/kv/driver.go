// Package kv drives modernc.org/kv, which is cznic/kv: a B-tree in a file behind a write-ahead log.
package kv

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"modernc.org/kv"

	"kvdyno/driver"
)

// Driver of kv.
type Driver struct{}

// Info of it. Level none: updates are held in memory for a second and more before they are written, and neither the time
// nor the mode can be set from outside the package.
func (Driver) Info() driver.Info {
	return driver.Info{
		Name: "kv", Engine: "B-tree in a file behind a write-ahead log (modernc.org/kv, cznic/kv)", Family: "b+tree",
		Capabilities: driver.Ordered | driver.CanReverse | driver.CanPrefix | driver.CanDelete | driver.Overwrite |
			driver.CanNew | driver.MergeAdd | driver.SingleWriter,
		Levels:     []driver.Level{driver.None},
		KeySizeMax: 65787,
	}
}

type database struct{ db *kv.DB }

type session struct {
	db    *kv.DB
	found []byte // keeps its room from get to get
}

// Open of a database.
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
	db, err := call(path, &kv.Options{})
	if err != nil {
		return nil, err
	}
	opened.Level, opened.Version, opened.Compression = level, driver.ModuleVersion("modernc.org/kv"), "zappy"
	return &database{db}, nil
}

// Session of a thread.
func (d *database) Session() (driver.Session, error) { return &session{db: d.db}, nil }

// Close of the database, which writes what is held back.
func (d *database) Close() error { return d.db.Close() }

// End of a session.
func (s *session) End() error { return nil }

func failed(err error) error {
	if errors.Is(err, syscall.ENOSPC) {
		return driver.Fail(driver.Full, "%v", err)
	}
	return err
}

// Get of a key; nil is how the engine tells that there is none.
func (s *session) Get(op *driver.Op) (driver.Status, error) {
	value, err := s.db.Get(s.found[:cap(s.found)], op.Key)
	if err != nil {
		return driver.Failed, err
	} else if value == nil {
		return driver.NotFound, nil
	}
	s.found = value
	return op.Deliver(value), nil
}

// Put of a key.
func (s *session) Put(op *driver.Op) (driver.Status, error) {
	if !op.IsNew() {
		return driver.OK, failed(s.db.Set(op.Key, op.Value))
	}
	_, written, err := s.db.Put(nil, op.Key, func(_, old []byte) ([]byte, bool, error) { return op.Value, old == nil, nil })
	if err == nil && !written {
		return driver.Exists, nil
	}
	return driver.OK, failed(err)
}

// Merge adds to a counter within one update of the engine's.
func (s *session) Merge(op *driver.Op) (driver.Status, error) {
	_, _, err := s.db.Put(nil, op.Key, func(_, old []byte) ([]byte, bool, error) {
		return binary.LittleEndian.AppendUint64(nil, number(old)+number(op.Value)), true, nil
	})
	return driver.OK, failed(err)
}

func number(value []byte) uint64 {
	if len(value) != 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(value)
}

// Delete of a key; the engine does not tell whether it was there.
func (s *session) Delete(op *driver.Op) (driver.Status, error) {
	return driver.OK, failed(s.db.Delete(op.Key))
}

// Scan with an enumerator, which finds its place again after a change.
func (s *session) Scan(op *driver.Op) (driver.Status, error) {
	place := op.Place()
	enumerator, err := s.start(op, place)
	rows := op.Rows()
	if err == io.EOF {
		return rows.Status(), nil
	} else if err != nil {
		return driver.Failed, err
	}
	next := enumerator.Next
	if op.IsReverse() {
		next = enumerator.Prev
	}
	for {
		key, value, err := next()
		if err == io.EOF {
			return rows.Status(), nil
		} else if err != nil {
			return driver.Failed, err
		}
		if op.IsReverse() && len(place.Key) != 0 && place.IsBefore(key) {
			continue // it was put on the first key at or above the place
		}
		if !rows.Push(key, value) {
			return rows.Status(), nil
		}
	}
}

func (s *session) start(op *driver.Op, place driver.Place) (*kv.Enumerator, error) {
	switch {
	case len(place.Key) != 0:
		enumerator, _, err := s.db.Seek(place.Key)
		return enumerator, err
	case op.IsReverse():
		return s.db.SeekLast()
	}
	return s.db.SeekFirst()
}

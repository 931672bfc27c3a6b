// Ops, each a separate update of the engine, and groups.

package kv

import (
	"encoding/binary"
	"errors"
	"io"

	"modernc.org/kv"

	"kvdyno/driver"
)

// get reads a value; the engine returns nil for an absent key.
func (s *session) get(op *driver.Op) (driver.Status, error) {
	value, err := s.db.Get(s.found[:cap(s.found)], op.Key)
	if err != nil {
		return driver.Failed, err
	} else if value == nil {
		return driver.NotFound, nil
	}
	s.found = value
	return op.Deliver(value), nil
}

// put writes a value. The engine's own Put would look up and set in one call, but it treats an empty value as absent.
func (s *session) put(op *driver.Op) (driver.Status, error) {
	if op.IsNew() {
		value, err := s.db.Get(nil, op.Key)
		if err != nil {
			return driver.Failed, err
		} else if value != nil {
			return driver.Exists, nil
		}
	}
	return driver.OK, s.db.Set(op.Key, op.Value)
}

// merge adds to a counter within one update of the engine.
func (s *session) merge(op *driver.Op) (driver.Status, error) {
	_, _, err := s.db.Put(nil, op.Key, func(_, old []byte) ([]byte, bool, error) {
		return binary.LittleEndian.AppendUint64(nil, number(old)+number(op.Value)), true, nil
	})
	return driver.OK, err
}

func number(value []byte) uint64 {
	if len(value) != 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(value)
}

func (s *session) apply(op *driver.Op) (driver.Status, error) {
	switch op.Kind() {
	case driver.Get:
		return s.get(op)
	case driver.Put:
		return s.put(op)
	case driver.Delete: // does not report whether the key existed
		return driver.OK, s.db.Delete(op.Key)
	case driver.Merge:
		return s.merge(op)
	}
	return driver.Unsupported, driver.Fail(driver.Unsupported, "a transaction may have only gets, puts, deletes and merges")
}

func (s *session) write(op *driver.Op) (driver.Status, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.apply(op)
}

// Get reads a value.
func (s *session) Get(op *driver.Op) (driver.Status, error) {
	s.lock.RLock()
	defer s.lock.RUnlock()
	return s.get(op)
}

// Put writes a value.
func (s *session) Put(op *driver.Op) (driver.Status, error) { return s.write(op) }

// Delete deletes a key.
func (s *session) Delete(op *driver.Op) (driver.Status, error) { return s.write(op) }

// Merge adds to a counter.
func (s *session) Merge(op *driver.Op) (driver.Status, error) { return s.write(op) }

// Group that is atomic is one transaction. Other groups are not: the engine itself joins the writes of a second.
func (s *session) Group(ops []driver.Op, isAtomic bool) (driver.Status, error) {
	if !isAtomic {
		return driver.NotRun, nil
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	if err := s.db.BeginTransaction(); err != nil {
		return driver.Failed, err
	}
	for i := range ops {
		status, err := s.apply(&ops[i])
		if err != nil || status == driver.Short {
			return status, errors.Join(err, s.db.Rollback())
		}
		ops[i].SetStatus(status)
	}
	return driver.OK, s.db.Commit()
}

// Scan uses an enumerator.
func (s *session) Scan(op *driver.Op) (driver.Status, error) {
	s.lock.RLock()
	defer s.lock.RUnlock()
	place := op.Place()
	rows := op.Rows()
	enumerator, err := s.start(op, place)
	for err == nil {
		var key, value []byte
		if op.IsReverse() {
			key, value, err = enumerator.Prev()
		} else {
			key, value, err = enumerator.Next()
		}
		isAbove := op.IsReverse() && len(place.Key) != 0 && place.IsBefore(key)
		if err == nil && !isAbove && !rows.Push(key, value) {
			break
		}
	}
	if err == io.EOF {
		err = nil
	}
	return rows.Status(), err
}

func (s *session) start(op *driver.Op, place driver.Place) (*kv.Enumerator, error) {
	switch {
	case len(place.Key) == 0 && op.IsReverse():
		return s.db.SeekLast()
	case len(place.Key) == 0:
		return s.db.SeekFirst()
	}
	enumerator, isHit, err := s.db.Seek(place.Key)
	if err != nil || isHit || !op.IsReverse() {
		return enumerator, err
	}
	// It may be past the last row of a page, where Prev returns EOF and Next continues.
	key, _, err := enumerator.Next()
	if err == io.EOF {
		return s.db.SeekLast()
	} else if err != nil {
		return nil, err
	}
	enumerator, _, err = s.db.Seek(key)
	return enumerator, err
}

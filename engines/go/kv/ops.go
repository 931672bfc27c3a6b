// Ops, each an update of the engine's own, and groups.

package kv

import (
	"encoding/binary"
	"errors"
	"io"

	"modernc.org/kv"

	"kvdyno/driver"
)

// get of a key; nil is how the engine tells that there is none.
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

// put of a key. The engine's own Put would look and set in one call, but it takes an empty value for an absent key.
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

// merge adds to a counter within one update of the engine's.
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
	case driver.Delete: // does not tell whether the key was there
		return driver.OK, s.db.Delete(op.Key)
	case driver.Merge:
		return s.merge(op)
	}
	return driver.Unsupported, driver.Fail(driver.Unsupported, "a transaction is of gets, puts, deletes and merges only")
}

func (s *session) write(op *driver.Op) (driver.Status, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.apply(op)
}

// Get of a key.
func (s *session) Get(op *driver.Op) (driver.Status, error) {
	s.lock.RLock()
	defer s.lock.RUnlock()
	return s.get(op)
}

// Put of a key.
func (s *session) Put(op *driver.Op) (driver.Status, error) { return s.write(op) }

// Delete of a key.
func (s *session) Delete(op *driver.Op) (driver.Status, error) { return s.write(op) }

// Merge adds to a counter.
func (s *session) Merge(op *driver.Op) (driver.Status, error) { return s.write(op) }

// Group that is atomic is one transaction. Other groups are not: the engine joins the writes of a second by itself.
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

// Scan with an enumerator.
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
	// It may stand behind the last row of a page, from where Prev says EOF and Next goes on.
	key, _, err := enumerator.Next()
	if err == io.EOF {
		return s.db.SeekLast()
	} else if err != nil {
		return nil, err
	}
	enumerator, _, err = s.db.Seek(key)
	return enumerator, err
}

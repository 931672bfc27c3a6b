// Ops: each is a round trip, and a joined group a pipeline.

package memcached

import "kvdyno/driver"

// windowBytes of a pipeline are sent before their replies are read, so that neither side waits with full buffers.
const windowBytes = bufferBytes / 2

type session struct {
	*database
	wire   *wire
	stored uint64
}

// End ends a session.
func (s *session) End() error {
	s.database.stored.Add(s.stored)
	return s.wire.close()
}

func (s *session) one(op *driver.Op) (driver.Status, error) {
	s.wire.ask(op)
	if err := s.wire.writer.Flush(); err != nil {
		return driver.Failed, s.failed(err)
	}
	return s.answer(op)
}

func (s *session) answer(op *driver.Op) (driver.Status, error) {
	status, err := s.wire.answer(op)
	if err != nil {
		return driver.Failed, s.failed(err)
	}
	if op.Kind() == driver.Put && status == driver.OK {
		s.stored++
	}
	return status, nil
}

// hasKey reports whether memcached takes a key of this length; it refuses the others, which therefore have no rows.
func hasKey(op *driver.Op) bool { return len(op.Key) > 0 && len(op.Key) <= keyBytes }

// Get reads a value.
func (s *session) Get(op *driver.Op) (driver.Status, error) {
	if !hasKey(op) {
		return driver.NotFound, nil
	}
	return s.one(op)
}

// Put writes a value.
func (s *session) Put(op *driver.Op) (driver.Status, error) {
	if !hasKey(op) {
		return driver.TooLarge, driver.Fail(driver.TooLarge, "memcached has no empty keys")
	}
	return s.one(op)
}

// Delete deletes a key.
func (s *session) Delete(op *driver.Op) (driver.Status, error) {
	if !hasKey(op) {
		return driver.NotFound, nil
	}
	return s.one(op)
}

// Group is a pipeline. All replies are read also when one is an error.
func (s *session) Group(ops []driver.Op, isAtomic bool) (driver.Status, error) {
	for i := range ops {
		if isAtomic || !hasKey(&ops[i]) {
			return driver.NotRun, nil
		}
	}
	var failure error
	first, bytes := 0, 0
	for next := range ops {
		s.wire.ask(&ops[next])
		bytes += len(ops[next].Key) + len(ops[next].Value)
		if bytes < windowBytes && next+1 < len(ops) {
			continue
		}
		if err := s.wire.writer.Flush(); err != nil {
			return driver.Failed, s.failed(err)
		}
		for ; first <= next; first++ {
			status, err := s.answer(&ops[first])
			if err != nil && failure == nil {
				failure = err
			}
			ops[first].SetStatus(status)
		}
		bytes = 0
	}
	return driver.OK, failure
}

// Ops: each is a prepared statement.

package cassandra

import (
	"errors"
	"strings"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"kvdyno/driver"
)

type session struct {
	*database
	get, gets, put, putUntil, remove string
}

// Session of a thread: it has only its statements, because requests share the client's connections.
func (d *database) Session() (driver.Session, error) {
	return &session{database: d,
		get:      "SELECT value FROM " + d.table + " WHERE key = ?",
		gets:     "SELECT key, value FROM " + d.table + " WHERE key IN ?",
		put:      "INSERT INTO " + d.table + " (key, value) VALUES (?, ?)",
		putUntil: "INSERT INTO " + d.table + " (key, value) VALUES (?, ?) USING TTL ?",
		remove:   "DELETE FROM " + d.table + " WHERE key = ?",
	}, nil
}

// End ends a session.
func (s *session) End() error { return nil }

// timestamp of a write, in us since 1970: Cassandra keeps the value with the largest. It never repeats and never goes back, as
// the clock may.
func (d *database) timestamp() int64 {
	for {
		last := d.last.Load()
		next := max(last+1, time.Now().UnixMicro())
		if d.last.CompareAndSwap(last, next) {
			return next
		}
	}
}

// failed turns an error into one with a status and a reason.
func (d *database) failed(err error) error {
	var known *driver.Failure
	if err == nil || errors.As(err, &known) {
		return err
	}
	if errors.Is(err, gocql.ErrTimeoutNoResponse) {
		err = driver.Fail(driver.Failed, "no answer within %v (option timeout)", d.timeout)
	}
	var request gocql.RequestError
	if errors.As(err, &request) {
		if text := request.Message(); strings.Contains(text, "too large") {
			return driver.Fail(driver.TooLarge, "%s", text)
		}
		err = driver.Fail(driver.Failed, "%s", request.Message())
	}
	if d.cluster != nil {
		return d.cluster.explain(err)
	}
	return err
}

// hasKey: Cassandra has no empty partition keys, which therefore have no rows.
func hasKey(op *driver.Op) bool { return len(op.Key) > 0 && len(op.Key) <= keyBytes }

// ask is the query of a read. A strong one asks all copies where a write may have reached only one.
func (s *session) ask(op *driver.Op, statement string, arguments ...any) *gocql.Query {
	query := s.control.Query(statement, arguments...)
	if s.level == gocql.One && op.IsStrong() {
		return query.Consistency(gocql.All)
	}
	return query
}

// Get reads a value.
func (s *session) Get(op *driver.Op) (driver.Status, error) {
	if !hasKey(op) {
		return driver.NotFound, nil
	}
	var value []byte
	rows := s.ask(op, s.get, op.Key).Iter()
	isThere := rows.Scan(&value)
	if err := rows.Close(); err != nil {
		return driver.Failed, s.failed(err)
	}
	if !isThere {
		return driver.NotFound, nil
	}
	return op.Deliver(value), nil
}

// write runs a statement with a time.
func (s *session) write(statement string, arguments ...any) (driver.Status, error) {
	err := s.control.Query(statement, arguments...).WithTimestamp(s.timestamp()).Exec()
	return driver.OK, s.failed(err)
}

// Put writes a value.
func (s *session) Put(op *driver.Op) (driver.Status, error) {
	if !hasKey(op) {
		return driver.TooLarge, driver.Fail(driver.TooLarge, "Cassandra has no empty keys")
	}
	value := op.Value
	if value == nil {
		value = []byte{} // nil would be NULL
	}
	if seconds := op.SecondsToLive(); seconds != 0 {
		return s.write(s.putUntil, op.Key, value, int(seconds))
	}
	return s.write(s.put, op.Key, value)
}

// Delete deletes a key; whether it existed is unknown, because nothing is read.
func (s *session) Delete(op *driver.Op) (driver.Status, error) {
	if !hasKey(op) {
		return driver.OK, nil
	}
	return s.write(s.remove, op.Key)
}

// Group of gets is one request; other groups run op by op, because a batch of several partitions is not isolated.
func (s *session) Group(ops []driver.Op, isAtomic bool) (driver.Status, error) {
	if isAtomic {
		return driver.Unsupported, nil
	}
	keys := make([][]byte, 0, len(ops))
	for i := range ops {
		if ops[i].Kind() != driver.Get {
			return driver.NotRun, nil
		}
		if hasKey(&ops[i]) {
			keys = append(keys, ops[i].Key)
		}
	}
	found := make(map[string][]byte, len(keys))
	if len(keys) > 0 {
		rows := s.ask(&ops[0], s.gets, keys).Iter()
		for {
			var key, value []byte // Scan reuses the memory of a slice
			if !rows.Scan(&key, &value) {
				break
			}
			found[string(key)] = value
		}
		if err := rows.Close(); err != nil {
			return driver.Failed, s.failed(err)
		}
	}
	for i := range ops {
		status := driver.NotFound
		if value, isThere := found[string(ops[i].Key)]; isThere {
			status = ops[i].Deliver(value)
		}
		ops[i].SetStatus(status)
	}
	return driver.OK, nil
}

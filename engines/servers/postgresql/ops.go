// Ops: each is a prepared statement and a transaction of its own.

package postgresql

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"kvdyno/driver"
)

const (
	// Rows of the first request of a scan, and the most of a later one.
	firstRows, mostRows = 128, 4096
	// tries of a transaction that others interfere with.
	tries = 1000
)

type session struct {
	*database
	connection *pgconn.PgConn
	prepared   map[*statement]bool
	limit      [8]byte
}

// statement that sessions prepare; %s is the table.
type statement struct{ name, text string }

var (
	get      = &statement{"get", "SELECT value FROM %s WHERE key = $1"}
	put      = &statement{"put", "INSERT INTO %s (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value"}
	putNew   = &statement{"put_new", "INSERT INTO %s (key, value) VALUES ($1, $2) ON CONFLICT (key) DO NOTHING"}
	appendTo = &statement{"append", "INSERT INTO %s AS t (key, value) VALUES ($1, $2) " +
		"ON CONFLICT (key) DO UPDATE SET value = t.value || excluded.value"}
	remove = &statement{"delete", "DELETE FROM %s WHERE key = $1"}
)

// scan makes the statement of a scan.
func scan(isKeysOnly, isBounded, isReverse bool) *statement {
	name, text := "scan", "SELECT key, value FROM %s WHERE key >= $1"
	if isKeysOnly {
		name, text = name+"_keys", "SELECT key, ''::bytea FROM %s WHERE key >= $1"
	}
	limit := "$2"
	if isBounded {
		name, text, limit = name+"_to", text+" AND key < $2", "$3"
	}
	text += " ORDER BY key"
	if isReverse {
		name, text = name+"_reverse", text+" DESC"
	}
	return &statement{name, text + " LIMIT " + limit}
}

// scans by their three properties.
var scans = func() (all [2][2][2]*statement) {
	for place := range 8 {
		keys, bounded, reverse := place&1, place>>1&1, place>>2
		all[keys][bounded][reverse] = scan(keys == 1, bounded == 1, reverse == 1)
	}
	return all
}()

func index(is bool) int {
	if is {
		return 1
	}
	return 0
}

// binaryFormat of parameters and results.
var binaryFormat = []int16{1}

// Session has its own connection.
func (d *database) Session() (driver.Session, error) {
	connection, err := d.connect()
	if err != nil {
		return nil, err
	}
	s := &session{database: d, connection: connection, prepared: map[*statement]bool{}}
	for _, each := range []*statement{get, put, putNew, appendTo, remove} {
		if err := s.prepare(each); err != nil {
			return nil, errors.Join(err, s.End())
		}
	}
	return s, nil
}

// End ends a session.
func (s *session) End() error { return s.connection.Close(context.Background()) }

// prepare prepares a statement, once in a session.
func (s *session) prepare(wanted *statement) error {
	if s.prepared[wanted] {
		return nil
	}
	text := strings.Replace(wanted.text, "%s", s.table, 1)
	_, err := s.connection.Prepare(context.Background(), wanted.name, text, nil)
	s.prepared[wanted] = err == nil
	return s.failed(err)
}

// failed turns an error into one with a status and a reason.
func (d *database) failed(err error) error {
	var known *driver.Failure
	if err == nil || errors.As(err, &known) {
		return err
	}
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		switch answer.Code {
		case "53100": // disk full
			return driver.Fail(driver.Full, "%s", answer.Message)
		case "54000": // program limit exceeded: an index row is too large
			return driver.Fail(driver.TooLarge, "%s", answer.Message)
		case "57014":
			return driver.Fail(driver.Failed, "no answer within %v (option timeout)", d.timeout)
		case "57P01", "57P02", "57P03": // the server is shutting down
		default:
			return driver.Fail(driver.Failed, "%s (%s)", answer.Message, answer.Code)
		}
	}
	if d.server != nil {
		return d.server.process.Explain(err)
	}
	return err
}

// isConflict reports whether another transaction has interfered, so that this one had no effect and may be tried again.
func isConflict(err error) bool {
	var answer *pgconn.PgError
	return errors.As(err, &answer) && (answer.Code == "40001" || answer.Code == "40P01")
}

// query is the statement of an op outside scans, and its arguments: nil would be NULL.
func query(op *driver.Op) (wanted *statement, arguments [][]byte) {
	switch op.Kind() {
	case driver.Get:
		return get, [][]byte{present(op.Key)}
	case driver.Delete:
		return remove, [][]byte{present(op.Key)}
	case driver.Merge:
		wanted = appendTo
	default:
		if wanted = put; op.IsNew() {
			wanted = putNew
		}
	}
	return wanted, [][]byte{present(op.Key), present(op.Value)}
}

func present(bytes []byte) []byte {
	if bytes == nil {
		return []byte{}
	}
	return bytes
}

// answer reads the result of an op.
func answer(op *driver.Op, result *pgconn.ResultReader) (driver.Status, error) {
	status := driver.OK
	if op.Kind() == driver.Get {
		if status = driver.NotFound; result.NextRow() {
			status = op.Deliver(result.Values()[0])
		}
	}
	tag, err := result.Close()
	if err != nil {
		return driver.Failed, err
	}
	switch {
	case op.Kind() == driver.Put && op.IsNew() && tag.RowsAffected() == 0:
		status = driver.Exists
	case op.Kind() == driver.Delete && tag.RowsAffected() == 0:
		status = driver.NotFound
	}
	return status, nil
}

func (s *session) one(op *driver.Op) (driver.Status, error) {
	wanted, arguments := query(op)
	status, err := answer(op, s.connection.ExecPrepared(context.Background(), wanted.name, arguments, binaryFormat, binaryFormat))
	return status, s.failed(err)
}

// Get reads a value.
func (s *session) Get(op *driver.Op) (driver.Status, error) { return s.one(op) }

// Put writes a value.
func (s *session) Put(op *driver.Op) (driver.Status, error) { return s.one(op) }

// Delete deletes a key.
func (s *session) Delete(op *driver.Op) (driver.Status, error) { return s.one(op) }

// Merge appends bytes.
func (s *session) Merge(op *driver.Op) (driver.Status, error) { return s.one(op) }

// Scan reads pages, each of them a statement.
func (s *session) Scan(op *driver.Op) (driver.Status, error) {
	from, to := op.Range()
	from = present(from)
	rows := op.Rows()
	wanted := min(int64(op.Limit()), firstRows)
	if op.IsResumed() {
		wanted++ // the row that is skipped
	}
	for {
		count, last, err := s.page(op, &rows, from, to, wanted)
		if err != nil {
			return driver.Failed, s.failed(err)
		}
		if last == nil || count < wanted {
			return rows.Status(), nil
		}
		if op.IsReverse() {
			to = last
		} else {
			from = append(last, 0)
		}
		wanted = min(4*wanted, mostRows)
	}
}

// page delivers rows of the range, and returns the key of the last one; nil if the scan has ended.
func (s *session) page(op *driver.Op, rows *driver.Rows, from, to []byte, wanted int64) (count int64, last []byte, err error) {
	statement := scans[index(op.KeysOnly())][index(to != nil)][index(op.IsReverse())]
	if err := s.prepare(statement); err != nil {
		return 0, nil, err
	}
	arguments := [][]byte{from}
	if to != nil {
		arguments = append(arguments, to)
	}
	binary.BigEndian.PutUint64(s.limit[:], uint64(min(wanted, math.MaxInt64)))
	arguments = append(arguments, s.limit[:])
	result := s.connection.ExecPrepared(context.Background(), statement.name, arguments, binaryFormat, binaryFormat)
	goesOn := true
	for result.NextRow() {
		count++
		if values := result.Values(); goesOn {
			goesOn = rows.Push(values[0], values[1])
			last = append(last[:0], values[0]...)
		}
	}
	if _, err := result.Close(); err != nil {
		return 0, nil, err
	}
	if !goesOn {
		last = nil
	} else if count > 0 && last == nil {
		last = []byte{}
	}
	return count, bytes.Clone(last), nil
}

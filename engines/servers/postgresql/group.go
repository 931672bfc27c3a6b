// Groups: joined ops are sent together, and are one transaction.

package postgresql

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"kvdyno/driver"
)

// errShort ends a transaction without an effect, because a value did not fit.
var errShort = errors.New("short")

// Group sends all statements at once. Without a BEGIN they are one transaction, up to the Sync at their end.
func (s *session) Group(ops []driver.Op, isAtomic bool) (driver.Status, error) {
	gets := 0
	for i := range ops {
		switch ops[i].Kind() {
		case driver.Get:
			gets++
		case driver.Put, driver.Delete, driver.Merge:
		default:
			return driver.NotRun, nil
		}
	}
	// In the order of the keys, so that two groups do not wait for each other; ops of one key keep their order.
	sorted := make([]*driver.Op, len(ops))
	for i := range ops {
		sorted[i] = &ops[i]
	}
	if gets < len(ops) {
		slices.SortStableFunc(sorted, func(a, b *driver.Op) int { return bytes.Compare(a.Key, b.Key) })
	}
	needsBegin := isAtomic && gets > 0
	for range tries {
		err := s.send(sorted, needsBegin)
		if err != nil && needsBegin {
			err = errors.Join(err, s.command("ROLLBACK"))
		}
		switch {
		case err == nil:
			return driver.OK, nil
		case errors.Is(err, errShort):
			return driver.Short, nil
		case !isConflict(err):
			return driver.Failed, s.failed(err)
		}
		ops[0].Retried()
	}
	return driver.Conflict, nil
}

// send runs a group. With gets in a transaction it begins one with a snapshot, and commits when all values have fitted.
func (s *session) send(ops []*driver.Op, needsBegin bool) error {
	batch := &pgconn.Batch{}
	if needsBegin {
		batch.ExecParams("BEGIN ISOLATION LEVEL REPEATABLE READ", nil, nil, nil, nil)
	}
	for _, op := range ops {
		wanted, arguments := query(op)
		batch.ExecPrepared(wanted.name, arguments, binaryFormat, binaryFormat)
	}
	results := s.connection.ExecBatch(context.Background(), batch)
	isShort, next := false, 0
	if needsBegin {
		next = -1
	}
	for ; results.NextResult(); next++ {
		if next < 0 {
			continue
		}
		status, err := answer(ops[next], results.ResultReader())
		if err != nil {
			break // Close has the error
		}
		isShort = isShort || status == driver.Short
		ops[next].SetStatus(status)
	}
	if err := results.Close(); err != nil {
		return err
	}
	if needsBegin && isShort {
		return errShort
	}
	if needsBegin {
		return s.command("COMMIT")
	}
	return nil
}

func (s *session) command(text string) error {
	_, err := s.connection.Exec(context.Background(), text).ReadAll()
	return err
}

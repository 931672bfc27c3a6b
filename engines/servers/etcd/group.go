// Groups: joined gets and writes are one request, and transactions are optimistic.

package etcd

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"kvdyno/driver"
)

// tries of a transaction that others interfere with.
const tries = 1000

// requestLimit is the largest request of etcd as shipped. A user's servers may have another limit, which they do not report.
const requestLimit = 3 << 19

// requestBytes of writes that need not be atomic are one request.
const requestBytes = 1 << 20

// Group runs joined ops.
func (s *session) Group(ops []driver.Op, isAtomic bool) (driver.Status, error) {
	gets, plain := 0, 0
	seen := make(map[string]bool, len(ops))
	for i := range ops {
		op := &ops[i]
		switch {
		case op.Kind() == driver.Get:
			gets++
		case op.Kind() == driver.Delete, op.Kind() == driver.Put && !op.IsNew():
			plain++
		}
		seen[string(op.Key)] = true
	}
	ctx, cancel := s.context()
	defer cancel()
	var status driver.Status
	var err error
	switch {
	case gets == len(ops):
		status, err = s.getAll(ctx, ops)
	case plain == len(ops) && len(seen) == len(ops):
		status, err = s.writeAll(ctx, ops, isAtomic)
	case isAtomic:
		status, err = s.transact(ctx, ops)
	default:
		return driver.NotRun, nil
	}
	var known *driver.Failure
	if errors.As(err, &known) {
		return driver.Failed, err
	}
	return status, s.failed(err)
}

func (s *session) getAll(ctx context.Context, ops []driver.Op) (driver.Status, error) {
	gets := make([]clientv3.Op, len(ops))
	for i := range ops {
		gets[i] = s.get(&ops[i])
	}
	found, err := s.client.Txn(ctx).Then(gets...).Commit()
	if err != nil {
		return driver.Failed, err
	}
	for i := range ops {
		rows := found.Responses[i].GetResponseRange().Kvs
		if len(rows) == 0 {
			ops[i].SetStatus(driver.NotFound)
		} else {
			ops[i].SetStatus(ops[i].Deliver(rows[0].Value))
		}
	}
	return driver.OK, nil
}

// writeAll writes different keys in one transaction; a group that need not be atomic is divided if it is large.
func (s *session) writeAll(ctx context.Context, ops []driver.Op, isAtomic bool) (driver.Status, error) {
	for first := 0; first < len(ops); {
		var writes []clientv3.Op
		bytes, next := 0, first
		for ; next < len(ops); next++ {
			op := &ops[next]
			bytes += len(op.Key) + len(op.Value)
			if !isAtomic && next > first && bytes > requestBytes {
				break
			}
			write := clientv3.OpDelete(s.key(op))
			if op.Kind() == driver.Put {
				var err error
				if write, err = s.put(ctx, op); err != nil {
					return driver.Failed, err
				}
			}
			writes = append(writes, write)
		}
		done, err := s.client.Txn(ctx).Then(writes...).Commit()
		if err != nil {
			return driver.Failed, err
		}
		for i, response := range done.Responses {
			ops[first+i].SetStatus(written(response))
		}
		first = next
	}
	return driver.OK, nil
}

func written(response *etcdserverpb.ResponseOp) driver.Status {
	if deleted := response.GetResponseDeleteRange(); deleted != nil && deleted.Deleted == 0 {
		return driver.NotFound
	}
	return driver.OK
}

// row of a transaction: as it was read, with the changes of the transaction so far.
type row struct {
	revision  int64 // of the last change before the transaction; 0: absent
	isPresent bool
	value     []byte
	change    *clientv3.Op // the last one
}

// transact reads all rows, applies the ops to them, and writes the changes if no row has changed since.
func (s *session) transact(ctx context.Context, ops []driver.Op) (driver.Status, error) {
	for range tries {
		rows, err := s.read(ctx, ops)
		if err != nil {
			return driver.Failed, err
		}
		if isShort, err := s.apply(ctx, ops, rows); err != nil || isShort {
			return driver.Short, err
		}
		var unchanged []clientv3.Cmp
		var changes []clientv3.Op
		for key, row := range rows {
			unchanged = append(unchanged, clientv3.Compare(clientv3.ModRevision(key), "=", row.revision))
			if row.change != nil {
				changes = append(changes, *row.change)
			}
		}
		if len(changes) == 0 {
			return driver.OK, nil
		}
		done, err := s.client.Txn(ctx).If(unchanged...).Then(changes...).Commit()
		if err != nil {
			return driver.Failed, err
		}
		if done.Succeeded {
			return driver.OK, nil
		}
		ops[0].Retried()
	}
	return driver.Conflict, nil
}

// read reads the rows of all ops at one revision.
func (s *session) read(ctx context.Context, ops []driver.Op) (map[string]*row, error) {
	rows := make(map[string]*row, len(ops))
	var gets []clientv3.Op
	for i := range ops {
		key := s.key(&ops[i])
		if rows[key] == nil {
			rows[key] = &row{}
			gets = append(gets, clientv3.OpGet(key))
		}
	}
	found, err := s.client.Txn(ctx).Then(gets...).Commit()
	if err != nil {
		return nil, err
	}
	for _, response := range found.Responses {
		for _, read := range response.GetResponseRange().Kvs {
			*rows[string(read.Key)] = row{revision: read.ModRevision, isPresent: true, value: read.Value}
		}
	}
	return rows, nil
}

// apply gives each op its answer, in order. A value that does not fit ends the transaction without an effect.
func (s *session) apply(ctx context.Context, ops []driver.Op, rows map[string]*row) (isShort bool, err error) {
	for i := range ops {
		op := &ops[i]
		row, status := rows[s.key(op)], driver.OK
		switch op.Kind() {
		case driver.Get:
			if status = driver.NotFound; row.isPresent {
				status = op.Deliver(row.value)
			}
		case driver.Put:
			if op.IsNew() && row.isPresent {
				status = driver.Exists
				break
			}
			put, err := s.put(ctx, op)
			if err != nil {
				return false, err
			}
			row.isPresent, row.value, row.change = true, op.Value, &put
		case driver.Delete:
			if !row.isPresent {
				status = driver.NotFound
				break
			}
			remove := clientv3.OpDelete(s.key(op))
			row.isPresent, row.change = false, &remove
		default:
			return false, driver.Fail(driver.Unsupported, "a transaction may have only gets, puts and deletes")
		}
		if status == driver.Short {
			return true, nil
		}
		op.SetStatus(status)
	}
	return false, nil
}

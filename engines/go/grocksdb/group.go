// Groups: batches, indexed batches and multi-gets.

package main

import (
	"errors"

	"github.com/linxGnu/grocksdb"

	"kvdyno/driver"
)

var (
	errOperand = errors.New("merge: the operand must have 8 bytes")
	errKind    = driver.Fail(driver.Unsupported, "a transaction may have only gets, puts, deletes and merges")
)

// writes is a batch, with or without an index.
type writes interface {
	PutCF(column *grocksdb.ColumnFamilyHandle, key, value []byte)
	DeleteCF(column *grocksdb.ColumnFamilyHandle, key []byte)
	MergeCF(column *grocksdb.ColumnFamilyHandle, key, value []byte)
}

func (s *session) add(batch writes, op *driver.Op) error {
	switch op.Kind() {
	case driver.Put:
		batch.PutCF(s.column(op), op.Key, op.Value)
	case driver.Delete:
		batch.DeleteCF(s.column(op), op.Key)
	case driver.Merge:
		if len(op.Value) != 8 {
			return errOperand
		}
		batch.MergeCF(s.column(op), op.Key, op.Value)
	default:
		return errKind
	}
	op.SetStatus(driver.OK)
	return nil
}

// Group of gets is one MultiGet; writes are one atomic batch; a transaction of both reads a snapshot and its own writes
// so far.
func (s *session) Group(ops []driver.Op, isAtomic bool) (driver.Status, error) {
	gets := 0
	for i := range ops {
		if ops[i].Kind() == driver.Get {
			gets++
		}
	}
	switch {
	case gets == len(ops):
		return s.getAll(ops)
	case gets == 0:
		return s.writeAll(ops)
	case isAtomic:
		return s.transact(ops)
	}
	return driver.NotRun, nil
}

func (s *session) getAll(ops []driver.Op) (driver.Status, error) {
	columns, keys := make(grocksdb.ColumnFamilyHandles, len(ops)), make([][]byte, len(ops))
	for i := range ops {
		columns[i], keys[i] = s.column(&ops[i]), ops[i].Key
	}
	found, err := s.db.MultiGetCFMultiCF(s.read, columns, keys)
	if err != nil {
		return driver.Failed, failed(err)
	}
	for i := range ops {
		status := driver.NotFound
		if found[i].Exists() {
			status = ops[i].Deliver(found[i].Data())
		}
		ops[i].SetStatus(status)
	}
	found.Destroy()
	return driver.OK, nil
}

func (s *session) writeAll(ops []driver.Op) (driver.Status, error) {
	batch := grocksdb.NewWriteBatch()
	defer batch.Destroy()
	for i := range ops {
		if err := s.add(batch, &ops[i]); err != nil {
			return driver.Failed, err
		}
	}
	return driver.OK, failed(s.db.Write(s.write, batch))
}

func (s *session) transact(ops []driver.Op) (driver.Status, error) {
	snapshot := s.db.NewSnapshot()
	defer s.db.ReleaseSnapshot(snapshot)
	read := grocksdb.NewDefaultReadOptions()
	defer read.Destroy()
	read.SetSnapshot(snapshot)
	batch := grocksdb.NewWriteBatchWI(0, true)
	defer batch.Destroy()
	for i := range ops {
		op := &ops[i]
		if op.Kind() != driver.Get {
			if err := s.add(batch, op); err != nil {
				return driver.Failed, err
			}
			continue
		}
		found, err := batch.GetFromDBWithCF(s.db, read, s.column(op), op.Key)
		if err != nil {
			return driver.Failed, failed(err)
		}
		status := driver.NotFound
		if found.Exists() {
			status = op.Deliver(found.Data())
		}
		found.Free()
		if status == driver.Short {
			return driver.Short, nil
		}
		op.SetStatus(status)
	}
	return driver.OK, failed(s.db.WriteWI(s.write, batch))
}

// Ops outside groups, and scans.

package main

import (
	"github.com/linxGnu/grocksdb"

	"kvdyno/driver"
)

// session holds the read options of a thread, which scans change.
type session struct {
	*database
	bounds *grocksdb.ReadOptions
}

// Session returns a session for one thread.
func (d *database) Session() (driver.Session, error) {
	return &session{d, grocksdb.NewDefaultReadOptions()}, nil
}

// End ends a session.
func (s *session) End() error {
	s.bounds.Destroy()
	return nil
}

func (d *database) column(op *driver.Op) *grocksdb.ColumnFamilyHandle {
	return d.columns[op.Keyspace()]
}

// Get reads a value: pinned, so that it is copied once. It crosses to C three times: to find, to read, to release.
func (s *session) Get(op *driver.Op) (driver.Status, error) {
	pinned, err := s.db.GetPinnedCF(s.read, s.column(op), op.Key)
	if err != nil {
		return driver.Failed, failed(err)
	} else if !pinned.Exists() {
		return driver.NotFound, nil
	}
	status := op.Deliver(pinned.Data())
	pinned.Destroy()
	return status, nil
}

// Put writes a value.
func (s *session) Put(op *driver.Op) (driver.Status, error) {
	return driver.OK, failed(s.db.PutCF(s.write, s.column(op), op.Key, op.Value))
}

// Delete deletes a key.
func (s *session) Delete(op *driver.Op) (driver.Status, error) {
	return driver.OK, failed(s.db.DeleteCF(s.write, s.column(op), op.Key))
}

// Merge adds to a counter, with RocksDB's own operator.
func (s *session) Merge(op *driver.Op) (driver.Status, error) {
	if len(op.Value) != 8 {
		return driver.Failed, errOperand
	}
	return driver.OK, failed(s.db.MergeCF(s.write, s.column(op), op.Key, op.Value))
}

// Scan uses a separate iterator over the range that the scan may deliver. A row crosses to C four times.
func (s *session) Scan(op *driver.Op) (driver.Status, error) {
	from, to := op.Range()
	s.bounds.SetIterateLowerBound(from)
	s.bounds.SetIterateUpperBound(to)
	iterator := s.db.NewIteratorCF(s.bounds, s.column(op))
	defer iterator.Close()
	rows := op.Rows()
	next := iterator.Next
	if op.IsReverse() {
		next = iterator.Prev
		iterator.SeekToLast()
	} else {
		iterator.SeekToFirst()
	}
	for ; iterator.Valid(); next() {
		var value []byte
		if !op.KeysOnly() {
			value = iterator.Value().Data()
		}
		if !rows.Push(iterator.Key().Data(), value) {
			break
		}
	}
	return rows.Status(), failed(iterator.Err())
}

// The transactional interface: each op is an optimistic transaction, or reads at a new timestamp.

package tikv

import (
	"bytes"
	"context"
	"errors"

	tikverr "github.com/tikv/client-go/v2/error"
	"github.com/tikv/client-go/v2/oracle"
	"github.com/tikv/client-go/v2/tikv"
	"github.com/tikv/client-go/v2/txnkv/transaction"
	"github.com/tikv/client-go/v2/txnkv/txnsnapshot"
	pd "github.com/tikv/pd/client"
	"go.etcd.io/etcd/api/v3/mvccpb"

	"kvdyno/driver"
)

const (
	// tries of a transaction that others interfere with.
	tries = 1000
	// timestampMs is the time in which a timestamp is asked for again, in milliseconds.
	timestampMs = 15000
	// requestBytes of writes that need not be atomic are one transaction; an entry of a store's log has 8 MiB at most.
	requestBytes = 1 << 20
)

type transactional struct {
	base
	store  *tikv.KVStore
	commit string
}

func openTransactional(made base, own *driver.Config, opened *driver.Opened) (driver.Database, error) {
	commit, err := own.Choice("commit")
	if err != nil {
		return nil, err
	}
	files := security(own)
	client, err := pd.NewClientWithContext(context.Background(), made.cluster.hosts(), pd.SecurityOption{CAPath: files.ClusterSSLCA,
		CertPath: files.ClusterSSLCert, KeyPath: files.ClusterSSLKey}, pdOptions()...)
	if err != nil {
		return nil, made.cluster.isNoPD(err)
	}
	coded := tikv.NewCodecPDClient(tikv.ModeTxn, client)
	store, err := tikv.NewKVStore("kvdyno", coded, noSafePoint{}, tikv.NewRPCClient(tikv.WithSecurity(files),
		tikv.WithCodec(coded.GetCodec())))
	if err != nil {
		client.Close()
		return nil, made.cluster.isNoPD(err)
	}
	d := &transactional{base: made, store: store, commit: commit}
	if err := d.cluster.look(coded); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if err := d.begin(own, opened, coded, d); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	opened.Effective("commit", commit)
	opened.Effective("consistency", "linearizable; a transaction reads a snapshot")
	return d, nil
}

// noSafePoint answers the client's question for the time before which versions may be missing. A snapshot here is at most as old as
// the longest timeout, and TiKV keeps versions for longer.
type noSafePoint struct{}

func (noSafePoint) Put(string, string) error                         { return nil }
func (noSafePoint) Get(string) (string, error)                       { return "", nil }
func (noSafePoint) GetWithPrefix(string) ([]*mvccpb.KeyValue, error) { return nil, nil }
func (noSafePoint) Close() error                                     { return nil }

// Close leaves the rows for the next new database to delete.
func (d *transactional) Close() error {
	return errors.Join(d.failed(d.claim.close(d.timeout)), d.store.Close())
}

// Session of a thread: it has nothing of its own, because all share the client's connections.
func (d *transactional) Session() (driver.Session, error) { return &transactions{d}, nil }

type transactions struct{ *transactional }

// End ends a session.
func (s *transactions) End() error { return nil }

// now asks PD for a timestamp: one after that of all transactions whose commit was acknowledged.
func (d *transactional) now(ctx context.Context) (uint64, error) {
	return d.store.GetTimestampWithRetry(tikv.NewBackoffer(ctx, timestampMs), oracle.GlobalTxnScope)
}

func (d *transactional) snapshot(ctx context.Context) (*txnsnapshot.KVSnapshot, error) {
	now, err := d.now(ctx)
	if err != nil {
		return nil, err
	}
	return d.store.GetSnapshot(now), nil
}

// body is what a transaction does; false: it has nothing to commit.
type body func(ctx context.Context, transaction *transaction.KVTxn) (driver.Status, bool, error)

// transact runs a transaction, again for as long as others interfere.
func (d *transactional) transact(ctx context.Context, retried func(), run body) (driver.Status, error) {
	for range tries {
		now, err := d.now(ctx)
		if err != nil {
			return driver.Failed, d.failed(err)
		}
		own, err := d.store.Begin(tikv.WithStartTS(now))
		if err != nil {
			return driver.Failed, d.failed(err)
		}
		own.SetEnable1PC(d.commit == "1pc")
		own.SetEnableAsyncCommit(d.commit != "2pc")
		status, hasWritten, err := run(ctx, own)
		if err != nil || !hasWritten {
			return status, errors.Join(d.failed(err), own.Rollback())
		}
		if err = own.Commit(ctx); err == nil {
			return status, nil
		}
		if !isConflict(err) {
			return driver.Failed, d.failed(err)
		}
		retried()
	}
	return driver.Conflict, nil
}

// isConflict reports whether a transaction had no effect because of another one.
func isConflict(err error) bool {
	var again *tikverr.ErrRetryable
	return tikverr.IsErrWriteConflict(err) || errors.As(err, &again)
}

func (d *transactional) read(ctx context.Context, key string) ([]byte, error) {
	snapshot, err := d.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	found, err := snapshot.Get(ctx, []byte(key))
	if tikverr.IsErrNotFound(err) {
		return nil, nil
	}
	return found, err
}

func (d *transactional) write(ctx context.Context, key string, value []byte) error {
	_, err := d.transact(ctx, func() {}, func(_ context.Context, own *transaction.KVTxn) (driver.Status, bool, error) {
		return driver.OK, true, own.Set([]byte(key), value)
	})
	return err
}

func (d *transactional) list(ctx context.Context, from, to string, most int) ([]row, error) {
	snapshot, err := d.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	found, err := snapshot.Iter([]byte(from), []byte(to))
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var all []row
	for found.Valid() && len(all) < most {
		all = append(all, row{string(found.Key()), string(found.Value())})
		if err := found.Next(); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (d *transactional) clear(ctx context.Context, from, to string) error {
	_, err := d.store.DeleteRange(ctx, []byte(from), []byte(to), 1)
	return err
}

// Get reads at a new timestamp.
func (s *transactions) Get(op *driver.Op) (driver.Status, error) {
	ctx, cancel := s.context()
	defer cancel()
	snapshot, err := s.snapshot(ctx)
	if err != nil {
		return driver.Failed, s.failed(err)
	}
	value, err := snapshot.Get(ctx, s.key(op.Key))
	if tikverr.IsErrNotFound(err) {
		return driver.NotFound, nil
	}
	if err != nil {
		return driver.Failed, s.failed(err)
	}
	return op.Deliver(value), nil
}

// Put is a transaction of one write; one that must be new reads before.
func (s *transactions) Put(op *driver.Op) (driver.Status, error) { return s.one(op) }

// Delete is a transaction of one write, which does not read before.
func (s *transactions) Delete(op *driver.Op) (driver.Status, error) { return s.one(op) }

func (s *transactions) one(op *driver.Op) (driver.Status, error) {
	ctx, cancel := s.context()
	defer cancel()
	return s.transact(ctx, op.Retried, func(ctx context.Context, own *transaction.KVTxn) (driver.Status, bool, error) {
		status, err := s.apply(ctx, own, op)
		return status, status == driver.OK, err
	})
}

// apply runs one op in a transaction.
func (s *transactions) apply(ctx context.Context, own *transaction.KVTxn, op *driver.Op) (driver.Status, error) {
	key := s.key(op.Key)
	switch op.Kind() {
	case driver.Get:
		value, err := own.Get(ctx, key)
		if tikverr.IsErrNotFound(err) {
			return driver.NotFound, nil
		}
		if err != nil {
			return driver.Failed, err
		}
		return op.Deliver(value), nil
	case driver.Put:
		if len(op.Value) == 0 {
			return driver.TooLarge, noValue()
		}
		if op.IsNew() {
			_, err := own.Get(ctx, key)
			if err == nil {
				return driver.Exists, nil
			}
			if !tikverr.IsErrNotFound(err) {
				return driver.Failed, err
			}
		}
		// The client keeps the slice until the commit has ended, of which a part may run in the background.
		return driver.OK, own.Set(key, bytes.Clone(op.Value))
	case driver.Delete:
		return driver.OK, own.Delete(key)
	}
	return driver.Unsupported, driver.Fail(driver.Unsupported, "a transaction may have only gets, puts and deletes")
}

// cursor of a scan.
type cursor interface {
	Valid() bool
	Key() []byte
	Value() []byte
	Next() error
	Close()
}

// Scan reads pages of one snapshot.
func (s *transactions) Scan(op *driver.Op) (driver.Status, error) {
	ctx, cancel := s.context()
	defer cancel()
	from, to := s.bounds(op)
	rows := op.Rows()
	if bytes.Compare(from, to) >= 0 {
		return rows.Status(), nil
	}
	snapshot, err := s.snapshot(ctx)
	if err != nil {
		return driver.Failed, s.failed(err)
	}
	snapshot.SetKeyOnly(op.KeysOnly())
	snapshot.SetScanBatchSize(int(min(max(uint64(op.Limit())+1, 2), uint64(s.page))))
	var found cursor
	if op.IsReverse() {
		found, err = snapshot.IterReverse(to)
	} else {
		found, err = snapshot.Iter(from, to)
	}
	if err != nil {
		return driver.Failed, s.failed(err)
	}
	defer found.Close()
	for found.Valid() && bytes.Compare(found.Key(), from) >= 0 {
		if !rows.Push(found.Key()[len(s.rows):], found.Value()) {
			break
		}
		if err := errors.Join(ctx.Err(), found.Next()); err != nil {
			return driver.Failed, s.failed(err)
		}
	}
	return rows.Status(), nil
}

// Group runs joined ops: gets at one timestamp, and writes, or all ops of an atomic group, in one transaction.
func (s *transactions) Group(ops []driver.Op, isAtomic bool) (driver.Status, error) {
	gets, plain := 0, 0
	for i := range ops {
		switch op := &ops[i]; {
		case op.Kind() == driver.Get:
			gets++
		case op.Kind() == driver.Delete, op.Kind() == driver.Put && !op.IsNew():
			plain++
		}
	}
	ctx, cancel := s.context()
	defer cancel()
	switch {
	case gets == len(ops):
		return s.getAll(ctx, ops)
	case isAtomic:
		return s.together(ctx, ops)
	case plain < len(ops):
		return driver.NotRun, nil
	}
	for first := 0; first < len(ops); {
		size, next := 0, first
		for ; next < len(ops); next++ {
			size += len(ops[next].Key) + len(ops[next].Value)
			if next > first && size > requestBytes {
				break
			}
		}
		if status, err := s.together(ctx, ops[first:next]); err != nil || status != driver.OK {
			return status, err
		}
		first = next
	}
	return driver.OK, nil
}

func (s *transactions) getAll(ctx context.Context, ops []driver.Op) (driver.Status, error) {
	snapshot, err := s.snapshot(ctx)
	if err != nil {
		return driver.Failed, s.failed(err)
	}
	keys := make([][]byte, len(ops))
	for i := range ops {
		keys[i] = s.key(ops[i].Key)
	}
	found, err := snapshot.BatchGet(ctx, keys)
	if err != nil {
		return driver.Failed, s.failed(err)
	}
	for i := range ops {
		status := driver.NotFound
		if value, isThere := found[string(keys[i])]; isThere {
			status = ops[i].Deliver(value)
		}
		ops[i].SetStatus(status)
	}
	return driver.OK, nil
}

// together runs ops in order in one transaction. A value that does not fit ends it without an effect.
func (s *transactions) together(ctx context.Context, ops []driver.Op) (driver.Status, error) {
	return s.transact(ctx, ops[0].Retried, func(ctx context.Context, own *transaction.KVTxn) (driver.Status, bool, error) {
		// What is read is asked for in one request, and kept by the transaction.
		var read [][]byte
		for i := range ops {
			if ops[i].Kind() == driver.Get || ops[i].Kind() == driver.Put && ops[i].IsNew() {
				read = append(read, s.key(ops[i].Key))
			}
		}
		if len(read) > 1 {
			if _, err := own.BatchGet(ctx, read); err != nil {
				return driver.Failed, false, err
			}
		}
		for i := range ops {
			status, err := s.apply(ctx, own, &ops[i])
			if err != nil || status == driver.Short {
				return status, false, err
			}
			ops[i].SetStatus(status)
		}
		return driver.OK, true, nil
	})
}

// The raw interface: each op is one request to a store.

package tikv

import (
	"bytes"
	"context"
	"errors"

	"github.com/tikv/client-go/v2/rawkv"

	"kvdyno/driver"
)

type raw struct {
	base
	client   *rawkv.Client
	isAtomic bool
}

func openRaw(made base, own *driver.Config, opened *driver.Opened) (driver.Database, error) {
	isAtomic, err := own.Flag("atomic")
	if err != nil {
		return nil, err
	}
	hasTime, err := own.Flag("ttl")
	if err != nil {
		return nil, err
	}
	client, err := rawkv.NewClientWithOpts(context.Background(), made.cluster.hosts(), rawkv.WithSecurity(security(own)),
		rawkv.WithPDOptions(pdOptions()...))
	if err != nil {
		return nil, made.cluster.isNoPD(err)
	}
	d := &raw{base: made, client: client.SetAtomicForCAS(isAtomic), isAtomic: isAtomic}
	if err := d.cluster.look(client.GetPDClient()); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if err := d.alone(own); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if err := d.begin(own, opened, client.GetPDClient(), d); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if hasTime && own.Create {
		if err := d.live(); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	if !hasTime {
		opened.Capabilities &^= driver.TimeToLive
	}
	if !isAtomic {
		opened.Capabilities &^= driver.CanNew
	}
	opened.Effective("ttl", hasTime)
	opened.Effective("atomic", isAtomic)
	opened.Effective("consistency", "linearizable; a scan reads pages of different times")
	return d, nil
}

// alone makes sure that the cluster has no rows of transactions. Regions that begin with raw keys would be errors to the clients of
// these, such as TiDB.
func (d *raw) alone(own *driver.Config) error {
	if !own.Create {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), clearLimit)
	defer cancel()
	keys, _, err := d.client.Scan(ctx, nil, nil, 1, rawkv.SetColumnFamily("write"), rawkv.ScanKeyOnly())
	if err != nil {
		return d.failed(err)
	}
	if len(keys) > 0 {
		return driver.Fail(driver.Unsupported, "%s: the cluster has rows of transactions, whose clients raw keys would disturb; use a "+
			"cluster that only raw clients use", d.cluster.address)
	}
	return nil
}

// live makes sure that the cluster stores times to live.
func (d *raw) live() error {
	ctx, cancel := context.WithTimeout(context.Background(), controlLimit)
	defer cancel()
	key := d.key([]byte("ttl"))
	if err := d.client.PutWithTTL(ctx, key, []byte("ttl"), 60); err != nil {
		return driver.Fail(driver.Failed, "option ttl: the cluster stores no times to live; it needs storage.enable-ttl = true in each "+
			"tikv-server's configuration: %s", line(err.Error()))
	}
	return d.failed(d.client.Delete(ctx, key))
}

// Close leaves the rows for the next new database to delete.
func (d *raw) Close() error {
	return errors.Join(d.failed(d.claim.close(d.timeout)), d.client.Close())
}

// Session of a thread: it has nothing of its own, because all share the client's connections.
func (d *raw) Session() (driver.Session, error) { return &requests{d}, nil }

type requests struct{ *raw }

// End ends a session.
func (s *requests) End() error { return nil }

func (d *raw) read(ctx context.Context, key string) ([]byte, error) {
	return d.client.Get(ctx, []byte(key))
}

func (d *raw) write(ctx context.Context, key string, value []byte) error {
	return d.client.Put(ctx, []byte(key), value)
}

func (d *raw) list(ctx context.Context, from, to string, most int) ([]row, error) {
	keys, values, err := d.client.Scan(ctx, []byte(from), []byte(to), most)
	var all []row
	for i, key := range keys {
		all = append(all, row{string(key), string(values[i])})
	}
	return all, err
}

func (d *raw) clear(ctx context.Context, from, to string) error {
	return d.client.DeleteRange(ctx, []byte(from), []byte(to))
}

// Get reads from the leader of the key's region.
func (s *requests) Get(op *driver.Op) (driver.Status, error) {
	ctx, cancel := s.context()
	defer cancel()
	value, err := s.client.Get(ctx, s.key(op.Key))
	if err != nil {
		return driver.Failed, s.failed(err)
	}
	if value == nil {
		return driver.NotFound, nil
	}
	return op.Deliver(value), nil
}

// Put writes a value; one that must be new is a compare-and-swap.
func (s *requests) Put(op *driver.Op) (driver.Status, error) {
	ctx, cancel := s.context()
	defer cancel()
	if !op.IsNew() {
		return driver.OK, s.failed(s.client.PutWithTTL(ctx, s.key(op.Key), op.Value, uint64(op.SecondsToLive())))
	}
	if op.SecondsToLive() != 0 {
		return driver.Unsupported, driver.Fail(driver.Unsupported, "TiKV's compare-and-swap has no time to live")
	}
	_, isNew, err := s.client.CompareAndSwap(ctx, s.key(op.Key), nil, op.Value)
	if err != nil {
		return driver.Failed, s.failed(err)
	}
	if !isNew {
		return driver.Exists, nil
	}
	return driver.OK, nil
}

// Delete deletes a key; whether it was there is unknown, because nothing is read.
func (s *requests) Delete(op *driver.Op) (driver.Status, error) {
	ctx, cancel := s.context()
	defer cancel()
	return driver.OK, s.failed(s.client.Delete(ctx, s.key(op.Key)))
}

// Scan reads pages, each as it is then.
func (s *requests) Scan(op *driver.Op) (driver.Status, error) {
	ctx, cancel := s.context()
	defer cancel()
	from, to := s.bounds(op)
	rows := op.Rows()
	left := uint64(op.Limit())
	if op.IsResumed() {
		left++ // the row that is skipped
	}
	var options []rawkv.RawOption
	if op.KeysOnly() {
		options = append(options, rawkv.ScanKeyOnly())
	}
	for left > 0 && bytes.Compare(from, to) < 0 {
		wanted := int(min(left, uint64(s.page)))
		var keys, values [][]byte
		var err error
		if op.IsReverse() {
			keys, values, err = s.client.ReverseScan(ctx, to, from, wanted, options...)
		} else {
			keys, values, err = s.client.Scan(ctx, from, to, wanted, options...)
		}
		if err != nil {
			return driver.Failed, s.failed(err)
		}
		for i, key := range keys {
			if !rows.Push(key[len(s.rows):], values[i]) {
				return rows.Status(), nil
			}
		}
		if len(keys) < wanted {
			break
		}
		last := keys[len(keys)-1]
		if op.IsReverse() {
			to = last
		} else {
			from = append(bytes.Clone(last), 0)
		}
		left -= uint64(len(keys))
	}
	return rows.Status(), nil
}

// Group of gets, of puts or of deletes is one request to each store; the rest runs op by op.
func (s *requests) Group(ops []driver.Op, isAtomic bool) (driver.Status, error) {
	if isAtomic {
		return driver.Unsupported, nil
	}
	kind := ops[0].Kind()
	keys, values := make([][]byte, len(ops)), make([][]byte, len(ops))
	var seconds []uint64 // nil: all rows stay
	seen := make(map[string]bool, len(ops))
	for i := range ops {
		op := &ops[i]
		if op.Kind() != kind || kind == driver.Put && op.IsNew() || kind == driver.Scan {
			return driver.NotRun, nil
		}
		keys[i], values[i] = s.key(op.Key), op.Value
		if kind == driver.Put && op.SecondsToLive() != 0 {
			if seconds == nil {
				seconds = make([]uint64, len(ops))
			}
			seconds[i] = uint64(op.SecondsToLive())
		}
		seen[string(op.Key)] = true
	}
	ctx, cancel := s.context()
	defer cancel()
	switch {
	case kind == driver.Get:
		return s.getAll(ctx, ops, keys)
	// The order of writes of one key is not kept in a request.
	case len(seen) < len(ops):
		return driver.NotRun, nil
	case kind == driver.Put:
		return s.written(ops, s.client.BatchPutWithTTL(ctx, keys, values, seconds))
	case kind == driver.Delete:
		return s.written(ops, s.client.BatchDelete(ctx, keys))
	}
	return driver.NotRun, nil
}

func (s *requests) written(ops []driver.Op, err error) (driver.Status, error) {
	if err != nil {
		return driver.Failed, s.failed(err)
	}
	for i := range ops {
		ops[i].SetStatus(driver.OK)
	}
	return driver.OK, nil
}

func (s *requests) getAll(ctx context.Context, ops []driver.Op, keys [][]byte) (driver.Status, error) {
	values, err := s.client.BatchGet(ctx, keys)
	if err != nil {
		return driver.Failed, s.failed(err)
	}
	for i := range ops {
		status := driver.NotFound
		if values[i] != nil {
			status = ops[i].Deliver(values[i])
		}
		ops[i].SetStatus(status)
	}
	return driver.OK, nil
}

// Ops: each is a request, and scans are as many as they need.

package etcd

import (
	"context"
	"errors"
	"strings"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"kvdyno/driver"
)

// Rows of the first request of a scan, and the most of a later one.
const firstRows, mostRows = 128, 4096

type session struct {
	*database
	client *clientv3.Client
}

// End ends a session.
func (s *session) End() error { return s.client.Close() }

func (d *database) key(op *driver.Op) string { return d.prefix + string(op.Key) }

// failed turns an error of the client into one with a status and a reason.
func (d *database) failed(err error) error {
	if err == nil {
		return nil
	}
	known := rpctypes.Error(err)
	switch {
	case errors.Is(known, rpctypes.ErrNoSpace):
		return driver.Fail(driver.Full, "%v", known)
	case errors.Is(known, rpctypes.ErrRequestTooLarge), status.Code(err) == codes.ResourceExhausted:
		return driver.Fail(driver.TooLarge, "%v", known)
	// The last is a member's own error, if it sees the deadline first.
	case errors.Is(err, context.DeadlineExceeded), strings.HasSuffix(err.Error(), context.DeadlineExceeded.Error()):
		err = driver.Fail(driver.Failed, "no answer within %v (option timeout)", d.limit())
	}
	switch {
	case d.members != nil:
		return brief(err)
	case d.cluster != nil:
		return d.cluster.explain(err)
	}
	return err
}

// brief is an error while members fail on purpose. Errors are counted by their texts, so what differs from one to the next, such as
// an address, is removed.
func brief(err error) error {
	reported, is := status.FromError(err)
	if !is || reported.Code() != codes.Unavailable {
		return err
	}
	if strings.Contains(reported.Message(), "goaway") {
		return driver.Fail(driver.Failed, "unavailable: the member closes its connections")
	}
	causes := strings.Split(reported.Message(), ": ")
	return driver.Fail(driver.Failed, "unavailable: %s", strings.Trim(causes[len(causes)-1], "\""))
}

// context is that of an op.
func (s *session) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), s.limit())
}

// get is the request for a row: linearizable, or from what the member has.
func (d *database) get(op *driver.Op) clientv3.Op {
	if d.serializable && !op.IsStrong() {
		return clientv3.OpGet(d.key(op), clientv3.WithSerializable())
	}
	return clientv3.OpGet(d.key(op))
}

// Get reads from any member; the client takes them in turn.
func (s *session) Get(op *driver.Op) (driver.Status, error) {
	ctx, cancel := s.context()
	defer cancel()
	answer, err := s.client.Do(ctx, s.get(op))
	if err != nil {
		return driver.Failed, s.failed(err)
	}
	found := answer.Get()
	if len(found.Kvs) == 0 {
		return driver.NotFound, nil
	}
	return op.Deliver(found.Kvs[0].Value), nil
}

// put is the write of an op; a time to live needs a lease, which is a request of its own.
func (s *session) put(ctx context.Context, op *driver.Op) (clientv3.Op, error) {
	seconds := int64(op.SecondsToLive())
	if seconds == 0 {
		return clientv3.OpPut(s.key(op), string(op.Value)), nil
	}
	lease, err := s.client.Grant(ctx, seconds)
	if err != nil {
		return clientv3.Op{}, err
	}
	return clientv3.OpPut(s.key(op), string(op.Value), clientv3.WithLease(lease.ID)), nil
}

// Put writes a value; one that must be new is a transaction.
func (s *session) Put(op *driver.Op) (driver.Status, error) {
	ctx, cancel := s.context()
	defer cancel()
	put, err := s.put(ctx, op)
	if err != nil {
		return driver.Failed, s.failed(err)
	}
	if !op.IsNew() {
		_, err := s.client.Do(ctx, put)
		return driver.OK, s.failed(err)
	}
	isAbsent := clientv3.Compare(clientv3.CreateRevision(s.key(op)), "=", 0)
	done, err := s.client.Txn(ctx).If(isAbsent).Then(put).Commit()
	if err != nil {
		return driver.Failed, s.failed(err)
	}
	if !done.Succeeded {
		return driver.Exists, nil
	}
	return driver.OK, nil
}

// Delete deletes a key.
func (s *session) Delete(op *driver.Op) (driver.Status, error) {
	ctx, cancel := s.context()
	defer cancel()
	done, err := s.client.Delete(ctx, s.key(op))
	if err != nil {
		return driver.Failed, s.failed(err)
	}
	if done.Deleted == 0 {
		return driver.NotFound, nil
	}
	return driver.OK, nil
}

// bounds are the range [from, to) of keys with a prefix. etcd has no empty keys, and a zero byte as the end means no end.
func bounds(prefix string, from, to []byte) (string, string) {
	first, last := prefix+string(from), prefix+string(to)
	if to == nil {
		last = clientv3.GetPrefixRangeEnd(prefix)
	}
	if first == "" {
		first = "\x00"
	}
	return first, last
}

// Scan reads pages of one revision.
func (s *session) Scan(op *driver.Op) (driver.Status, error) {
	ctx, cancel := s.context()
	defer cancel()
	from, to := op.Range()
	next, end := bounds(s.prefix, from, to)
	rows := op.Rows()
	if next >= end && end != "\x00" {
		return rows.Status(), nil
	}
	options := []clientv3.OpOption{clientv3.WithRange(end), clientv3.WithLimit(0), clientv3.WithRev(0)}
	if op.KeysOnly() {
		options = append(options, clientv3.WithKeysOnly())
	}
	plain := options
	if s.serializable && !op.IsStrong() {
		options = append(options, clientv3.WithSerializable())
	}
	wanted := min(int64(op.Limit()), firstRows)
	if op.IsResumed() {
		wanted++ // the row that is skipped
	}
	revision := int64(0)
	for {
		options[1], options[2] = clientv3.WithLimit(wanted), clientv3.WithRev(revision)
		page, err := s.client.Get(ctx, next, options...)
		if err != nil {
			return driver.Failed, s.failed(err)
		}
		for _, row := range page.Kvs {
			if !rows.Push(row.Key[len(s.prefix):], row.Value) {
				return rows.Status(), nil
			}
		}
		if !page.More {
			return rows.Status(), nil
		}
		// Another member may not have this revision yet, unless it asks the leader.
		options = plain
		revision = page.Header.Revision
		next = string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
		wanted = min(4*wanted, mostRows)
	}
}

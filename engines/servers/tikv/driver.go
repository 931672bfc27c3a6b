// Package tikv drives a TiKV cluster by its own client: `tikv` by transactions, `tikv-raw` by the raw interface.
package tikv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/pingcap/log"
	"github.com/tikv/client-go/v2/config"
	tikverr "github.com/tikv/client-go/v2/error"
	pd "github.com/tikv/pd/client"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/grpclog"
	"google.golang.org/grpc/status"

	"kvdyno/driver"
	"kvdyno/servers/host"
)

// Driver is the driver of one of TiKV's two interfaces.
type Driver struct{ isRaw bool }

// Transactional and Raw are the two.
var Transactional, Raw = Driver{}, Driver{isRaw: true}

const (
	// keyBytes is the longest key: TiKV takes 8 KiB as shipped, in which eight bytes of a transaction's key are nine.
	keyBytes = 4096
	// valueBytes is the largest value: an entry of a store's log has 8 MiB as shipped, with the key and the frame of the request.
	valueBytes = 8<<20 - 64<<10
	// longestTimeout bounds the age of a snapshot, which TiKV keeps for ten minutes as shipped.
	longestTimeout = 300
	// controlLimit is the time for an answer to a request that is no op, and clearLimit for one that deletes rows.
	controlLimit, clearLimit = 30 * time.Second, 10 * time.Minute
)

// Info describes the engine.
func (d Driver) Info() driver.Info {
	info := driver.Info{
		Name: "tikv", Engine: "replicated by Raft, ordered, distributed transactions, over gRPC", Family: "server", Language: "Rust",
		Capabilities: driver.Ordered | driver.CanReverse | driver.CanPrefix | driver.MultiGet | driver.Transaction |
			driver.TransactionReads | driver.CanDelete | driver.Overwrite | driver.CanNew | driver.CanTouch,
		Levels: []driver.Level{driver.Power}, KeySizeMax: keyBytes,
		Options: append([]driver.Option{
			{Name: "url", Kind: "text", Default: "", Help: "the running cluster, which is needed: pd://HOST:PORT,HOST:PORT of PD, " +
				"or pds:// for TLS"},
			{Name: "prefix", Kind: "text", Default: "kvdyno/", Help: "begins each key in the cluster"},
			{Name: "abandoned", Kind: "choice:keep|delete", Default: "keep", Help: "what happens to rows of trials that were killed; " +
				"delete: only if no other kvdyno uses the prefix"},
			{Name: "timeout", Kind: "count", Default: "30", Help: "seconds after which an op that has no answer fails, at most 300"},
		}, host.TLSOptions()...),
	}
	if d.isRaw {
		info.Name, info.Engine = "tikv-raw", "replicated by Raft, ordered, without transactions, over gRPC"
		info.Capabilities &^= driver.Transaction | driver.TransactionReads
		info.Capabilities |= driver.TimeToLive
		info.Options = append(info.Options,
			driver.Option{Name: "ttl", Kind: "flag", Default: "false", Help: "the cluster stores times to live (storage.enable-ttl)"},
			driver.Option{Name: "atomic", Kind: "flag", Default: "false",
				Help: "writes are atomic with compare-and-swap, which puts that must be new need; it makes every write slower"})
		return info
	}
	info.Capabilities |= driver.NoEmptyValues
	info.Options = append(info.Options, driver.Option{Name: "commit", Kind: "choice:1pc|async|2pc", Default: "1pc",
		Help: "in one phase where all keys are in one region, otherwise as async; or asynchronously after the first phase; or in two"})
	return info
}

// base is what the databases of both interfaces have.
type base struct {
	cluster *cluster
	claim   *claim
	rows    string // begins the keys of all rows
	timeout time.Duration
	page    int // rows of one request of a scan
}

// Open connects to a cluster and takes a range of keys for itself.
func (d Driver) Open(own *driver.Config, opened *driver.Opened) (driver.Database, error) {
	level, err := own.Pick(driver.Power)
	if err != nil {
		return nil, err
	}
	if folder, err := os.Stat(own.Path); err != nil || !folder.IsDir() {
		return nil, driver.Fail(driver.Failed, "%s is no folder", own.Path)
	}
	seconds, err := own.Number("timeout")
	if err != nil {
		return nil, err
	}
	if seconds < 1 || seconds > longestTimeout {
		return nil, driver.Fail(driver.Failed, "option timeout: expected 1 to %d seconds, got %d", longestTimeout, seconds)
	}
	if own.Text("prefix") == "" {
		return nil, driver.Fail(driver.Failed, "option prefix: it must not be empty, because it tells kvdyno's keys from others")
	}
	abandoned, err := own.Choice("abandoned")
	if err != nil {
		return nil, err
	}
	silence()
	found, err := find(own, d.Info().Name)
	if err != nil {
		return nil, err
	}
	opened.Level, opened.CacheBytes, opened.Capabilities = level, driver.NoCache, d.Info().Capabilities
	opened.Effective("value_size_max", valueBytes)
	opened.Effective("timeout", seconds)
	opened.Effective("prefix", own.Text("prefix"))
	opened.Effective("abandoned", abandoned)
	made := base{cluster: found, timeout: time.Duration(seconds) * time.Second, page: pageOf(own)}
	if d.isRaw {
		return openRaw(made, own, opened)
	}
	return openTransactional(made, own, opened)
}

// pageOf is the number of rows of a scan's request: those of 1 MiB, and as many as the client's own scans have at most.
func pageOf(own *driver.Config) int {
	return min(max((1<<20)/int(max(own.KeySizeMax+own.ValueSizeMax, 1)), 2), 256)
}

// silence turns the logs of the client and of gRPC off: they would be written to the terminal.
func silence() {
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	// What the client thinks is fatal must not end the process.
	quiet := zap.NewNop().WithOptions(zap.WithFatalHook(zapcore.WriteThenPanic))
	log.ReplaceGlobals(quiet, &log.ZapProperties{Core: quiet.Core(), Level: zap.NewAtomicLevelAt(zap.FatalLevel)})
}

// begin takes a range of keys, and reports what is in effect.
func (b *base) begin(own *driver.Config, opened *driver.Opened, client pd.Client, keys space) error {
	ctx, cancel := context.WithTimeout(context.Background(), controlLimit)
	defer cancel()
	taken, err := take(ctx, keys, own)
	if err != nil {
		return b.failed(err)
	}
	b.claim, b.rows = taken, taken.rows()
	left, err := taken.left(ctx)
	if err != nil {
		return b.failed(err)
	}
	b.cluster.tell(own, opened, copies(ctx, client, []byte(b.rows)))
	opened.Effective("abandoned_databases", left)
	return nil
}

func (b *base) key(key []byte) []byte {
	made := make([]byte, 0, len(b.rows)+len(key))
	return append(append(made, b.rows...), key...)
}

// bounds are the range [from, to) of a scan.
func (b *base) bounds(op *driver.Op) (from, to []byte) {
	first, last := op.Range()
	if last == nil {
		return b.key(first), []byte(after(b.rows))
	}
	return b.key(first), b.key(last)
}

// context is that of an op.
func (b *base) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), b.timeout)
}

// failed turns an error of the client into one with a status and a reason of one line.
func (b *base) failed(err error) error {
	var known *driver.Failure
	if err == nil || errors.As(err, &known) {
		return err
	}
	var entry *tikverr.ErrEntryTooLarge
	var whole *tikverr.ErrTxnTooLarge
	text := err.Error()
	switch {
	case errors.As(err, &entry), errors.As(err, &whole), strings.Contains(text, "raft_entry_too_large"),
		strings.Contains(text, "KeyTooLarge"):
		return driver.Fail(driver.TooLarge, "%s", line(text))
	case errors.Is(err, tikverr.ErrTiKVDiskFull):
		return driver.Fail(driver.Full, "%s", line(text))
	case errors.Is(err, context.DeadlineExceeded), status.Code(err) == codes.DeadlineExceeded,
		strings.Contains(text, context.DeadlineExceeded.Error()):
		return driver.Fail(driver.Failed, "%s: no answer in time (option timeout)", b.cluster.address)
	}
	if strings.Contains(text, "failed to decode region") {
		return driver.Fail(driver.Unsupported, "%s: the cluster has raw keys, among which transactions cannot be; use another one",
			b.cluster.address)
	}
	return driver.Fail(driver.Failed, "%s: %s", b.cluster.address, line(text))
}

// line is a text without line breaks.
func line(text string) string { return strings.Join(strings.Fields(text), " ") }

// noValue refuses an empty value, which a transaction takes for a deletion.
func noValue() error {
	return driver.Fail(driver.TooLarge, "a transaction of TiKV has no empty values")
}

// security is the form in which the client takes the files of TLS.
func security(own *driver.Config) config.Security {
	return config.NewSecurity(own.Text("ca-file"), own.Text("cert-file"), own.Text("key-file"), nil)
}

// Maintain has nothing to flush, because each write is synced before its reply.
func (b *base) Maintain(work driver.Work) (bool, error) { return work == driver.Flush, nil }

// Stats reports where the cluster is.
func (b *base) Stats(add func(name string, value any)) {
	add("pd", strings.Join(b.cluster.address.Hosts, ","))
	add("stores", strings.Join(b.cluster.stores, ","))
	add("rows_below", fmt.Sprintf("%q", b.rows))
}

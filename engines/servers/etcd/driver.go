// Package etcd drives etcd: a replicated, ordered store behind gRPC.
package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/grpclog"

	"kvdyno/driver"
	"kvdyno/servers/host"
)

// Driver is the driver of etcd.
type Driver struct{}

func init() { driver.Register(Driver{}) }

// Info describes the engine.
func (Driver) Info() driver.Info {
	return driver.Info{
		Name: "etcd", Engine: "replicated by Raft, ordered, over gRPC", Family: "server",
		Capabilities: driver.Ordered | driver.CanPrefix | driver.MultiGet | driver.Transaction | driver.TransactionReads |
			driver.CanDelete | driver.DeleteTells | driver.Overwrite | driver.CanNew | driver.TimeToLive | driver.CanTouch,
		Levels: []driver.Level{driver.Power},
		Options: append(host.Options("http://HOST:PORT,HOST:PORT or https://"),
			driver.Option{Name: "members", Kind: "choice:1|3|5", Default: "3", Help: "members of the cluster that is started"},
			driver.Option{Name: "reads", Kind: "choice:linearizable|serializable", Default: "linearizable",
				Help: "serializable: any member answers from what it has, which may be stale"},
			driver.Option{Name: "server", Kind: "text", Default: "etcd", Help: "the program to start"},
			driver.Option{Name: "database", Kind: "choice:empty|share|keep", Default: "empty",
				Help: "the user's cluster must have no keys of others, or kvdyno writes beside them, or also leaves no mark"},
			driver.Option{Name: "prefix", Kind: "text", Default: "kvdyno/", Help: "begins each key in the user's cluster"},
			driver.Option{Name: "timeout", Kind: "text", Default: "auto",
				Help: "seconds after which an op that has no answer fails, such as 30 or 0.1; auto: 30, and 0.25 in a phase with faults; " +
					"in the other phases of such a workload at least 30"},
		),
	}
}

type database struct {
	hosts   []string
	secure  *tls.Config
	address *host.URL
	cluster *cluster // nil: the user's
	control *clientv3.Client
	prefix  string
	// The time for an answer to an op: timeout in phases with faults, calm in all others, where an op that fails ends the trial.
	timeout, calm time.Duration
	// Reads need not be the newest, unless they are strong.
	serializable bool
	claim        *claim        // nil: the cluster is ours
	members      *host.Members // nil: the workload has no faults
}

const (
	// controlLimit is the time for an answer to a request that is no op.
	controlLimit = 30 * time.Second
	// opLimit is the time for an answer to an op, unless the option has another; disturbedLimit in a phase with faults: a client
	// that waits longer for a member that is gone would report the outage as longer than it is.
	opLimit, disturbedLimit = 30 * time.Second, 250 * time.Millisecond
)

// opTimeout is the value of the option timeout.
func opTimeout(text string) (time.Duration, error) {
	if text == "auto" {
		if host.AreDisturbed() {
			return disturbedLimit, nil
		}
		return opLimit, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 0.001 && seconds <= 1e6) {
		return 0, driver.Fail(driver.Failed, "option timeout: expected auto, or seconds from 0.001 to 1000000, got `%s`", text)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// limit is the time for an answer to an op now.
func (d *database) limit() time.Duration {
	if d.members.FailNow() {
		return d.timeout
	}
	return d.calm
}

// Open starts a cluster or connects to one.
func (Driver) Open(config *driver.Config, opened *driver.Opened) (driver.Database, error) {
	level, err := config.Pick(driver.Power)
	if err != nil {
		return nil, err
	}
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))
	timeout, err := opTimeout(config.Text("timeout"))
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"members", "database", "reads"} {
		if _, err := config.Choice(name); err != nil {
			return nil, err
		}
	}
	address, err := host.Given(config, "2379", "http", "https")
	if err != nil {
		return nil, err
	}
	made := &database{address: address, timeout: timeout, calm: timeout, serializable: config.Text("reads") == "serializable"}
	if host.AreDisturbed() {
		made.calm = max(timeout, opLimit)
	}
	if err := made.open(config, opened); err != nil {
		if address != nil && !strings.Contains(err.Error(), address.Hosts[0]) {
			err = driver.Fail(driver.Failed, "%s: %v", address, err)
		}
		return nil, errors.Join(err, made.Close())
	}
	opened.Level, opened.Compression, opened.CacheBytes = level, "none", driver.NoCache
	return made, nil
}

func (d *database) open(config *driver.Config, opened *driver.Opened) error {
	var err error
	if d.address == nil {
		if d.cluster, err = startCluster(config); err != nil {
			return err
		}
		d.hosts = d.cluster.clients()
		url := "http://" + strings.Join(d.hosts, ",")
		if err := host.Invite(config, url, "database=keep", "prefix="); err != nil {
			return err
		}
	} else {
		if d.address.Scheme == "https" {
			if d.secure, err = host.TLS(config); err != nil {
				return err
			}
		}
		d.hosts, d.prefix = d.address.Hosts, config.Text("prefix")
		if err := d.address.Reach(d.secure); err != nil {
			return err
		}
		if err := d.address.Answers(d.secure, host.GRPC); err != nil {
			return err
		}
	}
	if d.control, err = d.connect(); err != nil {
		return err
	}
	if d.cluster != nil {
		if err := d.cluster.untilReady(d.control); err != nil {
			return err
		}
	}
	if err := d.tell(config, opened); err != nil || d.cluster == nil {
		return err
	}
	d.members, err = host.Announce(d.cluster.announced(), d.leading)
	return err
}

// tell reports what is in effect, and takes possession of the user's cluster.
func (d *database) tell(config *driver.Config, opened *driver.Opened) error {
	ctx, cancel := d.context()
	defer cancel()
	status, err := d.control.Status(ctx, d.hosts[0])
	if err != nil {
		return d.failed(err)
	}
	listed, err := d.control.MemberList(ctx)
	if err != nil {
		return d.failed(err)
	}
	copies := 0
	for _, member := range listed.Members {
		if !member.IsLearner {
			copies++
		}
	}
	if d.address != nil && config.Text("database") != "keep" {
		if d.claim, err = d.take(config); err != nil {
			return err
		}
	}
	opened.Version = status.Version
	opened.Effective("class", d.address.Class(copies))
	opened.Effective("replication", copies)
	opened.Effective("servers", len(listed.Members))
	switch {
	case !d.serializable:
		opened.Effective("consistency", "linearizable")
	case copies > 1:
		opened.Effective("consistency", "linearizable writes, serializable reads")
		opened.Effective("stale_reads", "possible")
	default:
		opened.Effective("consistency", "serializable reads of the only member, which is up to date")
	}
	// A put of a new key has the key twice.
	opened.Effective("value_size_max", requestLimit-2*(int(config.KeySizeMax)+len(d.prefix))-1024)
	opened.Effective("persistence", "a majority syncs its log before the reply")
	opened.Effective("client", driver.ModuleVersion("go.etcd.io/etcd/client/v3"))
	if d.calm > d.timeout {
		opened.Effective("timeout", fmt.Sprintf("%v, in phases with faults %v", d.calm.Seconds(), d.timeout.Seconds()))
	} else {
		opened.Effective("timeout", d.timeout.Seconds())
	}
	host.Effective(config, opened, d.address)
	for _, name := range []string{"members", "reads", "server", "database", "prefix"} {
		opened.Effective(name, config.Text(name))
	}
	return nil
}

// connect makes a client with its own connections, which takes the members in turn.
func (d *database) connect() (*clientv3.Client, error) {
	scheme := "http://"
	if d.secure != nil {
		scheme = "https://"
	}
	endpoints := make([]string, len(d.hosts))
	for i, name := range d.hosts {
		endpoints[i] = scheme + name
	}
	settings := clientv3.Config{Endpoints: endpoints, DialTimeout: 5 * time.Second, TLS: d.secure, Logger: zap.NewNop()}
	if d.cluster != nil {
		// A proxy cannot reach members with links of their own.
		settings.DialOptions = []grpc.DialOption{grpc.WithNoProxy()}
	}
	if d.address != nil {
		settings.Username, settings.Password = d.address.User, d.address.Password
	}
	client, err := clientv3.New(settings)
	if err != nil {
		return nil, d.failed(err)
	}
	return client, nil
}

// context is that of a request that is no op.
func (d *database) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), controlLimit)
}

// Session has its own client, because sessions would share a connection otherwise.
func (d *database) Session() (driver.Session, error) {
	client, err := d.connect()
	if err != nil {
		return nil, err
	}
	ctx, cancel := d.context()
	defer cancel()
	// The connections are made before the first op.
	for _, name := range d.hosts {
		if _, err := client.Status(ctx, name); err != nil {
			return nil, errors.Join(d.failed(err), client.Close())
		}
	}
	return &session{database: d, client: client}, nil
}

// Close stops the cluster, or leaves the user's with a mark.
func (d *database) Close() error {
	err := d.members.Close()
	if d.claim != nil {
		err = errors.Join(err, d.claim.leave(d))
	}
	leader := ""
	if d.control != nil {
		if d.cluster != nil {
			leader = d.leader()
		}
		err = errors.Join(err, d.control.Close())
	}
	if d.cluster != nil {
		err = errors.Join(err, d.cluster.stop(leader))
	}
	return err
}

// leading is the name of the member that leads; empty if it is unknown.
func (d *database) leading() string {
	address := d.leader()
	for _, each := range d.cluster.members {
		if each.Client == address {
			return each.Name
		}
	}
	return ""
}

// leader is the address of the member that leads; empty if it is unknown.
func (d *database) leader() string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, name := range d.hosts {
		if status, err := d.control.Status(ctx, name); err == nil && status.Leader == status.Header.MemberId {
			return name
		}
	}
	return ""
}

// Maintain has nothing to flush, because each write is synced before its reply. Compact forgets old versions and rewrites
// the files of all members.
func (d *database) Maintain(work driver.Work) (bool, error) {
	switch {
	case work == driver.Flush:
		return true, nil
	case work == driver.Compact && d.cluster != nil:
		return true, d.compact()
	}
	return false, nil
}

func (d *database) compact() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	now, err := d.control.Get(ctx, "revision", clientv3.WithCountOnly())
	if err != nil {
		return d.failed(err)
	}
	if _, err := d.control.Compact(ctx, now.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		return d.failed(err)
	}
	for _, name := range d.hosts {
		if _, err := d.control.Defragment(ctx, name); err != nil {
			return d.failed(err)
		}
	}
	return nil
}

// Stats reports statistics of the first member, unless it does not answer: that may be planned.
func (d *database) Stats(add func(name string, value any)) {
	ctx, cancel := context.WithTimeout(context.Background(), d.limit())
	defer cancel()
	add("addresses", strings.Join(d.hosts, ","))
	status, err := d.control.Status(ctx, d.hosts[0])
	if err != nil {
		return
	}
	add("database_bytes", status.DbSize)
	add("database_in_use_bytes", status.DbSizeInUse)
	add("raft_index", status.RaftIndex)
	add("raft_term", status.RaftTerm)
	add("revision", status.Header.Revision)
}

// Package cassandra drives Apache Cassandra, and ScyllaDB, by CQL: a table of keys and values, spread over nodes by token.
package cassandra

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"kvdyno/driver"
	"kvdyno/servers/host"
)

// Driver is the driver of Cassandra.
type Driver struct{}

func init() { driver.Register(Driver{}) }

// keyBytes is the longest partition key.
const keyBytes = 65535

// Info describes the engine.
func (Driver) Info() driver.Info {
	return driver.Info{
		Name: "cassandra", Engine: "a table of keys and values on one or more nodes, by CQL", Family: "server", Language: "Java",
		Capabilities: driver.MultiGet | driver.CanDelete | driver.Overwrite | driver.TimeToLive | driver.CanTouch,
		Levels:       []driver.Level{driver.None, driver.Power}, KeySizeMax: keyBytes,
		Options: append(host.Options("cassandra://HOST:PORT,HOST:PORT, or cassandras:// for TLS"),
			driver.Option{Name: "home", Kind: "text", Default: "", Help: "the folder of the installation that is started; " +
				"default: KVDYNO_CASSANDRA, that of `make cassandra`, or that of `cassandra` in the PATH"},
			driver.Option{Name: "members", Kind: "choice:1|3", Default: "1", Help: "nodes of the cluster that is started"},
			driver.Option{Name: "heap", Kind: "bytes", Default: "536870912", Help: "the heap of each node that is started"},
			driver.Option{Name: "replication", Kind: "count", Default: "0", Help: "copies of a row; 0: one per node, at most 3"},
			driver.Option{Name: "consistency", Kind: "choice:one|quorum|all", Default: "quorum",
				Help: "copies that a read or a write waits for; with one, reads may be stale"},
			driver.Option{Name: "keyspace", Kind: "text", Default: "kvdyno", Help: "the keyspace in the user's cluster"},
			driver.Option{Name: "timeout", Kind: "count", Default: "30", Help: "seconds after which an op that has no answer fails"},
		),
	}
}

type database struct {
	hosts    []string
	secure   *tls.Config
	address  *host.URL
	cluster  *cluster // nil: the user's
	control  *gocql.Session
	keyspace string
	table    string // quoted, with its keyspace
	level    gocql.Consistency
	timeout  time.Duration
	threads  int
	asked    uint64       // copies of a row; 0: see check
	last     atomic.Int64 // the timestamp of the last write, in us
}

// Open starts a cluster or connects to one.
func (Driver) Open(config *driver.Config, opened *driver.Opened) (driver.Database, error) {
	level, err := config.Pick(driver.None)
	if err != nil {
		return nil, err
	}
	seconds, err := config.Number("timeout")
	if err != nil {
		return nil, err
	}
	consistency, err := config.Choice("consistency")
	if err != nil {
		return nil, err
	}
	members, err := config.Choice("members")
	if err != nil {
		return nil, err
	}
	copies, err := config.Number("replication")
	if err != nil {
		return nil, err
	}
	address, err := host.Given(config, "9042", "cassandra", "cassandras")
	if err != nil {
		return nil, err
	}
	made := &database{address: address, asked: copies, timeout: time.Duration(seconds) * time.Second, keyspace: config.Text("keyspace"),
		level:   map[string]gocql.Consistency{"one": gocql.One, "quorum": gocql.Quorum, "all": gocql.All}[consistency],
		threads: max(int(config.Threads), 1)}
	made.table = quoted(made.keyspace) + "." + tableName
	if count, err := strconv.Atoi(members); err != nil || address == nil && made.check(count) != nil {
		return nil, errors.Join(err, made.check(count))
	}
	if err := made.open(config, opened, level); err != nil {
		return nil, errors.Join(err, made.Close())
	}
	return made, nil
}

func (d *database) open(config *driver.Config, opened *driver.Opened, level driver.Level) error {
	var err error
	if d.address == nil {
		if d.cluster, err = startCluster(config, level); err != nil {
			return err
		}
		d.hosts = d.cluster.addresses()
		d.control, err = d.cluster.untilReady(d)
	} else {
		if d.address.Scheme == "cassandras" {
			if d.secure, err = host.TLS(config); err != nil {
				return err
			}
		}
		d.hosts = d.address.Hosts
		if err := d.address.Reach(d.secure); err != nil {
			return err
		}
		if err := d.address.Answers(d.secure, cql); err != nil {
			return err
		}
		d.control, err = d.connect("")
	}
	if err != nil {
		return err
	}
	nodes, err := d.nodes()
	if err != nil {
		return err
	}
	if err := d.check(len(nodes)); err != nil {
		return err
	}
	asked := level
	if level, err = d.levelOf(nodes); err != nil {
		return err
	}
	if level < asked {
		return driver.Fail(driver.Unsupported, "cannot reach the requested durability level: a node has commitlog_sync periodic; "+
			"set it to batch, or use --durability none")
	}
	if err := d.take(config); err != nil {
		return err
	}
	// Its clients know which nodes have a key only in a session of the keyspace.
	d.control.Close()
	if d.control, err = d.connect(d.keyspace); err != nil {
		return err
	}
	if err := d.untilAllAnswer(nodes); err != nil {
		return err
	}
	return d.tell(config, opened, level, nodes)
}

// cql begins with a question for what a server supports, in the oldest version that all of them know.
var cql = host.Hello{Protocol: "CQL", Sent: "\x04\x00\x00\x00\x05\x00\x00\x00\x00",
	Is: func(first [9]byte) bool { return first[0] > 0x80 && first[0] < 0x90 }}

// check refuses what a cluster of so many nodes cannot do.
func (d *database) check(nodes int) error {
	if d.asked == 0 {
		d.asked = uint64(min(nodes, 3))
	}
	if d.asked > uint64(nodes) {
		return driver.Fail(driver.Failed, "option replication: %d copies need as many nodes, and the cluster has %d", d.asked, nodes)
	}
	return nil
}

// connect makes a client that all sessions share: requests of several threads have a connection each.
func (d *database) connect(keyspace string) (*gocql.Session, error) {
	settings := gocql.NewCluster(d.hosts...)
	settings.Keyspace, settings.Consistency, settings.NumConns = keyspace, d.level, d.threads
	settings.Timeout, settings.WriteTimeout, settings.ConnectTimeout = d.timeout, d.timeout, host.HandshakeLimit
	// A closed loop has nothing to wait for that could be sent together.
	settings.WriteCoalesceWaitTime = 0
	// Timestamps are those of database.timestamp.
	settings.DefaultTimestamp = false
	settings.PoolConfig.HostSelectionPolicy = gocql.TokenAwareHostPolicy(gocql.RoundRobinHostPolicy())
	if d.secure != nil {
		settings.SslOpts = &gocql.SslOptions{Config: d.secure, EnableHostVerification: true}
	}
	if d.address != nil && d.address.User != "" {
		settings.Authenticator = gocql.PasswordAuthenticator{Username: d.address.User, Password: d.address.Password}
	}
	session, err := settings.CreateSession()
	if err != nil {
		return nil, driver.Fail(driver.Failed, "%s: %v", strings.Join(d.hosts, ","), reason(err))
	}
	return session, nil
}

// reason is the last of an error's causes: gocql adds what it tried.
func reason(err error) error {
	var request gocql.RequestError
	if errors.As(err, &request) {
		return errors.New(request.Message())
	}
	return err
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// nodes that the cluster has, of which all must be up.
func (d *database) nodes() ([]*gocql.HostInfo, error) {
	all := d.control.GetHosts()
	for _, each := range all {
		if !each.IsUp() {
			return nil, driver.Fail(driver.Failed, "%s: the node does not answer", each.ConnectAddressAndPort())
		}
	}
	return all, nil
}

// untilAllAnswer waits until each node can reach all copies of a row: it learns only after its start who else is up.
func (d *database) untilAllAnswer(nodes []*gocql.HostInfo) error {
	for _, each := range nodes {
		for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			query := d.control.Query("SELECT value FROM "+d.table+" WHERE key = ?", []byte{0}).Consistency(gocql.All)
			err := query.SetHostID(each.HostID()).Exec()
			if err == nil {
				break
			}
			if d.cluster == nil || time.Since(begun) > startLimit {
				return driver.Fail(driver.Failed, "%s: it does not reach all copies of a row: %v", each.ConnectAddressAndPort(), d.failed(err))
			}
		}
	}
	return nil
}

// fact is the only value of a query to one node; empty if it has none.
func (d *database) fact(node *gocql.HostInfo, query string, arguments ...any) string {
	var text string
	if d.control.Query(query, arguments...).Consistency(gocql.One).SetHostID(node.HostID()).Scan(&text) != nil {
		return ""
	}
	return text
}

// setting of a node: ScyllaDB has another table of them.
func (d *database) setting(node *gocql.HostInfo, name string) string {
	if text := d.fact(node, "SELECT value FROM system_views.settings WHERE name = ?", name); text != "" {
		return text
	}
	return strings.Trim(d.fact(node, "SELECT value FROM system.config WHERE name = ?", name), `"`)
}

// levelOf the nodes is that of the weakest. `periodic` is below `process`: what was written after the last marker of the log is
// not read from it again, and the marker is up to 100 ms old.
func (d *database) levelOf(nodes []*gocql.HostInfo) (driver.Level, error) {
	weakest := driver.Power
	for _, each := range nodes {
		switch mode := d.setting(each, "commitlog_sync"); mode {
		case "batch", "group":
		case "periodic":
			weakest = driver.None
		default:
			return weakest, driver.Fail(driver.Failed, "%s: the node does not report commitlog_sync", each.ConnectAddressAndPort())
		}
	}
	return weakest, nil
}

// The settings of a node that are recorded.
var recorded = []string{"commitlog_sync", "commitlog_sync_period", "commitlog_segment_size", "concurrent_reads", "concurrent_writes",
	"file_cache_enabled", "key_cache_size", "row_cache_size", "memtable_allocation_type", "num_tokens"}

// tell reports what is in effect.
func (d *database) tell(config *driver.Config, opened *driver.Opened, level driver.Level, nodes []*gocql.HostInfo) error {
	copies, isDurable, err := d.copies()
	if err != nil {
		return err
	}
	if d.asked = uint64(copies); copies > 1 {
		if err := d.check(len(nodes)); err != nil {
			return err
		}
	}
	if !isDurable {
		return driver.Fail(driver.Failed, "the keyspace %s has durable_writes off", d.keyspace)
	}
	opened.Level, opened.CacheBytes = level, driver.NoCache
	if config.CacheBytes != 0 && d.cluster != nil {
		opened.CacheBytes = mebibytes(config.CacheBytes) << 20
	}
	opened.Version = d.fact(nodes[0], "SELECT release_version FROM system.local")
	opened.Compression = d.compression()
	opened.Effective("class", d.address.Class(copies))
	opened.Effective("replication", copies)
	opened.Effective("consistency", promise(d.level, copies))
	if copies > 1 && d.level == gocql.One {
		opened.Effective("stale_reads", "possible")
	}
	opened.Effective("persistence", persistence(level, d.level, copies))
	for _, name := range recorded {
		if text := d.setting(nodes[0], name); text != "" {
			opened.Effective(name, text)
		}
	}
	opened.Effective("nodes", len(nodes))
	opened.Effective("acknowledged_by", config.Text("consistency"))
	opened.Effective("client", driver.ModuleVersion("github.com/apache/cassandra-gocql-driver/v2"))
	opened.Effective("timeout", int(d.timeout.Seconds()))
	host.Effective(config, opened, d.address)
	home := config.Text("home")
	if home == "" {
		home = "default"
	}
	opened.Effective("home", home)
	for _, name := range []string{"members", "heap", "keyspace"} {
		opened.Effective(name, config.Text(name))
	}
	return nil
}

// promise is what reads see. Writes are numbered by this process, so its own never have the same time.
func promise(level gocql.Consistency, copies int) string {
	if copies == 1 {
		return "linearizable for the writes of one process"
	}
	if level == gocql.One {
		return "one: a read asks one copy, which may lag; the last timestamp wins"
	}
	return fmt.Sprintf("%s: reads and writes overlap in a copy; the last timestamp wins, so clocks of several processes must agree",
		strings.ToLower(level.String()))
}

// persistence is what has happened to a write before its reply.
func persistence(level driver.Level, waits gocql.Consistency, copies int) string {
	count := map[gocql.Consistency]int{gocql.One: 1, gocql.Quorum: copies/2 + 1, gocql.All: copies}[waits]
	text := "the log is written to a mapped file before the reply, and synced later"
	if level == driver.Power {
		text = "the log is synced before the reply"
	}
	if copies == 1 {
		return text
	}
	return fmt.Sprintf("%d of %d copies: %s", count, copies, text)
}

// Close stops the cluster. In the user's cluster the keyspace stays.
func (d *database) Close() error {
	if d.control != nil {
		d.control.Close()
	}
	if d.cluster != nil {
		return d.cluster.stop()
	}
	return nil
}

// Stats reports the size of the table on the first node, and its caches.
func (d *database) Stats(add func(name string, value any)) {
	add("address", d.hosts[0])
	nodes := d.control.GetHosts()
	if len(nodes) == 0 {
		return
	}
	for name, query := range map[string]string{
		"disk_mebibytes":    "SELECT CAST(mebibytes AS text) FROM system_views.disk_usage WHERE keyspace_name = ? AND table_name = '" + tableName + "'",
		"key_cache_entries": "SELECT CAST(entry_count AS text) FROM system_views.caches WHERE name = 'keys' AND '' <> ?",
	} {
		if value := d.fact(nodes[0], query, d.keyspace); value != "" {
			add(name, value)
		}
	}
}

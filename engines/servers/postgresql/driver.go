// Package postgresql drives PostgreSQL: a table of keys and values, by its binary protocol.
package postgresql

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"kvdyno/driver"
	"kvdyno/servers/host"
)

// Driver is the driver of PostgreSQL.
type Driver struct{}

func init() { driver.Register(Driver{}) }

// keyBytes is the longest key: a row of a B-tree index has at most a third of a page.
const keyBytes = 2600

// Info describes the engine.
func (Driver) Info() driver.Info {
	return driver.Info{
		Name: "postgresql", Engine: "a table of keys and values, over a socket", Family: "server", Language: "C",
		Capabilities: driver.Ordered | driver.CanReverse | driver.CanPrefix | driver.MultiGet | driver.Transaction |
			driver.TransactionReads | driver.MergeAppend | driver.CanDelete | driver.DeleteTells | driver.Overwrite |
			driver.CanNew | driver.CanTouch,
		Levels: []driver.Level{driver.None, driver.Process, driver.Power}, KeySizeMax: keyBytes,
		Options: append(host.Options("postgres://USER@HOST:PORT/DATABASE?sslmode=verify-full"),
			driver.Option{Name: "server", Kind: "text", Default: "postgres", Help: "the program to start; initdb is in the same folder"},
			driver.Option{Name: "table", Kind: "text", Default: "kvdyno", Help: "the table in the user's database"},
			driver.Option{Name: "autovacuum", Kind: "flag", Default: "true", Help: "remove old versions of rows in the background"},
			driver.Option{Name: "timeout", Kind: "count", Default: "30", Help: "seconds after which a statement without an answer fails"},
		),
	}
}

type database struct {
	address  *host.URL
	secure   *tls.Config
	name     string // of the database
	settings map[string]string
	server   *server // nil: the user's
	lock     sync.Mutex
	control  *pgconn.PgConn
	table    string // quoted
	host     string
	user     string
	password string
	timeout  time.Duration
}

// Open starts a server or connects to one.
func (Driver) Open(config *driver.Config, opened *driver.Opened) (driver.Database, error) {
	level, err := config.Pick(driver.Power)
	if err != nil {
		return nil, err
	}
	address, err := host.Given(config, "5432", "postgres", "postgresql")
	if err != nil {
		return nil, err
	}
	seconds, err := config.Number("timeout")
	if err != nil {
		return nil, err
	}
	made := &database{address: address, table: quoted(config.Text("table")), timeout: time.Duration(seconds) * time.Second}
	if err := made.open(config, opened, level); err != nil {
		return nil, errors.Join(err, made.Close())
	}
	return made, nil
}

func (d *database) open(config *driver.Config, opened *driver.Opened, level driver.Level) error {
	// Each plan is a walk of the index, also before the server has statistics of the table.
	d.settings = map[string]string{"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_sort": "off",
		"synchronous_commit": "on", "statement_timeout": strconv.FormatInt(d.timeout.Milliseconds(), 10)}
	if level == driver.None {
		d.settings["synchronous_commit"] = "off"
	}
	var err error
	if d.address == nil {
		d.server, err = startServer(config, level)
		if err != nil {
			return err
		}
		d.host, d.user, d.password, d.name = d.server.address, "kvdyno", d.server.password, "postgres"
		d.control, err = d.server.untilReady(d)
	} else {
		if err := d.reach(config); err != nil {
			return err
		}
		d.control, err = d.connect()
	}
	if err != nil {
		return err
	}
	if err := d.take(config); err != nil {
		return err
	}
	return d.tell(config, opened, level)
}

// reach prepares the connections to the user's server.
func (d *database) reach(config *driver.Config) error {
	if len(d.address.Hosts) != 1 {
		return driver.Fail(driver.Failed, "option url: name one server")
	}
	d.host, d.user, d.password = d.address.Hosts[0], d.address.User, d.address.Password
	path, query, _ := strings.Cut(d.address.Path, "?")
	if d.name = path; path == "" {
		d.name = "postgres"
	}
	mode, isKnown := strings.CutPrefix(query, "sslmode=")
	if query != "" && !isKnown {
		return driver.Fail(driver.Failed, "option url: `%s`: only sslmode is known", query)
	}
	name, _, _ := net.SplitHostPort(d.host)
	if mode == "" {
		mode = "verify-full"
		if parsed := net.ParseIP(name); name == "localhost" || (parsed != nil && parsed.IsLoopback()) {
			mode = "disable"
		}
	}
	if mode == "disable" {
		return nil
	}
	var err error
	if d.secure, err = host.TLS(config); err != nil {
		return err
	}
	d.secure.ServerName = name
	switch mode {
	case "verify-full":
	case "require":
		d.secure.InsecureSkipVerify = true
	default:
		return driver.Fail(driver.Failed, "option url: sslmode is disable, require or verify-full, not `%s`", mode)
	}
	return nil
}

// connect opens a connection with the settings of this database.
func (d *database) connect() (*pgconn.PgConn, error) {
	name, port, _ := net.SplitHostPort(d.host)
	config, err := pgconn.ParseConfig(fmt.Sprintf("host=%s port=%s sslmode=disable connect_timeout=5", name, port))
	if err != nil {
		return nil, driver.Fail(driver.Failed, "%s: %v", d.host, err)
	}
	config.User, config.Password, config.Database, config.TLSConfig = d.user, d.password, d.name, d.secure
	config.Fallbacks, config.RuntimeParams = nil, d.settings
	connection, err := pgconn.ConnectConfig(context.Background(), config)
	if err != nil {
		return nil, driver.Fail(driver.Failed, "%s: %v", d.host, reason(err))
	}
	return connection, nil
}

// reason is the server's own message, or the last cause.
func reason(err error) error {
	var answer *pgconn.PgError
	if errors.As(err, &answer) {
		return answer
	}
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return certificate
	}
	var system syscall.Errno
	if errors.As(err, &system) {
		return system
	}
	return err
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// mark is the comment of a table that this driver has created.
const mark = "created by kvdyno, which deletes it"

// take creates the table. One that exists is deleted only if this driver has created it.
func (d *database) take(config *driver.Config) error {
	found, err := d.rows("SELECT coalesce(obj_description(to_regclass($1)::oid, 'pg_class'), '') WHERE to_regclass($1) IS NOT NULL", d.table)
	if err != nil {
		return err
	}
	if len(found) != 0 && string(found[0][0]) != mark {
		return driver.Fail(driver.Failed, "%s: the database has a table %s that kvdyno did not create; choose another name with "+
			"--option postgresql.table=NAME", d.address, d.table)
	}
	if !config.Create {
		if len(found) == 0 {
			return driver.Fail(driver.Failed, "%s: the database has no table %s", d.host, d.table)
		}
		return nil
	}
	commands := "CREATE TABLE " + d.table + " (key bytea PRIMARY KEY, value bytea NOT NULL)" +
		fmt.Sprintf(" WITH (autovacuum_enabled = %s)", config.Text("autovacuum")) +
		"; COMMENT ON TABLE " + d.table + " IS '" + mark + "'"
	if len(found) != 0 {
		commands = "DROP TABLE " + d.table + "; " + commands
	}
	if _, err := config.Flag("autovacuum"); err != nil {
		return err
	}
	_, err = d.control.Exec(context.Background(), commands).ReadAll()
	return d.failed(err)
}

// rows are the results of a query in text.
func (d *database) rows(query string, arguments ...string) ([][][]byte, error) {
	values := make([][]byte, len(arguments))
	for i, argument := range arguments {
		values[i] = []byte(argument)
	}
	result := d.control.ExecParams(context.Background(), query, values, nil, nil, nil).Read()
	return result.Rows, d.failed(result.Err)
}

// fact is the only value of a query; empty if it is not allowed.
func (d *database) fact(query string, arguments ...string) string {
	rows, err := d.rows(query, arguments...)
	if err != nil || len(rows) != 1 {
		return ""
	}
	return string(rows[0][0])
}

// The settings of the server that are recorded.
var recorded = []string{"fsync", "synchronous_commit", "full_page_writes", "wal_level", "wal_sync_method", "shared_buffers",
	"max_wal_size", "synchronous_standby_names", "default_transaction_isolation", "enable_seqscan", "enable_bitmapscan",
	"enable_sort"}

// tell reports what is in effect.
func (d *database) tell(config *driver.Config, opened *driver.Opened, level driver.Level) error {
	syncs := d.fact("SHOW fsync")
	if d.server == nil && level == driver.Power && syncs != "on" {
		return driver.Fail(driver.Unsupported, "cannot reach the requested durability level: the server has fsync %s; change its "+
			"settings, or use --durability process", syncs)
	}
	if d.server == nil && level == driver.Process && syncs == "on" {
		level = driver.Power
	}
	if d.fact("SELECT pg_is_in_recovery()") == "t" {
		return driver.Fail(driver.Failed, "%s: the server is a replica, which accepts no writes", d.host)
	}
	opened.Level, opened.Compression = level, "pglz above 2 kB"
	opened.Version, _, _ = strings.Cut(d.control.ParameterStatus("server_version"), " ")
	blocks, err := strconv.ParseUint(d.fact("SELECT setting FROM pg_settings WHERE name = 'shared_buffers'"), 10, 64)
	if err != nil {
		return driver.Fail(driver.Failed, "%s: the server does not report shared_buffers", d.host)
	}
	opened.CacheBytes = blocks * 8192
	replicas := d.fact("SELECT count(*) FROM pg_stat_replication")
	copies, err := strconv.Atoi(replicas)
	if err != nil {
		return driver.Fail(driver.Failed, "%s: the server does not report its replicas", d.host)
	}
	copies++
	opened.Effective("class", d.address.Class(copies))
	opened.Effective("replication", copies)
	opened.Effective("servers", copies)
	opened.Effective("consistency", "linearizable")
	opened.Effective("persistence", map[driver.Level]string{
		driver.None: "the log is written after the reply", driver.Process: "the log is written before the reply, not synced",
		driver.Power: "the log is synced before the reply"}[level])
	for _, name := range recorded {
		opened.Effective(name, d.fact("SELECT current_setting($1)", name))
	}
	opened.Effective("autovacuum", config.Text("autovacuum"))
	opened.Effective("client", driver.ModuleVersion("github.com/jackc/pgx/v5"))
	opened.Effective("timeout", int(d.timeout.Seconds()))
	host.Effective(config, opened, d.address)
	opened.Effective("server", config.Text("server"))
	opened.Effective("table", config.Text("table"))
	return nil
}

// Close stops the server. In the user's database the table stays.
func (d *database) Close() error {
	var err error
	if d.control != nil {
		err = d.control.Close(context.Background())
	}
	if d.server != nil {
		err = errors.Join(err, d.server.stop())
	}
	return err
}

// Maintain makes a checkpoint, or rewrites the table.
func (d *database) Maintain(work driver.Work) (bool, error) {
	command := map[driver.Work]string{driver.Flush: "CHECKPOINT", driver.Compact: "VACUUM (FULL, ANALYZE) " + d.table}[work]
	if command == "" || (d.server == nil && work == driver.Flush) {
		return false, nil
	}
	d.lock.Lock()
	defer d.lock.Unlock()
	for _, each := range []string{"SET statement_timeout = 0", command, "RESET statement_timeout"} {
		if _, err := d.control.Exec(context.Background(), each).ReadAll(); err != nil {
			return true, d.failed(err)
		}
	}
	return true, nil
}

// Stats reports statistics of the table and of the log.
func (d *database) Stats(add func(name string, value any)) {
	d.lock.Lock()
	defer d.lock.Unlock()
	add("address", d.host)
	for name, query := range map[string]string{
		"table_bytes":   "SELECT pg_table_size($1::regclass)",
		"index_bytes":   "SELECT pg_indexes_size($1::regclass)",
		"dead_rows":     "SELECT n_dead_tup FROM pg_stat_user_tables WHERE relid = $1::regclass",
		"autovacuums":   "SELECT autovacuum_count FROM pg_stat_user_tables WHERE relid = $1::regclass",
		"wal_bytes":     "SELECT wal_bytes FROM pg_stat_wal WHERE $1 <> ''",
		"wal_syncs":     "SELECT wal_sync FROM pg_stat_wal WHERE $1 <> ''",
		"cache_hits":    "SELECT blks_hit FROM pg_stat_database WHERE datname = current_database() AND $1 <> ''",
		"blocks_read":   "SELECT blks_read FROM pg_stat_database WHERE datname = current_database() AND $1 <> ''",
		"deadlocks":     "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database() AND $1 <> ''",
		"checkpoints":   "SELECT checkpoints_timed + checkpoints_req FROM pg_stat_bgwriter WHERE $1 <> ''",
		"standby_count": "SELECT count(*) FROM pg_stat_replication WHERE $1 <> ''",
	} {
		if value := d.fact(query, d.table); value != "" {
			add(name, value)
		}
	}
}

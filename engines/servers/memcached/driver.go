// Package memcached drives memcached: a cache in memory, reached by its meta protocol.
package memcached

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"kvdyno/driver"
	"kvdyno/servers/host"
)

// Driver is the driver of memcached.
type Driver struct{}

func init() { driver.Register(Driver{}) }

const (
	// keyBytes is the longest key: memcached takes 250 bytes, and these are base64.
	keyBytes = 186
	// shippedBytes is the budget for rows as shipped, and shippedItem the largest row.
	shippedBytes, shippedItem = 64 << 20, 1 << 20
	// chunkBytes are a part of a large row, and mostItem is the largest row that memcached can be started with.
	chunkBytes, mostItem = 512 << 10, 1 << 30
	// rowBytes is more than what a row takes besides its value.
	rowBytes   = 1024
	startLimit = 30 * time.Second
)

// Info describes the engine.
func (Driver) Info() driver.Info {
	return driver.Info{
		Name: "memcached", Engine: "a cache in memory, over a socket", Family: "server", Language: "C",
		Capabilities: driver.MultiGet | driver.CanDelete | driver.DeleteTells | driver.Overwrite | driver.CanNew |
			driver.TimeToLive | driver.CanTouch | driver.InMemory | driver.Evicts,
		Levels: []driver.Level{driver.None}, KeySizeMax: keyBytes,
		Options: append(host.Options("memcached://HOST:PORT, or memcacheds:// for TLS"),
			driver.Option{Name: "server", Kind: "text", Default: "memcached", Help: "the program to start"},
			driver.Option{Name: "server-threads", Kind: "count", Default: "4", Help: "worker threads of the server that is started"},
			driver.Option{Name: "database", Kind: "choice:empty|flush", Default: "empty",
				Help: "the user's server must have no items of others, or all of its items are deleted"},
		),
	}
}

type database struct {
	host, user, password string
	secure               *tls.Config
	address              *host.URL
	process              *host.Process // nil: the user's
	lock                 sync.Mutex    // of control
	control              *wire
	claim                *claim        // nil: the server is ours
	stored               atomic.Uint64 // items that ended sessions have stored
	itemBytes            int
}

// Open starts a server or connects to one.
func (Driver) Open(config *driver.Config, opened *driver.Opened) (driver.Database, error) {
	level, err := config.Pick(driver.None)
	if err != nil {
		return nil, err
	}
	if _, err := config.Choice("database"); err != nil {
		return nil, err
	}
	address, err := host.Given(config, "11211", "memcached", "memcacheds")
	if err != nil {
		return nil, err
	}
	made := &database{address: address}
	if err := made.open(config, opened); err != nil {
		return nil, errors.Join(err, made.Close())
	}
	opened.Level, opened.Compression = level, "none"
	return made, nil
}

func (d *database) open(config *driver.Config, opened *driver.Opened) error {
	var err error
	if d.address == nil {
		err = d.start(config)
	} else {
		err = d.reach(config)
	}
	if err != nil {
		return err
	}
	facts, err := d.control.facts("stats settings")
	if err != nil {
		return err
	}
	stats, err := d.control.facts("stats")
	if err != nil {
		return err
	}
	if d.address != nil {
		if d.claim, err = d.take(config, stats); err != nil {
			return err
		}
	}
	opened.Version = stats["version"]
	opened.CacheBytes, err = strconv.ParseUint(facts["maxbytes"], 10, 64)
	if err != nil {
		return driver.Fail(driver.Failed, "%s: the server does not report its budget", d.host)
	}
	if item, err := strconv.ParseUint(facts["item_size_max"], 10, 64); err == nil && item > rowBytes {
		opened.Effective("value_size_max", item-rowBytes)
	}
	opened.Effective("class", d.address.Class(1))
	opened.Effective("replication", 1)
	opened.Effective("servers", 1)
	opened.Effective("consistency", "linearizable")
	opened.Effective("persistence", "none: the memory of the server")
	for _, name := range []string{"item_size_max", "num_threads", "lru_segmented"} {
		if value, isKnown := facts[name]; isKnown {
			opened.Effective(name, value)
		}
	}
	host.Effective(config, opened, d.address)
	for _, name := range []string{"server", "server-threads", "database"} {
		opened.Effective(name, config.Text(name))
	}
	return nil
}

// start starts a server in the folder.
func (d *database) start(config *driver.Config) error {
	threads, err := config.Number("server-threads")
	if err != nil {
		return err
	}
	budget := config.CacheBytes
	if budget == 0 {
		budget = shippedBytes
	}
	// A larger row takes several chunks, whose size divides the limit; and memcached allows at most half of its budget.
	item := uint64(shippedItem)
	if needed := uint64(config.ValueSizeMax) + rowBytes; needed > item {
		item = max(min((needed+chunkBytes-1)/chunkBytes*chunkBytes, budget/2/chunkBytes*chunkBytes, mostItem), item)
	}
	if d.host, err = host.Address(); err != nil {
		return err
	}
	d.user, d.password = "kvdyno", host.Secret()
	users := filepath.Join(config.Path, "users")
	if err := os.WriteFile(users, []byte(d.user+":"+d.password+"\n"), 0o600); err != nil {
		return err
	}
	name, port, _ := net.SplitHostPort(d.host)
	arguments := []string{"-l", name, "-p", port, "-U", "0", "-Y", users, "-t", strconv.FormatUint(threads, 10),
		"-m", strconv.FormatUint(max(budget>>20, 1), 10), "-I", strconv.FormatUint(item, 10),
		"-c", strconv.FormatUint(max(1024, uint64(config.Threads)+64), 10)}
	if os.Getuid() == 0 {
		arguments = append(arguments, "-u", "root")
	}
	d.process, err = host.Start(host.Spec{Program: config.Text("server"), Package: "memcached", Arguments: arguments,
		Folder: config.Path, Log: "server.log"})
	if err != nil {
		return err
	}
	for begun := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		if d.control, err = d.connect(); err == nil {
			return nil
		}
		if d.process.HasEnded() {
			return d.process.Failed("did not start")
		}
		if time.Since(begun) > startLimit {
			return d.process.Failed("does not answer")
		}
	}
}

// reach connects to the user's server.
func (d *database) reach(config *driver.Config) error {
	if len(d.address.Hosts) != 1 {
		return driver.Fail(driver.Failed, "option url: memcached has no clusters; name one server")
	}
	var err error
	if d.address.Scheme == "memcacheds" {
		if d.secure, err = host.TLS(config); err != nil {
			return err
		}
	}
	d.host, d.user, d.password = d.address.Hosts[0], d.address.User, d.address.Password
	if d.control, err = d.connect(); err != nil {
		return d.address.Explain(d.host, d.secure, err)
	}
	return nil
}

// Session has its own connection.
func (d *database) Session() (driver.Session, error) {
	wire, err := d.connect()
	if err != nil {
		return nil, d.failed(err)
	}
	return &session{database: d, wire: wire}, nil
}

// failed explains an error of a connection.
func (d *database) failed(err error) error {
	var known *driver.Failure
	if err == nil || d.process == nil || errors.As(err, &known) {
		return err
	}
	return d.process.Explain(err)
}

// Close stops the server, or leaves the user's with a mark.
func (d *database) Close() error {
	var err error
	if d.claim != nil {
		err = d.leave()
	}
	if d.control != nil {
		err = errors.Join(err, d.control.close())
	}
	if d.process != nil {
		d.process.Kill() // it keeps nothing, and would take a second to end by itself
	}
	return err
}

// The statistics that are recorded.
var recorded = []string{"curr_items", "total_items", "bytes", "evictions", "expired_unfetched", "evicted_unfetched", "get_hits",
	"get_misses", "cmd_set", "rusage_user", "rusage_system", "curr_connections"}

// Stats reports statistics of the server.
func (d *database) Stats(add func(name string, value any)) {
	d.lock.Lock()
	defer d.lock.Unlock()
	add("address", d.host)
	facts, err := d.control.facts("stats")
	if err != nil {
		return
	}
	for _, name := range recorded {
		if value, isKnown := facts[name]; isKnown {
			add(name, value)
		}
	}
}

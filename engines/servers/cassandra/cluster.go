// Nodes on this machine, in the trial's folder.

package cassandra

import (
	_ "embed" // the options of the Java machine
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"kvdyno/driver"
	"kvdyno/servers/host"
)

const (
	startLimit = 180 * time.Second
	stopLimit  = 300 * time.Second
	// layoutFile keeps the nodes' addresses, which are part of the cluster's data.
	layoutFile = "members.json"
	// environment names the folder of an installation.
	environment = "KVDYNO_CASSANDRA"
	// shippedSegment is the size of a segment of the log as shipped, in MiB; a write has at most half of it.
	shippedSegment = 32
)

//go:embed logback.xml
var logging []byte

//go:embed jvm.options
var machine string

// member is a node. All have the same ports, at addresses of their own.
type member struct {
	Name, Host    string
	Client, Peers int // ports
	process       *host.Process
}

type cluster struct {
	members []*member
}

// jars is the class path of the installation.
func jars(config *driver.Config) (string, error) {
	home, from := config.Text("home"), "option home"
	if home == "" {
		home, from = os.Getenv(environment), environment
	}
	if own, err := os.Executable(); err == nil && home == "" {
		// Where `make cassandra` downloads it.
		extra := filepath.Join(filepath.Dir(own), "extra", "cassandra")
		if _, err := os.Stat(extra); err == nil {
			home, from = extra, "make cassandra"
		}
	}
	if home == "" {
		from = "`cassandra` in the PATH"
		if program, err := exec.LookPath("cassandra"); err == nil {
			if real, err := filepath.EvalSymlinks(program); err == nil {
				program = real
			}
			home = filepath.Dir(filepath.Dir(program))
			if filepath.Base(filepath.Dir(program)) == "sbin" { // its Debian package
				home = "/usr/share/cassandra"
			}
		}
	}
	if home == "" {
		return "", driver.Fail(driver.Failed, "Cassandra is not installed: run `make cassandra`, or name its folder with "+
			"--option cassandra.home=FOLDER or %s, or a running cluster with the option url", environment)
	}
	home, err := filepath.Abs(home)
	if err != nil {
		return "", err
	}
	for _, folder := range []string{filepath.Join(home, "lib"), home} {
		if found, _ := filepath.Glob(filepath.Join(folder, "*cassandra-[0-9]*.jar")); len(found) != 0 {
			return filepath.Join(home, "*") + ":" + filepath.Join(home, "lib", "*"), nil
		}
		if found, _ := filepath.Glob(filepath.Join(folder, "cassandra-all-*.jar")); len(found) != 0 {
			return filepath.Join(folder, "*"), nil
		}
	}
	return "", driver.Fail(driver.Failed, "%s: %s has no apache-cassandra-VERSION.jar", from, home)
}

// startCluster starts the nodes at the addresses of the folder, or of a new cluster.
func startCluster(config *driver.Config, level driver.Level) (*cluster, error) {
	classes, err := jars(config)
	if err != nil {
		return nil, err
	}
	heap, err := config.Number("heap")
	if err != nil {
		return nil, err
	}
	made := &cluster{}
	layout := filepath.Join(config.Path, layoutFile)
	if config.Create {
		if err := made.create(config, layout); err != nil {
			return nil, err
		}
	} else if err := host.ReadLayout(layout, &made.members); err != nil {
		return nil, err
	}
	for _, each := range made.members {
		if each.process, err = each.start(config, made.seeds(), classes, heap, level); err != nil {
			return nil, errors.Join(err, made.stop())
		}
	}
	return made, nil
}

func (c *cluster) create(config *driver.Config, layout string) error {
	count, err := strconv.Atoi(config.Text("members"))
	if err != nil {
		return err
	}
	client, err1 := host.Address()
	peers, err2 := host.Address()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	name, text1, _ := net.SplitHostPort(client)
	_, text2, _ := net.SplitHostPort(peers)
	port1, err1 := strconv.Atoi(text1)
	port2, err2 := strconv.Atoi(text2)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if port1 == port2 {
		port2++
	}
	first := net.ParseIP(name).To4()
	for number := range count {
		own := net.IPv4(first[0], first[1], first[2], byte(1+(int(first[3])+number)%254))
		c.members = append(c.members, &member{Name: fmt.Sprintf("node-%d", number+1), Host: own.String(), Client: port1, Peers: port2})
	}
	text, err := json.Marshal(c.members)
	if err != nil {
		return err
	}
	return os.WriteFile(layout, text, 0o600)
}

// mebibytes of a budget, at least one.
func mebibytes(bytes uint64) uint64 { return max(bytes>>20, 1) }

// settings of a node, in YAML, which includes JSON.
func (m *member) settings(config *driver.Config, seeds string, level driver.Level) ([]byte, error) {
	made := map[string]any{
		"cluster_name": "kvdyno", "num_tokens": 16, "partitioner": "org.apache.cassandra.dht.Murmur3Partitioner",
		"endpoint_snitch": "SimpleSnitch", "listen_address": m.Host, "rpc_address": m.Host, "storage_port": m.Peers,
		"native_transport_port": m.Client, "data_file_directories": []string{"data"}, "commitlog_directory": "commitlog",
		"saved_caches_directory": "saved_caches", "hints_directory": "hints", "cdc_raw_directory": "cdc_raw",
		// A new cluster has nothing to stream, so that its nodes can start at the same time.
		"auto_bootstrap": false,
		"seed_provider": []any{map[string]any{"class_name": "org.apache.cassandra.locator.SimpleSeedProvider",
			"parameters": []any{map[string]string{"seeds": seeds}}}},
		"commitlog_sync": "periodic", "commitlog_sync_period": "10000ms",
		"commitlog_segment_size": fmt.Sprintf("%dMiB", max(shippedSegment, 3*mebibytes(uint64(config.ValueSizeMax)))),
	}
	if level == driver.Power {
		made["commitlog_sync"] = "batch"
		delete(made, "commitlog_sync_period")
	}
	if config.CacheBytes != 0 {
		made["file_cache_enabled"] = true
		made["file_cache_size"] = fmt.Sprintf("%dMiB", mebibytes(config.CacheBytes))
	}
	return json.MarshalIndent(made, "", " ")
}

func (m *member) start(config *driver.Config, seeds, classes string, heap uint64, level driver.Level) (*host.Process, error) {
	folder, err := filepath.Abs(filepath.Join(config.Path, m.Name))
	if err != nil {
		return nil, err
	}
	settings, err := m.settings(config, seeds, level)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(folder, "tmp"), 0o700); err != nil {
		return nil, err
	}
	yaml, log := filepath.Join(folder, "cassandra.yaml"), filepath.Join(folder, "logback.xml")
	if err := errors.Join(os.WriteFile(yaml, settings, 0o600), os.WriteFile(log, logging, 0o600)); err != nil {
		return nil, err
	}
	arguments := []string{fmt.Sprintf("-Xms%d", heap), fmt.Sprintf("-Xmx%d", heap),
		"-Dcassandra.config=file:" + yaml, "-Dlogback.configurationFile=" + log, "-Dcassandra.storagedir=" + folder,
		// Libraries that are unpacked are part of the trial, and nothing is left in the system's folder of temporary files.
		"-Djava.io.tmpdir=" + filepath.Join(folder, "tmp"), "-XX:-UsePerfData",
	}
	for line := range strings.Lines(machine) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
			arguments = append(arguments, line)
		}
	}
	arguments = append(arguments, "-cp", classes, "org.apache.cassandra.service.CassandraDaemon")
	return host.Start(host.Spec{Program: "java", Package: "openjdk-17-jre-headless", Arguments: arguments, Folder: folder,
		Log: "server.log"})
}

func (c *cluster) addresses() []string {
	var all []string
	for _, each := range c.members {
		all = append(all, net.JoinHostPort(each.Host, strconv.Itoa(each.Client)))
	}
	return all
}

func (c *cluster) seeds() string {
	var all []string
	for _, each := range c.members {
		all = append(all, net.JoinHostPort(each.Host, strconv.Itoa(each.Peers)))
	}
	return strings.Join(all, ",")
}

// untilReady waits until each node answers, and the first knows all others.
func (c *cluster) untilReady(d *database) (*gocql.Session, error) {
	begun := time.Now()
	for i := 0; i < len(c.members); time.Sleep(20 * time.Millisecond) {
		each := c.members[i]
		if each.process.HasEnded() {
			return nil, each.process.Failed("did not start")
		}
		if time.Since(begun) > startLimit {
			return nil, each.process.Failed("does not answer")
		}
		if connection, err := host.Dial(d.hosts[i], nil); err == nil {
			_ = connection.Close()
			i++
		}
	}
	for ; ; time.Sleep(100 * time.Millisecond) {
		session, err := d.connect("")
		if err == nil && len(session.GetHosts()) == len(c.members) {
			return session, nil
		}
		if err == nil {
			session.Close()
		}
		if time.Since(begun) > startLimit {
			return nil, driver.Fail(driver.Failed, "the nodes did not find each other within %v (%v)", startLimit, err)
		}
	}
}

// explain adds to an error that a node has ended, if one has.
func (c *cluster) explain(err error) error {
	for _, each := range c.members {
		if each.process != nil && each.process.HasEnded() {
			return driver.Fail(driver.Failed, "%v: %v", err, each.process.Failed("has ended"))
		}
	}
	return err
}

// stop stops the nodes, which write their tables to files.
func (c *cluster) stop() error {
	var all error
	for _, each := range c.members {
		if each.process != nil {
			all = errors.Join(all, each.process.Signal(syscall.SIGTERM))
		}
	}
	for _, each := range c.members {
		if each.process != nil {
			all = errors.Join(all, each.process.Wait(stopLimit))
		}
	}
	return all
}

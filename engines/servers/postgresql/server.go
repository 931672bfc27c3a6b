// A server on this machine, in the trial's folder.

package postgresql

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"kvdyno/driver"
	"kvdyno/servers/host"
)

const (
	startLimit = 120 * time.Second
	stopLimit  = 600 * time.Second
	// secretFile keeps the password, which is part of the database.
	secretFile = "password"
	// shippedConnections is the number of connections that the server accepts as shipped.
	shippedConnections = 100
)

type server struct {
	process           *host.Process
	address, password string
}

// programs are initdb and the server. Debian installs them in a folder of their version, which is not in the PATH.
func programs(name string) (initdb, postgres string) {
	found, err := exec.LookPath(name)
	if err == nil {
		if real, err := filepath.EvalSymlinks(found); err == nil {
			found = real
		}
	} else {
		versions, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
		if name != "postgres" || len(versions) == 0 {
			return "initdb", name
		}
		slices.SortFunc(versions, func(a, b string) int {
			if len(a) != len(b) {
				return len(a) - len(b)
			}
			return strings.Compare(a, b)
		})
		found = versions[len(versions)-1]
	}
	return filepath.Join(filepath.Dir(found), "initdb"), found
}

// startServer creates the database in the folder, if it is new, and starts the server.
func startServer(config *driver.Config, level driver.Level) (*server, error) {
	made := &server{}
	initdb, postgres := programs(config.Text("server"))
	spec := host.Spec{Package: "postgresql", Folder: config.Path, Unprivileged: true}
	secret := filepath.Join(config.Path, secretFile)
	if config.Create {
		made.password = host.Secret()
		if err := os.WriteFile(secret, []byte(made.password+"\n"), 0o600); err != nil {
			return nil, err
		}
		create := spec
		create.Program, create.Log = initdb, "initdb.log"
		create.Arguments = []string{"-D", "data", "-U", "kvdyno", "--pwfile", secretFile, "-A", "scram-sha-256", "-E", "UTF8",
			"--locale", "C"}
		if level < driver.Power {
			create.Arguments = append(create.Arguments, "--no-sync")
		}
		if err := host.Run(create); err != nil {
			return nil, err
		}
	} else {
		text, err := os.ReadFile(secret)
		if err != nil {
			return nil, driver.Fail(driver.Failed, "the folder has no database of kvdyno: %v", err)
		}
		made.password = strings.TrimSpace(string(text))
	}
	var err error
	if made.address, err = host.Address(); err != nil {
		return nil, err
	}
	name, port, _ := net.SplitHostPort(made.address)
	settings := map[string]string{
		"listen_addresses": name, "port": port, "unix_socket_directories": "", "dynamic_shared_memory_type": "mmap",
		"fsync":           map[bool]string{true: "off", false: "on"}[level == driver.Process],
		"max_connections": fmt.Sprint(max(shippedConnections, config.Threads+10)),
	}
	if config.CacheBytes != 0 {
		settings["shared_buffers"] = fmt.Sprintf("%dkB", max(config.CacheBytes>>10, 128))
	}
	spec.Program, spec.Log, spec.Arguments = postgres, "server.log", []string{"-D", "data"}
	for name, value := range settings {
		spec.Arguments = append(spec.Arguments, "-c", name+"="+value)
	}
	if made.process, err = host.Start(spec); err != nil {
		return nil, err
	}
	return made, nil
}

// untilReady waits until the server accepts connections: it has recovered then.
func (s *server) untilReady(d *database) (*pgconn.PgConn, error) {
	for begun := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		connection, err := d.connect()
		if err == nil {
			return connection, nil
		}
		if s.process.HasEnded() {
			return nil, s.process.Failed("did not start")
		}
		if time.Since(begun) > startLimit {
			return nil, driver.Fail(driver.Failed, "%v: %v", err, s.process.Failed("does not answer"))
		}
	}
}

// stop ends all connections and stops the server, which writes a checkpoint.
func (s *server) stop() error {
	return errors.Join(s.process.Signal(syscall.SIGINT), s.process.Wait(stopLimit))
}

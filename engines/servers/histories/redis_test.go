// Histories of a redis-server: it is linearizable, and reads from a replica whose link is held are found not to be. The driver
// of Redis is in Rust, so the sessions here are a client of their own.

package histories

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"kvdyno/driver"
	"kvdyno/servers/host"
)

// startLimit is generous: a busy machine may take long to start a server.
const startLimit = time.Minute

// redis is a connection to a server.
type redis struct {
	connection net.Conn
	replies    *bufio.Reader
}

func redisAt(address string) (*redis, error) {
	connection, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &redis{connection, bufio.NewReader(connection)}, nil
}

// ask sends a request; isThere is false for a nil reply.
func (r *redis) ask(words ...string) (text string, isThere bool, err error) {
	request := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		request += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(r.connection, request); err != nil {
		return "", false, err
	}
	line, err := r.replies.ReadString('\n')
	if err != nil {
		return "", false, err
	}
	switch mark, rest := line[0], strings.TrimSpace(line[1:]); mark {
	case '$':
		length, err := strconv.Atoi(rest)
		if err != nil || length < 0 {
			return "", false, err
		}
		bytes := make([]byte, length+len("\r\n"))
		_, err = io.ReadFull(r.replies, bytes)
		return string(bytes[:length]), true, err
	case '-':
		return "", false, errors.New(rest)
	default:
		return rest, true, nil
	}
}

// registerOf is a session that writes to one server and reads from another one, or from the same.
type registerOf struct {
	writes, reads *redis
}

func (r *registerOf) End() error {
	return errors.Join(r.writes.connection.Close(), r.reads.connection.Close())
}

func (r *registerOf) Get(op *driver.Op) (driver.Status, error) {
	value, isThere, err := r.reads.ask("GET", string(op.Key))
	switch {
	case err != nil:
		return driver.Failed, err
	case !isThere:
		return driver.NotFound, nil
	}
	return op.Deliver([]byte(value)), nil
}

func (r *registerOf) Put(op *driver.Op) (driver.Status, error) {
	_, _, err := r.writes.ask("SET", string(op.Key), string(op.Value))
	return driver.OK, err
}

func (r *registerOf) Delete(op *driver.Op) (driver.Status, error) {
	count, _, err := r.writes.ask("DEL", string(op.Key))
	if count == "0" {
		return driver.NotFound, err
	}
	return driver.OK, err
}

// between opens sessions that write to one address and read from another one.
func between(writes, reads string) func() (driver.Session, error) {
	return func() (driver.Session, error) {
		to, err1 := redisAt(writes)
		from, err2 := redisAt(reads)
		return &registerOf{to, from}, errors.Join(err1, err2)
	}
}

// started starts a server with these arguments, and waits until it answers; it ends with the test.
func started(t *testing.T, name string, arguments ...string) string {
	address, err := host.Address()
	if err != nil {
		t.Fatal(err)
	}
	own, port, _ := net.SplitHostPort(address)
	folder := filepath.Join(t.TempDir(), name)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	arguments = append([]string{"--bind", own, "--port", port, "--save", "", "--appendonly", "no"}, arguments...)
	process, err := host.Start(host.Spec{Program: "redis-server", Package: "redis-server", Arguments: arguments, Folder: folder, Log: "log"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	until(t, name+" does not answer", func() bool {
		if process.HasEnded() {
			t.Fatal(process.Failed("did not start"))
		}
		server, err := redisAt(address)
		if err != nil {
			return false
		}
		defer func() { _ = server.connection.Close() }()
		text, _, err := server.ask("PING")
		return err == nil && text == "PONG"
	})
	return address
}

func until(t *testing.T, what string, isSo func() bool) {
	for begun := time.Now(); !isSo(); time.Sleep(5 * time.Millisecond) {
		if time.Since(begun) > startLimit {
			t.Fatal(what)
		}
	}
}

// link is a way to a server that can be held: then what the server sends stays in it.
type link struct {
	net.Listener
	held sync.Mutex
}

func linkTo(t *testing.T, address string) *link {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	made := &link{Listener: listener}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", address)
			if err != nil {
				_ = client.Close()
				continue
			}
			go func() { _, _ = io.Copy(server, client) }() // ends with the connection
			go made.carry(client, server)
		}
	}()
	return made
}

func (l *link) carry(client, server net.Conn) {
	defer func() { _, _ = client.Close(), server.Close() }()
	bytes := make([]byte, 64<<10)
	for {
		count, err := server.Read(bytes)
		if err != nil {
			return
		}
		l.held.Lock()
		_, err = client.Write(bytes[:count])
		l.held.Unlock()
		if err != nil {
			return
		}
	}
}

func TestARedisServerIsLinearizable(t *testing.T) {
	skipWithout(t, "redis-server")
	address := started(t, "server")
	history := recorded(t, between(address, address), Plan{Seed: seed(t), Threads: 5, Keys: 3, Ops: 3000})
	if found := history.Check(checkLimit); found != porcupine.Ok {
		t.Errorf("%s instead of %s", found, porcupine.Ok)
	}
}

func TestReadsFromAReplicaWhoseLinkIsHeldAreFound(t *testing.T) {
	skipWithout(t, "redis-server")
	master := started(t, "master", "--repl-diskless-sync-delay", "0")
	way := linkTo(t, master)
	own, port, _ := net.SplitHostPort(way.Addr().String())
	replica := started(t, "replica", "--replicaof", own, port)
	control, err := between(master, replica)()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = control.End() }()
	if _, err := control.Put(driver.NewOp(driver.Put, []byte("seen"), []byte("1"), nil)); err != nil {
		t.Fatal(err)
	}
	until(t, "the replica does not follow", func() bool {
		status, err := control.Get(driver.NewOp(driver.Get, []byte("seen"), nil, make([]byte, valueBytes)))
		return err == nil && status == driver.OK
	})
	plan := Plan{Seed: seed(t), Threads: 5, Keys: 3, Ops: 1500, At: map[int]func(){500: way.held.Lock}}
	history := recorded(t, between(master, replica), plan)
	way.held.Unlock()
	if found := history.Check(checkLimit); found != porcupine.Illegal {
		t.Errorf("%s instead of %s", found, porcupine.Illegal)
	}
	if history.Unknown != 0 {
		t.Errorf("%d writes failed", history.Unknown)
	}
}

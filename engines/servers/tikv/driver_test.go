// The drivers against the mock of TiKV's client, by TiKV's protocol: ops, ranges of others, several regions, and what is refused.

package tikv

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kvdyno/driver"
	"kvdyno/servers/host"
	"kvdyno/servers/tikv/mock"
)

// started is a mock with so many stores; it stops when the test ends.
func started(t *testing.T, stores int) *mock.Server {
	t.Helper()
	server, err := mock.Start("127.0.0.1:0", stores, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// opened opens a new database; it is closed when the test ends.
func opened(t *testing.T, own Driver, settings map[string]string) (driver.Database, *driver.Opened, error) {
	t.Helper()
	config := driver.NewConfig(own, t.TempDir(), driver.Default, settings)
	config.ValueSizeMax, config.KeySizeMax = 1<<16, 16
	effective := &driver.Opened{}
	made, err := own.Open(config, effective)
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(func() {
		if err := made.Close(); err != nil {
			t.Error(err)
		}
	})
	return made, effective, nil
}

func session(t *testing.T, database driver.Database) driver.Session {
	t.Helper()
	made, err := database.Session()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func put(t *testing.T, own driver.Session, key, value string) {
	t.Helper()
	if status, err := own.Put(driver.NewOp(driver.Put, []byte(key), []byte(value), nil)); status != driver.OK || err != nil {
		t.Fatalf("put %s: %v %v", key, status, err)
	}
}

// got is the value of a key; `-` if there is none.
func got(t *testing.T, own driver.Session, key string) string {
	t.Helper()
	op := driver.NewOp(driver.Get, []byte(key), nil, make([]byte, 64))
	status, err := own.Get(op)
	if err != nil {
		t.Fatal(err)
	}
	if status == driver.NotFound {
		return "-"
	}
	return string(op.Delivered())
}

var both = map[string]Driver{"tikv": Transactional, "tikv-raw": Raw}

func TestWhatCannotBeIsRefusedInOneLineAndSoon(t *testing.T) {
	missing, err := host.Address()
	if err != nil {
		t.Fatal(err)
	}
	certificate := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(certificate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, own := range both {
		for words, settings := range map[string]map[string]string{
			"--option " + name + ".url=pd://127.0.0.1:2379":   {},
			"must begin with pd:// or pds://":                 {"url": "http://127.0.0.1:2379"},
			"has no host":                                     {"url": "pd://"},
			"TiKV has no users and passwords":                 {"url": "pd://me@127.0.0.1"},
			"has a path":                                      {"url": "pd://127.0.0.1/x"},
			missing + ": cannot connect: connection refused":  {"url": "pd://" + missing},
			"option ca-file: it needs the option url":         {"ca-file": certificate},
			"option ca-file: it needs an url that begins":     {"url": "pd://a", "ca-file": certificate},
			"TiKV's client needs the authority's certificate": {"url": "pds://a"},
			"has no certificate in PEM":                       {"url": "pds://a", "ca-file": certificate},
			"option prefix: it must not be empty":             {"url": "pd://a", "prefix": ""},
			"option timeout: expected 1 to 300":               {"url": "pd://a", "timeout": "301"},
		} {
			_, _, err := opened(t, own, settings)
			if err == nil || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %v: %v instead of `%s`", name, settings, err, words)
			}
			if err != nil && len(err.Error()) > 231 { // KV_TEXT of driver.h
				t.Errorf("too long: %v", err)
			}
		}
	}
}

// A server of another protocol, as a wrong port may have.
func TestAServerThatIsNoPDIsOneLine(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = connection.Write([]byte("no gRPC here\r\n"))
			_ = connection.Close()
		}
	}()
	for name, own := range both {
		_, _, err := opened(t, own, map[string]string{"url": "pd://" + listener.Addr().String()})
		wanted := listener.Addr().String() + ": "
		if err == nil || !strings.HasPrefix(err.Error(), wanted) || !strings.Contains(err.Error(), "gRPC") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v instead of one line about gRPC with %s", name, err, wanted)
		}
	}
}

func TestAStoreThatCannotBeReachedIsNamed(t *testing.T) {
	server := started(t, 1)
	missing, err := host.Address()
	if err != nil {
		t.Fatal(err)
	}
	server.Cluster.AddStore(server.Cluster.AllocID(), missing)
	for name, own := range both {
		_, _, err := opened(t, own, map[string]string{"url": "pd://" + server.Address})
		if err == nil || !strings.Contains(err.Error(), missing+": cannot connect") || !strings.Contains(err.Error(), "advertise-addr") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatIsInForceIsThatOfTheCluster(t *testing.T) {
	for name, own := range both {
		server := started(t, 3)
		_, effective, err := opened(t, own, map[string]string{"url": "pd://" + server.Address})
		if err != nil {
			t.Fatal(err)
		}
		settings := fmt.Sprint(effective)
		if effective.Level != driver.Power || effective.Version != mock.Version || !strings.Contains(settings, "replication=3\n") ||
			!strings.Contains(settings, "class=distributed, one machine\n") || !strings.Contains(settings, "servers=3\n") {
			t.Errorf("%s: %s", name, settings)
		}
	}
}

func TestRowsOfAllRegionsAreRead(t *testing.T) {
	for name, own := range both {
		server := started(t, 3)
		database, err := fresh(t, own, server)
		if err != nil {
			t.Fatal(err)
		}
		first := session(t, database)
		put(t, first, "a", "1")
		place := baseOf(database)
		for _, key := range []string{"c", "e", "g"} {
			split := place.key([]byte(key))
			if !own.isRaw {
				split = encoded(split)
			}
			server.Split(split)
		}
		for at, key := range []string{"b", "c", "d", "e", "f", "g", "h"} {
			put(t, first, key, fmt.Sprint(at+2))
		}
		for at, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
			if value := got(t, first, key); value != fmt.Sprint(at+1) {
				t.Errorf("%s: %s has %s", name, key, value)
			}
		}
		if err := database.Close(); err != nil {
			t.Fatal(err)
		}
		// A new database deletes the rows of all regions.
		again, err := fresh(t, own, server)
		if err != nil {
			t.Fatal(err)
		}
		if found, err := again.(space).list(context.Background(), place.rows, after(place.rows), 10); len(found) != 0 || err != nil {
			t.Errorf("%s: %d rows are left (%v)", name, len(found), err)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	}
}

// fresh is a new database, which the test closes.
func fresh(t *testing.T, own Driver, server *mock.Server) (driver.Database, error) {
	t.Helper()
	return own.Open(driver.NewConfig(own, t.TempDir(), driver.Default, map[string]string{"url": "pd://" + server.Address}), &driver.Opened{})
}

func baseOf(database driver.Database) *base {
	if own, is := database.(*raw); is {
		return &own.base
	}
	return &database.(*transactional).base
}

// encoded is a key as the transactional interface stores it: groups of eight bytes, each followed by 255 less what fills it up.
func encoded(key []byte) []byte {
	var made []byte
	for at := 0; at <= len(key); at += 8 {
		group := key[at:min(at+8, len(key))]
		fill := 8 - len(group)
		made = append(append(append(made, group...), bytes.Repeat([]byte{0}, fill)...), byte(255-fill))
	}
	return made
}

func TestRowsOfOthersStay(t *testing.T) {
	for name, own := range both {
		server := started(t, 1)
		database, err := fresh(t, own, server)
		if err != nil {
			t.Fatal(err)
		}
		watcher, ctx := database.(space), context.Background()
		others := []string{"a", "kvdyno", "kvdyno.", "kvdyno/", "kvdyno/00", "kvdyno/x", "kvdyno0", baseOf(database).rows[:20], "z"}
		for _, key := range others {
			if err := watcher.write(ctx, key, []byte("theirs")); err != nil {
				t.Fatal(err)
			}
		}
		put(t, session(t, database), "own", "1")
		closed, err := fresh(t, own, server)
		if err != nil {
			t.Fatal(err)
		}
		if err := closed.Close(); err != nil {
			t.Fatal(err)
		}
		_, effective, err := opened(t, own, map[string]string{"url": "pd://" + server.Address})
		if err != nil {
			t.Fatal(err)
		}
		if told := fmt.Sprint(effective); !strings.Contains(told, "abandoned_databases=1\n") {
			t.Errorf("%s: %s", name, told)
		}
		for _, key := range others {
			if found, err := watcher.read(ctx, key); string(found) != "theirs" || err != nil {
				t.Errorf("%s: %q has %q (%v)", name, key, found, err)
			}
		}
		// A database that is open is in use, unless the user says that it is not.
		if value := got(t, session(t, database), "own"); value != "1" {
			t.Errorf("%s: an open database has lost its row: %s", name, value)
		}
		if _, _, err := opened(t, own, map[string]string{"url": "pd://" + server.Address, "abandoned": "delete"}); err != nil {
			t.Fatal(err)
		}
		if value := got(t, session(t, database), "own"); value != "-" {
			t.Errorf("%s: an abandoned database has its row: %s", name, value)
		}
		if err := watcher.write(ctx, "theirs/databases/x", []byte("created by somebody")); err != nil {
			t.Fatal(err)
		}
		_, _, err = opened(t, own, map[string]string{"url": "pd://" + server.Address, "prefix": "theirs/"})
		if wanted := "has a key `theirs/databases/x` that kvdyno did not write"; err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%s: %v instead of %s", name, err, wanted)
		}
		if err := database.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Regions that begin with raw keys are errors to the clients of transactions.
func TestRawKeysAndTransactionsAreNotMixed(t *testing.T) {
	server := started(t, 1)
	settings := map[string]string{"url": "pd://" + server.Address}
	if _, _, err := opened(t, Transactional, settings); err != nil {
		t.Fatal(err)
	}
	_, _, err := opened(t, Raw, settings)
	if wanted := "the cluster has rows of transactions"; err == nil || !strings.Contains(err.Error(), wanted) {
		t.Errorf("%v instead of %s", err, wanted)
	}
	server = started(t, 1)
	server.Split([]byte("kvdyno/raw"))
	_, _, err = opened(t, Transactional, map[string]string{"url": "pd://" + server.Address})
	if wanted := "the cluster has raw keys"; err == nil || !strings.Contains(err.Error(), wanted) {
		t.Errorf("%v instead of %s", err, wanted)
	}
}

func TestADatabaseIsOpenedAgainWithItsRowsAlsoByOtherLoadGenerators(t *testing.T) {
	for name, own := range both {
		server := started(t, 1)
		config := driver.NewConfig(own, t.TempDir(), driver.Default, map[string]string{"url": "pd://" + server.Address})
		reopen := func() driver.Database {
			t.Helper()
			made, err := own.Open(config, &driver.Opened{})
			if err != nil {
				t.Fatal(err)
			}
			return made
		}
		place := t.TempDir()
		guest := func() (driver.Database, error) {
			other := *config
			other.Path, other.Create = place, false
			return own.Open(&other, &driver.Opened{})
		}
		if _, err := guest(); err == nil || !strings.Contains(err.Error(), "has no open database of kvdyno below `kvdyno/`") {
			t.Errorf("%s: %v", name, err)
		}
		first := reopen()
		put(t, session(t, first), "key", "value")
		joined, err := guest()
		if err != nil {
			t.Fatal(err)
		}
		if value := got(t, session(t, joined), "key"); value != "value" {
			t.Errorf("%s: the guest reads %s", name, value)
		}
		if err := joined.Close(); err != nil {
			t.Error(err)
		}
		if err := first.Close(); err != nil {
			t.Error(err)
		}
		// A guest reads the rows also after their owner has closed them.
		joined, err = guest()
		if err != nil {
			t.Fatal(err)
		}
		if value := got(t, session(t, joined), "key"); value != "value" {
			t.Errorf("%s: the guest reads %s after the end", name, value)
		}
		if err := joined.Close(); err != nil {
			t.Error(err)
		}
		config.Create = false
		again := reopen()
		if value := got(t, session(t, again), "key"); value != "value" {
			t.Errorf("%s: %s after it was opened again", name, value)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
		copied := *config
		copied.Path = t.TempDir()
		if err := os.CopyFS(copied.Path, os.DirFS(config.Path)); err != nil {
			t.Fatal(err)
		}
		if _, err := own.Open(&copied, &driver.Opened{}); err == nil || !strings.Contains(err.Error(), "the folder was copied or moved") {
			t.Errorf("%s: %v", name, err)
		}
		if _, _, err := opened(t, own, map[string]string{"url": "pd://" + server.Address}); err != nil {
			t.Fatal(err)
		}
		if _, err := own.Open(config, &driver.Opened{}); err == nil || !strings.Contains(err.Error(), "the rows of this database are gone") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEveryFormOfCommitWrites(t *testing.T) {
	server := started(t, 1)
	for _, form := range []string{"1pc", "async", "2pc"} {
		database, _, err := opened(t, Transactional, map[string]string{"url": "pd://" + server.Address, "commit": form})
		if err != nil {
			t.Fatal(err)
		}
		own := session(t, database)
		put(t, own, "key", form)
		if value := got(t, own, "key"); value != form {
			t.Errorf("%s: %s", form, value)
		}
		if status, err := own.Put(driver.NewOp(driver.Put, []byte("key"), nil, nil)); status != driver.TooLarge || err == nil {
			t.Errorf("an empty value: %v %v", status, err)
		}
	}
}

func TestARowIsReadUntilItsTimeToLiveIsOver(t *testing.T) {
	server := started(t, 1)
	database, effective, err := opened(t, Raw, map[string]string{"url": "pd://" + server.Address, "ttl": "true"})
	if err != nil {
		t.Fatal(err)
	}
	if effective.Capabilities&driver.TimeToLive == 0 || effective.Capabilities&driver.CanNew != 0 {
		t.Errorf("capabilities %b", effective.Capabilities)
	}
	own := database.(*raw)
	ctx := context.Background()
	if err := own.client.PutWithTTL(ctx, own.key([]byte("short")), []byte("1"), 1); err != nil {
		t.Fatal(err)
	}
	put(t, session(t, database), "long", "2")
	for begun := time.Now(); got(t, session(t, database), "short") != "-"; time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("the row is still there")
		}
	}
	if value := got(t, session(t, database), "long"); value != "2" {
		t.Error(value)
	}
}

func TestWhatIsAskedOfAClusterThatIsGoneFailsInOneLine(t *testing.T) {
	for name, own := range both {
		server, err := mock.Start("127.0.0.1:0", 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		settings := map[string]string{"url": "pd://" + server.Address, "timeout": "1"}
		database, err := own.Open(driver.NewConfig(own, t.TempDir(), driver.Default, settings), &driver.Opened{})
		if err != nil {
			t.Fatal(err)
		}
		session := session(t, database)
		put(t, session, "key", "value")
		if err := server.Stop(); err != nil {
			t.Fatal(err)
		}
		_, err = session.Put(driver.NewOp(driver.Put, []byte("key"), []byte("value"), nil))
		for what, err := range map[string]error{"put": err, "close": database.Close()} {
			wanted := "pd://" + server.Address + ": no answer in time"
			if err == nil || !strings.HasPrefix(err.Error(), wanted) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s, %s: %v instead of %s", name, what, err, wanted)
			}
		}
	}
}

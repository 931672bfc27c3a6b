// Tests of what is refused, of timestamps, and, if an installation is named, of keyspaces that kvdyno must leave alone.

package cassandra

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	gocql "github.com/apache/cassandra-gocql-driver/v2"

	"kvdyno/driver"
)

// opened opens a database; it is closed when the test ends.
func opened(t *testing.T, level driver.Level, settings map[string]string) (*database, *driver.Opened, error) {
	effective := &driver.Opened{}
	made, err := Driver{}.Open(driver.NewConfig(Driver{}, t.TempDir(), level, settings), effective)
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(func() {
		if err := made.Close(); err != nil {
			t.Error(err)
		}
	})
	return made.(*database), effective, nil
}

func refused(t *testing.T, words string, level driver.Level, settings map[string]string) {
	t.Helper()
	if _, _, err := opened(t, level, settings); err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("%v: %v instead of `%s`", settings, err, words)
	}
}

func TestWhatCannotBeIsRefusedBeforeANodeIsStarted(t *testing.T) {
	t.Setenv(environment, t.TempDir())
	for words, settings := range map[string]map[string]string{
		"3 copies need as many nodes, and the cluster has 1": {"replication": "3"},
		"option members":                          {"members": "2"},
		"has no apache-cassandra-VERSION.jar":     {},
		"it needs the option url":                 {"password-file": "x"},
		"must begin with cassandra:// or cassand": {"url": "http://a"},
	} {
		refused(t, words, driver.None, settings)
	}
}

func TestJarsAreFoundInAReleaseAndInAFolderOfJars(t *testing.T) {
	for name, wanted := range map[string]string{
		"lib/apache-cassandra-5.0.6.jar": "*:lib/*", "cassandra-all-5.0.6.jar": "*", "lib/cassandra-all-5.0.6.jar": "lib/*"} {
		home := t.TempDir()
		if err := os.MkdirAll(filepath.Join(home, "lib"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := jars(driver.NewConfig(Driver{}, "", driver.None, map[string]string{"home": home}))
		if found = strings.ReplaceAll(found, home+"/", ""); err != nil || found != wanted {
			t.Errorf("%s: %s instead of %s (%v)", name, found, wanted, err)
		}
	}
}

func TestTimestampsNeverRepeatAndNeverGoBack(t *testing.T) {
	d := &database{}
	d.last.Store(1 << 60) // as after a clock that was ahead
	var lock sync.Mutex
	seen := map[int64]bool{}
	var threads sync.WaitGroup
	for range 4 {
		threads.Go(func() {
			last := int64(1 << 60)
			for range 1000 {
				now := d.timestamp()
				if now <= last {
					t.Errorf("%d after %d", now, last)
				}
				last = now
				lock.Lock()
				seen[now] = true
				lock.Unlock()
			}
		})
	}
	threads.Wait()
	if len(seen) != 4000 {
		t.Errorf("%d of 4000 are different", len(seen))
	}
}

func TestPersistenceCountsTheCopiesThatAWriteWaitsFor(t *testing.T) {
	for wanted, waits := range map[string]gocql.Consistency{"2 of 3": gocql.Quorum, "3 of 3": gocql.All, "1 of 3": gocql.One} {
		if got := persistence(driver.Power, waits, 3); got != wanted+" copies: the log is synced before the reply" {
			t.Error(got)
		}
	}
}

// In a user's cluster only a keyspace that kvdyno has created is deleted. `make test-all` names an installation.
func TestKeyspacesOfOthersStay(t *testing.T) {
	if os.Getenv(environment) == "" {
		t.Skip(environment + " is not set")
	}
	server, _, err := opened(t, driver.None, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, each := range []string{
		"CREATE KEYSPACE theirs WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
		"CREATE TABLE theirs.rows (key blob PRIMARY KEY, value blob)", "INSERT INTO theirs.rows (key, value) VALUES (0x61, 0x62)",
	} {
		if err := server.control.Query(each).Exec(); err != nil {
			t.Fatal(err)
		}
	}
	url := "cassandra://" + server.hosts[0]
	refused(t, "has a keyspace theirs that kvdyno did not create", driver.None, map[string]string{"url": url, "keyspace": "theirs"})
	var count int
	if err := server.control.Query("SELECT count(*) FROM theirs.rows").Scan(&count); err != nil || count != 1 {
		t.Errorf("%d rows are left (%v)", count, err)
	}
	refused(t, "commitlog_sync periodic", driver.Power, map[string]string{"url": url, "keyspace": "own"})
	for range 2 { // the second finds the rows of the first
		own, effective, err := opened(t, driver.None, map[string]string{"url": url, "keyspace": "own"})
		if err != nil {
			t.Fatal(err)
		}
		session, err := own.Session()
		if err != nil {
			t.Fatal(err)
		}
		get := driver.NewOp(driver.Get, []byte("key"), nil, make([]byte, 8))
		if status, err := session.Get(get); status != driver.NotFound || err != nil {
			t.Errorf("a row is left: %v %v", status, err)
		}
		if status, err := session.Put(driver.NewOp(driver.Put, []byte("key"), []byte("value"), nil)); status != driver.OK || err != nil {
			t.Error(status, err)
		}
		if status, err := session.Get(get); status != driver.OK || string(get.Delivered()) != "value" || err != nil {
			t.Error(status, err)
		}
		if effective.Level != driver.None || effective.Compression != "lz4" || effective.Version == "" {
			t.Errorf("%+v", effective)
		}
	}
}

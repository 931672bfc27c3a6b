// Tests that a store which promises linearizability keeps it, also while its members are paused and killed; and that the check
// can fail.

package histories

import (
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"kvdyno/driver"
	"kvdyno/servers/cassandra"
	"kvdyno/servers/etcd"
	"kvdyno/servers/memcached"
	"kvdyno/servers/postgresql"
)

const checkLimit = 20 * time.Second

// register is a store in memory with planted bugs.
type register struct {
	lock sync.Mutex
	rows map[string]string
	// A write in `fails` fails, and every second of those takes effect all the same; 0: none.
	fails, writes int
}

func (r *register) End() error { return nil }

func (r *register) Get(op *driver.Op) (driver.Status, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	value, isThere := r.rows[string(op.Key)]
	if !isThere {
		return driver.NotFound, nil
	}
	return op.Deliver([]byte(value)), nil
}

func (r *register) write(change func()) (driver.Status, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.writes++
	if r.fails != 0 && r.writes%r.fails == 0 {
		if r.writes/r.fails%2 == 0 {
			change()
		}
		return driver.Failed, errors.New("planted")
	}
	change()
	return driver.OK, nil
}

func (r *register) Put(op *driver.Op) (driver.Status, error) {
	return r.write(func() { r.rows[string(op.Key)] = string(op.Value) })
}

func (r *register) Delete(op *driver.Op) (driver.Status, error) {
	return r.write(func() { delete(r.rows, string(op.Key)) })
}

// cached is a cache in front of a store, which a thread fills with what it reads and never empties: one read in ten is from it.
type cached struct {
	*register
	seen  map[string][]byte
	reads int
}

func (c *cached) Get(op *driver.Op) (driver.Status, error) {
	c.reads++
	if value, isThere := c.seen[string(op.Key)]; isThere && c.reads%10 == 0 {
		return op.Deliver(value), nil
	}
	status, err := c.register.Get(op)
	if status == driver.OK {
		c.seen[string(op.Key)] = append([]byte{}, op.Delivered()...)
	}
	return status, err
}

func seed(t *testing.T) uint64 {
	seed := rand.Uint64()
	if text := os.Getenv("SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SEED=%d", seed)
	return seed
}

func recorded(t *testing.T, open func() (driver.Session, error), plan Plan) *History {
	history, err := Record(open, plan)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d ops, %d reads, %d writes of unknown outcome", len(history.Operations), history.Reads, history.Unknown)
	return history
}

func TestARegisterIsLinearizableAlsoIfWritesFail(t *testing.T) {
	store := &register{rows: map[string]string{}, fails: 20}
	history := recorded(t, func() (driver.Session, error) { return store, nil }, Plan{Seed: seed(t), Threads: 5, Keys: 3, Ops: 1500})
	if history.Unknown == 0 {
		t.Error("no write has failed")
	}
	if found := history.Check(checkLimit); found != porcupine.Ok {
		t.Error(found)
	}
}

func TestAStaleCacheInFrontOfAStoreIsFound(t *testing.T) {
	store := &register{rows: map[string]string{}}
	open := func() (driver.Session, error) { return &cached{register: store, seen: map[string][]byte{}}, nil }
	history := recorded(t, open, Plan{Seed: seed(t), Threads: 5, Keys: 3, Ops: 1500})
	if found := history.Check(checkLimit); found != porcupine.Illegal {
		t.Errorf("%s instead of %s", found, porcupine.Illegal)
	}
}

// One read of a true history is changed to what the same key had before.
func TestOneStaleReadAmongManyIsFound(t *testing.T) {
	store := &register{rows: map[string]string{}}
	history := recorded(t, func() (driver.Session, error) { return store, nil }, Plan{Seed: seed(t), Threads: 1, Keys: 1, Ops: 1000})
	if found := history.Check(checkLimit); found != porcupine.Ok {
		t.Fatal(found)
	}
	var earlier []string
	for i, each := range history.Operations {
		asked := each.Input.(request)
		if !asked.isRead {
			earlier = append(earlier, asked.value)
		} else if count := len(earlier); i > 500 && earlier[count-1] != earlier[count-2] {
			history.Operations[i].Output = answer(earlier[count-2])
			break
		}
	}
	if found := history.Check(checkLimit); found != porcupine.Illegal {
		t.Errorf("%s instead of %s", found, porcupine.Illegal)
	}
}

// servers are the processes whose working directory is the folder or one below it.
func servers(t *testing.T, folder string) []int {
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		t.Fatal(err)
	}
	places, _ := filepath.Glob("/proc/[0-9]*/cwd")
	var all []int
	for _, each := range places {
		place, err := os.Readlink(each)
		if err != nil || (place != folder && filepath.Dir(place) != folder) {
			continue
		}
		if number, err := strconv.Atoi(filepath.Base(filepath.Dir(each))); err == nil {
			all = append(all, number)
		}
	}
	return all
}

// checked records a history of a store and checks it; faults gets the processes of its servers. A history in which a busy machine
// left too much open takes too long to check, and is recorded again.
func checked(t *testing.T, own driver.Driver, level driver.Level, settings map[string]string, plan Plan, faults func([]int) map[int]func()) {
	found := porcupine.Unknown
	for range 3 {
		if found = checkedOnce(t, own, level, settings, plan, faults); found != porcupine.Unknown {
			break
		}
	}
	if found != porcupine.Ok {
		t.Errorf("%s instead of %s", found, porcupine.Ok)
	}
}

func checkedOnce(t *testing.T, own driver.Driver, level driver.Level, settings map[string]string, plan Plan, faults func([]int) map[int]func()) porcupine.CheckResult {
	folder := t.TempDir()
	config := driver.NewConfig(own, folder, level, settings)
	config.Threads = uint32(plan.Threads)
	database, err := own.Open(config, &driver.Opened{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := database.Close(); err != nil {
			t.Error(err)
		}
	}()
	if faults != nil {
		plan.At = faults(servers(t, folder))
	}
	history := recorded(t, database.Session, plan)
	return history.Check(checkLimit)
}

// skipWithout skips a test whose server is not installed; CI must have it.
func skipWithout(t *testing.T, program string) {
	_, err := exec.LookPath(program)
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + program); err == nil || len(found) != 0 {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatal(program + " is not installed")
	}
	t.Skip(program + " is not installed")
}

func TestEtcdIsLinearizableWhileMembersArePausedAndKilled(t *testing.T) {
	skipWithout(t, "etcd")
	seed := seed(t)
	random := rand.New(rand.NewPCG(seed, 99))
	checked(t, etcd.Driver{}, driver.Power, map[string]string{"timeout": "1"}, Plan{Seed: seed, Threads: 5, Keys: 3, Ops: 1500},
		func(members []int) map[int]func() {
			if len(members) != 3 {
				t.Fatalf("%d members", len(members))
			}
			random.Shuffle(3, func(i, j int) { members[i], members[j] = members[j], members[i] })
			send := func(member int, signal syscall.Signal) func() {
				return func() {
					if err := syscall.Kill(members[member], signal); err != nil {
						t.Error(err)
					}
				}
			}
			return map[int]func(){400: send(0, syscall.SIGSTOP), 420: send(0, syscall.SIGCONT), 700: send(1, syscall.SIGSTOP),
				720: send(1, syscall.SIGCONT), 1000: send(2, syscall.SIGKILL)}
		})
}

func TestPostgresqlIsLinearizable(t *testing.T) {
	skipWithout(t, "postgres")
	checked(t, postgresql.Driver{}, driver.None, nil, Plan{Seed: seed(t), Threads: 5, Keys: 3, Ops: 3000}, nil)
}

func TestMemcachedIsLinearizable(t *testing.T) {
	skipWithout(t, "memcached")
	checked(t, memcached.Driver{}, driver.None, nil, Plan{Seed: seed(t), Threads: 5, Keys: 3, Ops: 3000}, nil)
}

// Cassandra is only in `make test-all`, which names its folder.
func TestOneNodeOfCassandraIsLinearizable(t *testing.T) {
	if os.Getenv("KVDYNO_CASSANDRA") == "" {
		t.Skip("KVDYNO_CASSANDRA is not set")
	}
	checked(t, cassandra.Driver{}, driver.None, nil, Plan{Seed: seed(t), Threads: 5, Keys: 3, Ops: 3000}, nil)
}

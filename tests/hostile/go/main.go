// A correct engine, sorted rows with a lock, and one fault, selected by HOSTILE_FAULT: the faults that a driver in Go can have
// through the kit: panics, exits, deadlocks, goroutines, slices that it does not own, wrong answers.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"kvdyno/driver"
)

var fault = os.Getenv("HOSTILE_FAULT")

var occasions atomic.Uint64

// strikes reports whether name is the selected fault, and this is its twentieth occasion or every seventh after.
func strikes(name string) bool {
	if fault != name {
		return false
	}
	seen := occasions.Add(1) - 1
	return seen >= 20 && (seen-20)%7 == 0
}

var sink any

// at triggers the faults of the process that any call can have: CALL/HOW.
func at(call string) {
	wanted, how, _ := strings.Cut(fault, "/")
	if wanted != call {
		return
	}
	switch how {
	case "panic":
		panic("the page is torn")
	case "panic-nil":
		panic(nil)
	case "panic-error":
		panic(errors.New("the page is torn"))
	case "nil-map":
		var rows map[string]int
		rows["a"] = 1
	case "index":
		var rows []int
		sink = rows[len(call)]
	case "nil-pointer":
		var rows *database
		sink = rows.rows
	case "goexit":
		runtime.Goexit()
	case "print-error":
		fmt.Fprintln(os.Stderr, "\x1b[2J\x1b]0;owned\x07from the driver")
	case "exit":
		os.Exit(0)
	case "exit-5":
		os.Exit(5)
	case "kill":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "goroutine-panic":
		go panic("the compaction goroutine died")
		time.Sleep(time.Hour)
	case "concurrent-map":
		rows := map[int]int{}
		for range 2 {
			go func() {
				for i := 0; ; i++ {
					rows[i%100] = i
				}
			}()
		}
		time.Sleep(time.Hour)
	case "overflow":
		sink = deep(0)
	case "deadlock":
		var lock sync.Mutex
		lock.Lock()
		lock.Lock()
	case "unlock":
		var lock sync.Mutex
		lock.Unlock()
	case "select":
		select {}
	case "endless":
		for {
			occasions.Add(1)
		}
	case "print":
		fmt.Println("\x1b[2J\x1b]0;owned\afrom the driver")
	case "closed-files":
		for file := range 64 {
			syscall.Close(file)
		}
		panic("after closing all files")
	}
}

func deep(depth int) int {
	var room [4096]int
	room[depth%4096] = depth
	return deep(depth+1) + room[(depth+1)%4096]
}

type hostile struct{}

// Info of the engine.
func (hostile) Info() driver.Info {
	return driver.Info{
		Name:   "hostile-go",
		Engine: "sorted rows with a fault, for the tests of kvdyno",
		Family: "example",
		Capabilities: driver.Ordered | driver.CanReverse | driver.CanPrefix | driver.CanDelete | driver.DeleteTells |
			driver.Overwrite | driver.CanNew | driver.Transaction | driver.InMemory,
		Levels: []driver.Level{driver.None},
	}
}

type row struct{ key, value []byte }

// database is also its own session.
type database struct {
	lock sync.RWMutex
	rows []row
	last []byte
}

// Open of a database.
func (hostile) Open(config *driver.Config, opened *driver.Opened) (driver.Database, error) {
	at("open")
	switch fault {
	case "open-mute":
		return nil, errors.New("")
	case "open-nil":
		return nil, nil
	case "open-escapes":
		return nil, errors.New("\x1b[31mred\x1b[0m \a \r\n and on")
	case "open-zero":
		return nil, errors.New("a zero \x00 within")
	case "open-not-utf8":
		return nil, errors.New("\xff\xfe\x80")
	}
	level, err := config.Pick(driver.None)
	if err != nil {
		return nil, err
	}
	opened.Level, opened.Version, opened.Compression = level, "1", "none"
	switch fault {
	case "level-not-declared":
		opened.Level = driver.Power
	case "level-unknown":
		opened.Level = 77
	case "version-zero":
		opened.Version = "1\x00.2"
	case "capability-gained":
		opened.Capabilities |= driver.MergeAdd
	}
	return &database{}, nil
}

// Session of a thread.
func (d *database) Session() (driver.Session, error) {
	at("session")
	if fault == "session-nil" {
		return nil, nil
	}
	return d, nil
}

// End of a session.
func (d *database) End() error {
	at("end")
	return nil
}

// Close of the database.
func (d *database) Close() error {
	at("close")
	if fault == "close-fails" {
		return errors.New("the last page cannot be written")
	}
	return nil
}

// Maintain has nothing to do.
func (d *database) Maintain(work driver.Work) (bool, error) {
	at("maintain")
	return work != driver.Compact, nil
}

func (d *database) find(key []byte) (int, bool) {
	return slices.BinarySearchFunc(d.rows, key, func(r row, key []byte) int { return bytes.Compare(r.key, key) })
}

// Get of a key.
func (d *database) Get(op *driver.Op) (driver.Status, error) {
	at("get")
	switch fault {
	case "get-unknown":
		return 77, nil
	case "get-exists":
		return driver.Exists, nil
	case "get-unsupported":
		return driver.Unsupported, nil
	case "get-failed":
		return driver.Failed, nil
	case "get-not-run":
		return driver.NotRun, nil
	case "get-mute":
		return driver.OK, errors.New("")
	case "get-writes-key":
		op.Key[0] ^= 1
	}
	d.lock.RLock()
	defer d.lock.RUnlock()
	place, is := d.find(op.Key)
	if !is {
		return driver.NotFound, nil
	}
	value := d.rows[place].value
	switch {
	case strikes("get-missing"):
		return driver.NotFound, nil
	case strikes("get-neighbour"):
		value = d.rows[(place+1)%len(d.rows)].value
	case strikes("get-half"):
		value = value[:len(value)/2]
	case strikes("get-nothing-delivered"):
		return driver.OK, nil
	case strikes("get-twice-delivered"):
		op.Deliver(value)
		op.Deliver(nil)
		return driver.OK, nil
	case fault == "get-beyond":
		op.Deliver(value)
		*(*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(op.Key)), len(op.Key))) ^= 1
		return driver.OK, nil
	}
	return op.Deliver(value), nil
}

// Put of a key.
func (d *database) Put(op *driver.Op) (driver.Status, error) {
	at("put")
	if fault == "put-writes-value" && len(op.Value) > 0 {
		op.Value[len(op.Value)-1] ^= 1
	}
	d.lock.Lock()
	defer d.lock.Unlock()
	return d.apply(op), nil
}

// Delete of a key.
func (d *database) Delete(op *driver.Op) (driver.Status, error) {
	at("delete")
	d.lock.Lock()
	defer d.lock.Unlock()
	return d.apply(op), nil
}

func (d *database) apply(op *driver.Op) driver.Status {
	key, value := bytes.Clone(op.Key), bytes.Clone(op.Value)
	// Slices that belong to the caller, who writes to them after the call.
	if fault == "put-keeps-key" {
		key = op.Key
	}
	if fault == "put-keeps-value" {
		value = op.Value
	}
	place, is := d.find(op.Key)
	switch {
	case op.Kind() == driver.Delete && !is:
		return driver.NotFound
	case op.Kind() == driver.Delete && strikes("delete-ignored"):
	case op.Kind() == driver.Delete:
		d.rows = slices.Delete(d.rows, place, place+1)
	case is && op.IsNew():
		return driver.Exists
	case strikes("put-lost"):
	case is && strikes("put-stale"):
	case is:
		d.rows[place].value = value
	default:
		d.rows = slices.Insert(d.rows, place, row{key, value})
	}
	return driver.OK
}

// Group makes all of a group's changes under one lock.
func (d *database) Group(ops []driver.Op, isAtomic bool) (driver.Status, error) {
	at("group")
	if fault == "group-unanswered" {
		return driver.OK, nil
	}
	for i := range ops {
		if kind := ops[i].Kind(); kind == driver.Put || kind == driver.Delete {
			continue
		} else if isAtomic {
			return driver.Unsupported, driver.Fail(driver.Unsupported, "a transaction is of puts and deletes only")
		}
		return driver.NotRun, nil
	}
	d.lock.Lock()
	defer d.lock.Unlock()
	for i := range ops {
		if fault == "group-half" && i > len(ops)/2 {
			ops[i].SetStatus(driver.OK)
			continue
		}
		ops[i].SetStatus(d.apply(&ops[i]))
	}
	return driver.OK, nil
}

// Scan from the position in the op.
func (d *database) Scan(op *driver.Op) (driver.Status, error) {
	at("scan")
	d.lock.RLock()
	defer d.lock.RUnlock()
	from, to := op.Range()
	var found []row
	for _, r := range d.rows {
		if bytes.Compare(r.key, from) >= 0 && (to == nil || bytes.Compare(r.key, to) < 0) {
			found = append(found, r)
		}
	}
	if op.IsReverse() {
		slices.Reverse(found)
	}
	if len(found) > 2 {
		switch {
		case strikes("scan-swapped"):
			found[0], found[1] = found[1], found[0]
		case strikes("scan-twice"):
			found = slices.Insert(found, 1, found[0])
		case strikes("scan-gap"):
			found = slices.Delete(found, 1, 2)
		case strikes("scan-values-moved"):
			found[0].value, found[1].value = found[1].value, found[0].value
		case strikes("scan-nothing"):
			found = nil
		}
	}
	rows := op.Rows()
	for _, r := range found {
		if !rows.Push(r.key, r.value) {
			break
		}
	}
	return rows.Status(), nil
}

func init() { driver.Register(hostile{}) }

func main() {}

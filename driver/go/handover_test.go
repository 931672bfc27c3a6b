// Batches that a session's own goroutine runs: answers, stamps, waits, and the end.

package driver

import (
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"kvdyno/driver/internal/tick"
)

// send sends a batch and returns the ticks that the call took.
func (b *bench) send(mail *mail) (Status, uint64) {
	b.batch.waited = 0
	from := ticks(b.batch.clock)
	status := handOver(mail, &b.batch)
	took := ticks(b.batch.clock) - from
	runtime.KeepAlive(b)
	return status, took
}

func TestABatchThatIsHandedOverRunsInAGoroutineAndTellsWhatTheWayTook(t *testing.T) {
	const workNs = 200_000
	here := make(chan Status)
	engine := make(chan struct{})
	go func() { // the engine's own goroutine; each op waits for it
		for range engine {
			here <- OK
		}
	}()
	r := newRunner(&scripted{call: func(op *Op) (Status, error) {
		for until := tick.Monotonic() + workNs; tick.Monotonic() < until; {
		}
		engine <- struct{}{}
		return <-here, nil
	}}, everything, 1, 0)
	mail := r.ownGoroutine()
	best := 0.0 // the share of a call that is accounted for; the machine may interrupt between two clock reads
	for range 50 {
		b := newBench(Put, Get, Put)
		status, took := b.send(mail)
		if status != OK || b.batch.done != 3 || b.statuses() != "0 0 0" {
			t.Fatalf("result %v, done %d, statuses %s", status, b.batch.done, b.statuses())
		}
		inside := b.raws[2].end - b.batch.start
		if inside < 3*workNs {
			t.Fatalf("the ops took %d ticks, each must take %d", inside, workNs)
		}
		// The ops and the transfer there and back add up to the call, and the transfer belongs to no op.
		told := b.batch.waited + inside
		if b.batch.waited == 0 || told > took {
			t.Fatalf("waited %d and worked %d ticks in a call of %d", b.batch.waited, inside, took)
		}
		best = max(best, float64(told)/float64(took))
	}
	if best < 0.95 {
		t.Fatalf("the ops and the transfer are at best %.2f of the call", best)
	}
	endGoroutine(mail)
	close(engine)
}

func TestSleepingGoroutinesAreWokenAndThoseThatEndAreGone(t *testing.T) {
	before := runtime.NumGoroutine()
	var group sync.WaitGroup
	for range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			seen := 0
			r := newRunner(&scripted{call: func(op *Op) (Status, error) { seen++; return OK, nil }}, everything, 1, 0)
			mail := r.ownGoroutine()
			for round := range 200 {
				if round%50 == 0 { // long enough for it to sleep
					time.Sleep(2 * lookNs)
				}
				b := newBench(Put, Put)
				if status, _ := b.send(mail); status != OK || seen != 2*(round+1) {
					t.Errorf("round %d: result %v, %d ops", round, status, seen)
				}
			}
			endGoroutine(mail)
		}()
	}
	group.Wait()
	for wait := 0; runtime.NumGoroutine() > before; wait++ {
		if wait > 1000 {
			t.Fatalf("%d goroutines; there were %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestAPanicInABatchThatWasHandedOverIsAnErrorAndTheNextOneRuns(t *testing.T) {
	session := &scripted{call: func(op *Op) (Status, error) { panic("broken") }}
	mail := newRunner(session, everything, 1, 0).ownGoroutine()
	b := newBench(Put)
	if status, _ := b.send(mail); status != Failed || b.text() == "" {
		t.Fatalf("result %v, text %q", status, b.text())
	}
	session.call = okay
	b = newBench(Put)
	if status, _ := b.send(mail); status != OK || b.text() != "" {
		t.Fatalf("result %v, text %q", status, b.text())
	}
	// After its deadline a batch runs nothing, but still has its start and the transfer time.
	b = newBench(Put)
	b.batch.deadline = 1
	if status, took := b.send(mail); status != OK || b.batch.done != 0 || b.batch.waited > took {
		t.Fatalf("result %v, done %d, waited %d of %d", status, b.batch.done, b.batch.waited, took)
	}
	endGoroutine(mail)
}

func TestBatchesAreHandedOverWhereOpsWaitForOthers(t *testing.T) {
	for _, kinds := range [][]Kind{{Get}, {Scan, Get}, {Put}, {Get, Get, Delete}, {Merge}, {Get, Commit}} {
		b := newBench(kinds...)
		hasWrite := false
		for _, kind := range kinds {
			hasWrite = hasWrite || (kind != Get && kind != Scan)
		}
		for _, wanted := range []struct {
			rule, sessions uint32
			is             bool
		}{
			{ruleNever, 2, false}, {ruleAlways, 1, true}, {ruleSeveral, 1, false}, {ruleSeveral, 2, true},
			{ruleEither, 1, hasWrite}, {ruleEither, 2, true}, {ruleWrites, 1, hasWrite}, {ruleWrites, 2, hasWrite},
		} {
			found := isHandedOver(wanted.rule, wanted.sessions, uintptr(unsafe.Pointer(&b.batch)))
			if found != wanted.is {
				t.Errorf("%v, rule %d, %d sessions: %v", kinds, wanted.rule, wanted.sessions, found)
			}
		}
		runtime.KeepAlive(b)
	}
}

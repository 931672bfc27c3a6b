// Batches that a session's own goroutine runs: answers, stamps, what was waited for, and the end.

package driver

import (
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"kvdyno/driver/internal/tick"
)

// send sends a batch and gives the ticks that the call took.
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
	go func() { // the engine's own goroutine, for which each op waits
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
	best := 0.0 // of a call, what it accounts for; the machine may interrupt between two reads of the clock
	for range 50 {
		b := newBench(Put, Get, Put)
		status, took := b.send(mail)
		if status != OK || b.batch.done != 3 || b.statuses() != "0 0 0" {
			t.Fatalf("result %v, done %d, statuses %s", status, b.batch.done, b.statuses())
		}
		inside := b.raws[2].end - b.batch.start
		if inside < 3*workNs {
			t.Fatalf("the ops took %d ticks, each has %d to do", inside, workNs)
		}
		// The ops and the way there and back are the call, and the way is no op's.
		told := b.batch.waited + inside
		if b.batch.waited == 0 || told > took {
			t.Fatalf("waited %d and worked %d ticks in a call of %d", b.batch.waited, inside, took)
		}
		best = max(best, float64(told)/float64(took))
	}
	if best < 0.95 {
		t.Fatalf("the ops and the way there and back are %.2f of the call at best", best)
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
			t.Fatalf("%d goroutines, before %d", runtime.NumGoroutine(), before)
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
	// Past its deadline a batch runs nothing, and has its start and the way all the same.
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

// The loop on sessions that a test scripts.

package driver

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"
	"unsafe"
)

// scripted is a session that does what a test defines.
type scripted struct {
	call  func(op *Op) (Status, error)
	group func(ops []Op, atomic bool) (Status, error)
}

func (s *scripted) Get(op *Op) (Status, error)    { return s.call(op) }
func (s *scripted) Put(op *Op) (Status, error)    { return s.call(op) }
func (s *scripted) Delete(op *Op) (Status, error) { return s.call(op) }
func (s *scripted) Scan(op *Op) (Status, error)   { return s.call(op) }
func (s *scripted) Merge(op *Op) (Status, error)  { return s.call(op) }
func (s *scripted) End() error                    { return nil }
func (s *scripted) Group(ops []Op, isAtomic bool) (Status, error) {
	if s.group == nil {
		return NotRun, nil
	}
	return s.group(ops, isAtomic)
}

const everything = Ordered | CanReverse | CanPrefix | Transaction | CanDelete | CanNew | MergeAdd | Keyspaces

type bench struct {
	raws  []rawOp
	batch rawBatch
	stop  uint32
}

func newBench(kinds ...Kind) *bench {
	b := &bench{raws: make([]rawOp, len(kinds))}
	for i, kind := range kinds {
		key := []byte(fmt.Sprintf("key%03d", i))
		out := make([]byte, 64)
		b.raws[i] = rawOp{kind: kind, key: &key[0], keyLength: uint32(len(key)), value: &key[0],
			valueLength: uint32(len(key)), out: &out[0], outSize: uint32(len(out)), status: NotRun}
	}
	b.batch = rawBatch{ops: &b.raws[0], count: uint32(len(kinds)), stop: &b.stop}
	return b
}

func (b *bench) run(session Session, capabilities uint64) Status {
	return newRunner(session, capabilities, 1, 0).run(&b.batch)
}

func (b *bench) text() string {
	text, _, _ := bytes.Cut(b.batch.errorText[:], []byte{0})
	return string(text)
}

func (b *bench) statuses() string {
	var all []string
	for i := range b.raws {
		all = append(all, fmt.Sprint(b.raws[i].status))
	}
	return strings.Join(all, " ")
}

func okay(*Op) (Status, error) { return OK, nil }

func TestOpsRunInOrderAndAreStampedWithoutGaps(t *testing.T) {
	b := newBench(Get, Put, Delete, Get)
	var seen []string
	result := b.run(&scripted{call: func(op *Op) (Status, error) {
		seen = append(seen, string(op.Key))
		return OK, nil
	}}, everything)
	if result != OK || b.batch.done != 4 || strings.Join(seen, " ") != "key000 key001 key002 key003" {
		t.Fatalf("result %v, done %d, ran %v", result, b.batch.done, seen)
	}
	start := b.batch.start
	for i := range b.raws {
		if b.raws[i].start != start || b.raws[i].end < start {
			t.Fatalf("op %d: from %d to %d, the previous op ended at %d", i, b.raws[i].start, b.raws[i].end, start)
		}
		start = b.raws[i].end
	}
}

func TestTheStopWordEndsABatchBetweenTwoOps(t *testing.T) {
	b := newBench(Get, Get, Get)
	b.run(&scripted{call: func(op *Op) (Status, error) {
		atomic.StoreUint32(&b.stop, 1)
		return OK, nil
	}}, everything)
	if b.batch.done != 1 || b.statuses() != "0 9 9" {
		t.Fatalf("done %d, statuses %s", b.batch.done, b.statuses())
	}
}

func TestNoOpStartsAfterTheDeadlineOrBeforeItIsDue(t *testing.T) {
	b := newBench(Get, Get)
	b.batch.deadline = 1 // long past
	b.run(&scripted{call: okay}, everything)
	if b.batch.done != 0 {
		t.Fatalf("done %d after the deadline", b.batch.done)
	}
	b = newBench(Get, Get)
	b.raws[1].due = ticks(0) + 2_000_000
	b.run(&scripted{call: okay}, everything)
	if b.raws[1].start < b.raws[1].due || b.batch.waited == 0 {
		t.Fatalf("started at %d, due at %d, waited %d", b.raws[1].start, b.raws[1].due, b.batch.waited)
	}
}

func TestAnErrorHasItsTextAndTheRestGoesOn(t *testing.T) {
	b := newBench(Get, Get, Get)
	result := b.run(&scripted{call: func(op *Op) (Status, error) {
		switch string(op.Key) {
		case "key000":
			return OK, errors.New("first")
		case "key001":
			return OK, Fail(Full, "second")
		}
		return OK, nil
	}}, everything)
	if result != Failed || b.text() != "first" || b.batch.errorOp != 0 || b.statuses() != "10 6 0" {
		t.Fatalf("result %v, text %q of op %d, statuses %s", result, b.text(), b.batch.errorOp, b.statuses())
	}
}

func TestAPanicEndsTheBatchWithATextAndTheSessionLivesOn(t *testing.T) {
	b := newBench(Get, Get, Get)
	session := &scripted{call: func(op *Op) (Status, error) {
		if string(op.Key) == "key001" {
			panic("broken")
		}
		return OK, nil
	}}
	if result := b.run(session, everything); result != Failed || b.batch.done != 2 || b.statuses() != "0 10 9" {
		t.Fatalf("done %d, statuses %s", b.batch.done, b.statuses())
	}
	if !strings.Contains(b.text(), "broken") || b.batch.errorOp != 1 {
		t.Fatalf("text %q of op %d", b.text(), b.batch.errorOp)
	}
	session.call = okay
	b = newBench(Get)
	if result := b.run(session, everything); result != OK {
		t.Fatalf("after a panic: %v", result)
	}
}

func TestAPanicInAGroupFailsTheWholeGroup(t *testing.T) {
	b := newBench(Put, Put, Put, Put)
	b.raws[1].flags = flagJoin | flagAtomic
	session := &scripted{call: okay, group: func(ops []Op, _ bool) (Status, error) {
		for i := range ops {
			ops[i].SetStatus(OK)
		}
		panic("the disk is broken")
	}}
	if status := b.run(session, everything); status != Failed {
		t.Error(status)
	}
	if want := fmt.Sprint(OK, Failed, Failed, NotRun); b.statuses() != want || b.batch.done != 3 {
		t.Errorf("%s, done %d; want %s", b.statuses(), b.batch.done, want)
	}
}

func TestWhatIsNotDeclaredIsRefusedWithoutACall(t *testing.T) {
	never := &scripted{call: func(op *Op) (Status, error) { panic("called") }}
	for name, change := range map[string]func(op *rawOp){
		"delete":   func(op *rawOp) { op.kind = Delete },
		"scan":     func(op *rawOp) { op.kind = Scan },
		"merge":    func(op *rawOp) { op.kind = Merge },
		"new":      func(op *rawOp) { op.kind, op.flags = Put, flagNew },
		"live":     func(op *rawOp) { op.kind, op.limit = Put, 7 },
		"touch":    func(op *rawOp) { op.flags = flagTouch },
		"keyspace": func(op *rawOp) { op.keyspace = 1 },
		"begin":    func(op *rawOp) { op.kind = Begin },
		"nonsense": func(op *rawOp) { op.kind = 77 },
	} {
		b := newBench(Get)
		change(&b.raws[0])
		if b.run(never, 0); b.raws[0].status != Unsupported {
			t.Errorf("%s: status %d", name, b.raws[0].status)
		}
	}
}

func TestAGroupIsOneCallWithOneStamp(t *testing.T) {
	b := newBench(Put, Put, Put, Get)
	b.raws[0].flags, b.raws[1].flags = flagJoin|flagAtomic, flagJoin|flagAtomic
	b.raws[2].flags = flagAtomic
	calls := 0
	b.run(&scripted{call: okay, group: func(ops []Op, isAtomic bool) (Status, error) {
		calls += len(ops)
		for i := range ops {
			ops[i].SetStatus(OK)
		}
		if !isAtomic {
			return Failed, errors.New("is no transaction")
		}
		return OK, nil
	}}, everything)
	if calls != 3 || b.statuses() != "0 0 0 0" || b.batch.done != 4 {
		t.Fatalf("calls of %d ops, statuses %s, done %d: %s", calls, b.statuses(), b.batch.done, b.text())
	}
	if b.raws[0].start != b.raws[2].start || b.raws[0].end != b.raws[2].end || b.raws[3].start != b.raws[2].end {
		t.Fatal("the ops of a group do not share their stamps")
	}
}

func TestAGroupThatIsNothingSpecialRunsOneByOneUnlessItIsATransaction(t *testing.T) {
	for _, flags := range []uint16{flagJoin, flagJoin | flagAtomic} {
		b := newBench(Put, Put)
		b.raws[0].flags, b.raws[1].flags = flags, flags&flagAtomic
		b.run(&scripted{call: okay}, everything)
		wanted := "0 0"
		if flags&flagAtomic != 0 {
			wanted = "8 8"
		}
		if b.statuses() != wanted || b.batch.done != 2 {
			t.Errorf("flags %d: statuses %s, done %d", flags, b.statuses(), b.batch.done)
		}
	}
}

func TestEnginesThatKeepSlicesGetCopiesOfTheirOwn(t *testing.T) {
	var kept [][]byte
	session := &scripted{call: func(op *Op) (Status, error) {
		kept = append(kept, op.Key, op.Value)
		return OK, nil
	}}
	b := newBench(Put, Put)
	b.run(session, everything|KeepsKey|KeepsValue)
	for i := range b.raws {
		for at := range b.raws[i].keyLength { // the caller reuses its memory
			*(*byte)(unsafe.Add(unsafe.Pointer(b.raws[i].key), at)) = 'x'
		}
	}
	for i, slice := range kept {
		if wanted := fmt.Sprintf("key%03d", i/2); string(slice) != wanted || cap(slice) != len(slice) {
			t.Errorf("slice %d is %q with room for %d, expected %q", i, slice, cap(slice), wanted)
		}
	}
}

func TestALoopOfABatchAllocatesNothing(t *testing.T) {
	b := newBench(Get, Put, Get, Put)
	r := newRunner(&scripted{call: okay}, everything, 1, 0)
	r.run(&b.batch)
	if found := testing.AllocsPerRun(100, func() { r.run(&b.batch) }); found != 0 {
		t.Errorf("%v allocations per batch", found)
	}
}

func TestATextIsCutAtACharactersEdge(t *testing.T) {
	for size := 1; size < 12; size++ {
		field := bytes.Repeat([]byte{'!'}, size)
		writeText(field, "a\u00e9\u20acb\xffc")
		text, _, ended := bytes.Cut(field, []byte{0})
		if !ended || !strings.HasPrefix("a\u00e9\u20acb?c", string(text)) {
			t.Errorf("room for %d: %q", size, field)
		}
	}
}

func TestALongErrorKeepsItsEnd(t *testing.T) {
	field := make([]byte, 60)
	writeError(field, "While appending to file: /a/\u00e9"+strings.Repeat("long/", 40)+"\u20ac: No space left on device")
	text, _, ended := bytes.Cut(field, []byte{0})
	if !ended || !utf8.Valid(text) || !strings.HasPrefix(string(text), "While app") || !strings.HasSuffix(string(text), ": No space left on device") {
		t.Errorf("%q", text)
	}
	writeError(field, "short")
	if text, _, _ := bytes.Cut(field, []byte{0}); string(text) != "short" {
		t.Errorf("%q", text)
	}
}

// What the kit copies for an engine that keeps slices counts as that engine's time: others copy inside their calls.
func TestCopiesAreInTheTimeOfTheirOp(t *testing.T) {
	value := make([]byte, 4<<20)
	best := 0.0
	for range 9 {
		b := newBench(Put, Put, Get)
		for i := range b.raws {
			b.raws[i].value, b.raws[i].valueLength = &value[0], uint32(len(value))
		}
		r := newRunner(&scripted{call: okay}, everything|KeepsValue, 1, 0)
		began := ticks(b.batch.clock)
		r.run(&b.batch)
		took := ticks(b.batch.clock) - began
		puts := b.raws[1].end - b.raws[0].start
		best = max(best, float64(puts)/float64(took))
		if b.raws[0].end == b.raws[0].start || b.raws[1].end == b.raws[1].start {
			t.Fatal("a put that copies 4 MiB takes no time")
		}
	}
	if best < 0.9 {
		t.Fatalf("the puts are at best %.2f of the call", best)
	}
}

func TestWritesOfAGroupGetCopiesOnceHoweverItIsRun(t *testing.T) {
	for _, isSpecial := range []bool{true, false} {
		var seen [][]byte
		note := func(op *Op) (Status, error) {
			seen = append(seen, op.Value)
			return OK, nil
		}
		session := &scripted{call: note}
		if isSpecial {
			session.group = func(ops []Op, _ bool) (Status, error) {
				for i := range ops {
					ops[i].SetStatus(OK)
					_, _ = note(&ops[i])
				}
				return OK, nil
			}
		}
		b := newBench(Put, Get, Put)
		b.raws[0].flags, b.raws[1].flags = flagJoin, flagJoin
		b.run(session, everything|KeepsValue)
		if b.statuses() != "0 0 0" || len(seen) != 3 {
			t.Fatalf("special %v: statuses %s, %d ops", isSpecial, b.statuses(), len(seen))
		}
		for i, value := range seen {
			isCaller := unsafe.SliceData(value) == b.raws[i].value
			if isCaller != (b.raws[i].kind == Get) {
				t.Errorf("special %v: op %d shares the caller's bytes: %v", isSpecial, i, isCaller)
			}
		}
	}
}

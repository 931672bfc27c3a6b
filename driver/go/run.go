// The timed loop: stamps, due times, groups, refusals, panics.

package driver

import (
	"bytes"
	"fmt"
	"strings"
	"sync/atomic"
	"unicode/utf8"
	"unsafe"

	"kvdyno/driver/internal/tick"
)

// runner is a session with the memory of its loop.
type runner struct {
	session Session
	deleter Deleter
	scanner Scanner
	merger  Merger
	grouper Grouper
	lister  Lister

	capabilities uint64
	keyspaces    int
	refusedFlags uint16
	keySizeMax   uint32 // 0: the engine has no limit
	ops          []Op   // one for each op of a batch, on the Go side
	at           int    // the op that runs now; used after a panic
}

func newRunner(session Session, capabilities uint64, keyspaces int, keySizeMax uint32) *runner {
	r := &runner{session: session, capabilities: capabilities, keyspaces: keyspaces, keySizeMax: keySizeMax}
	r.deleter, _ = session.(Deleter)
	r.scanner, _ = session.(Scanner)
	r.merger, _ = session.(Merger)
	r.grouper, _ = session.(Grouper)
	r.lister, _ = session.(Lister)
	for _, need := range []struct {
		capability uint64
		flag       uint16
	}{{CanNew, flagNew}, {CanReverse, flagReverse}, {CanPrefix, flagPrefix}, {CanHold, flagHold}, {CanTouch, flagTouch},
		{MergeAppend, flagAppend}} {
		if capabilities&need.capability == 0 {
			r.refusedFlags |= need.flag
		}
	}
	return r
}

// BestClock is the processor's counter, if this kit can read one.
const BestClock = clockCounter

// Ticks reads a clock of driver.h; benches read it as the loop does.
func Ticks(clock uint32) uint64 { return ticks(clock) }

func ticks(clock uint32) uint64 {
	if clock == clockCounter {
		return tick.Counter()
	}
	return tick.Monotonic()
}

// orderedTicks reads a clock after all preceding instructions have ended: a plain read of the counter may run ahead of them,
// and their time would count as that of whatever follows. The monotonic clock is ordered by itself.
func orderedTicks(clock uint32) uint64 {
	if clock == clockCounter {
		return tick.Ordered()
	}
	return tick.Monotonic()
}

// endTicks is the end of an op. What the last op of a batch has left unfinished would belong to no op.
func endTicks(clock uint32, isLast bool) uint64 {
	if isLast {
		return orderedTicks(clock)
	}
	return ticks(clock)
}

// isRefused reports whether an op needs a capability that is not declared, or a keyspace that was not opened.
func (r *runner) isRefused(raw *rawOp) bool {
	has := r.capabilities
	if raw.flags&r.refusedFlags != 0 || int(raw.keyspace) >= r.keyspaces {
		return true
	}
	switch raw.kind {
	case Get:
		return false
	case Put:
		return raw.limit != 0 && has&TimeToLive == 0
	case Delete:
		return has&CanDelete == 0 || r.deleter == nil
	case Scan:
		return (has&Ordered == 0 && raw.flags&flagPrefix == 0) || r.scanner == nil
	case Merge:
		return (has&MergeAdd == 0 && raw.flags&flagAppend == 0) || r.merger == nil
	case Push, Pop:
		return has&Lists == 0 || r.lister == nil
	default:
		return true
	}
}

func (r *runner) isTooLong(raw *rawOp) bool {
	return r.keySizeMax != 0 && raw.keyLength > r.keySizeMax && isWrite(raw.kind)
}

func (r *runner) one(op *Op) (Status, error) {
	raw := op.raw
	raw.retries = 0
	if r.isRefused(raw) {
		return Unsupported, nil
	}
	if r.isTooLong(raw) {
		return TooLarge, Fail(TooLarge, "a key has at most %d bytes", r.keySizeMax)
	}
	r.own(op)
	return r.call(op)
}

// call passes an op to the session, which supports it.
func (r *runner) call(op *Op) (Status, error) {
	switch op.raw.kind {
	case Get:
		return r.session.Get(op)
	case Put:
		return r.session.Put(op)
	case Delete:
		return r.deleter.Delete(op)
	case Scan:
		return r.scanner.Scan(op)
	case Push:
		return r.lister.Push(op)
	case Pop:
		return r.lister.Pop(op)
	default:
		return r.merger.Merge(op)
	}
}

// shadow makes the Go side's view of a batch.
func (r *runner) shadow(raws []rawOp) []Op {
	if len(r.ops) < len(raws) {
		r.ops = make([]Op, len(raws))
	}
	ops := r.ops[:len(raws)]
	for i := range raws {
		raw := &raws[i]
		op := &ops[i] // field by field: assigning a complete Op takes five times as long
		op.Key, op.Value, op.raw = unsafe.Slice(raw.key, raw.keyLength), unsafe.Slice(raw.value, raw.valueLength), raw
	}
	return ops
}

func isWrite(kind Kind) bool { return kind == Put || kind == Delete || kind == Merge || kind == Push }

// own gives a write copies of what the engine keeps, in the op's own time: other engines make their copies in theirs.
func (r *runner) own(op *Op) {
	if r.capabilities&(KeepsKey|KeepsValue) == 0 || !isWrite(op.raw.kind) {
		return
	}
	if r.capabilities&KeepsKey != 0 {
		op.Key = copied(op.Key)
	}
	if r.capabilities&KeepsValue != 0 {
		op.Value = copied(op.Value)
	}
}

// copied is a copy without room to grow.
func copied(bytes []byte) []byte {
	made := make([]byte, len(bytes))
	copy(made, bytes)
	return made
}

func (batch *rawBatch) isOver(now uint64) bool {
	return (batch.deadline != 0 && now >= batch.deadline) || atomic.LoadUint32(batch.stop) != 0
}

// fail writes the first error text of a batch.
func (batch *rawBatch) fail(op int, text string) {
	if batch.errorText[0] != 0 {
		return
	}
	if text == "" {
		text = "an error without a message"
	}
	writeError(batch.errorText[:], text)
	batch.errorOp = uint32(op)
}

// writeError writes the text of an error. Of a text that is too long, a part of the beginning and the end are kept: errors
// say first where, and at the end what went wrong.
func writeError(field []byte, text string) {
	room := len(field) - 1
	text = strings.ToValidUTF8(text, "?")
	if len(text) > room {
		head, tail := room/3, len(text)-(room-room/3-2)
		for head > 0 && !utf8.RuneStart(text[head]) {
			head--
		}
		for tail < len(text) && !utf8.RuneStart(text[tail]) {
			tail++
		}
		text = text[:head] + ".." + text[tail:]
	}
	writeText(field, text)
}

// writeText writes a text that ends with NUL, cut at a character boundary.
func writeText(field []byte, text string) {
	text = string(bytes.ToValidUTF8([]byte(text), []byte("?")))
	for len(text) > len(field)-1 {
		runes := []rune(text[:len(field)-1])
		text = string(bytes.TrimRight([]byte(string(runes)), "\uFFFD"))
	}
	field[copy(field, text)] = 0
}

// run runs a batch (rules 3, 6, 7 and 11 of driver.h). It returns OK, or Failed when an op failed with a text. A panic
// ends the batch at the op that caused it.
func (r *runner) run(batch *rawBatch) (result Status) {
	raws := unsafe.Slice(batch.ops, batch.count)
	ops := r.shadow(raws)
	now := ticks(batch.clock)
	batch.start = now
	batch.storeDone(0)
	r.at = 0
	defer func() {
		if panicked := recover(); panicked != nil {
			batch.fail(r.at, fmt.Sprintf("the engine panicked: %v", panicked))
			// The engine may have set the status of other ops of a group before it panicked.
			for isOver := r.at >= len(raws); !isOver; r.at++ {
				raws[r.at].start, raws[r.at].end, raws[r.at].status = now, ticks(batch.clock), Failed
				batch.storeDone(uint32(r.at + 1))
				isOver = raws[r.at].flags&flagJoin == 0 || r.at+1 == len(raws)
			}
			result = Failed
		}
	}()
	for r.at < len(ops) && !batch.isOver(now) {
		raw := &raws[r.at]
		if raw.due > now {
			now = spinUntil(batch, raw.due, now)
			if batch.isOver(now) {
				break
			}
		}
		if raw.flags&flagJoin != 0 {
			now = r.group(batch, ops, now)
		} else {
			status, err := r.one(&ops[r.at])
			end := endTicks(batch.clock, r.at+1 == len(ops))
			raw.start, raw.end, raw.status = now, end, status
			now = end
			if err != nil {
				raw.status = statusOf(err)
				batch.fail(r.at, err.Error())
			}
			r.at++
		}
		batch.storeDone(uint32(r.at))
	}
	if batch.errorText[0] != 0 {
		return Failed
	}
	return OK
}

// spinUntil spins until `due`, the deadline or the stop word; it returns the tick that saw it.
func spinUntil(batch *rawBatch, due, from uint64) uint64 {
	for {
		now := ticks(batch.clock)
		if now >= due || batch.isOver(now) {
			batch.waited += now - from
			return now
		}
	}
}

// group runs the group that begins at r.at, at tick `start`; it returns the tick at which the group ended.
func (r *runner) group(batch *rawBatch, ops []Op, start uint64) uint64 {
	first := r.at
	after := first
	for after+1 < len(ops) && ops[after].raw.flags&flagJoin != 0 {
		after++
	}
	group := ops[first : after+1]
	isAtomic := ops[first].raw.flags&flagAtomic != 0
	isRefused := r.grouper == nil || (isAtomic && r.capabilities&Transaction == 0)
	status, err := NotRun, error(nil)
	for i := range group {
		group[i].raw.retries = 0
		isRefused = isRefused || r.isRefused(group[i].raw)
		if isAtomic && r.isTooLong(group[i].raw) {
			err = Fail(TooLarge, "a key has at most %d bytes", r.keySizeMax)
		}
		isRefused = isRefused || r.isTooLong(group[i].raw)
	}
	isOwned := !isRefused
	if isOwned {
		for i := range group {
			r.own(&group[i])
		}
		status, err = r.grouper.Group(group, isAtomic)
	}
	switch {
	case err != nil:
		batch.fail(first, err.Error())
		setAll(group, statusOf(err))
	case status == NotRun && isAtomic:
		batch.fail(first, "this engine does not support such transactions")
		setAll(group, Unsupported)
	case status == NotRun:
		r.oneByOne(batch, group, isOwned)
	case status != OK:
		setAll(group, status)
	}
	end := orderedTicks(batch.clock)
	for i := range group {
		group[i].raw.start, group[i].raw.end = start, end
	}
	r.at = after + 1
	return end
}

// oneByOne runs the ops of a group that is not handled specially; `isOwned`: what the engine keeps was copied.
func (r *runner) oneByOne(batch *rawBatch, group []Op, isOwned bool) {
	for i := range group {
		run := (*runner).one
		if isOwned {
			run = (*runner).call
		}
		status, err := run(r, &group[i])
		if err != nil {
			status = statusOf(err)
			batch.fail(r.at, err.Error())
		}
		group[i].raw.status = status
		r.at++
		batch.storeDone(uint32(r.at))
	}
}

func setAll(group []Op, status Status) {
	for i := range group {
		group[i].raw.status = status
	}
}

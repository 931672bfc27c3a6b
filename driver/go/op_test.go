// Scans against the rules, values and rows against their buffers.

package driver

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"sort"
	"testing"
)

// keysOf draws keys with few letters, so that prefixes, neighbours and equal keys are frequent.
func keysOf(random *rand.Rand, count int) [][]byte {
	seen := map[string]bool{}
	var keys [][]byte
	for len(keys) < count {
		key := text(random, 1)
		if !seen[string(key)] {
			seen[string(key)] = true
			keys = append(keys, key)
		}
	}
	sort.Slice(keys, func(i, j int) bool { return bytes.Compare(keys[i], keys[j]) < 0 })
	return keys
}

func text(random *rand.Rand, least int) []byte {
	made := make([]byte, least+random.IntN(4))
	for i := range made {
		made[i] = []byte{0, 'a', 0xfe, 0xff}[random.IntN(4)]
	}
	return made
}

// wanted applies rule 8 of driver.h without any search.
func wanted(op *Op, keys [][]byte) (found [][]byte) {
	for i := range keys {
		key := keys[i]
		if op.IsReverse() {
			key = keys[len(keys)-1-i]
		}
		order := bytes.Compare(key, op.Key)
		if len(op.Key) != 0 && ((op.IsReverse() && order > 0) || (!op.IsReverse() && order < 0)) {
			continue
		}
		if op.raw.flags&flagResume != 0 && order == 0 {
			continue
		}
		switch bound := bytes.Compare(key, op.Value); {
		case op.IsPrefix() && !bytes.HasPrefix(key, op.Value):
			continue
		case !op.IsPrefix() && len(op.Value) != 0 && ((op.IsReverse() && bound <= 0) || (!op.IsReverse() && bound >= 0)):
			continue
		}
		if found = append(found, key); len(found) == int(op.raw.limit) {
			break
		}
	}
	return found
}

func rowsIn(out []byte, length uint64) (keys [][]byte) {
	for out = out[:length]; len(out) != 0; {
		keyLength, valueLength := binary.NativeEndian.Uint32(out), binary.NativeEndian.Uint32(out[4:])
		keys = append(keys, out[8:8+keyLength])
		out = out[8+keyLength+valueLength:]
	}
	return keys
}

func draw(random *rand.Rand) (op Op, out []byte) {
	out = make([]byte, 4096)
	raw := &rawOp{kind: Scan, limit: uint32(1 + random.IntN(20)), out: &out[0], outSize: uint32(len(out))}
	for _, flag := range []uint16{flagReverse, flagPrefix, flagKeys} {
		if random.IntN(2) == 0 {
			raw.flags |= flag
		}
	}
	op = Op{raw: raw}
	if random.IntN(3) != 0 {
		op.Key = text(random, 1)
	}
	if random.IntN(3) != 0 {
		op.Value = text(random, 1)
	}
	// A prefix without a key starts with the prefix; no caller asks for a key that lacks it.
	if op.IsPrefix() && len(op.Key) != 0 {
		op.Key = append(bytes.Clone(op.Value), op.Key...)
	}
	if len(op.Key) != 0 && random.IntN(4) == 0 {
		raw.flags |= flagResume
	}
	return op, out
}

func TestScansByPlaceAndByRangeAreThoseOfTheRule(t *testing.T) {
	for seed := range uint64(4000) {
		random := rand.New(rand.NewPCG(seed, 1))
		keys := keysOf(random, 1+random.IntN(30))
		op, out := draw(random)
		right := wanted(&op, keys)
		for name, scan := range map[string]func(*Op, [][]byte, *Rows){"place": byPlace, "range": byRange} {
			rows := op.Rows()
			scan(&op, keys, &rows)
			if found := rowsIn(out, op.raw.length); !equal(found, right) || rows.Status() != OK {
				t.Fatalf("seed %d, by %s: key %q, value %q, flags %b, limit %d over %q: found %q, expected %q", seed, name,
					op.Key, op.Value, op.raw.flags, op.raw.limit, keys, found, right)
			}
		}
	}
}

func equal(a, b [][]byte) bool {
	for i := range a {
		if i >= len(b) || !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

// byPlace drives a cursor as an engine without bounds does.
func byPlace(op *Op, keys [][]byte, rows *Rows) {
	place := op.Place()
	at := 0
	if len(place.Key) != 0 {
		at = sort.Search(len(keys), func(i int) bool { return bytes.Compare(keys[i], place.Key) >= 0 })
	} else if op.IsReverse() {
		at = len(keys)
	}
	if !op.IsReverse() {
		for ; at < len(keys) && rows.Push(keys[at], []byte("v")); at++ {
		}
		return
	}
	if at == len(keys) || place.IsBefore(keys[at]) {
		at--
	}
	for ; at >= 0 && rows.Push(keys[at], []byte("v")); at-- {
	}
}

func byRange(op *Op, keys [][]byte, rows *Rows) {
	from, to := op.Range()
	var inside [][]byte
	for _, key := range keys {
		if bytes.Compare(key, from) >= 0 && (to == nil || bytes.Compare(key, to) < 0) {
			inside = append(inside, key)
		}
	}
	for i := range inside {
		key := inside[i]
		if op.IsReverse() {
			key = inside[len(inside)-1-i]
		}
		if !rows.Push(key, []byte("v")) {
			return
		}
	}
}

func TestAFullBufferSaysWhatTheNextRowNeeds(t *testing.T) {
	out := make([]byte, 40)
	op := Op{raw: &rawOp{kind: Scan, limit: 9, out: &out[0], outSize: 40}}
	rows := op.Rows()
	if !rows.Push([]byte("a"), []byte("1234567890")) || rows.Push([]byte("b"), bytes.Repeat([]byte{'x'}, 90)) {
		t.Fatal("the first row fits, the second does not")
	}
	if rows.Status() != Short || op.raw.rows != 1 || op.raw.length != 19 || op.raw.needed != 99 {
		t.Fatalf("status %d, %d rows, %d bytes, needed %d", rows.Status(), op.raw.rows, op.raw.length, op.raw.needed)
	}
}

func TestAValueIsDeliveredOrSaysWhatItNeeds(t *testing.T) {
	out := make([]byte, 4)
	op := Op{raw: &rawOp{out: &out[0], outSize: 4}}
	if op.Deliver([]byte("1234")) != OK || string(out) != "1234" || op.raw.length != 4 {
		t.Fatalf("%q of %d bytes", out, op.raw.length)
	}
	if op.Deliver([]byte("12345")) != Short || op.raw.needed != 5 || op.raw.length != 0 {
		t.Fatalf("needed %d, length %d", op.raw.needed, op.raw.length)
	}
	op.raw.flags = flagTouch
	// 0x3837363534333231 + 0x39, as driver.h defines the digest.
	if op.Deliver([]byte("123456789")) != OK || op.raw.detail != 0x383736353433326a || op.raw.length != 9 {
		t.Fatalf("digest %x of %d bytes", op.raw.detail, op.raw.length)
	}
}

func TestRowsOfAllSizesAreWrittenWholeAndNothingBehindThem(t *testing.T) {
	bytesOfSize := func(size int, first byte) []byte {
		made := make([]byte, size)
		for i := range made {
			made[i] = first + byte(i)
		}
		return made
	}
	for size := range 40 {
		out := bytes.Repeat([]byte{0xee}, 200)
		op := Op{raw: &rawOp{kind: Scan, limit: 2, out: &out[0], outSize: uint32(len(out))}}
		key, value := bytesOfSize(size, 1), bytesOfSize(39-size, 101)
		rows := op.Rows()
		if !rows.Push(key, value) || rows.Push(value, key) || rows.Push(key, value) {
			t.Fatalf("size %d: expected two rows", size)
		}
		var right []byte
		for _, row := range [][2][]byte{{key, value}, {value, key}} {
			right = binary.NativeEndian.AppendUint32(right, uint32(len(row[0])))
			right = binary.NativeEndian.AppendUint32(right, uint32(len(row[1])))
			right = append(append(right, row[0]...), row[1]...)
		}
		if op.raw.rows != 2 || op.raw.length != uint64(len(right)) || rows.Status() != OK {
			t.Fatalf("size %d: %d rows, %d bytes, status %d", size, op.raw.rows, op.raw.length, rows.Status())
		}
		if !bytes.Equal(out, append(right, bytes.Repeat([]byte{0xee}, 200-len(right))...)) {
			t.Fatalf("size %d: %x", size, out)
		}
	}
}

func TestAFullScanStaysFull(t *testing.T) {
	out := make([]byte, 30)
	for _, flags := range []uint16{0, flagKeys} {
		for limit, wanted := range []Status{OK, OK, Short} {
			op := Op{raw: &rawOp{kind: Scan, flags: flags, limit: uint32(limit), out: &out[0], outSize: 30}}
			rows := op.Rows()
			big := bytes.Repeat([]byte{'k'}, 20)
			for range 3 {
				if rows.Push(big, nil) && limit != 2 {
					t.Fatalf("limit %d: one row too many", limit)
				}
			}
			if rows.Status() != wanted || op.raw.rows != uint32(min(limit, 1)) {
				t.Fatalf("flags %d, limit %d: status %d, %d rows", flags, limit, rows.Status(), op.raw.rows)
			}
		}
	}
}

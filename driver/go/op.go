// An op as an engine sees it, and the rows of its scans.

package driver

import (
	"bytes"
	"encoding/binary"
	"unsafe"
)

// Op is one op, as an engine sees it. Key and Value are the caller's memory until the call returns, or, in a write to
// an engine that declares KeepsKey or KeepsValue, copies that the engine may keep.
type Op struct {
	// Key of the op; for a scan: where it starts.
	Key []byte
	// Value to write; for a scan its bound or prefix; for a merge its operand.
	Value []byte
	raw   *rawOp
}

// Kind of the op.
func (op *Op) Kind() Kind { return op.raw.kind }

// Keyspace that the op is for, from 0.
func (op *Op) Keyspace() int { return int(op.raw.keyspace) }

// IsNew reports whether a put must fail with Exists if the key is present.
func (op *Op) IsNew() bool { return op.raw.flags&flagNew != 0 }

// IsReverse reports whether a scan goes downward.
func (op *Op) IsReverse() bool { return op.raw.flags&flagReverse != 0 }

// IsPrefix reports whether every row of a scan must begin with Value.
func (op *Op) IsPrefix() bool { return op.raw.flags&flagPrefix != 0 }

// KeysOnly reports whether a scan's rows are requested without values.
func (op *Op) KeysOnly() bool { return op.raw.flags&flagKeys != 0 }

// IsStrong reports whether a get or scan must see every acknowledged write. It matters only to a driver that reports
// stale_reads=possible.
func (op *Op) IsStrong() bool { return op.raw.flags&flagStrong != 0 }

// IsAppend reports whether a merge appends bytes; otherwise it adds little-endian numbers.
func (op *Op) IsAppend() bool { return op.raw.flags&flagAppend != 0 }

// Limit of the rows that a scan delivers.
func (op *Op) Limit() uint32 { return op.raw.limit }

// IsResumed reports whether a scan continues after the row with Key, which Rows skips.
func (op *Op) IsResumed() bool { return op.raw.flags&flagResume != 0 }

// SecondsToLive of a put; 0: forever.
func (op *Op) SecondsToLive() uint32 { return op.raw.limit }

// Retried counts a retry inside the driver.
func (op *Op) Retried() { op.raw.retries++ }

// SetStatus sets the status of an op in a group.
func (op *Op) SetStatus(status Status) { op.raw.status = status }

// Deliver copies a value that was read into the caller's buffer, or digests it in place if requested; Short if it
// does not fit.
func (op *Op) Deliver(value []byte) Status {
	raw := op.raw
	raw.length = uint64(len(value))
	if raw.flags&flagTouch != 0 {
		raw.detail = digest(value)
		return OK
	}
	if len(value) > int(raw.outSize) {
		raw.needed, raw.length = uint64(len(value)), 0
		return Short
	}
	copy(unsafe.Slice(raw.out, raw.outSize), value)
	return OK
}

// digest is the wrapping sum of the value's little-endian words, the last one zero-filled (driver.h).
func digest(value []byte) uint64 {
	var sum uint64
	for ; len(value) >= 8; value = value[8:] {
		sum += binary.LittleEndian.Uint64(value)
	}
	for i, b := range value {
		sum += uint64(b) << (8 * i)
	}
	return sum
}

// Place is where a scan's cursor starts. Forward: at the first key >= Key. Reverse: at the last key <= Key, or < Key if
// Exclusive. Without a Key: at the first or last key of the keyspace.
type Place struct {
	Key       []byte
	Exclusive bool
}

// Place of a scan. In a resumed scan the cursor may be at the last row written: Rows skips it.
func (op *Op) Place() Place {
	if len(op.Key) != 0 || !op.IsPrefix() {
		return Place{Key: op.Key}
	}
	if !op.IsReverse() {
		return Place{Key: op.Value}
	}
	// Below the smallest key above all keys with the prefix.
	return Place{Key: after(op.Value), Exclusive: true}
}

// after is the smallest key above all keys that begin with `prefix`; nil if there is none.
func after(prefix []byte) []byte {
	end := len(prefix)
	for end > 0 && prefix[end-1] == 0xff {
		end--
	}
	if end == 0 {
		return nil
	}
	next := bytes.Clone(prefix[:end])
	next[end-1]++
	return next
}

// Range is the interval [from, to) that holds every row a scan may deliver, for engines whose iterators have bounds;
// nil: open on that side. A reverse scan walks it downward.
func (op *Op) Range() (from, to []byte) {
	if op.IsPrefix() {
		from, to = op.Value, after(op.Value)
	} else if op.IsReverse() && len(op.Value) != 0 {
		from = successor(op.Value)
	} else if len(op.Value) != 0 {
		to = op.Value
	}
	if len(op.Key) == 0 {
		return from, to
	}
	if op.IsReverse() {
		if end := successor(op.Key); to == nil || bytes.Compare(end, to) < 0 {
			to = end
		}
	} else if bytes.Compare(op.Key, from) > 0 {
		from = op.Key
	}
	return from, to
}

// successor is the smallest key above `key`.
func successor(key []byte) []byte {
	return append(bytes.Clone(key), 0)
}

// Rows writes the rows of a scan.
type Rows struct {
	op      *Op
	out     unsafe.Pointer
	at      int // bytes written
	room    int // bytes of out; -1: stop
	rows    uint32
	isPlain bool // only the limit and the room end the scan, and rows include values
	status  Status
}

// Rows starts writing the rows of a scan.
func (op *Op) Rows() Rows {
	raw := op.raw
	raw.rows, raw.length = 0, 0
	rows := Rows{op: op, out: unsafe.Pointer(raw.out), room: int(raw.outSize)}
	rows.isPlain = raw.flags&(flagPrefix|flagKeys|flagResume) == 0 && len(op.Value) == 0
	if raw.limit == 0 {
		rows.room = -1
	}
	return rows
}

// Status is the result of the scan.
func (rows *Rows) Status() Status { return rows.status }

func (op *Op) isBeyond(key []byte) bool {
	switch {
	case op.IsPrefix():
		return !bytes.HasPrefix(key, op.Value)
	case len(op.Value) == 0:
		return false
	case op.IsReverse():
		return bytes.Compare(key, op.Value) <= 0
	default:
		return bytes.Compare(key, op.Value) >= 0
	}
}

// Push offers the next row, in the scan's direction; false: stop. It ends at the limit, the bound, the prefix and the
// end of the buffer, skips the row that a resumed scan names, and omits values if only keys are requested.
func (rows *Rows) Push(key, value []byte) bool {
	op, raw := rows.op, rows.op.raw
	if !rows.isPlain {
		if rows.room < 0 || op.isBeyond(key) {
			return false
		}
		if raw.flags&flagResume != 0 && len(key) != 0 && bytes.Equal(key, op.Key) {
			return true
		}
		if op.KeysOnly() {
			value = nil
		}
	}
	at := rows.at
	end := at + 8 + len(key) + len(value)
	if end > rows.room {
		return rows.isOut(end - at)
	}
	// Directly in memory: an engine's cursor spends some 40 ns per row, and slices are checked for bounds.
	to := unsafe.Add(rows.out, at)
	*(*uint32)(to), *(*uint32)(unsafe.Add(to, 4)) = uint32(len(key)), uint32(len(value))
	to = unsafe.Add(to, 8)
	copyKey(to, key)
	copy(unsafe.Slice((*byte)(unsafe.Add(to, len(key))), len(value)), value)
	rows.at = end
	rows.rows++
	raw.length, raw.rows = uint64(end), rows.rows
	if rows.rows < raw.limit {
		return true
	}
	rows.room = -1
	return false
}

// isOut ends the scan: the row of `size` bytes does not fit, unless the scan had ended before. Never true.
func (rows *Rows) isOut(size int) bool {
	if rows.room >= 0 {
		rows.op.raw.needed = uint64(size)
		rows.status, rows.room = Short, -1
	}
	return false
}

// copyKey is a copy for the common keys of 8 to 16 bytes: two words that may overlap.
func copyKey(to unsafe.Pointer, key []byte) {
	length := len(key)
	if length < 8 || length > 16 {
		copy(unsafe.Slice((*byte)(to), length), key)
		return
	}
	from := unsafe.Pointer(unsafe.SliceData(key))
	first, last := *(*uint64)(from), *(*uint64)(unsafe.Add(from, length-8))
	*(*uint64)(to), *(*uint64)(unsafe.Add(to, length-8)) = first, last
}

// IsBefore reports whether the place of a reverse scan is before a row with this key, the first at or above it.
func (place Place) IsBefore(key []byte) bool {
	order := bytes.Compare(place.Key, key)
	return order < 0 || (order == 0 && place.Exclusive)
}

// bytesOf a string, which must not be written to.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

// DeliverString is Deliver for engines whose values are strings.
func (op *Op) DeliverString(value string) Status { return op.Deliver(bytesOf(value)) }

// PushStrings is Push for engines whose rows are strings.
func (rows *Rows) PushStrings(key, value string) bool { return rows.Push(bytesOf(key), bytesOf(value)) }

// PushString is Push for engines whose keys are strings.
func (rows *Rows) PushString(key string, value []byte) bool { return rows.Push(bytesOf(key), value) }

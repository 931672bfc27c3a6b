// The constants and layouts of driver.h, repeated.

package driver

import "unsafe"

// The constants of driver.h and the layout of an op and a batch, repeated. glue.go checks the layout against the
// header when it is compiled.

// Capability bits (rule 11 of driver.h).
const (
	Ordered          = 1 << 0
	CanReverse       = 1 << 1
	CanPrefix        = 1 << 2
	MultiGet         = 1 << 3
	Transaction      = 1 << 4
	TransactionReads = 1 << 5
	MergeAdd         = 1 << 6
	MergeAppend      = 1 << 7
	CanDelete        = 1 << 8
	DeleteTells      = 1 << 9
	Overwrite        = 1 << 10
	CanNew           = 1 << 11
	Keyspaces        = 1 << 12
	Collections      = 1 << 13
	TimeToLive       = 1 << 14
	FixedKeySize     = 1 << 15
	KeepsKey         = 1 << 16
	KeepsValue       = 1 << 17
	InMemory         = 1 << 18
	SingleWriter     = 1 << 19
	ScanBlocksWrites = 1 << 20
	CanHold          = 1 << 21
	LongTransaction  = 1 << 22
	CanTouch         = 1 << 23
	SingleThread     = 1 << 24
	StoresNothing    = 1 << 25
	Indexes          = 1 << 26
	Lists            = 1 << 27
	Evicts           = 1 << 28
	LiveStats        = 1 << 29
	NoEmptyValues    = 1 << 30
)

// Level is a durability level, from the weakest to the strongest.
type Level uint32

// The levels; Default is only a request.
const (
	None    Level = 0
	Process Level = 1
	Power   Level = 2
	Default Level = 3
)

// Kind of an op.
type Kind uint8

// The kinds.
const (
	Get    Kind = 1
	Put    Kind = 2
	Delete Kind = 3
	Scan   Kind = 4
	Merge  Kind = 5
	Begin  Kind = 6
	Commit Kind = 7
	Abort  Kind = 8
	Drop   Kind = 9
	Push   Kind = 10
	Pop    Kind = 11
)

// Flags of an op.
const (
	flagJoin    = 1 << 0
	flagAtomic  = 1 << 1
	flagNew     = 1 << 2
	flagReverse = 1 << 3
	flagPrefix  = 1 << 4
	flagKeys    = 1 << 5
	flagResume  = 1 << 6
	flagHold    = 1 << 7
	flagTouch   = 1 << 8
	flagAppend  = 1 << 9
	flagStrong  = 1 << 10
)

// Status of an op (rule 4 of driver.h).
type Status uint32

// The statuses.
const (
	OK          Status = 0
	NotFound    Status = 1
	Exists      Status = 2
	Short       Status = 3
	Conflict    Status = 4
	Aborted     Status = 5
	Full        Status = 6
	TooLarge    Status = 7
	Unsupported Status = 8
	NotRun      Status = 9
	Failed      Status = 10
)

// Work is the argument of Maintain.
type Work uint32

// The kinds of work.
const (
	Flush   Work = 0
	Compact Work = 1
	Settle  Work = 2
)

const clockCounter = 1

// rawOp is kv_op: it is in C memory, and no Go pointer is ever written to it.
type rawOp struct {
	kind        Kind
	slot        uint8
	flags       uint16
	keyspace    uint16
	split       uint16
	key         *byte
	value       *byte
	out         *byte
	keyLength   uint32
	valueLength uint32
	outSize     uint32
	limit       uint32
	due         uint64
	user        uint64

	start    uint64
	end      uint64
	length   uint64
	needed   uint64
	detail   uint64
	rows     uint32
	retries  uint32
	status   Status
	reserved [3]uint32
}

const textSize = 232

// rawBatch is kv_batch, in C memory.
type rawBatch struct {
	ops       *rawOp
	count     uint32
	done      uint32
	start     uint64
	deadline  uint64
	stop      *uint32
	waited    uint64 // ticks that belong to no op: spinning for due times, and handing over the batch
	clock     uint32
	errorOp   uint32
	errorText [textSize]byte
}

const (
	opSize    = unsafe.Sizeof(rawOp{})
	batchSize = unsafe.Sizeof(rawBatch{})
)

// Batches that a goroutine of the session's own runs (handover.c says why).

package driver

/*
#include "glue.h"
*/
import "C"

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"kvdyno/driver/internal/tick"
)

// A goroutine that has answered looks for the next batch for so long before it sleeps: the core makes and checks a batch
// in less, and to wake a thread takes longer. Nanoseconds.
const lookNs = 20_000

// mail is where a session's thread and its goroutine meet, in C memory; nil: batches run on the thread that calls.
type mail = C.kv_go_mail

// ownGoroutine starts the session's goroutine.
func (r *runner) ownGoroutine() *mail {
	made := C.kv_go_mail_new()
	go r.serve(made)
	return made
}

// serve runs the batches that are sent, until the end is.
func (r *runner) serve(mail *mail) {
	for {
		look(mail)
		batch := (*rawBatch)(unsafe.Pointer(C.kv_go_receive(mail)))
		if batch == nil {
			C.kv_go_answer(mail, C.uint32_t(OK), 0, 0)
			return
		}
		received := ticks(batch.clock)
		status := r.run(batch)
		C.kv_go_answer(mail, C.uint32_t(status), C.uint64_t(received), C.uint64_t(ticks(batch.clock)))
	}
}

// looking are the goroutines that look now.
var looking atomic.Int32

// look spins until something is sent or `lookNs` have passed; but not where it would keep a processor from the core's
// threads and the engine's goroutines: at most half of them look.
func look(mail *mail) {
	defer looking.Add(-1)
	if int(looking.Add(1)) > min(runtime.GOMAXPROCS(0), runtime.NumCPU())/2 {
		return
	}
	state := (*uint32)(unsafe.Pointer(&mail.state))
	for until := tick.Monotonic() + lookNs; tick.Monotonic() < until; {
		if atomic.LoadUint32(state) == C.KV_GO_SENT {
			return
		}
		runtime.Gosched()
	}
}

// handOver sends a batch, as execute of glue.c does, and waits until it has been run.
func handOver(mail *mail, batch *rawBatch) Status {
	return Status(C.kv_go_hand_over(mail, C.uintptr_t(uintptr(unsafe.Pointer(batch)))))
}

// The rules of handover.c.
const (
	ruleNever   = C.KV_GO_NEVER
	ruleSeveral = C.KV_GO_SEVERAL
	ruleWrites  = C.KV_GO_WRITES
	ruleEither  = C.KV_GO_EITHER
	ruleAlways  = C.KV_GO_ALWAYS
)

// isHandedOver tells whether a batch, of which this is the address, is one to hand over.
func isHandedOver(rule, sessions uint32, batch uintptr) bool {
	return C.kv_go_is_for_goroutine(C.uint32_t(rule), C.uint32_t(sessions), C.uintptr_t(batch)) != 0
}

// endGoroutine waits until the session's goroutine has ended.
func endGoroutine(mail *mail) {
	C.kv_go_hand_over(mail, 0)
	C.kv_go_mail_free(mail)
}

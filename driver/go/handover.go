// Batches that a session's own goroutine runs (handover.c explains why).

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

// After answering, a goroutine polls for the next batch for this long before it sleeps: the core makes and checks a
// batch in less time, and waking a thread takes longer. Nanoseconds.
const lookNs = 20_000

// mail is where a session's thread and its goroutine meet, in C memory; nil: batches run on the calling thread.
type mail = C.kv_go_mail

// ownGoroutine starts the session's goroutine.
func (r *runner) ownGoroutine() *mail {
	made := C.kv_go_mail_new()
	go r.serve(made)
	return made
}

// serve runs the batches that are sent, until the end is sent.
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

// looking counts the goroutines that poll now.
var looking atomic.Int32

// look polls until something is sent or `lookNs` have passed. At most half of the processors are used for polling, so
// that the core's threads and the engine's goroutines are not displaced.
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

// isHandedOver reports whether the batch at this address must be handed over.
func isHandedOver(rule, sessions uint32, batch uintptr) bool {
	return C.kv_go_is_for_goroutine(C.uint32_t(rule), C.uint32_t(sessions), C.uintptr_t(batch)) != 0
}

// endGoroutine waits until the session's goroutine has ended.
func endGoroutine(mail *mail) {
	C.kv_go_hand_over(mail, 0)
	C.kv_go_mail_free(mail)
}

// A session's loop in a goroutine (rule 12 of driver.h). A goroutine that C calls occupies C's thread: each of its waits
// is a thread switch, which users of an engine in Go do not pay, and each call from C costs as much as a fast op.

package driver

/*
#cgo noescape kv_go_turn
#cgo nocallback kv_go_turn
#include "glue.h"
*/
import "C"

import (
	"runtime/cgo"
	"unsafe"
)

//export kvGoDrive
func kvGoDrive(handle, turn, context C.uintptr_t) C.uint32_t {
	r := cgo.Handle(handle).Value().(*runner)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.drive(func(status Status) *rawBatch {
			return (*rawBatch)(unsafe.Pointer(C.kv_go_turn(turn, context, C.uint32_t(status))))
		})
	}()
	<-ended
	return C.uint32_t(OK)
}

// drive runs the batches that turn returns, until it returns nil.
func (r *runner) drive(turn func(Status) *rawBatch) {
	for batch := turn(OK); batch != nil; {
		batch = turn(r.run(batch))
	}
}

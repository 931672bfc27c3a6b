//go:build !amd64

// Storing the number of ops done, on processors that may reorder stores.

package driver

import "sync/atomic"

// storeDone stores a number of ops after everything that was stored before it.
func (batch *rawBatch) storeDone(done uint32) { atomic.StoreUint32(&batch.done, done) }

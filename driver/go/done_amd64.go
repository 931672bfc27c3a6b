// Storing the number of ops done, on x86-64.

package driver

// storeDone stores a number of ops after everything that was stored before it. On x86-64 each store is in that order; those
// of sync/atomic also lock the bus, which takes about as long as a fast op of an engine.
func (batch *rawBatch) storeDone(done uint32) { batch.done = done }

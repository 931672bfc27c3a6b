// Waits for lotusdb's background writes.

package lotusdb

import (
	"os/signal"
	"runtime"
	"strings"
	"time"
)

// dropSignals undoes the signal handler of the engine's flush goroutine, which the first signal would end: writes would
// then find no room and the close would wait forever. The handler is set before the goroutine first waits.
func dropSignals() {
	settle()
	signal.Reset()
}

// settle waits until no flush runs and none is pending. Only the runtime can show that: the engine has no call for it,
// and its Close, if it comes during a flush, keeps the flush from ending and waits for it forever.
func settle() {
	for !doAllFlushersWait() {
		time.Sleep(time.Millisecond)
	}
}

func doAllFlushersWait() bool {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		isFlusher := strings.Contains(stack, "lotusdb/v2.(*DB).listenMemtableFlush")
		if isFlusher && (!strings.Contains(stack, "[select") || strings.Contains(stack, "flushMemtable")) {
			return false
		}
	}
	return true
}

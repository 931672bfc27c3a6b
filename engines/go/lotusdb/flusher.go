// Waiting for what lotusdb writes in the background.

package lotusdb

import (
	"os/signal"
	"runtime"
	"strings"
	"time"
)

// dropSignals takes back that the engine's goroutine for flushes catches the process's signals, of which the first
// would end it: writes would then find no room and the close would wait for ever. It does so before it first waits.
func dropSignals() {
	settle()
	signal.Reset()
}

// settle waits until nothing is being flushed, and nothing is left to flush. Only the runtime can tell: the engine
// has no call for it, and its Close, if it comes in the midst of a flush, keeps the flush from ending and waits for
// it for ever.
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

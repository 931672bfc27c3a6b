package lotusdb

import (
	"os/signal"
	"runtime"
	"strings"
	"time"
)

// dropSignals takes back that the engine's goroutine for flushes catches the process's signals, of which the first would
// end it: writes would then find no room and the close would wait for ever. The goroutine does so at its start; it is past
// that when it waits.
func dropSignals() {
	for !allFlushersWait() {
		time.Sleep(100 * time.Microsecond)
	}
	signal.Reset()
}

func allFlushersWait() bool {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	for stack := range strings.SplitSeq(string(stacks), "\n\n") {
		if strings.Contains(stack, "lotusdb/v2.(*DB).listenMemtableFlush") && !strings.Contains(stack, "[select") {
			return false
		}
	}
	return true
}

// Driven sessions: batches, statuses, panics, and the end.

package driver

import (
	"slices"
	"testing"
)

// driven has a session run these batches, and returns the statuses that turn got.
func driven(session Session, benches ...*bench) []Status {
	var statuses []Status
	newRunner(session, everything, 1, 0).drive(func(status Status) *rawBatch {
		statuses = append(statuses, status)
		if len(statuses) > len(benches) {
			return nil
		}
		return &benches[len(statuses)-1].batch
	})
	return statuses
}

func TestADrivenSessionRunsEachBatchUntilThereIsNone(t *testing.T) {
	seen := 0
	session := &scripted{call: func(op *Op) (Status, error) { seen++; return OK, nil }}
	first, second := newBench(Put, Get, Put), newBench(Get)
	if statuses := driven(session, first, second); !slices.Equal(statuses, []Status{OK, OK, OK}) {
		t.Fatalf("statuses %v", statuses)
	}
	if seen != 4 || first.batch.done != 3 || second.batch.done != 1 || first.batch.waited != 0 {
		t.Fatalf("%d ops; done %d and %d, waited %d", seen, first.batch.done, second.batch.done, first.batch.waited)
	}
	if statuses := driven(session); !slices.Equal(statuses, []Status{OK}) {
		t.Fatalf("statuses without a batch: %v", statuses)
	}
}

func TestAPanicInADrivenSessionIsAnErrorAndTheNextBatchRuns(t *testing.T) {
	count := 0
	session := &scripted{call: func(op *Op) (Status, error) {
		if count++; count == 1 {
			panic("broken")
		}
		return OK, nil
	}}
	broken, next, late := newBench(Put), newBench(Put), newBench(Put)
	late.batch.deadline = 1
	if statuses := driven(session, broken, next, late); !slices.Equal(statuses, []Status{OK, Failed, OK, OK}) {
		t.Fatalf("statuses %v", statuses)
	}
	if broken.text() == "" || next.text() != "" || late.batch.done != 0 {
		t.Fatalf("texts %q and %q, %d ops after the deadline", broken.text(), next.text(), late.batch.done)
	}
}

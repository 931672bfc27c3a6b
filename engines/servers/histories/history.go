// Package histories records what threads see in a few keys of a store, and decides whether that could be the history of
// registers which are read and written at one moment each: whether it is linearizable. porcupine decides it.
package histories

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"kvdyno/driver"
)

// valueBytes is the room for a value; each is a number in text.
const valueBytes = 32

// Plan of a history.
type Plan struct {
	Seed               uint64
	Threads, Keys, Ops int
	// At are calls that are made once, when so many ops have ended.
	At map[int]func()
}

// History is what was seen. Unknown counts the writes of which an error has left open whether they took effect.
type History struct {
	Operations     []porcupine.Operation
	Unknown, Reads int
}

// request of an operation; value is what it writes, empty for a delete.
type request struct {
	key, value string
	isRead     bool
}

// answer of a read: the value, empty if the key is absent.
type answer string

// registers are the model: one for each key, which is absent first.
var registers = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[string][]porcupine.Operation{}
		for _, each := range history {
			key := each.Input.(request).key
			byKey[key] = append(byKey[key], each)
		}
		var all [][]porcupine.Operation
		for _, each := range byKey {
			all = append(all, each)
		}
		return all
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		if asked := input.(request); !asked.isRead {
			return true, asked.value
		}
		return string(output.(answer)) == state.(string), state
	},
	DescribeOperation: func(input, output any) string {
		asked := input.(request)
		switch {
		case asked.isRead:
			return fmt.Sprintf("get %s: `%v`", asked.key, output)
		case asked.value == "":
			return "delete " + asked.key
		}
		return fmt.Sprintf("put %s `%s`", asked.key, asked.value)
	},
}

// Record runs the plan; each thread has a session of its own. An op that fails is a read without an answer, which is left out,
// or a write that may take effect at any time from its call on, or never.
func Record(open func() (driver.Session, error), plan Plan) (*History, error) {
	made := &History{}
	var lock sync.Mutex
	var ended, written, clients atomic.Int64
	begun := time.Now()
	clients.Store(int64(plan.Threads))
	errs := make([]error, plan.Threads)
	calls := map[int64]func(){}
	for count, call := range plan.At {
		calls[int64(count)] = call
	}
	var threads sync.WaitGroup
	for thread := range plan.Threads {
		threads.Go(func() {
			session, err := open()
			if err != nil {
				errs[thread] = err
				return
			}
			defer func() { _ = session.End() }() // an error of an end is none of an op
			random := rand.New(rand.NewPCG(plan.Seed, uint64(thread)))
			client := thread
			for {
				count := ended.Add(1)
				if count > int64(plan.Ops) {
					return
				}
				if call := calls[count]; call != nil {
					call()
				}
				asked := draw(random, plan.Keys, &written)
				call := time.Since(begun).Nanoseconds()
				read, status := run(session, asked)
				end := time.Since(begun).Nanoseconds()
				isUnknown := status != driver.OK && status != driver.NotFound
				if isUnknown && asked.isRead {
					continue
				}
				if isUnknown {
					end = math.MaxInt64
				}
				lock.Lock()
				made.Operations = append(made.Operations, porcupine.Operation{ClientId: client, Input: asked, Call: call, Output: read, Return: end})
				if isUnknown {
					made.Unknown++
				}
				if asked.isRead {
					made.Reads++
				}
				lock.Unlock()
				if isUnknown {
					client = int(clients.Add(1)) // it has an op that never returns
				}
			}
		})
	}
	threads.Wait()
	sort.Slice(made.Operations, func(i, j int) bool { return made.Operations[i].Call < made.Operations[j].Call })
	return made, errors.Join(errs...)
}

// draw the next op: half are gets, and a write in eight is a delete. All values are different.
func draw(random *rand.Rand, keys int, written *atomic.Int64) request {
	asked := request{key: fmt.Sprintf("key-%d", random.IntN(keys))}
	switch random.IntN(16) {
	case 0:
	case 1, 2, 3, 4, 5, 6, 7:
		asked.value = fmt.Sprint(written.Add(1))
	default:
		asked.isRead = true
	}
	return asked
}

// run passes an op to the driver.
func run(session driver.Session, asked request) (answer, driver.Status) {
	kind, value := driver.Put, []byte(asked.value)
	switch {
	case asked.isRead:
		kind, value = driver.Get, nil
	case asked.value == "":
		kind = driver.Delete
	}
	op := driver.NewOp(kind, []byte(asked.key), value, make([]byte, valueBytes))
	var status driver.Status
	var err error
	switch kind {
	case driver.Get:
		status, err = session.Get(op)
	case driver.Delete:
		status, err = session.(driver.Deleter).Delete(op)
	default:
		status, err = session.Put(op)
	}
	if err != nil {
		return "", driver.Failed
	}
	if kind == driver.Get && status == driver.OK {
		return answer(op.Delivered()), status
	}
	return "", status
}

// Check decides within a time; porcupine.Unknown: the time did not suffice.
func (history *History) Check(limit time.Duration) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(registers, history.Operations, limit)
}

// Fidelity compares a driver in Go, in sessions that it drives through the boundary's C calls, with a plain loop on the
// same database: the same operations, each stamped, delivering the same bytes, in one process, with one and two threads,
// in turns of A B B A. A round gives a ratio of mean times inside the call, of medians, of 99th percentiles, and of wall
// clock times; a row is the median of the rounds with an interval from order statistics. A third side is a bare loop: its keys
// and values are made before, and it neither stamps nor checks. Its rate is compared with the engine's throughput.
// `go run ./fidelity [-small] [-engine NAME]`.
package main

import (
	"flag"
	"fmt"
	"log"
	"math"
	"os"
	"sort"
	"sync"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"kvdyno/driver"
	_ "kvdyno/engines/badger"
	_ "kvdyno/engines/bbolt"
	_ "kvdyno/engines/goleveldb"
	_ "kvdyno/engines/nutsdb"
	_ "kvdyno/engines/pebble"
	_ "kvdyno/engines/pogreb"
)

const rounds = 15

// kind of an op, with the numbers of driver.h.
type kind uint8

const (
	get  kind = 1
	put  kind = 2
	scan kind = 4
)

func (k kind) String() string { return map[kind]string{get: "get", put: "put", scan: "scan"}[k] }

// hand is the plain loop's side: one call per op.
type hand struct {
	put  func(key, value []byte)
	get  func(key, out []byte) int
	scan func(from, out []byte) int // nil: unordered
}

// op is the call for a slot.
func (h hand) op(kind kind) func(*slot) {
	switch kind {
	case put:
		return func(slot *slot) { h.put(slot.key, slot.value) }
	case get:
		return func(slot *slot) { h.get(slot.key, slot.out) }
	default:
		return func(slot *slot) { h.scan(slot.key, slot.out) }
	}
}

type bench struct {
	*through
	hand     hand
	sessions []session
	batches  int // of a thread, per turn
	turns    int // per round and side
}

// The sides of a round.
const (
	isDriven = iota
	isPlain
	isBare
	sideCount
)

// side runs one turn of a side in all threads, and returns its time by the wall clock.
func (b *bench) side(side int, kind kind) time.Duration {
	if side == isBare {
		for i := range b.sessions {
			b.sessions[i].prepare(kind, b.batches)
		}
	}
	start := time.Now()
	var group sync.WaitGroup
	for i := range b.sessions {
		group.Go(func() {
			switch side {
			case isDriven:
				b.sessions[i].driven(kind, b.batches)
			case isPlain:
				b.sessions[i].byHand(b.hand, kind, b.batches)
			default:
				b.sessions[i].bare(b.hand, kind)
			}
		})
	}
	group.Wait()
	return time.Since(start)
}

// figures of one side in a round.
type figures struct {
	ticks []uint64 // of each op, sorted
	wall  time.Duration
}

func (b *bench) round(kind kind) (sides [sideCount]figures) {
	for turn := range b.turns {
		for _, side := range [][]int{{isDriven, isPlain, isBare}, {isBare, isPlain, isDriven}}[turn%2] {
			sides[side].wall += b.side(side, kind)
			if side == isBare {
				continue
			}
			for i := range b.sessions {
				sides[side].ticks = append(sides[side].ticks, b.sessions[i].took...)
				if wrong := b.sessions[i].wrong(); wrong != 0 {
					log.Fatalf("%d wrong answers to %v", wrong, kind)
				}
			}
		}
	}
	for _, side := range sides {
		sort.Slice(side.ticks, func(i, j int) bool { return side.ticks[i] < side.ticks[j] })
	}
	return sides
}

func mean(sorted []uint64) float64 {
	// The highest thousandth is due to the machine and the garbage collector: one pause would determine a round's
	// ratio.
	kept := sorted[:len(sorted)-len(sorted)/1000]
	sum := 0.0
	for _, ticks := range kept {
		sum += float64(ticks)
	}
	return sum / float64(len(kept))
}

// ticksPerSecond of the clock that stamps ops.
var ticksPerSecond = sync.OnceValue(func() float64 {
	start, from := time.Now(), driver.Ticks(driver.BestClock)
	time.Sleep(200 * time.Millisecond)
	return float64(driver.Ticks(driver.BestClock)-from) / time.Since(start).Seconds()
})

// throughput is the engine's, as kvdyno's reports compute it: ops by the time inside the calls, times the number of threads.
func (f *figures) throughput(threads int) float64 {
	sum := 0.0
	for _, ticks := range f.ticks {
		sum += float64(ticks)
	}
	return float64(threads) * float64(len(f.ticks)) / (sum / ticksPerSecond())
}

// row prints the median of a sample with its interval: the order statistics that contain it in 95 of 100 cases. The goal is
// an upper bound, or with isTwoSided also a lower one.
func row(name string, sample []float64, goal float64, isTwoSided, isSmall bool) {
	if isSmall {
		fmt.Printf("%-60s runs\n", name)
		return
	}
	sort.Float64s(sample)
	count := len(sample)
	reach := int(math.Ceil(0.98 * math.Sqrt(float64(count))))
	low, high := sample[max(0, count/2-reach)], sample[min(count-1, count/2+reach)]
	verdict := "inconclusive"
	if high <= goal && (!isTwoSided || low >= -goal) {
		verdict = "ok"
	} else if low > goal || (isTwoSided && high < -goal) {
		verdict = "OVER"
	}
	fmt.Printf("%-60s %8.2f %%  goal %5.1f  [%.2f, %.2f], n = %d: %s\n", name, sample[count/2], goal, low, high, count, verdict)
}

// a database to compare on.
type subject struct {
	name  string
	level driver.Level
	loop  func(engine any) hand
	puts  int // batches of a thread, per turn
}

func (b *bench) compare(name string, kind kind, isSmall bool) {
	var means, medians, tails, walls, throughputs []float64
	rounds := rounds
	if isSmall {
		rounds = 3
	}
	b.round(kind) // warms up
	for range rounds {
		sides := b.round(kind)
		percent := func(of func(side *figures) float64) float64 {
			return (of(&sides[isDriven])/of(&sides[isPlain]) - 1) * 100
		}
		rank := func(percent int) func(side *figures) float64 {
			return func(side *figures) float64 { return float64(side.ticks[len(side.ticks)*percent/100]) }
		}
		means = append(means, percent(func(side *figures) float64 { return mean(side.ticks) }))
		medians = append(medians, percent(rank(50)))
		tails = append(tails, percent(rank(99)))
		walls = append(walls, percent(func(side *figures) float64 { return side.wall.Seconds() }))
		bare := float64(len(sides[isPlain].ticks)) / sides[isBare].wall.Seconds()
		throughputs = append(throughputs, (sides[isDriven].throughput(len(b.sessions))/bare-1)*100)
	}
	row(name+": inside the call, driver / plain loop", means, 3, false, isSmall)
	row(name+": p50, driver / plain loop", medians, 10, false, isSmall)
	row(name+": p99, driver / plain loop", tails, 10, false, isSmall)
	row(name+": wall clock, driver / plain loop", walls, 100.0/0.9-100, false, isSmall)
	row(name+": engine throughput, driver / bare loop", throughputs, 5, true, isSmall)
}

func (s subject) run(threads int, isSmall bool) {
	folder, err := os.MkdirTemp("", "kvdyno-fidelity-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	b := &bench{through: open(s.name, folder, s.level, threads)}
	b.hand = s.loop(b.engine())
	name := s.name
	if s.level == driver.Power {
		name += " at power"
	}
	batches := map[kind]int{put: s.puts, get: 300, scan: 24}
	for _, kind := range []kind{put, get, scan} {
		if kind != put && (s.level == driver.Power || (kind == scan && b.hand.scan == nil)) {
			continue
		}
		b.batches, b.turns = batches[kind], 4
		if isSmall {
			b.batches, b.turns = 1, 2
		}
		b.sessions = b.through.sessions(b.batches)
		b.compare(fmt.Sprintf("%s %v, threads: %d", name, kind, threads), kind, isSmall)
	}
	b.close()
}

func main() {
	isSmall := flag.Bool("small", false, "tiny sizes; the results are not meaningful")
	only := flag.String("engine", "", "one engine only")
	flag.Parse()
	for _, each := range []subject{
		{"pebble", driver.None, onPebble(pebbledb.NoSync), 100}, {"pebble", driver.Power, onPebble(pebbledb.Sync), 2},
		{"bbolt", driver.None, onBbolt, 20}, {"badger", driver.None, onBadger, 30}, {"pogreb", driver.None, onPogreb, 100},
		{"goleveldb", driver.None, onGoleveldb, 100}, {"nutsdb", driver.Process, onNutsdb, 100},
	} {
		for _, threads := range []int{1, 2} {
			if *only == "" || *only == each.name {
				each.run(threads, *isSmall)
			}
		}
	}
}

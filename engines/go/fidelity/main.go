// Fidelity compares a driver in Go, through the boundary's C calls, with a plain loop on the same database: the same
// operations, each stamped, delivering the same bytes, in one process, in turns of A B B A, one batch each. A round
// gives a ratio of mean times inside the call, of medians and of 99th percentiles; a row is the median of the rounds
// with an interval from order statistics. `go run ./fidelity [-small] [-engine NAME]`.
package main

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"sort"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"kvdyno/driver"
	"kvdyno/engines/badger"
	"kvdyno/engines/bbolt"
	"kvdyno/engines/pebble"
	"kvdyno/engines/pogreb"
)

const (
	batchSize = 64
	keySize   = 16
	valueSize = 100
	scanRows  = 100
	outSize   = scanRows * (8 + keySize + valueSize)
	rounds    = 21
)

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

type bench struct {
	*through
	hand     hand
	random   *rand.Rand
	written  uint64 // number of keys
	ops      int    // per round and side
	perBatch int
	handing  []uint64 // for each batch: ticks in which it was handed over
}

func key(number uint64, into []byte) {
	binary.BigEndian.PutUint64(into, number*0x9e3779b97f4a7c15)
	binary.BigEndian.PutUint64(into[8:], number)
}

// prepare writes the keys and values of the next batch.
func (b *bench) prepare(kind kind) {
	for i := range b.perBatch {
		slot := &b.slots[i]
		if kind == put {
			key(b.written, slot.key)
			copy(slot.value, bytes.Repeat(slot.key, valueSize/keySize+1))
			b.written++
		} else {
			key(b.random.Uint64N(b.written), slot.key)
		}
	}
}

func (b *bench) byHand(kind kind, latencies []uint64) {
	start := driver.Ticks(driver.BestClock)
	for i := range b.perBatch {
		slot := &b.slots[i]
		switch kind {
		case put:
			b.hand.put(slot.key, slot.value)
		case get:
			b.hand.get(slot.key, slot.out)
		default:
			b.hand.scan(slot.key, slot.out)
		}
		end := driver.Ticks(driver.BestClock)
		latencies[i] = end - start
		start = end
	}
}

// check checks what the last batch delivered, whichever side ran it.
func (b *bench) check(kind kind) {
	for i := range b.perBatch {
		slot := &b.slots[i]
		if kind == get && !bytes.HasPrefix(slot.out, slot.key) {
			log.Fatalf("get of %x delivered %x", slot.key, slot.out[:valueSize])
		} else if kind == scan && !bytes.Equal(slot.out[8:8+keySize], slot.key) {
			log.Fatalf("scan from %x delivered %x first", slot.key, slot.out[8:8+keySize])
		}
		clear(slot.out[:64])
	}
}

// round returns the latencies of the driver and of the plain loop.
func (b *bench) round(kind kind) (sides [2][]uint64) {
	latencies := make([]uint64, b.perBatch)
	for turn := 0; len(sides[1]) < b.ops; turn++ {
		for _, side := range [][2]int{{0, 1}, {1, 0}}[turn%2] {
			b.prepare(kind)
			if side == 0 {
				b.handing = append(b.handing, b.through.run(kind, b.perBatch, latencies))
			} else {
				b.byHand(kind, latencies)
			}
			b.check(kind)
			sides[side] = append(sides[side], latencies...)
		}
	}
	for side := range sides {
		sort.Slice(sides[side], func(i, j int) bool { return sides[side][i] < sides[side][j] })
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

// us converts ticks to microseconds; the clock's rate is measured roughly against the runtime's.
func us(ticks uint64) float64 {
	const long = 20 * time.Millisecond
	from := driver.Ticks(driver.BestClock)
	for start := time.Now(); time.Since(start) < long; {
	}
	return float64(ticks) * float64(long.Microseconds()) / float64(driver.Ticks(driver.BestClock)-from)
}

// row prints the median of a sample with its interval: the order statistics that contain it in 95 of 100 cases.
func row(name string, sample []float64, goal float64, isSmall bool) {
	if isSmall {
		fmt.Printf("%-60s runs\n", name)
		return
	}
	sort.Float64s(sample)
	count := len(sample)
	reach := int(math.Ceil(0.98 * math.Sqrt(float64(count))))
	low, high := sample[max(0, count/2-reach)], sample[min(count-1, count/2+reach)]
	verdict := "inconclusive"
	if high <= goal {
		verdict = "ok"
	} else if low > goal {
		verdict = "OVER"
	}
	fmt.Printf("%-60s %8.2f %%  goal %5.1f  [%.2f, %.2f], n = %d: %s\n", name, sample[count/2], goal, low, high, count, verdict)
}

// a database to compare on.
type subject struct {
	name  string
	level driver.Level
	loop  func(engine any) hand
	puts  int // per round and side
}

func (b *bench) compare(name string, kind kind, isSmall bool) {
	var means, medians, tails []float64
	rounds := rounds
	if isSmall {
		rounds, b.ops = 3, 128
	}
	b.round(kind) // warms up
	b.handing = b.handing[:0]
	for range rounds {
		sides := b.round(kind)
		percent := func(of func(sorted []uint64) float64) float64 { return (of(sides[0])/of(sides[1]) - 1) * 100 }
		means = append(means, percent(mean))
		medians = append(medians, percent(func(sorted []uint64) float64 { return float64(sorted[len(sorted)/2]) }))
		tails = append(tails, percent(func(sorted []uint64) float64 { return float64(sorted[len(sorted)*99/100]) }))
	}
	row(name+": inside the call, driver / plain loop", means, 5, isSmall)
	row(name+": p50, driver / plain loop", medians, 10, isSmall)
	row(name+": p99, driver / plain loop", tails, 10, isSmall)
	if sort.Slice(b.handing, func(i, j int) bool { return b.handing[i] < b.handing[j] }); b.handing[len(b.handing)-1] != 0 {
		fmt.Printf("%-60s %8.1f us per batch\n", name+": handing over, median", us(b.handing[len(b.handing)/2]))
	}
}

func (s subject) run(isSmall bool) {
	folder, err := os.MkdirTemp("", "kvdyno-fidelity-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	b := &bench{through: open(s.name, folder, s.level), random: rand.New(rand.NewPCG(1, 2)), perBatch: batchSize}
	b.hand = s.loop(b.engine())
	name := s.name
	if s.level == driver.Power {
		name += " at power"
	}
	for _, kind := range []kind{put, get, scan} {
		if kind != put && (s.level == driver.Power || (kind == scan && b.hand.scan == nil)) {
			continue
		}
		b.ops = s.opsOf(kind)
		b.compare(name+" "+kind.String(), kind, isSmall)
	}
	b.close()
}

func main() {
	isSmall := flag.Bool("small", false, "tiny sizes; the results are not meaningful")
	only := flag.String("engine", "", "one engine only")
	flag.Parse()
	driver.Register(pebble.Driver{}, bbolt.Driver{}, badger.Driver{}, pogreb.Driver{})
	for _, each := range []subject{
		{"pebble", driver.None, onPebble(pebbledb.NoSync), 8000}, {"pebble", driver.Power, onPebble(pebbledb.Sync), 512},
		{"bbolt", driver.None, onBbolt, 8000}, {"badger", driver.None, onBadger, 8000}, {"pogreb", driver.None, onPogreb, 8000},
	} {
		if *only == "" || *only == each.name {
			each.run(*isSmall)
		}
	}
}

// opsOf returns the number of ops per round and side.
func (s subject) opsOf(kind kind) int {
	switch kind {
	case put:
		return s.puts
	case get:
		return 40000
	}
	return 2000
}

// Fidelity compares a driver in Go, through the boundary's C calls, with a plain loop on the same database: the same
// operations, each stamped, delivering the same bytes, in one process, in turns of A B B A, one batch each. A round gives
// a ratio of mean times inside the call, of medians and of 99th percentiles; a row is the median of the rounds with an
// interval from order statistics. `go run ./fidelity [-small] [-engine NAME]`.
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
)

// kind of an op, as driver.h numbers them.
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
	written  uint64 // keys there are
	ops      int    // of a round and side
	perBatch int
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

// check looks at what the last batch delivered, whoever ran it.
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

// round gives the latencies of the driver and of the loop by hand.
func (b *bench) round(kind kind) (sides [2][]uint64) {
	latencies := make([]uint64, b.perBatch)
	for turn := 0; len(sides[1]) < b.ops; turn++ {
		for _, side := range [][2]int{{0, 1}, {1, 0}}[turn%2] {
			b.prepare(kind)
			if side == 0 {
				b.through.run(kind, b.perBatch, latencies)
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
	// The highest thousandth is the machine's and the collector's: one pause would be the ratio of a round.
	kept := sorted[:len(sorted)-len(sorted)/1000]
	sum := 0.0
	for _, ticks := range kept {
		sum += float64(ticks)
	}
	return sum / float64(len(kept))
}

// row prints the median of a sample with its interval: the order statistics that hold it in 95 of 100 cases.
func row(name string, sample []float64, goal float64, isSmall bool) {
	if isSmall {
		fmt.Printf("%-60s runs\n", name)
		return
	}
	sort.Float64s(sample)
	count := len(sample)
	reach := int(math.Ceil(0.98 * math.Sqrt(float64(count))))
	low, high := sample[max(0, count/2-reach)], sample[min(count-1, count/2+reach)]
	verdict := "not resolved"
	if high <= goal {
		verdict = "ok"
	} else if low > goal {
		verdict = "OVER"
	}
	fmt.Printf("%-60s %8.2f %%  goal %5.1f  [%.2f, %.2f], n = %d: %s\n", name, sample[count/2], goal, low, high, count, verdict)
}

func compare(engine string, loop func(engine any) hand, isSmall bool) {
	folder, err := os.MkdirTemp("", "kvdyno-fidelity-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	b := &bench{through: open(engine, folder), random: rand.New(rand.NewPCG(1, 2)), perBatch: batchSize}
	b.hand = loop(b.engine())
	rounds := 21
	for _, kind := range []kind{put, get, scan} {
		if kind == scan && b.hand.scan == nil {
			continue
		}
		b.ops = opsOf(kind)
		if isSmall {
			rounds, b.ops = 3, 128
		}
		b.round(kind) // warms up
		var means, medians, tails []float64
		for range rounds {
			sides := b.round(kind)
			percent := func(of func(sorted []uint64) float64) float64 { return (of(sides[0])/of(sides[1]) - 1) * 100 }
			means = append(means, percent(mean))
			medians = append(medians, percent(func(sorted []uint64) float64 { return float64(sorted[len(sorted)/2]) }))
			tails = append(tails, percent(func(sorted []uint64) float64 { return float64(sorted[len(sorted)*99/100]) }))
		}
		name := engine + " " + kind.String()
		row(name+": inside the call, driver over hand", means, 5, isSmall)
		row(name+": p50, driver over hand", medians, 10, isSmall)
		row(name+": p99, driver over hand", tails, 10, isSmall)
	}
	b.close()
}

func main() {
	isSmall := flag.Bool("small", false, "tiny sizes, which say nothing about speed")
	only := flag.String("engine", "", "one engine only")
	flag.Parse()
	driver.Register(pebble.Driver{}, bbolt.Driver{}, badger.Driver{}, pogreb.Driver{})
	for _, each := range []struct {
		name string
		loop func(engine any) hand
	}{{"pebble", onPebble}, {"bbolt", onBbolt}, {"badger", onBadger}, {"pogreb", onPogreb}} {
		if *only == "" || *only == each.name {
			compare(each.name, each.loop, *isSmall)
		}
	}
}

// opsOf a round and side.
func opsOf(kind kind) int {
	switch kind {
	case put:
		return 8000
	case get:
		return 40000
	}
	return 2000
}

// The order of clock reads.

package tick

import "testing"

func TestClocksNeverGoBackward(t *testing.T) {
	for name, clocks := range map[string][2]func() uint64{
		"counter":   {Counter, Ordered},
		"monotonic": {Monotonic, Monotonic},
	} {
		last := clocks[0]()
		for read := range 20_000 {
			now := clocks[read%2]()
			// On two processors, counters may differ a little.
			if now+4096 < last {
				t.Fatalf("%s: read %d is %d, after %d", name, read, now, last)
			}
			last = now
		}
	}
}

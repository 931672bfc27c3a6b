// The Go runtime of a trial: its settings and its statistics.

package driver

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
)

// Options that every driver in Go has: they set the runtime of the complete plug-in, and a trial has one engine.
var runtimeOptions = []Option{
	{"gogc", "text", "100", "heap growth in percent that starts the garbage collector, or `off`"},
	{"gomaxprocs", "count", "0", "threads that run Go code at once; 0 = the number of usable processors"},
}

// runtimeFacts holds the runtime's settings, and the counters at the open.
type runtimeFacts struct {
	gogc, gogcBefore             int
	gomaxprocs, gomaxprocsBefore int
	before                       runtime.MemStats
}

func startRuntime(config *Config) (*runtimeFacts, error) {
	facts := &runtimeFacts{}
	text, isSet := config.settings["gogc"]
	percent := -1
	if isSet && text != "off" {
		number, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return nil, Fail(Failed, "option gogc: expected a number of percent or off, got `%s`", text)
		}
		percent = int(number)
	}
	threads := uint64(0)
	if text, isSet := config.settings["gomaxprocs"]; isSet {
		number, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return nil, Fail(Failed, "option gomaxprocs: expected a number, got `%s`", text)
		}
		threads = number
	}
	// The value can only be read by setting it; without the option, the environment's setting stays.
	facts.gogcBefore = debug.SetGCPercent(-1)
	facts.gogc = facts.gogcBefore
	if isSet {
		facts.gogc = percent
	}
	debug.SetGCPercent(facts.gogc)
	facts.gomaxprocsBefore = runtime.GOMAXPROCS(int(threads))
	facts.gomaxprocs = runtime.GOMAXPROCS(0)
	runtime.ReadMemStats(&facts.before)
	return facts, nil
}

func (facts *runtimeFacts) gogcText() string {
	if facts.gogc < 0 {
		return "off"
	}
	return strconv.Itoa(facts.gogc)
}

func (facts *runtimeFacts) inForce(opened *Opened) {
	opened.Effective("gogc", facts.gogcText())
	opened.Effective("gomaxprocs", facts.gomaxprocs)
	opened.Effective("go", runtime.Version())
}

// tell adds what the runtime reports; counters start at the open.
func (facts *runtimeFacts) tell(add func(name string, value any)) {
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	add("go_heap_in_use_bytes", now.HeapInuse)
	add("go_heap_from_system_bytes", now.HeapSys)
	add("go_from_system_bytes", now.Sys)
	add("go_gc_runs", now.NumGC-facts.before.NumGC)
	add("go_gc_pause_total_ns", now.PauseTotalNs-facts.before.PauseTotalNs)
	if longest, isKnown := longestPauseNs(); isKnown {
		add("go_gc_pause_longest_ns", longest)
	}
	add("go_goroutines", runtime.NumGoroutine())
}

// longestPauseNs is the upper end of the highest bucket of the runtime's histogram that holds a pause of this process.
func longestPauseNs() (uint64, bool) {
	sample := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindFloat64Histogram {
		return 0, false
	}
	histogram := sample[0].Value.Float64Histogram()
	for i := len(histogram.Counts) - 1; i >= 0; i-- {
		if histogram.Counts[i] == 0 {
			continue
		}
		end := histogram.Buckets[i+1]
		if math.IsInf(end, 1) {
			end = histogram.Buckets[i]
		}
		return uint64(end * 1e9), true
	}
	return 0, true
}

func (facts *runtimeFacts) stop() error {
	debug.SetGCPercent(facts.gogcBefore)
	runtime.GOMAXPROCS(facts.gomaxprocsBefore)
	return nil
}

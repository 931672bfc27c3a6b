// What the log of a server that has ended says about why.

package host

import (
	"slices"
	"strings"
)

// short are words for what can be short: those by which the core knows it (crates/measure/src/shortage/words.rs).
var short = []string{
	"no space left", "os error 28)", "enospc", "disk is full", "disk full", "quota exceeded", "os error 122)", "no space is left",
	"too many open files", "os error 24)", "emfile", "os error 23)", "enfile", "on open files is reached",
	"current 'ulimit -n' of ", "set rlimit for open files", "file descriptor limit[", "file descriptor limit of ",
	"insufficient file descriptors",
	"file too large", "os error 27)", "efbig", "on the size of a file is reached",
	"cannot allocat", "rust_oom", "failed to reserve", "os error 12)", "enomem", "out of memory", "outofmemory", "bad_alloc",
	"memory allocation of", "not enough memory", "failed to allocate", "on address space is reached", "on data is reached",
	"failed to create new os thread", "newosproc", "failed to spawn thread", "cannot start a thread", "cannot create thread",
	"unable to create thread", "can't create thread", "can't initialize background jobs", "pthread_create failed",
	"pthread_create: ", "processes and threads",
}

// again are words for what is short only if no lock is meant.
var again = []string{"resource temporarily unavailable", "os error 11)", "code: 11,", "errno=11", "eagain"}

// begun begin the lines with which a runtime says why it ends, and parts are in those of a server.
var (
	begun = []string{"fatal error: ", "panic: ", "what(): ", "terminate called "}
	parts = []string{" panicked at ", `"level":"fatal"`, `"level":"panic"`, " FATAL: ", " PANIC: ", ": error: "}
)

// trace: with this, a trace begins in a line of JSON.
const trace = `,"stacktrace":`

// tellingLine is the line of a log that says why its process has ended: one that names what was short, if possible one with which a
// server ends; else one with which it ends, else the last that is not empty.
func tellingLine(log string) string {
	var last, ends, named, both string
	for line := range strings.Lines(log) {
		line, _, _ = strings.Cut(line, trace)
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		last = line
		isEnd, isNamed := isTelling(line), namesShortage(line)
		if isEnd {
			ends = line
		}
		if isNamed {
			named = line
		}
		if isEnd && isNamed {
			both = line
		}
	}
	for _, found := range []string{both, named, ends} {
		if found != "" {
			return found
		}
	}
	return last
}

func isTelling(line string) bool {
	return slices.ContainsFunc(begun, func(start string) bool { return strings.HasPrefix(line, start) }) ||
		slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(line, part) })
}

// namesShortage reports whether a line has one of the words, at the start of a word.
func namesShortage(line string) bool {
	line = strings.ToLower(line)
	has := func(word string) bool {
		for rest, before := line, byte(' '); ; {
			at := strings.Index(rest, word)
			if at < 0 {
				return false
			}
			if at > 0 {
				before = rest[at-1]
			}
			if !isAlphanumeric(before) {
				return true
			}
			rest, before = rest[at+1:], rest[at]
		}
	}
	return slices.ContainsFunc(short, has) || slices.ContainsFunc(again, has) && !strings.Contains(line, "lock")
}

func isAlphanumeric(letter byte) bool {
	return 'a' <= letter && letter <= 'z' || '0' <= letter && letter <= '9'
}

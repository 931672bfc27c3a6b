// Tests of processes that are started: their end, their last words, and their user.

package host

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"kvdyno/driver"
)

func TestAProcessIsStartedAndStopped(t *testing.T) {
	process, err := Start(Spec{Program: "sleep", Arguments: []string{"1000"}, Folder: t.TempDir(), Log: "log"})
	if err != nil {
		t.Fatal(err)
	}
	if process.HasEnded() {
		t.Fatal("it has ended")
	}
	if err := errors.Join(process.Signal(syscall.SIGTERM), process.Wait(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if text := process.Failed("has ended").Error(); !strings.Contains(text, "signal: terminated") {
		t.Error(text)
	}
}

func TestAProcessThatIgnoresSignalsIsKilled(t *testing.T) {
	folder := t.TempDir()
	process, err := Start(Spec{Program: "sh", Arguments: []string{"-c", "trap '' TERM; touch ready; while :; do sleep 1; done"},
		Folder: folder, Log: "log"})
	if err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); time.Since(begun) < time.Minute; {
		if _, err := os.Stat(filepath.Join(folder, "ready")); err == nil {
			break
		}
	}
	err = errors.Join(process.Signal(syscall.SIGTERM), process.Wait(10*time.Millisecond))
	if err == nil || !strings.Contains(err.Error(), "did not stop within 10ms") || !process.HasEnded() {
		t.Error(err)
	}
}

func TestAFailureHasTheProcessesLastWords(t *testing.T) {
	spec := Spec{Program: "sh", Arguments: []string{"-c", "echo first; echo last words >&2; exit 3"}, Folder: t.TempDir(), Log: "log"}
	err := Run(spec)
	if wanted := "`sh` failed (exit status 3); its last message: last words"; err == nil || err.Error() != wanted {
		t.Errorf("%v instead of %s", err, wanted)
	}
	err = Run(Spec{Program: "no-such-server", Package: "its-package", Folder: t.TempDir(), Log: "log"})
	var failure *driver.Failure
	if !errors.As(err, &failure) || !strings.Contains(err.Error(), "`no-such-server` is not installed: run `apt-get install its-package`") {
		t.Error(err)
	}
}

// Traces, and what a server does before it ends, follow the line that says why it ends.
func TestAFailureHasTheLineThatSaysWhy(t *testing.T) {
	const etcd = `{"level":"info","msg":"ready to serve, block and lock profiles are off"}
{"level":"panic","caller":"etcdserver/raft.go:513","msg":"failed to create WAL","error":"no space left on device","stacktrace":"a.b\n\ta.go:1"}
panic: failed to create WAL

goroutine 1 [running]:
main.main()
	go.etcd.io/etcd/main.go:28 +0x17
`
	const initdb = `running bootstrap script ... [7] FATAL:  could not write to file "pg_wal/xlogtemp": No space left on device
child process exited with exit code 1
initdb: removing data directory "data"
`
	const postgres = `[7] FATAL:  insufficient file descriptors available to start server process
[7] DETAIL:  System allows 16, we need at least 58.
[7] LOG:  database system is shut down
`
	cases := map[string]string{
		etcd:     `{"level":"panic","caller":"etcdserver/raft.go:513","msg":"failed to create WAL","error":"no space left on device"`,
		initdb:   `running bootstrap script ... [7] FATAL:  could not write to file "pg_wal/xlogtemp": No space left on device`,
		postgres: `[7] FATAL:  insufficient file descriptors available to start server process`,
		"initdb: error: it is bad\ninitdb: removing it\n":                                                    "initdb: error: it is bad",
		"fatal error: all goroutines are asleep\n\ngoroutine 1:\nmain.main()\n":                              "fatal error: all goroutines are asleep",
		"runtime: failed to create new OS thread (have 2 already; errno=11)\nfatal error: newosproc\nexit\n": "fatal error: newosproc",
		"it must not: OpenFile, OpenFile\nthe last\n\n":                                                      "the last",
		"lock: Resource temporarily unavailable\nthe last":                                                   "the last",
		"write: Resource temporarily unavailable\nthe last":                                                  "write: Resource temporarily unavailable",
		"": "",
	}
	for log, wanted := range cases {
		if found := tellingLine(log); found != wanted {
			t.Errorf("%q instead of %q", found, wanted)
		}
	}
	script := "echo 'panic: no space left on device'; for i in 1 2 3; do echo a.go:$i; done; exit 2"
	err := Run(Spec{Program: "sh", Arguments: []string{"-c", script}, Folder: t.TempDir(), Log: "log"})
	if wanted := "`sh` failed (exit status 2); its last message: panic: no space left on device"; err == nil || err.Error() != wanted {
		t.Errorf("%v instead of %s", err, wanted)
	}
}

// A process that must not be root's is not, and its files are this user's.
func TestAnUnprivilegedProcessIsNotRoot(t *testing.T) {
	if os.Getuid() == 0 && exec.Command("unshare", "--user", "true").Run() != nil {
		t.Skip("this machine allows no user namespaces")
	}
	folder := t.TempDir()
	spec := Spec{Program: "sh", Arguments: []string{"-c", "id -u >uid"}, Folder: folder, Log: "log", Unprivileged: true}
	if err := Run(spec); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "uid"))
	if err != nil || strings.TrimSpace(string(text)) == "0" {
		t.Errorf("%s %v", text, err)
	}
	found, err := os.Stat(filepath.Join(folder, "uid"))
	if err != nil || int(found.Sys().(*syscall.Stat_t).Uid) != os.Getuid() {
		t.Errorf("%v %v", found, err)
	}
}

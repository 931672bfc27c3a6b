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

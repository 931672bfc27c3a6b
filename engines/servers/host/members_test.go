// Tests of members: they are announced to the core, started again at its request, started by a launcher where there is one, and
// only where the core asks.

package host

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// socket is the core's end of the channel to this process's members.
func socket(t *testing.T) *os.File {
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(channel, fmt.Sprintf("%d:%d", os.Getpid(), ends[1]))
	ours := os.NewFile(uintptr(ends[0]), "core")
	t.Cleanup(func() { _, _ = ours.Close(), syscall.Close(ends[1]) })
	return ours
}

func TestMembersAreAnnouncedAndStartedAgain(t *testing.T) {
	core := socket(t)
	process, err := Start(Spec{Program: "sh", Arguments: []string{"-c", "echo started; exec sleep 1000"}, Folder: t.TempDir(), Log: "log"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Kill() })
	leader := ""
	members, err := Announce([]Member{{Name: "a", Process: process}}, func() string { return leader })
	if err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(core)
	answer := func() string {
		line, err := answers.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(line)
	}
	ask := func(request string) string {
		_, _ = fmt.Fprintln(core, request)
		return answer()
	}
	first := process.Number()
	if line, wanted := answer(), fmt.Sprintf("members a=%d", first); line != wanted {
		t.Fatalf("%s instead of %s", line, wanted)
	}
	if line := ask("leader"); line != "error no member leads" {
		t.Error(line)
	}
	leader = "a"
	if line := ask("leader"); line != "leader a" {
		t.Error(line)
	}
	// The log is complete only if each of them lives until it has written.
	written := func(lines int) {
		for begun := time.Now(); ; time.Sleep(time.Millisecond) {
			text, err := os.ReadFile(process.Folder + "/log")
			if strings.Count(string(text), "started") == lines {
				return
			}
			if time.Since(begun) > time.Minute {
				t.Fatalf("the log has not %d starts: %s %v", lines, text, err)
			}
		}
	}
	written(1)
	_ = syscall.Kill(first, syscall.SIGKILL)
	if line := ask("start a"); line != fmt.Sprintf("process %d", process.Number()) || process.Number() == first || process.HasEnded() {
		t.Error(line)
	}
	written(2)
	second := process.Number()
	if line := ask("restart a"); line != fmt.Sprintf("process %d", process.Number()) || process.Number() == second {
		t.Error(line)
	}
	if line := ask("start b"); line != "error no member named `b`" {
		t.Error(line)
	}
	written(3)
	if members.FailNow() {
		t.Error("nothing fails before the core says so")
	}
	for _, phase := range []string{"disturbed", "calm"} {
		if line := ask("phase " + phase); line != "ok" || members.FailNow() != (phase == "disturbed") {
			t.Error(phase, line)
		}
	}
	if err := members.Close(); err != nil {
		t.Error(err)
	}
}

func TestWithoutFaultsNothingIsAnnounced(t *testing.T) {
	for _, value := range []string{"", "x", fmt.Sprintf("%d:7", os.Getpid()+1)} {
		t.Setenv(channel, value)
		members, err := Announce(nil, nil)
		if AreDisturbed() || members.FailNow() || members != nil || err != nil || members.Close() != nil {
			t.Errorf("%q: %v %v", value, members, err)
		}
	}
}

func TestOnlyMembersAreStartedByTheLauncher(t *testing.T) {
	t.Setenv(launcher, "kvdyno")
	t.Setenv(syncs, "7:9")
	told := func(spec Spec) string { return strings.Join(spec.command().Args, " ") }
	spec := Spec{Program: "sh", Arguments: []string{"-c", "true"}, Member: 2}
	if line := told(spec); line != "kvdyno member 2 sh -c true" {
		t.Error(line)
	}
	if !slices.Contains(spec.command().Env, syncs+"=7:9") {
		t.Error(spec.command().Env)
	}
	if line := told(Spec{Program: "sh"}); line != "sh" {
		t.Error(line)
	}
	spec.Program = "no-such-server"
	if err := spec.command().Err; !errors.Is(err, exec.ErrNotFound) {
		t.Error(err)
	}
	t.Setenv(launcher, "")
	spec.Program = "sh"
	if line := told(spec); line != "sh -c true" {
		t.Error(line)
	}
}

func TestMembersWithLinksHaveAddressesOfTheirOwn(t *testing.T) {
	t.Setenv(network, "10.1.2")
	first, err1 := MemberAddress(7)
	second, err2 := MemberAddress(7)
	if err1 != nil || err2 != nil || first == second || !strings.HasPrefix(first, "10.1.2.7:") || !strings.HasPrefix(second, "10.1.2.7:") {
		t.Error(first, second, err1, err2)
	}
	t.Setenv(network, "")
	if plain, err := MemberAddress(7); err != nil || !strings.HasPrefix(plain, "127.") {
		t.Error(plain, err)
	}
}

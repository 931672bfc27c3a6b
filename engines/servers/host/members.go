// The servers of a trial as members that fail while the core measures.

package host

// #include <stdlib.h>
import "C"

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"kvdyno/driver"
)

// channel is the environment variable with this process's number and the descriptor of a socket to the core, `PID:FD`. The core
// sets it before it loads the plug-in if the workload has faults.
const channel = "KVDYNO_MEMBERS"

// restartLimit is the time in which a member must end before it is started again.
const restartLimit = 30 * time.Second

// Member is a server that may fail: members are announced in the order of their numbers (Spec.Member).
type Member struct {
	Name    string
	Process *Process
}

// Members answers the core's requests until it is closed. The core sends the signals itself; what it cannot do is to start a
// server again, and to know which one leads.
type Members struct {
	all    []Member
	leader func() string
	socket *os.File
	ended  chan struct{}
	// failNow: members may fail in the phase that runs.
	failNow atomic.Bool
}

// AreDisturbed reports whether the workload has faults.
func AreDisturbed() bool { return descriptor() >= 0 }

// variable of the environment; empty: there is none. Go's own copy of the environment is that with which the process was started.
func variable(name string) string {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	if value := C.getenv(text); value != nil {
		return C.GoString(value)
	}
	return ""
}

// descriptor of the socket; -1: the workload has no faults. The servers, and the process that opens the database at the end,
// inherit the variable but not the socket.
func descriptor() int {
	process, text, _ := strings.Cut(variable(channel), ":")
	number, err := strconv.Atoi(text)
	if err != nil || process != strconv.Itoa(os.Getpid()) {
		return -1
	}
	return number
}

// Announce tells the core of the members, if the workload has faults; otherwise there is nothing to close. `leader` is the name of
// the member that leads now; empty: it is unknown.
func Announce(all []Member, leader func() string) (*Members, error) {
	number := descriptor()
	if number < 0 {
		return nil, nil
	}
	own, err := syscall.Dup(number)
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(own)
	if err := syscall.SetNonblock(own, true); err != nil {
		return nil, err
	}
	made := &Members{all: all, leader: leader, socket: os.NewFile(uintptr(own), channel), ended: make(chan struct{})}
	line := "members"
	for _, each := range all {
		line += fmt.Sprintf(" %s=%d", each.Name, each.Process.Number())
	}
	if _, err := fmt.Fprintln(made.socket, line); err != nil {
		return nil, errors.Join(err, made.socket.Close())
	}
	go made.serve()
	return made, nil
}

func (m *Members) serve() {
	defer close(m.ended)
	lines := bufio.NewScanner(m.socket)
	for lines.Scan() {
		answer, err := m.answer(lines.Text())
		if err != nil {
			answer = "error " + strings.Join(strings.Fields(err.Error()), " ")
		}
		if _, err := fmt.Fprintln(m.socket, answer); err != nil {
			return
		}
	}
}

// FailNow reports whether members may fail in the phase that runs.
func (m *Members) FailNow() bool { return m != nil && m.failNow.Load() }

// answer answers a request: `leader`, `start NAME`, `restart NAME`, `phase disturbed` or `phase calm`.
func (m *Members) answer(line string) (string, error) {
	word, name, _ := strings.Cut(line, " ")
	if word == "phase" {
		m.failNow.Store(name == "disturbed")
		return "ok", nil
	}
	if word == "leader" {
		if name := m.leader(); name != "" {
			return "leader " + name, nil
		}
		return "", errors.New("no member leads")
	}
	for _, each := range m.all {
		if each.Name == name {
			if err := each.Process.again(word == "restart"); err != nil {
				return "", err
			}
			return fmt.Sprintf("process %d", each.Process.Number()), nil
		}
	}
	return "", driver.Fail(driver.Failed, "no member named `%s`", name)
}

// Close ends the answers.
func (m *Members) Close() error {
	if m == nil {
		return nil
	}
	err := m.socket.Close()
	<-m.ended
	return err
}

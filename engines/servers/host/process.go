// Package host starts the servers of a trial in its folder, and reaches those of a user.
package host

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"kvdyno/driver"
)

// Spec of a process to start.
type Spec struct {
	// Program, by name or path; Package is the Debian package that has it.
	Program, Package string
	Arguments        []string
	// Folder is the process's working directory, and has its log: a file of this name.
	Folder, Log string
	// Member is the number of a member whose link or disk a workload may disturb, from 1; 0: another process.
	Member int
	// Unprivileged: the process must not be root's. See Isolated.
	Unprivileged bool
}

// Process is a server that the driver has started. It ends with the process that started it.
type Process struct {
	Spec
	now atomic.Pointer[running]
}

// running is a process from its start to its end; a server that is started again has another one.
type running struct {
	command  *exec.Cmd
	ended    chan struct{}
	released chan struct{}
}

// Start starts a process.
func Start(spec Spec) (*Process, error) {
	made := &Process{Spec: spec}
	if err := made.start(os.O_TRUNC); err != nil {
		return nil, err
	}
	return made, nil
}

// start starts the process; its log is opened with this flag.
func (process *Process) start(flag int) error {
	spec := process.Spec
	log, err := os.OpenFile(filepath.Join(spec.Folder, spec.Log), os.O_WRONLY|os.O_CREATE|flag, 0o666)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	attempts := [][]func(*syscall.SysProcAttr) error{{}}
	if spec.Unprivileged {
		attempts = [][]func(*syscall.SysProcAttr) error{{isolate}, {demote(spec.Folder)}}
	}
	for _, attempt := range attempts {
		command := spec.command()
		command.Dir, command.Stdout, command.Stderr = spec.Folder, log, log
		command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		for _, change := range attempt {
			if err = change(command.SysProcAttr); err != nil {
				break
			}
		}
		if err == nil {
			made := &running{command: command, ended: make(chan struct{}), released: make(chan struct{})}
			if err = made.start(); err == nil {
				process.now.Store(made)
			}
		}
		if err == nil || errors.Is(err, exec.ErrNotFound) {
			break
		}
	}
	if err != nil {
		return spec.notStarted(err)
	}
	return nil
}

// launcher is the environment variable with the program that starts members whose link or disk a workload disturbs: it becomes the
// member when it has made what is needed for that.
const launcher = "KVDYNO_LAUNCHER"

// syncs is the environment variable by which the launcher finds to whom it hands over the member's sync calls.
const syncs = "KVDYNO_SYNCS"

func (spec Spec) command() *exec.Cmd {
	plain := exec.Command(spec.Program, spec.Arguments...)
	program := variable(launcher)
	// If there is no such server, the launcher would only say so in the server's log.
	if spec.Member == 0 || program == "" || plain.Err != nil {
		return plain
	}
	launched := exec.Command(program, append([]string{"member", strconv.Itoa(spec.Member), spec.Program}, spec.Arguments...)...)
	launched.Env = os.Environ()
	for _, name := range []string{network, syncs} {
		// Go's own copy of the environment does not have what the core has set.
		if value := variable(name); value != "" {
			launched.Env = append(launched.Env, name+"="+value)
		}
	}
	return launched
}

// again starts a process again with the same arguments: one that was killed, or, with `ask`, one that is asked to end first.
func (process *Process) again(ask bool) error {
	if ask {
		if err := process.Signal(syscall.SIGTERM); err != nil {
			return err
		}
	}
	select {
	case <-process.now.Load().ended:
	case <-time.After(restartLimit):
		return process.Failed(fmt.Sprintf("did not end within %v, and cannot be started again", restartLimit))
	}
	return process.start(os.O_APPEND)
}

// start starts it from a thread that lives as long as the process may: the kernel kills the process when that thread ends.
func (run *running) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := run.command.Start()
		started <- err
		if err == nil {
			<-run.released
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	go func() {
		_ = run.command.Wait() // the state has the reason
		close(run.ended)
		close(run.released)
	}()
	return nil
}

// Number is the process's number.
func (process *Process) Number() int { return process.now.Load().command.Process.Pid }

func (spec Spec) notStarted(err error) error {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return driver.Fail(driver.Failed, "`%s` is not installed: run `apt-get install %s`, or name a running server with the option url",
			spec.Program, spec.Package)
	}
	return driver.Fail(driver.Failed, "cannot start `%s`: %v", spec.Program, err)
}

// Run runs a process to its end, which is an error if it fails.
func Run(spec Spec) error {
	process, err := Start(spec)
	if err != nil {
		return err
	}
	run := process.now.Load()
	<-run.ended
	if !run.command.ProcessState.Success() {
		return process.Failed("failed")
	}
	return nil
}

// HasEnded reports whether the process has ended.
func (process *Process) HasEnded() bool {
	select {
	case <-process.now.Load().ended:
		return true
	default:
		return false
	}
}

// Failed is an error with the process's exit status, if it has ended, and the line of its log that says why.
func (process *Process) Failed(what string) error {
	text := fmt.Sprintf("`%s` %s", filepath.Base(process.Program), what)
	if process.HasEnded() {
		text += fmt.Sprintf(" (%v)", process.now.Load().command.ProcessState)
	}
	if said := process.said(); said != "" {
		text += "; its last message: " + said
	}
	return driver.Fail(driver.Failed, "%s", text)
}

// Explain adds to an error that the process has ended, if it has. The connection is closed a moment earlier.
func (process *Process) Explain(err error) error {
	for range 20 {
		if process.HasEnded() {
			return driver.Fail(driver.Failed, "%v: %v", err, process.Failed("has ended"))
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// said is the line of its log that says why it fails; earlier ones of a long log are not meant.
func (process *Process) said() string {
	text, _ := os.ReadFile(filepath.Join(process.Folder, process.Log))
	return tellingLine(string(text[max(0, len(text)-logEnd):]))
}

// logEnd is the size of the part of a log that is searched for what a server says: it has room for the traces of a runtime.
const logEnd = 256 << 10

// Signal asks the process to end.
func (process *Process) Signal(signal syscall.Signal) error {
	if err := process.now.Load().command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Wait waits until the process has ended, after Signal; then it is killed, which is an error.
func (process *Process) Wait(limit time.Duration) error {
	select {
	case <-process.now.Load().ended:
		return nil
	case <-time.After(limit):
		err := process.Failed(fmt.Sprintf("did not stop within %v", limit))
		process.Kill()
		return err
	}
}

// Kill ends the process at once.
func (process *Process) Kill() {
	run := process.now.Load()
	_ = run.command.Process.Kill() // it may have ended
	<-run.ended
}

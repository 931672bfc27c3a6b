// Package host starts the servers of a trial in its folder, and reaches those of a user.
package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
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
	// Unprivileged: the process must not be root's. See Isolated.
	Unprivileged bool
}

// Process is a server that the driver has started. It ends with the process that started it.
type Process struct {
	Spec
	command  *exec.Cmd
	ended    chan struct{}
	released chan struct{}
}

// Start starts a process.
func Start(spec Spec) (*Process, error) {
	log, err := os.Create(filepath.Join(spec.Folder, spec.Log))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	process := &Process{Spec: spec, ended: make(chan struct{}), released: make(chan struct{})}
	attempts := [][]func(*syscall.SysProcAttr) error{{}}
	if spec.Unprivileged {
		attempts = [][]func(*syscall.SysProcAttr) error{{isolate}, {demote(spec.Folder)}}
	}
	for _, attempt := range attempts {
		command := exec.Command(spec.Program, spec.Arguments...)
		command.Dir, command.Stdout, command.Stderr = spec.Folder, log, log
		command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		for _, change := range attempt {
			if err = change(command.SysProcAttr); err != nil {
				break
			}
		}
		if err == nil {
			process.command = command
			err = process.start()
		}
		if err == nil || errors.Is(err, exec.ErrNotFound) {
			break
		}
	}
	if err != nil {
		return nil, spec.notStarted(err)
	}
	return process, nil
}

// start starts it from a thread that lives as long as the process may: the kernel kills the process when that thread ends.
func (process *Process) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := process.command.Start()
		started <- err
		if err == nil {
			<-process.released
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	go func() {
		_ = process.command.Wait() // the state has the reason
		close(process.ended)
		close(process.released)
	}()
	return nil
}

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
	<-process.ended
	if !process.command.ProcessState.Success() {
		return process.Failed("failed")
	}
	return nil
}

// HasEnded reports whether the process has ended.
func (process *Process) HasEnded() bool {
	select {
	case <-process.ended:
		return true
	default:
		return false
	}
}

// Failed is an error with the process's exit status, if it has ended, and the last line of its log.
func (process *Process) Failed(what string) error {
	text := fmt.Sprintf("`%s` %s", filepath.Base(process.Program), what)
	if process.HasEnded() {
		text += fmt.Sprintf(" (%v)", process.command.ProcessState)
	}
	if last := process.lastLine(); last != "" {
		text += "; its last message: " + last
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

func (process *Process) lastLine() string {
	text, _ := os.ReadFile(filepath.Join(process.Folder, process.Log))
	lines := strings.Split(string(bytes.TrimSpace(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// Signal asks the process to end.
func (process *Process) Signal(signal syscall.Signal) error {
	if err := process.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Wait waits until the process has ended, after Signal; then it is killed, which is an error.
func (process *Process) Wait(limit time.Duration) error {
	select {
	case <-process.ended:
		return nil
	case <-time.After(limit):
		err := process.Failed(fmt.Sprintf("did not stop within %v", limit))
		process.Kill()
		return err
	}
}

// Kill ends the process at once.
func (process *Process) Kill() {
	_ = process.command.Process.Kill() // it may have ended
	<-process.ended
}

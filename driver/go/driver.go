// Package driver is the kit for kvdyno drivers in Go: an interface for an engine's author, the timed loop, and the glue
// to the C boundary of driver.h. A plug-in is a main package that registers its engines in an init function and is
// built with -buildmode=c-shared; driver/README.md is the guide for authors.
package driver

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Option of a driver, set as name=value.
type Option struct {
	Name string
	// Kind is "bytes", "count", "flag", "choice:a|b|c" or "text".
	Kind    string
	Default string
	Help    string
}

// Info is what a driver declares about its engine.
type Info struct {
	// Name of the engine on the command line: [a-z0-9][a-z0-9_.-]*.
	Name string
	// Engine is one line of description.
	Engine string
	// Family: "b+tree", "lsm", "hash", "memory" ...
	Family string
	// Language of the engine; empty: Go.
	Language string
	// Capabilities: all that the engine has, and no more.
	Capabilities uint64
	// Levels that the engine itself has.
	Levels []Level
	// KeySizeMax in bytes; 0: at least 65536.
	KeySizeMax uint32
	// Options of the driver.
	Options []Option
}

// Driver opens databases of one engine.
type Driver interface {
	Info() Info
	Open(config *Config, opened *Opened) (Database, error)
}

// Database is open. It may also be a Maintainer and a Teller.
type Database interface {
	// Session returns a session, for one thread at a time.
	Session() (Session, error)
	Close() error
}

// Maintainer can flush, compact or settle; false: the engine has no such work.
type Maintainer interface {
	Maintain(work Work) (bool, error)
}

// Teller reports statistics of the engine: name and value.
type Teller interface {
	Stats(add func(name string, value any))
}

// Session is used by one thread at a time. It may also be a Deleter, a Scanner, a Merger, a Grouper
// and a Lister.
type Session interface {
	Get(op *Op) (Status, error)
	Put(op *Op) (Status, error)
	End() error
}

// Deleter deletes.
type Deleter interface {
	Delete(op *Op) (Status, error)
}

// Scanner scans.
type Scanner interface {
	Scan(op *Op) (Status, error)
}

// Merger merges.
type Merger interface {
	Merge(op *Op) (Status, error)
}

// Lister pushes at the right ends of lists and pops at the left ones; Key names the list.
type Lister interface {
	Push(op *Op) (Status, error)
	Pop(op *Op) (Status, error)
}

// Grouper runs joined ops and gives each of them a status. NotRun: it does not handle such a group specially (never
// for an atomic one), and the kit runs the ops one by one. A failure applies to all ops, which had no effect.
type Grouper interface {
	Group(ops []Op, atomic bool) (Status, error)
}

// Failure is an error with its own status; other errors are Failed.
type Failure struct {
	Status Status
	Text   string
}

func (failure *Failure) Error() string { return failure.Text }

// Fail makes a Failure.
func Fail(status Status, format string, arguments ...any) error {
	return &Failure{status, fmt.Sprintf(format, arguments...)}
}

// statusOf gives the status of an error: that of a Failure, or Full if the disk or the quota is.
func statusOf(err error) Status {
	var failure *Failure
	if errors.As(err, &failure) {
		return failure.Status
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return Full
	}
	return Failed
}

// Config is the request at open.
type Config struct {
	// Path of an existing folder that only this trial uses.
	Path string
	// Create: the folder is empty, create a database.
	Create bool
	// CacheBytes is the budget for the engine's own caches; 0: the engine's default.
	CacheBytes uint64
	// ExpectedRows, DiskLimitBytes: 0 if unknown.
	ExpectedRows, DiskLimitBytes uint64
	// Largest sizes; KeySizeFixed is not 0 if every key has that size.
	KeySizeMax, KeySizeFixed, ValueSizeMax uint32
	// Threads: sessions that will be open at once.
	Threads uint32
	// Keyspaces, at least 1.
	Keyspaces int

	level    Level
	settings map[string]string
	info     *Info
}

// Pick returns the weakest of the driver's levels at or above the requested one, and `authors` for Default.
func (config *Config) Pick(authors Level) (Level, error) {
	if config.level == Default {
		return authors, nil
	}
	strongest := None
	for level := None; level <= Power; level++ {
		for _, has := range config.info.Levels {
			if has == level && level >= config.level {
				return level, nil
			} else if has == level {
				strongest = level
			}
		}
	}
	return None, Fail(Unsupported, "cannot reach durability level `%s`; the strongest level of this engine is `%s`", config.level,
		strongest)
}

// String is the level's name.
func (level Level) String() string {
	return [...]string{"none", "process", "power", "default"}[level]
}

// Text is an option's value: the given one, otherwise its default.
func (config *Config) Text(name string) string {
	if value, isSet := config.settings[name]; isSet {
		return value
	}
	for _, option := range config.info.Options {
		if option.Name == name {
			return option.Default
		}
	}
	return ""
}

// Number is a "count" or "bytes" option.
func (config *Config) Number(name string) (uint64, error) {
	text := config.Text(name)
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, Fail(Failed, "option %s: expected a number, got `%s`", name, text)
	}
	return number, nil
}

// Choice is a "choice:a|b|c" option.
func (config *Config) Choice(name string) (string, error) {
	text := config.Text(name)
	for _, option := range config.info.Options {
		kinds, isChoice := strings.CutPrefix(option.Kind, "choice:")
		if option.Name == name && isChoice && !slices.Contains(strings.Split(kinds, "|"), text) {
			return "", Fail(Failed, "option %s: expected %s, got `%s`", name, strings.ReplaceAll(kinds, "|", ", "), text)
		}
	}
	return text, nil
}

// Flag is a "flag" option.
func (config *Config) Flag(name string) (bool, error) {
	text := config.Text(name)
	if text != "true" && text != "false" {
		return false, Fail(Failed, "option %s: expected true or false, got `%s`", name, text)
	}
	return text == "true", nil
}

// Opened is what is in effect after open.
type Opened struct {
	// Level is the effective level.
	Level Level
	// Capabilities in effect: the declared ones, less those that options switch off.
	Capabilities uint64
	// CacheBytes in effect; NoCache: the engine has no such setting.
	CacheBytes uint64
	// Version of the engine's library.
	Version string
	// Compression in effect; empty: unknown.
	Compression string

	settings []string
}

// NoCache means that an engine has no cache that a budget could set.
const NoCache = ^uint64(0)

// Effective reports an effective setting.
func (opened *Opened) Effective(name string, value any) {
	opened.settings = append(opened.settings, fmt.Sprintf("%s=%v\n", name, value))
}

var registered []Driver

// mostDrivers is the number of tables that glue.h has room for.
const mostDrivers = 64

// Register adds drivers to the plug-in; init functions call it.
func Register(drivers ...Driver) {
	registered = append(registered, drivers...)
	if len(registered) > mostDrivers {
		panic(fmt.Sprintf("a plug-in has at most %d drivers", mostDrivers))
	}
}

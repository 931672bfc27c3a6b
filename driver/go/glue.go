// The Go side of the boundary: the functions that the tables of glue.c call.

package driver

/*
#cgo CFLAGS: -std=c11 -O2 -Wall -Wextra -Werror -I${SRCDIR}/../include
#include <stdlib.h>
#include "glue.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime/cgo"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"
)

// The layout of abi.go must equal that of driver.h: an array of another length does not compile.
var (
	_ [opSize]byte                                = [C.KV_GO_OP]byte{}
	_ [unsafe.Offsetof(rawOp{}.key)]byte          = [C.KV_GO_OP_KEY]byte{}
	_ [unsafe.Offsetof(rawOp{}.keyLength)]byte    = [C.KV_GO_OP_KEY_LENGTH]byte{}
	_ [unsafe.Offsetof(rawOp{}.due)]byte          = [C.KV_GO_OP_DUE]byte{}
	_ [unsafe.Offsetof(rawOp{}.start)]byte        = [C.KV_GO_OP_START]byte{}
	_ [unsafe.Offsetof(rawOp{}.rows)]byte         = [C.KV_GO_OP_ROWS]byte{}
	_ [unsafe.Offsetof(rawOp{}.status)]byte       = [C.KV_GO_OP_STATUS]byte{}
	_ [batchSize]byte                             = [C.KV_GO_BATCH]byte{}
	_ [unsafe.Offsetof(rawBatch{}.stop)]byte      = [C.KV_GO_BATCH_STOP]byte{}
	_ [unsafe.Offsetof(rawBatch{}.clock)]byte     = [C.KV_GO_BATCH_CLOCK]byte{}
	_ [unsafe.Offsetof(rawBatch{}.errorText)]byte = [C.KV_GO_BATCH_ERROR]byte{}
)

// opened databases keep the data that their sessions need.
type openDatabase struct {
	database     Database
	capabilities uint64
	keyspaces    int
	keySizeMax   uint32
	runtime      *runtimeFacts
}

var fillTables sync.Once

// kvGoFillTables fills the tables of the registered drivers, by name, because packages register them in an order that depends on
// their imports, and returns their number.
//
//export kvGoFillTables
func kvGoFillTables() C.uint32_t {
	fillTables.Do(func() {
		slices.SortFunc(registered, func(one, other Driver) int { return strings.Compare(one.Info().Name, other.Info().Name) })
		for index, driver := range registered {
			fillTable(C.kv_go_table(C.uint32_t(index)), driver.Info())
		}
	})
	return C.uint32_t(len(registered))
}

// fillTable writes constants that live as long as the process, so their memory is never freed.
func fillTable(table *C.kv_driver, info Info) {
	table.name = C.CString(info.Name)
	table.engine = C.CString(info.Engine)
	table.family = C.CString(info.Family)
	if info.Language != "" {
		table.language = C.CString(info.Language)
	}
	table.capabilities = C.uint64_t(info.Capabilities)
	for _, level := range info.Levels {
		table.levels |= 1 << level
	}
	table.key_size_max = C.uint32_t(info.KeySizeMax)
	options := append(append([]Option{}, info.Options...), runtimeOptions...)
	table.option_count = C.uint32_t(len(options))
	room := (*C.kv_option)(C.calloc(C.size_t(len(options)), C.sizeof_kv_option))
	made := unsafe.Slice(room, len(options))
	for i, option := range options {
		made[i].name, made[i]._type = C.CString(option.Name), C.CString(option.Kind)
		made[i].default_value, made[i].help = C.CString(option.Default), C.CString(option.Help)
	}
	table.options = room
}

// cText writes a text into a field of the boundary; nil means that the caller does not want it.
func cText(field *C.char, size int, text string) {
	if field != nil {
		writeText(unsafe.Slice((*byte)(unsafe.Pointer(field)), size), text)
	}
}

// cError writes the text of an error.
func cError(field *C.char, text string) {
	if field != nil {
		writeError(unsafe.Slice((*byte)(unsafe.Pointer(field)), textSize), text)
	}
}

// guarded runs a call that is not hot: it turns an error or a panic into a status with a text.
func guarded(field *C.char, call func() (Status, error)) (status C.uint32_t) {
	defer func() {
		if panicked := recover(); panicked != nil {
			cError(field, fmt.Sprintf("the engine panicked: %v", panicked))
			status = C.uint32_t(Failed)
		}
	}()
	done, err := call()
	if err != nil {
		cError(field, err.Error())
		return C.uint32_t(statusOf(err))
	}
	return C.uint32_t(done)
}

// openHandles counts the databases and sessions that C holds.
var openHandles atomic.Int64

func box(value any) *C.kv_go_box {
	openHandles.Add(1)
	made := (*C.kv_go_box)(C.calloc(1, C.sizeof_kv_go_box))
	made.handle = C.uintptr_t(cgo.NewHandle(value))
	return made
}

func unbox[T any](boxed *C.kv_go_box) T {
	return cgo.Handle(boxed.handle).Value().(T)
}

func dispose(boxed *C.kv_go_box) {
	openHandles.Add(-1)
	cgo.Handle(boxed.handle).Delete()
	C.free(unsafe.Pointer(boxed))
}

//export kvGoOpen
func kvGoOpen(index C.int, wanted *C.kv_config, opened *C.kv_opened, database **C.kv_go_box) C.uint32_t {
	return guarded(&opened.error[0], func() (Status, error) {
		driver := registered[index]
		info := driver.Info()
		if wanted.abi != C.KV_ABI {
			return Failed, Fail(Failed, "the config has ABI %d, this driver has ABI %d", wanted.abi, C.KV_ABI)
		}
		config, err := readConfig(wanted, &info)
		if err != nil {
			return Failed, err
		}
		facts, err := startRuntime(config)
		if err != nil {
			return Failed, err
		}
		report := Opened{Capabilities: info.Capabilities, CacheBytes: NoCache}
		made, err := driver.Open(config, &report)
		if err != nil {
			return Failed, err
		}
		facts.inForce(&report)
		writeOpened(opened, &report)
		keyspaces := max(config.Keyspaces, 1)
		*database = box(&openDatabase{made, report.Capabilities, keyspaces, info.KeySizeMax, facts})
		return OK, nil
	})
}

func readConfig(wanted *C.kv_config, info *Info) (*Config, error) {
	config := &Config{
		Path:           C.GoString(wanted.path),
		Create:         wanted.flags&C.KV_CREATE != 0,
		CacheBytes:     uint64(wanted.cache_bytes),
		ExpectedRows:   uint64(wanted.expected_rows),
		DiskLimitBytes: uint64(wanted.disk_limit_bytes),
		KeySizeMax:     uint32(wanted.key_size_max),
		KeySizeFixed:   uint32(wanted.key_size_fixed),
		ValueSizeMax:   uint32(wanted.value_size_max),
		Threads:        uint32(wanted.threads),
		Keyspaces:      int(wanted.keyspaces),
		level:          Level(wanted.level),
		settings:       map[string]string{},
		info:           info,
	}
	for _, setting := range unsafe.Slice(wanted.settings, wanted.setting_count) {
		name := C.GoString(setting.name)
		if !hasOption(info.Options, name) && !hasOption(runtimeOptions, name) {
			return nil, Fail(Failed, "no option named `%s`", name)
		}
		config.settings[name] = C.GoString(setting.value)
	}
	return config, nil
}

func hasOption(options []Option, name string) bool {
	for _, option := range options {
		if option.Name == name {
			return true
		}
	}
	return false
}

func writeOpened(opened *C.kv_opened, report *Opened) {
	opened.level = C.uint32_t(report.Level)
	opened.capabilities = C.uint64_t(report.Capabilities)
	opened.cache_bytes = C.uint64_t(report.CacheBytes)
	cText(&opened.version[0], len(opened.version), report.Version)
	cText(&opened.compression[0], len(opened.compression), report.Compression)
	cText(&opened.settings[0], len(opened.settings), strings.Join(report.settings, ""))
}

//export kvGoSession
func kvGoSession(database *C.kv_go_box, session **C.kv_go_box, text *C.char) C.uint32_t {
	return guarded(text, func() (Status, error) {
		open := unbox[*openDatabase](database)
		made, err := open.database.Session()
		if err != nil {
			return Failed, err
		}
		*session = box(newRunner(made, open.capabilities, open.keyspaces, open.keySizeMax))
		return OK, nil
	})
}

//export kvGoExecute
func kvGoExecute(handle C.uintptr_t, batch *C.kv_batch) C.uint32_t {
	r := cgo.Handle(handle).Value().(*runner)
	return C.uint32_t(r.run((*rawBatch)(unsafe.Pointer(batch))))
}

//export kvGoSessionEnd
func kvGoSessionEnd(session *C.kv_go_box, text *C.char) C.uint32_t {
	defer dispose(session)
	return guarded(text, func() (Status, error) { return OK, unbox[*runner](session).session.End() })
}

//export kvGoMaintain
func kvGoMaintain(database *C.kv_go_box, work C.uint32_t, text *C.char) C.uint32_t {
	return guarded(text, func() (Status, error) {
		maintainer, can := unbox[*openDatabase](database).database.(Maintainer)
		if !can {
			return Unsupported, nil
		}
		done, err := maintainer.Maintain(Work(work))
		if !done {
			return Unsupported, err
		}
		return OK, err
	})
}

//export kvGoStats
func kvGoStats(database *C.kv_go_box, out *C.char, size C.uint64_t) C.uint32_t {
	return guarded(nil, func() (Status, error) {
		open := unbox[*openDatabase](database)
		var text strings.Builder
		add := func(name string, value any) { fmt.Fprintf(&text, "%s=%v\n", name, value) }
		if teller, can := open.database.(Teller); can {
			teller.Stats(add)
		}
		open.runtime.tell(add)
		add("go_open_handles", openHandles.Load())
		if text.Len() >= int(size) {
			return Short, nil
		}
		cText(out, int(size), text.String())
		return OK, nil
	})
}

//export kvGoClose
func kvGoClose(database *C.kv_go_box, text *C.char) C.uint32_t {
	defer dispose(database)
	return guarded(text, func() (Status, error) {
		open := unbox[*openDatabase](database)
		err := open.database.Close()
		return OK, errors.Join(err, open.runtime.stop())
	})
}

// DatabaseOf returns the database of a handle that was given to the boundary, for benches that need its internals.
func DatabaseOf(handle uintptr) Database { return cgo.Handle(handle).Value().(*openDatabase).database }

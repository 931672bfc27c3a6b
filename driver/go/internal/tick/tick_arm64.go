// Package tick reads the clocks of driver.h. It is a separate package because a package with cgo can hold no assembly.
package tick

// Counter is the virtual counter.
//
//go:noescape
func Counter() uint64

// Ordered is the counter after all preceding instructions have ended.
//
//go:noescape
func Ordered() uint64

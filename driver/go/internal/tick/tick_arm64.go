// Package tick reads the clocks of driver.h. It is a package of its own because one with cgo can hold no assembly.
package tick

// Counter is the virtual counter.
//
//go:noescape
func Counter() uint64

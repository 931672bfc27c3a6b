// A processor without a counter that the boundary knows.

//go:build !amd64 && !arm64

// Package tick reads the clocks of driver.h. It is a package of its own because one with cgo can hold no assembly.
package tick

// Counter is the monotonic clock: this processor has no counter that the boundary knows.
func Counter() uint64 { return Monotonic() }

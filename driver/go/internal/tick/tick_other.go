// A processor without a counter that the boundary supports.

//go:build !amd64 && !arm64

// Package tick reads the clocks of driver.h. It is a separate package because a package with cgo can hold no assembly.
package tick

// Counter is the monotonic clock: this processor has no counter that the boundary supports.
func Counter() uint64 { return Monotonic() }

// Ordered is the monotonic clock, which is ordered by itself.
func Ordered() uint64 { return Monotonic() }

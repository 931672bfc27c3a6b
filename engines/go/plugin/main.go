// The plug-in of all engines in Go: there can be one Go runtime in a process.
package main

import (
	"kvdyno/driver"
	"kvdyno/engines/bbolt"
	"kvdyno/engines/null"
)

func init() {
	driver.Register(null.Driver{}, bbolt.Driver{})
}

func main() {}

// A separate plug-in with the drivers of TiKV, whose client has more dependencies than those of all other servers together.
package main

import (
	"kvdyno/driver"
	"kvdyno/servers/tikv"
)

func init() { driver.Register(tikv.Transactional, tikv.Raw) }

func main() {}

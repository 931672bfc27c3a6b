// A separate plug-in with the drivers of servers and clusters, so that the other engines in Go build without their clients.
package main

import (
	"kvdyno/driver"
	"kvdyno/servers/cassandra"
	"kvdyno/servers/etcd"
	"kvdyno/servers/memcached"
	"kvdyno/servers/postgresql"
)

func init() {
	driver.Register(cassandra.Driver{}, etcd.Driver{}, memcached.Driver{}, postgresql.Driver{})
}

func main() {}

// Addresses for the servers of a trial.

package host

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
)

// Ports below those that the kernel gives to clients, and above those of well-known services.
const firstPort, lastPort = 20000, 32000

// Address returns a free port at a random loopback address. A server may be started there again later: no other program
// uses the address by chance.
func Address() (string, error) {
	var last error
	for range 20 {
		var random [8]byte
		_, _ = rand.Read(random[:]) // never fails
		host := net.IPv4(127, random[0], random[1], 1+random[2]%254).String()
		port := firstPort + int(binary.NativeEndian.Uint16(random[4:]))%(lastPort-firstPort)
		address := net.JoinHostPort(host, strconv.Itoa(port))
		listener, err := net.Listen("tcp", address)
		if err == nil {
			return address, listener.Close()
		}
		last = err
	}
	return "", last
}

// network is the environment variable with the first three numbers of the members' addresses, if each has a link of its own that
// may be cut; then an address is that of no other program.
const network = "KVDYNO_NETWORK"

// used counts the ports that were given to members with links.
var used atomic.Uint32

// MemberAddress returns an address for the member with this number, from 1: one of its own if the workload cuts links, otherwise
// one as Address returns it.
func MemberAddress(number int) (string, error) {
	prefix := variable(network)
	if prefix == "" {
		return Address()
	}
	port := firstPort + int(used.Add(1))%(lastPort-firstPort)
	return net.JoinHostPort(fmt.Sprintf("%s.%d", prefix, number), strconv.Itoa(port)), nil
}

// Secret is a random password for a server of a trial, so that no other program on the machine uses it.
func Secret() string {
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}

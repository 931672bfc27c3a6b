// A server of TiKV's protocol for tests, on loopback and without a disk: `testserver [ADDRESS-OF-PD]`. It prints PD's address, and
// ends when its standard input does. It is not TiKV: see package mock.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/pingcap/log"
	"go.uber.org/zap"

	"kvdyno/servers/tikv/mock"
)

func run() error {
	address := "127.0.0.1:0"
	if len(os.Args) > 1 {
		address = os.Args[1]
	}
	log.ReplaceGlobals(zap.NewNop(), &log.ZapProperties{})
	server, err := mock.Start(address, 3, nil)
	if err != nil {
		return err
	}
	fmt.Println(server.Address)
	_, err = io.Copy(io.Discard, os.Stdin)
	if err == nil {
		err = server.Stop()
	}
	return err
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

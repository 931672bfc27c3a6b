// Package null does nothing: it measures the cost of the boundary into Go.
package null

import "kvdyno/driver"

// Driver does nothing.
type Driver struct {
	// Keeps declares that the driver keeps the slices it receives, so that the kit copies them.
	Keeps bool
}

func init() { driver.Register(Driver{}, Driver{Keeps: true}) }

// Info describes the engine.
func (d Driver) Info() driver.Info {
	info := driver.Info{
		Name: "null-go", Engine: "does nothing, in Go: the cost of the boundary", Family: "none",
		Capabilities: driver.StoresNothing | driver.InMemory | driver.Ordered | driver.CanReverse | driver.CanPrefix |
			driver.CanDelete | driver.Overwrite | driver.CanNew,
		Levels: []driver.Level{driver.None},
	}
	if d.Keeps {
		info.Name, info.Engine = "null-go-keeps", "does nothing, in Go, with copies of keys and values: the cost of the copies"
		info.Capabilities |= driver.KeepsKey | driver.KeepsValue
	}
	return info
}

type database struct{}
type session struct{}

// Open opens nothing.
func (Driver) Open(_ *driver.Config, opened *driver.Opened) (driver.Database, error) {
	opened.Level, opened.Version, opened.Compression = driver.None, "1", "none"
	return database{}, nil
}

func (database) Session() (driver.Session, error) { return session{}, nil }
func (database) Close() error                     { return nil }

func (session) Get(*driver.Op) (driver.Status, error)    { return driver.OK, nil }
func (session) Put(*driver.Op) (driver.Status, error)    { return driver.OK, nil }
func (session) Delete(*driver.Op) (driver.Status, error) { return driver.OK, nil }
func (session) End() error                               { return nil }
func (session) Scan(op *driver.Op) (driver.Status, error) {
	rows := op.Rows()
	return rows.Status(), nil
}

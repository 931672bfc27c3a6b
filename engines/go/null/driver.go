// Package null does nothing: what the boundary into Go costs.
package null

import "kvdyno/driver"

// Driver of nothing.
type Driver struct {
	// Keeps declares that it keeps the slices it is given, so that the kit copies them.
	Keeps bool
}

// Info of it.
func (d Driver) Info() driver.Info {
	info := driver.Info{
		Name: "null-go", Engine: "does nothing, in Go: what the boundary costs", Family: "none",
		Capabilities: driver.StoresNothing | driver.InMemory | driver.Ordered | driver.CanReverse | driver.CanPrefix |
			driver.CanDelete | driver.Overwrite | driver.CanNew,
		Levels: []driver.Level{driver.None},
	}
	if d.Keeps {
		info.Name, info.Engine = "null-go-keeps", "does nothing, in Go, with copies of keys and values: what these cost"
		info.Capabilities |= driver.KeepsKey | driver.KeepsValue
	}
	return info
}

type database struct{}
type session struct{}

// Open of nothing.
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

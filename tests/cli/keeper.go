// An engine that keeps the slices that it is given and copies none of them: the kit must.
package main

import (
	"sync"

	"kvdyno/driver"
)

type keeper struct{}

func (keeper) Info() driver.Info {
	return driver.Info{
		Name: "keeper-go", Engine: "keeps the slices that it is given", Family: "example",
		Capabilities: driver.InMemory | driver.Overwrite | driver.CanDelete | driver.DeleteTells | driver.KeepsValue,
		Levels:       []driver.Level{driver.None},
	}
}

type rows struct {
	lock   sync.Mutex
	values map[string][]byte
}

func (keeper) Open(config *driver.Config, opened *driver.Opened) (driver.Database, error) {
	level, err := config.Pick(driver.None)
	opened.Level, opened.Version = level, "1"
	return &rows{values: map[string][]byte{}}, err
}

func (r *rows) Session() (driver.Session, error) { return r, nil }
func (r *rows) End() error                       { return nil }
func (r *rows) Close() error                     { return nil }

func (r *rows) Get(op *driver.Op) (driver.Status, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	value, is := r.values[string(op.Key)]
	if !is {
		return driver.NotFound, nil
	}
	return op.Deliver(value), nil
}

func (r *rows) Put(op *driver.Op) (driver.Status, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.values[string(op.Key)] = op.Value
	return driver.OK, nil
}

func (r *rows) Delete(op *driver.Op) (driver.Status, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	_, is := r.values[string(op.Key)]
	delete(r.values, string(op.Key))
	if !is {
		return driver.NotFound, nil
	}
	return driver.OK, nil
}

func init() { driver.Register(keeper{}) }

func main() {}

// Gets distributed over goroutines.

package pebble

import (
	"errors"
	"sync"
	"sync/atomic"

	"kvdyno/driver"
)

// The smallest group of gets that is distributed, how many gets a goroutine takes at a time, and the most goroutines.
const (
	sharedGets  = 32
	sharedStep  = 8
	mostReaders = 1024
)

// share reads the option `readers`.
func (d *database) share(config *driver.Config, opened *driver.Opened) error {
	readers, err := config.Number("readers")
	if err != nil {
		return err
	}
	if readers > mostReaders {
		return driver.Fail(driver.Failed, "option readers: expected at most %d, got %d", mostReaders, readers)
	}
	d.readers = int(readers)
	if d.readers > 0 {
		opened.Capabilities |= driver.MultiGet
	}
	opened.Effective("readers", readers)
	return nil
}

// shared reads all of a group at one point in time, so that the order of the gets does not matter. Gets wait for each
// other's blocks in the cache: while one goroutine waits, another runs.
func (d *database) shared(ops []driver.Op) (driver.Status, error) {
	snapshot := d.db.NewSnapshot()
	var next atomic.Int64
	var running sync.WaitGroup
	errs := make([]error, d.readers)
	for reader := range errs {
		running.Go(func() {
			defer func() {
				if panicked := recover(); panicked != nil {
					errs[reader] = driver.Fail(driver.Failed, "the engine panicked: %v", panicked)
				}
			}()
			for errs[reader] == nil {
				to := int(next.Add(sharedStep))
				if to-sharedStep >= len(ops) {
					return
				}
				errs[reader] = getAll(snapshot, ops[to-sharedStep:min(to, len(ops))])
			}
		})
	}
	running.Wait()
	return driver.OK, errors.Join(errors.Join(errs...), snapshot.Close())
}

// Gets that goroutines share out.

package pebble

import (
	"errors"
	"sync"
	"sync/atomic"

	"kvdyno/driver"
)

// Gets of a group that are worth the goroutines, how many one takes at a time, and the most goroutines.
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
		return driver.Fail(driver.Failed, "option readers: %d are the most, got %d", mostReaders, readers)
	}
	d.readers = int(readers)
	if d.readers > 0 {
		opened.Capabilities |= driver.MultiGet
	}
	opened.InForce("readers", readers)
	return nil
}

// shared reads all of a group at one moment, so that it does not matter which get comes first. Gets wait for each
// other's blocks in the cache: while one goroutine does, another runs.
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

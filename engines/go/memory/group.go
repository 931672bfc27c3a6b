// Groups: transactions that see their own changes.

package memory

import "kvdyno/driver"

// change is a group's effect on a key so far.
type change struct {
	value  []byte
	exists bool
}

// Group is a transaction: its answers are computed first, with its own changes; then it is logged as one record and
// applied.
func (d *database) Group(ops []driver.Op, _ bool) (driver.Status, error) {
	writes := 0
	for i := range ops {
		switch ops[i].Kind() {
		case driver.Put, driver.Delete:
			writes++
		case driver.Get:
		default:
			return driver.Unsupported, driver.Fail(driver.Unsupported, "a transaction may have only gets, puts and deletes")
		}
	}
	if writes == 0 {
		d.lock.RLock()
		defer d.lock.RUnlock()
		for i := range ops {
			ops[i].SetStatus(d.get(&ops[i]))
		}
		return driver.OK, nil
	}
	d.lock.Lock()
	defer d.lock.Unlock()
	return d.transact(ops)
}

func (d *database) transact(ops []driver.Op) (driver.Status, error) {
	changes := make(map[string]change, len(ops))
	effective := make([]*driver.Op, 0, len(ops))
	for i := range ops {
		op := &ops[i]
		now, isChanged := changes[string(op.Key)]
		if !isChanged {
			now.value, now.exists = d.rows.Get(string(op.Key))
		}
		status := answer(op, now)
		op.SetStatus(status)
		if status == driver.Short {
			return driver.Short, nil // a short op in a group has had no effect
		} else if status != driver.OK || op.Kind() == driver.Get {
			continue
		}
		changes[string(op.Key)] = change{op.Value, op.Kind() == driver.Put}
		effective = append(effective, op)
	}
	if d.log != nil && len(effective) != 0 {
		for _, op := range effective {
			d.log.add(op)
		}
		if err := d.log.commit(); err != nil {
			return driver.Failed, err
		}
	}
	for _, op := range effective {
		d.apply(op)
	}
	return driver.OK, nil
}

func answer(op *driver.Op, now change) driver.Status {
	switch {
	case op.Kind() == driver.Get && now.exists:
		return op.Deliver(now.value)
	case op.Kind() != driver.Put && !now.exists:
		return driver.NotFound
	case op.Kind() == driver.Put && op.IsNew() && now.exists:
		return driver.Exists
	}
	return driver.OK
}

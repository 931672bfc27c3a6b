// Items in a user's server: it must be empty, and is emptied only if all its items are ours.

package memcached

import (
	"strconv"

	"kvdyno/driver"
)

// mark is an item that tells how many items had been stored when the server was closed; memcached counts them all.
const mark = "kvdyno:database"

// claim is the possession of a server.
type claim struct {
	// others counts the items that had been stored when it was taken.
	others uint64
}

func stored(facts map[string]string) (uint64, error) {
	count, err := strconv.ParseUint(facts["total_items"], 10, 64)
	if err != nil {
		return 0, driver.Fail(driver.Failed, "the server does not report total_items")
	}
	return count, nil
}

// take makes sure that the server may be written to, and empties it if all its items are ours.
func (d *database) take(config *driver.Config, facts map[string]string) (*claim, error) {
	total, err := stored(facts)
	if err != nil {
		return nil, err
	}
	if count := facts["curr_items"]; count != "0" {
		left, err := d.control.text(mark)
		if err != nil {
			return nil, err
		}
		isOurs := left == strconv.FormatUint(total, 10)
		if !isOurs && config.Text("database") != "flush" {
			return nil, driver.Fail(driver.Failed, "%s: the server has %s items, not all written by kvdyno, and writing may evict "+
				"them; use another server, or allow deleting them with --option memcached.database=flush", d.address, count)
		}
		if err := d.control.command("flush_all", "OK"); err != nil {
			return nil, err
		}
	}
	return &claim{total}, nil
}

// leave marks the server if nobody else has stored an item, so that the next trial knows that all items are ours.
func (d *database) leave() error {
	facts, err := d.control.facts("stats")
	if err != nil {
		return err
	}
	total, err := stored(facts)
	if err != nil || total != d.claim.others+d.stored.Load() {
		return err
	}
	return d.control.store(mark, strconv.FormatUint(total+1, 10))
}

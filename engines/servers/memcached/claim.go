// Items in a user's server: it must be empty, and is emptied only if all its items are ours.

package memcached

import (
	"fmt"
	"strconv"
	"strings"

	"kvdyno/driver"
)

// mark is an item with the number of items that had been stored when it was taken, and of those that load generators have
// stored since, each of which adds its own when it leaves. memcached counts all that are stored: if the numbers are equal,
// nobody else has stored one.
const mark = "kvdyno:database"

// claim is the possession of a server.
type claim struct {
	// isGuest: another load generator has taken it.
	isGuest bool
	// others counts the items that had been stored when it was taken, with the mark.
	others uint64
}

// number is the value of the mark; it has room for more digits, because one of another length would be stored as a new item.
func number(count uint64) string { return fmt.Sprintf("%020d", count) }

func stored(facts map[string]string) (uint64, error) {
	count, err := strconv.ParseUint(facts["total_items"], 10, 64)
	if err != nil {
		return 0, driver.Fail(driver.Failed, "the server does not report total_items")
	}
	return count, nil
}

// take makes sure that the server may be written to, and empties it if all its items are ours.
func (d *database) take(config *driver.Config, facts map[string]string) (*claim, error) {
	if !config.Create {
		return &claim{isGuest: true}, nil
	}
	total, err := stored(facts)
	if err != nil {
		return nil, err
	}
	if count := facts["curr_items"]; count != "0" {
		left, err := d.control.text(mark)
		if err != nil {
			return nil, err
		}
		ours, err := strconv.ParseUint(strings.TrimSpace(left), 10, 64)
		if (err != nil || ours != total) && config.Text("database") != "flush" {
			return nil, driver.Fail(driver.Failed, "%s: the server has %s items, not all written by kvdyno, and writing may evict "+
				"them; use another server, or allow deleting them with --option memcached.database=flush", d.address, count)
		}
		if err := d.control.command("flush_all", "OK"); err != nil {
			return nil, err
		}
	}
	return &claim{others: total + 1}, d.control.store(mark, number(total+1))
}

// leave adds to the mark what this load generator has stored, so that the next trial knows that all items are ours.
func (d *database) leave() error {
	own := d.stored.Load()
	isThere, err := d.control.add(mark, own)
	if err != nil || isThere || d.claim.isGuest {
		return err
	}
	// The mark was evicted.
	facts, err := d.control.facts("stats")
	if err != nil {
		return err
	}
	total, err := stored(facts)
	if err != nil || total != d.claim.others+own {
		return err
	}
	return d.control.store(mark, number(total+1))
}

// Keys in a user's cluster: the driver writes below its prefix, and deletes only what it has written.

package etcd

import (
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"kvdyno/driver"
)

// claim is the possession of a prefix. Below it are the rows, and the mark: `open`, or `N keys` when it was closed.
type claim struct {
	prefix string
}

func (c *claim) mark() string { return c.prefix + "database" }

// count counts the keys that begin with a text.
func (d *database) count(prefix string) (int64, error) {
	ctx, cancel := d.context()
	defer cancel()
	from, to := bounds(prefix, nil, nil)
	found, err := d.control.Get(ctx, from, clientv3.WithRange(to), clientv3.WithCountOnly())
	if err != nil {
		return 0, d.failed(err)
	}
	return found.Count, nil
}

// take makes sure that the prefix may be written to, and empties it for a new database if all its keys are ours.
func (d *database) take(config *driver.Config) (*claim, error) {
	taken := &claim{d.prefix}
	if d.prefix == "" {
		return nil, driver.Fail(driver.Failed, "option prefix: it must not be empty, because it tells kvdyno's keys from others")
	}
	d.prefix += "rows/"
	all, err := d.count("")
	if err != nil {
		return nil, err
	}
	own, err := d.count(taken.prefix)
	if err != nil {
		return nil, err
	}
	where := d.address.String()
	if all != own && config.Text("database") != "share" {
		return nil, driver.Fail(driver.Failed, "%s: the cluster has %d keys that kvdyno did not write; use another one, or "+
			"--option etcd.database=share, which leaves them as they are and writes below `%s`", where, all-own, taken.prefix)
	}
	if config.Create && own != 0 {
		ctx, cancel := d.context()
		defer cancel()
		found, err := d.control.Get(ctx, taken.mark())
		if err != nil {
			return nil, d.failed(err)
		}
		if len(found.Kvs) != 1 || string(found.Kvs[0].Value) != closed(own) {
			return nil, driver.Fail(driver.Failed, "%s: below `%s` are %d keys that kvdyno did not write, or a run that did not "+
				"end; delete them, or choose another place with --option etcd.prefix=TEXT", where, taken.prefix, own)
		}
		from, to := bounds(taken.prefix, nil, nil)
		if _, err := d.control.Delete(ctx, from, clientv3.WithRange(to)); err != nil {
			return nil, d.failed(err)
		}
	}
	return taken, taken.write(d, "open")
}

// closed is the mark of a closed prefix with this many keys, the mark among them.
func closed(keys int64) string { return fmt.Sprintf("%d keys", keys) }

func (c *claim) write(d *database, text string) error {
	ctx, cancel := d.context()
	defer cancel()
	_, err := d.control.Put(ctx, c.mark(), text)
	return d.failed(err)
}

// leave marks the prefix, so that the next trial knows that all its keys are ours.
func (c *claim) leave(d *database) error {
	own, err := d.count(c.prefix)
	if err != nil {
		return err
	}
	return c.write(d, closed(own))
}

// Keys in a user's cluster: each trial writes below a random name of its own, and only rows below such names are deleted.

package tikv

import (
	"context"
	"regexp"

	"kvdyno/driver"
	"kvdyno/servers/host"
)

// mark is the value of the key `trial` below the prefix; the random name of the last trial follows it.
const mark = "created by kvdyno, which deletes what is below this name: "

// marked is a mark of this driver.
var marked = regexp.MustCompile("^" + mark + "([0-9a-f]{32})$")

// space is what a claim needs of an interface of TiKV.
type space interface {
	read(ctx context.Context, key string) ([]byte, error) // nil: there is none
	write(ctx context.Context, key string, value []byte) error
	clear(ctx context.Context, from, to string) error
}

// endOf is the end of the range of keys that begin with the name of a trial; `0` follows `/`.
func endOf(rows string) string { return rows[:len(rows)-1] + "0" }

// take returns what begins the keys of this trial's rows. A new trial deletes the rows of the last one.
func (b *base) take(ctx context.Context, keys space, prefix string, isNew bool) (string, error) {
	found, err := keys.read(ctx, prefix+"trial")
	if err != nil {
		return "", err
	}
	last := marked.FindSubmatch(found)
	if found != nil && last == nil {
		return "", driver.Fail(driver.Failed, "the cluster has a key `%strial` that kvdyno did not write; choose another place with the "+
			"option prefix", prefix)
	}
	if !isNew {
		if last == nil {
			return "", driver.Fail(driver.Failed, "the cluster has no rows of kvdyno below `%s`", prefix)
		}
		return prefix + string(last[1]) + "/", nil
	}
	if last != nil {
		floor := prefix + string(last[1])
		long, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearLimit)
		defer cancel()
		if err := keys.clear(long, floor, endOf(floor+"/")); err != nil {
			return "", err
		}
	}
	name := host.Secret()
	// The row below all others ends each reverse scan, so that it never meets rows of others.
	if err := keys.write(ctx, prefix+name, []byte("floor")); err != nil {
		return "", err
	}
	return prefix + name + "/", keys.write(ctx, prefix+"trial", []byte(mark+name))
}

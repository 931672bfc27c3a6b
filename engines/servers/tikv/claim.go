// Keys in a user's cluster: each database has a random name of its own, and only rows below such names are deleted.

package tikv

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"kvdyno/driver"
	"kvdyno/servers/host"
)

// Below the prefix are the rows of each database, NAME/KEY, and its mark, databases/NAME. The mark says since when it is open, or
// that it was closed: then the next new database deletes its rows.
const (
	marks      = "databases/"
	isOpen     = "created by kvdyno, open since "
	isClosed   = "created by kvdyno, closed"
	timeFormat = "2006-01-02T15:04:05.000000000Z"
	// nameFile is the file in the trial's folder with the database's name, and with the folder: a copy of it is no copy of the rows.
	nameFile = "tikv-database"
	// mostMarks are read at once.
	mostMarks = 10000
)

// named is a name.
var named = regexp.MustCompile("^[0-9a-f]{32}$")

// row of a cluster, with its whole key.
type row struct{ key, value string }

// space is what a claim needs of an interface of TiKV.
type space interface {
	read(ctx context.Context, key string) ([]byte, error) // nil: there is none
	write(ctx context.Context, key string, value []byte) error
	list(ctx context.Context, from, to string, most int) ([]row, error)
	clear(ctx context.Context, from, to string) error
}

// claim is the possession of a name.
type claim struct {
	keys         space
	prefix, name string
	isGuest      bool // another load generator has created it, and closes it
}

// after is the end of the range of keys that begin with a text that ends with `/`: `0` follows it.
func after(text string) string { return text[:len(text)-1] + "0" }

func (c *claim) rows() string { return c.prefix + c.name + "/" }

func (c *claim) open(ctx context.Context) error {
	return c.keys.write(ctx, c.prefix+marks+c.name, []byte(isOpen+time.Now().UTC().Format(timeFormat)))
}

// close leaves the rows for the next new database to delete.
func (c *claim) close(limit time.Duration) error {
	if c == nil || c.isGuest {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return c.keys.write(ctx, c.prefix+marks+c.name, []byte(isClosed))
}

// take makes a name for a new database, or finds that of an old one.
func take(ctx context.Context, keys space, own *driver.Config) (*claim, error) {
	folder, err := filepath.Abs(own.Path)
	if err != nil {
		return nil, err
	}
	prefix, file := own.Text("prefix"), filepath.Join(folder, nameFile)
	taken := &claim{keys: keys, prefix: prefix}
	found, err := keys.list(ctx, prefix+marks, after(prefix+marks), mostMarks)
	if err != nil {
		return nil, err
	}
	for _, each := range found {
		isMark := strings.HasPrefix(each.value, isOpen) || each.value == isClosed
		if !isMark || !named.MatchString(strings.TrimPrefix(each.key, prefix+marks)) {
			return nil, driver.Fail(driver.Failed, "the cluster has a key `%s` that kvdyno did not write; choose another place with the "+
				"option prefix", each.key)
		}
	}
	if own.Create {
		if err := taken.forget(ctx, found, own.Text("abandoned") == "delete"); err != nil {
			return nil, err
		}
		taken.name = host.Secret()
		if err := os.WriteFile(file, []byte(taken.name+" "+folder), 0o600); err != nil {
			return nil, err
		}
		if err := taken.open(ctx); err != nil {
			return nil, err
		}
		// The row below all others ends each reverse scan, so that it never meets rows of others.
		return taken, keys.write(ctx, prefix+taken.name, []byte("floor"))
	}
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		taken.isGuest = true
		return taken, taken.newest(found)
	}
	if err != nil {
		return nil, err
	}
	name, place, _ := strings.Cut(string(text), " ")
	if taken.name = name; !named.MatchString(name) {
		return nil, driver.Fail(driver.Failed, "%s has no name of a database", file)
	}
	if place != folder {
		return nil, driver.Fail(driver.Failed, "the folder was copied or moved, and its rows are in the cluster: --keep and --reuse are "+
			"for engines that have their rows in the folder")
	}
	mark, err := keys.read(ctx, prefix+marks+taken.name)
	if err != nil {
		return nil, err
	}
	if mark == nil {
		return nil, driver.Fail(driver.Failed, "the rows of this database are gone: another run of kvdyno has deleted them after it was "+
			"closed; give each run a place of its own with the option prefix")
	}
	return taken, taken.open(ctx)
}

// forget deletes the rows of databases that were closed, or of all: one that is open may be in use, or its trial was killed.
func (c *claim) forget(ctx context.Context, found []row, all bool) error {
	for _, each := range found {
		if each.value != isClosed && !all {
			continue
		}
		floor := c.prefix + strings.TrimPrefix(each.key, c.prefix+marks)
		long, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearLimit)
		err := c.keys.clear(long, floor, after(floor+"/"))
		if err == nil {
			err = c.keys.clear(long, each.key, each.key+"\x00")
		}
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

// newest takes the database that was opened last.
func (c *claim) newest(found []row) error {
	since := ""
	for _, each := range found {
		if each.value > since && each.value != isClosed {
			c.name, since = strings.TrimPrefix(each.key, c.prefix+marks), each.value
		}
	}
	if c.name == "" {
		return driver.Fail(driver.Failed, "the cluster has no open database of kvdyno below `%s`", c.prefix)
	}
	return nil
}

// left is the number of other databases that are open: they are in use, or their trials were killed.
func (c *claim) left(ctx context.Context) (int, error) {
	found, err := c.keys.list(ctx, c.prefix+marks, after(c.prefix+marks), mostMarks)
	count := 0
	for _, each := range found {
		if each.value != isClosed && !strings.HasSuffix(each.key, c.name) {
			count++
		}
	}
	return count, err
}

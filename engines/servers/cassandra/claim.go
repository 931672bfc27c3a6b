// The keyspace: the driver writes to one of its own, and deletes none that it has not created.

package cassandra

import (
	"fmt"
	"strconv"
	"strings"

	"kvdyno/driver"
)

const (
	// tableName is the only table of the keyspace, and mark is its comment.
	tableName = "rows"
	mark      = "created by kvdyno, which deletes its keyspace"
)

// tables of the keyspace, with their comments; none if there is no such keyspace.
func (d *database) tables() (isThere bool, comments map[string]string, err error) {
	var name, comment string
	found := d.control.Query("SELECT keyspace_name FROM system_schema.keyspaces WHERE keyspace_name = ?", d.keyspace).Iter()
	isThere = found.Scan(&name)
	if err := found.Close(); err != nil || !isThere {
		return false, nil, d.failed(err)
	}
	comments = map[string]string{}
	found = d.control.Query("SELECT table_name, comment FROM system_schema.tables WHERE keyspace_name = ?", d.keyspace).Iter()
	for found.Scan(&name, &comment) {
		comments[name] = comment
	}
	return true, comments, d.failed(found.Close())
}

// take creates the keyspace. One that exists is deleted only if this driver has created it.
func (d *database) take(config *driver.Config) error {
	isThere, comments, err := d.tables()
	if err != nil {
		return err
	}
	comment, hasTable := comments[tableName]
	if isThere && (!hasTable || len(comments) != 1 || comment != mark) {
		return driver.Fail(driver.Failed, "%s: the cluster has a keyspace %s that kvdyno did not create, or whose creation was "+
			"interrupted; choose another name with --option cassandra.keyspace=NAME", d.address, d.keyspace)
	}
	if !config.Create {
		if !isThere {
			return driver.Fail(driver.Failed, "%s: the cluster has no keyspace %s", strings.Join(d.hosts, ","), d.keyspace)
		}
		return nil
	}
	statements := []string{
		fmt.Sprintf("CREATE KEYSPACE %s WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': %d}",
			quoted(d.keyspace), d.asked),
		fmt.Sprintf("CREATE TABLE %s (key blob PRIMARY KEY, value blob) WITH comment = '%s'", d.table, mark),
	}
	if isThere {
		statements = append([]string{"DROP KEYSPACE " + quoted(d.keyspace)}, statements...)
	}
	for _, each := range statements {
		if err := d.control.Query(each).Exec(); err != nil {
			return d.failed(err)
		}
	}
	return nil
}

// copies of a row in all data centres, and whether its writes go to the log.
func (d *database) copies() (copies int, isDurable bool, err error) {
	var facts map[string]string
	err = d.control.Query("SELECT replication, durable_writes FROM system_schema.keyspaces WHERE keyspace_name = ?", d.keyspace).
		Scan(&facts, &isDurable)
	if err != nil {
		return 0, false, d.failed(err)
	}
	for name, text := range facts {
		if name == "class" {
			continue
		}
		count, err := strconv.Atoi(text)
		if err != nil {
			return 0, false, driver.Fail(driver.Failed, "the keyspace %s has `%s` copies in %s", d.keyspace, text, name)
		}
		copies += count
	}
	return copies, isDurable, nil
}

// compression of the table's files; empty if it is unknown.
func (d *database) compression() string {
	var facts map[string]string
	err := d.control.Query("SELECT compression FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?", d.keyspace,
		tableName).Scan(&facts)
	if err != nil {
		return ""
	}
	name := facts["class"]
	if name == "" {
		name = facts["sstable_compression"]
	}
	if name == "" {
		return "none"
	}
	name = name[strings.LastIndex(name, ".")+1:]
	return strings.ToLower(strings.TrimSuffix(name, "Compressor"))
}

// Compares the rows of a database with those that were acknowledged before a crash. The other file has the calls of the engine.
//
// It opens the database and gets each key, puts a row, closes the database, opens it again, and gets each key again. It prints
// what is wrong, and exits with 1 if anything is. It changes the database: give it a copy.

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"hash/fnv"
	"os"
	"strings"
)

// A database of the engine.
type database interface {
	// Get returns the value, and whether there is a row.
	Get(key []byte) (value []byte, isThere bool, err error)
	Put(key, value []byte) error
	Close() error
}

// What is done now, and how much is wrong.
var (
	step  = "first open"
	wrong = 0
)

func tell(format string, values ...any) {
	fmt.Printf(step+": "+format+"\n", values...)
	wrong++
}

// check says that a call of the engine has failed, and ends the program.
func check(call string, err error) {
	if err != nil {
		tell("%s: %v", call, err)
		os.Exit(1)
	}
}

// show returns a value as the files of this folder show it: its length and its FNV-1a hash of 64 bits.
func show(value []byte) string {
	hash := fnv.New64a()
	hash.Write(value)
	return fmt.Sprintf("%d:%016x", len(value), hash.Sum64())
}

// compare gets every key of the list.
func compare(db database, list []byte) {
	type changes struct {
		commit         uint64
		before, behind int
	}
	keys, before, open := 0, wrong, map[int]*changes{}
	lines := bufio.NewScanner(bytes.NewReader(list))
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		var thread int
		var commit, nextCommit uint64
		var key, value, nextValue string
		if _, err := fmt.Sscan(lines.Text(), &thread, &key, &commit, &value, &nextCommit, &nextValue); err != nil {
			fmt.Fprintf(os.Stderr, "not a line of the list of acknowledged rows: %s\n", lines.Text())
			os.Exit(2)
		}
		found := "none"
		row, isThere, err := db.Get([]byte(key))
		check("get "+key, err)
		if isThere {
			found = show(row)
		}
		keys++
		isOld, isNew := found == value, nextCommit != 0 && found == nextValue
		switch {
		case !isOld && !isNew:
			tell("%s: %s instead of %s, acknowledged in commit %d", key, found, value, commit)
		case nextCommit != 0 && isOld != isNew:
			if open[thread] == nil {
				open[thread] = &changes{commit: nextCommit}
			}
			if isNew {
				open[thread].behind++
			} else {
				open[thread].before++
			}
		}
	}
	for thread, of := range open {
		if of.before != 0 && of.behind != 0 {
			tell("commit %d of thread %d was one transaction: %d of its changes are there, %d are not",
				of.commit, thread, of.behind, of.before)
		}
	}
	if wrong == before {
		fmt.Printf("%s: all %d keys are as acknowledged\n", step, keys)
	}
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintf(os.Stderr, "usage: %s FOLDER-OF-THE-DATABASE acknowledged.tsv\n", os.Args[0])
		os.Exit(2)
	}
	list, err := os.ReadFile(os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	after, row := []byte("kvafter000000000"), []byte("a row that is put after the crash")
	db, err := open(os.Args[1])
	check("open", err)
	compare(db, list)
	step = "put after it"
	check("put", db.Put(after, row))
	step = "close"
	check("close", db.Close())
	step = "second open"
	db, err = open(os.Args[1])
	check("open", err)
	compare(db, list)
	found, _, err := db.Get(after)
	check("get", err)
	if !bytes.Equal(found, row) {
		tell("the row that was put before the close is not there")
	}
	step = "second close"
	check("close", db.Close())
	if wrong != 0 {
		fmt.Println("This database is not what was acknowledged.")
		os.Exit(1)
	}
	fmt.Println("Nothing is wrong.")
}

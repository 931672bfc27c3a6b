// Makes a bbolt file with a bucket of its own name, as an application would. The argument is the file.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"

	"go.etcd.io/bbolt"
)

func main() {
	db, err := bbolt.Open(os.Args[1], 0o600, nil)
	if err != nil {
		log.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		if _, err := tx.CreateBucket([]byte("settings")); err != nil {
			return err
		}
		users, err := tx.CreateBucket([]byte("users"))
		for i := 0; err == nil && i < 2000; i++ {
			err = users.Put(fmt.Appendf(nil, "user-%d@example.org", i*7), bytes.Repeat([]byte("v"), i%300))
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := db.Close(); err != nil {
		log.Fatal(err)
	}
}

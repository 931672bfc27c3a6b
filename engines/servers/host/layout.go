// The layout of a cluster: the addresses and folders of its members, in a file of the trial's folder.

package host

import (
	"encoding/json"
	"os"

	"kvdyno/driver"
)

// ReadLayout reads what was written when the cluster of a folder was created.
func ReadLayout(file string, members any) error {
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, members)
	}
	if err != nil {
		return driver.Fail(driver.Failed, "the folder has no cluster of kvdyno: %v", err)
	}
	return nil
}

// The container: a map or a B-tree.

package memory

import (
	"slices"
	"strings"

	"kvdyno/driver"
)

// rows is the container: a map or a B-tree.
type rows interface {
	Get(key string) ([]byte, bool)
	Set(key string, value []byte) ([]byte, bool)
	Delete(key string) ([]byte, bool)
}

type goMap map[string][]byte

func (m goMap) Get(key string) ([]byte, bool) { value, is := m[key]; return value, is }
func (m goMap) Set(key string, value []byte) ([]byte, bool) {
	m[key] = value
	return nil, false
}
func (m goMap) Delete(key string) ([]byte, bool) {
	value, is := m[key]
	delete(m, key)
	return value, is
}

// scan pushes the rows of a prefix, sorted, so that a further call can resume after a key: a map cannot start at a
// key.
func (m goMap) scan(op *driver.Op, rows *driver.Rows) {
	prefix, from := string(op.Value), string(op.Key)
	var keys []string
	for key := range m {
		if strings.HasPrefix(key, prefix) && key >= from {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		if !rows.PushString(key, m[key]) {
			return
		}
	}
}

// What is kept: a map or a B-tree.

package memory

// rows are what is kept: a map or a B-tree.
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

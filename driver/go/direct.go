// Databases and ops without the C boundary, for tests of drivers.

package driver

import "unsafe"

// NewConfig is a request to create a database in a folder at a level. Options that are not in `settings` have their defaults.
func NewConfig(own Driver, path string, level Level, settings map[string]string) *Config {
	info := own.Info()
	return &Config{Path: path, Create: true, Threads: 1, Keyspaces: 1, level: level, settings: settings, info: &info}
}

// NewOp is an op of one row; `out` has room for the value that a get reads.
func NewOp(kind Kind, key, value, out []byte) *Op {
	raw := &rawOp{kind: kind, keyLength: uint32(len(key)), valueLength: uint32(len(value)), out: unsafe.SliceData(out),
		outSize: uint32(len(out))}
	return &Op{Key: key, Value: value, raw: raw}
}

// Delivered is the value that a get has read.
func (op *Op) Delivered() []byte { return unsafe.Slice(op.raw.out, op.raw.length) }

// The append-only file.

package memory

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"kvdyno/driver"
)

// appendOnly is the file. A record is {u32 length, u32 checksum of the rest, changes}; a change is {u8 kind, u32 key
// length, u32 value length, key, value}. An incomplete record ends the file: it was never acknowledged.
type appendOnly struct {
	file   *os.File
	level  driver.Level
	buffer []byte // records not yet written: one, or at level none as many as fit
	start  int    // start of the current record
}

const (
	headSize    = 8
	changeSize  = 9
	bufferBytes = 64 << 10
)

func openLog(path string, level driver.Level, replay func(kind driver.Kind, key, value []byte)) (*appendOnly, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	whole := 0
	for {
		size := replayRecord(text[whole:], replay)
		if size == 0 {
			break
		}
		whole += size
	}
	if _, err := file.Seek(int64(whole), io.SeekStart); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &appendOnly{file: file, level: level}, file.Truncate(int64(whole))
}

// replayRecord returns the size of the record at the start of `text`; 0: there is no complete one.
func replayRecord(text []byte, replay func(kind driver.Kind, key, value []byte)) int {
	if len(text) < headSize {
		return 0
	}
	size := uint64(binary.LittleEndian.Uint32(text))
	if size > uint64(len(text)-headSize) {
		return 0
	}
	record := text[headSize : headSize+size]
	if crc32.ChecksumIEEE(record) != binary.LittleEndian.Uint32(text[4:]) {
		return 0
	}
	for len(record) >= changeSize {
		keyEnd := changeSize + uint64(binary.LittleEndian.Uint32(record[1:]))
		valueEnd := keyEnd + uint64(binary.LittleEndian.Uint32(record[5:]))
		if valueEnd > uint64(len(record)) {
			return 0
		}
		replay(driver.Kind(record[0]), record[changeSize:keyEnd], record[keyEnd:valueEnd])
		record = record[valueEnd:]
	}
	return headSize + int(size)
}

// add adds a change to the current record.
func (l *appendOnly) add(op *driver.Op) {
	if len(l.buffer) == l.start {
		l.buffer = append(l.buffer, make([]byte, headSize)...)
	}
	value := op.Value
	if op.Kind() != driver.Put {
		value = nil
	}
	l.buffer = append(l.buffer, byte(op.Kind()))
	l.buffer = binary.LittleEndian.AppendUint32(l.buffer, uint32(len(op.Key)))
	l.buffer = binary.LittleEndian.AppendUint32(l.buffer, uint32(len(value)))
	l.buffer = append(append(l.buffer, op.Key...), value...)
}

// commit ends the record and writes or syncs it as the level requires.
func (l *appendOnly) commit() error {
	record := l.buffer[l.start:]
	binary.LittleEndian.PutUint32(record, uint32(len(record)-headSize))
	binary.LittleEndian.PutUint32(record[4:], crc32.ChecksumIEEE(record[headSize:]))
	if l.level == driver.None && len(l.buffer) < bufferBytes {
		l.start = len(l.buffer)
		return nil
	}
	if err := l.write(); err != nil {
		return err
	}
	if l.level == driver.Power {
		return unix.Fdatasync(int(l.file.Fd()))
	}
	return nil
}

func (l *appendOnly) write() error {
	_, err := l.file.Write(l.buffer)
	l.buffer, l.start = l.buffer[:0], 0
	return err
}

func (l *appendOnly) sync() error {
	return errors.Join(l.write(), unix.Fdatasync(int(l.file.Fd())))
}

func (l *appendOnly) close() error { return errors.Join(l.write(), l.file.Close()) }

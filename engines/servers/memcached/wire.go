// A connection: requests of the meta protocol with keys in base64, and their replies.
// https://github.com/memcached/memcached/blob/master/doc/protocol.txt

package memcached

import (
	"bufio"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"kvdyno/driver"
	"kvdyno/servers/host"
)

const bufferBytes = 64 << 10

type wire struct {
	connection net.Conn
	reader     *bufio.Reader
	writer     *bufio.Writer
	scratch    []byte
	value      []byte
}

// connect opens a connection, and logs in if there is a user.
func (d *database) connect() (*wire, error) {
	connection, err := host.Dial(d.host, d.secure)
	if err != nil {
		return nil, err
	}
	made := &wire{connection: connection, reader: bufio.NewReaderSize(connection, bufferBytes),
		writer: bufio.NewWriterSize(connection, bufferBytes)}
	_ = connection.SetDeadline(time.Now().Add(host.HandshakeLimit)) // the read reports what fails
	if d.password != "" {
		login := d.user + " " + d.password
		_, _ = fmt.Fprintf(made.writer, "set login 0 0 %d\r\n%s\r\n", len(login), login)
		var line string
		if line, err = made.line(); err == nil && line != "STORED" {
			err = driver.Fail(driver.Failed, "%s: the server refuses the password: %s", d.host, shown(line))
		}
	}
	if err == nil {
		_, err = made.facts("stats") // a server that asks for a password says so here
	}
	if err == nil {
		err = connection.SetDeadline(time.Time{})
	}
	if err != nil {
		_ = made.close()
		return nil, host.Waited(d.host, "`stats`", "", err)
	}
	return made, nil
}

// shown is the beginning of what a server sent, which may be of any protocol.
func shown(line string) string {
	return strings.Trim(strconv.QuoteToASCII(line[:min(len(line), 60)]), `"`)
}

func (w *wire) close() error { return w.connection.Close() }

// line sends what is buffered and reads a line.
func (w *wire) line() (string, error) {
	if err := w.writer.Flush(); err != nil {
		return "", err
	}
	line, err := w.reader.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		err = driver.Fail(driver.Failed, "%s: the server answers: %s", w.connection.RemoteAddr(), shown(string(line)))
	}
	return strings.TrimRight(string(line), "\r\n"), err
}

// command sends a command and expects an answer.
func (w *wire) command(text, wanted string) error {
	_, _ = w.writer.WriteString(text + "\r\n") // Flush reports errors
	line, err := w.line()
	if err == nil && line != wanted {
		err = driver.Fail(driver.Failed, "`%s`: the server answers: %s", text, line)
	}
	return err
}

// facts are the lines of a `stats` command.
func (w *wire) facts(command string) (map[string]string, error) {
	_, _ = w.writer.WriteString(command + "\r\n") // Flush reports errors
	found := map[string]string{}
	for {
		line, err := w.line()
		if err != nil || line == "END" {
			return found, err
		}
		words := strings.SplitN(line, " ", 3)
		if len(words) != 3 || words[0] != "STAT" {
			return nil, driver.Fail(driver.Failed, "%s: the server answers: %s", w.connection.RemoteAddr(), shown(line))
		}
		found[words[1]] = words[2]
	}
}

// text is a short value of the driver's own; empty if there is none.
func (w *wire) text(key string) (string, error) {
	w.begin("mg ", []byte(key))
	_, _ = w.writer.WriteString(" b v\r\n")
	if err := w.writer.Flush(); err != nil {
		return "", err
	}
	value, isFound, err := w.read()
	if err != nil || !isFound {
		return "", err
	}
	return string(value), nil
}

// store stores a short value of the driver's own.
func (w *wire) store(key, value string) error {
	w.begin("ms ", []byte(key))
	_, _ = fmt.Fprintf(w.writer, " %d b\r\n%s\r\n", len(value), value)
	line, err := w.line()
	if err == nil && !strings.HasPrefix(line, "HD") {
		err = refused([]byte(line))
	}
	return err
}

// add adds to a number of the driver's own; false: there is none.
func (w *wire) add(key string, count uint64) (bool, error) {
	w.begin("ma ", []byte(key))
	_, _ = fmt.Fprintf(w.writer, " b D%d\r\n", count)
	line, err := w.line()
	switch {
	case err != nil || strings.HasPrefix(line, "HD"):
		return err == nil, err
	case strings.HasPrefix(line, "NF"):
		return false, nil
	}
	return false, refused([]byte(line))
}

// begin writes a command and a key.
func (w *wire) begin(command string, key []byte) {
	_, _ = w.writer.WriteString(command)
	w.scratch = base64.StdEncoding.AppendEncode(w.scratch[:0], key)
	_, _ = w.writer.Write(w.scratch)
}

// longest is the largest time to live that memcached does not take for a date.
const longest = 30 * 24 * 3600

// ask buffers the request of an op. Errors of the connection are reported by Flush.
func (w *wire) ask(op *driver.Op) {
	switch op.Kind() {
	case driver.Get:
		w.begin("mg ", op.Key)
		_, _ = w.writer.WriteString(" b v\r\n")
	case driver.Delete:
		w.begin("md ", op.Key)
		_, _ = w.writer.WriteString(" b\r\n")
	default:
		w.begin("ms ", op.Key)
		w.scratch = append(w.scratch[:0], ' ')
		w.scratch = strconv.AppendInt(w.scratch, int64(len(op.Value)), 10)
		w.scratch = append(w.scratch, " b"...)
		if op.IsNew() {
			w.scratch = append(w.scratch, " ME"...)
		}
		if seconds := int64(op.SecondsToLive()); seconds != 0 {
			if seconds > longest {
				seconds += time.Now().Unix()
			}
			w.scratch = append(w.scratch, " T"...)
			w.scratch = strconv.AppendInt(w.scratch, seconds, 10)
		}
		w.scratch = append(w.scratch, "\r\n"...)
		_, _ = w.writer.Write(w.scratch)
		_, _ = w.writer.Write(op.Value)
		_, _ = w.writer.WriteString("\r\n")
	}
}

// answer reads the reply to an op.
func (w *wire) answer(op *driver.Op) (driver.Status, error) {
	if op.Kind() == driver.Get {
		value, isFound, err := w.read()
		if err != nil {
			return driver.Failed, err
		}
		if !isFound {
			return driver.NotFound, nil
		}
		return op.Deliver(value), nil
	}
	line, err := w.reader.ReadSlice('\n')
	if err != nil {
		return driver.Failed, err
	}
	switch {
	case has(line, "HD"):
		return driver.OK, nil
	case has(line, "NS") && op.IsNew():
		return driver.Exists, nil
	case has(line, "NF") && op.Kind() == driver.Delete:
		return driver.NotFound, nil
	}
	return driver.Failed, refused(line)
}

func has(line []byte, code string) bool {
	return len(line) >= 4 && line[0] == code[0] && line[1] == code[1] && (line[2] == '\r' || line[2] == ' ')
}

// read reads the reply to a get. The value is valid until the next reply.
func (w *wire) read() (value []byte, isFound bool, err error) {
	line, err := w.reader.ReadSlice('\n')
	if err != nil {
		return nil, false, err
	}
	if has(line, "EN") {
		return nil, false, nil
	}
	if !has(line, "VA") {
		return nil, false, refused(line)
	}
	size := 0
	for _, digit := range line[3:] {
		if digit < '0' || digit > '9' {
			break
		}
		size = 10*size + int(digit-'0')
	}
	if cap(w.value) < size+2 {
		w.value = make([]byte, size+2)
	}
	w.value = w.value[:size+2]
	if _, err := io.ReadFull(w.reader, w.value); err != nil {
		return nil, false, err
	}
	return w.value[:size], true, nil
}

// refused is an error with the server's words.
func refused(line []byte) error {
	text := strings.TrimRight(string(line), "\r\n")
	switch {
	case strings.Contains(text, "too large"):
		return driver.Fail(driver.TooLarge, "%s", text)
	case strings.Contains(text, "out of memory"):
		return driver.Fail(driver.Full, "%s", text)
	}
	return driver.Fail(driver.Failed, "the server answers: %s", text)
}

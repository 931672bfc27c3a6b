// URLs, credentials and TLS of a user's servers.

package host

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"kvdyno/driver"
)

// password is where the command line puts the password of a URL, because options are recorded.
const password = "KVDYNO_URL_PASSWORD"

// HandshakeLimit is the time for a server to accept a connection, and again the time for its first answer. Tests shorten it.
var HandshakeLimit = 10 * time.Second

// URL of one or more servers: SCHEME://[USER[:PASSWORD]@]HOST[:PORT][,HOST[:PORT]...][/PATH].
type URL struct {
	Scheme, User, Password, Path string
	// Hosts with their ports.
	Hosts []string
}

// Options that the driver of a server has, for a running server.
func Options(forms string) []driver.Option {
	return append([]driver.Option{
		{Name: "url", Kind: "text", Default: "", Help: "running servers: " + forms + "; without it they are started"},
		{Name: "password-file", Kind: "text", Default: "", Help: "a file whose first line is the password"},
	}, TLSOptions()...)
}

// TLSOptions are those of them that name the files of TLS.
func TLSOptions() []driver.Option {
	return []driver.Option{
		{Name: "ca-file", Kind: "text", Default: "", Help: "trusted certificates for TLS (PEM); default: the system's"},
		{Name: "cert-file", Kind: "text", Default: "", Help: "the client's certificate (PEM), for servers that require one"},
		{Name: "key-file", Kind: "text", Default: "", Help: "the key of the client's certificate (PEM)"},
	}
}

// Effective reports these options.
func Effective(config *driver.Config, opened *driver.Opened, address *URL) {
	text, usage := "none", "whole"
	if address != nil {
		text, usage = address.String(), "client"
	}
	opened.Effective("usage", usage)
	opened.Effective("url", text)
	given := map[bool]string{true: "none", false: "given"}
	opened.Effective("password-file", given[config.Text("password-file") == ""])
	EffectiveTLS(config, opened)
}

// EffectiveTLS reports the files of TLS.
func EffectiveTLS(config *driver.Config, opened *driver.Opened) {
	for _, option := range TLSOptions() {
		value := config.Text(option.Name)
		if value == "" {
			value = "none"
		}
		opened.Effective(option.Name, value)
	}
}

// Given returns the URL of the option url, with its password; nil if a server must be started.
func Given(config *driver.Config, port string, schemes ...string) (*URL, error) {
	text := config.Text("url")
	if text == "" {
		for _, name := range []string{"password-file", "ca-file", "cert-file", "key-file"} {
			if config.Text(name) != "" {
				return nil, driver.Fail(driver.Failed, "option %s: it needs the option url", name)
			}
		}
		return nil, nil
	}
	address, err := parse(text, port, schemes)
	if err != nil {
		return nil, err
	}
	if file := config.Text("password-file"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, driver.Fail(driver.Failed, "option password-file: %v", err)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		address.Password = strings.TrimSuffix(first, "\r")
	} else if address.Password == "" {
		if address.Password, err = url.PathUnescape(os.Getenv(password)); err != nil {
			return nil, driver.Fail(driver.Failed, "option url: the password is not percent-encoded")
		}
	}
	return address, nil
}

func parse(text, port string, schemes []string) (*URL, error) {
	scheme, rest, hasScheme := strings.Cut(text, "://")
	if !hasScheme || !slices.Contains(schemes, scheme) {
		return nil, driver.Fail(driver.Failed, "option url: `%s` must begin with %s://", text, strings.Join(schemes, ":// or "))
	}
	address := &URL{Scheme: scheme}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		user, password, _ := strings.Cut(rest[:at], ":")
		var err1, err2 error
		address.User, err1 = url.PathUnescape(user)
		address.Password, err2 = url.PathUnescape(password)
		if err := errors.Join(err1, err2); err != nil {
			return nil, driver.Fail(driver.Failed, "option url: %v", err)
		}
		rest = rest[at+1:]
	}
	hosts, path, _ := strings.Cut(rest, "/")
	address.Path = path
	for host := range strings.SplitSeq(hosts, ",") {
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), port)
		}
		if strings.HasPrefix(host, ":") {
			return nil, driver.Fail(driver.Failed, "option url: `%s` has no host", text)
		}
		address.Hosts = append(address.Hosts, host)
	}
	return address, nil
}

// String is the URL without its password.
func (address *URL) String() string {
	user, path := address.User, address.Path
	if user != "" {
		user = url.PathEscape(user) + "@"
	}
	if path != "" {
		path = "/" + path
	}
	return address.Scheme + "://" + user + strings.Join(address.Hosts, ",") + path
}

// Invite writes by which options other load generators of this machine open the cluster that the driver has started: its URL,
// and more of the form `name=value`.
func Invite(config *driver.Config, url string, more ...string) error {
	lines := append([]string{"url=" + url}, more...)
	return os.WriteFile(filepath.Join(config.Path, "join"), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

// Class of the servers, as reports show it: one copy or several, on this machine or on others.
func (address *URL) Class(copies int) string {
	kind := map[bool]string{true: "distributed", false: "server"}[copies > 1]
	if address == nil {
		return kind + ", one machine"
	}
	for _, host := range address.Hosts {
		name, _, _ := net.SplitHostPort(host)
		if parsed := net.ParseIP(name); name != "localhost" && (parsed == nil || !parsed.IsLoopback()) {
			return kind + ", over a network"
		}
	}
	return kind + ", one machine"
}

// TLS reads the files of the options.
func TLS(config *driver.Config) (*tls.Config, error) {
	made := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := config.Text("ca-file"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, driver.Fail(driver.Failed, "option ca-file: %v", err)
		}
		made.RootCAs = x509.NewCertPool()
		if !made.RootCAs.AppendCertsFromPEM(text) {
			return nil, driver.Fail(driver.Failed, "option ca-file: %s has no certificate in PEM", file)
		}
	}
	certificate, key := config.Text("cert-file"), config.Text("key-file")
	if (certificate == "") != (key == "") {
		return nil, driver.Fail(driver.Failed, "options cert-file and key-file: each needs the other")
	}
	if certificate != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			return nil, driver.Fail(driver.Failed, "options cert-file and key-file: %v", err)
		}
		made.Certificates = []tls.Certificate{pair}
	}
	return made, nil
}

// Dial connects to a server; `secure` is nil without TLS.
func Dial(host string, secure *tls.Config) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: HandshakeLimit}
	connection, err := dialer.Dial("tcp", host)
	var late net.Error
	if errors.As(err, &late) && late.Timeout() {
		return nil, driver.Fail(driver.Failed, "%s: cannot connect: no connection within %v", host, HandshakeLimit)
	}
	if err != nil {
		return nil, driver.Fail(driver.Failed, "%s: cannot connect: %v", host, cause(err))
	}
	if secure == nil {
		return connection, nil
	}
	settings := secure.Clone()
	settings.ServerName, _, _ = net.SplitHostPort(host)
	encrypted := tls.Client(connection, settings)
	_ = encrypted.SetDeadline(time.Now().Add(HandshakeLimit)) // the handshake reports what fails
	if err := encrypted.Handshake(); err != nil {
		_ = connection.Close()
		return nil, Waited(host, "the TLS handshake", "TLS: ", err)
	}
	return encrypted, encrypted.SetDeadline(time.Time{})
}

// Waited is the error of a server that was to answer `what`; `mark` begins the text of errors that are not about waiting.
func Waited(host, what, mark string, err error) error {
	var late net.Error
	var known *driver.Failure
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &late) && late.Timeout():
		return driver.Fail(driver.Failed, "%s: no answer to %s within %v", host, what, HandshakeLimit)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return driver.Fail(driver.Failed, "%s: the server ends the connection instead of answering %s", host, what)
	}
	return driver.Fail(driver.Failed, "%s: %s%s", host, mark, strings.TrimPrefix(err.Error(), "tls: "))
}

// Hello is how a client of a protocol begins. A server that does not answer, or speaks another protocol, is found by it before a
// client library tries again and again.
type Hello struct {
	// Protocol in words.
	Protocol string
	// ALPN has its name for TLS; empty: it has none.
	ALPN []string
	// Sent is sent first. Is recognizes the first nine bytes of the answer.
	Sent string
	Is   func(first [9]byte) bool
}

// GRPC begins with the preface of HTTP/2 and empty settings, and a server answers with its own.
var GRPC = Hello{Protocol: "gRPC", ALPN: []string{"h2"}, Sent: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
	Is: func(first [9]byte) bool { return first[3] == 4 && first[0] == 0 }}

// Answers makes sure that each server speaks the protocol.
func (address *URL) Answers(secure *tls.Config, hello Hello) error {
	for _, host := range address.Hosts {
		if err := hello.greet(host, secure); err != nil {
			return address.Explain(host, secure, err)
		}
	}
	return nil
}

// Explain is the error of a server that did not answer as expected: `err`, or that the server expects TLS.
func (address *URL) Explain(host string, secure *tls.Config, err error) error {
	// A server that expects TLS does not stay silent: it has received bytes that are not TLS.
	if secure != nil || strings.Contains(err.Error(), "no answer") || strings.Contains(err.Error(), "cannot connect") {
		return err
	}
	if address.expectsTLS(host) {
		return driver.Fail(driver.Failed, "%s: the server expects TLS, which the URL does not ask for (%s://)", host, address.Scheme)
	}
	return err
}

func (hello Hello) greet(host string, secure *tls.Config) error {
	if secure != nil {
		secure = secure.Clone()
		secure.NextProtos = hello.ALPN
	}
	connection, err := Dial(host, secure)
	if err != nil {
		return err
	}
	_ = connection.SetDeadline(time.Now().Add(HandshakeLimit)) // the read reports what fails
	_, err = io.WriteString(connection, hello.Sent)
	var first [9]byte
	count := 0
	if err == nil {
		count, err = io.ReadFull(connection, first[:])
	}
	_ = connection.Close()
	switch {
	case count == 0 && err != nil:
		return Waited(host, "the first message of "+hello.Protocol, "", err)
	case err != nil || !hello.Is(first):
		return driver.Fail(driver.Failed, "%s: the server does not speak %s: it sent %q", host, hello.Protocol, first[:count])
	}
	return nil
}

// Reach connects to each server once, so that one that is missing, or whose certificate is not valid, is one clear line.
func (address *URL) Reach(secure *tls.Config) error {
	for _, host := range address.Hosts {
		connection, err := Dial(host, secure)
		if err != nil {
			return err
		}
		if encrypted, is := connection.(*tls.Conn); is {
			// With TLS 1.3 a server refuses a client's certificate only after the handshake.
			_ = encrypted.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
			_, err := encrypted.Read(make([]byte, 1))
			var refused *net.OpError
			if errors.As(err, &refused) && refused.Op == "remote error" {
				_ = connection.Close()
				return driver.Fail(driver.Failed, "%s: TLS: the server refuses the client: %v", host, refused.Err)
			}
		}
		_ = connection.Close()
	}
	return nil
}

// expectLimit is the time for a server to answer the beginning of a TLS handshake; one that does not is taken for one without TLS.
const expectLimit = time.Second

func (address *URL) expectsTLS(host string) bool {
	connection, err := Dial(host, nil)
	if err != nil {
		return false
	}
	_ = connection.SetDeadline(time.Now().Add(expectLimit))
	probe := tls.Client(connection, &tls.Config{InsecureSkipVerify: true}) // nothing is sent but the handshake
	err = probe.Handshake()
	_ = connection.Close()
	var refused *net.OpError
	return err == nil || errors.As(err, &refused) && refused.Op == "remote error"
}

// cause is the last of an error's causes: `connection refused`, without the call and the address.
func cause(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// Tests of URLs, certificates and servers that are not there.

package host

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"
)

func TestURLsAreTakenApartAndShownWithoutThePassword(t *testing.T) {
	schemes := []string{"http", "https"}
	address, err := parse("https://me:p%40ss@a:1,b,[::1]:3/db?x", "2379", schemes)
	if err != nil {
		t.Fatal(err)
	}
	if address.User != "me" || address.Password != "p@ss" || address.Path != "db?x" {
		t.Errorf("%+v", address)
	}
	if got, wanted := address.String(), "https://me@a:1,b:2379,[::1]:3/db?x"; got != wanted {
		t.Errorf("%s instead of %s", got, wanted)
	}
	for text, wanted := range map[string]string{"host:1": "must begin with http:// or https://", "ftp://x": "must begin", "http://": "no host"} {
		if _, err := parse(text, "1", schemes); err == nil || !strings.Contains(err.Error(), wanted) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestTheClassTellsCopiesAndPlace(t *testing.T) {
	far, _ := parse("http://10.1.2.3", "1", []string{"http"})
	near, _ := parse("http://127.0.0.1,localhost", "1", []string{"http"})
	for _, each := range []struct {
		address *URL
		copies  int
		wanted  string
	}{{nil, 1, "server, one machine"}, {near, 3, "distributed, one machine"}, {far, 1, "server, over a network"}} {
		if got := each.address.Class(each.copies); got != each.wanted {
			t.Errorf("%s instead of %s", got, each.wanted)
		}
	}
}

// served is a TLS server whose certificate ends at a time; it returns its address and the settings of a client that trusts it.
func served(t *testing.T, end time.Time) (string, *tls.Config) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: end.Add(-time.Hour),
		NotAfter: end, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(made)
	if err != nil {
		t.Fatal(err)
	}
	own := tls.Certificate{Certificate: [][]byte{made}, PrivateKey: key}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = connection.Read(make([]byte, 1)) // the handshake
				_ = connection.Close()
			}()
		}
	}()
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	return listener.Addr().String(), &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

func TestACertificateThatIsNotValidIsOneClearLine(t *testing.T) {
	host, trusts := served(t, time.Now().Add(time.Hour))
	if err := (&URL{Hosts: []string{host}}).Reach(trusts); err != nil {
		t.Errorf("a valid certificate: %v", err)
	}
	err := (&URL{Hosts: []string{host}}).Reach(&tls.Config{MinVersion: tls.VersionTLS12})
	if err == nil || !strings.Contains(err.Error(), host+": TLS: ") || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("an unknown authority: %v", err)
	}
	host, trusts = served(t, time.Now().Add(-time.Minute))
	err = (&URL{Hosts: []string{host}}).Reach(trusts)
	if err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("an expired certificate: %v", err)
	}
}

func TestAServerThatIsMissingIsOneClearLine(t *testing.T) {
	host, err := Address()
	if err != nil {
		t.Fatal(err)
	}
	err = (&URL{Hosts: []string{host}}).Reach(nil)
	if wanted := host + ": cannot connect: connection refused"; err == nil || err.Error() != wanted {
		t.Errorf("%v instead of %s", err, wanted)
	}
}

// peer listens, and does `serve` with each connection; returns its address.
func peer(t *testing.T, serve func(connection net.Conn)) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				serve(connection)
				_ = connection.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

// heard reads the client's first bytes, and then says something.
func heard(says string) func(net.Conn) {
	return func(connection net.Conn) {
		_, _ = connection.Read(make([]byte, 1000))
		_, _ = io.WriteString(connection, says)
	}
}

func TestAServerThatExpectsTLSIsOneClearLine(t *testing.T) {
	host, _ := served(t, time.Now().Add(time.Hour))
	err := (&URL{Scheme: "http", Hosts: []string{host}}).Answers(nil, GRPC)
	if wanted := host + ": the server expects TLS, which the URL does not ask for (http://)"; err == nil || err.Error() != wanted {
		t.Errorf("%v instead of %s", err, wanted)
	}
}

func TestAServerThatDoesNotSpeakTheProtocolIsOneClearLine(t *testing.T) {
	limit := HandshakeLimit
	HandshakeLimit = 300 * time.Millisecond
	t.Cleanup(func() { HandshakeLimit = limit })
	mute := func(connection net.Conn) { _, _ = io.Copy(io.Discard, connection) }
	for _, each := range []struct {
		serve  func(net.Conn)
		secure bool
		wanted string
	}{
		{mute, false, ": no answer to the first message of gRPC within 300ms"},
		{mute, true, ": no answer to the TLS handshake within 300ms"},
		{heard(""), false, ": the server ends the connection instead of answering the first message of gRPC"},
		{heard("HTTP/1.1 400 Bad Request\r\n\r\n"), false, `: the server does not speak gRPC: it sent "HTTP/1.1 "`},
		{heard("no"), false, `: the server does not speak gRPC: it sent "no"`},
		{heard("HTTP/1.1 400 Bad Request\r\n\r\n"), true, ": TLS: first record does not look like a TLS handshake"},
	} {
		var secure *tls.Config
		if each.secure {
			secure = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		host := peer(t, each.serve)
		err := (&URL{Scheme: "http", Hosts: []string{host}}).Answers(secure, GRPC)
		if err == nil || err.Error() != host+each.wanted {
			t.Errorf("%v instead of %s%s", err, host, each.wanted)
		}
	}
	settings := "\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64"
	if err := (&URL{Scheme: "http", Hosts: []string{peer(t, heard(settings))}}).Answers(nil, GRPC); err != nil {
		t.Errorf("a server of HTTP/2: %v", err)
	}
}

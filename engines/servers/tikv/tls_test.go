// The drivers over TLS, against servers that ask for the client's certificate.

package tikv

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kvdyno/servers/tikv/mock"
)

// certified is a certificate of 127.0.0.1 that signs itself, with the files of it and of its key.
func certified(t *testing.T) (own tls.Certificate, certificate, key string) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &secret.PublicKey, secret)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	certificate, key = filepath.Join(folder, "certificate.pem"), filepath.Join(folder, "key.pem")
	for file, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: made}, key: {Type: "PRIVATE KEY", Bytes: text}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return tls.Certificate{Certificate: [][]byte{made}, PrivateKey: secret}, certificate, key
}

func TestAClusterWithTLSIsUsedWithACertificateAndNotWithout(t *testing.T) {
	own, certificate, key := certified(t)
	trusted := x509.NewCertPool()
	text, err := os.ReadFile(certificate)
	if err != nil || !trusted.AppendCertsFromPEM(text) {
		t.Fatal("the certificate cannot be read", err)
	}
	for name, driver := range both {
		server, err := mock.Start("127.0.0.1:0", 2, &tls.Config{Certificates: []tls.Certificate{own}, ClientCAs: trusted,
			ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := server.Stop(); err != nil {
				t.Error(err)
			}
		})
		database, _, err := opened(t, driver, map[string]string{"url": "pds://" + server.Address, "ca-file": certificate,
			"cert-file": certificate, "key-file": key})
		if err != nil {
			t.Fatal(err)
		}
		first := session(t, database)
		put(t, first, "key", "value")
		if value := got(t, first, "key"); value != "value" {
			t.Errorf("%s: %s", name, value)
		}
		for words, settings := range map[string]map[string]string{
			"the server expects TLS":        {"url": "pd://" + server.Address},
			"the server refuses the client": {"url": "pds://" + server.Address, "ca-file": certificate},
		} {
			if _, _, err := opened(t, driver, settings); err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("%s: %v instead of %s", name, err, words)
			}
		}
	}
}

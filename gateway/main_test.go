package main

import (
	"bytes"
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
	"testing"
	"time"
)

// issuer makes an authority and a server's certificate for the name etcd-0 and these addresses; in PEM
// the authority.
func issuer(t *testing.T, addresses ...net.IP) ([]byte, tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(time.Hour)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotAfter: until, IsCA: true, BasicConstraintsValid: true,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: []string{"etcd-0"}, IPAddresses: addresses, NotAfter: until,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	root, err := x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root})
	return text, tls.Certificate{Certificate: [][]byte{made}, PrivateKey: key}
}

// connects says whether a client with this configuration accepts the server.
func connects(config *tls.Config, server tls.Certificate) error {
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	go func() { _ = tls.Server(there, &tls.Config{Certificates: []tls.Certificate{server}}).Handshake() }()
	return tls.Client(here, config).Handshake()
}

// An authority of etcd is replaced while the gateway runs: the same client trusts what its file says now.
func TestTheBundleIsReadAgain(t *testing.T) {
	first, of1 := issuer(t)
	second, of2 := issuer(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	write := func(content []byte, age time.Duration) {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	write(first, 3*time.Hour)
	trusted := &authority{file: file}
	config := trusted.config("etcd-0", &pair{})
	expect := func(when string, err error, accepted bool) {
		if t.Helper(); (err == nil) != accepted {
			t.Errorf("%s: %v", when, err)
		}
	}
	expect("the first", connects(config, of1), true)
	expect("another name", connects(trusted.config("etcd-1", &pair{}), of1), false)
	expect("one that is not trusted", connects(config, of2), false)
	write(append(append([]byte{}, first...), second...), 2*time.Hour)
	expect("the first of two", connects(config, of1), true)
	expect("the second of two", connects(config, of2), true)
	write([]byte("half"), time.Hour)
	expect("a file that cannot be read", connects(config, of2), true)
	write(second, 0)
	expect("the first, which is trusted no more", connects(config, of1), false)
	expect("the second alone", connects(config, of2), true)
}

// An endpoint may be an IP address, of which TLS sends no name: its certificate must name it all the same.
func TestAnAddressIsVerified(t *testing.T) {
	root, of := issuer(t, net.IPv4(10, 0, 0, 1))
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, root, 0o600); err != nil {
		t.Fatal(err)
	}
	trusted := &authority{file: file}
	if err := connects(trusted.config("10.0.0.1", &pair{}), of); err != nil {
		t.Errorf("the address in the certificate: %v", err)
	}
	if connects(trusted.config("10.0.0.2", &pair{}), of) == nil {
		t.Error("a certificate of another address is accepted")
	}
}

// The certificate is renewed while the gateway runs: it is read again when its file has changed, and a
// pair that cannot be read, or whose files do not belong together yet, does not replace the one in use.
func TestTheCertificateIsReadAgain(t *testing.T) {
	folder := t.TempDir()
	p := &pair{cert: filepath.Join(folder, "tls.crt"), key: filepath.Join(folder, "tls.key")}
	write := func(file string, content []byte, age time.Duration) {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	made := func() (cert, key, der []byte) {
		_, of := issuer(t)
		secret, err := x509.MarshalPKCS8PrivateKey(of.PrivateKey)
		if err != nil {
			t.Fatal(err)
		}
		der = of.Certificate[0]
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), der
	}
	expect := func(when string, der []byte) {
		t.Helper()
		got, err := p.get()
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if !bytes.Equal(got.Certificate[0], der) {
			t.Errorf("%s: another certificate is shown", when)
		}
	}
	if _, err := p.get(); err == nil {
		t.Fatal("a pair without files is shown")
	}
	cert1, key1, first := made()
	cert2, key2, second := made()
	write(p.cert, cert1, 3*time.Hour)
	write(p.key, key1, 3*time.Hour)
	expect("the first", first)
	write(p.cert, cert2, 2*time.Hour)
	expect("within ten seconds nobody looks", first)
	again := func() { p.looked = time.Time{} }
	again()
	expect("one file of the second", first)
	again()
	write(p.key, key2, 2*time.Hour)
	expect("the second", second)
	write(p.cert, []byte("half"), time.Hour)
	again()
	expect("a file that cannot be read", second)
	if err := os.Remove(p.cert); err != nil {
		t.Fatal(err)
	}
	again()
	expect("a file that is gone", second)
	write(p.cert, cert1, 0)
	write(p.key, key1, 0)
	again()
	expect("the first, which is back", first)
}

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// ask reads a path of a handler with this header; its status and text.
func ask(handler http.Handler, path, authorization string) (int, string) {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, request)
	return answer.Code, answer.Body.String()
}

func fileOf(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestProbesTellNoMetrics(t *testing.T) {
	g := &gateway{}
	if code, _ := ask(g.probes(), "/metrics", ""); code != http.StatusNotFound {
		t.Errorf("metrics at the port of probes: %d", code)
	}
	if code, _ := ask(g.probes(), "/livez", ""); code != http.StatusOK {
		t.Errorf("livez: %d", code)
	}
}

func TestMetricsAreToldToWhomHasTheToken(t *testing.T) {
	g := &gateway{}
	open := access{}.guarded(g.metrics(nil))
	if code, text := ask(open, "/metrics", ""); code != http.StatusOK || !strings.Contains(text, "hudi_gateway_requests_total") {
		t.Errorf("without a configured token: %d %s", code, text)
	}
	file := fileOf(t, "token", "right\n")
	guarded := access{tokenFile: file}.guarded(g.metrics(nil))
	for _, path := range []string{"/metrics", "/etcd/0/metrics"} {
		for _, wrong := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Basic right", "right", "Bearer rightx", "Bearer righ"} {
			if code, text := ask(guarded, path, wrong); code != http.StatusUnauthorized || strings.Contains(text, "hudi") {
				t.Errorf("%s with %q: %d %s", path, wrong, code, text)
			}
		}
	}
	if code, _ := ask(guarded, "/metrics", "Bearer right"); code != http.StatusOK {
		t.Errorf("the token: %d", code)
	}
	for _, content := range []string{"", "\n"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, given := range []string{"", "Bearer ", "Bearer right"} {
			if code, _ := ask(guarded, "/metrics", given); code != http.StatusServiceUnavailable {
				t.Errorf("a file without a token, %q: %d", given, code)
			}
		}
	}
	if err := os.WriteFile(file, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _ := ask(guarded, "/metrics", "Bearer new"); code != http.StatusOK {
		t.Errorf("a new token is read without a restart: %d", code)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if code, _ := ask(guarded, "/metrics", "Bearer "); code != http.StatusServiceUnavailable {
		t.Errorf("a file that is gone: %d", code)
	}
}

// people is an authority with a certificate of a server and one of a client, in files.
type people struct {
	ca, serverCert, serverKey string
	pool                      *x509.CertPool
	client                    tls.Certificate
}

func newPeople(t *testing.T) people {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(time.Hour)
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotAfter: until, IsCA: true, BasicConstraintsValid: true}
	root, err := x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf := func(usage x509.ExtKeyUsage) []byte {
		made, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
			SerialNumber: big.NewInt(2), DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			NotAfter: until, ExtKeyUsage: []x509.ExtKeyUsage{usage},
		}, ca, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	text := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	made := people{
		ca: fileOf(t, "ca.crt", text("CERTIFICATE", root)), serverCert: fileOf(t, "tls.crt", text("CERTIFICATE", leaf(x509.ExtKeyUsageServerAuth))),
		serverKey: fileOf(t, "tls.key", text("PRIVATE KEY", secret)), pool: x509.NewCertPool(),
		client: tls.Certificate{Certificate: [][]byte{leaf(x509.ExtKeyUsageClientAuth)}, PrivateKey: key},
	}
	if !made.pool.AppendCertsFromPEM([]byte(text("CERTIFICATE", root))) {
		t.Fatal("no authority")
	}
	return made
}

// served is a real port with these settings; what a client with these certificates is told there.
func served(t *testing.T, s settings, g *gateway) func(trusted *x509.CertPool, shown ...tls.Certificate) error {
	t.Helper()
	a, err := newAccess(s)
	if err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := socket.Addr().String()
	if err := socket.Close(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = a.serve(address, g.metrics(nil), slog.New(slog.NewTextHandler(io.Discard, nil))) }()
	return func(trusted *x509.CertPool, shown ...tls.Certificate) error {
		config := &tls.Config{RootCAs: trusted, ServerName: "localhost", Certificates: shown}
		client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}
		var err error
		for range 50 { // until the port is served
			var answer *http.Response
			if answer, err = client.Get("https://" + address + "/metrics"); err == nil {
				return answer.Body.Close()
			}
			if !strings.Contains(err.Error(), "connection refused") {
				return err
			}
			time.Sleep(20 * time.Millisecond)
		}
		return err
	}
}

func TestReadersOfMetricsShowACertificate(t *testing.T) {
	ours, others := newPeople(t), newPeople(t)
	s := settings{metricsCert: ours.serverCert, metricsKey: ours.serverKey, metricsClientCA: ours.ca}
	read := served(t, s, &gateway{})
	if err := read(ours.pool, ours.client); err != nil {
		t.Errorf("a certificate of the authority: %v", err)
	}
	if read(ours.pool) == nil {
		t.Error("no certificate is accepted")
	}
	if read(ours.pool, others.client) == nil {
		t.Error("another authority's certificate is accepted")
	}
	if read(others.pool, ours.client) == nil {
		t.Error("another certificate than the configured one is shown")
	}
	s.metricsClientCA = ""
	if err := served(t, s, &gateway{})(ours.pool); err != nil {
		t.Errorf("TLS alone: %v", err)
	}
	// The operator's authority is read for each connection.
	content, err := os.ReadFile(others.ca)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(ours.ca, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(ours.ca, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := read(ours.pool, others.client); err != nil {
		t.Errorf("an authority that has been replaced: %v", err)
	}
	if read(ours.pool, ours.client) == nil {
		t.Error("the authority that was replaced is still accepted")
	}
}

func TestSettingsOfMetricsThatProtectNothingAreRefused(t *testing.T) {
	for name, s := range map[string]settings{
		"a certificate without a key": {metricsCert: "a"},
		"a key without a certificate": {metricsKey: "a"},
		"an authority without TLS":    {metricsClientCA: "a"},
	} {
		if _, err := newAccess(s); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestMetricsOfEtcdAreOneOfItsMembersAndNothingElse(t *testing.T) {
	ours, others := newPeople(t), newPeople(t)
	paths := []string{}
	etcd := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.PeerCertificates) != 1 {
			t.Error("the gateway has shown no certificate")
		}
		paths = append(paths, r.Method+" "+r.URL.Path)
		_, _ = w.Write([]byte("etcd_server_has_leader 1\n"))
	}))
	server, err := tls.LoadX509KeyPair(ours.serverCert, ours.serverKey)
	if err != nil {
		t.Fatal(err)
	}
	etcd.TLS = &tls.Config{Certificates: []tls.Certificate{server}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ours.pool}
	etcd.StartTLS()
	defer etcd.Close()
	shown := &pair{loaded: &ours.client, looked: time.Now()}
	reached := func(trusted *authority) member {
		return newMember(etcd.Listener.Addr().String(), trusted.config("localhost", shown))
	}
	g := &gateway{log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	handler := g.metrics([]member{reached(&authority{file: ours.ca}), reached(&authority{file: others.ca})})
	if code, text := ask(handler, "/etcd/0/metrics", ""); code != http.StatusOK || text != "etcd_server_has_leader 1\n" {
		t.Errorf("its metrics: %d %s", code, text)
	}
	if code, text := ask(handler, "/etcd/1/metrics", ""); code != http.StatusBadGateway || strings.Contains(text, "etcd_") {
		t.Errorf("a server that is not etcd's: %d %s", code, text)
	}
	for _, path := range []string{"/etcd/2/metrics", "/etcd/-1/metrics", "/etcd/x/metrics", "/etcd/0/", "/etcd/0/health", "/etcd/0/..%2fdebug/metrics", "/"} {
		if code, _ := ask(handler, path, ""); code != http.StatusNotFound {
			t.Errorf("%s: %d", path, code)
		}
	}
	if len(paths) != 1 || paths[0] != "GET /metrics" {
		t.Errorf("etcd was asked %v", paths)
	}
}

// etcd is asked for each answer whether this process is ready, and anybody may ask.
func TestReadyAsksEtcdOnceASecond(t *testing.T) {
	etcd := &large{}
	g, _ := before(t, etcd)
	probes := g.probes()
	begun := time.Now()
	for range 50 {
		if code, said := ask(probes, "/readyz", ""); code != http.StatusOK {
			t.Fatalf("%d %s", code, said)
		}
	}
	if most := 1 + int64(time.Since(begun)/readyFor); etcd.asked.Load() > most {
		t.Errorf("etcd is asked %d times", etcd.asked.Load())
	}
	time.Sleep(readyFor)
	before := etcd.asked.Load()
	if code, _ := ask(probes, "/readyz", ""); code != http.StatusOK || etcd.asked.Load() != before+1 {
		t.Errorf("%d, and etcd is not asked again", code)
	}
}

// Who opens many connections to a port for those who only look keeps nobody else out.
func TestConnectionsOfThoseWhoLookAreBounded(t *testing.T) {
	server, socket, err := lookedAt("127.0.0.1:0", (&gateway{}).probes(), quiet())
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(socket) }()
	defer server.Close()
	get := func(address string) (int, error) {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
		client := http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}, Timeout: 5 * time.Second}
		answer, err := client.Get("http://" + socket.Addr().String() + "/livez")
		if err != nil {
			return 0, err
		}
		defer answer.Body.Close()
		return answer.StatusCode, nil
	}
	for range lookersOfAddress {
		held := from(t, "127.0.0.2", socket.Addr())
		if closed(held) {
			t.Fatal("a connection that an address may have is closed")
		}
	}
	if code, err := get("127.0.0.2"); err == nil {
		t.Errorf("a further connection of an address is served: %d", code)
	}
	if code, err := get("127.0.0.3"); code != http.StatusOK {
		t.Errorf("another address: %d, %v", code, err)
	}
}

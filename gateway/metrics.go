package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
)

// Limit for one member of etcd, which has some 200 KB.
const maxMetricsBytes = 8 << 20

type counts struct {
	requests atomic.Int64
	sockets  *listener
	crowd    *crowd
	mu       sync.Mutex
	codes    map[codes.Code]int64
}

func (c *counts) refused(code codes.Code) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.codes == nil {
		c.codes = map[codes.Code]int64{}
	}
	c.codes[code]++
}

func (c *counts) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(w, "# TYPE hudi_gateway_requests_total counter\nhudi_gateway_requests_total %d\n", c.requests.Load())
	if c.sockets != nil {
		open, refused := c.sockets.numbers()
		if c.crowd != nil {
			refused += c.crowd.closed.Load()
		}
		fmt.Fprintf(w, "# TYPE hudi_gateway_connections gauge\nhudi_gateway_connections %d\n", open)
		fmt.Fprintf(w, "# TYPE hudi_gateway_connections_refused_total counter\nhudi_gateway_connections_refused_total %d\n", refused)
	}
	fmt.Fprintln(w, "# TYPE hudi_gateway_refused_total counter")
	c.mu.Lock()
	defer c.mu.Unlock()
	for code, n := range c.codes {
		fmt.Fprintf(w, "hudi_gateway_refused_total{code=%q} %d\n", code, n)
	}
}

// access is who may read metrics: as for the operator's, a token, a certificate, or everybody who
// reaches the port. Its files are read again, so none of them needs a restart.
type access struct {
	tokenFile string
	shown     *pair      // nil: without TLS
	clients   *authority // whose certificates clients need; nil: none
}

func newAccess(s settings) (access, error) {
	a := access{tokenFile: s.metricsToken}
	if (s.metricsCert == "") != (s.metricsKey == "") || (s.metricsClientCA != "" && s.metricsCert == "") {
		return a, fmt.Errorf("-metrics-cert and -metrics-key belong together, and -metrics-client-ca needs them")
	}
	if s.metricsCert != "" {
		a.shown = &pair{cert: s.metricsCert, key: s.metricsKey}
	}
	if s.metricsClientCA != "" {
		a.clients = &authority{file: s.metricsClientCA}
	}
	return a, nil
}

// config is asked for each connection; files that cannot be read refuse it, and no pod.
func (a access) config() (*tls.Config, error) {
	shown, err := a.shown.get()
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*shown}}
	if a.clients != nil {
		if config.ClientCAs, err = a.clients.get(); err != nil {
			return nil, err
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return config, nil
}

// guarded answers a request with the token, or each one when no token is configured.
func (a access) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if code := a.refusal(r.Header.Get("Authorization")); code != 0 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, http.StatusText(code), code)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (a access) refusal(authorization string) int {
	if a.tokenFile == "" {
		return 0
	}
	content, err := os.ReadFile(a.tokenFile)
	token := strings.TrimSpace(string(content))
	if err != nil || token == "" {
		return http.StatusServiceUnavailable // a token that cannot be read opens nothing
	}
	scheme, given, _ := strings.Cut(authorization, " ")
	// Hashes are compared, so the time of the comparison does not reveal the token's length.
	one, other := sha256.Sum256([]byte(strings.TrimSpace(given))), sha256.Sum256([]byte(token))
	if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(one[:], other[:]) != 1 {
		return http.StatusUnauthorized
	}
	return 0
}

// Those who reach a port for people and programs that only look: a kubelet, Prometheus.
const lookersOfAddress, lookers = 16, 64

// lookedAt listens on a port whose connections are few and short, whoever opens them.
func lookedAt(address string, handler http.Handler, log *slog.Logger) (*http.Server, net.Listener, error) {
	socket, err := net.Listen("tcp", address)
	if err != nil {
		return nil, nil, err
	}
	return &http.Server{
		Handler: handler, ReadTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}, newListener(socket, lookersOfAddress, lookers, log), nil
}

// serve returns when the port cannot be served.
func (a access) serve(address string, handler http.Handler, log *slog.Logger) error {
	server, socket, err := lookedAt(address, a.guarded(handler), log)
	if err != nil {
		return err
	}
	if a.shown == nil {
		return server.Serve(socket)
	}
	server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		config, err := a.config()
		if err != nil {
			log.Warn("metrics", "why", err.Error())
		}
		return config, err
	}}
	return server.ServeTLS(socket, "", "")
}

// metrics are this process's, and those of etcd's members: etcd tells them to clients with a certificate,
// and has no token. No other path of etcd is asked.
func (g *gateway) metrics(members []member) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", &g.counts)
	mux.HandleFunc("GET /etcd/{member}/metrics", func(w http.ResponseWriter, r *http.Request) {
		number, err := strconv.Atoi(r.PathValue("member"))
		if err != nil || number < 0 || number >= len(members) {
			http.NotFound(w, r)
			return
		}
		text, err := members[number].metrics(r)
		if err != nil {
			g.log.Warn("metrics of etcd", "member", number, "why", err.Error())
			http.Error(w, "etcd does not answer", http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(text)
	})
	return mux
}

// member is one of etcd, as HTTP shows it.
type member struct {
	url    string
	client *http.Client
}

func newMember(address string, config *tls.Config) member {
	// Each scrape has a connection of its own: the certificate may be a new one.
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return member{"https://" + address + "/metrics", &http.Client{Transport: transport, Timeout: 8 * time.Second, CheckRedirect: refuse}}
}

func (m member) metrics(r *http.Request) ([]byte, error) {
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, m.url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := m.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s", answer.Status)
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxMetricsBytes+1))
	if err == nil && len(text) > maxMetricsBytes {
		err = fmt.Errorf("more than %d bytes", maxMetricsBytes)
	}
	return text, err
}

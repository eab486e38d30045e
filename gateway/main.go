// hudi-gateway is etcd as pods see it. A pod shows the token that the kubelet has projected into it;
// the gateway tells from it which pod that is, looks up in etcd what the operator has admitted this
// pod as, and lets through what the contract (protocol.json) gives that role at that table.
// docs/design/identities.md says why, and what is measured.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // grpc's own codec
	"google.golang.org/grpc/keepalive"
)

// pair is a certificate in files that are read again when they change.
type pair struct {
	cert, key string
	mu        sync.Mutex
	loaded    *tls.Certificate
	changed   time.Time
	looked    time.Time
}

func (p *pair) get() (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.loaded != nil && time.Since(p.looked) < 10*time.Second {
		return p.loaded, nil
	}
	p.looked = time.Now()
	info, err := os.Stat(p.cert)
	if err == nil && (p.loaded == nil || info.ModTime() != p.changed) {
		var made tls.Certificate
		if made, err = tls.LoadX509KeyPair(p.cert, p.key); err == nil {
			p.loaded, p.changed = &made, info.ModTime()
		}
	}
	if p.loaded == nil {
		return nil, err
	}
	return p.loaded, nil // a pair that is being replaced: the old one serves until the new one can be read
}

// authority is the bundle of authorities that a server's certificate may come from, etcd's or the API server's, read again when it
// changes: an authority is replaced while this process runs.
type authority struct {
	file    string
	mu      sync.Mutex
	pool    *x509.CertPool
	changed time.Time
}

func (a *authority) get() (*x509.CertPool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	info, err := os.Stat(a.file)
	if err == nil && (a.pool == nil || info.ModTime() != a.changed) {
		var pem []byte
		if pem, err = os.ReadFile(a.file); err == nil {
			pool := x509.NewCertPool()
			if pool.AppendCertsFromPEM(pem) {
				a.pool, a.changed = pool, info.ModTime()
			} else {
				err = fmt.Errorf("%s: no certificate in PEM", a.file)
			}
		}
	}
	if a.pool == nil {
		return nil, err
	}
	return a.pool, nil // a bundle that is being replaced: the old one serves until the new one can be read
}

// verify does what crypto/tls does with RootCAs and ServerName, which it reads only once. host is the
// endpoint's own: the state's ServerName is what was sent as SNI, and empty when that is an IP address.
func (a *authority) verify(host string, state tls.ConnectionState) error {
	pool, err := a.get()
	if err != nil {
		return err
	}
	if len(state.PeerCertificates) == 0 {
		return fmt.Errorf("%s showed no certificate", host)
	}
	options := x509.VerifyOptions{Roots: pool, DNSName: host, Intermediates: x509.NewCertPool()}
	for _, more := range state.PeerCertificates[1:] {
		options.Intermediates.AddCert(more)
	}
	_, err = state.PeerCertificates[0].Verify(options)
	return err
}

// config is that of a client of the host; without a certificate of its own when client is nil.
func (a *authority) config(host string, client *pair) *tls.Config {
	made := &tls.Config{
		// Not unverified: VerifyConnection is called for each connection, resumed ones too.
		InsecureSkipVerify: true,
		VerifyConnection:   func(state tls.ConnectionState) error { return a.verify(host, state) },
		ServerName:         host, MinVersion: tls.VersionTLS12,
	}
	if client != nil {
		made.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return client.get() }
	}
	return made
}

type settings struct {
	listen, probe, endpoints, prefix, contract     string
	ca, cert, key, serverCert, serverKey           string
	audience, issuer, keys, keysServer, ca2, self  string
	node                                           string
	connectionsOfAddress, connections              int
	metrics, metricsToken, metricsCert, metricsKey string
	metricsClientCA                                string
}

func main() {
	var s settings
	flag.StringVar(&s.listen, "listen", ":2379", "address for pods")
	flag.StringVar(&s.probe, "probe", ":8080", "address for /livez and /readyz, without TLS: the kubelet's; empty: none")
	flag.StringVar(&s.metrics, "metrics", ":9090", "address for /metrics, and etcd's in /etcd/NUMBER/metrics; empty: none")
	flag.StringVar(&s.metricsToken, "metrics-token-file", "", "file with the token that readers of metrics must have; empty: none")
	flag.StringVar(&s.metricsCert, "metrics-cert", "", "certificate with which metrics are served; empty: without TLS")
	flag.StringVar(&s.metricsKey, "metrics-key", "", "key of that certificate")
	flag.StringVar(&s.metricsClientCA, "metrics-client-ca", "", "certificate authority of readers of metrics; empty: they need no certificate")
	flag.StringVar(&s.endpoints, "etcd-endpoints", "", "https://host:port of etcd's members, comma separated")
	flag.StringVar(&s.ca, "etcd-ca", "", "certificate authority of etcd")
	flag.StringVar(&s.cert, "etcd-cert", "", "client certificate for etcd")
	flag.StringVar(&s.key, "etcd-key", "", "key of the client certificate")
	flag.StringVar(&s.serverCert, "cert", "", "certificate that pods see")
	flag.StringVar(&s.serverKey, "key", "", "key of that certificate")
	flag.StringVar(&s.prefix, "prefix", "/hudi", "prefix of all keys")
	flag.StringVar(&s.contract, "contract", "/protocol.json", "the contract: which role writes which key")
	flag.StringVar(&s.audience, "audience", "hudi-operator-etcd", "audience of the pods' tokens")
	flag.StringVar(&s.keys, "token-keys", "", "file with the key set (JWKS) of the tokens' issuer; empty: ask the API server")
	flag.StringVar(&s.issuer, "token-issuer", "", "issuer of the tokens, with -token-keys")
	flag.StringVar(&s.keysServer, "api-server", "https://kubernetes.default.svc", "the API server")
	flag.StringVar(&s.ca2, "api-ca", "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt", "certificate authority of the API server")
	flag.StringVar(&s.self, "api-token", "/var/run/secrets/kubernetes.io/serviceaccount/token", "token for the API server")
	flag.StringVar(&s.node, "node", os.Getenv("NODE_NAME"), "node that this process runs on, whose pods have its clock; empty: not known")
	bounds := newLimits()
	flag.IntVar(&bounds.replicas, "replicas", bounds.replicas, "gateways before this etcd: each grants its share of the limits")
	flag.Float64Var(&bounds.bytesPerSecond, "max-bytes-per-second", bounds.bytesPerSecond, "bytes that one table's pods add to etcd's history, by puts and deletions, per second in the long run")
	flag.Float64Var(&bounds.burstBytes, "max-burst-bytes", bounds.burstBytes, "bytes that one table's pods add to it at once")
	flag.Float64Var(&bounds.requestsPerSecond, "max-requests-per-second", bounds.requestsPerSecond, "requests of one pod, at each of its tables")
	flag.IntVar(&bounds.watches, "max-watches", bounds.watches, "watches of one pod, at each of its tables")
	flag.Int64Var(&bounds.storedBytes, "max-stored-bytes", bounds.storedBytes, "bytes of keys and values of one table that its pods have put")
	flag.Int64Var(&bounds.keys, "max-keys", bounds.keys, "keys of one table that its pods have put")
	flag.Int64Var(&bounds.answerBytes, "max-answer-bytes", bounds.answerBytes, "bytes of answers to one table's pods that this process holds at once, and of one answer")
	flag.Int64Var(&bounds.memoryBytes, "max-memory-bytes", bounds.memoryBytes, "bytes of answers that this process holds at once, each of them twice")
	flag.IntVar(&s.connectionsOfAddress, "max-connections-of-address", 1024, "open connections of one address")
	flag.IntVar(&s.connections, "max-connections", 4096, "open connections; when there are as many, the address with most of them gives way")
	flag.Parse()
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	if err := run(s, bounds, log); err != nil {
		log.Error("ended", "why", err.Error())
		os.Exit(1)
	}
}

// reconnecting to a member whose pod was replaced must be faster than the leases of writers end: their
// heartbeats wait for it. By default a connection to the address of the former pod, which nobody answers,
// is given up after 20 s, and the pause between two attempts grows to two minutes.
var reconnecting = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
	MinConnectTimeout: 2 * time.Second,
}

func connect(s settings, answerBytes int64) (*upstream, []member, error) {
	trusted := &authority{file: s.ca}
	if _, err := trusted.get(); err != nil {
		return nil, nil, err
	}
	client := &pair{cert: s.cert, key: s.key}
	if _, err := client.get(); err != nil {
		return nil, nil, err
	}
	etcd, asked := &upstream{}, []member{}
	for _, endpoint := range strings.Split(s.endpoints, ",") {
		at, err := url.Parse(endpoint)
		if err != nil || at.Scheme != "https" || at.Port() == "" {
			return nil, nil, fmt.Errorf("-etcd-endpoints: https://host:port, not %q", endpoint)
		}
		config := trusted.config(at.Hostname(), client)
		connection, err := grpc.NewClient("passthrough:///"+at.Host,
			grpc.WithTransportCredentials(credentials.NewTLS(config)),
			grpc.WithDisableRetry(),
			grpc.WithConnectParams(reconnecting),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second}),
			// Bytes that a stream holds while its client does not read.
			grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(1<<20),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(int(answerBytes))))
		if err != nil {
			return nil, nil, err
		}
		etcd.members, asked = append(etcd.members, connection), append(asked, newMember(at.Host, config.Clone()))
	}
	return etcd, asked, nil
}

func run(s settings, bounds *limits, log *slog.Logger) error {
	rulesOf, err := readContract(s.contract, s.prefix)
	if err != nil {
		return err
	}
	if bounds.replicas < 1 || bounds.answerBytes > bounds.memoryBytes {
		return errors.New("-replicas must be 1 or more, -max-answer-bytes at most -max-memory-bytes")
	}
	if s.connectionsOfAddress < 1 || s.connections < s.connectionsOfAddress {
		return errors.New("-max-connections-of-address must be 1 or more, and at most -max-connections")
	}
	readers, err := newAccess(s)
	if err != nil {
		return err
	}
	etcd, members, err := connect(s, bounds.answerBytes)
	if err != nil {
		return err
	}
	server, err := newAPIServer(s.keysServer, s.ca2, s.self)
	if err != nil {
		return err
	}
	clocks := newClocks(server.date)
	server.said = clocks.said
	load := server.keys
	if s.keys != "" {
		if s.issuer == "" {
			return errors.New("-token-keys needs -token-issuer")
		}
		load = fromFile(s.keys, s.issuer)
	}
	shown := &pair{cert: s.serverCert, key: s.serverKey}
	if _, err := shown.get(); err != nil {
		return err
	}
	g := &gateway{etcd: etcd, tokens: newVerifier(s.audience, clocks, load), limits: bounds, log: log}
	g.rules = newRules(rulesOf, g.look, clocks)
	g.rules.node = s.node
	go g.tokens.follow(log)

	service := g.server(shown)
	if limit := heapLimit(); limit > 0 {
		go g.crowd.watch(limit, heapUsed, collectGarbage)
	}
	go func() {
		for range time.Tick(answerTime / 6) {
			g.crowd.hangUp(answerTime)
		}
	}()
	socket, err := net.Listen("tcp", s.listen)
	if err != nil {
		return err
	}
	sockets := newListener(socket, s.connectionsOfAddress, s.connections, log)
	sockets.flags = [2]string{" (-max-connections-of-address)", " (-max-connections)"}
	g.counts.sockets = sockets
	if s.probe != "" {
		go func() {
			probes, socket, err := lookedAt(s.probe, g.probes(), log)
			if err == nil {
				err = probes.Serve(socket)
			}
			log.Error("probes", "why", err.Error())
			os.Exit(1)
		}()
	}
	if s.metrics != "" {
		go func() {
			log.Error("metrics", "why", readers.serve(s.metrics, g.metrics(members), log).Error())
			os.Exit(1)
		}()
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-signals
		stop := time.AfterFunc(5*time.Second, service.Stop)
		defer stop.Stop()
		service.GracefulStop()
	}()
	log.Info("serving", "address", sockets.Addr().String(), "prefix", s.prefix, "audience", s.audience)
	return service.Serve(sockets)
}

// server offers the services of etcd that pods need, and no other one.
func (g *gateway) server(shown *pair) *grpc.Server {
	g.crowd = newCrowd(g.log)
	g.counts.crowd = g.crowd
	g.limits.giveWay = g.crowd.giveWay
	service := grpc.NewServer(
		grpc.Creds(counted{credentials.NewTLS(&tls.Config{
			MinVersion:     tls.VersionTLS12,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return shown.get() },
		}), g.crowd}),
		// Bytes of a message that grpc accepts before they are read. Without these it makes room for as much
		// as the connection can carry.
		grpc.InitialWindowSize(64<<10), grpc.InitialConnWindowSize(256<<10),
		// A transaction of our clients puts one value of 256 KiB at most: a settle record.
		grpc.MaxRecvMsgSize(512<<10),
		grpc.ForceServerCodecV2(codec{encoding.GetCodecV2("proto"), &g.handed}),
		grpc.StatsHandler(connections{}),
		grpc.InTapHandle(g.tap),
		// Limits on what this process holds for a client before it checks the token.
		grpc.MaxHeaderListSize(2*maxTokenBytes),
		grpc.ConnectionTimeout(10*time.Second),
		grpc.MaxConcurrentStreams(streamsOfConnection),
		grpc.SharedWriteBuffer(true), grpc.ReadBufferSize(8<<10),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		// A connection without a request is of use to nobody: pods have a heartbeat.
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: 30 * time.Second, Timeout: 10 * time.Second, MaxConnectionIdle: 5 * time.Minute,
		}))
	pb.RegisterKVServer(service, g)
	pb.RegisterLeaseServer(service, g)
	pb.RegisterWatchServer(service, g)
	return service
}

// readyFor is how long an answer to whether this process is ready is good for: anybody may ask, and etcd
// is asked for each answer.
const readyFor = time.Second

func (g *gateway) probes() http.Handler {
	var mu sync.Mutex
	var asked time.Time
	var said error
	ready := func() error {
		mu.Lock()
		defer mu.Unlock()
		if asked.IsZero() || time.Since(asked) >= readyFor {
			said = g.ready()
			asked = time.Now()
		}
		return said
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/livez", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	return mux
}

// ready is why this process cannot serve; nil when it can.
func (g *gateway) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	key := []byte(g.rules.contract.prefix + control + "/ready")
	ready := &pb.TxnRequest{Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: key}}}}}
	_, err := g.etcd.send(ctx, ready, g.rules.contract.longest[""])
	if err == nil && !g.tokens.ready() {
		err = errors.New("the keys of the tokens' issuer cannot be read")
	}
	if err == nil {
		if err = g.rules.clocks.differ(ctx); err != nil && g.rules.clocks.warns() {
			g.log.Warn("not ready", "why", err.Error())
		}
	}
	return err
}

package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Algorithms with which an API server may sign tokens; symmetric ones and `none` are not among them.
var algorithms = []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.ES256, jose.ES384, jose.ES512, jose.PS256}

// maxTokenLife is twice what the operator's pods ask the kubelet for. A token that somebody requests from
// the API server directly cannot outlive its pod by more.
const maxTokenLife = 2 * time.Hour

// clockLeeway is what the clocks of the API server and of this host may differ.
const clockLeeway = 10 * time.Second

// subject is a pod, as its bound token names it.
type subject struct {
	namespace, pod, uid string
	// The pod's node; empty when the token does not name it (Kubernetes before 1.30).
	node    string
	expires time.Time
}

// attempt is the pod's name in etcd (naming.attempt_id).
func (s subject) attempt() string { return s.namespace + "." + s.pod }

// verifier checks tokens that the API server has issued for pods. It needs the API server only for
// keys that it does not know: writers go on while the API server is away.
type verifier struct {
	audience string
	clocks   *clocks
	load     func() (*jose.JSONWebKeySet, string, error)
	// A request for the key set, which follow reads on a goroutine of its own: nobody waits for it.
	wanted chan struct{}

	mu     sync.Mutex
	keys   *jose.JSONWebKeySet
	issuer string
	loaded time.Time
	known  map[[32]byte]subject
}

const (
	reloadInterval = 10 * time.Second
	refreshEvery   = 10 * time.Minute
	maxKnownTokens = 20000
	maxTokenBytes  = 16 << 10 // a kubelet's tokens have about 1 KiB
)

func newVerifier(audience string, clocks *clocks, load func() (*jose.JSONWebKeySet, string, error)) *verifier {
	return &verifier{audience: audience, clocks: clocks, load: load, wanted: make(chan struct{}, 1), known: map[[32]byte]subject{}}
}

func (v *verifier) ready() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.keys != nil
}

// follow reads the key set at once, when it is wanted, and every refreshEvery. A key set that was read
// serves until another one can be read.
func (v *verifier) follow(log *slog.Logger) {
	for {
		keys, issuer, err := v.load()
		if err != nil {
			log.Warn("the keys of the tokens' issuer cannot be read", "why", err.Error())
		} else {
			v.mu.Lock()
			// Tokens that a withdrawn key has signed are not known any more.
			v.keys, v.issuer, v.loaded, v.known = keys, issuer, time.Now(), map[[32]byte]subject{}
			v.mu.Unlock()
		}
		wait := reloadInterval
		if !v.ready() {
			wait = time.Second
		}
		time.Sleep(wait)
		if v.ready() {
			select {
			case <-v.wanted:
			case <-time.After(refreshEvery):
			}
		}
	}
}

func (v *verifier) want() {
	select {
	case v.wanted <- struct{}{}:
	default:
	}
}

var (
	// errKeys: whether a token is good cannot be said now.
	errKeys = errors.New("keys")
	// errClock: this host cannot say it at all, another one can.
	errClock = errors.New("this host's clock, or the API server's, is wrong")
)

// verify returns the pod that a token was issued to.
func (v *verifier) verify(token string) (subject, error) {
	if len(token) > maxTokenBytes {
		return subject{}, errors.New("no token of a pod: it is too long")
	}
	digest := sha256.Sum256([]byte(token))
	v.mu.Lock()
	found, known := v.known[digest]
	keys, issuer, loaded := v.keys, v.issuer, v.loaded
	v.mu.Unlock()
	if known && time.Now().Before(found.expires) {
		return found, nil
	}
	// Not under the mutex: who sends tokens that are not good uses processor time, and keeps nobody waiting.
	made, err := v.check(token, keys, issuer, loaded)
	if err != nil {
		return subject{}, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.keys != keys {
		return made, nil // it is not remembered under keys that it was not checked with
	}
	if len(v.known) >= maxKnownTokens {
		v.known = map[[32]byte]subject{}
	}
	v.known[digest] = made
	return made, nil
}

// check verifies a token with a key set.
func (v *verifier) check(token string, keys *jose.JSONWebKeySet, issuer string, loaded time.Time) (subject, error) {
	parsed, err := jwt.ParseSigned(token, algorithms)
	if err != nil {
		return subject{}, fmt.Errorf("no token of a pod: %w", err)
	}
	if len(parsed.Headers) != 1 {
		return subject{}, errors.New("no token of a pod: it has not one signature")
	}
	kid := parsed.Headers[0].KeyID
	if keys == nil {
		return subject{}, fmt.Errorf("%w of the tokens' issuer have not been read yet", errKeys)
	}
	var claims struct {
		jwt.Claims
		Kubernetes struct {
			Namespace string `json:"namespace"`
			Pod       struct {
				Name string `json:"name"`
				UID  string `json:"uid"`
			} `json:"pod"`
			Node struct {
				Name string `json:"name"`
			} `json:"node"`
		} `json:"kubernetes.io"`
	}
	found := keys.Key(kid)
	if len(found) == 0 && time.Since(loaded) > reloadInterval {
		v.want() // a new key, perhaps: the caller tries again
		return subject{}, fmt.Errorf("%w of the tokens' issuer do not include %q yet", errKeys, kid)
	}
	if len(found) == 0 {
		return subject{}, fmt.Errorf("token signed with a key that the API server does not name: %q", kid)
	}
	if err := parsed.Claims(found[0].Key, &claims); err != nil {
		return subject{}, fmt.Errorf("signature of the token: %w", err)
	}
	if claims.Expiry == nil || claims.IssuedAt == nil {
		return subject{}, errors.New("the token does not say when it was issued and when it expires")
	}
	if lives := claims.Expiry.Time().Sub(claims.IssuedAt.Time()); lives > maxTokenLife {
		return subject{}, fmt.Errorf("the token is good for %s, at most %s (rule tokens)", lives, maxTokenLife)
	}
	own := v.clocks.now()
	expected := jwt.Expected{AnyAudience: jwt.Audience{v.audience}, Issuer: issuer, Time: own}
	if err := claims.ValidateWithLeeway(expected, clockLeeway); err != nil {
		// By the clock of the API server, which has written these times, it may be good.
		server, known := v.clocks.latest()
		expected.Time = server
		if known && claims.ValidateWithLeeway(expected, clockLeeway) == nil {
			return subject{}, fmt.Errorf("%w: it is %s here and %s there, and the token is good there only", errClock, inText(own), inText(server))
		}
		return subject{}, fmt.Errorf("token: %w", err)
	}
	named := claims.Kubernetes
	made := subject{namespace: named.Namespace, pod: named.Pod.Name, uid: named.Pod.UID, node: named.Node.Name, expires: claims.Expiry.Time()}
	if made.namespace == "" || made.pod == "" || made.uid == "" {
		return subject{}, errors.New("the token is not bound to a pod")
	}
	return made, nil
}

// fromFile reads a key set from a file (tests, and issuers whose keys are mounted).
func fromFile(file, issuer string) func() (*jose.JSONWebKeySet, string, error) {
	return func() (*jose.JSONWebKeySet, string, error) {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, "", err
		}
		keys := &jose.JSONWebKeySet{}
		return keys, issuer, json.Unmarshal(text, keys)
	}
}

// apiServer is asked with the account of this pod.
type apiServer struct {
	url, tokenFile string
	// One for all questions, so that connections are used again: a date is waited for by a pod.
	client *http.Client
	// said receives the date of an answer and how long that took; nil: it is not wanted.
	said func(date time.Time, took time.Duration)
}

const (
	discoveryPath = "/.well-known/openid-configuration"
	keysPath      = "/openid/v1/jwks"
)

func newAPIServer(at, caFile, tokenFile string) (*apiServer, error) {
	host, err := url.Parse(at)
	if err != nil || host.Scheme != "https" || host.Hostname() == "" {
		return nil, fmt.Errorf("-api-server: https://host:port, not %q", at)
	}
	trusted := (&authority{file: caFile}).config(host.Hostname(), nil)
	// HTTP/1.1: its connection is closed with a request that has no answer, and the next one opens another.
	transport := &http.Transport{TLSClientConfig: trusted, IdleConnTimeout: 5 * time.Minute}
	return &apiServer{url: strings.TrimRight(at, "/"), tokenFile: tokenFile, client: &http.Client{Timeout: 5 * time.Second, Transport: transport}}, nil
}

func (a *apiServer) ask(ctx context.Context, path string) (*http.Response, error) {
	token, err := os.ReadFile(a.tokenFile)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	return a.client.Do(request)
}

// keys reads issuer and key set.
func (a *apiServer) keys() (*jose.JSONWebKeySet, string, error) {
	get := func(path string, into any) error {
		began := time.Now()
		answer, err := a.ask(context.Background(), path)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if date, err := http.ParseTime(answer.Header.Get("Date")); err == nil && a.said != nil {
			a.said(date, time.Since(began))
		}
		body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", path, answer.Status)
		}
		if err != nil {
			return err
		}
		return json.Unmarshal(body, into)
	}
	var discovery struct {
		Issuer string `json:"issuer"`
	}
	if err := get(discoveryPath, &discovery); err != nil {
		return nil, "", err
	}
	if discovery.Issuer == "" {
		return nil, "", errors.New("the API server does not name its issuer")
	}
	keys := &jose.JSONWebKeySet{}
	return keys, discovery.Issuer, get(keysPath, keys)
}

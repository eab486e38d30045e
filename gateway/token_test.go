package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const testIssuer = "https://issuer.test"

// signer issues tokens as an API server does.
type signer struct {
	kid string
	key *ecdsa.PrivateKey
}

func newSigner(t *testing.T, kid string) signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return signer{kid, key}
}

func (s signer) set() *jose.JSONWebKeySet {
	return &jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &s.key.PublicKey, KeyID: s.kid, Algorithm: "ES256", Use: "sig"}}}
}

// token is one of the pod ours/load-1; what claims name is replaced, nil leaves it out.
func (s signer) token(t *testing.T, claims map[string]any) string {
	t.Helper()
	now := time.Now().Unix()
	body := map[string]any{
		"iss": testIssuer, "aud": []string{"etcd"}, "iat": now, "nbf": now, "exp": now + 3600,
		"kubernetes.io": map[string]any{"namespace": "ours", "pod": map[string]any{"name": "load-1", "uid": "uid-1"}},
	}
	for name, value := range claims {
		if body[name] = value; value == nil {
			delete(body, name)
		}
	}
	return s.sign(t, jose.SigningKey{Algorithm: jose.ES256, Key: s.key}, body)
}

func (s signer) sign(t *testing.T, with jose.SigningKey, body any) string {
	t.Helper()
	made, err := jose.NewSigner(with, (&jose.SignerOptions{}).WithHeader("kid", s.kid))
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.Signed(made).Claims(body).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func verifierOf(s signer) *verifier {
	v := newVerifier("etcd", newClocks(noServer), nil)
	v.keys, v.issuer, v.loaded = s.set(), testIssuer, time.Now()
	return v
}

func TestOnlyATokenOfAPodForThisAudience(t *testing.T) {
	s, other := newSigner(t, "one"), newSigner(t, "one")
	v := verifierOf(s)
	pod, err := v.verify(s.token(t, nil))
	if err != nil || pod.namespace != "ours" || pod.pod != "load-1" || pod.uid != "uid-1" {
		t.Fatalf("a good token: %+v, %v", pod, err)
	}
	past := time.Now().Add(-time.Hour).Unix()
	symmetric := s.sign(t, jose.SigningKey{Algorithm: jose.HS256, Key: s.key.PublicKey.X.FillBytes(make([]byte, 32))}, jwt.Claims{})
	parts := strings.Split(s.token(t, nil), ".")
	for what, token := range map[string]string{
		"another audience":       s.token(t, map[string]any{"aud": []string{"https://kubernetes.default.svc"}}),
		"no audience":            s.token(t, map[string]any{"aud": nil}),
		"another issuer":         s.token(t, map[string]any{"iss": "https://elsewhere"}),
		"expired":                s.token(t, map[string]any{"exp": past}),
		"without an end":         s.token(t, map[string]any{"exp": nil}),
		"for days":               s.token(t, map[string]any{"exp": time.Now().Add(maxTokenLife + time.Minute).Unix()}),
		"of no age":              s.token(t, map[string]any{"iat": nil}),
		"not yet valid":          s.token(t, map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}),
		"of an account":          s.token(t, map[string]any{"kubernetes.io": map[string]any{"namespace": "ours"}}),
		"of no cluster":          s.token(t, map[string]any{"kubernetes.io": nil}),
		"signed by somebody":     other.token(t, nil),
		"a key of both sides":    symmetric,
		"not signed":             "eyJhbGciOiJub25lIn0." + parts[1] + ".",
		"signature of another":   parts[0] + "." + parts[1] + "." + strings.Split(other.token(t, nil), ".")[2],
		"empty":                  "",
		"longer than a token is": s.token(t, map[string]any{"more": strings.Repeat("x", maxTokenBytes)}),
	} {
		if pod, err := v.verify(token); err == nil || errors.Is(err, errKeys) {
			t.Errorf("%s: %+v, %v", what, pod, err)
		}
	}
}

// A token that was good is not good for longer than it says, and not under keys that are withdrawn.
func TestATokenIsRememberedUntilItsEnd(t *testing.T) {
	s := newSigner(t, "one")
	v := verifierOf(s)
	brief := s.token(t, map[string]any{"exp": time.Now().Add(-clockLeeway + time.Second).Unix()})
	if _, err := v.verify(brief); err != nil {
		t.Fatalf("within the leeway: %v", err)
	}
	time.Sleep(2 * time.Second) // "exp" counts whole seconds: now it is over, the leeway included
	if _, err := v.verify(brief); err == nil {
		t.Error("accepted after its end")
	}
	long := s.token(t, nil)
	if _, err := v.verify(long); err != nil {
		t.Fatal(err)
	}
	turns := 0
	v.load = func() (*jose.JSONWebKeySet, string, error) {
		turns++
		return newSigner(t, "two").set(), testIssuer, nil
	}
	go v.follow(quiet())
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := v.verify(long); err != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("accepted although its key is withdrawn")
		}
	}
}

// A node's name is in the tokens of Kubernetes 1.30 and later.
func TestATokenNamesTheNode(t *testing.T) {
	s := newSigner(t, "one")
	named := map[string]any{"namespace": "ours", "pod": map[string]any{"name": "load-1", "uid": "uid-1"}}
	for _, node := range []string{"", "node-7"} {
		if node != "" {
			named["node"] = map[string]any{"name": node, "uid": "uid-n"}
		}
		if pod, err := verifierOf(s).verify(s.token(t, map[string]any{"kubernetes.io": named})); err != nil || pod.node != node {
			t.Errorf("%q: %+v, %v", node, pod, err)
		}
	}
}

// The times of a token are written by the API server's clock. Where this host's is wrong, another gateway
// may know better: a pod goes on to the next one when it hears UNAVAILABLE, and not for UNAUTHENTICATED.
func TestATokenIsNotBadBecauseOurClockIsWrong(t *testing.T) {
	s := newSigner(t, "one")
	at := func(off time.Duration) int64 { return time.Now().Add(off).Unix() }
	fresh := map[string]any{}
	expired := map[string]any{"iat": at(-time.Hour), "nbf": at(-time.Hour), "exp": at(-time.Minute)}
	future := map[string]any{"iat": at(time.Minute), "nbf": at(time.Minute), "exp": at(time.Hour)}
	elsewhere := map[string]any{"aud": []string{"https://kubernetes.default.svc"}}
	for what, one := range map[string]struct {
		claims map[string]any
		ours   time.Duration
		server func(context.Context) (time.Time, error)
		want   codes.Code
	}{
		"all is well":                           {fresh, 0, saying(0), codes.OK},
		"we are behind":                         {fresh, -15 * time.Second, saying(0), codes.Unavailable},
		"we are behind, the leeway":             {fresh, -8 * time.Second, saying(0), codes.OK},
		"we are ahead":                          {fresh, 2 * time.Hour, saying(0), codes.Unavailable},
		"we are behind, API server away":        {fresh, -15 * time.Second, noServer, codes.Unauthenticated},
		"expired for both":                      {expired, 0, saying(0), codes.Unauthenticated},
		"expired, and we are ahead":             {expired, time.Hour, saying(0), codes.Unauthenticated},
		"expired, and the API server is behind": {expired, 0, saying(-15 * time.Minute), codes.Unavailable},
		"not yet":                               {future, 0, saying(0), codes.Unauthenticated},
		"another audience, and we are behind":   {elsewhere, -15 * time.Second, saying(0), codes.Unauthenticated},
	} {
		var log bytes.Buffer
		g := &gateway{tokens: verifierOf(s), log: slog.New(slog.NewJSONHandler(&log, nil))}
		g.tokens.clocks = newClocks(one.server)
		g.tokens.clocks.now = func() time.Time { return time.Now().Add(one.ours) }
		_, _ = g.tokens.clocks.fresh(context.Background()) // as when the keys were read
		ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs("authorization", "Bearer "+s.token(t, one.claims)))
		for range 3 {
			if _, err := g.caller(ctx); status.Code(err) != one.want {
				t.Errorf("%s: %v, want %v", what, err, one.want)
			}
		}
		if told := strings.Count(log.String(), "this host's clock"); told != map[bool]int{true: 1}[one.want == codes.Unavailable] {
			t.Errorf("%s: told %d times: %s", what, told, log.String())
		}
	}
}

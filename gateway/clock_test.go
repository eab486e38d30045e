package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func noServer(context.Context) (time.Time, error) { return time.Time{}, errors.New("no API server") }

// saying is an API server whose clock differs from the true time by this.
func saying(off time.Duration) func(context.Context) (time.Time, error) {
	return func(context.Context) (time.Time, error) { return time.Now().Add(off).Truncate(time.Second), nil }
}

// The gateway's own node, and another one.
const ourNode, theirNode = "node-1", "node-2"

func promised(off time.Duration) string {
	return fmt.Sprintf(`{"value":%q}`, inText(time.Now().Add(off)))
}

// A time moves the table's clock unless both clocks say that it is too far ahead: one of them alone may
// be wrong itself. On the gateway's own node its clock is the very one that the time comes from.
func TestATimeThatIsAheadOfBothClocksIsRefused(t *testing.T) {
	const hour = time.Hour
	gateOf := func(lock string) string { return `{"table":"ours/flights"` + lock + `}` }
	five, none := gateOf(`,"lock":{"maxClockSkewSeconds":5}`), gateOf("")
	for what, one := range map[string]struct {
		gate     string
		ours     time.Duration
		server   func(context.Context) (time.Time, error)
		promises time.Duration
		want     codes.Code
		// What a host on the gateway's own node is told, where that is another thing.
		here codes.Code
	}{
		"now":                                {five, 0, saying(0), 0, codes.OK, codes.OK},
		"long ago":                           {five, 0, saying(0), -hour, codes.OK, codes.OK},
		"ahead by less than the bound":       {five, 0, saying(0), 4 * time.Second, codes.OK, codes.OK},
		"ahead by more":                      {five, 0, saying(0), 8 * time.Second, codes.FailedPrecondition, codes.FailedPrecondition},
		"far ahead":                          {five, 0, saying(0), 100 * 365 * 24 * hour, codes.FailedPrecondition, codes.FailedPrecondition},
		"our clock is behind":                {five, -hour, saying(0), 0, codes.OK, codes.OK},
		"the API server's is behind":         {five, 0, saying(-hour), 3 * time.Second, codes.OK, codes.FailedPrecondition},
		"our clock is behind, and it is far": {five, -hour, saying(0), 10 * time.Second, codes.FailedPrecondition, codes.FailedPrecondition},
		"our clock is as far ahead":          {five, hour, saying(0), hour, codes.OK, codes.FailedPrecondition},
		"the API server's is as far ahead":   {five, 0, saying(hour), hour, codes.OK, codes.OK},
		"the API server does not answer":     {five, 0, noServer, hour, codes.OK, codes.OK},
		"no bound in the gate, below 60 s":   {none, 0, saying(0), 55 * time.Second, codes.OK, codes.OK},
		"no bound in the gate, above":        {none, 0, saying(0), 65 * time.Second, codes.FailedPrecondition, codes.FailedPrecondition},
		"no gate":                            {"", 0, saying(0), 65 * time.Second, codes.FailedPrecondition, codes.FailedPrecondition},
		"a bound that the CRD does not know": {gateOf(`,"lock":{"maxClockSkewSeconds":3600}`), 0, saying(0), 65 * time.Second, codes.FailedPrecondition, codes.FailedPrecondition},
		"nor this one":                       {gateOf(`,"lock":{"maxClockSkewSeconds":-1}`), 0, saying(0), 55 * time.Second, codes.OK, codes.OK},
		"one that is no number":              {gateOf(`,"lock":{"maxClockSkewSeconds":"5"}`), 0, saying(0), 55 * time.Second, codes.OK, codes.OK},
	} {
		r, keys := world(t)
		keys["/hudi/control/"+ownTable+"/gate"] = one.gate
		r.clocks = newClocks(one.server)
		r.clocks.now = func() time.Time { return time.Now().Add(one.ours) }
		on := func(who subject, node string) subject { who.node = node; return who }
		for _, who := range []subject{driver, agentA} {
			txn := of(put(own+"clock", promised(one.promises)))
			r.node = ""
			expect(t, r, who.pod+", our node is not known, "+what, on(who, ourNode), txn, one.want)
			expect(t, r, who.pod+", no node is known, "+what, who, txn, one.want)
			r.node = ourNode
			expect(t, r, who.pod+", its node is not known, "+what, who, txn, one.want)
			expect(t, r, who.pod+", on another node, "+what, on(who, theirNode), txn, one.want)
			expect(t, r, who.pod+", on our node, "+what, on(who, ourNode), txn, one.here)
		}
	}
}

func TestTheWholeTransactionIsRefusedAndTheMessageSaysWhy(t *testing.T) {
	r, keys := world(t)
	keys["/hudi/control/"+ownTable+"/gate"] = `{"table":"ours/flights","lock":{"maxClockSkewSeconds":7}}`
	r.clocks = newClocks(saying(0))
	time := inText(time.Now().Add(time.Hour))
	record := of(put(own+"instant/"+time, registered(driver, "inc-1", "writer")), put(own+"clock", fmt.Sprintf(`{"value":%q}`, time)))
	_, err := r.txn(context.Background(), driver, record)
	if status.Code(err) != codes.FailedPrecondition {
		t.Fatal(err)
	}
	for _, word := range []string{"table " + ownTable, time, "7 s", "maxClockSkewSeconds", "(rule clock)", "API server", "set the clock", "pod ours/load-1"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not in: %v", word, err)
		}
	}
	r.node = ourNode
	here := driver
	here.node = ourNode
	_, err = r.txn(context.Background(), here, record)
	for _, word := range []string{"than 7 s", "ahead of the API server's clock", "same node, " + ourNode, "(rule clock)", "set the clock", "pod ours/load-1"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not in: %v", word, err)
		}
	}
	record.Success, record.Failure = nil, record.Success
	expect(t, r, "in the other branch", driver, record, codes.FailedPrecondition)
}

func TestAClockHasATimeOfHudi(t *testing.T) {
	r, _ := world(t)
	r.clocks = newClocks(saying(0))
	for value, want := range map[string]codes.Code{
		`{"value":"20260101000000"}`:                                codes.OK, // without milliseconds
		`{"value":"20260101000000000"}`:                             codes.OK,
		`{"value":"20260101000000000001"}`:                          codes.OK,
		`{"value":"19700101000000000"}`:                             codes.OK,
		`{"value":"99991231235959"}`:                                codes.FailedPrecondition,
		`{"value":"00000000000002"}`:                                codes.InvalidArgument, // of Hudi's own bootstrap
		`{"value":"19691231235959999"}`:                             codes.InvalidArgument,
		`{"value":"20260199000000000"}`:                             codes.InvalidArgument, // no such day
		`{"value":"20260230000000000"}`:                             codes.InvalidArgument,
		`{"value":"20260101240000"}`:                                codes.InvalidArgument,
		`{"value":"20260101006000000"}`:                             codes.InvalidArgument,
		`{"value":"20260101000060000"}`:                             codes.InvalidArgument,
		`{"value":"99999999999999999"}`:                             codes.InvalidArgument,
		`{"Value":"20260101000000000","value":"99991231235959000"}`: codes.FailedPrecondition,
		`{"value":"99991231235959000","Value":"20260101000000000"}`: codes.FailedPrecondition,
		`{"VALUE":"20260101000000000"}`:                             codes.InvalidArgument,
		`{"value":20260101000000000}`:                               codes.InvalidArgument,
		`{"value":"2026-01-01T00:00:00"}`:                           codes.InvalidArgument,
		`{"value":"202601010000000"}`:                               codes.InvalidArgument,
		`{"value":""}`:                                              codes.InvalidArgument,
		`{"value":null}`:                                            codes.InvalidArgument,
		`{}`:                                                        codes.InvalidArgument,
		`"20260101000000000"`:                                       codes.InvalidArgument,
	} {
		expect(t, r, value, driver, of(put(own+"clock", value)), want)
	}
}

// A machine that was paused wakes up with both clocks behind, so what the API server said is old soon.
func TestTheAPIServersTimeIsAskedForWhenItIsNeeded(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	asked, paused := 0, time.Duration(0)
	var fails error
	c := newClocks(func(context.Context) (time.Time, error) { asked++; return now.Add(paused), fails })
	c.now = func() time.Time { return now }
	ahead := func(by time.Duration) bool {
		_, _, said := c.ahead(context.Background(), inText(now.Add(paused+by)), 5*time.Second, false)
		return said
	}
	for what, one := range []struct {
		passes, by time.Duration
		asked      int
		ahead      bool
	}{
		{0, 0, 0, false},
		{0, time.Minute, 1, true},
		{apiTimeFor / 2, time.Minute, 1, true},
		{apiTimeFor, time.Minute, 2, true},
	} {
		now = now.Add(one.passes)
		if got := ahead(one.by); got != one.ahead || asked != one.asked {
			t.Errorf("%d: ahead %v after %d questions, want %v after %d", what, got, asked, one.ahead, one.asked)
		}
	}
	now, paused = now.Add(apiTimeFor), time.Hour // and this host's clock has not noticed
	if ahead(0) || asked != 3 {
		t.Errorf("a host that is right is refused after a pause of ours; %d questions", asked)
	}
	now, paused, fails = now.Add(apiTimeFor), 0, errors.New("away")
	if ahead(time.Minute) || ahead(time.Minute) || asked != 4 {
		t.Errorf("%d questions while the API server is away", asked)
	}
	now, fails = now.Add(noAPITimeFor), nil
	if !ahead(time.Minute) || asked != 5 {
		t.Errorf("not refused when it is back; %d questions", asked)
	}
}

// A date has no fractions, so it may be a second behind: that is no second less of what is allowed.
func TestADateIsTakenForTheLaterTime(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 999e6, time.UTC)
	c := newClocks(func(context.Context) (time.Time, error) { return now.Truncate(time.Second), nil })
	c.now = func() time.Time { return now.Add(-time.Minute) }
	if _, _, ahead := c.ahead(context.Background(), inText(now.Add(5*time.Second)), 5*time.Second, false); ahead {
		t.Error("refused although it is not ahead by more")
	}
}

func TestEveryAnswerOfTheAPIServerTellsItsTime(t *testing.T) {
	date := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	told := date.Format(http.TimeFormat)
	served := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Date"] = []string{told}
		if told == "" {
			w.Header()["Date"] = nil
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	defer served.Close()
	server, _ := asking(t, served)
	if said, err := server.date(context.Background()); err != nil || !said.Equal(date) {
		t.Errorf("%v, %v", said, err)
	}
	told = ""
	if said, err := server.date(context.Background()); err == nil {
		t.Errorf("%v without a date", said)
	}
	another, _ := issuer(t)
	_, ca := asking(t, served)
	if err := os.WriteFile(ca, another, 0o600); err != nil {
		t.Fatal(err)
	}
	told = date.Format(http.TimeFormat)
	stranger, err := newAPIServer(served.URL, ca, server.tokenFile)
	if err != nil {
		t.Fatal(err)
	}
	if said, err := stranger.date(context.Background()); err == nil {
		t.Errorf("%v of a server with any certificate", said)
	}
}

// asking is how the gateway asks that API server, and the file of its authority.
func asking(t *testing.T, served *httptest.Server) (server *apiServer, ca string) {
	t.Helper()
	folder := t.TempDir()
	ca, token := filepath.Join(folder, "ca.crt"), filepath.Join(folder, "token")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: served.Certificate().Raw})
	for file, content := range map[string][]byte{ca: text, token: []byte("t\n")} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server, err := newAPIServer(served.URL, ca, token)
	if err != nil {
		t.Fatal(err)
	}
	return server, ca
}

// slowly accepts connections some time after they were made.
type slowly struct {
	net.Listener
	accepted atomic.Int64
	pause    time.Duration
}

func (s *slowly) Accept() (net.Conn, error) {
	connection, err := s.Listener.Accept()
	s.accepted.Add(1)
	time.Sleep(s.pause)
	return connection, err
}

// A handshake and an answer that take longer together than anybody waits: the connection stays, so that
// the next question has an answer.
func TestASlowAPIServerStillDecides(t *testing.T) {
	served := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(600 * time.Millisecond)
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, strings.Repeat("no", 5000))
	}))
	slow := &slowly{Listener: served.Listener, pause: 600 * time.Millisecond}
	served.Listener = slow
	served.StartTLS()
	defer served.Close()
	server, _ := asking(t, served)
	c := newClocks(server.date)
	ahead := func() bool {
		began := time.Now()
		_, _, said := c.ahead(context.Background(), inText(began.Add(time.Hour)), 5*time.Second, false)
		if took := time.Since(began); took > 3*time.Second { // rpcTimeoutSeconds
			t.Errorf("a pod waits for %s", took)
		}
		return said
	}
	refused := 0
	for range 5 {
		if ahead() {
			refused++
		}
		time.Sleep(noAPITimeFor + 100*time.Millisecond)
	}
	if refused < 2 {
		t.Errorf("refused %d times of 5", refused)
	}
	if n := slow.accepted.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// Nobody waits for an API server that does not answer, beyond its patience, and many do not wait one
// after the other.
func TestASilentAPIServerStopsNobody(t *testing.T) {
	asked := atomic.Int64{}
	c := newClocks(func(ctx context.Context) (time.Time, error) {
		asked.Add(1)
		<-ctx.Done()
		return time.Time{}, ctx.Err()
	})
	began := time.Now()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if _, _, ahead := c.ahead(context.Background(), inText(began.Add(time.Hour)), 5*time.Second, true); ahead {
				t.Error("refused although the API server has said nothing")
			}
		})
	}
	all.Wait()
	if took := time.Since(began); took > 3*time.Second || asked.Load() != 1 {
		t.Errorf("%s, %d questions", took, asked.Load())
	}
	c.mu.Lock()
	c.failed = c.now()
	c.mu.Unlock()
	began = time.Now()
	if c.ahead(context.Background(), inText(began.Add(time.Hour)), 5*time.Second, true); time.Since(began) > 500*time.Millisecond {
		t.Errorf("waited again for %s", time.Since(began))
	}
}

// Of hosts on the gateway's node the API server is asked now and then, and nobody waits for that.
func TestWhatTheAPIServerSaidServesForAMinute(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	answered := make(chan struct{}, 10)
	c := newClocks(func(context.Context) (time.Time, error) {
		defer func() { answered <- struct{}{} }()
		mu.Lock()
		defer mu.Unlock()
		return now, nil
	})
	c.now = func() time.Time { mu.Lock(); defer mu.Unlock(); return now }
	suspect := func(after time.Duration) bool {
		mu.Lock()
		now = now.Add(after)
		at := now
		mu.Unlock()
		return c.suspect(inText(at), time.Second, true)
	}
	if !suspect(0) {
		t.Error("nothing is known, and nothing is asked")
	}
	<-answered
	if _, err := c.fresh(context.Background()); err != nil {
		t.Fatal(err)
	}
	if suspect(dateFor/2) || len(answered) != 0 {
		t.Error("asked again within the minute")
	}
	if suspect(dateFor) {
		t.Error("a host that is right is suspect because the answer is old")
	}
	<-answered
}

func TestAGatewayWhoseClockIsWrongIsNotReady(t *testing.T) {
	for what, one := range map[string]struct {
		ours   time.Duration
		server func(context.Context) (time.Time, error)
		want   int
	}{
		"right":               {0, saying(0), http.StatusOK},
		"within the leeway":   {8 * time.Second, saying(0), http.StatusOK},
		"behind":              {-15 * time.Second, saying(0), http.StatusServiceUnavailable},
		"ahead":               {15 * time.Second, saying(0), http.StatusServiceUnavailable},
		"the other one's":     {0, saying(time.Hour), http.StatusServiceUnavailable},
		"the API server away": {-time.Hour, noServer, http.StatusOK},
	} {
		g, _ := before(t, &large{})
		c := newClocks(one.server)
		c.now = func() time.Time { return time.Now().Add(one.ours) }
		g.rules.clocks, g.tokens.clocks = c, c
		_, _ = c.fresh(context.Background())
		answer := httptest.NewRecorder()
		g.probes().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if answer.Code != one.want {
			t.Errorf("%s: %d, want %d: %s", what, answer.Code, one.want, answer.Body)
		}
		if one.want != http.StatusOK && !strings.Contains(answer.Body.String(), "this host's clock, ") {
			t.Errorf("%s: %s", what, answer.Body)
		}
	}
	// What was told before a pause of this machine is behind: it is asked anew.
	now := time.Now()
	c := newClocks(func(context.Context) (time.Time, error) { return now, nil })
	c.now = func() time.Time { return now }
	c.said(now.Add(-time.Hour), 0)
	c.heard = now.Add(-apiTimeFor)
	if err := c.differ(context.Background()); err != nil {
		t.Error(err)
	}
}

// The keys' answers have dates, too: the clock is known before the first pod asks.
func TestTheAnswerWithTheKeysTellsTheTime(t *testing.T) {
	served := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == discoveryPath {
			fmt.Fprintf(w, `{"issuer":%q}`, testIssuer)
			return
		}
		fmt.Fprint(w, `{"keys":[]}`)
	}))
	defer served.Close()
	server, _ := asking(t, served)
	c := newClocks(noServer)
	server.said = c.said
	if _, issuer, err := server.keys(); err != nil || issuer != testIssuer {
		t.Fatalf("%q, %v", issuer, err)
	}
	if at, known := c.latest(); !known || apart(time.Now(), at) > 2*time.Second {
		t.Errorf("%v, %v", at, known)
	}
}

package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
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

func promised(off time.Duration) string {
	return fmt.Sprintf(`{"value":%q}`, inText(time.Now().Add(off)))
}

// A time moves the table's clock unless both clocks say that it is too far ahead: one of them alone may
// be wrong itself.
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
	}{
		"now":                                {five, 0, saying(0), 0, codes.OK},
		"long ago":                           {five, 0, saying(0), -hour, codes.OK},
		"ahead by less than the bound":       {five, 0, saying(0), 4 * time.Second, codes.OK},
		"ahead by more":                      {five, 0, saying(0), 8 * time.Second, codes.FailedPrecondition},
		"far ahead":                          {five, 0, saying(0), 100 * 365 * 24 * hour, codes.FailedPrecondition},
		"our clock is behind":                {five, -hour, saying(0), 0, codes.OK},
		"the API server's is behind":         {five, 0, saying(-hour), 3 * time.Second, codes.OK},
		"our clock is behind, and it is far": {five, -hour, saying(0), 10 * time.Second, codes.FailedPrecondition},
		"our clock is as far ahead":          {five, hour, saying(0), hour, codes.OK},
		"the API server's is as far ahead":   {five, 0, saying(hour), hour, codes.OK},
		"the API server does not answer":     {five, 0, noServer, hour, codes.OK},
		"no bound in the gate, below 60 s":   {none, 0, saying(0), 55 * time.Second, codes.OK},
		"no bound in the gate, above":        {none, 0, saying(0), 65 * time.Second, codes.FailedPrecondition},
		"no gate":                            {"", 0, saying(0), 65 * time.Second, codes.FailedPrecondition},
		"a bound that the CRD does not know": {gateOf(`,"lock":{"maxClockSkewSeconds":3600}`), 0, saying(0), 65 * time.Second, codes.FailedPrecondition},
		"nor this one":                       {gateOf(`,"lock":{"maxClockSkewSeconds":-1}`), 0, saying(0), 55 * time.Second, codes.OK},
		"one that is no number":              {gateOf(`,"lock":{"maxClockSkewSeconds":"5"}`), 0, saying(0), 55 * time.Second, codes.OK},
	} {
		r, keys := world(t)
		keys["/hudi/control/"+ownTable+"/gate"] = one.gate
		r.clocks = newClocks(one.server)
		r.clocks.now = func() time.Time { return time.Now().Add(one.ours) }
		for _, who := range []subject{driver, agentA} {
			expect(t, r, who.pod+", "+what, who, of(put(own+"clock", promised(one.promises))), one.want)
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
		`{"value":"00000000000002"}`:                                codes.OK, // of a bootstrap
		`{"value":"99991231235959"}`:                                codes.FailedPrecondition,
		`{"value":"99999999999999999"}`:                             codes.FailedPrecondition,
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
		_, _, said := c.ahead(context.Background(), inText(now.Add(paused+by)), 5*time.Second)
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
	if _, _, ahead := c.ahead(context.Background(), inText(now.Add(5*time.Second)), 5*time.Second); ahead {
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
	folder := t.TempDir()
	ca, token := filepath.Join(folder, "ca.crt"), filepath.Join(folder, "token")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: served.Certificate().Raw})
	for file, content := range map[string][]byte{ca: text, token: []byte("t\n")} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := apiServer{served.URL, ca, token}
	if said, err := server.date(context.Background()); err != nil || !said.Equal(date) {
		t.Errorf("%v, %v", said, err)
	}
	told = ""
	if said, err := server.date(context.Background()); err == nil {
		t.Errorf("%v without a date", said)
	}
	if said, err := (apiServer{served.URL, token, token}).date(context.Background()); err == nil {
		t.Errorf("%v of a server with any certificate", said)
	}
}

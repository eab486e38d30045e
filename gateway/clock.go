package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// Between these the CRD allows lock.maxClockSkewSeconds. The larger one counts where the gate has none.
	minSkewSeconds = 1
	maxSkewSeconds = 60
	// An answer of the API server speaks against a host for this long. Longer would be wrong: a machine
	// that was paused wakes up with both clocks behind.
	apiTimeFor = time.Second
	// Nobody waits for this long after a question without an answer, and nothing is refused. Longer would
	// let through what an API server that is slow now and then could have told.
	noAPITimeFor = time.Second
	// A pod gives up a request after three seconds (rpcTimeoutSeconds).
	apiPatience = time.Second
	// A question that nobody waits for any more may still be answered, for the next one who asks.
	questionFor = 3 * time.Second
	// An answer of the API server is used for this long while it accuses no host: until then the time
	// that has passed is added. Its clock may be set, so it is asked again.
	dateFor = time.Minute
)

// hudiTime is an instant of Hudi: yyyyMMddHHmmss, as older tables have it, or with milliseconds, and
// what Hudi may append. They are ordered as text.
var hudiTime = regexp.MustCompile(`^[0-9]{14}([0-9]{3,})?$`)

// isHudiTime says whether every reader understands it as a time: a pod whose own time module does not
// would fail in each acquire. What Hudi calls its own bootstrap (of the year 0) promises no time.
func isHudiTime(text string) bool {
	if !hudiTime.MatchString(text) {
		return false
	}
	at, err := time.Parse("20060102150405", text[:14])
	return err == nil && at.Year() >= 1970
}

// inText is the time as an instant of Hudi.
func inText(at time.Time) string {
	return strings.Replace(at.UTC().Format("20060102150405.000"), ".", "", 1)
}

// clocks are the two with which the times of pods are compared: this host's, and the API server's.
type clocks struct {
	now func() time.Time
	// api asks the API server what time it is.
	api func(context.Context) (time.Time, error)

	mu     sync.Mutex
	told   time.Time     // by the API server, at most
	asked  time.Time     // when told was asked for
	heard  time.Time     // when told was answered
	failed time.Time     // when nobody had an answer last
	asking chan struct{} // of the question that is asked now: closed when it is over
	warned time.Time
}

func newClocks(api func(context.Context) (time.Time, error)) *clocks {
	return &clocks{now: time.Now, api: api}
}

// errNoDate: what the API server's clock says is not known now.
var errNoDate = errors.New("the API server does not say what time it is")

// said records a date from the API server, and how long the answer took. It bounds the server's clock: a
// date has no fractions of a second, and the answer was on its way.
func (c *clocks) said(date time.Time, took time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = c.now() // its monotonic reading: this host's clock may be set meanwhile
	c.told, c.asked, c.failed = date.Add(time.Second), c.heard.Add(-took), time.Time{}
}

// ask begins a question unless one is asked already; c.mu is held. It is nobody's own: all wait for the
// same answer, and one that comes too late for them serves the next one.
func (c *clocks) ask() <-chan struct{} {
	if c.asking == nil {
		done := make(chan struct{})
		c.asking = done
		go func() {
			within, cancel := context.WithTimeout(context.Background(), questionFor)
			defer cancel()
			began := c.now()
			date, err := c.api(within)
			if err == nil {
				c.said(date, c.now().Sub(began))
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			if err != nil {
				c.failed = c.now()
			}
			c.asking = nil
			close(done)
		}()
	}
	return c.asking
}

// fresh is what the API server says now. It is asked when that is needed, and not waited for longer than
// apiPatience.
func (c *clocks) fresh(ctx context.Context) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isFresh() {
		if c.isAway() {
			return time.Time{}, errNoDate
		}
		done := c.ask()
		c.mu.Unlock()
		patience := time.NewTimer(apiPatience)
		select {
		case <-done:
		case <-patience.C:
		case <-ctx.Done():
		}
		gaveUp := !patience.Stop()
		c.mu.Lock()
		if !c.isFresh() {
			if gaveUp {
				c.failed = c.now()
			}
			return time.Time{}, errNoDate
		}
	}
	return c.told.Add(c.now().Sub(c.asked)), nil
}

func (c *clocks) isFresh() bool { return !c.heard.IsZero() && c.now().Sub(c.heard) < apiTimeFor }

func (c *clocks) isAway() bool { return !c.failed.IsZero() && c.now().Sub(c.failed) < noAPITimeFor }

// latest is the API server's time, derived from its last answer without waiting. An old answer is replaced
// by the next one. It is never used to refuse a request: see apiTimeFor.
func (c *clocks) latest() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if (c.heard.IsZero() || c.now().Sub(c.heard) >= dateFor) && !c.isAway() {
		c.ask()
	}
	return c.told.Add(c.now().Sub(c.asked)), !c.heard.IsZero()
}

// suspect says whether a time may be ahead: by our own clock, or, where that may be the very clock which
// the time comes from, by what the API server said last. Nothing is asked for the times of nearly all hosts.
func (c *clocks) suspect(time string, skew time.Duration, sameHost bool) bool {
	if !sameHost {
		return later(time, c.now().Add(skew))
	}
	server, known := c.latest()
	return !known || later(time, server.Add(skew))
}

// ahead says whether a time is ahead by more than the skew, and what the clocks say: the API server's,
// and ours, unless the time comes from this very host, of which our clock is no second witness. One that is
// not known is not compared: a wrong clock of ours must stop nobody, and a silent API server neither.
func (c *clocks) ahead(ctx context.Context, time string, skew time.Duration, sameHost bool) (ours, theirs string, ahead bool) {
	if !c.suspect(time, skew, sameHost) {
		return "", "", false
	}
	server, err := c.fresh(ctx)
	if err != nil || !later(time, server.Add(skew)) {
		return "", "", false
	}
	return inText(c.now()), inText(server), true
}

// later compares as Hudi does, for which a time without milliseconds ends in 999.
func later(time string, than time.Time) bool {
	if len(time) == 14 {
		time += "999"
	}
	return time > inText(than)
}

// differ says that this host's clock and the API server's are further apart than tokens allow. Nobody
// waits, unless they seem to be.
func (c *clocks) differ(ctx context.Context) error {
	server, known := c.latest()
	if !known || apart(c.now(), server) <= clockLeeway {
		return nil
	}
	server, err := c.fresh(ctx)
	if own := c.now(); err == nil && apart(own, server) > clockLeeway {
		return fmt.Errorf("this host's clock, %s, and the API server's, %s, differ by more than %s: set the one that is wrong", inText(own), inText(server), clockLeeway)
	}
	return nil
}

// apart is by how much two clocks differ at least; that of the API server is up to a second behind what is known of it.
func apart(own, server time.Time) time.Duration {
	return max(own.Sub(server), server.Add(-time.Second).Sub(own))
}

// warns says whether it is told now that the clocks differ: once in a minute.
func (c *clocks) warns() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.now(); c.warned.IsZero() || now.Sub(c.warned) >= time.Minute {
		c.warned = now
		return true
	}
	return false
}

// date is the API server's clock, as each of its answers tells it, a refusal too.
func (a *apiServer) date(ctx context.Context) (time.Time, error) {
	answer, err := a.ask(ctx, discoveryPath)
	if err != nil {
		return time.Time{}, err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<20)) // or the connection is not used again
	return http.ParseTime(answer.Header.Get("Date"))
}

// clock checks what a pod puts at `clock`: everybody else waits until their own clocks have passed it.
func (r *rules) clock(ctx context.Context, s subject, table string, put *pb.PutRequest) error {
	var fields map[string]json.RawMessage // by their exact names, as in registrationIn
	var promised string
	if json.Unmarshal(put.Value, &fields) != nil || json.Unmarshal(fields["value"], &promised) != nil || !isHudiTime(promised) {
		return status.Errorf(codes.InvalidArgument,
			"value of %q: value must be a time of Hudi, yyyyMMddHHmmss with or without milliseconds, of 1970 or later, not %q", put.Key, clip([]byte(promised)))
	}
	sameHost := r.node != "" && s.node == r.node
	if !r.clocks.suspect(promised, minSkewSeconds*time.Second, sameHost) {
		return nil
	}
	gate, err := r.gate(ctx, table)
	if err != nil {
		return err
	}
	ours, theirs, ahead := r.clocks.ahead(ctx, promised, time.Duration(gate.skew)*time.Second, sameHost)
	if !ahead {
		return nil
	}
	than := fmt.Sprintf("the gateway's clock, %s, and of the API server's, %s", ours, theirs)
	if sameHost {
		than = fmt.Sprintf("the API server's clock, %s (the gateway is on the same node, %s: its clock, %s, does not count)", theirs, s.node, ours)
	}
	return status.Errorf(codes.FailedPrecondition,
		"clock of table %s: %s is more than %d s (maxClockSkewSeconds) ahead of %s (rule clock): set the clock of the host of pod %s/%s",
		table, promised, gate.skew, than, s.namespace, s.pod)
}

// gate is what the rules use of a table's gate.
type gate struct {
	mode string
	// How many seconds the clock of a host of the table may be ahead.
	skew int
}

func (r *rules) gate(ctx context.Context, table string) (gate, error) {
	made := gate{skew: maxSkewSeconds}
	answers, err := r.read(ctx, &pb.RangeRequest{Key: r.contract.key(control, table, "gate")})
	if err != nil {
		return made, err
	}
	for _, kv := range answers[0].Kvs {
		var fields map[string]json.RawMessage
		var lock struct {
			MaxClockSkewSeconds int `json:"maxClockSkewSeconds"`
		}
		if json.Unmarshal(kv.Value, &fields) != nil {
			continue
		}
		_ = json.Unmarshal(fields["mode"], &made.mode)
		if json.Unmarshal(fields["lock"], &lock) == nil && lock.MaxClockSkewSeconds >= minSkewSeconds && lock.MaxClockSkewSeconds < maxSkewSeconds {
			made.skew = lock.MaxClockSkewSeconds
		}
	}
	return made, nil
}

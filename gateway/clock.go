package main

import (
	"context"
	"encoding/json"
	"errors"
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
	// An answer of the API server says for this long what its clock is, and none for how long it is not
	// asked again. Longer would be wrong: a machine that was paused wakes up with both clocks behind.
	apiTimeFor   = time.Second
	noAPITimeFor = 10 * time.Second
	// A pod gives up a request after three seconds (rpcTimeoutSeconds).
	apiPatience = time.Second
)

// hudiTime is an instant of Hudi: yyyyMMddHHmmss, as older tables have it, or with milliseconds, and
// what Hudi may append. They are ordered as text.
var hudiTime = regexp.MustCompile(`^[0-9]{14}([0-9]{3,})?$`)

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
	told   time.Time // by the API server, at most
	asked  time.Time // when told was asked for
	failed time.Time
}

func newClocks(api func(context.Context) (time.Time, error)) *clocks {
	return &clocks{now: time.Now, api: api}
}

// ahead says whether a time is ahead of both clocks by more than the skew, and what these say. One that
// is not known is not compared: a wrong clock of ours must stop nobody.
func (c *clocks) ahead(ctx context.Context, time string, skew time.Duration) (ours, theirs string, ahead bool) {
	own := c.now()
	if !later(time, own.Add(skew)) {
		return "", "", false
	}
	server, err := c.server(ctx)
	if err != nil || !later(time, server.Add(skew)) {
		return "", "", false
	}
	return inText(own), inText(server), true
}

// later compares as Hudi does, for which a time without milliseconds ends in 999.
func later(time string, than time.Time) bool {
	if len(time) == 14 {
		time += "999"
	}
	return time > inText(than)
}

// server is what the API server's clock says now, at most: a date has no fractions of a second, and the
// answer was on its way. It is asked for when it is needed, by one request at a time.
func (c *clocks) server(ctx context.Context) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now() // its monotonic reading: this host's clock may be set meanwhile
	if !c.failed.IsZero() && now.Sub(c.failed) < noAPITimeFor {
		return time.Time{}, errors.New("the API server has not answered")
	}
	if c.asked.IsZero() || now.Sub(c.asked) >= apiTimeFor {
		// Not the caller's cancellation: others may wait for the same answer.
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), apiPatience)
		defer cancel()
		date, err := c.api(within)
		if err != nil {
			c.failed = c.now()
			return time.Time{}, err
		}
		c.told, c.asked, c.failed = date.Add(time.Second), now, time.Time{}
	}
	return c.told.Add(c.now().Sub(c.asked)), nil
}

// date is the API server's clock, as each of its answers tells it, a refusal too.
func (a apiServer) date(ctx context.Context) (time.Time, error) {
	client, err := a.client()
	if err != nil {
		return time.Time{}, err
	}
	defer client.CloseIdleConnections()
	answer, err := a.ask(ctx, client, discoveryPath)
	if err != nil {
		return time.Time{}, err
	}
	defer answer.Body.Close()
	return http.ParseTime(answer.Header.Get("Date"))
}

// clock checks what a pod puts at `clock`: everybody else waits until their own clocks have passed it.
func (r *rules) clock(ctx context.Context, s subject, table string, put *pb.PutRequest) error {
	var fields map[string]json.RawMessage // by their exact names, as in registrationIn
	var promised string
	if json.Unmarshal(put.Value, &fields) != nil || json.Unmarshal(fields["value"], &promised) != nil || !hudiTime.MatchString(promised) {
		return status.Errorf(codes.InvalidArgument, "value of %q: value must be a time of Hudi, a text of 14 digits, or of 17 and more", put.Key)
	}
	if !later(promised, r.clocks.now().Add(minSkewSeconds*time.Second)) {
		return nil // nothing is asked for the times of nearly all hosts
	}
	skew, err := r.skew(ctx, table)
	if err != nil {
		return err
	}
	ours, theirs, ahead := r.clocks.ahead(ctx, promised, time.Duration(skew)*time.Second)
	if !ahead {
		return nil
	}
	return status.Errorf(codes.FailedPrecondition,
		"clock of table %s: %s is more than %d s (maxClockSkewSeconds) ahead of the gateway's clock, %s, and of the API server's, %s (rule clock): "+
			"set the clock of the host of pod %s/%s",
		table, promised, skew, ours, theirs, s.namespace, s.pod)
}

// skew is how many seconds the clock of a host of the table may be ahead.
func (r *rules) skew(ctx context.Context, table string) (int, error) {
	answers, err := r.read(ctx, &pb.RangeRequest{Key: r.contract.key(control, table, "gate")})
	if err != nil {
		return 0, err
	}
	for _, kv := range answers[0].Kvs {
		var gate struct {
			Lock struct {
				MaxClockSkewSeconds int `json:"maxClockSkewSeconds"`
			} `json:"lock"`
		}
		if json.Unmarshal(kv.Value, &gate) == nil && gate.Lock.MaxClockSkewSeconds >= minSkewSeconds && gate.Lock.MaxClockSkewSeconds < maxSkewSeconds {
			return gate.Lock.MaxClockSkewSeconds, nil
		}
	}
	return maxSkewSeconds, nil
}

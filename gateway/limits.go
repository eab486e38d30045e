package main

import (
	"context"
	"math"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// limits bound what one table may cost the others: bytes that are written, stored and read, keys that
// are stored, requests, streams, watches and leases, and memory of this process.
//
// Each limit is that of all replicas together, and each replica grants its share; only what is stored,
// which is counted in etcd, and the memory of this process are not divided.
type limits struct {
	replicas                   int
	bytesPerSecond, burstBytes float64
	requestsPerSecond          float64
	watches                    int
	keys, storedBytes          int64
	// Limit for the answers to one table, and so for one answer; limit for all answers.
	answerBytes, memoryBytes int64

	mu    sync.Mutex
	users map[string]*usage
	held  int64         // bytes of answers that are reserved
	freed chan struct{} // closed when some are given back
	// Closes connections of clients that do not read, while memory is needed; nil: there are none.
	giveWay func(needed func() bool)
}

// payer is who a request counts against: the pod, at one of its tables, and the table, which all of
// its pods share. A pod that is known at no table shares with the others of its namespace.
type payer struct{ pod, owner string }

func (p payer) both() [2]string { return [2]string{p.pod, p.owner} }

// usage is that of one pod at one of its tables, of one pod, of one table, or of a namespace.
type usage struct {
	bytes, requests, read, told, streams, leaseCalls *rate.Limiter
	watches, open, calls, waiting                    int
	leases                                           map[int64]lease
	size                                             size
	held                                             int64
	rooms                                            map[string]int64 // what an answer needed last
	seen                                             time.Time
}

type lease struct {
	ttl   int64
	until time.Time
	owner string
}

// size is what a table holds: at the last count, and put since then.
type size struct {
	keys, bytes, put int64
	counted          time.Time // zero: not yet
	weighed          bool      // the bytes were counted once
	counting         bool
}

const (
	idleAfter     = 10 * time.Minute
	countInterval = 10 * time.Second
	countTimeout  = 3 * time.Second
	// Bytes are read to be counted, keys are not: only when so much was put that it may matter.
	weighAfter = 1 << 20
	// The longest that a HudiTable may ask for (spec.lock.leaseSeconds).
	maxLeaseTTL = 300
	// A pod takes a lease before it is known at a table, and a new one where the old one has ended.
	freeLeases, leasesPerTable, leasesOfTable = 64, 8, 2000
	// A waiter watches the lock and the ticket before its own, each on a stream; a heartbeat is one, too.
	freeStreams, streamsPerTable, streamsOfTable = 64, 8, 2000
	// Streams of one connection, which carries all requests of a process: enough for a pod with 248 tables.
	// A client without a token has none. The limit of a pod holds for all of its connections together.
	streamsOfConnection = 2048
	// Calls with one message, which grpc holds before it is looked at: as many of a pod as it has streams.
	callsOfTable                          = 400
	streamsPerSecond, leaseCallsPerSecond = 1000, 600
	readPerSecond, burstRead              = 16 << 20, 128 << 20
	// Limit of a table, as a multiple of the limit of one pod.
	podsPerTable  = 5
	watchesOfPods = 32
	// So many operations or comparisons cost as much as a request with one.
	operationsPerRequest = 8
	// Bytes that etcd keeps for a change besides key and value: its revision, and its position in the page.
	revisionBytes = 64
	// Time that a request waits for memory, and number of a table's requests that may wait at once.
	answerPatience = 500 * time.Millisecond
	maxWaiting     = 512
)

func newLimits() *limits {
	return &limits{
		replicas: 1, bytesPerSecond: 128 << 10, burstBytes: 8 << 20, requestsPerSecond: 600, watches: 64,
		keys: 20000, storedBytes: 12 << 20, answerBytes: 16 << 20, memoryBytes: 64 << 20,
		users: map[string]*usage{}, freed: make(chan struct{}),
	}
}

// share is this replica's part of a limit.
func (l *limits) share(total float64) float64 { return max(1, total/float64(l.replicas)) }

func (l *limits) number(total int) int { return int(math.Ceil(l.share(float64(total)))) }

// many says how much more a table, or a namespace, has than one pod.
func many(who string, times float64) float64 {
	if strings.HasPrefix(who, "pod ") {
		return 1
	}
	return times
}

// of returns the usage of a payer's pod or owner; l.mu is held.
func (l *limits) of(who string) *usage {
	now := time.Now()
	found, ok := l.users[who]
	if !ok {
		for name, other := range l.users {
			if now.Sub(other.seen) > idleAfter && other.watches == 0 && other.open == 0 && other.calls == 0 && other.waiting == 0 && other.held == 0 {
				delete(l.users, name)
			}
		}
		limiter := func(perSecond, burst float64) *rate.Limiter {
			return rate.NewLimiter(rate.Limit(l.share(perSecond)), int(l.share(burst)))
		}
		requests, read := l.requestsPerSecond*many(who, podsPerTable), readPerSecond*many(who, podsPerTable)
		found = &usage{
			bytes:      limiter(l.bytesPerSecond, l.burstBytes),
			requests:   limiter(requests, 4*requests),
			read:       limiter(read, burstRead*many(who, podsPerTable)),
			streams:    limiter(streamsPerSecond, 4*streamsPerSecond),
			leaseCalls: limiter(leaseCallsPerSecond, 4*leaseCallsPerSecond),
			told:       rate.NewLimiter(1, 20),
			leases:     map[int64]lease{}, rooms: map[string]int64{},
		}
		l.users[who] = found
	}
	found.seen = now
	return found
}

// exceeded is the answer "later": who has reached which limit, and which rule of
// docs/design/identities.md that is.
func exceeded(who, what string, limit any, rule string) error {
	return status.Errorf(codes.ResourceExhausted, "%s has reached its limit of %s (%v, rule %s)", who, what, limit, rule)
}

// reached says whether an error is one of a limit of the gateway's own.
func reached(err error) bool {
	return status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), " has reached its limit of ")
}

// request: operations are those of a transaction, comparisons included.
func (l *limits) request(p payer, operations int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, who := range p.both() {
		use := l.of(who)
		if use.read.Tokens() < 0 {
			return exceeded(who, "bytes read a second", int64(use.read.Limit()), "read")
		}
		if !use.requests.AllowN(time.Now(), 1+operations/operationsPerRequest) {
			return exceeded(who, "requests a second", float64(use.requests.Limit()), "requests")
		}
	}
	return nil
}

// answered: so many bytes were read; the next request waits until they are paid for.
func (l *limits) answered(p payer, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, who := range p.both() {
		read := l.of(who).read
		read.ReserveN(time.Now(), min(bytes, read.Burst()))
	}
}

// told: what a watch has told is read, too; a stream that tells more ends.
func (l *limits) told(p payer, bytes int) error {
	l.answered(p, bytes)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, who := range p.both() {
		if use := l.of(who); use.read.Tokens() < 0 {
			return exceeded(who, "bytes read a second", int64(use.read.Limit()), "read")
		}
	}
	return nil
}

// tells reports whether to log a refusal. Logging is rate limited for each client.
func (l *limits) tells(who string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.of(who).told.Allow()
}

func (l *limits) write(table string, size int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	use := l.of(table)
	if !use.bytes.AllowN(time.Now(), size) {
		return exceeded(table, "bytes put and deleted a second", int64(use.bytes.Limit()), "bytes")
	}
	use.size.put += int64(size)
	return nil
}

// stored refuses a put when the table held too much at the last count, which is made at most once per
// countInterval, on a time of its own: not that of the request, which the pod may cut short.
func (l *limits) stored(ctx context.Context, table string, count func(ctx context.Context, weigh bool) (keys, bytes int64, err error)) error {
	l.mu.Lock()
	use := l.of(table)
	due := !use.size.counting && (use.size.counted.IsZero() || time.Since(use.size.counted) > countInterval)
	weigh := !use.size.weighed || use.size.put >= weighAfter
	put := use.size.put
	use.size.counting = use.size.counting || due
	l.mu.Unlock()
	if due {
		own, cancel := context.WithTimeout(context.WithoutCancel(ctx), countTimeout)
		keys, bytes, err := count(own, weigh)
		cancel()
		l.mu.Lock()
		use.size.counting = false
		if err == nil {
			use.size.keys, use.size.counted = keys, time.Now()
		}
		if err == nil && weigh {
			use.size.bytes, use.size.weighed = bytes, true
			use.size.put -= put
		}
		l.mu.Unlock()
		if err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if use.size.keys > l.keys {
		return exceeded(table, "keys", l.keys, "keys")
	}
	if use.size.bytes > l.storedBytes {
		return exceeded(table, "stored bytes", l.storedBytes, "stored")
	}
	return nil
}

// watch counts a watch of a pod at a table, or takes it back.
func (l *limits) watch(p payer, more int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, who := range p.both() {
		limit := l.number(int(float64(l.watches) * many(who, watchesOfPods)))
		if more > 0 && l.of(who).watches >= limit {
			return exceeded(who, "watches", limit, "watches")
		}
	}
	for _, who := range p.both() {
		l.of(who).watches += more
	}
	return nil
}

// open counts a stream of a pod that is known at so many tables, until it is closed.
func (l *limits) open(p payer, tables int) (closed func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pod, owner := l.of(p.pod), l.of(p.owner)
	if limit := l.number(freeStreams + streamsPerTable*tables); pod.open >= limit {
		return nil, exceeded(p.pod, "open streams", limit, "streams")
	}
	if limit := l.number(streamsOfTable); owner.open >= limit {
		return nil, exceeded(p.owner, "open streams", limit, "streams")
	}
	if !owner.streams.Allow() {
		return nil, exceeded(p.owner, "streams opened a second", float64(owner.streams.Limit()), "streams")
	}
	pod.open++
	owner.open++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		pod.open--
		owner.open--
	}), nil
}

// call counts a call with one message of a pod that is known at so many tables, until it has ended.
func (l *limits) call(p payer, tables int) (ended func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	pod, owner := l.of(p.pod), l.of(p.owner)
	if limit := l.number(freeStreams + streamsPerTable*tables); pod.calls >= limit {
		return nil, exceeded(p.pod, "calls at once", limit, "calls")
	}
	if limit := l.number(callsOfTable); owner.calls >= limit {
		return nil, exceeded(p.owner, "calls at once", limit, "calls")
	}
	pod.calls++
	owner.calls++
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		pod.calls--
		owner.calls--
	}), nil
}

// leaseCall is a grant, a heartbeat or a revocation.
func (l *limits) leaseCall(p payer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if use := l.of(p.owner); !use.leaseCalls.Allow() {
		return exceeded(p.owner, "calls for leases a second", float64(use.leaseCalls.Limit()), "leases")
	}
	return nil
}

// beat is a request, too.
func (l *limits) beat(p payer) error {
	if err := l.request(p, 0); err != nil {
		return err
	}
	return l.leaseCall(p)
}

// grant counts a lease of a pod that is known at so many tables. Its id is made when there is room.
func (l *limits) grant(p payer, tables int, id func() int64, ttl int64) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for _, who := range p.both() {
		use := l.of(who)
		for other, have := range use.leases {
			if now.After(have.until) {
				delete(use.leases, other)
			}
		}
		limit := l.number(freeLeases + leasesPerTable*tables)
		if who == p.owner {
			limit = l.number(leasesOfTable)
		}
		if len(use.leases) >= limit {
			return 0, exceeded(who, "leases", limit, "leases")
		}
	}
	made := id()
	for _, who := range p.both() {
		l.of(who).leases[made] = lease{ttl, now.Add(time.Duration(ttl) * time.Second), p.owner}
	}
	return made, nil
}

func (l *limits) prolong(pod string, id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if have, ok := l.of(pod).leases[id]; ok {
		have.until = time.Now().Add(time.Duration(have.ttl) * time.Second)
		l.of(pod).leases[id], l.of(have.owner).leases[id] = have, have
	}
}

func (l *limits) revoked(pod string, id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if have, ok := l.of(pod).leases[id]; ok {
		delete(l.of(pod).leases, id)
		delete(l.of(have.owner).leases, id)
	}
}

package main

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// limits bound what one table may cost the others, in each replica: bytes that are written, stored
// and read, keys that are stored, requests, watches and leases.
type limits struct {
	bytesPerSecond, burstBytes float64
	requestsPerSecond          float64
	watches                    int
	keys, storedBytes          int64

	mu    sync.Mutex
	users map[string]*usage
}

// usage is that of one table, of one pod, or of one pod at one of its tables.
type usage struct {
	bytes, requests, read, told *rate.Limiter
	watches                     int
	leases                      map[int64]lease
	size                        size
	seen                        time.Time
}

type lease struct {
	ttl   int64
	until time.Time
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
	freeLeases, leasesPerTable = 64, 8
	readPerSecond, burstRead   = 8 << 20, 64 << 20
	// So many operations or comparisons cost as much as a request with one.
	operationsPerRequest = 8
)

func newLimits() *limits {
	return &limits{
		bytesPerSecond: 64 << 10, burstBytes: 4 << 20, requestsPerSecond: 300, watches: 32,
		keys: 20000, storedBytes: 64 << 20, users: map[string]*usage{},
	}
}

// of returns the usage of one table, of one pod, or of one pod at one table; l.mu is held.
func (l *limits) of(who string) *usage {
	now := time.Now()
	found, ok := l.users[who]
	if !ok {
		for name, other := range l.users {
			if now.Sub(other.seen) > idleAfter && other.watches == 0 {
				delete(l.users, name)
			}
		}
		found = &usage{
			bytes:    rate.NewLimiter(rate.Limit(l.bytesPerSecond), int(l.burstBytes)),
			requests: rate.NewLimiter(rate.Limit(l.requestsPerSecond), int(4*l.requestsPerSecond)),
			read:     rate.NewLimiter(readPerSecond, burstRead),
			told:     rate.NewLimiter(1, 20),
			leases:   map[int64]lease{},
		}
		l.users[who] = found
	}
	found.seen = now
	return found
}

func exceeded(who, what string, limit any) error {
	return status.Errorf(codes.ResourceExhausted, "%s has reached its limit of %s (%v)", who, what, limit)
}

// request: operations are those of a transaction, comparisons included.
func (l *limits) request(who string, operations int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	use := l.of(who)
	if use.read.Tokens() < 0 {
		return exceeded(who, "bytes read a second", readPerSecond)
	}
	if !use.requests.AllowN(time.Now(), 1+operations/operationsPerRequest) {
		return exceeded(who, "requests a second", l.requestsPerSecond)
	}
	return nil
}

// answered: so many bytes were read; the next request waits until they are paid for.
func (l *limits) answered(who string, bytes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(who).read.ReserveN(time.Now(), min(bytes, burstRead))
}

// tells says whether a refusal is logged: somebody who is refused all the time fills no log.
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
		return exceeded("table "+table, "bytes a second", l.bytesPerSecond)
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
		return exceeded("table "+table, "keys", l.keys)
	}
	if use.size.bytes > l.storedBytes {
		return exceeded("table "+table, "stored bytes", l.storedBytes)
	}
	return nil
}

func (l *limits) watch(who string, more int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	use := l.of(who)
	if more > 0 && use.watches >= l.watches {
		return exceeded(who, "watches", l.watches)
	}
	use.watches += more
	return nil
}

// grant counts a lease of a pod that is known at so many tables.
func (l *limits) grant(who string, tables int, id, ttl int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	use, now := l.of(who), time.Now()
	for other, have := range use.leases {
		if now.After(have.until) {
			delete(use.leases, other)
		}
	}
	if limit := freeLeases + leasesPerTable*tables; len(use.leases) >= limit {
		return exceeded(who, "leases", limit)
	}
	use.leases[id] = lease{ttl, now.Add(time.Duration(ttl) * time.Second)}
	return nil
}

func (l *limits) prolong(who string, id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	use := l.of(who)
	if have, ok := use.leases[id]; ok {
		use.leases[id] = lease{have.ttl, time.Now().Add(time.Duration(have.ttl) * time.Second)}
	}
}

func (l *limits) revoked(who string, id int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of(who).leases, id)
}

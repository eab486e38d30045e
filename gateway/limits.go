package main

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// limits bound what one table may cost the others, in each replica: bytes that are written, keys that
// are stored, requests, watches and leases.
type limits struct {
	bytesPerSecond, burstBytes float64
	requestsPerSecond          float64
	watches                    int
	keys                       int64

	mu    sync.Mutex
	users map[string]*usage
}

type usage struct {
	bytes, requests *rate.Limiter
	watches         int
	counted         time.Time
	full            bool
	seen            time.Time
}

const (
	idleAfter     = 10 * time.Minute
	countInterval = 10 * time.Second
	maxLeaseTTL   = 3600
)

func newLimits() *limits {
	return &limits{bytesPerSecond: 64 << 10, burstBytes: 4 << 20, requestsPerSecond: 300, watches: 32, keys: 20000, users: map[string]*usage{}}
}

// of returns the usage of one table, or of one pod; l.mu is held.
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
		}
		l.users[who] = found
	}
	found.seen = now
	return found
}

func exceeded(who, what string, limit any) error {
	return status.Errorf(codes.ResourceExhausted, "%s has reached its limit of %s (%v)", who, what, limit)
}

func (l *limits) request(who string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.of(who).requests.Allow() {
		return exceeded(who, "requests a second", l.requestsPerSecond)
	}
	return nil
}

func (l *limits) write(table string, size int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.of(table).bytes.AllowN(time.Now(), size) {
		return exceeded("table "+table, "bytes a second", l.bytesPerSecond)
	}
	return nil
}

// stored refuses a put when the table held too many keys at the last count; count is called at most
// once per countInterval.
func (l *limits) stored(table string, count func() (int64, error)) error {
	l.mu.Lock()
	use := l.of(table)
	due := time.Since(use.counted) > countInterval
	if due {
		use.counted = time.Now()
	}
	l.mu.Unlock()
	if due {
		keys, err := count()
		if err != nil {
			return err
		}
		l.mu.Lock()
		use.full = keys > l.keys
		l.mu.Unlock()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if use.full {
		return exceeded("table "+table, "keys", l.keys)
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

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func full(err error) bool { return status.Code(err) == codes.ResourceExhausted }

// one is a pod that is known at no table, at one is a pod at a table.
func one(pod string) payer         { return payer{"pod n/" + pod, "namespace n"} }
func atOne(pod, t string) payer    { return payer{"pod n/" + pod + " at table " + t, "table " + t} }
func number(id int64) func() int64 { return func() int64 { return id } }

func TestAPodsLeasesAreBounded(t *testing.T) {
	l := newLimits()
	grant := func(l *limits, p payer, tables int, id, ttl int64) error {
		_, err := l.grant(p, tables, number(id), ttl)
		return err
	}
	a := payer{"pod n/a", "table t"}
	for id := range int64(freeLeases) {
		if err := grant(l, a, 0, id, 60); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.grant(a, 0, func() int64 { t.Error("an id for a lease that is refused"); return 0 }, 60); !full(err) {
		t.Errorf("one more than a pod may have: %v", err)
	}
	if err := grant(l, a, 1, 101, 60); err != nil {
		t.Errorf("a pod of a table: %v", err)
	}
	if err := grant(l, payer{"pod n/b", "table t"}, 0, 102, 60); err != nil {
		t.Errorf("another pod: %v", err)
	}
	l.revoked("pod n/a", 0)
	l.revoked("pod n/a", 1)
	if err := grant(l, a, 0, 103, 60); err != nil {
		t.Errorf("after two were given back: %v", err)
	}
	for pod := range leasesOfTable { // each pod of the table takes one
		_ = grant(l, payer{fmt.Sprint("pod n/more-", pod), "table t"}, 0, int64(1000+pod), 60)
	}
	if err := grant(l, payer{"pod n/last", "table t"}, 0, 9999, 60); !full(err) {
		t.Errorf("one more than a table may have: %v", err)
	}
	if err := grant(l, payer{"pod n/last", "table u"}, 0, 9999, 60); err != nil {
		t.Errorf("another table: %v", err)
	}
	l.revoked("pod n/a", 103)
	if err := grant(l, payer{"pod n/last", "table t"}, 0, 10000, 60); err != nil {
		t.Errorf("after one of the table was given back: %v", err)
	}
	brief := newLimits()
	for id := range int64(freeLeases) {
		_ = grant(brief, a, 0, id, 1)
	}
	brief.prolong("pod n/a", 0)
	time.Sleep(1100 * time.Millisecond) // a lease lasts for a second at least
	if err := grant(brief, a, 0, 100, 1); err != nil {
		t.Errorf("after all have ended: %v", err)
	}
}

// A pod may cut its request short, not the count that the table's limit is judged by.
func TestACountIsNotCutShort(t *testing.T) {
	l := newLimits()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	count := func(ctx context.Context, _ bool) (int64, int64, error) { return l.keys + 1, 0, ctx.Err() }
	if err := l.stored(ctx, "t", count); !full(err) {
		t.Errorf("a request that is over already: %v", err)
	}
	failing := func(context.Context, bool) (int64, int64, error) { return 0, 0, errors.New("etcd is away") }
	if l.stored(context.Background(), "u", failing) == nil {
		t.Error("a table that could not be counted may put")
	}
	if err := l.stored(context.Background(), "u", count); !full(err) {
		t.Errorf("a count that failed was taken for one: %v", err)
	}
}

func TestATableHasSoManyBytes(t *testing.T) {
	l := newLimits()
	weighed := 0
	count := func(size int64) func(context.Context, bool) (int64, int64, error) {
		return func(_ context.Context, weigh bool) (int64, int64, error) {
			if weigh {
				weighed++
			}
			return 1, size, nil
		}
	}
	again := func() { l.users["t"].size.counted = time.Now().Add(-2 * countInterval) }
	if err := l.stored(context.Background(), "t", count(l.storedBytes)); err != nil {
		t.Fatal(err)
	}
	again()
	if err := l.stored(context.Background(), "t", count(l.storedBytes+1)); err != nil || weighed != 1 {
		t.Errorf("weighed %d times although nothing was put: %v", weighed, err)
	}
	if err := l.write("t", weighAfter); err != nil {
		t.Fatal(err)
	}
	again()
	if err := l.stored(context.Background(), "t", count(l.storedBytes+1)); !full(err) {
		t.Errorf("more than a table may have: %v", err)
	}
	if err := l.stored(context.Background(), "other", count(1)); err != nil {
		t.Errorf("another table: %v", err)
	}
}

func TestRequestsAndReadsAreBounded(t *testing.T) {
	l := newLimits()
	n := 0
	for l.request(atOne("a", "t"), 384) == nil {
		n++
	}
	if most := int(4*l.requestsPerSecond) / 40; n > most {
		t.Errorf("%d large transactions at once, at most %d", n, most)
	}
	if err := l.request(atOne("a", "u"), 3); err != nil {
		t.Errorf("at another table: %v", err)
	}
	l.answered(one("b"), burstRead)
	l.answered(one("b"), burstRead)
	if !full(l.request(one("b"), 0)) {
		t.Error("a pod that has read too much goes on")
	}
	if !full(l.told(one("b"), 1)) {
		t.Error("its watch goes on")
	}
	if err := l.request(one("c"), 0); err != nil {
		t.Errorf("another pod: %v", err)
	}
	for pod := range 2 * podsPerTable { // as many pods as one likes have no more than their table
		l.answered(atOne(fmt.Sprint(pod), "v"), burstRead)
	}
	if !full(l.request(atOne("z", "v"), 0)) {
		t.Error("a table that has read too much goes on")
	}
	for n := 0; full(l.request(atOne("z", "w"), 0)); n++ {
		t.Fatal("another table")
	}
}

// Streams, watches and calls for leases are those of all pods of a table.
func TestStreamsOfATableAreBounded(t *testing.T) {
	l := newLimits()
	closed, err := l.open(one("a"), 0)
	if err != nil {
		t.Fatal(err)
	}
	for range freeStreams - 1 {
		if _, err := l.open(one("a"), 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.open(one("a"), 0); !full(err) {
		t.Errorf("one more than a pod may have: %v", err)
	}
	closed()
	closed()
	if _, err := l.open(one("a"), 0); err != nil {
		t.Errorf("after one was closed: %v", err)
	}
	if _, err := l.open(one("a"), 0); !full(err) {
		t.Errorf("one was closed twice: %v", err)
	}
	opened := 0
	for pod := range 2 * streamsOfTable {
		if _, err := l.open(payer{fmt.Sprint("pod n/", pod), "table t"}, 0); err == nil {
			opened++
		}
	}
	if opened != streamsOfTable {
		t.Errorf("%d streams of a table, at most %d", opened, streamsOfTable)
	}
	if _, err := l.open(payer{"pod n/0", "table u"}, 0); err != nil {
		t.Errorf("another table: %v", err)
	}
	quick := 0
	for quick < 10*streamsPerSecond {
		closed, err := l.open(payer{"pod n/0", "table v"}, 0)
		if err != nil {
			break
		}
		closed()
		quick++
	}
	if quick >= 5*streamsPerSecond {
		t.Errorf("%d streams one after the other", quick)
	}
	calls := 0
	for calls < 10*leaseCallsPerSecond && l.leaseCall(atOne(fmt.Sprint(calls), "t")) == nil {
		calls++
	}
	if calls >= 5*leaseCallsPerSecond {
		t.Errorf("%d calls for leases at once", calls)
	}
	watches := 0
	for watches < 10000 && l.watch(atOne(fmt.Sprint(watches), "t"), 1) == nil {
		watches++
	}
	if watches != l.watches*watchesOfPods {
		t.Errorf("%d watches of a table", watches)
	}
	if err := l.watch(atOne("0", "u"), 1); err != nil {
		t.Errorf("another table: %v", err)
	}
}

// Each of so many replicas grants its share, and a table that fills one has no more at the others.
func TestReplicasShareTheLimits(t *testing.T) {
	written := func(replicas int) (total int) {
		l := newLimits()
		l.replicas = replicas
		for range replicas {
			l.users = map[string]*usage{} // another one
			for total < 1<<30 && l.write("table t", 1000) == nil {
				total += 1000
			}
		}
		return total
	}
	alone := written(1)
	for _, replicas := range []int{2, 9} {
		if total := written(replicas); total > alone+alone/10 || total < alone*9/10 {
			t.Errorf("%d bytes at once by way of %d replicas, %d by way of one", total, replicas, alone)
		}
	}
	for what, limit := range map[string]func(*limits) error{
		"requests": func(l *limits) error { return l.request(one("a"), 0) },
		"leases":   func(l *limits) error { _, err := l.grant(one("a"), 0, rand.Int64, 60); return err },
		"calls":    func(l *limits) error { return l.leaseCall(one("a")) },
		"streams":  func(l *limits) error { _, err := l.open(one("a"), 0); return err },
		"watches":  func(l *limits) error { return l.watch(one("a"), 1) },
	} {
		most := func(replicas int) (n int) {
			l := newLimits()
			for l.replicas = replicas; n < 20_000 && limit(l) == nil; n++ {
			}
			return n
		}
		if one, four := most(1), most(4); 4*four > one+one/10+4 {
			t.Errorf("%s: %d by way of one replica, %d by way of each of four", what, one, four)
		}
	}
}

// A hundred writers of one table that all begin at once, and go on, by way of one of two replicas: by
// what factor each limit is above that. docs/design/identities.md says these factors.
func TestOrdinaryLoadIsFarFromTheLimits(t *testing.T) {
	const writers, seconds = 100, 10
	ticket, report := 500, 4<<10 // bytes: of a place in the queue, of the view of a queue of a hundred
	for what, one := range map[string]struct {
		load   func(l *limits, times int) error
		factor int
	}{
		// A lease each, and another one after etcd was away for longer than the lease.
		"leases": {func(l *limits, times int) error {
			for n := range 2 * writers * times {
				if _, err := l.grant(atOne(fmt.Sprint(n), "t"), 1, number(int64(n)), 10); err != nil {
					return err
				}
			}
			return nil
		}, 5},
		// A grant, a revocation, and a heartbeat every 3 s.
		"calls for leases": {func(l *limits, times int) error {
			for n := range (2*writers + writers*seconds/3) * times {
				if err := l.leaseCall(atOne(fmt.Sprint(n), "t")); err != nil {
					return err
				}
			}
			return nil
		}, 2},
		// The lock and the ticket before the own one, and a heartbeat.
		"streams": {func(l *limits, times int) error {
			for n := range 3 * writers * times {
				if _, err := l.open(atOne(fmt.Sprint(n), "t"), 1); err != nil {
					return err
				}
			}
			return nil
		}, 3},
		"watches": {func(l *limits, times int) error {
			for n := range 2 * writers * times {
				if err := l.watch(atOne(fmt.Sprint(n), "t"), 1); err != nil {
					return err
				}
			}
			return nil
		}, 5},
		// Each looks at the table ten times, as while it waits for half a minute.
		"requests": {func(l *limits, times int) error {
			for n := range 10 * writers * times {
				if err := l.request(atOne(fmt.Sprint(n), "t"), 6); err != nil {
					return err
				}
			}
			return nil
		}, 5},
		"reads": {func(l *limits, times int) error {
			for n := range writers * times {
				l.answered(atOne(fmt.Sprint(n), "t"), writers*ticket)
			}
			return l.request(atOne("0", "t"), 6)
		}, 50},
		// Each puts a registration, a ticket and a lock, two instants, four times the clock, and a report.
		"bytes": {func(l *limits, times int) error {
			for range writers * times {
				if err := l.write("table t", 12*(revisionBytes+ticket)+report); err != nil {
					return err
				}
			}
			return nil
		}, 3},
	} {
		l := newLimits()
		l.replicas = 2
		if err := one.load(l, one.factor); err != nil {
			t.Errorf("%s: not %d times as much as a hundred writers: %v", what, one.factor, err)
		}
	}
}

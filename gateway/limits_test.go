package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func full(err error) bool { return status.Code(err) == codes.ResourceExhausted }

func TestAPodsLeasesAreBounded(t *testing.T) {
	l := newLimits()
	for id := range int64(freeLeases) {
		if err := l.grant("pod a", 0, id, 60); err != nil {
			t.Fatal(err)
		}
	}
	if !full(l.grant("pod a", 0, 100, 60)) {
		t.Error("one more than a pod may have")
	}
	if err := l.grant("pod a", 1, 101, 60); err != nil {
		t.Errorf("a pod of a table: %v", err)
	}
	if err := l.grant("pod b", 0, 102, 60); err != nil {
		t.Errorf("another pod: %v", err)
	}
	l.revoked("pod a", 0)
	l.revoked("pod a", 1)
	if err := l.grant("pod a", 0, 103, 60); err != nil {
		t.Errorf("after two were given back: %v", err)
	}
	brief := newLimits()
	for id := range int64(freeLeases) {
		_ = brief.grant("pod a", 0, id, 1)
	}
	brief.prolong("pod a", 0)
	time.Sleep(1100 * time.Millisecond) // a lease lasts for a second at least
	if err := brief.grant("pod a", 0, 100, 1); err != nil {
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
	for l.request("pod a", 384) == nil {
		n++
	}
	if most := int(4*l.requestsPerSecond) / 40; n > most {
		t.Errorf("%d large transactions at once, at most %d", n, most)
	}
	if err := l.request("pod a at table t", 3); err != nil {
		t.Errorf("at another table: %v", err)
	}
	l.answered("pod b", burstRead)
	l.answered("pod b", burstRead)
	if !full(l.request("pod b", 0)) {
		t.Error("a pod that has read too much goes on")
	}
	if err := l.request("pod c", 0); err != nil {
		t.Errorf("another pod: %v", err)
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// living keeps leases alive as etcd does: each request has an answer, of no seconds for one that is gone.
type living struct {
	pb.UnimplementedLeaseServer
	mu      sync.Mutex
	gone    map[int64]bool
	asked   []int64
	streams int
}

func (l *living) LeaseKeepAlive(stream pb.Lease_LeaseKeepAliveServer) error {
	l.mu.Lock()
	l.streams++
	l.mu.Unlock()
	for {
		request, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		answer := &pb.LeaseKeepAliveResponse{Header: &pb.ResponseHeader{}, ID: request.ID, TTL: 10}
		l.mu.Lock()
		l.asked = append(l.asked, request.ID)
		if l.gone[request.ID] {
			answer.TTL = 0
		}
		l.mu.Unlock()
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
}

// beating is a gateway before such an etcd, and a stream of the pod ours/load-1.
func beating(t *testing.T) (*gateway, *living, pb.Lease_LeaseKeepAliveClient) {
	t.Helper()
	etcd := &living{gone: map[int64]bool{}}
	g, connect := before(t, &large{leases: etcd})
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	stream, err := pb.NewLeaseClient(connect()).LeaseKeepAlive(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return g, etcd, stream
}

// One stream has the heartbeats of all leases of a pod. Each has its own answer, and one that is gone ends
// none of the others.
func TestAStreamHasManyLeases(t *testing.T) {
	_, etcd, stream := beating(t)
	const leases = 200
	etcd.mu.Lock()
	etcd.gone[leaseOf(driver, 17)] = true
	etcd.mu.Unlock()
	for round := range 3 {
		for n := range int64(leases) {
			if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: leaseOf(driver, n)}); err != nil {
				t.Fatal(err)
			}
		}
		for n := range int64(leases) {
			answer, err := stream.Recv()
			if err != nil {
				t.Fatalf("round %d, lease %d: %v", round, n, err)
			}
			if answer.ID != leaseOf(driver, n) || (answer.TTL == 0) != (n == 17) {
				t.Fatalf("round %d, lease %d: %v", round, n, answer)
			}
		}
	}
	if etcd.streams != 1 {
		t.Errorf("%d streams to etcd", etcd.streams)
	}
}

// A lease of another pod is not kept alive, whatever leases of its own a pod has sent before.
func TestEachLeaseOfAStreamIsThePodsOwn(t *testing.T) {
	_, etcd, stream := beating(t)
	for _, whose := range []subject{driver, driver, second} {
		if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: leaseOf(whose, 7)}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); whose == driver && err != nil || whose == second && status.Code(err) != codes.PermissionDenied {
			t.Errorf("a lease of %s: %v", whose.pod, err)
		}
	}
	etcd.mu.Lock()
	defer etcd.mu.Unlock()
	for _, id := range etcd.asked {
		if !ownLease(driver, id) {
			t.Errorf("etcd was asked for %x", id)
		}
	}
}

// A table that has reached its limit, by other pods, does not end the heartbeats of an agent's other tables.
func TestAnotherTablePaysForHeartbeats(t *testing.T) {
	g, _, stream := beating(t)
	later := time.Now().Add(time.Hour)
	g.rules.mu.Lock()
	g.rules.rights[driver.key()] = map[string]right{
		ownTable: {role: roleAgent, reads: true, until: later}, otherTable: {role: roleAgent, reads: true, until: later},
	}
	g.rules.mu.Unlock()
	use := func(table string) {
		for n := range 5 * leaseCallsPerSecond {
			_ = g.limits.leaseCall(payer{fmt.Sprint("pod ours/", n), "table " + table})
		}
	}
	for range 200 {
		use(ownTable)
		if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: leaseOf(driver, 7)}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatalf("one of two tables has reached its limit: %v", err)
		}
	}
	use(otherTable)
	var err error
	for range 5 * leaseCallsPerSecond {
		if err = g.beats(driver); err != nil {
			break
		}
	}
	if !full(err) {
		t.Errorf("both have reached it: %v", err)
	}
}

// A process has one connection, however many tables it serves: as many streams as it may open fit into it.
func TestAConnectionHasTheStreamsOfManyTables(t *testing.T) {
	g, connect := before(t, &large{leases: &living{}})
	later := time.Now().Add(time.Hour)
	g.rules.mu.Lock()
	g.rules.rights[driver.key()] = map[string]right{}
	for n := range 100 {
		g.rules.rights[driver.key()][fmt.Sprintf("%032x", n)] = right{role: roleAgent, reads: true, until: later}
	}
	g.rules.mu.Unlock()
	client := pb.NewLeaseClient(connect())
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for n := range 600 {
		stream, err := client.LeaseKeepAlive(ctx)
		if err == nil {
			err = stream.Send(&pb.LeaseKeepAliveRequest{ID: leaseOf(driver, int64(n))})
		}
		if err == nil {
			_, err = stream.Recv()
		}
		if err != nil {
			t.Fatalf("stream %d: %v", n, err)
		}
	}
}

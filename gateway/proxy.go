package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// upstream is etcd: one connection per member; calls stay with one until it fails.
type upstream struct {
	members []*grpc.ClientConn
	current atomic.Int64
}

func (u *upstream) use() (*grpc.ClientConn, int64) {
	at := u.current.Load()
	return u.members[at%int64(len(u.members))], at
}

// patience is how long a member may take before a request that had no answer speaks against it: a pod
// chooses the deadline of its own requests, and must not choose the member that others use.
const patience = time.Second

// after switches to the next member when this one did not answer the request that was sent then.
func (u *upstream) after(at int64, sent time.Time, err error) error {
	switch code := status.Code(err); {
	case code == codes.Unavailable, code == codes.DeadlineExceeded && time.Since(sent) >= patience:
		u.current.CompareAndSwap(at, at+1)
	}
	return err
}

// ended is after for a stream, which ends with its token's last second, too.
func (u *upstream) ended(at int64, err error) error {
	if status.Code(err) == codes.Unavailable {
		u.current.CompareAndSwap(at, at+1)
	}
	return err
}

// send executes a transaction; an answer of more bytes than these is not taken.
func (u *upstream) send(ctx context.Context, txn *pb.TxnRequest, bytes int) (*pb.TxnResponse, error) {
	member, at := u.use()
	sent := time.Now()
	answer, err := pb.NewKVClient(member).Txn(ctx, txn, grpc.MaxCallRecvMsgSize(bytes))
	return answer, u.after(at, sent, err)
}

// gateway is etcd as pods see it: the calls of the lock protocol, and no other one.
type gateway struct {
	pb.UnimplementedKVServer
	pb.UnimplementedLeaseServer
	pb.UnimplementedWatchServer
	etcd   *upstream
	tokens *verifier
	rules  *rules
	limits *limits
	crowd  *crowd
	log    *slog.Logger
	counts counts
	// Answers that grpc has not encoded yet, to the pool that holds their memory.
	handed sync.Map
}

func (g *gateway) caller(ctx context.Context) (subject, error) {
	if s, ok := ctx.Value(subjectKey{}).(subject); ok {
		return s, nil
	}
	given, _ := metadata.FromIncomingContext(ctx)
	values := given.Get("authorization")
	if len(values) != 1 || !strings.HasPrefix(values[0], "Bearer ") {
		return subject{}, status.Error(codes.Unauthenticated, "no token: authorization must be Bearer and the pod's token")
	}
	s, err := g.tokens.verify(strings.TrimPrefix(values[0], "Bearer "))
	if errors.Is(err, errClock) && g.tokens.clocks.warns() {
		g.log.Warn("a token cannot be judged", "why", err.Error())
	}
	if errors.Is(err, errKeys) || errors.Is(err, errClock) { // the pod asks the next gateway
		return s, status.Error(codes.Unavailable, err.Error())
	}
	if err != nil {
		return s, status.Error(codes.Unauthenticated, err.Error())
	}
	return s, nil
}

// name is the pod's in limits and messages.
func (s subject) name() string { return "pod " + s.namespace + "/" + s.pod }

// called is caller for a request that names no table.
func (g *gateway) called(ctx context.Context) (subject, payer, error) {
	s, err := g.caller(ctx)
	if err != nil {
		return s, payer{}, err
	}
	p := g.inTurn(s)
	return s, p, g.limits.request(p, 0)
}

// payer is whose limits a request counts against: those of a pod at one of its tables, so that an agent
// of many tables has as much for each, and of that table; or those of the pod and of its namespace,
// while it is not known there.
func (g *gateway) payer(s subject, table string) payer {
	if table != "" && g.rules.known(s, table) {
		return payer{s.name() + " at table " + table, "table " + table}
	}
	return payer{s.name(), "namespace " + s.namespace}
}

// inTurn is the payer of a request that names no table: each of the pod's tables after the other.
func (g *gateway) inTurn(s subject) payer { return g.payer(s, g.rules.oneOf(s)) }

// beats counts a heartbeat. One stream has those of all leases of a pod: where the table whose turn it is
// has reached a limit, by whichever of its pods, another table of the pod pays, so that no table keeps the
// others from their heartbeats.
func (g *gateway) beats(s subject) error {
	err := g.limits.beat(g.inTurn(s))
	if err == nil {
		return nil
	}
	for _, table := range g.rules.served(s) {
		if g.limits.beat(g.payer(s, table)) == nil {
			return nil
		}
	}
	return err
}

// payerOf is the payer of a request that names a key.
func (g *gateway) payerOf(s subject, key []byte) payer {
	_, table := g.rules.contract.base(key)
	return g.payer(s, table)
}

// told logs and counts a refusal of the gateway's own.
func (g *gateway) told(s subject, call string, err error) error {
	if err == nil {
		return nil
	}
	code := status.Code(err)
	g.counts.refused(code)
	if code != codes.Unavailable && g.limits.tells(s.name()) {
		g.log.Warn("refused", "call", call, "namespace", s.namespace, "pod", s.pod, "code", code.String(), "why", status.Convert(err).Message())
	}
	return err
}

func (g *gateway) Txn(ctx context.Context, request *pb.TxnRequest) (*pb.TxnResponse, error) {
	g.counts.requests.Add(1)
	s, err := g.caller(ctx)
	var p payer
	if err == nil {
		p = g.payerOf(s, firstKey(request))
		ctx = context.WithValue(ctx, payerKey{}, p)
		err = g.limits.request(p, len(request.Compare)+len(request.Success)+len(request.Failure))
	}
	var table string
	if err == nil {
		table, err = g.rules.txn(ctx, s, request)
	}
	if err == nil && table != "" {
		err = g.bound(ctx, table, request)
	}
	if err != nil {
		return nil, g.told(s, "Txn", err)
	}
	answer, held, err := g.execute(ctx, s, request, table)
	if own := (refused{}); reached(err) || errors.As(err, &own) {
		err = g.told(s, "Txn", err)
	}
	if err != nil {
		return nil, err
	}
	for _, op := range answer.Responses {
		for _, kv := range op.GetResponseRange().GetKvs() {
			if err := g.rules.mayKnow(s, kv.Key, kv.Value); err != nil {
				held.release()
				return nil, g.told(s, "Txn", err)
			}
		}
	}
	g.hand(ctx, answer, held)
	return answer, nil
}

// execute has etcd execute a transaction that the rules have let through, which have told the table that
// it writes: only as long as the right stands that it was let through with. Where that has changed, the
// rules are asked once more.
func (g *gateway) execute(ctx context.Context, s subject, request *pb.TxnRequest, table string) (*pb.TxnResponse, *hold, error) {
	for range 3 {
		// It may be known at the table by now.
		p := g.payerOf(s, firstKey(request))
		if table == "" {
			return g.ask(ctx, p, request, nil)
		}
		guard, err := g.rules.guard(ctx, s, table)
		if err != nil {
			return nil, nil, refused{err}
		}
		answer, held, err := g.ask(ctx, p, request, guard)
		if err != nil || answer != nil {
			return answer, held, err
		}
		g.rules.withdrawn(s, table)
		if _, err := g.rules.txn(ctx, s, request); err != nil {
			return nil, nil, refused{err}
		}
	}
	return nil, nil, status.Error(codes.Unavailable, "gateway: the pod's right changes while it is looked up; nothing was written")
}

// refused is the gateway's own refusal, and nothing that etcd has said.
type refused struct{ error }

func (r refused) GRPCStatus() *status.Status { return status.Convert(r.error) }

// guarded is a transaction that executes this one when the comparison holds, and else nothing.
func guarded(txn *pb.TxnRequest, guard *pb.Compare) *pb.TxnRequest {
	inner := &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: txn}}
	return &pb.TxnRequest{Compare: []*pb.Compare{guard}, Success: []*pb.RequestOp{inner}}
}

// unguarded is the answer to the transaction within; nil when it was not executed.
func unguarded(answer *pb.TxnResponse) *pb.TxnResponse {
	if !answer.Succeeded || len(answer.Responses) != 1 {
		return nil
	}
	inner := answer.Responses[0].GetResponseTxn()
	if inner != nil {
		inner.Header = answer.Header // etcd fills in that of the outer one only
	}
	return inner
}

// firstKey is a key of the transaction; nil when it has none.
func firstKey(request *pb.TxnRequest) []byte {
	if len(request.Compare) > 0 {
		return request.Compare[0].Key
	}
	all := operations(request)
	if len(all) == 0 {
		return nil
	}
	if asked := all[0].GetRequestRange(); asked != nil {
		return asked.Key
	}
	if put := all[0].GetRequestPut(); put != nil {
		return put.Key
	}
	return all[0].GetRequestDeleteRange().GetKey()
}

// written is what etcd's history grows by, at most: of a put and of a deletion alike. A key on a lease is
// deleted with it, by nobody's request.
func written(request *pb.TxnRequest) (bytes int, puts bool) {
	for _, op := range operations(request) {
		if put := op.GetRequestPut(); put != nil {
			puts = true
			bytes += len(put.Key) + len(put.Value) + revisionBytes
			if put.Lease != 0 {
				bytes += len(put.Key) + revisionBytes
			}
		}
		if del := op.GetRequestDeleteRange(); del != nil {
			bytes += len(del.Key) + revisionBytes
		}
	}
	return bytes, puts
}

// bound applies the limits of the table that a transaction writes to.
func (g *gateway) bound(ctx context.Context, table string, request *pb.TxnRequest) error {
	bytes, puts := written(request)
	if err := g.limits.write("table "+table, bytes); err != nil || !puts {
		return err
	}
	base := g.rules.contract.key(tables, table, "")
	return g.limits.stored(ctx, "table "+table, func(ctx context.Context, weigh bool) (int64, int64, error) {
		return g.size(ctx, base, prefixEnd(string(base)), weigh)
	})
}

// size counts the keys of a range and, when they are to be weighed, the bytes of keys and values; it
// stops where there are more than a table may have.
func (g *gateway) size(ctx context.Context, key, end []byte, weigh bool) (keys, bytes int64, err error) {
	if !weigh {
		answers, err := g.look(ctx, &pb.RangeRequest{Key: key, RangeEnd: end, CountOnly: true})
		if err != nil {
			return 0, 0, err
		}
		return answers[0].Count, 0, nil
	}
	for first := true; ; first = false {
		answers, err := g.look(ctx, &pb.RangeRequest{Key: key, RangeEnd: end, Limit: 50})
		if err != nil {
			return 0, 0, err
		}
		if first {
			keys = answers[0].Count
		}
		for _, kv := range answers[0].Kvs {
			bytes += int64(len(kv.Key) + len(kv.Value))
			key = append(slices.Clone(kv.Key), 0)
		}
		if !answers[0].More || bytes > g.limits.storedBytes {
			return keys, bytes, nil
		}
	}
}

func (g *gateway) LeaseGrant(ctx context.Context, request *pb.LeaseGrantRequest) (*pb.LeaseGrantResponse, error) {
	g.counts.requests.Add(1)
	s, p, err := g.called(ctx)
	if err == nil && (request.ID != 0 || request.TTL < 1 || request.TTL > maxLeaseTTL) {
		err = status.Errorf(codes.InvalidArgument, "lease: ID must be 0, TTL 1 to %d seconds, not %d", maxLeaseTTL, request.TTL)
	}
	if err == nil {
		err = g.limits.leaseCall(p)
	}
	// The leases of a pod count by pod, at whatever table.
	p.pod = s.name()
	if err == nil {
		request.ID, err = g.limits.grant(p, g.rules.tables(s), func() int64 { return leaseOf(s, rand.Int64()) }, request.TTL)
	}
	if err != nil {
		return nil, g.told(s, "LeaseGrant", err)
	}
	member, at := g.etcd.use()
	sent := time.Now()
	answer, err := pb.NewLeaseClient(member).LeaseGrant(ctx, request)
	if code := status.Code(err); code == codes.Unavailable || code == codes.ResourceExhausted {
		g.limits.revoked(s.name(), request.ID) // not one that the pod could choose the outcome of
	}
	return answer, g.etcd.after(at, sent, err)
}

func (g *gateway) LeaseRevoke(ctx context.Context, request *pb.LeaseRevokeRequest) (*pb.LeaseRevokeResponse, error) {
	g.counts.requests.Add(1)
	s, p, err := g.called(ctx)
	if err == nil && !ownLease(s, request.ID) {
		err = denied("lease %x is not one of pod %s/%s", request.ID, s.namespace, s.pod)
	}
	if err == nil {
		err = g.limits.leaseCall(p)
	}
	if err != nil {
		return nil, g.told(s, "LeaseRevoke", err)
	}
	member, at := g.etcd.use()
	sent := time.Now()
	answer, err := pb.NewLeaseClient(member).LeaseRevoke(ctx, request)
	if err == nil {
		g.limits.revoked(s.name(), request.ID)
	}
	return answer, g.etcd.after(at, sent, err)
}

// opened is called for a stream, which counts until it is closed.
func (g *gateway) opened(ctx context.Context) (s subject, p payer, closed func(), err error) {
	s, p, err = g.called(ctx)
	if err == nil {
		closed, err = g.limits.open(payer{s.name(), p.owner}, g.rules.tables(s))
	}
	return s, p, closed, err
}

func (g *gateway) LeaseKeepAlive(stream pb.Lease_LeaseKeepAliveServer) error {
	s, _, closed, err := g.opened(stream.Context())
	if err != nil {
		return g.told(s, "LeaseKeepAlive", err)
	}
	defer closed()
	ctx, cancel := context.WithDeadline(stream.Context(), s.expires)
	defer cancel()
	member, at := g.etcd.use()
	to, err := pb.NewLeaseClient(member).LeaseKeepAlive(ctx)
	if err != nil {
		return g.etcd.ended(at, err)
	}
	answers := func() (*pb.LeaseKeepAliveResponse, error) {
		answer, err := to.Recv()
		return answer, g.etcd.ended(at, err)
	}
	return relay(stream.Recv, to.Send, to.CloseSend, answers, stream.Send, cancel, func(request *pb.LeaseKeepAliveRequest) error {
		g.counts.requests.Add(1)
		if !ownLease(s, request.ID) {
			return g.told(s, "LeaseKeepAlive", denied("lease %x is not one of pod %s/%s", request.ID, s.namespace, s.pod))
		}
		err := g.beats(s)
		if err == nil {
			g.limits.prolong(s.name(), request.ID)
		}
		return g.told(s, "LeaseKeepAlive", err)
	})
}

func (g *gateway) Watch(stream pb.Watch_WatchServer) error {
	s, p, closed, err := g.opened(stream.Context())
	if err != nil {
		return g.told(s, "Watch", err)
	}
	defer closed()
	// The watch of a token that is no longer valid ends; the client opens another one.
	ctx, cancel := context.WithDeadline(context.WithValue(stream.Context(), payerKey{}, p), s.expires)
	defer cancel()
	if given, _ := metadata.FromIncomingContext(ctx); len(given.Get("hasleader")) > 0 {
		ctx = metadata.AppendToOutgoingContext(ctx, "hasleader", given.Get("hasleader")[0])
	}
	member, at := g.etcd.use()
	to, err := pb.NewWatchClient(member).Watch(ctx)
	if err != nil {
		return g.etcd.ended(at, err)
	}
	answers := func() (*pb.WatchResponse, error) {
		answer, err := to.Recv()
		if err != nil {
			return nil, g.etcd.ended(at, err)
		}
		return answer, g.told(s, "Watch", g.passes(ctx, p, answer))
	}
	watched := &held{limits: g.limits}
	defer watched.release()
	return relay(stream.Recv, to.Send, to.CloseSend, answers, stream.Send, cancel, func(request *pb.WatchRequest) error {
		g.counts.requests.Add(1)
		create := request.GetCreateRequest()
		if create == nil {
			return g.told(s, "Watch", g.limits.request(p, 0))
		}
		err := g.limits.request(p, 0)
		if err == nil {
			err = g.rules.mayWatch(ctx, s, create)
		}
		if err == nil {
			err = watched.add(g.payerOf(s, create.Key))
		}
		return g.told(s, "Watch", err)
	})
}

// passes counts what a watch tells; what is not small is held until the client has read it.
func (g *gateway) passes(ctx context.Context, p payer, answer *pb.WatchResponse) error {
	size := answer.Size()
	err := g.limits.told(p, size)
	if err != nil || mem.IsBelowBufferPoolingThreshold(size) {
		return err
	}
	h, err := g.limits.reserve(ctx, p.owner, int64(size))
	if err == nil {
		g.hand(ctx, answer, h)
	}
	return err
}

// held are the watches of one stream. A relay's reader may still add one when the stream has ended.
type held struct {
	limits *limits
	mu     sync.Mutex
	of     []payer
	over   bool
}

func (h *held) add(who payer) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return status.Error(codes.Canceled, "the stream has ended")
	}
	if err := h.limits.watch(who, 1); err != nil {
		return err
	}
	h.of = append(h.of, who)
	return nil
}

func (h *held) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	for _, who := range h.of {
		_ = h.limits.watch(who, -1)
	}
	h.of = nil
}

// relay copies a stream in both directions until either side ends it; each request is checked.
func relay[Q, A any](from func() (Q, error), to func(Q) error, last func() error, answers func() (A, error), back func(A) error, cancel func(), check func(Q) error) error {
	done := make(chan error, 1)
	go func() {
		for {
			request, err := from()
			if errors.Is(err, io.EOF) {
				_ = last()
				return // answers to what was sent still come
			}
			if err == nil {
				if err = check(request); err == nil {
					err = to(request)
				}
			}
			if err != nil {
				done <- err
				cancel()
				return
			}
		}
	}()
	for {
		answer, err := answers()
		if err == nil {
			err = back(answer)
		}
		if err != nil {
			select {
			case why := <-done:
				if !errors.Is(why, io.EOF) {
					return why
				}
			default:
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

func (l *limits) heldNow() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held
}

// A table that has all of its share waits, and is refused; the others have theirs.
func TestMemoryForAnswersIsReserved(t *testing.T) {
	l := newLimits()
	ctx := context.Background()
	first, err := l.reserve(ctx, "table t", l.answerBytes)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err = l.reserve(ctx, "table t", 1)
	if !full(err) || !strings.Contains(err.Error(), "table t has reached its limit of bytes of answers at once (16777216, rule memory)") {
		t.Errorf("more than its share: %v", err)
	}
	if waited := time.Since(began); waited < answerPatience {
		t.Errorf("refused after %s", waited)
	}
	others, err := l.reserve(ctx, "table u", l.answerBytes)
	if err != nil {
		t.Errorf("another table: %v", err)
	}
	time.AfterFunc(50*time.Millisecond, func() { first.shrink(l.answerBytes - 10) })
	some, err := l.reserve(ctx, "table t", 10)
	if err != nil {
		t.Errorf("what was given back: %v", err)
	}
	for _, owner := range []string{"table v", "table w"} {
		if _, err := l.reserve(ctx, owner, l.answerBytes); err != nil {
			t.Errorf("%s: %v", owner, err)
		}
	}
	if _, err := l.reserve(ctx, "table x", 1); !full(err) || !strings.Contains(err.Error(), "the gateway has reached") {
		t.Errorf("more than there is: %v", err)
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := l.reserve(over, "table t", 1); status.Code(err) != codes.Canceled {
		t.Errorf("of a request that is over: %v", err)
	}
	others.release()
	others.release()
	first.release()
	some.release()
	if now := l.heldNow(); now != 2*l.answerBytes {
		t.Errorf("%d bytes are held", now)
	}
}

// large is an etcd that answers each read with a value of so many bytes: what is asked here is what the
// gateway does with answers that etcd may give.
type large struct {
	pb.UnimplementedKVServer
	bytes, asked, written atomic.Int64
	leases                pb.LeaseServer // nil: none
}

func (e *large) Txn(_ context.Context, txn *pb.TxnRequest) (*pb.TxnResponse, error) {
	e.asked.Add(1)
	answer := e.executed(txn)
	answer.Header = &pb.ResponseHeader{}
	return answer, nil
}

func (e *large) executed(txn *pb.TxnRequest) *pb.TxnResponse {
	answer := &pb.TxnResponse{Succeeded: true}
	for _, op := range txn.Success {
		if inner := op.GetRequestTxn(); inner != nil {
			answer.Responses = append(answer.Responses, &pb.ResponseOp{Response: &pb.ResponseOp_ResponseTxn{ResponseTxn: e.executed(inner)}})
			continue
		}
		if op.GetRequestPut() != nil {
			e.written.Add(1)
		}
		found := &pb.RangeResponse{}
		switch key := string(op.GetRequestRange().GetKey()); {
		case strings.Contains(key, "/admit/"):
			found.Kvs = []*mvccpb.KeyValue{{Value: []byte(`{"attempt":"ours.load-1","role":"writer"}`)}}
		case strings.HasSuffix(key, "/gate"):
			found.Kvs = []*mvccpb.KeyValue{{Value: []byte(`{"table":"ours/flights"}`)}}
		case key != "":
			found.Kvs = []*mvccpb.KeyValue{{Key: []byte(key), Value: bytes.Repeat([]byte("x"), int(e.bytes.Load()))}}
		}
		answer.Responses = append(answer.Responses, &pb.ResponseOp{Response: &pb.ResponseOp_ResponseRange{ResponseRange: found}})
	}
	return answer
}

// before starts a gateway before such an etcd, and a client of the pod ours/load-1.
func before(t *testing.T, etcd *large) (*gateway, func() *grpc.ClientConn) {
	t.Helper()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pb.RegisterKVServer(server, etcd)
	if etcd.leases != nil {
		pb.RegisterLeaseServer(server, etcd.leases)
	}
	go func() { _ = server.Serve(socket) }()
	t.Cleanup(server.Stop)
	member, err := grpc.NewClient("passthrough:///"+socket.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithInitialWindowSize(64<<10))
	if err != nil {
		t.Fatal(err)
	}
	told, err := readContract("../operator/hudi_contract/protocol.json", "/hudi")
	if err != nil {
		t.Fatal(err)
	}
	tokens := newSigner(t, "one")
	g := &gateway{etcd: &upstream{members: []*grpc.ClientConn{member}}, tokens: verifierOf(tokens), limits: newLimits(), log: quiet()}
	g.rules = newRules(told, g.look, newClocks(noServer))
	root, shown := issuer(t)
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	service := g.server(&pair{loaded: &shown, looked: time.Now().Add(time.Hour)})
	go func() { _ = service.Serve(front) }()
	t.Cleanup(service.Stop)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(root)
	token := tokens.token(t, nil)
	return g, func() *grpc.ClientConn {
		client, err := grpc.NewClient("passthrough:///"+front.Addr().String(),
			grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(trusted, "etcd-0")),
			grpc.WithInitialWindowSize(64<<10), grpc.WithInitialConnWindowSize(64<<10),
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(32<<20)),
			grpc.WithUnaryInterceptor(func(ctx context.Context, method string, asked, answer any, c *grpc.ClientConn, call grpc.UnaryInvoker, options ...grpc.CallOption) error {
				return call(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), method, asked, answer, c, options...)
			}),
			grpc.WithStreamInterceptor(func(ctx context.Context, d *grpc.StreamDesc, c *grpc.ClientConn, method string, call grpc.Streamer, options ...grpc.CallOption) (grpc.ClientStream, error) {
				return call(metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token), d, c, method, options...)
			}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
}

func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so: %s", what)
		}
	}
}

// An answer needs what it needs: a read that needs more than the last one is read again, a larger one
// than an answer may be is refused, and nothing stays reserved.
func TestAnAnswerIsNoLargerThanItsRoom(t *testing.T) {
	etcd := &large{}
	g, connect := before(t, etcd)
	client := pb.NewKVClient(connect())
	read := of(get(own+"queue/", string(prefixEnd(own+"queue/"))))
	for _, one := range []struct {
		bytes, asked int64
		want         codes.Code
	}{
		{100, 2, codes.OK}, // the first time its rights are looked up
		{3 << 20, 2, codes.OK},
		{3 << 20, 1, codes.OK},
		{100, 1, codes.OK},
		{15 << 20, 2, codes.OK},
		{17 << 20, 1, codes.ResourceExhausted},
		{100, 1, codes.OK},
	} {
		etcd.bytes.Store(one.bytes)
		etcd.asked.Store(0)
		answer, err := client.Txn(context.Background(), read)
		if status.Code(err) != one.want || etcd.asked.Load() != one.asked {
			t.Fatalf("%d bytes: %v, etcd was asked %d times, not %d", one.bytes, err, etcd.asked.Load(), one.asked)
		}
		if err == nil && len(answer.Responses[0].GetResponseRange().Kvs[0].Value) != int(one.bytes) {
			t.Fatalf("%d bytes: not the answer", one.bytes)
		}
		if err != nil && !strings.Contains(err.Error(), "bytes of one answer (16777216, rule memory)") {
			t.Fatal(err)
		}
		soon(t, "nothing is held", func() bool { return g.limits.heldNow() == 0 })
	}
	// What writes is sent once, whatever its answer needs.
	etcd.bytes.Store(1 << 20)
	if _, err := client.Txn(context.Background(), of(get(own+"clock", ""), put(own+"clock", aTime))); err != nil || etcd.written.Load() != 1 {
		t.Fatalf("%v, etcd was sent it %d times", err, etcd.written.Load())
	}
	soon(t, "nothing is held", func() bool { return g.limits.heldNow() == 0 })
}

// A client that asks and does not read holds its own table's share of the memory, for as long as its
// connection lasts.
func TestAnAnswerIsHeldUntilItIsWritten(t *testing.T) {
	etcd := &large{}
	g, connect := before(t, etcd)
	etcd.bytes.Store(3 << 20)
	client := connect()
	read := of(get(own+"queue/", string(prefixEnd(own+"queue/"))))
	ctx := context.Background()
	if _, err := pb.NewKVClient(client).Txn(ctx, read); err != nil {
		t.Fatal(err)
	}
	soon(t, "what was read is given back", func() bool { return g.limits.heldNow() == 0 })
	deaf := connect()
	deafClient(t, deaf, read, 20)
	soon(t, "answers that nobody reads", func() bool { return g.limits.heldNow() > 9<<20 })
	time.Sleep(2 * answerPatience)
	if now := g.limits.heldNow(); now > g.limits.answerBytes || now < 9<<20 {
		t.Errorf("%d bytes are held for twenty answers of 3 MiB that are not read", now)
	}
	if _, err := pb.NewKVClient(client).Txn(ctx, read); !full(err) {
		t.Errorf("another request at that table: %v", err)
	}
	if _, err := g.limits.reserve(ctx, "table "+otherTable, g.limits.answerBytes); err != nil {
		t.Errorf("another table: %v", err)
	}
	_ = deaf.Close()
	soon(t, "the connection's end gives all of it back", func() bool { return g.limits.heldNow() == g.limits.answerBytes })
	if _, err := pb.NewKVClient(client).Txn(ctx, read); err != nil {
		t.Errorf("after that: %v", err)
	}
}

// deafClient asks for so many answers and reads none of them.
func deafClient(t *testing.T, connection *grpc.ClientConn, asked *pb.TxnRequest, answers int) {
	t.Helper()
	for range answers {
		stream, err := connection.NewStream(context.Background(), &grpc.StreamDesc{ServerStreams: true}, "/etcdserverpb.KV/Txn")
		if err == nil {
			err = stream.SendMsg(asked)
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = stream.CloseSend()
	}
}

// unread are the bytes of answers that clients were sent and have not read.
func (c *crowd) unread() (all int64) {
	for _, member := range c.everybody() {
		if answers := member.answers.Load(); answers != nil {
			bytes, _ := answers.unwritten()
			all += bytes
		}
	}
	return all
}

// Answers that a client does not read take no memory from others: where there is none left, who holds most
// loses connections.
func TestAnswersThatNobodyReadsGiveWay(t *testing.T) {
	etcd := &large{}
	g, connect := before(t, etcd)
	g.limits.memoryBytes = 20 << 20
	etcd.bytes.Store(3 << 20)
	read := of(get(own+"queue/", string(prefixEnd(own+"queue/"))))
	deaf := connect()
	deafClient(t, deaf, read, 20)
	soon(t, "answers that nobody reads", func() bool { return g.crowd.unread() > 9<<20 })
	time.Sleep(2 * answerPatience)
	held, err := g.limits.reserve(context.Background(), "table "+otherTable, g.limits.answerBytes)
	if err != nil {
		t.Fatalf("a table of somebody else: %v", err)
	}
	if g.crowd.closed.Load() != 1 {
		t.Errorf("%d connections were closed", g.crowd.closed.Load())
	}
	held.release()
	soon(t, "what was closed is given back", func() bool { return g.limits.heldNow() == 0 })
	// Nobody gives way for what is held by answers on their way from etcd.
	if held, err = g.limits.reserve(context.Background(), "table "+otherTable, g.limits.answerBytes); err != nil {
		t.Fatal(err)
	}
	if _, err := g.limits.reserve(context.Background(), "table x", g.limits.answerBytes); !full(err) {
		t.Errorf("more than there is: %v", err)
	}
	held.release()
}

// An answer that is not read in half a minute ends its connection; one of a client that reads does not.
func TestAnAnswerIsReadInTime(t *testing.T) {
	etcd := &large{}
	g, connect := before(t, etcd)
	etcd.bytes.Store(3 << 20)
	read := of(get(own+"queue/", string(prefixEnd(own+"queue/"))))
	client, deaf := connect(), connect()
	if _, err := pb.NewKVClient(client).Txn(context.Background(), read); err != nil {
		t.Fatal(err)
	}
	deafClient(t, deaf, read, 3)
	soon(t, "answers that nobody reads", func() bool { return g.crowd.unread() >= 3*3<<20 })
	g.crowd.hangUp(answerTime)
	if g.crowd.closed.Load() != 0 {
		t.Error("a connection was closed at once")
	}
	time.Sleep(50 * time.Millisecond)
	g.crowd.hangUp(10 * time.Millisecond)
	soon(t, "nothing is held", func() bool { return g.limits.heldNow() == 0 })
	if g.crowd.closed.Load() != 1 {
		t.Errorf("%d connections were closed", g.crowd.closed.Load())
	}
	if _, err := pb.NewKVClient(client).Txn(context.Background(), read); err != nil {
		t.Errorf("who reads: %v", err)
	}
}

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// A call whose message has not come is refused: whoever shows no token sends no message.
func TestAStrangersMessageIsNotReceived(t *testing.T) {
	g, tokens, address := withCrowd(t)
	client, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	answered := func(ctx context.Context, method string) codes.Code {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		call, err := client.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, method)
		if err != nil {
			return status.Code(err)
		}
		return status.Code(call.RecvMsg(&pb.TxnResponse{}))
	}
	ctx := context.Background()
	for method := range offered {
		if code := answered(ctx, method); code != codes.Unauthenticated {
			t.Errorf("%s without a token: %v", method, code)
		}
	}
	known := metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+tokens.token(t, nil))
	if code := answered(known, "/etcdserverpb.KV/Compact"); code != codes.Unimplemented {
		t.Errorf("a call that is not offered: %v", code)
	}
	if code := answered(known, "/etcdserverpb.KV/Txn"); code != codes.DeadlineExceeded {
		t.Errorf("the message of a pod is not waited for: %v", code)
	}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		g.limits.mu.Lock()
		left := g.limits.of("namespace ours").calls
		g.limits.mu.Unlock()
		if left == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d calls are counted after their end", left)
		}
	}
}

// Who shows a token has a bound, too: of calls at once, and of the time that one takes.
func TestAPodHasSoManyCallsAtOnce(t *testing.T) {
	r, _ := world(t)
	tokens := newSigner(t, "one")
	g := &gateway{rules: r, limits: newLimits(), tokens: verifierOf(tokens), log: quiet()}
	header := metadata.Pairs("authorization", "Bearer "+tokens.token(t, nil))
	ctx, cancel := context.WithCancel(context.Background())
	open := func(method string) error {
		made, err := g.tap(ctx, &tap.Info{FullMethodName: method, Header: header})
		if _, limited := made.Deadline(); err == nil && limited != offered[method] {
			t.Errorf("%s has a deadline: %v", method, limited)
		}
		return err
	}
	for range freeStreams {
		if err := open("/etcdserverpb.KV/Txn"); err != nil {
			t.Fatal(err)
		}
	}
	if code := status.Code(open("/etcdserverpb.Lease/LeaseGrant")); code != codes.ResourceExhausted {
		t.Errorf("one more: %v", code)
	}
	if err := open("/etcdserverpb.Watch/Watch"); err != nil {
		t.Errorf("a stream is counted when it is opened: %v", err)
	}
	cancel()
	ctx = context.Background()
	for end := time.Now().Add(5 * time.Second); open("/etcdserverpb.KV/Txn") != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("calls are counted after their end")
		}
	}
}

// Two bytes of a message are a struct of a hundred, eight are a level of recursion without a limit.
func TestAMessageIsNoLargerThanItsBytes(t *testing.T) {
	own := codec{encoding.GetCodecV2("proto"), nil}
	read := func(message []byte) error {
		return own.Unmarshal(mem.BufferSlice{mem.SliceBuffer(message)}, &pb.TxnRequest{})
	}
	encoded := func(txn *pb.TxnRequest) []byte {
		made, err := txn.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	many := func(n int) *pb.TxnRequest {
		made := &pb.TxnRequest{}
		for range n {
			made.Compare, made.Success, made.Failure = append(made.Compare, versionIs("a", 1)), append(made.Success, get("a", "")), append(made.Failure, put("a", "{}"))
		}
		return made
	}
	nested := func(levels int, txn *pb.TxnRequest) *pb.TxnRequest {
		for range levels {
			txn = of(&pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: txn}})
		}
		return txn
	}
	for what, message := range map[string][]byte{
		"the largest of the rules": encoded(many(maxOperations + 2)),
		"one in another":           encoded(nested(1, many(1))),
		"a value":                  encoded(of(put("a", strings.Repeat("x", 256<<10)))),
		"an unknown field":         append(encoded(many(1)), 0x50, 1),
	} {
		if err := read(message); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	var cut []byte // field 2^32+1, which etcd's decoder takes for field 1
	for range maxElements + 1 {
		cut = append(cut, 0x8a, 0x80, 0x80, 0x80, 0x80, 0x01, 0)
	}
	for what, message := range map[string][]byte{
		"comparisons":          bytes.Repeat([]byte{0x0a, 0}, maxElements+1),
		"operations":           bytes.Repeat([]byte{0x1a, 0}, maxElements+1),
		"in a transaction":     encoded(nested(1, many(maxElements/2))),
		"levels":               encoded(nested(maxNested+1, many(1))),
		"a field of 33 bits":   cut,
		"a group":              {0x0b, 0x0c},
		"a length without end": {0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f},
		"half a field":         {0x0a, 5, 1},
	} {
		if read(message) == nil {
			t.Errorf("accepted: %s", what)
		}
	}
}

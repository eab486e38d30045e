package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// withCrowd is a gateway with its crowd, whose calls end at the rules: there is no etcd.
func withCrowd(t *testing.T) (*gateway, signer, string) {
	t.Helper()
	r, _ := world(t)
	tokens := newSigner(t, "one")
	g := &gateway{rules: r, limits: newLimits(), tokens: verifierOf(tokens), log: quiet()}
	_, shown := issuer(t)
	service := g.server(&pair{loaded: &shown, looked: time.Now()})
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = service.Serve(socket) }()
	t.Cleanup(service.Stop)
	return g, tokens, socket.Addr().String()
}

// tokenOf is one of a pod of that namespace.
func tokenOf(t *testing.T, tokens signer, namespace, pod string) string {
	return tokens.token(t, map[string]any{
		"kubernetes.io": map[string]any{"namespace": namespace, "pod": map[string]any{"name": pod, "uid": "uid-" + pod}},
	})
}

// slow is a client that begins messages and does not end them.
type slow struct {
	t       *testing.T
	socket  net.Conn
	token   string
	mu      sync.Mutex
	out     *http2.Framer
	granted *sync.Cond
	windows map[uint32]int64 // what each stream may still send; that of the connection is 0
	next    uint32
	over    bool
}

func newSlow(t *testing.T, address, token string) *slow {
	t.Helper()
	socket, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	s := &slow{t: t, socket: socket, token: token, next: 1, windows: map[uint32]int64{0: 65535}}
	s.granted = sync.NewCond(&s.mu)
	s.out = http2.NewFramer(socket, socket)
	if _, err := io.WriteString(socket, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := s.out.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	go s.read()
	t.Cleanup(func() { socket.Close() })
	return s
}

func (s *slow) read() {
	for {
		frame, err := s.out.ReadFrame()
		s.mu.Lock()
		switch f := frame.(type) {
		case *http2.WindowUpdateFrame:
			s.windows[f.StreamID] += int64(f.Increment)
		case *http2.SettingsFrame:
			if !f.IsAck() {
				_ = s.out.WriteSettingsAck()
			}
		case *http2.PingFrame:
			_ = s.out.WritePing(true, f.Data)
		}
		s.over = s.over || err != nil
		s.granted.Broadcast()
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *slow) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// begin opens a call and sends so much of a message of 500 KiB, in frames of this size.
func (s *slow) begin(method string, bytesOf, frame int) (stream uint32, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stream = s.next
	s.next, s.windows[stream] = stream+2, 65535
	var block bytes.Buffer
	fields := hpack.NewEncoder(&block)
	for _, field := range [][2]string{
		{":method", "POST"}, {":scheme", "https"}, {":path", method}, {":authority", "gateway"},
		{"content-type", "application/grpc"}, {"te", "trailers"}, {"authorization", "Bearer " + s.token},
	} {
		_ = fields.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
	}
	if err := s.out.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: block.Bytes(), EndHeaders: true}); err != nil {
		return stream, err
	}
	content := make([]byte, bytesOf)
	binary.BigEndian.PutUint32(content[1:], 500<<10)
	for len(content) > 0 {
		n := min(frame, len(content))
		for !s.over && (s.windows[0] < int64(n) || s.windows[stream] < int64(n)) {
			s.granted.Wait()
		}
		if s.over {
			return stream, io.EOF
		}
		if err := s.out.WriteData(stream, false, content[:n]); err != nil {
			return stream, err
		}
		s.windows[0] -= int64(n)
		s.windows[stream] -= int64(n)
		content = content[n:]
	}
	return stream, nil
}

func (c *crowd) total() (bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for member := range c.members {
		held, _ := member.held()
		bytes += held
	}
	return bytes
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// Bytes that a client has sent and nobody has read are counted, whatever the frames are that bring them, and
// not any more when the call has ended.
func TestWhatIsNotReadIsCounted(t *testing.T) {
	g, tokens, address := withCrowd(t)
	messages := (*client).ofMessages
	for _, frame := range []int{16 << 10, 700, 3} {
		bytesOf := map[int]int{16 << 10: 400 << 10, 700: 400 << 10, 3: 30 << 10}[frame]
		client := newSlow(t, address, tokenOf(t, tokens, "ours", "load-1"))
		stream, err := client.begin("/etcdserverpb.KV/Txn", bytesOf, frame)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the bytes do not come", func() bool { return g.crowd.total() >= int64(bytesOf) })
		if held := g.crowd.total(); held > int64(bytesOf+(bytesOf/frame+1)*frameBytes+4<<10)+streamBytes {
			t.Errorf("frames of %d bytes: %d bytes are counted of %d", frame, held, bytesOf)
		}
		if who, _, _, _, _ := g.crowd.heaviest(messages); who != "namespace ours" {
			t.Errorf("they are counted as of %q", who)
		}
		client.mu.Lock()
		_ = client.out.WriteRSTStream(stream, http2.ErrCodeCancel)
		client.mu.Unlock()
		eventually(t, "a call that has ended is counted", func() bool { return g.crowd.total() == 0 })
		client.socket.Close()
		eventually(t, "a connection that has ended is known", func() bool {
			g.crowd.mu.Lock()
			defer g.crowd.mu.Unlock()
			return len(g.crowd.members) == 0
		})
	}
}

// Short frames, and frames a little longer than one of grpc's buffers, hold more than their bytes.
func TestFramesAreCountedAsWhatTheyCost(t *testing.T) {
	if os.Getenv("ALONE") == "" { // the heap has no garbage of other tests then
		alone := exec.Command(os.Args[0], "-test.run=^TestFramesAreCountedAsWhatTheyCost$")
		alone.Env = append(os.Environ(), "ALONE=yes")
		if said, err := alone.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		return
	}
	for _, frame := range []int{1, 1100} {
		collectGarbage() // once more for what is pooled
		g, tokens, address := withCrowd(t)
		client := newSlow(t, address, tokenOf(t, tokens, "ours", "load-1"))
		bytesOf := map[int]int{1: 20 << 10, 1100: 400 << 10}[frame]
		collectGarbage()
		before := heapUsed()
		for range 16 {
			if _, err := client.begin("/etcdserverpb.KV/Txn", bytesOf, frame); err != nil {
				t.Fatal(err)
			}
		}
		eventually(t, "the bytes do not come", func() bool { return g.crowd.total() >= int64(16*bytesOf) })
		collectGarbage()
		counted, held := g.crowd.total(), heapUsed()-before
		// Of short frames grpc holds less when their reader is behind: it puts them together then, and how
		// far a reader is behind is the machine's business. What is counted is the most that it may hold.
		if held > counted*3/2 || frame > 1 && counted > 4*max(held, 1) {
			t.Errorf("frames of %d bytes: %d bytes are counted, and the process holds %d more", frame, counted, held)
		}
		if freed := g.crowd.relieve(held / 2); freed == 0 {
			t.Errorf("frames of %d bytes: who holds all of it does not give way", frame)
		}
		eventually(t, "the connection stays", client.ended)
	}
}

// Who has nothing that is not read gives way only when the process was looked at again: the reason may be
// gone with those who were closed first.
func TestNobodyGivesWayForWhatIsGone(t *testing.T) {
	g, tokens, address := withCrowd(t)
	theirs := newSlow(t, address, tokenOf(t, tokens, "theirs", "a"))
	for range 20 {
		if _, err := theirs.begin("/etcdserverpb.KV/Txn", 300<<10, 16<<10); err != nil {
			t.Fatal(err)
		}
	}
	var ours []*slow
	for pod := range 40 { // each has a call, of which little was sent
		made := newSlow(t, address, tokenOf(t, tokens, "ours", fmt.Sprint("load-", pod)))
		if _, err := made.begin("/etcdserverpb.KV/Txn", 200, 200); err != nil {
			t.Fatal(err)
		}
		ours = append(ours, made)
	}
	eventually(t, "the bytes do not come", func() bool {
		known, received := 0, int64(0)
		for _, member := range g.crowd.everybody() {
			member.mu.Lock()
			for _, stream := range member.streams {
				received += stream.received
			}
			member.mu.Unlock()
			if *member.who.Load() == "namespace ours" {
				known++
			}
		}
		return known == 40 && received >= 20*300<<10+40*200
	})
	for _, member := range g.crowd.everybody() {
		if *member.who.Load() == "namespace ours" {
			member.mu.Lock()
			for _, stream := range member.streams { // as of a heartbeat that was read
				stream.begun, stream.granted = 0, stream.received
			}
			member.mu.Unlock()
		}
	}
	g.crowd.relieve(20*300<<10 + 1<<20)
	eventually(t, "the reason stays", theirs.ended)
	for _, one := range ours {
		if one.ended() {
			t.Error("one that has nothing unread gives way at once")
		}
	}
}

// Who sends whole messages holds nothing, however long the connection and its stream last.
func TestWhatIsReadIsNotCounted(t *testing.T) {
	g, tokens, address := withCrowd(t)
	client, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx := metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+tokenOf(t, tokens, "ours", "load-1"))
	for range 50 {
		// A message of more than a window, which the rules refuse.
		_, err := pb.NewKVClient(client).Txn(ctx, &pb.TxnRequest{Success: []*pb.RequestOp{put("/other", string(make([]byte, 200<<10)))}})
		if code := status.Code(err); code == codes.OK || code == codes.Unavailable {
			t.Fatal(err)
		}
	}
	eventually(t, "calls that have ended are counted", func() bool { return g.crowd.total() == 0 })
	many := &sent{}
	for range 1000 { // as grpc answers: room again in steps of a quarter
		many.add(append([]byte{0, 0, 0, 0, 20}, make([]byte, 20)...), false)
		if many.received-many.granted >= 16<<10 {
			many.granted = many.received
		}
	}
	if held := many.held(); held > 16<<10+streamBytes {
		t.Errorf("a heartbeat of 1,000 messages holds %d bytes", held)
	}
	if unread := many.unread(); unread != 0 {
		t.Errorf("a heartbeat has %d bytes that nobody has read", unread)
	}
}

// The namespace that has sent most that is not read gives way, connection by connection.
func TestWhoHoldsMostGivesWay(t *testing.T) {
	g, tokens, address := withCrowd(t)
	fill := func(namespace, pod string, calls int) *slow {
		made := newSlow(t, address, tokenOf(t, tokens, namespace, pod))
		for range calls {
			if _, err := made.begin("/etcdserverpb.KV/Txn", 300<<10, 16<<10); err != nil {
				t.Fatal(err)
			}
		}
		return made
	}
	small := fill("ours", "load-1", 2)
	one, other := fill("theirs", "a", 20), fill("theirs", "b", 30)
	alone := fill("others", "c", 40)
	eventually(t, "the bytes do not come", func() bool { return g.crowd.total() >= 92*300<<10 })
	// theirs hold 15 MB in two connections, others 12 MB in one.
	if freed := g.crowd.relieve(1); freed < 30*300<<10 {
		t.Errorf("%d bytes are freed", freed)
	}
	eventually(t, "the larger connection of those who hold most stays", other.ended)
	if one.ended() || alone.ended() || small.ended() {
		t.Error("another one gives way")
	}
	g.crowd.relieve(1)
	eventually(t, "who holds most now stays", alone.ended)
	g.crowd.relieve(1)
	eventually(t, "the last one that is large stays", one.ended)
	g.crowd.relieve(1 << 30)
	if small.ended() {
		t.Error("who holds little gives way, though that cannot be the reason")
	}
	if closed := g.crowd.closed.Load(); closed != 3 {
		t.Errorf("%d connections are counted as closed", closed)
	}
}

// However many namespaces share it: there is no amount that each may hold.
func TestManyNamespacesGiveWayOneByOne(t *testing.T) {
	g, tokens, address := withCrowd(t)
	begun := func(namespace string, calls int) *slow {
		made := newSlow(t, address, tokenOf(t, tokens, namespace, "p"))
		for range calls {
			if _, err := made.begin("/etcdserverpb.KV/Txn", 300<<10, 16<<10); err != nil {
				t.Fatal(err)
			}
		}
		return made
	}
	honest := begun("ours", 1)
	var others []*slow
	for namespace := range 30 {
		others = append(others, begun(fmt.Sprint("theirs-", namespace), 3))
	}
	eventually(t, "the bytes do not come", func() bool { return g.crowd.total() >= 91*300<<10 })
	if freed := g.crowd.relieve(20 << 20); freed < 20<<20 {
		t.Errorf("%d bytes are freed", freed)
	}
	eventually(t, "too few give way", func() bool {
		left := 0
		for _, other := range others {
			if !other.ended() {
				left++
			}
		}
		return left <= 10
	})
	if honest.ended() {
		t.Error("who has sent least gives way")
	}
}

// Many pods of several namespaces, each within its own limits, do not fill this process.
func TestManyPodsDoNotFillTheGateway(t *testing.T) {
	g, tokens, address := withCrowd(t)
	const room = 48 << 20
	// Not of the heap, which has more than this test's: what is collected of others would be room for these.
	go g.crowd.watch(room, g.crowd.total, func() {})
	honest := newSlow(t, address, tokenOf(t, tokens, "ours", "load-1"))
	if _, err := honest.begin("/etcdserverpb.KV/Txn", 100<<10, 16<<10); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for namespace := range 3 {
		for pod := range 4 { // 12 pods with 64 calls of 500 KiB each: 375 MiB
			made := newSlow(t, address, tokenOf(t, tokens, fmt.Sprint("theirs-", namespace), fmt.Sprint("p-", pod)))
			all.Go(func() {
				for range freeStreams {
					if _, err := made.begin("/etcdserverpb.KV/Txn", 499<<10, 16<<10); err != nil {
						return
					}
				}
			})
		}
	}
	all.Wait()
	eventually(t, "this process holds more than it may", func() bool { return g.crowd.total() <= room })
	if honest.ended() {
		t.Error("who holds little gives way")
	}
	if g.crowd.closed.Load() == 0 {
		t.Error("no connection was closed")
	}
}

// What is watched in a process that serves: bytes that are in use are seen, and not those that were freed.
func TestTheHeapIsWatched(t *testing.T) {
	var seen, left int64
	for range 5 { // what tests before it have left may be freed meanwhile
		collectGarbage()
		before := heapUsed()
		held := make([]byte, 64<<20)
		seen = heapUsed() - before
		runtime.KeepAlive(held)
		held = nil
		collectGarbage()
		left = heapUsed() - before
		if seen >= 60<<20 && left <= 32<<20 {
			return
		}
	}
	t.Errorf("of 64 MiB %d bytes are seen, and %d when they are freed", seen, left)
}

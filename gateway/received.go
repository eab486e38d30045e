package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// ---- data that clients have sent and that was not read yet: grpc buffers it for every client

// crowd knows how much this process holds for each connection of what its client has sent. When the
// process comes close to the end of its memory, the namespace that has most loses connections: limits of
// a pod and of a table do not bound the sum of all.
//
// grpc offers no place where this can be counted, so it is counted in the frames of HTTP/2.
type crowd struct {
	log *slog.Logger

	mu      sync.Mutex
	members map[*client]struct{}
	// Connections that were closed: a counter for /metrics.
	closed atomic.Int64
	// Held by who looks for a connection whose client does not read, until that one's answers are given up.
	giving sync.Mutex
}

// client is a connection after its handshake; what is read and written is HTTP/2.
type client struct {
	net.Conn
	raw net.Conn // beneath TLS
	of  *crowd
	// Owner, as limits name it: the namespace of its last call; before the first call its address.
	who atomic.Pointer[string]
	// Bytes that were sent to it and that it has not read; nil before the first answer that is held.
	answers atomic.Pointer[connection]

	mu       sync.Mutex
	streams  map[uint32]*sent
	reads    frames
	writes   frames
	prefaced int
}

// sent is what the client has sent on a stream that is open.
type sent struct {
	received, granted int64
	// The message that has begun: its bytes so far, the bytes to come, and its head.
	begun, left int64
	head        [messageHead]byte
	headed      int
}

const (
	// Bytes that grpc puts before each message: one for its compression, four for its length.
	messageHead = 5
	// Memory of a message's frame besides its bytes: grpc keeps each frame in a separate buffer until the
	// message is whole, and an entry in two lists.
	frameBytes = 64
	// Memory of a stream besides its bytes: two goroutines and grpc's data about it.
	streamBytes = 16 << 10
	// grpc makes room for a stream again when so much of it was read: an honest one counts as much.
	readBytes    = 16 << 10
	reliefPause  = 100 * time.Millisecond
	collectPause = 500 * time.Millisecond
	// Maximum time that an answer waits for its client.
	answerTime    = 30 * time.Second
	clientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
)

// Types and flags of frames (RFC 9113).
const (
	dataFrame, headersFrame, resetFrame, windowFrame = 0x0, 0x1, 0x3, 0x8
	flagEnd, flagPadded                              = 0x1, 0x8
	frameHead                                        = 9
)

func newCrowd(log *slog.Logger) *crowd {
	return &crowd{log: log, members: map[*client]struct{}{}}
}

// counted is TLS whose connections are counted.
type counted struct {
	credentials.TransportCredentials
	of *crowd
}

// known is what grpc hands on of a connection with each of its calls.
type known struct {
	credentials.TLSInfo
	client *client
}

func (c counted) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	connection, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	made := &client{Conn: connection, raw: raw, of: c.of, streams: map[uint32]*sent{}}
	who := "address " + addressOf(raw)
	made.who.Store(&who)
	c.of.mu.Lock()
	c.of.members[made] = struct{}{}
	c.of.mu.Unlock()
	shown, _ := info.(credentials.TLSInfo)
	return made, known{shown, made}, nil
}

// clientOf is the connection of a call; nil where connections are not counted.
func clientOf(ctx context.Context) *client {
	if from, ok := peer.FromContext(ctx); ok {
		if info, ok := from.AuthInfo.(known); ok {
			return info.client
		}
	}
	return nil
}

// belongs notes whose calls come on the connection of this context.
func belongs(ctx context.Context, who string) {
	if from := clientOf(ctx); from != nil && *from.who.Load() != who {
		from.who.Store(&who)
	}
}

func (c *client) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	c.mu.Lock()
	defer c.mu.Unlock()
	read := into[:n]
	if skip := min(len(clientPreface)-c.prefaced, len(read)); skip > 0 {
		c.prefaced += skip
		read = read[skip:]
	}
	c.reads.each(read, c.received)
	return n, err
}

func (c *client) Write(bytes []byte) (int, error) {
	c.mu.Lock()
	c.writes.each(bytes, c.answered)
	c.mu.Unlock()
	return c.Conn.Write(bytes)
}

func (c *client) Close() error {
	c.of.forget(c)
	return c.Conn.Close()
}

func (c *crowd) forget(gone *client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.members, gone)
}

// received sees a part of a frame of the client's.
func (c *client) received(f *frames, part []byte, first bool) {
	stream, open := c.streams[f.stream]
	switch f.kind {
	case headersFrame:
		if !open && first {
			c.streams[f.stream] = &sent{}
		}
	case resetFrame:
		delete(c.streams, f.stream)
	case dataFrame:
		if open {
			// Padding is counted as if it was a message: no client of ours sends any.
			if first {
				stream.frame(f.left)
			}
			stream.add(part, f.flags&flagPadded != 0)
		}
	}
}

// answered sees a part of a frame of grpc's.
func (c *client) answered(f *frames, part []byte, _ bool) {
	switch f.kind {
	case headersFrame:
		if f.flags&flagEnd != 0 {
			delete(c.streams, f.stream)
		}
	case resetFrame:
		delete(c.streams, f.stream)
	case windowFrame:
		f.window = append(f.window, part...)
		if stream, open := c.streams[f.stream]; open && len(f.window) == 4 {
			stream.granted += int64(binary.BigEndian.Uint32(f.window) & math.MaxInt32)
		}
	}
}

// buffers are the sizes that grpc has for frames; a shorter frame than the first one is in a buffer of its
// own size.
var buffers = [...]int{1 << 10, 4 << 10, 16 << 10, 32 << 10}

// frame counts what one costs beside its bytes, until the message that it is a part of is whole.
func (s *sent) frame(length int) {
	if length == 0 {
		return // grpc keeps nothing of it
	}
	s.begun += frameBytes
	for i, size := range buffers {
		if length <= size {
			if i > 0 {
				s.begun += int64(size - length)
			}
			return
		}
	}
}

// add counts bytes of messages. grpc takes a message when all of it has come.
func (s *sent) add(bytes []byte, padded bool) {
	s.received += int64(len(bytes))
	if padded {
		s.begun += int64(len(bytes))
		return
	}
	for len(bytes) > 0 {
		if s.headed < messageHead {
			n := copy(s.head[s.headed:], bytes)
			s.headed += n
			s.begun += int64(n)
			bytes = bytes[n:]
			if s.headed < messageHead {
				return
			}
			s.left = int64(binary.BigEndian.Uint32(s.head[1:]))
		}
		n := min(s.left, int64(len(bytes)))
		s.left -= n
		s.begun += n
		bytes = bytes[n:]
		if s.left == 0 {
			s.begun, s.headed = 0, 0
		}
	}
}

// held is the most that grpc may hold for the stream: the message that has begun, or what it has not made
// room for again. It makes room in steps, and for a long message before that has come.
func (s *sent) held() int64 { return max(s.begun, s.received-s.granted) + streamBytes }

// unread is what it holds for certain.
func (s *sent) unread() int64 { return max(s.begun, s.received-s.granted-readBytes, 0) }

func (c *client) held() (bytes, unread int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, stream := range c.streams {
		bytes += stream.held()
		unread += stream.unread()
	}
	return bytes, unread
}

// frames reads the heads of HTTP/2's frames out of a connection's bytes, however these are cut.
type frames struct {
	head   [frameHead]byte
	headed int
	left   int
	begun  bool

	kind, flags byte
	stream      uint32
	window      []byte
}

// each shows the parts of frames; one without content is shown once, too.
func (f *frames) each(bytes []byte, see func(f *frames, part []byte, first bool)) {
	for len(bytes) > 0 {
		if f.headed < frameHead {
			n := copy(f.head[f.headed:], bytes)
			f.headed += n
			bytes = bytes[n:]
			if f.headed < frameHead {
				return
			}
			f.left = int(f.head[0])<<16 | int(f.head[1])<<8 | int(f.head[2])
			f.kind, f.flags = f.head[3], f.head[4]
			f.stream = binary.BigEndian.Uint32(f.head[5:]) & math.MaxInt32
			f.begun, f.window = false, f.window[:0]
		}
		n := min(f.left, len(bytes))
		if n > 0 || f.left == 0 {
			see(f, bytes[:n], !f.begun)
			f.begun = true
		}
		f.left -= n
		bytes = bytes[n:]
		if f.left == 0 {
			f.headed = 0
		}
	}
}

// weight is how many bytes this process holds for a connection, and how many of them for certain because
// the client does not go on.
type weight struct{ unread, held int64 }

func (w weight) and(more weight) weight { return weight{w.unread + more.unread, w.held + more.held} }

// ofMessages is the weight of what the client has sent.
func (c *client) ofMessages() weight {
	held, unread := c.held()
	return weight{unread, held}
}

// ofAnswers is the weight of what it was sent and has not read, in as much time as a request has for memory.
func (c *client) ofAnswers() weight {
	if answers := c.answers.Load(); answers != nil {
		if bytes, since := answers.unwritten(); time.Since(since) >= answerPatience {
			return weight{bytes, bytes}
		}
	}
	return weight{}
}

// heaviest returns the owner with the most unread bytes; if no owner has any, the one that holds the most.
// It also returns that owner's largest connection, and the weights of the owner, of that connection and of
// all.
func (c *crowd) heaviest(weigh func(*client) weight) (who string, most *client, theirs, own, all weight) {
	more := func(a, b weight) bool { return a.unread > b.unread || (a.unread == b.unread && a.held > b.held) }
	of, one, largest := map[string]weight{}, map[string]*client{}, map[string]weight{}
	for _, member := range c.everybody() {
		this, name := weigh(member), *member.who.Load()
		all, of[name] = all.and(this), of[name].and(this)
		if one[name] == nil || more(this, largest[name]) {
			one[name], largest[name] = member, this
		}
	}
	heaviest := weight{}
	for name, total := range of {
		if more(total, heaviest) {
			who, heaviest = name, total
		}
	}
	return who, one[who], heaviest, largest[who], all
}

// relieve closes connections until so many bytes are free; it returns how many it could free. If clients
// have sent far less than that, they are not the cause and no connection is closed. The amount is an
// estimate: before it closes a connection without unread data, the caller measures again.
func (c *crowd) relieve(bytes int64) (freed int64) {
	for freed < bytes {
		who, most, theirs, own, all := c.heaviest((*client).ofMessages)
		if most == nil || all.held < (bytes-freed)/2 || theirs.unread == 0 && freed > 0 {
			return freed
		}
		c.end(most, "this process needs memory, and nobody has sent more that is not read than "+who, own.held, all.held)
		freed += own.held
	}
	return freed
}

// end closes a connection.
func (c *crowd) end(gone *client, why string, own, all int64) {
	c.closed.Add(1)
	c.log.Warn("connection closed", "why", why, "bytes", own, "of all", all)
	// Not by TLS, which would say goodbye to a peer that may not read.
	c.forget(gone)
	_ = gone.raw.Close()
}

func (c *crowd) everybody() []*client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.members))
}

// giveWay ends connections whose clients do not read what they were sent, as long as that is needed:
// each time of the namespace that holds most the one that holds most.
func (c *crowd) giveWay(needed func() bool) {
	c.giving.Lock()
	defer c.giving.Unlock()
	for needed() {
		who, most, _, own, all := c.heaviest((*client).ofAnswers)
		if most == nil {
			return
		}
		c.end(most, "there is no memory for answers, and nobody leaves more of them unread than "+who, own.held, all.held)
		most.answers.Load().end()
	}
}

// hangUp ends connections whose clients have not read an answer for so long.
func (c *crowd) hangUp(patience time.Duration) {
	for _, member := range c.everybody() {
		if answers := member.answers.Load(); answers != nil {
			if bytes, since := answers.unwritten(); bytes > 0 && time.Since(since) > patience {
				c.end(member, fmt.Sprintf("an answer to %s was not read for %s", *member.who.Load(), patience), bytes, bytes)
				answers.end()
			}
		}
	}
}

// watch relieves this process when it holds more than so many bytes that are in use.
func (c *crowd) watch(limit int64, used func() int64, collect func()) {
	collected := time.Time{}
	for ; ; time.Sleep(reliefPause) {
		if used() <= limit {
			continue
		}
		// Some of it is garbage.
		if wait := collectPause - time.Since(collected); wait > 0 {
			time.Sleep(wait)
		}
		collect()
		collected = time.Now()
		if over := used() - limit*9/10; over > limit/10 {
			c.relieve(over)
		}
	}
}

// heapLimit is three quarters of the memory that the process may have (GOMEMLIMIT); 0 when it has no limit.
func heapLimit() int64 {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return 0
	}
	return limit / 4 * 3
}

// heapUsed is what the process holds in its heap, garbage that was not collected yet included.
func heapUsed() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

func collectGarbage() { runtime.GC() }

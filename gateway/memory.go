package main

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
)

// ---- bytes of answers are reserved before etcd is asked, and given back when the client has them

// hold is a number of bytes that an answer may need, or has.
type hold struct {
	limits *limits
	of     *usage
	bytes  int64
}

// reserve takes bytes of the owner's share and of all that there is, and waits a moment for them. Where
// answers that clients do not read leave no room for anybody, those who hold most of them give way.
func (l *limits) reserve(ctx context.Context, owner string, bytes int64) (*hold, error) {
	late := time.NewTimer(answerPatience)
	defer late.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	use := l.of(owner)
	use.waiting++
	defer func() { use.waiting-- }()
	for over, gaveWay := false, false; ; {
		own := use.held+bytes > l.answerBytes
		if !own && l.held+bytes <= l.memoryBytes {
			use.held += bytes
			l.held += bytes
			return &hold{l, use, bytes}, nil
		}
		if (over || use.waiting > maxWaiting) && own {
			return nil, exceeded(owner, "bytes of answers at once", l.answerBytes, "memory")
		}
		if over && !gaveWay && l.giveWay != nil {
			gaveWay = true
			l.mu.Unlock()
			l.giveWay(func() bool {
				l.mu.Lock()
				defer l.mu.Unlock()
				return l.held+bytes > l.memoryBytes
			})
			l.mu.Lock()
			continue
		}
		if over || use.waiting > maxWaiting {
			return nil, exceeded("the gateway", "bytes of answers at once", l.memoryBytes, "memory")
		}
		freed := l.freed
		l.mu.Unlock()
		var err error
		select {
		case <-freed:
		case <-late.C:
			over = true
		case <-ctx.Done():
			err = status.FromContextError(ctx.Err()).Err()
		}
		l.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
}

// shrink gives back all but so many bytes.
func (h *hold) shrink(to int64) {
	h.limits.mu.Lock()
	defer h.limits.mu.Unlock()
	if less := h.bytes - to; less > 0 {
		h.bytes = to
		h.of.held -= less
		h.limits.held -= less
		close(h.limits.freed)
		h.limits.freed = make(chan struct{})
	}
}

func (h *hold) release() { h.shrink(0) }

// rooms are what an answer may need; one that needs more than the last one did is read again.
var rooms = []int64{64 << 10, 256 << 10, 1 << 20, 4 << 20}

// headBytes are those of an answer beside keys and values.
const headBytes = 4 << 10

func (l *limits) atLeast(bytes int64) int64 {
	for _, room := range rooms {
		if bytes <= room && room < l.answerBytes {
			return room
		}
	}
	return l.answerBytes
}

// room is what the owner's last answer to a request of this shape needed.
func (l *limits) room(owner, shape string) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.atLeast(l.of(owner).rooms[shape])
}

func (l *limits) needed(owner, shape string, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.of(owner).rooms[shape] = bytes
}

// shape names the kind of key that a transaction reads first, of which there are a few.
func (c *contract) shape(txn *pb.TxnRequest) string {
	for _, op := range operations(txn) {
		if asked := op.GetRequestRange(); asked != nil {
			base, _ := c.base(asked.Key)
			kind, _, _ := strings.Cut(strings.TrimPrefix(string(asked.Key), base), "/")
			if _, known := c.single[kind]; !known {
				kind = ""
			}
			if len(asked.RangeEnd) > 0 {
				kind += "/"
			}
			return kind
		}
	}
	return ""
}

// most is what the answer to a transaction needs that is sent only once, because it writes.
func (l *limits) most(c *contract, txn *pb.TxnRequest) (bytes int64, writes bool) {
	bytes = headBytes
	for _, op := range operations(txn) {
		switch asked := op.GetRequestRange(); {
		case asked == nil:
			writes = true
		case len(asked.RangeEnd) > 0:
			bytes = l.answerBytes
		default:
			bytes += int64(c.longestAt(asked.Key) + maxKeyBytes)
		}
	}
	return min(bytes, l.answerBytes), writes
}

// ask executes a transaction in etcd. What its answer needs is held until the caller gives it back. With a
// guard that does not hold nothing is executed, and there is no answer.
func (g *gateway) ask(ctx context.Context, p payer, txn *pb.TxnRequest, guard *pb.Compare) (*pb.TxnResponse, *hold, error) {
	shape := g.rules.contract.shape(txn)
	room, writes := g.limits.most(g.rules.contract, txn)
	if !writes {
		room = g.limits.room(p.owner, shape)
	}
	sent := txn
	if guard != nil {
		sent = guarded(txn, guard)
	}
	for {
		held, err := g.limits.reserve(ctx, p.owner, room)
		if err != nil {
			return nil, nil, err
		}
		take := room
		if writes {
			take = g.limits.answerBytes // what is written already is not refused
		}
		answer, err := g.etcd.send(ctx, sent, int(take))
		if err == nil && guard != nil {
			if answer = unguarded(answer); answer == nil {
				held.release()
				return nil, nil, nil
			}
		}
		if err == nil {
			size := int64(answer.Size())
			held.shrink(size)
			g.limits.answered(p, int(size))
			if !writes {
				g.limits.needed(p.owner, shape, size)
			}
			return answer, held, nil
		}
		held.release()
		size := larger(err)
		if size == 0 {
			return nil, nil, err
		}
		g.limits.answered(p, int(size)) // etcd has made it
		if size > g.limits.answerBytes || take >= g.limits.answerBytes {
			return nil, nil, exceeded(p.owner, "bytes of one answer", g.limits.answerBytes, "memory")
		}
		room = g.limits.atLeast(max(size, room+1))
	}
}

// larger is the size of the answer that grpc did not take; 0 when that is not why a call failed.
func larger(err error) int64 {
	_, said, found := strings.Cut(status.Convert(err).Message(), "grpc: received message larger than max (")
	if !found || status.Code(err) != codes.ResourceExhausted {
		return 0
	}
	digits, _, _ := strings.Cut(said, " ")
	size, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 1
	}
	return size
}

type payerKey struct{}

// look executes the gateway's own reads for a pod, which pays for them.
func (g *gateway) look(ctx context.Context, ranges ...*pb.RangeRequest) ([]*pb.RangeResponse, error) {
	p, _ := ctx.Value(payerKey{}).(payer)
	txn := &pb.TxnRequest{}
	for _, r := range ranges {
		txn.Success = append(txn.Success, &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: r}})
	}
	answer, held, err := g.ask(ctx, p, txn, nil)
	if status.Code(err) == codes.ResourceExhausted {
		return nil, err
	}
	if err != nil {
		// The pod's own request was not sent: it may be repeated, whatever the reason was.
		return nil, status.Errorf(codes.Unavailable, "gateway: etcd cannot be asked: %s", status.Convert(err).Message())
	}
	held.release() // what the rules keep of it is small
	found := make([]*pb.RangeResponse, len(ranges))
	for i := range ranges {
		found[i] = answer.Responses[i].GetResponseRange()
	}
	return found, nil
}

// ---- an answer is held until it is written to the client's connection, or that has ended

// connection holds the answers that one client was sent and has not read, each with the time when it was
// sent.
type connection struct {
	mu   sync.Mutex
	held map[*hold]time.Time
	over bool
}

// unwritten are the bytes that are held, and since when the oldest of them.
func (c *connection) unwritten() (bytes int64, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for h, at := range c.held {
		bytes += h.bytes
		if since.IsZero() || at.Before(since) {
			since = at
		}
	}
	return bytes, since
}

func (c *connection) add(h *hold) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.held[h] = time.Now()
	}
	return !c.over
}

func (c *connection) drop(h *hold) {
	c.mu.Lock()
	delete(c.held, h)
	c.mu.Unlock()
	h.release()
}

func (c *connection) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	for h := range c.held {
		h.release()
	}
	c.held = nil
}

type connectionKey struct{}

// connections is a handler of grpc's statistics: it learns of a connection's beginning and end.
type connections struct{}

func (connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }
func (connections) HandleRPC(context.Context, stats.RPCStats)                       {}

func (connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, connectionKey{}, &connection{held: map[*hold]time.Time{}})
}

func (connections) HandleConn(ctx context.Context, s stats.ConnStats) {
	if c, ok := ctx.Value(connectionKey{}).(*connection); ok {
		if _, ended := s.(*stats.ConnEnd); ended {
			c.end()
		}
	}
}

// hand gives an answer to grpc, which frees it when it is written.
func (g *gateway) hand(ctx context.Context, answer any, h *hold) {
	c, ok := ctx.Value(connectionKey{}).(*connection)
	if !ok || !c.add(h) {
		h.release()
		return
	}
	if from := clientOf(ctx); from != nil {
		from.answers.Store(c)
	}
	g.handed.Store(answer, pool(func() { c.drop(h) }))
}

// pool is told when a buffer is free; it gives out none.
type pool func()

func (p pool) Get(length int) *[]byte {
	made := make([]byte, length)
	return &made
}

func (p pool) Put(*[]byte) { p() }

// codec is grpc's own, but for answers that are held and for transactions (before.go).
type codec struct {
	encoding.CodecV2
	handed *sync.Map
}

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	free, ok := c.handed.LoadAndDelete(v)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	data, err := v.(interface{ Marshal() ([]byte, error) }).Marshal()
	if err != nil || mem.IsBelowBufferPoolingThreshold(cap(data)) {
		free.(pool)() // so small a buffer is never told to be free
	}
	if err != nil {
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(&data, free.(pool))}, nil
}

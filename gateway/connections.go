package main

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"

	"golang.org/x/time/rate"
)

// ---- connections, which a pod opens before it shows a token

// listener bounds the connections of one address and of all of them.
//
// An address at its limit gets no further connection. When the total limit is reached, the address with the
// most connections loses its newest one to an address that has clearly fewer, so an address with one or two
// connections can always connect. This happens before TLS begins and before grpc counts the connection.
type listener struct {
	net.Listener
	ofAddress, ofAll int
	// Where the limits can be changed, for what is logged; empty: nowhere.
	flags [2]string
	log   *slog.Logger

	mu    sync.Mutex
	open  map[string][]*accepted // by address, oldest first
	count int
	told  *rate.Limiter
	// Connections that were closed because of a limit: a counter for /metrics.
	refused int64
}

// accepted is a connection that is counted until it is closed.
type accepted struct {
	net.Conn
	of      *listener
	address string
}

func newListener(inner net.Listener, ofAddress, ofAll int, log *slog.Logger) *listener {
	return &listener{
		Listener: inner, ofAddress: ofAddress, ofAll: ofAll, log: log,
		open: map[string][]*accepted{}, told: rate.NewLimiter(1, 20),
	}
}

// Accept returns the next connection that may be had.
func (l *listener) Accept() (net.Conn, error) {
	for {
		connection, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if kept := l.admit(connection); kept != nil {
			return kept, nil
		}
	}
}

// admit counts a connection, or closes it and returns nil.
func (l *listener) admit(connection net.Conn) net.Conn {
	made := &accepted{Conn: connection, of: l, address: addressOf(connection)}
	l.mu.Lock()
	own := len(l.open[made.address])
	var closed *accepted
	why := ""
	switch {
	case own >= l.ofAddress:
		closed, why = made, fmt.Sprintf("%s has %d connections, the most that an address may have%s", made.address, own, l.flags[0])
	case l.count >= l.ofAll:
		heaviest, has := l.heaviest()
		if has <= own+1 {
			closed, why = made, fmt.Sprintf("all %d connections are open%s, and no address has more than %s", l.count, l.flags[1], made.address)
		} else {
			closed = l.open[heaviest][has-1]
			l.forget(closed)
			why = fmt.Sprintf("all %d connections are open%s: %s, which has %d of them, loses one to %s", l.count+1, l.flags[1], heaviest, has, made.address)
		}
	}
	if closed != made {
		l.open[made.address] = append(l.open[made.address], made)
		l.count++
	}
	tell := false
	if closed != nil {
		l.refused++
		tell = l.told.Allow()
	}
	l.mu.Unlock()
	if tell {
		l.log.Warn("connection closed", "why", why)
	}
	if closed != nil {
		// Not under the lock: closing may wait for the peer.
		_ = closed.Conn.Close()
	}
	if closed == made {
		return nil
	}
	return made
}

// heaviest returns the address with most connections and their number; l.mu is held.
func (l *listener) heaviest() (string, int) {
	name, most := "", 0
	for address, open := range l.open {
		if len(open) > most {
			name, most = address, len(open)
		}
	}
	return name, most
}

// forget takes a connection out of the count, if it is still in it; l.mu is held.
func (l *listener) forget(gone *accepted) {
	open := l.open[gone.address]
	at := slices.Index(open, gone)
	if at < 0 {
		return
	}
	if len(open) == 1 {
		delete(l.open, gone.address)
	} else {
		l.open[gone.address] = slices.Delete(open, at, at+1)
	}
	l.count--
}

// Close gives the connection's place back.
func (a *accepted) Close() error {
	a.of.mu.Lock()
	a.of.forget(a)
	a.of.mu.Unlock()
	return a.Conn.Close()
}

// numbers returns how many connections are open and how many were closed because of a limit.
func (l *listener) numbers() (open int, refused int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count, l.refused
}

// addressOf is the peer's address without its port.
func addressOf(connection net.Conn) string {
	host, _, err := net.SplitHostPort(connection.RemoteAddr().String())
	if err != nil {
		return connection.RemoteAddr().String()
	}
	return host
}

package main

import (
	"net"
	"strings"
	"testing"
	"time"
)

// from opens a connection to the listener from an address of the loopback network.
func from(t *testing.T, address string, at net.Addr) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: 5 * time.Second}
	made, err := dialer.Dial("tcp", at.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { made.Close() })
	return made
}

// closed says whether the other side has closed the connection within a moment.
func closed(connection net.Conn) bool {
	_ = connection.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
	_, err := connection.Read(make([]byte, 1))
	return err != nil && !strings.Contains(err.Error(), "timeout")
}

// accepting is a listener whose connections are accepted and kept.
func accepting(t *testing.T, ofAddress, ofAll int) (*listener, chan net.Conn) {
	t.Helper()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newListener(socket, ofAddress, ofAll, quiet())
	taken := make(chan net.Conn, 100)
	go func() {
		for {
			connection, err := l.Accept()
			if err != nil {
				return
			}
			taken <- connection
		}
	}()
	t.Cleanup(func() { socket.Close() })
	return l, taken
}

// next is the connection that the listener accepts next.
func next(t *testing.T, taken chan net.Conn) net.Conn {
	t.Helper()
	select {
	case connection := <-taken:
		return connection
	case <-time.After(5 * time.Second):
		t.Fatal("no connection is accepted")
		return nil
	}
}

// One address has so many connections, and a connection that ends gives its place back, once.
func TestConnectionsOfAnAddressAreBounded(t *testing.T) {
	l, taken := accepting(t, 2, 100)
	first, second := from(t, "127.0.0.2", l.Addr()), from(t, "127.0.0.2", l.Addr())
	served := next(t, taken)
	next(t, taken)
	if !closed(from(t, "127.0.0.2", l.Addr())) {
		t.Error("a third connection of an address that may have two")
	}
	if closed(first) || closed(second) {
		t.Error("a connection that was served is closed because of another one")
	}
	if closed(from(t, "127.0.0.3", l.Addr())) {
		t.Error("an address pays for another one")
	}
	next(t, taken)
	_ = served.Close()
	_ = served.Close()
	if closed(from(t, "127.0.0.2", l.Addr())) {
		t.Error("the place of a connection that ended is not given back")
	}
	next(t, taken)
	if open, refused := l.numbers(); open != 3 || refused != 1 {
		t.Errorf("%d open, %d refused", open, refused)
	}
}

// When all connections are open, the address that has most of them gives way, and nobody with few does.
func TestWhoOpensManyConnectionsGivesWay(t *testing.T) {
	l, taken := accepting(t, 100, 4)
	few := from(t, "127.0.0.2", l.Addr())
	next(t, taken)
	many := []net.Conn{}
	for range 3 {
		many = append(many, from(t, "127.0.0.3", l.Addr()))
		next(t, taken)
	}
	late := from(t, "127.0.0.4", l.Addr())
	next(t, taken)
	if closed(late) || closed(few) {
		t.Error("an address with one connection gives way to one with three")
	}
	if closed(many[0]) || closed(many[1]) || !closed(many[2]) {
		t.Error("not the newest connection of the address with most of them was closed")
	}
	if !closed(from(t, "127.0.0.3", l.Addr())) {
		t.Error("the address with most connections gets another one")
	}
	// Two against one: the difference is no reason.
	if !closed(from(t, "127.0.0.2", l.Addr())) || closed(many[0]) || closed(many[1]) {
		t.Error("connections are taken back and forth")
	}
	if open, refused := l.numbers(); open != 4 || refused != 3 {
		t.Errorf("%d open, %d refused", open, refused)
	}
}

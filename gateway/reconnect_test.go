package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// leaseSeconds is the least time for which a writer's lease lives without a heartbeat.
const leaseSeconds = 10

// etcd's pod is replaced: the first connection is to an address where nobody answers any more.
func TestAConnectionThatNobodyAnswersIsGivenUpBeforeLeasesEnd(t *testing.T) {
	root, shown := issuer(t, net.IPv4(127, 0, 0, 1))
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&shown)))
	pb.RegisterKVServer(server, &large{})
	go func() { _ = server.Serve(socket) }()
	t.Cleanup(server.Stop)

	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	go func() {
		for first := true; ; first = false {
			connection, err := silent.Accept()
			if err != nil {
				return
			}
			if !first {
				go forward(connection, socket.Addr().String())
			}
		}
	}()

	folder := t.TempDir()
	key, err := x509.MarshalECPrivateKey(shown.PrivateKey.(*ecdsa.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string, content []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	s := settings{
		endpoints: "https://" + silent.Addr().String(),
		ca:        file("ca.crt", root),
		cert:      file("tls.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: shown.Certificate[0]})),
		key:       file("tls.key", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key})),
	}
	etcd, _, err := connect(s, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaseSeconds*time.Second)
	defer cancel()
	member, _ := etcd.use()
	if _, err := pb.NewKVClient(member).Txn(ctx, &pb.TxnRequest{}, grpc.WaitForReady(true)); err != nil {
		t.Fatalf("a heartbeat would have come too late: %v", err)
	}
}

func forward(connection net.Conn, address string) {
	to, err := net.Dial("tcp", address)
	if err != nil {
		connection.Close()
		return
	}
	go func() { _, _ = io.Copy(to, connection); to.Close() }()
	_, _ = io.Copy(connection, to)
	connection.Close()
}

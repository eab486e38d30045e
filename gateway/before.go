package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// ---- before grpc receives a message: whose it is; before it decodes one: how much it would hold

// offered are the calls that pods need; true: a call with one message, which grpc receives as a whole
// before any of our code sees it.
var offered = map[string]bool{
	"/etcdserverpb.KV/Txn":               true,
	"/etcdserverpb.Lease/LeaseGrant":     true,
	"/etcdserverpb.Lease/LeaseRevoke":    true,
	"/etcdserverpb.Lease/LeaseKeepAlive": false,
	"/etcdserverpb.Watch/Watch":          false,
}

const (
	// The longest that a call with one message takes, its receipt included: the longest
	// lock.rpcTimeoutSeconds, which is at most half of a lease.
	callTime = maxLeaseTTL / 2 * time.Second
	// Elements of all lists of a transaction, and of transactions within: what the rules would look at.
	// They are structs of some 100 bytes for two bytes of a message.
	maxElements = 8 * maxOperations
	// Transactions within a transaction; the rules let none through.
	maxNested = 4
)

type subjectKey struct{}

// tap sees a call when its headers have come. Nothing is received of a call that it refuses: without it
// grpc would take the whole message of anybody, for as long as that lasts, and look at the token then.
func (g *gateway) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	whole, ok := offered[info.FullMethodName]
	if !ok {
		return ctx, status.Errorf(codes.Unimplemented, "%q is no call of the lock protocol", clip([]byte(info.FullMethodName)))
	}
	s, err := g.caller(metadata.NewIncomingContext(ctx, info.Header))
	if err != nil {
		g.counts.requests.Add(1)
		return ctx, g.told(s, path.Base(info.FullMethodName), err)
	}
	belongs(ctx, "namespace "+s.namespace)
	ctx = context.WithValue(ctx, subjectKey{}, s)
	if !whole {
		return ctx, nil // it is counted when it is opened
	}
	done, err := g.limits.call(payer{s.name(), g.payer(s, g.rules.oneOf(s)).owner}, g.rules.tables(s))
	if err != nil {
		g.counts.requests.Add(1)
		return ctx, g.told(s, path.Base(info.FullMethodName), err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	context.AfterFunc(ctx, func() { // grpc ends the context of a call with the call
		cancel()
		done()
	})
	return ctx, nil
}

// Unmarshal refuses what would need far more memory decoded than it has bytes.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if _, ok := v.(*pb.TxnRequest); !ok {
		return c.CodecV2.Unmarshal(data, v)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	elements := 0
	if err := moderate(whole.ReadOnlyData(), 0, &elements); err != nil {
		return err
	}
	return c.CodecV2.Unmarshal(mem.BufferSlice{whole}, v)
}

var errWire = errors.New("no message of the protocol")

// Fields of etcd's messages: the lists of a TxnRequest, and the transaction in a RequestOp.
const (
	compareField, successField, failureField = 1, 2, 3
	txnField                                 = 4
)

// moderate counts the elements of an encoded TxnRequest, without decoding them.
func moderate(message []byte, depth int, elements *int) error {
	if depth > maxNested {
		return fmt.Errorf("more than %d transactions within each other", maxNested)
	}
	return eachField(message, func(field int32, content []byte) error {
		if field != compareField && field != successField && field != failureField {
			return nil
		}
		if *elements++; *elements > maxElements {
			return fmt.Errorf("more than %d comparisons and operations", maxElements)
		}
		if field == compareField {
			return nil
		}
		return eachField(content, func(field int32, content []byte) error {
			if field != txnField {
				return nil
			}
			return moderate(content, depth+1, elements)
		})
	})
}

// eachField hands on the fields of a message that have a length. The number of a field is cut to 32 bits,
// as etcd's own decoder does. Groups, which no message of etcd has, are refused.
func eachField(message []byte, see func(field int32, content []byte) error) error {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 {
			return errWire
		}
		message = message[n:]
		skipped := 0
		switch tag & 7 {
		case 0:
			if _, skipped = binary.Uvarint(message); skipped <= 0 {
				return errWire
			}
		case 1:
			skipped = 8
		case 5:
			skipped = 4
		case 2:
			length, n := binary.Uvarint(message)
			if n <= 0 || length > uint64(len(message)-n) {
				return errWire
			}
			message = message[n:]
			skipped = int(length)
			if err := see(int32(tag>>3), message[:skipped]); err != nil {
				return err
			}
		default:
			return errWire
		}
		if skipped > len(message) {
			return errWire
		}
		message = message[skipped:]
	}
	return nil
}

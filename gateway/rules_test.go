package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	ownTable, otherTable = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"
	own, other           = "/hudi/tables/" + ownTable + "/", "/hudi/tables/" + otherTable + "/"
	aTime                = `{"value":"20260101000000000"}` // a clock has one
)

var (
	driver = subject{namespace: "ours", pod: "load-1", uid: "uid-1"}
	second = subject{namespace: "ours", pod: "live-1", uid: "uid-2"}
	agentA = subject{namespace: "ours", pod: "hudi-agent-0123456789-4", uid: "uid-3"}
)

func quiet() *slog.Logger { return slog.New(slog.NewJSONHandler(io.Discard, nil)) }

// storedAt is the revision of every key of a store, with which it came.
const storedAt = 7

// store answers the rules' reads; what etcd itself does with a transaction is seen by the component
// tests (tests/tiers/component/operator/test_identities.py), which run this program before a real one.
type store map[string]string

func (s store) read(_ context.Context, ranges ...*pb.RangeRequest) ([]*pb.RangeResponse, error) {
	answers := make([]*pb.RangeResponse, len(ranges))
	for i, asked := range ranges {
		answers[i] = &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: storedAt}}
		for key, value := range s {
			if key == string(asked.Key) || (len(asked.RangeEnd) > 0 && key > string(asked.Key) && bytes.Compare([]byte(key), asked.RangeEnd) < 0) {
				answers[i].Count++
				if !asked.CountOnly {
					answers[i].Kvs = append(answers[i].Kvs, &mvccpb.KeyValue{Key: []byte(key), Value: []byte(value), CreateRevision: storedAt, ModRevision: storedAt})
				}
			}
		}
	}
	return answers, nil
}

func registered(s subject, inc, role string) string {
	return fmt.Sprintf(`{"inc":%q,"attempt":%q,"role":%q,"pod":%q,"namespace":%q,"podUID":%q}`, inc, s.attempt(), role, s.pod, s.namespace, s.uid)
}

// two tables with a gate each; driver and second write to the first one, agentA serves it.
func world(t *testing.T) (*rules, store) {
	t.Helper()
	told, err := readContract("../operator/hudi_contract/protocol.json", "/hudi")
	if err != nil {
		t.Fatal(err)
	}
	keys := store{
		"/hudi/control/" + ownTable + "/gate":                        `{"table":"ours/flights"}`,
		"/hudi/control/" + otherTable + "/gate":                      `{"table":"theirs/flights"}`,
		"/hudi/control/" + ownTable + "/admit/" + driver.attempt():   fmt.Sprintf(`{"attempt":%q,"role":"writer"}`, driver.attempt()),
		"/hudi/control/" + ownTable + "/admit/" + second.attempt():   fmt.Sprintf(`{"attempt":%q,"role":"writer"}`, second.attempt()),
		"/hudi/control/" + ownTable + "/admit/" + agentA.attempt():   fmt.Sprintf(`{"attempt":%q,"role":"agent"}`, agentA.attempt()),
		own + "writer/inc-1":                                         registered(driver, "inc-1", "writer"),
		own + "writer/inc-2":                                         registered(second, "inc-2", "writer"),
		"/hudi/control/agents/hudi-agent-0123456789/" + ownTable:     `{"table":"ours/flights"}`,
		"/hudi/control/agents/hudi-agent-0123456789/fedcba987654321": `{"table":"theirs/flights"}`,
	}
	return newRules(told, keys.read, newClocks(noServer)), keys
}

func put(key, value string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key), Value: []byte(value)}}}
}

// leased is a put of a key that goes with its pod's lease.
func leased(s subject, key, value string) *pb.RequestOp {
	made := put(key, value)
	made.GetRequestPut().Lease = leaseOf(s, 7)
	return made
}

func get(key, end string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte(key), RangeEnd: []byte(end)}}}
}

func remove(key, end string) *pb.RequestOp {
	return &pb.RequestOp{Request: &pb.RequestOp_RequestDeleteRange{RequestDeleteRange: &pb.DeleteRangeRequest{Key: []byte(key), RangeEnd: []byte(end)}}}
}

func versionIs(key string, version int64) *pb.Compare {
	return &pb.Compare{Key: []byte(key), Target: pb.Compare_VERSION, Result: pb.Compare_EQUAL, TargetUnion: &pb.Compare_Version{Version: version}}
}

// expect says whether the transaction passes; when it does not, it is refused with this code.
func expect(t *testing.T, r *rules, what string, s subject, txn *pb.TxnRequest, want codes.Code) {
	t.Helper()
	if _, err := r.txn(context.Background(), s, txn); status.Code(err) != want {
		got := status.Code(err)
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

func of(operations ...*pb.RequestOp) *pb.TxnRequest { return &pb.TxnRequest{Success: operations} }

func TestReadsStayInOneTable(t *testing.T) {
	r, _ := world(t)
	expect(t, r, "the own table", driver, of(get(own, string(prefixEnd(own)))), codes.OK)
	expect(t, r, "its control range", driver, of(get("/hudi/control/"+ownTable+"/gate", "")), codes.OK)
	for _, bounds := range [][2]string{
		{own, string(prefixEnd(other))},
		{own, "\x00"},
		{own, own}, // empty for etcd, no range of ours
		{own + "writer/", "/hudi/tables/" + ownTable + "1"},
		{"/hudi/", "/hudi0"},
		{"\x00", "\x00"},
		{"/hudi/tables/", "/hudi/tables0"},
		{"/hudi/tables/" + ownTable, ""},
		{"/hudi/tables/" + ownTable, "/hudi/tables/" + ownTable + "0"},
		{"/hudi/tables/" + strings.ToUpper(ownTable) + "/lock", ""},
		{"/hudi/tables/../tables/" + ownTable + "/lock", ""},
		{other + "lock", ""},
		{"/hudi2/tables/" + ownTable + "/lock", ""},
		{"", ""},
	} {
		expect(t, r, fmt.Sprintf("%q to %q", bounds[0], bounds[1]), driver, of(get(bounds[0], bounds[1])), codes.PermissionDenied)
		compare := &pb.Compare{Key: []byte(bounds[0]), RangeEnd: []byte(bounds[1])}
		expect(t, r, fmt.Sprintf("compare %q to %q", bounds[0], bounds[1]), driver, &pb.TxnRequest{Compare: []*pb.Compare{compare}}, codes.PermissionDenied)
	}
}

func TestTransactionsHoldPlainOperationsOnly(t *testing.T) {
	r, _ := world(t)
	inner := &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: of(put(other+"lock", "{}"))}}
	for what, op := range map[string]*pb.RequestOp{
		"a transaction": inner,
		"nothing":       {},
		"an empty put":  {Request: &pb.RequestOp_RequestPut{}},
		"a range":       remove(own, string(prefixEnd(own))),
		"the clock":     remove(own+"clock", ""),
		"a fence":       put("/hudi/control/"+ownTable+"/fence/inc-2", "{}"),
		"no table":      put("/hudi/tables/x", "{}"),
		"no kind":       put(own+"secrets/x", "{}"),
		"no name":       put(own+"report/", "{}"),
		"a strange one": put(own+"report/attempt/"+driver.attempt()+"\n", "{}"),
	} {
		expect(t, r, what, driver, of(op), codes.PermissionDenied)
		expect(t, r, what+", in the other branch", driver, &pb.TxnRequest{Failure: []*pb.RequestOp{op}}, codes.PermissionDenied)
	}
}

// Each operation may cost a look at etcd: etcd itself would refuse so many only afterwards.
func TestTransactionsAreBounded(t *testing.T) {
	r, _ := world(t)
	many := slices.Repeat([]*pb.RequestOp{get(own+"clock", "")}, maxOperations+1)
	expect(t, r, "as many as etcd takes", driver, of(many[1:]...), codes.OK)
	expect(t, r, "one more", driver, of(many...), codes.InvalidArgument)
	expect(t, r, "one more in the other branch", driver, &pb.TxnRequest{Failure: many}, codes.InvalidArgument)
	several := slices.Repeat([]*pb.RequestOp{get(own, string(prefixEnd(own)))}, maxRanges+1)
	expect(t, r, "as many ranges as a transaction may have", driver, of(several[1:]...), codes.OK)
	expect(t, r, "one more", driver, of(several...), codes.InvalidArgument)
	expect(t, r, "one more in the other branch", driver, &pb.TxnRequest{Success: several[:4], Failure: several[:5]}, codes.InvalidArgument)
	ranged := &pb.Compare{Key: []byte(own), RangeEnd: prefixEnd(own)}
	expect(t, r, "one more in a comparison", driver, &pb.TxnRequest{Compare: []*pb.Compare{ranged}, Success: several[1:]}, codes.InvalidArgument)
	inner := &pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: of(several...)}}
	expect(t, r, "in a transaction in it", driver, of(inner), codes.InvalidArgument)
	deep := of(several...)
	for range 3 * maxDepth {
		deep = of(&pb.RequestOp{Request: &pb.RequestOp_RequestTxn{RequestTxn: deep}})
	}
	expect(t, r, "deep in it", driver, deep, codes.PermissionDenied)
	compares := slices.Repeat([]*pb.Compare{versionIs(own+"clock", 1)}, maxOperations+1)
	expect(t, r, "comparisons", driver, &pb.TxnRequest{Compare: compares}, codes.InvalidArgument)
}

// The operator asks the API server for the node that a registration names.
func TestARegistrationNamesTheNodeOfItsPod(t *testing.T) {
	r, _ := world(t)
	here := driver
	here.node = "node-1"
	key, bare := own+"writer/inc-9", registered(driver, "inc-9", "writer")
	on := func(node string) *pb.TxnRequest {
		return of(put(key, strings.TrimSuffix(bare, "}")+fmt.Sprintf(`,"node":%q}`, node)))
	}
	expect(t, r, "its own", here, on("node-1"), codes.OK)
	expect(t, r, "the token names none", driver, on("node-2"), codes.OK)
	for _, node := range []string{"node-2", "", "../configmaps", "a/b", "node-1\n"} {
		expect(t, r, "another one, "+node, here, on(node), codes.PermissionDenied)
	}
	expect(t, r, "none", here, of(put(key, bare)), codes.PermissionDenied)
	expect(t, r, "another one under a similar name", here, of(put(key, strings.TrimSuffix(bare, "}")+`,"NODE":"node-1"}`)), codes.PermissionDenied)
	err := r.put(context.Background(), here, put(key, strings.TrimSuffix(bare, "}")+`,"node":"node-2"}`).GetRequestPut(), branch{})
	for _, word := range []string{`node must be "node-1"`, "ours/load-1", `not "node-2"`} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v does not say %q", err, word)
		}
	}
}

// The operator reads `podUID`; encoding/json takes `PODUID` for the same, and the last of two.
func TestNamesInValuesAreExact(t *testing.T) {
	r, keys := world(t)
	key, good := own+"writer/inc-9", registered(driver, "inc-9", "writer")
	expect(t, r, "its own", driver, of(put(key, good)), codes.OK)
	forged := strings.Replace(good, `"podUID":"uid-1"`, `"podUID":"uid-of-coredns"`, 1)
	expect(t, r, "another pod's uid", driver, of(put(key, forged)), codes.PermissionDenied)
	shadowed := strings.TrimSuffix(forged, "}") + `,"PODUID":"uid-1"}`
	expect(t, r, "the own uid under a similar name", driver, of(put(key, shadowed)), codes.PermissionDenied)
	twice := strings.TrimSuffix(forged, "}") + `,"podUID":"uid-1"}`
	expect(t, r, "two uids", driver, of(put(key, twice)), codes.InvalidArgument)
	escaped := strings.TrimSuffix(forged, "}") + `,"pod\u0055ID":"uid-1"}`
	expect(t, r, "two uids, one of them escaped", driver, of(put(key, escaped)), codes.InvalidArgument)
	keys[own+"instant/1"] = `{"inc":"inc-2","INC":"inc-1"}`
	expect(t, r, "the instant of another one", driver, of(remove(own+"instant/1", "")), codes.PermissionDenied)
}

func TestValuesThatReadersDifferAbout(t *testing.T) {
	for _, value := range []string{
		`{"a":1,"a":2}`, `{"x":{"a":1,"b":[{"c":1,"c":1}]}}`, `{"a":NaN}`, "{\"a\":\"\xff\"}", `{} {}`, ``, `{"a"}`,
		`{"a":` + strings.Repeat("1", maxNumber+1) + `}`, `[-` + strings.Repeat("1", maxNumber) + `]`, strings.Repeat("1", 4301),
		`{"a":1.` + strings.Repeat("0", maxNumber) + `}`, `[1e` + strings.Repeat("0", maxNumber) + `]`,
		`{"a":"\ud800"}`, `{"a":"\udc00"}`, `{"a":"\ud800\ud800"}`, `{"\uD800x":1}`, `"\\\udfff"`, `"\ud800\n"`,
		strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1),
		strings.Repeat(`{"a":`, maxDepth+1) + "1" + strings.Repeat("}", maxDepth+1),
	} {
		if plain([]byte(value)) == nil {
			t.Errorf("accepted: %.60q", value)
		}
	}
	for _, value := range []string{
		`{"a":{"a":1},"b":[{"a":"a"},{"a":"a"}],"A":"a","c":null,"d":1e999}`, `"a"`, `[1,["a","a"],{}]`, `{"a":[],"b":{},"c":1}`,
		`{"a":` + strings.Repeat("1", maxNumber) + `,"b":-1.7976931348623157E+308,"c":"` + strings.Repeat("1", 4301) + `"}`,
		strings.Repeat("[", maxDepth) + `"` + strings.Repeat("x", maxDepth*elementBytes) + `"` + strings.Repeat("]", maxDepth),
		`{"a":"\ud83d\ude00","b":"\\ud800","c":"\u00e9"}`, `"\\\ud83d\ude00"`,
	} {
		if err := plain([]byte(value)); err != nil {
			t.Errorf("%.60q: %v", value, err)
		}
	}
}

// The operator settles each incarnation, with all executors of its pod.
func TestAPodRegistersFewIncarnations(t *testing.T) {
	r, keys := world(t)
	register := func(inc string) *pb.RequestOp {
		return put(own+"writer/"+inc, registered(driver, inc, "writer"))
	}
	several := func(n int) (made []*pb.RequestOp) {
		for i := range n {
			made = append(made, register(fmt.Sprintf("new-%d", i)))
		}
		return made
	}
	most := several(maxIncarnations - 1) // it has inc-1
	expect(t, r, "as many as it may have", driver, of(most...), codes.OK)
	expect(t, r, "one more", driver, of(several(maxIncarnations)...), codes.PermissionDenied)
	expect(t, r, "one more in the other branch", driver, &pb.TxnRequest{Failure: several(maxIncarnations)}, codes.PermissionDenied)
	expect(t, r, "as many as a transaction has", driver, of(several(maxOperations)...), codes.PermissionDenied)
	expect(t, r, "again", driver, of(append(most, register("inc-1"))...), codes.OK)
	for _, op := range most {
		keys[string(op.GetRequestPut().Key)] = string(op.GetRequestPut().Value)
	}
	expect(t, r, "one more than it has", driver, of(register("inc-9")), codes.PermissionDenied)
	expect(t, r, "one that it has", driver, of(register("new-0")), codes.OK)
	expect(t, r, "another pod of the table", second, of(put(own+"writer/inc-9", registered(second, "inc-9", "writer"))), codes.OK)
	delete(keys, own+"writer/new-0")
	expect(t, r, "where one has left", driver, of(register("inc-9")), codes.OK)
}

// A settle record names each instant of its incarnation.
func TestATableHasFewInstants(t *testing.T) {
	r, keys := world(t)
	record := func(time string) *pb.RequestOp {
		return put(own+"instant/"+time, registered(driver, "inc-1", "writer"))
	}
	at := func(n int) string { return fmt.Sprintf("20260101000000%03d", n) }
	for _, name := range []string{"foo", "1", "2026010100000000x", "20260101000000000-1"} {
		expect(t, r, name, driver, of(record(name)), codes.PermissionDenied)
	}
	expect(t, r, "of an older table", driver, of(record("20260101000000")), codes.OK)
	for n := range maxInstants - 2 {
		keys[own+"instant/"+at(n)] = registered(driver, "inc-1", "writer")
	}
	expect(t, r, "two more", driver, of(record(at(998)), record(at(999))), codes.OK)
	expect(t, r, "one that it has", driver, of(record(at(0)), record(at(998)), record(at(999))), codes.OK)
	expect(t, r, "three more", driver, of(record(at(998)), record(at(999)), record("20260101000001000")), codes.ResourceExhausted)
	keys[own+"instant/"+at(998)], keys[own+"instant/"+at(999)] = "{}", "{}"
	expect(t, r, "one more", driver, of(record("20260101000001000")), codes.ResourceExhausted)
	expect(t, r, "one more in the other branch", driver, &pb.TxnRequest{Failure: []*pb.RequestOp{record("20260101000001000")}}, codes.ResourceExhausted)
	expect(t, r, "what stands", driver, of(record(at(0))), codes.OK)
	keys[own+"writer/inc-3"] = registered(agentA, "inc-3", "agent")
	expect(t, r, "an agent", agentA, of(put(own+"instant/20260101000001000", `{"inc":"inc-3"}`)), codes.OK)
}

// Parsed, an element takes up to 50 times its bytes, and the operator holds what all pods have put.
func TestAValueHasNotManyElements(t *testing.T) {
	list := func(n int, element string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
	}
	for value, accepted := range map[string]bool{
		list(10, "1"): true, list(30, `"01234567890123"`): true, list(3000, `"20260101000000000"`): true,
		`{"text":"` + strings.Repeat(`,[{\",`, 10000) + `"}`: true, `{"\\":",,,,"}`: true,
		list(5000, "[]"): false, list(5000, "{}"): false, list(100, "[[]]"): false, list(60000, "1"): false,
		`{"\\":"","a":` + list(5000, `""`) + "}": false,
	} {
		if err := plain([]byte(value)); (err == nil) != accepted {
			t.Errorf("%.60q: %v", value, err)
		}
	}
}

// Somebody else is fenced for a ticket that names it, or nobody can be.
func TestATicketNamesItsOwnIncarnation(t *testing.T) {
	const ticket = own + "queue/inc-1-c6f0d3a4-2b1e-4c55-9a77-0a1b2c3d4e5f"
	r, _ := world(t)
	expect(t, r, "its own", driver, of(leased(driver, ticket, `{"inc":"inc-1","priority":1}`)), codes.OK)
	expect(t, r, "none", driver, of(leased(driver, ticket, `{}`)), codes.OK)
	expect(t, r, "another one", driver, of(leased(driver, ticket, `{"inc":"inc-2"}`)), codes.PermissionDenied)
	expect(t, r, "nobody", driver, of(leased(driver, ticket, `{"inc":"nobody"}`)), codes.PermissionDenied)
	expect(t, r, "no text", driver, of(leased(driver, ticket, `{"inc":["inc-1"]}`)), codes.InvalidArgument)
	expect(t, r, "half a character", driver, of(leased(driver, ticket, `{"inc":"\ud800"}`)), codes.InvalidArgument)
}

// A settle record names each pod of an incarnation, of which there may be hundreds.
func TestASettleRecordMayBeLonger(t *testing.T) {
	r, keys := world(t)
	value := func(bytes int) string {
		const start, end = `{"phase":"RollingBack","instants":{"a":{"new":"`, `"}}}`
		return start + strings.Repeat("x", bytes-len(start)-len(end)) + end
	}
	keys[own+"settle/inc-2"] = `{"phase":"RollingBack"}`
	for key, longest := range map[string]int{own + "settle/inc-2": 256 << 10, own + "report/timeline": 64 << 10} {
		expect(t, r, "the longest", agentA, changed(key, value(longest)), codes.OK)
		expect(t, r, "too long", agentA, changed(key, value(longest+1)), codes.InvalidArgument)
	}
}

func TestARegistrationCountsInItsBranch(t *testing.T) {
	r, _ := world(t)
	register, alive := put(own+"writer/inc-9", registered(driver, "inc-9", "writer")), leased(driver, own+"alive/inc-9", "{}")
	expect(t, r, "together", driver, of(register, alive), codes.OK)
	expect(t, r, "in the other branch", driver, &pb.TxnRequest{Success: []*pb.RequestOp{register}, Failure: []*pb.RequestOp{alive}}, codes.PermissionDenied)
}

// A lock that stands is not replaced by another pod of the table (I1).
func TestALockThatStandsIsItsOwners(t *testing.T) {
	r, keys := world(t)
	lock := put(own+"lock", registered(driver, "inc-1", "writer"))
	expect(t, r, "no lock", driver, of(lock), codes.OK)
	keys[own+"lock"] = registered(second, "inc-2", "writer")
	expect(t, r, "another pod's lock", driver, of(lock), codes.PermissionDenied)
	expect(t, r, "only when there is none", driver, &pb.TxnRequest{Compare: []*pb.Compare{versionIs(own+"lock", 0)}, Success: []*pb.RequestOp{lock}}, codes.OK)
	expect(t, r, "only when there is one", driver, &pb.TxnRequest{Compare: []*pb.Compare{versionIs(own+"lock", 1)}, Success: []*pb.RequestOp{lock}}, codes.PermissionDenied)
	expect(t, r, "else", driver, &pb.TxnRequest{Compare: []*pb.Compare{versionIs(own+"lock", 0)}, Failure: []*pb.RequestOp{lock}}, codes.PermissionDenied)
	deleted := &pb.TxnRequest{Compare: []*pb.Compare{createdAt(storedAt)}, Success: []*pb.RequestOp{remove(own+"lock", "")}}
	expect(t, r, "deleted by another pod", driver, deleted, codes.PermissionDenied)
	expect(t, r, "deleted by its owner", second, deleted, codes.OK)
	expect(t, r, "whatever it is then", second, of(remove(own+"lock", "")), codes.PermissionDenied)
	// An instant that is not there may be another writer's when etcd deletes it.
	instant := remove(own+"instant/20260101000000000", "")
	expect(t, r, "an instant, whosever it is then", second, of(instant), codes.PermissionDenied)
	deleted = &pb.TxnRequest{Compare: []*pb.Compare{createdAt(storedAt)}, Success: []*pb.RequestOp{instant}}
	expect(t, r, "an instant while another one has the lock", driver, deleted, codes.PermissionDenied)
	expect(t, r, "an instant while it has the lock", second, deleted, codes.OK)
}

// An agent's pods are known by name; one of that name in another namespace learns nothing, not even a
// number or whether a comparison holds.
func createdAt(revision int64) *pb.Compare {
	return &pb.Compare{
		Key: []byte(own + "lock"), Target: pb.Compare_CREATE, Result: pb.Compare_EQUAL,
		TargetUnion: &pb.Compare_CreateRevision{CreateRevision: revision},
	}
}

// A release is said again when its answer was lost: by then another one may have the lock.
func TestALockThatIsGoneMayBeReleasedAgain(t *testing.T) {
	r, keys := world(t)
	for _, c := range []struct {
		what, lock string
		when       []*pb.Compare
		want       codes.Code
	}{
		{"its own", "inc-1", []*pb.Compare{createdAt(storedAt)}, codes.OK},
		{"one that is older than another's", "inc-2", []*pb.Compare{createdAt(storedAt - 2)}, codes.OK},
		{"another's", "inc-2", []*pb.Compare{createdAt(storedAt)}, codes.PermissionDenied},
		{"one that may come", "inc-2", []*pb.Compare{createdAt(storedAt + 1)}, codes.PermissionDenied},
		{"one that may come after its own", "inc-1", []*pb.Compare{createdAt(storedAt + 1)}, codes.PermissionDenied},
		{"while there is none", "inc-2", []*pb.Compare{createdAt(0)}, codes.PermissionDenied},
		{"whatever stands", "inc-2", nil, codes.PermissionDenied},
		{"none", "", []*pb.Compare{createdAt(storedAt)}, codes.OK},
		{"none, and one that may come", "", []*pb.Compare{createdAt(storedAt + 1)}, codes.PermissionDenied},
		{"none, and whatever comes", "", nil, codes.PermissionDenied},
	} {
		delete(keys, own+"lock")
		if c.lock != "" {
			keys[own+"lock"] = fmt.Sprintf(`{"inc":%q}`, c.lock)
		}
		_, err := r.txn(context.Background(), driver, &pb.TxnRequest{Compare: c.when, Success: []*pb.RequestOp{remove(own+"lock", "")}})
		if status.Code(err) != c.want {
			t.Errorf("a driver releases %s: %v", c.what, err)
		}
	}
}

// A clean exit is said again when its answer was lost: by then its registration is gone, and this gateway may
// never have seen it.
func TestACleanExitMayBeSaidAgain(t *testing.T) {
	r, keys := world(t)
	leaves := func(inc string) codes.Code {
		_, err := r.txn(context.Background(), driver, &pb.TxnRequest{Success: []*pb.RequestOp{
			remove(own+"alive/"+inc, ""), remove(own+"writer/"+inc, ""),
		}})
		return status.Code(err)
	}
	if code := leaves("inc-2"); code != codes.PermissionDenied {
		t.Errorf("another's registration: %v", code)
	}
	delete(keys, own+"writer/inc-1")
	if code := leaves("inc-1"); code != codes.OK {
		t.Errorf("its own, which is gone: %v", code)
	}
}

func TestAssignmentsAreOfTheNamespace(t *testing.T) {
	r, _ := world(t)
	const all = "/hudi/control/agents/hudi-agent-0123456789/"
	read := get(all, string(prefixEnd(all)))
	expect(t, r, "read", agentA, of(read), codes.OK)
	if r.mayKnow(agentA, []byte(all+ownTable), []byte(`{"table":"ours/flights"}`)) != nil {
		t.Error("its own assignment is kept from it")
	}
	if r.mayKnow(agentA, []byte(all+otherTable), []byte(`{"table":"theirs/flights"}`)) == nil {
		t.Error("an assignment of another namespace is given out")
	}
	expect(t, r, "of another agent", agentA, of(get("/hudi/control/agents/hudi-agent-aaaaaaaaaa/x", "")), codes.PermissionDenied)
	expect(t, r, "compared", agentA, &pb.TxnRequest{Compare: []*pb.Compare{versionIs(all+ownTable, 1)}}, codes.PermissionDenied)
	for what, change := range partly {
		asked := get(all, string(prefixEnd(all)))
		change(asked.GetRequestRange())
		expect(t, r, what, agentA, of(asked), codes.PermissionDenied)
	}
}

// Reads of a part of a range.
var partly = map[string]func(*pb.RangeRequest){
	"counted":            func(asked *pb.RangeRequest) { asked.CountOnly = true },
	"keys":               func(asked *pb.RangeRequest) { asked.KeysOnly = true },
	"limited":            func(asked *pb.RangeRequest) { asked.Limit = wholeLimit - 1 },
	"sorted":             func(asked *pb.RangeRequest) { asked.SortOrder = pb.RangeRequest_DESCEND },
	"sorted by revision": func(asked *pb.RangeRequest) { asked.SortTarget = pb.RangeRequest_MOD },
	"earlier":            func(asked *pb.RangeRequest) { asked.Revision = 1 },
	"later":              func(asked *pb.RangeRequest) { asked.MinModRevision = 1 << 60 },
	"changed before":     func(asked *pb.RangeRequest) { asked.MaxModRevision = 1 },
	"made later":         func(asked *pb.RangeRequest) { asked.MinCreateRevision = 1 << 60 },
	"made before":        func(asked *pb.RangeRequest) { asked.MaxCreateRevision = 1 },
}

// etcd reads a whole range to answer with a part of it or to compare it, and what writes is executed one
// after the other: the answer says nothing of that work.
func TestWhatARangeCostsIsInItsAnswer(t *testing.T) {
	r, _ := world(t)
	whole := get(own+"queue/", string(prefixEnd(own+"queue/")))
	whole.GetRequestRange().Limit = wholeLimit
	expect(t, r, "as the lock module reads", driver, of(whole), codes.OK)
	for what, change := range partly {
		asked := get(own, string(prefixEnd(own)))
		change(asked.GetRequestRange())
		expect(t, r, what, driver, of(asked), codes.PermissionDenied)
		expect(t, r, what+", in the other branch", driver, &pb.TxnRequest{Failure: []*pb.RequestOp{asked}}, codes.PermissionDenied)
	}
	ranged := versionIs(own+"queue/", 1)
	ranged.RangeEnd = prefixEnd(own + "queue/")
	expect(t, r, "compared", driver, &pb.TxnRequest{Compare: []*pb.Compare{ranged}}, codes.PermissionDenied)
	clock := put(own+"clock", aTime)
	expect(t, r, "a key beside a write", driver, of(get(own+"clock", ""), clock), codes.OK)
	expect(t, r, "beside a write", driver, of(whole, clock), codes.PermissionDenied)
	expect(t, r, "beside a deletion", driver, of(whole, remove(own+"lock", "")), codes.PermissionDenied)
	expect(t, r, "where the other branch writes", driver, &pb.TxnRequest{Success: []*pb.RequestOp{whole}, Failure: []*pb.RequestOp{clock}}, codes.PermissionDenied)
}

// Nobody needs the history of a table: our clients read when their watch stands.
func TestAWatchBeginsNow(t *testing.T) {
	r, _ := world(t)
	for what, one := range map[string]struct {
		asked *pb.WatchCreateRequest
		want  codes.Code
	}{
		"now":              {&pb.WatchCreateRequest{Key: []byte(own + "lock")}, codes.OK},
		"with progress":    {&pb.WatchCreateRequest{Key: []byte(own), RangeEnd: prefixEnd(own), ProgressNotify: true}, codes.OK},
		"from a revision":  {&pb.WatchCreateRequest{Key: []byte(own + "lock"), StartRevision: 1}, codes.PermissionDenied},
		"of earlier times": {&pb.WatchCreateRequest{Key: []byte(own + "lock"), PrevKv: true}, codes.PermissionDenied},
		"of another table": {&pb.WatchCreateRequest{Key: []byte(other + "lock")}, codes.PermissionDenied},
		"of assignments":   {&pb.WatchCreateRequest{Key: []byte("/hudi/control/agents/hudi-agent-0123456789/x")}, codes.PermissionDenied},
	} {
		if got := status.Code(r.mayWatch(context.Background(), agentA, one.asked)); got != one.want {
			t.Errorf("%s: %v, want %v", what, got, one.want)
		}
	}
}

// What has no table in it is paid by each of a pod's tables in turn, and never by a table that is not its own.
func TestWhoPaysForARequest(t *testing.T) {
	r, keys := world(t)
	tokens := newSigner(t, "one")
	g := &gateway{rules: r, limits: newLimits(), tokens: verifierOf(tokens)}
	named := map[string]any{"namespace": agentA.namespace, "pod": map[string]any{"name": agentA.pod, "uid": agentA.uid}}
	token := tokens.token(t, map[string]any{"kubernetes.io": named})
	ctx := metadata.NewIncomingContext(context.Background(), metadata.Pairs("authorization", "Bearer "+token))
	pays := func() payer {
		_, p, err := g.called(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := pays(); p != (payer{"pod ours/" + agentA.pod, "namespace ours"}) {
		t.Errorf("not known yet: %v", p)
	}
	keys["/hudi/control/"+otherTable+"/admit/"+agentA.attempt()] = fmt.Sprintf(`{"attempt":%q,"role":"agent"}`, agentA.attempt())
	for _, table := range []string{ownTable, otherTable} {
		expect(t, r, table, agentA, of(get("/hudi/tables/"+table+"/lock", "")), codes.OK)
	}
	seen := map[string]bool{}
	for range 200 {
		seen[pays().owner] = true
	}
	if len(seen) != 2 || !seen["table "+ownTable] || !seen["table "+otherTable] {
		t.Errorf("paid by %v", seen)
	}
	if p := g.payerOf(driver, []byte(other+"lock")); p.owner != "namespace ours" {
		t.Errorf("a stranger's look is paid by %s", p.owner)
	}
}

// What a transaction writes is bounded, and its right is compared, at the table that the rules tell.
func TestTheRulesTellTheTableThatATransactionWrites(t *testing.T) {
	r, keys := world(t)
	beat := put(own+"alive/inc-1", `{"inc":"inc-1"}`)
	beat.GetRequestPut().Lease = leaseOf(driver, 7)
	for what, one := range map[string]struct {
		txn   *pb.TxnRequest
		table string
	}{
		"reads":                  {of(get(own+"lock", "")), ""},
		"a put":                  {of(get(own+"lock", ""), beat), ownTable},
		"in the other branch":    {&pb.TxnRequest{Failure: []*pb.RequestOp{beat}}, ownTable},
		"only compares, nothing": {&pb.TxnRequest{Compare: []*pb.Compare{versionIs(own+"lock", 0)}}, ""},
	} {
		if table, err := r.txn(context.Background(), driver, one.txn); err != nil || table != one.table {
			t.Errorf("%s: %q, %v; want %q", what, table, err, one.table)
		}
	}
	// Of two tables one right only could be compared, also when the pod is admitted to both.
	keys["/hudi/control/"+otherTable+"/admit/"+agentA.attempt()] = fmt.Sprintf(`{"attempt":%q,"role":"agent"}`, agentA.attempt())
	both := of(put(own+"clock", aTime), put(other+"clock", aTime))
	for _, table := range []string{own, other} {
		expect(t, r, "a table of its", agentA, of(put(table+"clock", aTime)), codes.OK)
	}
	expect(t, r, "both", agentA, both, codes.InvalidArgument)
	expect(t, r, "one in each branch", agentA, &pb.TxnRequest{Success: both.Success[:1], Failure: both.Success[1:]}, codes.InvalidArgument)
}

func TestDeletionsCostAsPutsDo(t *testing.T) {
	r, _ := world(t)
	g := &gateway{rules: r, limits: newLimits()}
	key := own + "queue/inc-1-c6f0d3a4-2b1e-4c55-9a77-0a1b2c3d4e5f"
	beat := put(own+"alive/inc-1", "{}")
	beat.GetRequestPut().Lease = 1
	for what, one := range map[string]struct {
		op    *pb.RequestOp
		bytes int
	}{
		"a read":         {get(key, ""), 0},
		"a put":          {put(key, "12345"), len(key) + 5 + revisionBytes},
		"a put on lease": {beat, 2*len(own+"alive/inc-1") + 2 + 2*revisionBytes},
		"a deletion":     {remove(key, ""), len(key) + revisionBytes},
	} {
		if bytes, puts := written(&pb.TxnRequest{Failure: []*pb.RequestOp{one.op}}); bytes != one.bytes || puts != (one.op.GetRequestPut() != nil) {
			t.Errorf("%s: %v, want %d", what, bytes, one.bytes)
		}
	}
	n := 0
	for g.bound(context.Background(), ownTable, of(remove(key, ""))) == nil {
		if n++; float64(n*len(key)) > 2*g.limits.burstBytes {
			t.Fatal("deletions without end")
		}
	}
	if err := g.bound(context.Background(), otherTable, of(remove(strings.Replace(key, ownTable, otherTable, 1), ""))); err != nil {
		t.Errorf("another table: %v", err)
	}
}

func TestALeaseIsOfOnePod(t *testing.T) {
	seen := map[int64]subject{}
	for n := range 2000 {
		s := subject{namespace: "ours", pod: "load-1", uid: fmt.Sprint(n)}
		id := leaseOf(s, int64(n)<<40|5)
		if id <= 0 || !ownLease(s, id) {
			t.Fatalf("%x is not a lease of its own pod", id)
		}
		if before, ok := seen[id>>leaseBits]; ok {
			t.Fatalf("%v and %v share leases", before, s)
		}
		seen[id>>leaseBits] = s
	}
	id := leaseOf(driver, 7)
	for _, s := range []subject{second, {namespace: "theirs", pod: driver.pod, uid: driver.uid}, {namespace: "ours", pod: "load-1", uid: "uid-11"}} {
		if ownLease(s, id) {
			t.Errorf("%v owns a lease of %v", s, driver)
		}
	}
	r, _ := world(t)
	beat := put(own+"alive/inc-1", "{}")
	beat.GetRequestPut().Lease = leaseOf(second, 7)
	expect(t, r, "a heartbeat on another pod's lease", driver, of(beat), codes.PermissionDenied)
	beat.GetRequestPut().Lease = id
	expect(t, r, "on its own", driver, of(beat), codes.OK)
}

// A key on a lease goes when its pod likes: nobody deletes a clock, and who deletes other keys is a rule.
// A heartbeat and a ticket without one would outlive their pod: nobody else deletes them.
func TestWhichKeysGoWithALease(t *testing.T) {
	const ticket = own + "queue/inc-1-c6f0d3a4-2b1e-4c55-9a77-0a1b2c3d4e5f"
	modeOf := func(mode string) string { return `{"table":"ours/flights","mode":"` + mode + `"}` }
	registration := registered(driver, "inc-1", "writer")
	for what, one := range map[string]struct {
		who        subject
		key, value string
		gate       string
		want       codes.Code
		needs      bool
	}{
		"heartbeat":                 {driver, own + "alive/inc-1", "{}", modeOf("PodTermination"), codes.OK, true},
		"ticket":                    {driver, ticket, "{}", modeOf("PodTermination"), codes.OK, true},
		"lock of other providers":   {driver, own + "lock", registration, modeOf("LeaseOnly"), codes.OK, false},
		"lock":                      {driver, own + "lock", registration, modeOf("PodTermination"), codes.PermissionDenied, false},
		"lock, revocable":           {driver, own + "lock", registration, modeOf("Credentials"), codes.PermissionDenied, false},
		"lock, no mode":             {driver, own + "lock", registration, `{"table":"ours/flights"}`, codes.PermissionDenied, false},
		"lock, no gate":             {driver, own + "lock", registration, "", codes.PermissionDenied, false},
		"clock":                     {driver, own + "clock", aTime, modeOf("LeaseOnly"), codes.PermissionDenied, false},
		"registration":              {driver, own + "writer/inc-1", registration, modeOf("LeaseOnly"), codes.PermissionDenied, false},
		"record of an instant":      {driver, own + "instant/20260101000000000", registration, modeOf("LeaseOnly"), codes.PermissionDenied, false},
		"report of an attempt":      {driver, own + "report/attempt/" + driver.attempt(), "{}", modeOf("LeaseOnly"), codes.PermissionDenied, false},
		"what an agent has done":    {agentA, own + "done/create", "{}", modeOf("LeaseOnly"), codes.PermissionDenied, false},
		"report of an agent":        {agentA, own + "report/timeline", "{}", modeOf("LeaseOnly"), codes.PermissionDenied, false},
		"record that an agent puts": {agentA, own + "instant/20260101000000000", `{"inc":"inc-3"}`, modeOf("LeaseOnly"), codes.PermissionDenied, false},
	} {
		r, keys := world(t)
		keys[own+"writer/inc-3"] = registered(agentA, "inc-3", "agent")
		keys["/hudi/control/"+ownTable+"/gate"] = one.gate
		on := put(one.key, one.value)
		without := codes.OK
		if one.needs {
			without = codes.PermissionDenied
		}
		expect(t, r, what+", without a lease", one.who, of(on), without)
		expect(t, r, what+", without a lease, in the other branch", one.who, &pb.TxnRequest{Failure: []*pb.RequestOp{on}}, without)
		on.GetRequestPut().Lease = leaseOf(one.who, 7)
		expect(t, r, what, one.who, of(on), one.want)
		expect(t, r, what+", in the other branch", one.who, &pb.TxnRequest{Failure: []*pb.RequestOp{on}}, one.want)
	}
}

// F648: what has a name of its own is deleted with the HudiTable, or is needed by the next one.
func TestAnAgentPutsNoNameThatNobodyKnows(t *testing.T) {
	r, _ := world(t)
	for name, want := range map[string]codes.Code{
		"done/junk-1": codes.PermissionDenied, "done/creates": codes.PermissionDenied, "done/service-": codes.PermissionDenied,
		"done/service-junk": codes.PermissionDenied, "done/junk/abandoned-1": codes.PermissionDenied,
		"report/junk": codes.PermissionDenied, "report/timeline-2": codes.PermissionDenied,
		"done/service-clean": codes.OK, "done/savepoint-a": codes.OK, "done/restore-2026-01-01": codes.OK, "done/hold-a": codes.OK,
		"done/metadata": codes.OK, "done/bootstrap": codes.OK, "done/counted": codes.OK, "done/foreign": codes.OK, "done/callback": codes.OK,
		"report/catalog": codes.OK, "report/callback": codes.OK,
	} {
		expect(t, r, name, agentA, of(put(own+name, "{}")), want)
	}
	// One that an earlier release has let in goes away.
	expect(t, r, "deletes it", agentA, of(remove(own+"done/junk-1", "")), codes.OK)
}

// Nothing but the calls of the protocol: no compaction, no authentication, no maintenance, no locks or
// elections of etcd's own, no lists of leases.
func TestOnlyTheCallsOfTheProtocolAreOffered(t *testing.T) {
	g := &gateway{limits: newLimits()}
	var services []string
	for name := range g.server(&pair{}).GetServiceInfo() {
		services = append(services, name)
	}
	slices.Sort(services)
	if want := []string{"etcdserverpb.KV", "etcdserverpb.Lease", "etcdserverpb.Watch"}; !slices.Equal(services, want) {
		t.Errorf("services %v, want %v", services, want)
	}
	ctx := context.Background()
	for name, call := range map[string]func() error{
		"Range":           func() error { _, err := g.Range(ctx, &pb.RangeRequest{}); return err },
		"Put":             func() error { _, err := g.Put(ctx, &pb.PutRequest{}); return err },
		"DeleteRange":     func() error { _, err := g.DeleteRange(ctx, &pb.DeleteRangeRequest{}); return err },
		"Compact":         func() error { _, err := g.Compact(ctx, &pb.CompactionRequest{}); return err },
		"LeaseTimeToLive": func() error { _, err := g.LeaseTimeToLive(ctx, &pb.LeaseTimeToLiveRequest{}); return err },
		"LeaseLeases":     func() error { _, err := g.LeaseLeases(ctx, &pb.LeaseLeasesRequest{}); return err },
	} {
		if code := status.Code(call()); code != codes.Unimplemented {
			t.Errorf("%s: %v", name, code)
		}
	}
}

// A pod chooses the deadline of its requests, not the member of etcd that other pods' requests go to.
func TestADeadlineOfAPodIsNoFailureOfEtcd(t *testing.T) {
	late := status.Error(codes.DeadlineExceeded, "")
	u := &upstream{members: make([]*grpc.ClientConn, 3)}
	now := func() int64 { return u.current.Load() }
	_ = u.after(now(), time.Now(), late)
	_ = u.ended(now(), late) // a watch that ends with its token
	_ = u.after(now(), time.Now(), status.Error(codes.PermissionDenied, ""))
	if now() != 0 {
		t.Error("switched because of the pod")
	}
	_ = u.after(now(), time.Now().Add(-2*patience), late)
	_ = u.after(now(), time.Now(), status.Error(codes.Unavailable, ""))
	_ = u.ended(now(), status.Error(codes.Unavailable, ""))
	if now() != 3 {
		t.Errorf("member %d after three failures", now())
	}
}

// What the contract gives a role, at the tables that the operator has admitted it to.
func TestARoleWritesItsKeys(t *testing.T) {
	r, keys := world(t)
	for _, one := range []struct {
		who  subject
		key  string
		want codes.Code
	}{
		{driver, own + "clock", codes.OK},
		{driver, own + "alive/inc-1", codes.OK},
		{driver, own + "alive/inc-2", codes.PermissionDenied},
		{driver, own + "queue/inc-1-c6f0d3a4-2b1e-4c55-9a77-0a1b2c3d4e5f", codes.OK},
		{driver, own + "queue/inc-2-c6f0d3a4-2b1e-4c55-9a77-0a1b2c3d4e5f", codes.PermissionDenied},
		{driver, own + "report/attempt/" + driver.attempt(), codes.OK},
		{driver, own + "report/attempt/" + second.attempt(), codes.PermissionDenied},
		{driver, own + "report/timeline", codes.PermissionDenied},
		{driver, own + "settle/inc-2", codes.PermissionDenied},
		{driver, own + "done/create", codes.PermissionDenied},
		{agentA, own + "settle/inc-2", codes.PermissionDenied}, // see settle_test.go
		{agentA, own + "done/create", codes.OK},
		{agentA, own + "report/timeline", codes.OK},
		{agentA, own + "alive/inc-1", codes.PermissionDenied},
		{driver, other + "clock", codes.PermissionDenied},
		{agentA, other + "clock", codes.PermissionDenied},
		{subject{namespace: "ours", pod: "audit", uid: "uid-4"}, own + "clock", codes.PermissionDenied},
		{subject{namespace: "theirs", pod: driver.pod, uid: "uid-5"}, own + "clock", codes.PermissionDenied},
	} {
		op := put(one.key, aTime)
		if strings.Contains(one.key, "/alive/") || strings.Contains(one.key, "/queue/") {
			op = leased(one.who, one.key, aTime)
		}
		expect(t, r, fmt.Sprintf("%s puts %s", one.who.name(), one.key), one.who, of(op), one.want)
		want := one.want
		if strings.HasSuffix(one.key, "/clock") {
			want = codes.PermissionDenied // nobody deletes it
		}
		expect(t, r, fmt.Sprintf("%s deletes %s", one.who.name(), one.key), one.who, of(remove(one.key, "")), want)
	}
	// The admission is gone with the fence: the registration says it, of that very pod.
	delete(keys, "/hudi/control/"+ownTable+"/admit/"+driver.attempt())
	later := newRules(r.contract, keys.read, newClocks(noServer))
	expect(t, later, "a registered pod", driver, of(put(own+"clock", aTime)), codes.OK)
	twin := subject{namespace: driver.namespace, pod: driver.pod, uid: "uid-6"}
	expect(t, later, "another pod of that name", twin, of(put(own+"clock", aTime)), codes.PermissionDenied)
	expect(t, later, "its settle record", driver, of(put(own+"settle/inc-1", "{}")), codes.PermissionDenied)
}

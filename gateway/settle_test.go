package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
)

const (
	record = own + "settle/inc-2"
	handed = `{"inc":"inc-2","namespace":"ours","pod":"live-1","podUID":"uid-2","phase":"RollingBack","abandoned":false,` +
		`"pods":{"uid-2":{"name":"live-1","node":"n1","evidence":true}},"proofs":{"uid-2":{"kind":"PodTerminated","atMs":5}},` +
		`"instants":{"20260101000000000":{"action":"commit","outcome":null,"failures":0}},"times":{"Fenced":1,"RollingBack":4}}`
)

func modIs(key string, revision int64) *pb.Compare {
	return &pb.Compare{Key: []byte(key), Target: pb.Compare_MOD, Result: pb.Compare_EQUAL, TargetUnion: &pb.Compare_ModRevision{ModRevision: revision}}
}

// changed puts a value in place of the one that stands.
func changed(key, value string) *pb.TxnRequest {
	return &pb.TxnRequest{Compare: []*pb.Compare{modIs(key, storedAt)}, Success: []*pb.RequestOp{put(key, value)}}
}

// but is the settle record with other texts in it, each of which it has.
func but(t *testing.T, replacements ...string) string {
	t.Helper()
	text := handed
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(text, replacements[i]) {
			t.Fatalf("no %s", replacements[i])
		}
		text = strings.Replace(text, replacements[i], replacements[i+1], 1)
	}
	return text
}

// What an agent does: it names instants, says what became of them, and hands the record back.
func TestAnAgentSettles(t *testing.T) {
	r, keys := world(t)
	keys[record] = handed
	const outcome, moved, at = `"outcome":null`, `"phase":"RollingBack"`, `"RollingBack":4}`
	for what, value := range map[string]string{
		"as it is":                 handed,
		"an outcome":               but(t, outcome, `"outcome":"RolledBack"`),
		"a failure":                but(t, outcome, `"outcome":null,"error":"no storage"`, `"failures":0`, `"failures":1`),
		"one more instant":         but(t, `"instants":{`, `"instants":{"20260101000000001":{"action":"clean","outcome":null,"failures":0},`),
		"the end":                  but(t, outcome, `"outcome":"RolledBack"`, moved, `"phase":"Swept"`, at, `"RollingBack":4,"Swept":9}`),
		"in another order":         but(t, `"inc":"inc-2","namespace":"ours",`, `"namespace":"ours","inc":"inc-2",`),
		"what is empty, not there": but(t, `"abandoned":false,`, ""),
		"what is empty, there":     but(t, `"inc":"inc-2",`, `"inc":"inc-2","bootId":"","more":{},"list":[],"n":0,"none":null,`),
	} {
		expect(t, r, what, agentA, changed(record, value), codes.OK)
	}
	keys[record] = but(t, at, `"RollingBack":4,"Swept":3}`) // it was swept before, and an instant had no outcome
	expect(t, r, "the end, again", agentA, changed(record, but(t, moved, `"phase":"Swept"`, at, `"RollingBack":4,"Swept":9}`)), codes.OK)
	leased := changed(record, handed)
	leased.Success[0].GetRequestPut().Lease = leaseOf(agentA, 7)
	expect(t, r, "on a lease, with which it would go", agentA, leased, codes.PermissionDenied)
	stale := changed(record, but(t, `"pods"`, `"podz"`))
	stale.Compare = []*pb.Compare{modIs(record, storedAt-1)}
	expect(t, r, "what was changed since: etcd refuses it", agentA, stale, codes.OK)
}

// The operator deletes the pods that a record names, and believes its proofs.
func TestAnAgentInventsNoPodAndNoProof(t *testing.T) {
	r, keys := world(t)
	keys[record] = handed
	for what, value := range map[string]string{
		"a pod":                    but(t, `"pods":{`, `"pods":{"uid-9":{"name":"theirs-1","node":"n1","evidence":true},`),
		"another pod":              but(t, `"pod":"live-1"`, `"pod":"theirs-1"`),
		"another uid":              but(t, `"podUID":"uid-2"`, `"podUID":"uid-9"`),
		"another namespace":        but(t, `"namespace":"ours"`, `"namespace":"theirs"`),
		"no pod":                   but(t, `"podUID":"uid-2",`, ""),
		"a pod's node":             but(t, `"node":"n1"`, `"node":"n2"`),
		"a proof":                  but(t, `"proofs":{`, `"proofs":{"uid-9":{"kind":"PodTerminated","atMs":5},`),
		"no proof":                 but(t, `"uid-2":{"kind":"PodTerminated","atMs":5}`, ""),
		"a pod, with all fields 0": but(t, `"pods":{`, `"pods":{"uid-9":{},`),
		"a new field":              but(t, `"inc":"inc-2",`, `"inc":"inc-2","bootId":"b",`),
		"a similar name":           but(t, `"inc":"inc-2",`, `"inc":"inc-2","Pods":{"uid-9":{"name":"theirs-1"}},`),
		"back to the beginning":    but(t, `"phase":"RollingBack"`, `"phase":"Terminating"`),
		"settled":                  but(t, `"phase":"RollingBack"`, `"phase":"Settled"`),
		"no phase":                 but(t, `"phase":"RollingBack",`, ""),
		"an instant less":          but(t, `"20260101000000000":{"action":"commit","outcome":null,"failures":0}`, ""),
		"another time":             but(t, `"Fenced":1`, `"Fenced":2`),
		"one more time":            but(t, `"Fenced":1`, `"Fenced":1,"Draining":2`),
		"a time less":              but(t, `"Fenced":1,`, ""),
	} {
		expect(t, r, what, agentA, changed(record, value), codes.PermissionDenied)
	}
	for _, value := range []string{"[]", `"a"`, "1"} {
		expect(t, r, value, agentA, changed(record, value), codes.InvalidArgument)
	}
	expect(t, r, "nothing", agentA, changed(record, "null"), codes.PermissionDenied)
	for phase, want := range map[string]codes.Code{"Fenced": codes.PermissionDenied, "Terminating": codes.PermissionDenied, "Swept": codes.PermissionDenied, "RollingBack": codes.OK} {
		keys[record] = but(t, "RollingBack", phase)
		expect(t, r, "a record in phase "+phase, agentA, changed(record, handed), want)
	}
	keys[record] = "[1]"
	expect(t, r, "in place of what cannot be read", agentA, changed(record, handed), codes.PermissionDenied)
	keys[record] = handed
	expect(t, r, "a deletion", agentA, of(remove(record, "")), codes.PermissionDenied)
}

// What stands is what the agent has read: in etcd, when the transaction is executed.
func TestASettleRecordIsCompared(t *testing.T) {
	r, keys := world(t)
	keys[record] = handed
	ops := []*pb.RequestOp{put(record, handed)}
	notEqual, ranged := modIs(record, storedAt), modIs(record, storedAt)
	notEqual.Result = pb.Compare_NOT_EQUAL
	ranged.RangeEnd = prefixEnd(own)
	for what, compares := range map[string][]*pb.Compare{
		"nothing": nil, "another key": {modIs(own+"settle/inc-1", storedAt)}, "its version": {versionIs(record, storedAt)},
		"what it is not": {notEqual}, "a range": {ranged}, "a later one": {modIs(record, storedAt+1)}, "none": {modIs(record, 0), versionIs(record, 0)},
	} {
		want := codes.PermissionDenied
		if what == "none" {
			want = codes.OK // the record stands, so etcd refuses it
		}
		expect(t, r, what, agentA, &pb.TxnRequest{Compare: compares, Success: ops}, want)
	}
	expect(t, r, "in the other branch", agentA, &pb.TxnRequest{Compare: changed(record, handed).Compare, Failure: ops}, codes.PermissionDenied)
	delete(keys, record)
	for _, revision := range []int64{0, storedAt, 1 << 40} {
		expect(t, r, "a record that nobody has begun", agentA, &pb.TxnRequest{Compare: []*pb.Compare{modIs(record, revision)}, Success: ops}, codes.PermissionDenied)
	}
}

func TestPhasesAreThoseOfTheContract(t *testing.T) {
	text, err := os.ReadFile("../operator/hudi_contract/protocol.json")
	var told struct{ Words map[string][]string }
	if err == nil {
		err = json.Unmarshal(text, &told)
	}
	if err != nil || !slices.Contains(told.Words["Phase"], rollingBack) || !slices.Contains(told.Words["Phase"], swept) {
		t.Errorf("%v: %v", told.Words["Phase"], err)
	}
}

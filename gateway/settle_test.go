package main

import (
	"context"
	"encoding/json"
	"fmt"
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
		"as it is":               handed,
		"an outcome":             but(t, outcome, `"outcome":"RolledBack"`),
		"a failure":              but(t, outcome, `"outcome":null,"error":"no storage"`, `"failures":0`, `"failures":1`),
		"one more instant":       but(t, `"instants":{`, `"instants":{"20260101000000001":{"action":"clean","outcome":null,"failures":0},`),
		"the end":                but(t, outcome, `"outcome":"RolledBack"`, moved, `"phase":"Swept"`, at, `"RollingBack":4,"Swept":9}`),
		"in another order":       but(t, `"inc":"inc-2","namespace":"ours",`, `"namespace":"ours","inc":"inc-2",`),
		"new and empty in a pod": but(t, `"evidence":true}`, `"evidence":true,"zone":"","more":{},"n":0}`),
		"a long error":           but(t, `"failures":0`, `"failures":1,"error":"`+strings.Repeat("ü", maxText)+`"`),
		"what is new, and empty": but(t, `"inc":"inc-2",`, `"inc":"inc-2","bootId":"","more":{},"list":[],"n":0,"none":null,`),
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
		"new in a pod":             but(t, `"evidence":true}`, `"evidence":true,"zone":"a"}`),
		"less in a pod":            but(t, `"name":"live-1",`, ""),
		"a proof instead of it":    but(t, `"proofs":{"uid-2"`, `"proofs":{"uid-9"`),
		"a pod's node":             but(t, `"node":"n1"`, `"node":"n2"`),
		"a proof":                  but(t, `"proofs":{`, `"proofs":{"uid-9":{"kind":"PodTerminated","atMs":5},`),
		"no proof":                 but(t, `"uid-2":{"kind":"PodTerminated","atMs":5}`, ""),
		"no list":                  but(t, `"abandoned":false`, `"abandoned":0`),
		"a field less":             but(t, `"abandoned":false,`, ""),
		"a pod, with all fields 0": but(t, `"pods":{`, `"pods":{"uid-9":{},`),
		"a new field":              but(t, `"inc":"inc-2",`, `"inc":"inc-2","bootId":"b",`),
		"a field without a name":   but(t, `"inc":"inc-2",`, `"inc":"inc-2","":"x",`),
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
	const item = `{"action":"commit","outcome":null,"failures":0}`
	for _, value := range []string{
		"[]", `"a"`, "1", but(t, item, "1"), but(t, item, "null"), but(t, item, `[]`), but(t, `"outcome":null`, `"outcome":"Foo"`),
		but(t, `"outcome":null`, `"outcome":""`), but(t, `"outcome":null`, `"outcome":[]`), but(t, `"failures":0`, `"failures":-1`),
		but(t, `"failures":0`, `"failures":1.5`), but(t, `"failures":0`, `"failures":"1"`), but(t, `"action":"commit"`, `"action":null`),
		but(t, `"failures":0`, `"failures":0,"error":{}`), but(t, `"failures":0`, `"failures":0,"error":"`+strings.Repeat("x", maxText+1)+`"`), but(t, `"RollingBack":4`, `"RollingBack":4,"Swept":"x"`),
		but(t, `"RollingBack":4`, `"RollingBack":4,"Swept":253402300800000`),
	} {
		expect(t, r, value, agentA, changed(record, value), codes.InvalidArgument)
	}
	keys[record] = but(t, `"instants":{"20260101000000000":`+item+`}`, `"instants":{}`)
	expect(t, r, "no instants", agentA, changed(record, keys[record]), codes.OK)
	for _, instants := range []string{`[]`, `null`, `""`} {
		value := but(t, `"instants":{"20260101000000000":`+item+`}`, `"instants":`+instants)
		expect(t, r, "instants that are "+instants, agentA, changed(record, value), codes.InvalidArgument)
	}
	keys[record] = handed
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

// The operator fences whoever an instant names as its owner, and waits for a proof of its death.
func TestAnAgentInventsNoOwner(t *testing.T) {
	const instant, given = own + "instant/20260101000000000", own + "done/abandoned-inc-7"
	r, keys := world(t)
	keys[own+"writer/inc-3"] = registered(agentA, "inc-3", "agent")
	owned := func(inc string) *pb.TxnRequest { return of(put(instant, `{"inc":"`+inc+`"}`)) }
	for inc, want := range map[string]codes.Code{
		"inc-3": codes.OK, "inc-1": codes.PermissionDenied, "ghost": codes.PermissionDenied, "": codes.PermissionDenied, "inc-7": codes.PermissionDenied,
	} {
		expect(t, r, "a new one of "+inc, agentA, owned(inc), want)
	}
	keys[own+"settle/inc-7"] = handed
	expect(t, r, "of one that is settled", agentA, owned("inc-7"), codes.OK)
	delete(keys, own+"settle/inc-7")
	keys[given] = `{"inc":"inc-7","instants":["20260101000000001"]}`
	expect(t, r, "another one of one that has left", agentA, owned("inc-7"), codes.PermissionDenied)
	keys[given] = `{"inc":"inc-7","instants":["20260101000000001","20260101000000000"]}`
	expect(t, r, "one of one that has left", agentA, owned("inc-7"), codes.OK)
	keys[given] = `[1]`
	expect(t, r, "of one of whom nothing can be read", agentA, owned("inc-7"), codes.PermissionDenied)
	keys[instant] = `{"inc":"inc-7"}`
	for inc, want := range map[string]codes.Code{"inc-7": codes.OK, "inc-3": codes.PermissionDenied, "ghost": codes.PermissionDenied} {
		expect(t, r, "one that stands, now of "+inc, agentA, owned(inc), want)
	}
	keys[instant] = `{"inc":"inc-7","claimedBy":"inc-3"}`
	for inc, want := range map[string]codes.Code{"inc-7": codes.OK, "inc-3": codes.OK, "ghost": codes.PermissionDenied, "": codes.PermissionDenied} {
		expect(t, r, "one that the agent has claimed, now of "+inc, agentA, owned(inc), want)
	}
	keys[instant] = `{"inc":"inc-7","claimedBy":"inc-1"}` // which is another pod's
	expect(t, r, "one that another one has claimed", agentA, owned("inc-1"), codes.PermissionDenied)
	keys[instant] = `{"inc":5}`
	expect(t, r, "one that cannot be read", agentA, owned("inc-7"), codes.PermissionDenied)
}

// Nor does it say of anybody that it has given up an instant that is not recorded as its own.
func TestWhatWasGivenUpIsRecorded(t *testing.T) {
	const given = own + "done/abandoned-inc-7"
	r, keys := world(t)
	list := func(instants ...string) *pb.TxnRequest {
		told, _ := json.Marshal(map[string]any{"inc": "inc-7", "instants": instants})
		return of(put(given, string(told)))
	}
	keys[own+"instant/1"], keys[own+"instant/2"], keys[own+"instant/3"] = `{"inc":"inc-7"}`, `{"inc":"inc-1"}`, `{"inc":[]}`
	expect(t, r, "none", agentA, list(), codes.OK)
	expect(t, r, "its own", agentA, list("1"), codes.OK)
	for _, instant := range []string{"2", "3", "4", ""} {
		expect(t, r, "another one's: "+instant, agentA, list("1", instant), codes.PermissionDenied)
	}
	keys[given] = `{"inc":"inc-7","instants":["4","5"]}`
	expect(t, r, "what it has said before", agentA, list("5", "4", "1"), codes.OK)
	expect(t, r, "fewer", agentA, list("5"), codes.OK)
	expect(t, r, "very many", agentA, list("1", "1", "1", "1", "1", "1", "1", "1", "1"), codes.PermissionDenied)
	expect(t, r, "no list", agentA, of(put(given, `{"inc":"inc-7","instants":5}`)), codes.InvalidArgument)
	expect(t, r, "of another one", agentA, of(put(given, `{"inc":"inc-1","instants":[]}`)), codes.InvalidArgument)
	expect(t, r, "another answer", agentA, of(put(own+"done/create", `{"instants":["9"]}`)), codes.OK)
}

// The operator takes the pod in the name of a report for the pod of the incarnation in it.
func TestAnAgentReportsOnNoAttempt(t *testing.T) {
	r, _ := world(t)
	for _, attempt := range []string{second.attempt(), agentA.attempt(), "ours.hudi-agent-fedcba9876-4"} {
		expect(t, r, attempt, agentA, of(put(own+"report/attempt/"+attempt, `{"inc":"ghost"}`)), codes.PermissionDenied)
	}
	expect(t, r, "its report", agentA, of(put(own+"report/timeline", `{}`)), codes.OK)
}

func TestAnIncarnationHasFewTickets(t *testing.T) {
	r, keys := world(t)
	ticket := func(inc string, n int) string {
		return fmt.Sprintf("%squeue/%s-c6f0d3a4-2b1e-4c55-9a77-0000000000%02x", own, inc, n)
	}
	several := func(n int) (made []*pb.RequestOp) {
		for i := range n {
			made = append(made, leased(driver, ticket("inc-1", 100+i), "{}"))
		}
		return made
	}
	expect(t, r, "as many as it may have", driver, of(several(maxTickets)...), codes.OK)
	expect(t, r, "one more", driver, of(several(maxTickets+1)...), codes.PermissionDenied)
	expect(t, r, "one more in the other branch", driver, &pb.TxnRequest{Failure: several(maxTickets + 1)}, codes.PermissionDenied)
	for n := range maxTickets {
		keys[ticket("inc-1", n)] = "{}"
	}
	expect(t, r, "one more than it has", driver, of(several(1)...), codes.PermissionDenied)
	expect(t, r, "another one", second, of(leased(second, ticket("inc-2", 1), "{}")), codes.OK)
	for n := range maxTickets { // of another pod, whose incarnation has a name like that
		keys[ticket("inc-2-x", n)] = "{}"
	}
	expect(t, r, "one that another one's begins with", second, of(leased(second, ticket("inc-2", 1), "{}")), codes.OK)
	stranger := subject{namespace: "theirs", pod: "x", uid: "uid-9"}
	if _, err := r.txn(context.Background(), stranger, of(leased(stranger, ticket("inc-1", 99), "{}"))); err == nil || strings.Contains(err.Error(), "tickets") {
		t.Errorf("a stranger is told how many there are: %v", err)
	}
}

// A record that cannot be read may be anybody's, and nobody is settled then.
func TestARecordedInstantCanBeRead(t *testing.T) {
	r, _ := world(t)
	record := func(more string) *pb.TxnRequest {
		return of(put(own+"instant/20260101000000000", `{"inc":"inc-1"`+more+"}"))
	}
	for _, more := range []string{
		"", `,"action":"commit","state":"Pending","claimedBy":"inc-3","atMs":5`, `,"state":"Abandoned","new":[1]`,
		`,"action":"` + strings.Repeat("ü", maxShort) + `"`,
	} {
		expect(t, r, more, driver, record(more), codes.OK)
	}
	for _, more := range []string{
		`,"state":"Foo"`, `,"state":5`, `,"state":null`, `,"action":5`, `,"claimedBy":{}`, `,"atMs":"x"`, `,"atMs":-1`,
		`,"action":"` + strings.Repeat("x", maxShort+1) + `"`,
	} {
		expect(t, r, more, driver, record(more), codes.InvalidArgument)
	}
}

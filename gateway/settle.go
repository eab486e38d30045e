package main

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"unicode/utf8"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ---- settle records: the operator deletes the pods that a record names and accepts its proofs of death.
// Therefore an agent may change only the parts that describe its own work.

// settledBy says whether an agent may put the record of an instant with this owner. The operator treats the
// owner of an instant as an incarnation that lived, and waits for a proof of its death. Therefore the owner
// of an existing record cannot change. A new record names the agent itself or a dead owner: one that the
// operator settles, or that is known to have given this instant up.
func (r *rules) settledBy(ctx context.Context, table string, key []byte, instant, inc string, own func() error) error {
	answers, err := r.read(ctx,
		&pb.RangeRequest{Key: key},
		&pb.RangeRequest{Key: r.contract.key(tables, table, "settle/"+inc)},
		&pb.RangeRequest{Key: r.contract.key(tables, table, "done/"+abandoned(inc))})
	if err != nil {
		return err
	}
	for _, kv := range answers[0].Kvs {
		told, err := fieldsOf(kv.Value)
		switch {
		case err == nil && told["inc"] == inc:
			return nil
		case err == nil && told["claimedBy"] == inc && inc != "":
			return own() // an agent may give up an instant that it has claimed
		}
		return denied("%q: the owner of a recorded instant stays, until who has claimed it gives it up", key)
	}
	if inc != "" && (len(answers[1].Kvs) > 0 || slices.Contains(instantsIn(answers[2].Kvs), instant)) {
		return nil
	}
	return own()
}

// givenUp says whether an agent may put the list of instants that an incarnation has given up: each that it
// adds is recorded as that incarnation's.
func (r *rules) givenUp(ctx context.Context, table string, put *pb.PutRequest, inc string) error {
	fields, err := fieldsOf(put.Value)
	if err != nil || fields["inc"] != inc {
		return status.Errorf(codes.InvalidArgument, "value of %q: inc must be %q", put.Key, inc)
	}
	var told struct {
		Instants []string `json:"instants"`
	}
	if err := json.Unmarshal(put.Value, &told); err != nil {
		return status.Errorf(codes.InvalidArgument, "value of %q: %v", put.Key, err)
	}
	answers, err := r.read(ctx, &pb.RangeRequest{Key: put.Key})
	if err != nil {
		return err
	}
	known := instantsIn(answers[0].Kvs)
	var asked []*pb.RangeRequest
	for _, instant := range told.Instants {
		if !slices.Contains(known, instant) {
			asked = append(asked, &pb.RangeRequest{Key: r.contract.key(tables, table, "instant/"+instant)})
		}
	}
	if len(asked) > maxRanges {
		return denied("%q: an agent adds at most %d instants at once", put.Key, maxRanges)
	}
	if len(asked) == 0 {
		return nil
	}
	if answers, err = r.read(ctx, asked...); err != nil {
		return err
	}
	for n, answer := range answers {
		owned := false
		for _, kv := range answer.Kvs {
			record, err := registrationIn(kv.Value)
			owned = err == nil && record.Inc == inc
		}
		if !owned {
			return denied("%q: %q is not recorded as an instant of %s", put.Key, clip(asked[n].Key), inc)
		}
	}
	return nil
}

func instantsIn(kvs []*mvccpb.KeyValue) []string {
	var told struct {
		Instants []string `json:"instants"`
	}
	for _, kv := range kvs {
		if json.Unmarshal(kv.Value, &told) != nil {
			return nil
		}
	}
	return told.Instants
}

// Phases of a settle record between which an agent moves it.
const (
	rollingBack = "RollingBack"
	swept       = "Swept"
)

// settle says whether an agent may put this settle record: in place of the one that it has read, which
// the transaction compares, in phase RollingBack. It may add instants and change what became of them, and
// move the record to Swept.
func (r *rules) settle(ctx context.Context, put *pb.PutRequest, in branch) error {
	answers, err := r.read(ctx, &pb.RangeRequest{Key: put.Key})
	if err != nil {
		return err
	}
	read, compares := in.modRevision(put.Key)
	switch {
	case len(answers[0].Kvs) == 0 || !compares || read > answers[0].Kvs[0].ModRevision:
		return denied("%q: an agent changes a settle record that stands, and compares its mod revision", put.Key)
	case read < answers[0].Kvs[0].ModRevision:
		return nil // it was changed since, and etcd will say so
	}
	before, err := fieldsOf(answers[0].Kvs[0].Value)
	if err != nil {
		return denied("%q cannot be read, and only the operator may replace it", put.Key)
	}
	after, err := fieldsOf(put.Value)
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "value of %q: %v", put.Key, err)
	}
	if before["phase"] != rollingBack || (after["phase"] != rollingBack && after["phase"] != swept) {
		return denied("%q: an agent moves a settle record from phase %s to %s, not from %q to %q", put.Key, rollingBack, swept, before["phase"], after["phase"])
	}
	instants, times := objectIn(after, "instants"), objectIn(after, "times")
	for instant := range objectIn(before, "instants") {
		if _, kept := instants[instant]; !kept {
			return denied("%q: an agent keeps each instant of a settle record, and %q is missing", put.Key, clip([]byte(instant)))
		}
	}
	if !r.contract.readable(after["instants"]) || (times[swept] != nil && !isWhole(times[swept])) {
		return status.Errorf(codes.InvalidArgument,
			"value of %q: instants must have a text as action and error, a number as failures and one of %v as outcome, and times a number", put.Key, r.contract.outcomes)
	}
	delete(times, swept)
	if was := objectIn(before, "times"); len(was)+len(times) > 0 {
		delete(was, swept)
		if !reflect.DeepEqual(was, times) {
			return denied("%q: of the times of a settle record an agent puts that of %s", put.Key, swept)
		}
	}
	for _, fields := range []map[string]any{before, after} {
		delete(fields, "phase")
		delete(fields, "instants")
		delete(fields, "times")
	}
	if name, differ := differing(before, after, sameElements); differ {
		return denied("%q: an agent does not change %q of a settle record", put.Key, clip([]byte(name)))
	}
	return nil
}

// differing is the name of a field that two objects do not have in common; false: there is none. A field that
// only the later one has, and that is empty, is of a newer version.
func differing(before, after map[string]any, same func(any, any) bool) (string, bool) {
	for name, field := range before {
		if !same(field, after[name]) {
			return name, true
		}
	}
	for name, field := range after {
		if _, known := before[name]; !known && !isEmpty(field) {
			return name, true
		}
	}
	return "", false
}

// sameElements says whether two values are equal, or are objects of the same names, such as pods by their
// uid, whose elements are objects that do not differ.
func sameElements(before, after any) bool {
	if reflect.DeepEqual(before, after) {
		return true
	}
	old, isOld := before.(map[string]any)
	now, isNow := after.(map[string]any)
	if !isOld || !isNow || len(old) != len(now) {
		return false
	}
	for name := range old {
		one, ok := old[name].(map[string]any)
		other, object := now[name].(map[string]any)
		if !ok || !object {
			return false
		}
		if _, differ := differing(one, other, reflect.DeepEqual); differ {
			return false
		}
	}
	return true
}

// isInstant says whether the operator can read the record of an instant.
func (c *contract) isInstant(value []byte) bool {
	fields, err := fieldsOf(value)
	if err != nil {
		return false
	}
	state, said := fields["state"]
	word, _ := state.(string)
	short := func(field any) bool { return isText(field) && utf8.RuneCountInString(field.(string)) <= maxShort }
	return (!said || slices.Contains(c.states, word)) &&
		each(fields, map[string]func(any) bool{"action": short, "claimedBy": short, "atMs": isWhole})
}

// each says whether the fields that are there are right.
func each(fields map[string]any, right map[string]func(any) bool) bool {
	for name, is := range right {
		if field, there := fields[name]; there && !is(field) {
			return false
		}
	}
	return true
}

// readable says whether the operator can read the instants of a settle record. A field that this version
// does not know is not looked at.
func (c *contract) readable(instants any) bool {
	all, ok := instants.(map[string]any)
	for _, one := range all {
		fields, object := one.(map[string]any)
		if !object {
			return false
		}
		outcome := fields["outcome"]
		word, _ := outcome.(string)
		ok = ok && (outcome == nil || (word != "" && slices.Contains(c.outcomes, word)))
		ok = ok && each(fields, map[string]func(any) bool{"action": isText, "error": isText, "failures": isWhole})
	}
	return ok
}

func isText(field any) bool {
	text, ok := field.(string)
	return ok && utf8.RuneCountInString(text) <= maxText
}

// A time in milliseconds until the year 9999 has 15 digits at most.
var whole = regexp.MustCompile(`^(0|[1-9][0-9]{0,13})$`)

func isWhole(field any) bool {
	number, ok := field.(json.Number)
	return ok && whole.MatchString(string(number))
}

// isEmpty: an agent of a newer version writes a field that it has more, with its default.
func isEmpty(field any) bool {
	switch content := field.(type) {
	case map[string]any:
		return len(content) == 0
	case []any:
		return len(content) == 0
	}
	return field == nil || field == "" || field == false || field == json.Number("0")
}

// fieldsOf reads an object as all readers do: names are exact, numbers as they are written.
func fieldsOf(value []byte) (map[string]any, error) {
	reader := json.NewDecoder(bytes.NewReader(value))
	reader.UseNumber()
	var fields map[string]any
	if err := reader.Decode(&fields); err != nil {
		return nil, err
	}
	return fields, nil
}

// objectIn is the object in that field; empty when there is none.
func objectIn(fields map[string]any, name string) map[string]any {
	object, _ := fields[name].(map[string]any)
	return object
}

// modRevision is the one with which the branch compares the key; false: it compares none.
func (b branch) modRevision(key []byte) (int64, bool) {
	for _, c := range b.when {
		mod, ok := c.TargetUnion.(*pb.Compare_ModRevision)
		if ok && c.Target == pb.Compare_MOD && c.Result == pb.Compare_EQUAL && bytes.Equal(c.Key, key) && len(c.RangeEnd) == 0 {
			return mod.ModRevision, true
		}
	}
	return 0, false
}

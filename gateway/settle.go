package main

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ---- settle records: the operator deletes the pods that one names and takes its proofs for death, so an
// agent changes no more of it than what it did itself

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
	for name := range before {
		if !reflect.DeepEqual(before[name], after[name]) {
			return denied("%q: an agent does not change %q of a settle record", put.Key, clip([]byte(name)))
		}
	}
	for name := range after {
		if _, known := before[name]; !known {
			return denied("%q: an agent does not add %q to a settle record", put.Key, clip([]byte(name)))
		}
	}
	return nil
}

// fieldsOf reads an object as all readers do: names are exact, numbers as they are written. A field that
// is empty counts as one that is not there, because an agent of another version may write either.
func fieldsOf(value []byte) (map[string]any, error) {
	reader := json.NewDecoder(bytes.NewReader(value))
	reader.UseNumber()
	var fields map[string]any
	if err := reader.Decode(&fields); err != nil {
		return nil, err
	}
	for name, field := range fields {
		switch content := field.(type) {
		case map[string]any:
			if len(content) == 0 {
				delete(fields, name)
			}
		case []any:
			if len(content) == 0 {
				delete(fields, name)
			}
		default:
			if content == nil || content == "" || content == false || content == json.Number("0") {
				delete(fields, name)
			}
		}
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

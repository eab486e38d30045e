package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	maxKeyBytes = 512
	// A right is looked up again after this time; what writes is compared with it in etcd (guard).
	rightsFor   = 60 * time.Second
	noRightsFor = time.Second
	maxRights   = 100000
	// etcd's own limit for comparisons and for the operations of a branch (max-txn-ops), less the
	// comparison with the right (see guarded), which counts against it.
	maxOperations = 127
	// The mode of a gate in which the lock disappears with its owner's lease.
	leaseOnly = "LeaseOnly"
	// Ranges of a transaction, comparisons with ranges included; our clients have four at most.
	maxRanges = 8
	// Incarnations that a pod registers at a table: one for each process that it runs there, one after the
	// other. When it is dead, the operator settles each of them, with all executors of the pod.
	maxIncarnations = 16
	// Instants of a table to which a writer may add one. A settle record names those of its incarnation, with
	// some 90 bytes each.
	maxInstants = 1000
	// Tickets of an incarnation: it waits with one, and puts the next one when it is not known whether that
	// was deleted.
	maxTickets = 16
	// Characters of texts that operator and agents read (shape.py): short ones, and any other.
	maxShort, maxText = 253, 1 << 16
)

// reportOf is the name of an attempt's report, below `report/`.
func reportOf(attempt string) string { return "attempt/" + attempt }

// abandoned is the name below `done/` of the instants that an incarnation has given up.
func abandoned(inc string) string { return "abandoned-" + inc }

func denied(format string, arguments ...any) error {
	return status.Errorf(codes.PermissionDenied, format, arguments...)
}

// right is what a pod may do at one table.
type right struct {
	// writer, agent, or empty: nothing may be written.
	role string
	// Pods of the HudiTable's own namespace read its keys.
	reads bool
	until time.Time
	// The key that gives the role, and its revision: the admission, or a registration.
	by       []byte
	revision int64
	admitted bool
}

type podKey struct{ namespace, pod, uid string }

func (s subject) key() podKey { return podKey{s.namespace, s.pod, s.uid} }

// rules decides what a pod may do. It keeps no state that another replica would need: everything is
// looked up in etcd.
type rules struct {
	contract *contract
	// read executes one read-only transaction in etcd, linearizable.
	read   func(context.Context, ...*pb.RangeRequest) ([]*pb.RangeResponse, error)
	clocks *clocks
	// The node that this process runs on; empty when it is not known.
	node string

	mu     sync.Mutex
	rights map[podKey]map[string]right // by table
	held   int                         // rights in all
	// Incarnation and table to the uid of the pod that has registered it.
	owners map[[2]string]string
}

func newRules(c *contract, read func(context.Context, ...*pb.RangeRequest) ([]*pb.RangeResponse, error), clocks *clocks) *rules {
	return &rules{contract: c, read: read, clocks: clocks, rights: map[podKey]map[string]right{}, owners: map[[2]string]string{}}
}

// rightOf looks up what the pod may do at the table: what the operator has admitted its attempt as,
// or, when the admission is gone, what it has registered as. A registration can be trusted: see put.
func (r *rules) rightOf(ctx context.Context, s subject, table string) (right, error) {
	r.mu.Lock()
	found, ok := r.rights[s.key()][table]
	r.mu.Unlock()
	if ok && time.Now().Before(found.until) {
		return found, nil
	}
	admission := "admit/" + s.attempt()
	answers, err := r.read(ctx,
		&pb.RangeRequest{Key: r.contract.key(control, table, admission)},
		&pb.RangeRequest{Key: r.contract.key(control, table, "gate")})
	if err != nil {
		return right{}, err
	}
	made := right{until: time.Now().Add(noRightsFor)}
	for _, kv := range answers[0].Kvs {
		var admit struct {
			Attempt string `json:"attempt"`
			Role    string `json:"role"`
		}
		if json.Unmarshal(kv.Value, &admit) == nil && admit.Attempt == s.attempt() && (admit.Role == roleWriter || admit.Role == roleAgent) {
			made.role, made.by, made.revision, made.admitted = admit.Role, kv.Key, kv.ModRevision, true
		}
	}
	for _, kv := range answers[1].Kvs {
		var gate struct {
			Table string `json:"table"`
		}
		made.reads = json.Unmarshal(kv.Value, &gate) == nil && strings.HasPrefix(gate.Table, s.namespace+"/")
	}
	if made.role == "" { // all registrations are read only when it matters: an admission goes after its registration
		if err = r.registeredAs(ctx, s, table, &made); err != nil {
			return right{}, err
		}
	}
	if made.role != "" {
		made.reads, made.until = true, time.Now().Add(rightsFor)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held >= maxRights {
		r.forget(time.Now())
	}
	if r.rights[s.key()] == nil {
		r.rights[s.key()] = map[string]right{}
	}
	if _, again := r.rights[s.key()][table]; !again {
		r.held++
	}
	r.rights[s.key()][table] = made
	return made, nil
}

// registeredAs fills in the role that the pod has registered with at the table, if it has.
func (r *rules) registeredAs(ctx context.Context, s subject, table string, made *right) error {
	all := r.contract.key(tables, table, "writer/")
	answers, err := r.read(ctx, &pb.RangeRequest{Key: all, RangeEnd: prefixEnd(string(all))})
	if err != nil {
		return err
	}
	for _, kv := range answers[0].Kvs {
		if told, err := registrationIn(kv.Value); made.role == "" && err == nil && told.of(s) {
			made.role, made.by, made.revision = told.Role, kv.Key, kv.ModRevision
		}
	}
	return nil
}

// withdrawn drops what is remembered of the pod's right at the table.
func (r *rules) withdrawn(s subject, table string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.rights[s.key()][table]; known {
		delete(r.rights[s.key()], table)
		r.held--
	}
}

// writesTo is the table whose keys a transaction writes; empty when it only reads.
func (r *rules) writesTo(txn *pb.TxnRequest) (table string, err error) {
	for _, op := range operations(txn) {
		key := op.GetRequestPut().GetKey()
		if del := op.GetRequestDeleteRange(); del != nil {
			key = del.Key
		}
		if key == nil {
			continue
		}
		_, at := r.contract.base(key)
		if table != "" && at != table {
			return "", status.Errorf(codes.InvalidArgument, "a transaction writes keys of one table, not of %s and %s", table, at)
		}
		table = at
	}
	return table, nil
}

// guard is true in etcd as long as the right stands that the transaction was let through with. It is
// compared where the transaction is executed, because what is remembered may be gone by then.
func (r *rules) guard(ctx context.Context, s subject, table string) (*pb.Compare, error) {
	have, err := r.rightOf(ctx, s, table)
	if err != nil || have.role == "" {
		return nil, cmp.Or(err, denied("pod %s/%s is not admitted to table %s", s.namespace, s.pod, table))
	}
	return &pb.Compare{Key: have.by, Target: pb.Compare_MOD, Result: pb.Compare_EQUAL, TargetUnion: &pb.Compare_ModRevision{ModRevision: have.revision}}, nil
}

// forget drops what has to be looked up again anyway, and all of it when that does not help; r.mu is
// held.
func (r *rules) forget(now time.Time) {
	for pod, tables := range r.rights {
		for table, have := range tables {
			if now.After(have.until) {
				delete(tables, table)
				r.held--
			}
		}
		if len(tables) == 0 {
			delete(r.rights, pod)
		}
	}
	if r.held >= maxRights {
		r.rights, r.held = map[podKey]map[string]right{}, 0
	}
}

// known says whether the pod had a right at the table when that was looked up last.
func (r *rules) known(s subject, table string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rights[s.key()][table].reads
}

// oneOf is one of the tables at which the pod is known to have a role, another one each time: what names
// no table is paid by all of them in turn. Empty when it has none.
func (r *rules) oneOf(s subject) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for table, have := range r.rights[s.key()] { // Go begins anywhere
		if have.role != "" {
			return table
		}
	}
	return ""
}

// tables is the number of tables at which the pod is known to have a role.
func (r *rules) tables(s subject) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, have := range r.rights[s.key()] {
		if have.role != "" {
			n++
		}
	}
	return n
}

// served are the tables at which the pod is known to have a role.
func (r *rules) served(s subject) (found []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for table, have := range r.rights[s.key()] {
		if have.role != "" {
			found = append(found, table)
		}
	}
	return found
}

// mayRead: the keys of one table, for its own pods and those of its namespace; the assignments of an
// agent, for its pods (each answer is checked once more, by mayKnow).
func (r *rules) mayRead(ctx context.Context, s subject, key, end []byte) error {
	if agent, ok := r.agent(key); ok {
		if !within(r.contract.prefix+control+"/"+agents+"/"+agent+"/", key, end) || !isPodOf(s.pod, agent) {
			return denied("pod %s/%s is not one of agent %s", s.namespace, s.pod, agent)
		}
		return nil
	}
	base, table := r.contract.base(key)
	if base == "" || !within(base, key, end) {
		return denied("a pod reads keys of one table at a time; %q is not among them", clip(key))
	}
	have, err := r.rightOf(ctx, s, table)
	if err != nil {
		return err
	}
	if !have.reads {
		return denied("pod %s/%s is not admitted to table %s", s.namespace, s.pod, table)
	}
	return nil
}

// mayWatch: keys of one table from now on, as they become. The history of a table is not read again for
// each watch: a client reads when its watch stands.
func (r *rules) mayWatch(ctx context.Context, s subject, create *pb.WatchCreateRequest) error {
	if _, agents := r.agent(create.Key); agents {
		return denied("assignments are read, not watched")
	}
	if create.StartRevision != 0 || create.PrevKv {
		return denied("a watch of a pod begins now, not at revision %d, and tells no earlier values", create.StartRevision)
	}
	return r.mayRead(ctx, s, create.Key, create.RangeEnd)
}

func (r *rules) agent(key []byte) (string, bool) {
	rest, ok := strings.CutPrefix(string(key), r.contract.prefix+control+"/"+agents+"/")
	if !ok {
		return "", false
	}
	name, _, ok := strings.Cut(rest, "/")
	return name, ok && name != ""
}

// isPodOf: an agent's pods are named `<agent>-<generation>`.
func isPodOf(pod, agent string) bool {
	generation, ok := strings.CutPrefix(pod, agent+"-")
	return ok && generation != "" && strings.Trim(generation, "0123456789") == ""
}

// mayKnow checks a key of an answer: an assignment names its table's namespace, which must be the
// pod's own, because a pod of that name may exist in another namespace.
func (r *rules) mayKnow(s subject, key, value []byte) error {
	if _, ok := r.agent(key); !ok {
		return nil
	}
	var assignment struct {
		Table string `json:"table"`
	}
	if json.Unmarshal(value, &assignment) != nil || !strings.HasPrefix(assignment.Table, s.namespace+"/") {
		return denied("agent of pod %s/%s serves tables of another namespace", s.namespace, s.pod)
	}
	return nil
}

// txn checks a whole transaction: every branch, whether or not it would be executed. It tells the table
// that the transaction writes; empty when it only reads.
func (r *rules) txn(ctx context.Context, s subject, txn *pb.TxnRequest) (table string, err error) {
	if n := max(len(txn.Compare), len(txn.Success), len(txn.Failure)); n > maxOperations {
		return "", status.Errorf(codes.InvalidArgument, "a transaction has at most %d comparisons and operations in a branch, not %d", maxOperations, n)
	}
	if n := ranges(txn, 0); n > maxRanges {
		return "", status.Errorf(codes.InvalidArgument, "a transaction has at most %d ranges, not %d (rule ranges)", maxRanges, n)
	}
	if table, err = r.writesTo(txn); err != nil {
		return "", err
	}
	if table != "" && ranges(txn, 0) > 0 { // etcd executes what writes one after the other, for all tables
		return "", denied("a transaction of a pod that writes reads no ranges")
	}
	for _, compare := range txn.Compare {
		if _, ok := r.agent(compare.Key); ok {
			return "", denied("assignments are read, not compared")
		}
		if len(compare.RangeEnd) > 0 {
			return "", denied("a pod compares keys one by one")
		}
		if err := r.mayRead(ctx, s, compare.Key, nil); err != nil {
			return "", err
		}
	}
	if err := r.branch(ctx, s, txn.Success, txn.Compare); err != nil {
		return "", err
	}
	return table, r.branch(ctx, s, txn.Failure, nil)
}

// ranges counts those of all branches, and of transactions in them down to maxDepth.
func ranges(txn *pb.TxnRequest, depth int) (n int) {
	for _, compare := range txn.Compare {
		if len(compare.RangeEnd) > 0 {
			n++
		}
	}
	for _, op := range operations(txn) {
		if len(op.GetRequestRange().GetRangeEnd()) > 0 {
			n++
		}
		if inner := op.GetRequestTxn(); inner != nil && depth < maxDepth {
			n += ranges(inner, depth+1)
		}
	}
	return n
}

// branch checks the operations of one branch, which is executed when these comparisons are true. What
// another branch registers is not registered here.
func (r *rules) branch(ctx context.Context, s subject, operations []*pb.RequestOp, when []*pb.Compare) error {
	told := branch{registers: map[[2]string]bool{}, when: when}
	for _, op := range operations {
		if table, kind, _ := r.contract.kind(op.GetRequestDeleteRange().GetKey()); kind == "lock" || kind == "instant" {
			// Asked once for all of them: those of a transaction are of one table.
			told.releases = sync.OnceValue(func() error { return r.releases(ctx, s, table, told) })
			break
		}
	}
	if err := cmp.Or(r.registersFew(ctx, s, operations), r.recordsFew(ctx, s, operations), r.waitsFew(ctx, s, operations)); err != nil {
		return err
	}
	for _, op := range operations {
		if put := op.GetRequestPut(); put != nil {
			if table, kind, name := r.contract.kind(put.Key); kind == "writer" {
				told.registers[[2]string{table, name}] = true
			}
		}
	}
	for _, op := range operations {
		var err error
		switch {
		case op.GetRequestRange() != nil:
			err = r.range_(ctx, s, op.GetRequestRange())
		case op.GetRequestPut() != nil:
			err = r.put(ctx, s, op.GetRequestPut(), told)
		case op.GetRequestDeleteRange() != nil:
			err = r.delete(ctx, s, op.GetRequestDeleteRange(), told)
		default:
			err = denied("a transaction of a pod reads, puts and deletes keys, and holds no other one")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// registersFew says whether the pod would have few incarnations at the table with those of these
// operations. It is asked once for all of them, because it reads all registrations.
func (r *rules) registersFew(ctx context.Context, s subject, operations []*pb.RequestOp) error {
	var at string
	incs := map[string]bool{}
	for _, op := range operations {
		if table, kind, name := r.contract.kind(op.GetRequestPut().GetKey()); kind == "writer" {
			at, incs[name] = table, true
		}
	}
	if len(incs) == 0 {
		return nil
	}
	have, err := r.rightOf(ctx, s, at)
	if err != nil || have.role == "" {
		return err // put says why
	}
	if len(incs) <= maxIncarnations {
		all := r.contract.key(tables, at, "writer/")
		answers, err := r.read(ctx, &pb.RangeRequest{Key: all, RangeEnd: prefixEnd(string(all))})
		if err != nil {
			return err
		}
		for _, kv := range answers[0].Kvs {
			if told, err := registrationIn(kv.Value); err == nil && told.PodUID == s.uid {
				incs[strings.TrimPrefix(string(kv.Key), string(all))] = true
			}
		}
	}
	if len(incs) > maxIncarnations {
		return denied("pod %s/%s registers at most %d incarnations at table %s", s.namespace, s.pod, maxIncarnations, at)
	}
	return nil
}

// recordsFew says whether the table would have few instants with those that a writer records with these
// operations, and whether these have names of instants. What it has recorded it may change.
func (r *rules) recordsFew(ctx context.Context, s subject, operations []*pb.RequestOp) error {
	var at string
	var asked []*pb.RangeRequest
	for _, op := range operations {
		table, kind, name := r.contract.kind(op.GetRequestPut().GetKey())
		if kind != "instant" {
			continue
		}
		have, err := r.rightOf(ctx, s, table)
		if err != nil || have.role != roleWriter {
			return err // an agent records what it finds
		}
		if !hudiTime.MatchString(name) {
			return denied("%q is no time of an instant", clip([]byte(name)))
		}
		at, asked = table, append(asked, &pb.RangeRequest{Key: op.GetRequestPut().Key})
	}
	if len(asked) == 0 {
		return nil
	}
	all := r.contract.key(tables, at, "instant/")
	answers, err := r.read(ctx, append(asked, &pb.RangeRequest{Key: all, RangeEnd: prefixEnd(string(all)), CountOnly: true})...)
	if err != nil {
		return err
	}
	more := int64(0)
	for _, answer := range answers[:len(asked)] {
		if len(answer.Kvs) == 0 {
			more++
		}
	}
	if more > 0 && answers[len(asked)].Count+more > maxInstants {
		return exceeded("table "+at, "recorded instants", maxInstants, "instants")
	}
	return nil
}

// waitsFew says whether each incarnation would have few tickets with those of these operations.
func (r *rules) waitsFew(ctx context.Context, s subject, operations []*pb.RequestOp) error {
	type incarnation struct{ table, inc string }
	tickets := map[incarnation]int{}
	for _, op := range operations {
		if table, kind, name := r.contract.kind(op.GetRequestPut().GetKey()); kind == "queue" {
			if have, err := r.rightOf(ctx, s, table); err != nil || have.role == "" {
				return err // put says why
			}
			tickets[incarnation{table, incOfTicket(name)}]++
		}
	}
	for of, n := range tickets {
		all := r.contract.key(tables, of.table, "queue/"+of.inc+"-")
		answers, err := r.read(ctx, &pb.RangeRequest{Key: all, RangeEnd: prefixEnd(string(all)), KeysOnly: true})
		if err != nil {
			return err
		}
		for _, kv := range answers[0].Kvs { // the name of another incarnation may begin with this one
			if _, _, name := r.contract.kind(kv.Key); incOfTicket(name) == of.inc {
				n++
			}
		}
		if n > maxTickets {
			return denied("an incarnation has at most %d tickets", maxTickets)
		}
	}
	return nil
}

// branch is what is known of a branch while its operations are checked.
type branch struct {
	registers map[[2]string]bool // table and incarnation
	when      []*pb.Compare
	releases  func() error // whether it is executed only while the pod has the lock
}

// absent says whether the branch is executed only when there is no such key.
func (b branch) absent(key []byte) bool {
	return slices.ContainsFunc(b.when, func(c *pb.Compare) bool {
		version, ok := c.TargetUnion.(*pb.Compare_Version)
		return ok && c.Target == pb.Compare_VERSION && c.Result == pb.Compare_EQUAL &&
			bytes.Equal(c.Key, key) && len(c.RangeEnd) == 0 && version.Version == 0
	})
}

// created is the create revision with which a key must stand for the branch to be executed.
func (b branch) created(key []byte) (revision int64, ok bool) {
	for _, c := range b.when {
		of, is := c.TargetUnion.(*pb.Compare_CreateRevision)
		if is && c.Target == pb.Compare_CREATE && c.Result == pb.Compare_EQUAL && bytes.Equal(c.Key, key) && len(c.RangeEnd) == 0 {
			return of.CreateRevision, true
		}
	}
	return 0, false
}

// The clients of pods ask for no more than 10,000 keys, and fail when there are more; a smaller number could be a question.
const wholeLimit = 10_000

// range_ checks a read, which is of whole ranges as they are now. What a read costs is counted by its
// answer, and etcd reads all keys and values of a range to sort, filter or count them, or to answer with
// names only. Of assignments a number or an order would also say something of those that were left out,
// and each answer is checked once more.
func (r *rules) range_(ctx context.Context, s subject, asked *pb.RangeRequest) error {
	if asked.CountOnly || asked.KeysOnly || (asked.Limit != 0 && asked.Limit < wholeLimit) || asked.Revision != 0 ||
		asked.SortOrder != pb.RangeRequest_NONE || asked.SortTarget != pb.RangeRequest_KEY || asked.MinModRevision != 0 ||
		asked.MaxModRevision != 0 || asked.MinCreateRevision != 0 || asked.MaxCreateRevision != 0 {
		return denied("a pod reads ranges as a whole, as they are now")
	}
	return r.mayRead(ctx, s, asked.Key, asked.RangeEnd)
}

// operations are those of both branches.
func operations(txn *pb.TxnRequest) []*pb.RequestOp {
	return slices.Concat(txn.Success, txn.Failure)
}

// mayWrite says whether the pod's role writes this kind of key at the key's table.
func (r *rules) mayWrite(ctx context.Context, s subject, key []byte) (have right, table, kind, name string, err error) {
	table, kind, name = r.contract.kind(key)
	if kind == "" || len(key) > maxKeyBytes {
		return have, "", "", "", denied("%q is no key that a pod writes", clip(key))
	}
	have, err = r.rightOf(ctx, s, table)
	switch {
	case err != nil:
	case have.role == "":
		err = denied("pod %s/%s is not admitted to table %s", s.namespace, s.pod, table)
	case kind == "report" && have.role == roleWriter:
		if name != reportOf(s.attempt()) {
			err = denied("a writer puts the report of its own attempt only, not %q", key)
		}
	case kind == "report" && strings.HasPrefix(name, reportOf("")):
		err = denied("%q: the report of an attempt is its writer's", key)
	case !r.contract.writers[kind][have.role]:
		err = denied("%q is not written by the role %s", key, have.role)
	}
	return have, table, kind, name, err
}

func (r *rules) put(ctx context.Context, s subject, put *pb.PutRequest, in branch) error {
	have, table, kind, name, err := r.mayWrite(ctx, s, put.Key)
	if err != nil {
		return err
	}
	if !r.contract.named(kind, name) { // an unknown key would never be read or deleted
		return denied("%q: no %s has this name", clip(put.Key), kind)
	}
	if put.IgnoreValue || put.IgnoreLease {
		return denied("a put of a pod has a value and a lease of its own")
	}
	if longest := r.contract.longest[kind]; len(put.Value) > longest {
		return status.Errorf(codes.InvalidArgument, "value of %q: %d bytes, at most %d", put.Key, len(put.Value), longest)
	}
	if put.Lease != 0 && !ownLease(s, put.Lease) {
		return denied("lease %x is not one of pod %s/%s", put.Lease, s.namespace, s.pod)
	}
	if err := r.leased(ctx, table, kind, put.Lease != 0); err != nil {
		return err
	}
	if err := plain(put.Value); err != nil {
		return status.Errorf(codes.InvalidArgument, "value of %q: %v", put.Key, err)
	}
	var value registration
	if kind == "writer" || kind == "lock" || kind == "instant" || kind == "queue" {
		if value, err = registrationIn(put.Value); err != nil {
			return status.Errorf(codes.InvalidArgument, "value of %q: %v", put.Key, err)
		}
	}
	own := func(inc string) error {
		if in.registers[[2]string{table, inc}] {
			return nil // the registration in this branch is checked itself
		}
		return r.owns(ctx, s, table, inc)
	}
	switch kind {
	case "writer":
		if value.Inc != name || value.Role != have.role || !value.of(s) {
			return denied("registration %q: inc, role, attempt, namespace, pod and podUID must be those of pod %s/%s (%s), role %s", put.Key, s.namespace, s.pod, s.uid, have.role)
		}
		// The operator asks the API server for that node, and treats its state as evidence about the pod.
		if s.node != "" && value.Node != s.node {
			return denied("registration %q: node must be %q, where pod %s/%s runs, and not %q", put.Key, s.node, s.namespace, s.pod, clip([]byte(value.Node)))
		}
		// It may repeat its registration: the guard compares that the registration is still there.
		mayRegister := func() bool { return have.admitted || bytes.Equal(have.by, put.Key) }
		if !mayRegister() { // an admission may be younger than what is remembered
			r.withdrawn(s, table)
			if have, err = r.rightOf(ctx, s, table); err != nil {
				return err
			}
		}
		if !mayRegister() {
			return denied("pod %s/%s registers at table %s while it is admitted, and its admission is gone", s.namespace, s.pod, table)
		}
		return r.register(ctx, s, table, name)
	case "alive":
		return own(name)
	case "queue":
		// Readers of a ticket take the incarnation from either place.
		if value.Inc != "" && value.Inc != incOfTicket(name) {
			return denied("ticket %q: inc must be %q, and not %q", put.Key, incOfTicket(name), clip([]byte(value.Inc)))
		}
		return own(incOfTicket(name))
	case "lock":
		if value.PodUID != s.uid || value.Attempt != s.attempt() {
			return denied("lock: podUID and attempt must be those of pod %s/%s", s.namespace, s.pod)
		}
		if err := own(value.Inc); err != nil || in.absent(put.Key) {
			return err
		}
		return r.ownsValue(ctx, s, table, put.Key)
	case "instant":
		if !r.contract.isInstant(put.Value) {
			return status.Errorf(codes.InvalidArgument,
				"value of %q: action and claimedBy must be texts of at most %d characters, state one of %v, atMs a number", put.Key, maxShort, r.contract.states)
		}
		if have.role == roleAgent {
			return r.settledBy(ctx, table, put.Key, name, value.Inc, func() error { return own(value.Inc) })
		}
		if err := own(value.Inc); err != nil {
			return err
		}
		return r.ownsValue(ctx, s, table, put.Key)
	case "done":
		if of, ok := strings.CutPrefix(name, abandoned("")); ok {
			return r.givenUp(ctx, table, put, of)
		}
	case "settle":
		return r.settle(ctx, put, in)
	case "clock":
		return r.clock(ctx, s, table, put)
	}
	return nil
}

// leased says whether a key of this kind may go with its pod's lease, or without one. A heartbeat and a
// ticket have one: nobody else deletes them, and they would outlive their pod. All other keys are deleted
// as the rules of delete have it, or by nobody: a pod ends its leases when it likes.
func (r *rules) leased(ctx context.Context, table, kind string, lease bool) error {
	switch must := kind == "alive" || kind == "queue"; {
	case must && !lease:
		return denied("a %s of table %s has a lease", kind, table)
	case must == lease:
		return nil
	case kind == "lock":
		gate, err := r.gate(ctx, table)
		if err != nil || gate.mode == leaseOnly {
			return err
		}
	}
	return denied("a %s of table %s has no lease: alive and queue have, and a lock in mode %s", kind, table, leaseOnly)
}

func (r *rules) delete(ctx context.Context, s subject, del *pb.DeleteRangeRequest, in branch) error {
	if len(del.RangeEnd) > 0 {
		return denied("a pod deletes keys one by one")
	}
	have, table, kind, name, err := r.mayWrite(ctx, s, del.Key)
	if err != nil {
		return err
	}
	switch kind {
	case "writer", "alive":
		// A clean exit whose answer was lost is said once more, to a gateway that may not have seen the first.
		if owner, err := r.owner(ctx, table, name); err != nil || owner == "" {
			return err
		}
		return r.owns(ctx, s, table, name)
	case "queue":
		return r.owns(ctx, s, table, incOfTicket(name))
	case "lock":
		return in.releases()
	case "instant":
		if have.role == roleWriter {
			// While the lock is its own nobody else records one.
			return cmp.Or(in.releases(), r.ownsValue(ctx, s, table, del.Key))
		}
	case "settle":
		return denied("a settle record is deleted by the operator")
	case "clock":
		return denied("nobody deletes the clock of a table")
	}
	return nil
}

// End of a ticket's name: `-<nonce>`, a UUID, which has hyphens itself.
var ticketNonce = regexp.MustCompile(`-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// incOfTicket: the incarnation in the name `<inc>-<nonce>` of a ticket; empty, and so nobody's, for any other name.
func incOfTicket(name string) string {
	if at := ticketNonce.FindStringIndex(name); at != nil {
		return name[:at[0]]
	}
	return ""
}

// register: an incarnation that another pod has registered is that pod's.
func (r *rules) register(ctx context.Context, s subject, table, inc string) error {
	owner, err := r.owner(ctx, table, inc)
	if err != nil {
		return err
	}
	if owner != "" && owner != s.uid {
		return denied("incarnation %s of table %s belongs to another pod", inc, table)
	}
	return nil
}

// owns says whether the pod has registered the incarnation.
func (r *rules) owns(ctx context.Context, s subject, table, inc string) error {
	owner, err := r.owner(ctx, table, inc)
	if err != nil {
		return err
	}
	if owner != s.uid {
		return denied("incarnation %s of table %s is not one of pod %s/%s", inc, table, s.namespace, s.pod)
	}
	return nil
}

func (r *rules) owner(ctx context.Context, table, inc string) (string, error) {
	key := [2]string{table, inc}
	r.mu.Lock()
	owner, ok := r.owners[key]
	r.mu.Unlock()
	if ok {
		return owner, nil
	}
	answers, err := r.read(ctx, &pb.RangeRequest{Key: r.contract.key(tables, table, "writer/"+inc)})
	if err != nil || len(answers[0].Kvs) == 0 {
		return "", err
	}
	told, err := registrationIn(answers[0].Kvs[0].Value)
	if err != nil || told.PodUID == "" {
		return "?", nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.owners) >= maxRights {
		r.owners = map[[2]string]string{}
	}
	r.owners[key] = told.PodUID
	return told.PodUID, nil
}

// ownsValue: what stands at the key now, if anything, was put by this pod.
func (r *rules) ownsValue(ctx context.Context, s subject, table string, key []byte) error {
	answers, err := r.read(ctx, &pb.RangeRequest{Key: key})
	if err != nil || len(answers[0].Kvs) == 0 {
		return err
	}
	return r.ownsThis(ctx, s, table, answers[0].Kvs[0])
}

// ownsThis: what was read was put by this pod.
func (r *rules) ownsThis(ctx context.Context, s subject, table string, read *mvccpb.KeyValue) error {
	told, err := registrationIn(read.Value)
	if err != nil {
		return denied("%q was not put by pod %s/%s", read.Key, s.namespace, s.pod)
	}
	return r.owns(ctx, s, table, told.Inc)
}

// releases says whether the branch is executed only while the pod has the lock, whose create revision it
// must compare. One that is older than that of the lock that stands never comes again: etcd will say so. A
// release whose answer was lost is said once more, when somebody else may have the lock.
func (r *rules) releases(ctx context.Context, s subject, table string, in branch) error {
	key := r.contract.key(tables, table, "lock")
	created, ok := in.created(key)
	if !ok {
		return denied("table %s: who deletes a lock, or an instant of its own, compares the lock's create revision", table)
	}
	answers, err := r.read(ctx, &pb.RangeRequest{Key: key})
	if err != nil {
		return err
	}
	gone := answers[0].Header.GetRevision() + 1 // no lock stands: one that comes is younger than what was read
	if len(answers[0].Kvs) > 0 {
		gone = answers[0].Kvs[0].CreateRevision
	}
	switch {
	case created <= 0, created > gone, created == gone && len(answers[0].Kvs) == 0:
		// 0 is the comparison for no lock; a larger one may be that of another one's, later.
		return denied("no lock of table %s has the create revision %d", table, created)
	case created < gone:
		return nil
	}
	return r.ownsThis(ctx, s, table, answers[0].Kvs[0])
}

// ---- leases: the upper bits of an id are the pod's, so that each replica recognizes it

// leaseBits are the lower bits, which number a pod's leases: 36 bits are the pod's. Nobody chooses the
// uid of a pod, so to come upon those of another one takes some 10^10 pods.
const leaseBits = 27

func leaseOf(s subject, number int64) int64 {
	hash := sha256.Sum256([]byte(s.namespace + "/" + s.pod + "/" + s.uid))
	space := int64(binary.BigEndian.Uint64(hash[:])>>(leaseBits+1)) | 1
	return space<<leaseBits | number&(1<<leaseBits-1)
}

func ownLease(s subject, id int64) bool { return id>>leaseBits == leaseOf(s, 0)>>leaseBits }

func clip(key []byte) []byte {
	if len(key) > 200 {
		return append(bytes.Clone(key[:200]), "..."...)
	}
	return key
}

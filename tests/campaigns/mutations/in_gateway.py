"""Rules of the gateway before etcd: whose token it is, and which keys are its own
(docs/design/identities.md).

Its harness builds the program from the checkout that is tested.
"""

from __future__ import annotations

from tests.campaigns.mutations.mutation import Edit, mutation

_TESTS = "tests/tiers/component/operator/test_identities.py"
_WITHDRAWN = "tests/tiers/component/operator/test_withdrawn.py"
_GO = "tests/tiers/component/operator/test_gateway_rules.py::test_go"


def g(file: str, old: str, new: str = "") -> Edit:
    return Edit(f"gateway/{file}.go", old, new)


IDENTITIES = (
    mutation(
        "a-pod-that-is-gone-is-waited-for",
        "F342",
        "the restart of etcd's pod ends all writers",
        g("main", "			grpc.WithConnectParams(reconnecting),\n"),
        _GO,
    ),
    mutation(
        "an-address-goes-with-its-pod",
        "F342",
        "what a DNS server remembers of a pod that was replaced ends all writers",
        Edit(
            "charts/hudi-operator/templates/_names.tpl",
            '  publishNotReadyAddresses: true\n  selector:\n    {{- include "hudi-operator.selector" (list $root',
            "  clusterIP: None\n"
            '  publishNotReadyAddresses: true\n  selector:\n    {{- include "hudi-operator.selector" (list $root',
        ),
        "tests/tiers/component/crds/test_chart.py::test_the_address_of_each_endpoint_stays_when_its_pod_is_replaced",
    ),
    mutation(
        "what-a-pod-was-is-remembered",
        "F350",
        "a pod that is settled writes for as long as a gateway remembers what it was",
        g(
            "rules",
            "Result: pb.Compare_EQUAL, TargetUnion: &pb.Compare_ModRevision{ModRevision: have.revision}",
            "Result: pb.Compare_GREATER, TargetUnion: &pb.Compare_ModRevision{ModRevision: -1}",
        ),
        f"{_WITHDRAWN}::test_until_when_a_pod_may_write_what",
    ),
    mutation(
        "a-registration-begets-the-next-one",
        "F351",
        "a pod keeps its role without an admission, by one registration after another",
        g("rules", "return have.admitted || bytes.Equal(have.by, put.Key)", 'return have.role != ""'),
        f"{_WITHDRAWN}::test_nobody_registers_when_the_admission_is_gone",
    ),
    mutation(
        "any-table-is-ones-own",
        "F110",
        "a pod that is admitted to some table writes the keys of any",
        g(
            "rules",
            '	if made.role != "" {\n		made.reads',
            "	r.mu.Lock()\n"
            "	for _, other := range r.rights[s.key()] {\n"
            "		made = other\n"
            "	}\n"
            "	r.mu.Unlock()\n"
            '	if made.role != "" {\n		made.reads',
        ),
        f"{_TESTS}::test_no_key_of_another_table",
    ),
    mutation(
        "writers-may-settle",
        "F110 I7",
        "a driver puts the settle record of a living writer",
        g("rules", "	case !r.contract.writers[kind][have.role]:", "	case !r.contract.writers[kind][roleAgent]:"),
        f"{_TESTS}::test_a_role_puts_the_keys_that_the_contract_gives_it",
    ),
    mutation(
        "a-registration-names-any-pod",
        "F111",
        "a driver registers as the pod of somebody else, which the operator then deletes",
        g("rules", "value.Role != have.role || !value.of(s) {", "value.Role != have.role {"),
        f"{_TESTS}::test_a_registration_names_the_pod_that_made_it",
    ),
    mutation(
        "a-heartbeat-is-anybodys",
        "F110",
        "a pod keeps the incarnation of another one alive",
        g("rules", "	if owner != s.uid {\n", '	if owner == "" {\n'),
        f"{_TESTS}::test_whose_heartbeat_whose_place_whose_lock_whose_instant",
    ),
    mutation(
        "leases-are-everybodys",
        "F110",
        "a pod revokes the lease of another one",
        g("rules", "return id>>leaseBits == leaseOf(s, 0)>>leaseBits }", "return id != 0 }"),
        f"{_TESTS}::test_leases_are_the_pods_own",
    ),
    mutation(
        "only-the-branch-that-runs-is-checked",
        "F110",
        "what stands in the branch for the other outcome is let through",
        g("rules", "return table, r.branch(ctx, s, txn.Failure, nil)", "return table, nil"),
        f"{_TESTS}::test_no_key_of_another_table",
        f"{_TESTS}::test_a_role_puts_the_keys_that_the_contract_gives_it",
    ),
    mutation(
        "tokens-for-others-are-accepted",
        "F110",
        "a token for the API server, which each pod may have, opens etcd",
        g("token", "AnyAudience: jwt.Audience{v.audience}, ", ""),
        f"{_TESTS}::test_without_a_good_token_nothing",
    ),
    mutation(
        "a-range-may-leave-the-table",
        "F110",
        "a range that begins in the own table and ends behind it is read",
        g("contract", "bytes.Compare(end, prefixEnd(prefix)) <= 0", "true"),
        f"{_TESTS}::test_a_range_is_of_one_table",
    ),
    mutation(
        "similar-names-are-the-same",
        "F180",
        "a registration that says `podUID` of somebody else and `PODUID` of its own passes",
        g(
            "values",
            "	return told, nil\n}\n\n// plain",
            "	return told, json.Unmarshal(value, &told)\n}\n\n// plain",
        ),
        _GO,
    ),
    mutation(
        "the-last-of-two-names-counts",
        "F180",
        "of a name that stands twice in a value each reader takes the one that it likes",
        g("values", "			if names[len(names)-1][text] {", "			if false {"),
        _GO,
    ),
    mutation(
        "a-lock-that-stands-is-replaced",
        "I1 F184",
        "a pod puts its lock over that of another pod of the table",
        g("rules", "err != nil || in.absent(put.Key) {", "err != nil || true {"),
        _GO,
    ),
    mutation(
        "assignments-are-compared",
        "F184",
        "a pod of another namespace asks by comparisons what an agent serves",
        g("rules", "if _, ok := r.agent(compare.Key); ok {", "if _, ok := r.agent(compare.Key); false && ok {"),
        _GO,
    ),
    mutation(
        "any-pod-fills-etcd-with-leases",
        "F181",
        "leases are not counted",
        g("limits", "len(use.leases) >= limit {", "limit < 0 {"),
        _GO,
    ),
    mutation(
        "a-count-ends-with-its-request",
        "F183",
        "a pod that cuts its request short is never found to have filled its table",
        g("limits", "context.WithoutCancel(ctx)", "ctx"),
        _GO,
    ),
    mutation(
        "a-tables-bytes-are-not-bounded",
        "F183",
        "20,000 keys of 64 KiB fill etcd for everybody",
        g("limits", "if use.size.bytes > l.storedBytes {", "if false {"),
        _GO,
    ),
    mutation(
        "as-many-operations-as-one-likes",
        "F183",
        "one request costs thousands of looks at etcd",
        g("rules", "n > maxOperations {", "n < 0 {"),
        _GO,
    ),
    mutation(
        "a-pods-deadline-is-etcds-failure",
        "F183",
        "a pod with short deadlines sends the requests of all others to a member that is down",
        g("proxy", " && time.Since(sent) >= patience:", ":"),
        _GO,
    ),
    mutation(
        "the-name-is-what-tls-sends",
        "F182",
        "an endpoint that is an IP address may show any certificate of the authority",
        g("main", "DNSName: host,", "DNSName: state.ServerName,"),
        _GO,
    ),
    mutation(
        "a-token-is-good-for-ever",
        "F110",
        "a token that was good once is not asked for its end again",
        g("token", "if known && time.Now().Before(found.expires) {", "if known {"),
        _GO,
    ),
    mutation(
        "a-withdrawn-key-still-signs",
        "F110",
        "tokens that were seen stay good when the API server has withdrawn their key",
        g("token", "time.Now(), map[[32]byte]subject{}\n", "time.Now(), v.known\n"),
        _GO,
    ),
    mutation(
        "any-issuer",
        "F110",
        "a token of another issuer with a key of that id is accepted",
        g("token", "Issuer: issuer, ", ""),
        _GO,
    ),
    mutation(
        "connections-are-not-counted",
        "F320",
        "one pod opens any number of connections, and the gateway ends",
        g("connections", "case own >= l.ofAddress:", "case false:"),
        _GO,
    ),
    mutation(
        "whoever-comes-late-gets-no-connection",
        "F320",
        "who opens many connections keeps all others out",
        g("connections", "if has <= own+1 {", "if true {"),
        _GO,
    ),
    mutation(
        "a-connection-that-ended-keeps-its-place",
        "F320",
        "places of connections are never given back: after a while nobody gets in",
        g("connections", "\tif at < 0 {\n", "\tif true {\n"),
        _GO,
    ),
    mutation(
        "answers-are-not-reserved",
        "F201",
        "any number of large answers is held at once, and the gateway ends",
        g("memory", "if !own && l.held+bytes <= l.memoryBytes {", "if true {"),
        _GO,
    ),
    mutation(
        "a-table-has-all-the-memory",
        "F201",
        "answers to one table take the memory that those to others need",
        g("memory", "own := use.held+bytes > l.answerBytes", "own := false"),
        _GO,
    ),
    mutation(
        "an-answer-that-is-not-read-costs-nothing",
        "F201",
        "a client asks and does not read: what it was sent counts no more, and is held",
        g("memory", "	if !ok || !c.add(h) {", "	if !ok || true {"),
        _GO,
    ),
    mutation(
        "a-connection-that-ended-holds-memory",
        "F201",
        "answers on a connection that broke count until the gateway ends: nobody reads any more",
        g("memory", "		if _, ended := s.(*stats.ConnEnd); ended {", "		if false {"),
        _GO,
    ),
    mutation(
        "an-answer-is-as-large-as-it-likes",
        "F201",
        "an answer takes more memory than was reserved for it",
        g("proxy", "grpc.MaxCallRecvMsgSize(bytes))", "grpc.MaxCallRecvMsgSize(64<<20+bytes))"),
        _GO,
    ),
    mutation(
        "as-many-ranges-as-one-likes",
        "F201",
        "one transaction reads a whole table 256 times",
        g("rules", "n > maxRanges {", "n < 0 {"),
        _GO,
    ),
    mutation(
        "ranges-of-one-branch",
        "F201",
        "ranges in a transaction in the transaction are not counted",
        g("rules", "inner != nil && depth < maxDepth {", "inner != nil && depth < 0 {"),
        _GO,
    ),
    mutation(
        "a-watch-of-all-history",
        "F202",
        "a pod's watches begin at the oldest revision, and etcd reads its history for each",
        g("rules", "create.StartRevision != 0 || create.PrevKv {", "create.PrevKv {"),
        _GO,
    ),
    mutation(
        "deletions-are-free",
        "F202",
        "deletions grow etcd's history and are not counted",
        g("proxy", "del := op.GetRequestDeleteRange(); del != nil {", "del := op.GetRequestDeleteRange(); false {"),
        _GO,
    ),
    mutation(
        "what-a-lease-deletes-is-free",
        "F202",
        "keys that go with their lease grow etcd's history and are not counted",
        g("proxy", "			if put.Lease != 0 {", "			if false {"),
        _GO,
    ),
    mutation(
        "streams-of-many-pods",
        "F202",
        "a table with many pods opens streams without end",
        g("limits", "limit := l.number(streamsOfTable); owner.open >= limit {", "limit := 0; owner.open < limit {"),
        _GO,
    ),
    mutation(
        "streams-as-fast-as-one-likes",
        "F202",
        "a pod opens and closes streams in a loop",
        g("limits", "	if !owner.streams.Allow() {", "	if false {"),
        _GO,
    ),
    mutation(
        "leases-as-fast-as-one-likes",
        "F202",
        "pods of a table call for leases in a loop",
        g("limits", "use := l.of(p.owner); !use.leaseCalls.Allow() {", "use := l.of(p.owner); use == nil {"),
        _GO,
    ),
    mutation(
        "leases-of-many-pods",
        "F202",
        "a table with many pods fills etcd with leases",
        g("limits", "			limit = l.number(leasesOfTable)", "			limit = 1 << 30"),
        _GO,
    ),
    mutation(
        "an-id-for-a-lease-that-is-refused",
        "F202",
        "the id of a lease is made before its limits are asked",
        g("limits", "	now := time.Now()\n	for _, who", "	now, _ := time.Now(), id()\n	for _, who"),
        _GO,
    ),
    mutation(
        "what-a-watch-tells-is-free",
        "F202",
        "a pod reads by watches what it may not read by requests",
        g(
            "limits",
            "		if use := l.of(who); use.read.Tokens() < 0 {",
            "		if use := l.of(who); use == nil {",
        ),
        _GO,
    ),
    mutation(
        "a-table-reads-as-its-pods-do",
        "F202",
        "a table reads as much as it has pods",
        g("limits", "		read := l.of(who).read\n", "		read := l.of(min(who, p.pod)).read\n"),
        _GO,
    ),
    mutation(
        "one-table-pays-for-all",
        "F202",
        "the heartbeats of an agent of many tables count as those of one",
        g("proxy", "g.payer(s, g.rules.oneOf(s))", 'g.payer(s, "")'),
        _GO,
    ),
    mutation(
        "a-stranger-pays-as-the-table",
        "F202",
        "a pod that has no right at a table uses up the limits of that table",
        g("proxy", 'if table != "" && g.rules.known(s, table) {', 'if table != "" {'),
        _GO,
    ),
    mutation(
        "a-token-for-days",
        "F203",
        "somebody who may ask for tokens has one that outlives the pod by days",
        g("token", "lives > maxTokenLife {", "lives < 0 {"),
        _GO,
    ),
    mutation(
        "each-replica-grants-it-all",
        "F204",
        "a table may do at each gateway what it may do at all of them",
        g("limits", "total/float64(l.replicas))", "total)"),
        _GO,
    ),
    mutation(
        "a-gateway-is-alone",
        "F204",
        "the chart does not tell the gateways how many they are",
        Edit("charts/hudi-operator/templates/gateway.yaml", "        - -replicas={{ .Values.gateway.replicas }}\n", ""),
        "tests/tiers/component/crds/test_chart.py::test_a_gateway_knows_how_many_there_are",
    ),
    mutation(
        "an-open-etcd-will-do",
        "F185",
        "tables are served by an etcd without authentication",
        Edit(
            "operator/hudi_operator/adapters/etcd_fitness.py",
            "            if not self._allowed:",
            "            if False:",
        ),
        "tests/tiers/component/operator/test_etcd_fitness.py::test_etcd_is_asked_for_its_authentication",
    ),
    mutation(
        "an-old-etcd-that-is-open-will-do",
        "F343",
        "where a missing authentication is accepted, nobody hears that etcd is too old",
        Edit(
            "operator/hudi_operator/adapters/etcd_fitness.py",
            "        if old:  # F343",
            "        if old and not accepted:  # F343",
        ),
        "tests/tiers/component/operator/test_etcd_fitness.py::test_an_old_version_is_told_whatever_else_is_accepted",
    ),
    mutation(
        "a-pod-by-its-name",
        "F186",
        "a pod of an attempt's name is the attempt, whoever made it",
        (
            Edit(
                "operator/hudi_operator/control/executor.py",
                'return "" if _is(found, pod) else _foreign("Pod", meta["namespace"], meta["name"])',
                'return ""',
            ),
            Edit(
                "operator/hudi_operator/control/executor.py",
                "if found is not None and not _is(found, action.manifest):",
                "if False:",
            ),
        ),
        "tests/tiers/component/operator/test_lookalikes.py::test_a_pod_of_an_attempts_name_is_not_the_attempt",
    ),
    mutation(
        "a-pod-of-any-namespace",
        "F186",
        "the operator stops the pod that a registration names, in any namespace",
        (
            Edit(
                "operator/hudi_operator/control/observe.py",
                "v.namespace == namespace and v.pod",
                "v.namespace and v.pod",
            ),
            Edit("operator/hudi_operator/control/executor.py", "if action.namespace != context.key[0]:", "if False:"),
        ),
        "tests/tiers/component/operator/test_lookalikes.py::test_a_registration_of_another_pod_stops_nobody",
    ),
    mutation(
        "a-key-of-anybodys",
        "F187",
        "a key that exists is the pod's own",
        Edit(
            "operator/hudi_operator/control/executor.py",
            "owners is None or pod_uid in owners",
            "True",
        ),
        "tests/tiers/component/operator/test_lookalikes.py::test_a_key_that_somebody_else_has_made_is_not_used",
    ),
    mutation(
        "metrics-are-everybodys",
        "F361",
        "whoever reaches the gateway's port reads its metrics and etcd's",
        g("metrics", "Handler: a.guarded(handler)", "Handler: handler"),
        "tests/tiers/component/operator/test_dashboards.py::test_every_panel_shows_something",
    ),
    mutation(
        "a-token-that-cannot-be-read-opens-metrics",
        "F361",
        "an empty file with the token is no token: everybody has it",
        g("metrics", 'if err != nil || token == "" {', "if err != nil {"),
        _GO,
    ),
    mutation(
        "any-token-will-do",
        "F361",
        "any token that has been sent is the right one",
        g("metrics", "subtle.ConstantTimeCompare(one[:], other[:])", "subtle.ConstantTimeCompare(one[:0], other[:0])"),
        _GO,
    ),
    mutation(
        "a-reader-without-a-certificate",
        "F361",
        "a reader of metrics shows no certificate although an authority is configured",
        g("metrics", "tls.RequireAndVerifyClientCert", "tls.VerifyClientCertIfGiven"),
        _GO,
    ),
    mutation(
        "probes-tell-metrics",
        "F361",
        "the port of the kubelet's probes tells the metrics, without the token",
        g(
            "main",
            '	mux.HandleFunc("/livez", func(http.ResponseWriter, *http.Request) {})\n',
            '	mux.HandleFunc("/livez", func(http.ResponseWriter, *http.Request) {})\n'
            '	mux.Handle("/metrics", &g.counts)\n',
        ),
        _GO,
    ),
    mutation(
        "any-path-of-etcd-is-asked",
        "F361",
        "more paths than that of the metrics lead to etcd",
        g("metrics", '"GET /etcd/{member}/metrics"', '"GET /etcd/{member}/{path...}"'),
        _GO,
    ),
    mutation(
        "etcds-own-port-is-opened",
        "F361",
        "whoever may read metrics reaches etcd's own port, which asks for no certificate",
        Edit(
            "charts/hudi-operator/templates/networkpolicy.yaml",
            "  # Traffic between members.\n",
            "  - ports: [{port: 2381, protocol: TCP}]\n  # Traffic between members.\n",
        ),
        "tests/tiers/component/crds/test_chart.py::test_network_policies_of_every_pod_of_the_release",
    ),
    mutation(
        "the-chart-forgets-the-gateways-token",
        "F361",
        "with metrics.tokenSecret the operator asks for a token, and the gateway does not",
        Edit(
            "charts/hudi-operator/templates/gateway.yaml",
            "        - -metrics-token-file=/etc/hudi-gateway-metrics-token/token\n",
            "",
        ),
        "tests/tiers/component/crds/test_chart.py::test_the_gateways_metrics_are_behind_the_same",
    ),
    mutation(
        "one-transaction-writes-to-two-tables",
        "F350",
        "a transaction writes to a table for which its right is not compared",
        g("rules", 'if table != "" && at != table {', "if false {"),
        _GO,
    ),
)

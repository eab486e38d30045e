"""Mutations of the operator's transactions and watch, and of what it gives to pods and to Hudi."""

from __future__ import annotations

from tests.campaigns.mutations.in_settling import ADAPTER, MANIFESTS, PLAN, o
from tests.campaigns.mutations.mutation import mutation

STORE = (
    mutation(
        "fence-leaves-the-admission",
        "I2 F23",
        "a fenced attempt may register once more",
        o(
            "adapters/etcd",
            "        if attempt:\n            success.append(rpc.delete(",
            "        if not attempt:\n            success.append(rpc.delete(",
        ),
        f"{ADAPTER}::test_a_fence_is_permanent_and_takes_heartbeat_and_admission_with_it",
    ),
    mutation(
        "fence-leaves-the-heartbeat",
        "I2",
        "a fenced incarnation keeps its heartbeat, and an acquire that was sent before may succeed",
        o("adapters/etcd", "            rpc.delete(alive),\n"),
        f"{ADAPTER}::test_a_fence_is_permanent_and_takes_heartbeat_and_admission_with_it",
    ),
    mutation(
        "fence-without-a-look",
        "F29",
        "the fence for a lost heartbeat does not compare that it is lost",
        o("adapters/etcd", "        if if_not_alive:\n", "        if not inc:\n"),
        f"{ADAPTER}::test_a_fence_is_permanent_and_takes_heartbeat_and_admission_with_it",
    ),
    mutation(
        "fence-again",
        "I6",
        "fencing once more sets a settle record back",
        o("adapters/etcd", "compare = [rpc.version_is(fence, 0)]", "compare: list[Message] = []"),
        f"{ADAPTER}::test_a_fence_is_permanent_and_takes_heartbeat_and_admission_with_it",
    ),
    mutation(
        "unlock-the-living",
        "I1 I2",
        "the lock of an incarnation that is not fenced is deleted",
        o(
            "adapters/etcd",
            "compare = [rpc.created_at(key, create_revision), rpc.exists(self.keys(table_id).of(Kind.FENCE, inc))]",
            "compare = [rpc.created_at(key, create_revision)]",
        ),
        f"{ADAPTER}::test_only_the_lock_of_a_fenced_incarnation_is_deleted",
    ),
    mutation(
        "unlock-without-a-read",
        "I1",
        "the owner of the lock is not read before it is deleted",
        o(
            "adapters/etcd",
            (
                "        if not found or found[0].create_revision != create_revision or found[0].read(Lock).inc != "
                "inc:\n"
                "            return False\n"
            ),
        ),
        f"{ADAPTER}::test_only_the_lock_of_a_fenced_incarnation_is_deleted",
    ),
    mutation(
        "unlock-whatever-was-read",
        "I1",
        "the lock is deleted without comparing that it is still the one that was read",
        o(
            "adapters/etcd",
            "compare = [rpc.created_at(key, create_revision), rpc.exists(self.keys(table_id).of(Kind.FENCE, inc))]",
            "compare = [rpc.exists(self.keys(table_id).of(Kind.FENCE, inc))]",
        ),
        f"{ADAPTER}::test_a_lock_that_changes_hands_after_it_was_read_is_not_deleted",
    ),
    mutation(
        "records-are-overwritten",
        "I6",
        "a settle record is changed without comparing that it is still the one that was read",
        o(
            "adapters/etcd",
            "table_id,\n            [rpc.mod_is(key, expected_mod)],\n            operations,",
            "table_id,\n            [],\n            operations,",
        ),
        f"{ADAPTER}::test_a_record_is_changed_only_as_it_was_read",
    ),
    mutation(
        "gates-are-overwritten",
        "F8",
        "the gate is changed without comparing that it is still the one that was read",
        o("adapters/etcd", "                rpc.mod_is(key, expected_mod),\n                *(", "                *("),
        f"{ADAPTER}::test_a_gate_is_changed_only_as_it_was_read",
    ),
    mutation(
        "instants-go-unseen",
        "I4 I7",
        "records of instants are deleted without comparing that they are still those that were read",
        o(
            "adapters/etcd",
            "return [rpc.mod_is(key, revision) for key, revision in keys], [rpc.delete(key) for key, _ in keys]",
            "return [], [rpc.delete(key) for key, _ in keys]",
        ),
        f"{ADAPTER}::test_settled_removes_what_belonged_to_it_however_much_it_is",
    ),
    mutation(
        "collected-while-registered",
        "I2 F30",
        "record and fence are deleted without comparing that nobody is registered",
        o(
            "adapters/etcd",
            "compare = [rpc.mod_is(key, expected_mod), rpc.version_is(self.keys(table_id).of(Kind.WRITER, inc), 0)]",
            "compare = [rpc.mod_is(key, expected_mod)]",
        ),
        f"{ADAPTER}::test_a_record_is_collected_with_its_fence_and_only_as_it_was_read",
    ),
    mutation(
        "a-write-without-answer-has-failed",
        "I4 I11",
        "a transaction without an answer counts as not executed",
        o("adapters/etcd_rpc", "    if writes and code not in _DEFINITE:\n        return OutcomeUnknown(message)\n"),
        (
            "tests/tiers/unit/adapters/"
            "test_errors_and_metrics.py::test_a_write_that_may_have_happened_is_told_from_one_that_has_not"
        ),
    ),
    mutation(
        "a-watch-goes-on-with-now",
        "I11",
        "a watch that broke goes on with what happens now, and what happened meanwhile is missed",
        o(
            "adapters/etcd_watch",
            "            self._next_revision = changes[-1].revision + 1\n",
            "            self._next_revision = 0\n",
        ),
        f"{ADAPTER}::test_a_watch_goes_on_where_it_was_over_a_restart_and_looks_at_everything_after_a_compaction",
    ),
    mutation(
        "pods-may-lift-fences",
        "I2",
        "the gateway, through which pods come, may write what the operator decides",
        o("etcd_auth", "GATEWAY: [(control, False), (tables, True)],", "GATEWAY: [(control, True), (tables, True)],"),
        (
            "tests/tiers/component/operator/"
            "test_etcd_access.py::test_a_pod_reads_what_the_operator_decides_and_cannot_change_it"
        ),
    ),
)

PODS = (
    mutation(
        "containers-restart-in-place",
        "I2 F22",
        "a container that ends is started again in its pod",
        o("manifests/pods", '"restartPolicy": "Never",', '"restartPolicy": "OnFailure",'),
        f"{MANIFESTS}::test_every_pod_is_evidence_never_restarts_and_has_its_own_network",
    ),
    mutation(
        "pods-on-the-hosts-network",
        "I1 F7",
        "pods use the network of their host: a dead process's request goes on being sent",
        o("manifests/pods", '"restartPolicy": "Never",', '"restartPolicy": "Never",\n            "hostNetwork": True,'),
        f"{MANIFESTS}::test_every_pod_is_evidence_never_restarts_and_has_its_own_network",
    ),
    mutation(
        "pods-without-evidence",
        "F13 F14",
        "pods do not carry the finalizer that keeps their last status",
        o("manifests/pods", '"finalizers": [naming.EVIDENCE_FINALIZER],', '"finalizers": [],'),
        f"{MANIFESTS}::test_every_pod_is_evidence_never_restarts_and_has_its_own_network",
    ),
    mutation(
        "a-tables-options-win",
        "I1 I7 F2",
        "options of a table replace what the operator owns",
        o(
            "manifests/hudi_conf",
            "    options.update(table.hudi_options)\n    options.update(common_defaults())\n",
            "    options.update(common_defaults())\n    options.update(table.hudi_options)\n",
        ),
        f"{MANIFESTS}::test_a_tables_own_options_cannot_replace_what_the_operator_owns",
    ),
    mutation(
        "writers-tend-the-table",
        "I12 F2",
        "writers run table services of their own",
        o(
            "manifests/hudi_conf",
            '"hoodie.table.services.enabled": "false",',
            '"hoodie.table.services.enabled": "true",',
        ),
        f"{MANIFESTS}::test_a_tables_own_options_cannot_replace_what_the_operator_owns",
    ),
    mutation(
        "writers-roll-back-by-themselves",
        "I7 F2",
        "writers roll back what they take for dead before they begin",
        o(
            "manifests/hudi_conf",
            '"hoodie.clean.failed.writes.policy": "LAZY",',
            '"hoodie.clean.failed.writes.policy": "EAGER",',
        ),
        f"{MANIFESTS}::test_a_tables_own_options_cannot_replace_what_the_operator_owns",
    ),
    mutation(
        "anybody-may-upgrade",
        "F8",
        "a writer may upgrade the table",
        o("hudi_contract/options", '    Rule("hoodie.write.auto.upgrade", _TABLE),\n'),
        "tests/tiers/unit/api/test_options.py::test_owned_hudi_options",
    ),
    mutation(
        "what-is-not-forbidden-is-allowed",
        "F2",
        "an option that is on no list may be set: a new version of Hudi opens a hole",
        o("api/options", "if not all(_matches(form, allowed) for form in forms):", "if not forms:"),
        "tests/tiers/unit/api/test_options.py::test_what_is_on_no_list_is_refused_until_an_administrator_adds_it",
    ),
    mutation(
        "another-file-system-by-setting",
        "I3",
        "a Spark setting takes the storage wrapper out of the way",
        (
            o("hudi_contract/allowed_options", '    Rule("spark.hadoop.fs.*", _GUARD),\n'),
            o("hudi_contract/allowed_options", '    Rule("spark.hadoop.*", _GUARD),\n'),
        ),
        "tests/tiers/unit/api/test_options.py::test_owned_spark_settings",
    ),
    mutation(
        "spellings-are-tables",
        "F10",
        "two spellings of one path are two tables",
        o("hudi_contract/naming", '    if scheme in _S3_ALIASES:\n        scheme = "s3a"\n'),
        "tests/tiers/unit/contract/test_naming.py::test_canonical_path",
    ),
    mutation(
        "any-path-will-do",
        "F10",
        "a table may lie at any path",
        o(
            "api/paths",
            "    if scheme not in schemes:\n",
            "    if not schemes:\n",
        ),
        f"{PLAN}::test_paths",
    ),
)

"""Mutations of changes beside running writers and agents: the settings in force until a change is
made, its waits, and the reasons that make it void.
"""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import RUNTIME, SERVICES, a
from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.in_settling import o
from tests.campaigns.mutations.mutation import mutation

PLAN = "tests/tiers/unit/plan"
METADATA = f"{RUNTIME}/agent/test_metadata_table.py"
SAVEPOINTS = f"{RUNTIME}/agent/test_savepoints.py"

CHANGES = (
    mutation(
        "the-new-metadata-table-before-the-change",
        "F434",
        "services have the options of a metadata table whose change has only begun",
        a(
            "agent/metadata_in_force",
            "return record.nonce == wanted and record.result is Result.COMPLETED",
            "return record.nonce == wanted",
        ),
        f"{METADATA}::test_until_the_change_is_done_the_table_is_served_as_it_is",
    ),
    mutation(
        "rolled-back-beside-the-change",
        "F434",
        "a rollback that began with the former options makes the metadata table again that was deleted",
        a(
            "agent/tasks",
            "        if not self._metadata_table.idle:\n            return False\n",
        ),
        f"{METADATA}::test_nothing_is_rolled_back_beside_the_change",
    ),
    mutation(
        "a-metadata-table-goes-and-nobody-knows",
        "F434",
        "a rollback does without the metadata table, and a change that is taken back leaves it as it is",
        a("agent/context", "        if done.nonce != self.metadata_table:\n", "        if done.nonce is None:\n"),
        f"{METADATA}::test_the_last_rollbacks_do_without_a_metadata_table_that_is_to_go",
    ),
    mutation(
        "the-last-rollbacks-beside-a-writer",
        "F434",
        "a rollback does without the metadata table although a writer is registered that keeps it up",
        a("settle/settle", "inc not in records.settles)", "inc in ())"),
        "tests/tiers/unit/runtime/settle/test_settler.py::test_a_rollback_without_any_writer_is_told",
    ),
    mutation(
        "the-drain-of-yesterday",
        "F437",
        "a busy agent drains as long as its former assignment says",
        a("settle/settle", "max(self.drain, self.gate_drain())", "self.drain"),
        "tests/tiers/unit/runtime/settle/test_settler.py::test_the_drain_of_the_gate_counts_from_now_on",
    ),
    mutation(
        "services-behind-a-change",
        "F434",
        "a service is begun behind the closed gate, and the change waits for it",
        a("services/services", "                if _changes(requests, self._gate()):\n                    return\n"),
        f"{SERVICES}::test_nothing_new_is_begun_behind_a_gate_that_is_closed_for_a_change",
    ),
    mutation(
        "a-disabled-service-never-fails",
        "F531 availability",
        "the pending plan of a disabled service fails, and ServicesHealthy is True",
        o("plan/agent/table_services", "*sorted(_pending(view) - set(enabled))", ""),
        "tests/tiers/unit/plan/agent/test_service_requests.py::test_a_plan_that_fails_shows_when_its_service_is_disabled",
    ),
    mutation(
        "the-failing-service-is-not-named",
        "F434",
        "Ready says that a change waits, and not for which service that fails",
        o("plan/table_status", "(message, table_services.awaited(view))", "(message,)"),
        f"{PLAN}/requests/test_metadata_requests.py::test_a_service_that_fails_for_good_is_named",
    ),
    mutation(
        "a-savepoint-behind-another-gate",
        "F435 I8",
        "a savepoint is completed although its gate was open since it was begun",
        j("InstantProtocol", "        txn = gate == 0 ? txn : txn.modRevision(keys.gate(), gate); // F435\n"),
        t("TimelineGuardTest.aSavepointIsCompletedBehindTheGateThatItWasBegunBehind"),
    ),
    mutation(
        "another-gate-is-a-failure-of-the-savepoint",
        "F435",
        "a savepoint whose gate was put meanwhile is gone on with, and fails for good",
        a(
            "agent/savepoints",
            "            if self._begun.get(instant) == self.context.gate_revision():\n",
            "            if True:\n",
        ),
        f"{SAVEPOINTS}::test_one_whose_gate_was_put_meanwhile_is_begun_anew",
    ),
    mutation(
        "a-withdrawn-savepoint-stays-pending",
        "F435",
        "a savepoint that failed and was withdrawn stays pending, and archival waits for it",
        a("agent/savepoints", "if self._begun and not any(", "if not self._begun and not any("),
        f"{SAVEPOINTS}::test_one_that_failed_and_was_withdrawn_leaves_nothing_pending",
    ),
    mutation(
        "a-savepoint-of-before-the-gate",
        "F458 I8",
        "a savepoint keeps the commit that was chosen before its gate was opened once more",
        a(
            "agent/savepoints",
            "                if self.context.gate_revision() != gate:\n",
            "                if not gate:\n",
        ),
        f"{SAVEPOINTS}::test_one_whose_gate_was_put_before_it_is_begun_is_chosen_anew",
    ),
    mutation(
        "an-agent-may-hang-behind-the-closed-gate",
        "availability F457",
        "an agent that hangs with the lock keeps a change of the mode waiting for ever",
        o("plan/gate/asked", "    return not gate.adopted(view) or requests or", "    return True or requests or"),
        f"{PLAN}/test_simulated_requests.py"
        "::test_an_agent_that_hangs_with_the_lock_delays_a_change_of_the_mode_and_no_more",
        f"{PLAN}/test_rules.py::test_who_creates_the_table_may_hold_its_lock",
    ),
    mutation(
        "a-restore-takes-too-long",
        "availability F457",
        "an agent that does what it was asked to behind the closed gate is fenced for holding the lock",
        o("plan/gate/asked", "requests or restores.recorded(view) or", "False or"),
        f"{PLAN}/test_rules.py::test_who_creates_the_table_may_hold_its_lock",
    ),
    mutation(
        "nobody-says-who-has-the-lock",
        "availability F457",
        "Ready speaks of running writers while a change waits for the lock of the agent",
        o("plan/table_status", "    owner = gate.awaits_lock(r.view)\n", '    owner = ""\n'),
        f"{PLAN}/test_simulated_requests.py"
        "::test_an_agent_that_hangs_with_the_lock_delays_a_change_of_the_mode_and_no_more",
    ),
    mutation(
        "the-mode-changes-under-a-lock",
        "F436 I1",
        "the fencing mode changes while an agent holds a lock with a lease",
        o("plan/gate/gate", "unlocked=changes_mode)", "unlocked=False)"),
        f"{PLAN}/test_simulated_requests.py::test_the_mode_changes_only_while_nobody_holds_the_lock",
    ),
    mutation(
        "the-lock-is-not-compared-with-the-mode",
        "F436 I1",
        "the put of a gate with another mode does not compare that nobody holds the lock",
        o("adapters/etcd", "if unlocked else []", "if unlocked is None else []"),
        "tests/tiers/component/operator/test_etcd_adapter.py::test_a_gate_is_put_only_while_nobody_holds_the_lock",
    ),
    mutation(
        "the-agent-has-the-durations-of-the-spec",
        "F437",
        "an agent has durations that the gate does not have yet",
        o(
            "plan/agent/agents",
            "assignment(view.table, view.now_ms, durations(view))",
            "assignment(view.table, view.now_ms)",
        ),
        f"{PLAN}/agent/test_agents.py::test_the_agent_has_the_durations_of_the_gate",
    ),
    mutation(
        "the-agent-drains-shorter",
        "F437",
        "an agent drains for the gate's time although the spec already says more",
        o("plan/agent/agents", "return stored.but(drain_seconds=int(view.drain_seconds))", "return stored"),
        f"{PLAN}/agent/test_agents.py::test_the_agent_has_the_durations_of_the_gate",
    ),
    mutation(
        "a-successor-knows-no-drain",
        "F438",
        "a successor waits for a quarter of an hour, however long the drain of the lock is",
        o(
            "manifests/configmaps",
            "max(JobRecord.predecessor_seconds, longest_drain + FAILOVER_SECONDS)",
            "JobRecord.predecessor_seconds",
        ),
        "tests/tiers/unit/manifests/test_manifests.py::test_a_successor_waits_longer_than_the_longest_drain",
    ),
    mutation(
        "a-successor-does-not-read-how-long",
        "F438",
        "a driver waits for an earlier attempt's lock as long as it thinks, not as its job says",
        a("writer/attempt", "seconds=self._job.predecessor_seconds,", "seconds=900.0,"),
        f"{RUNTIME}/writer/test_predecessor.py::test_it_waits_as_long_as_its_job_says",
    ),
    mutation(
        "starts-are-read-for-each-writer",
        "F439",
        "for each writer that waits the start of each attempt of the table is read again",
        o("plan/writers/overlaps", "    @cached_property\n    def _of(self)", "    @property\n    def _of(self)"),
        f"{PLAN}/test_cost.py::test_twice_the_writers_cost_twice_as_much",
    ),
)

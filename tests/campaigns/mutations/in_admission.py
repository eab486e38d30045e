"""Mutations of the operator: who may start, the gate, and what is collected."""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import a
from tests.campaigns.mutations.in_settling import COLLECTION, GATE, PLAN, REQUESTS, RULES, SIMULATED, o
from tests.campaigns.mutations.mutation import mutation

SUCCESSORS = "tests/tiers/unit/plan/writers/test_successors.py"
PREDECESSOR = "tests/tiers/unit/runtime/writer/test_predecessor.py"
ADOPTION = "tests/tiers/unit/plan/gate/test_adoption.py"
NESTING = "tests/tiers/unit/plan/test_nesting.py"

SUCCESSORS_OF_THE_DEAD = (
    mutation(
        "a-successor-before-the-proof",
        "I9 F5 F392",
        "a successor is made, and waits with its place and its pods, for a proof that may never come",
        (
            o("plan/fencing/settling", "inc.phase is not Phase.Draining or inc.lock_unknown", "inc.lock_unknown"),
            o(
                "plan/fencing/settling",
                "return age is not None and revocation.drain",
                "return not age or revocation.drain",
            ),
        ),
        f"{SUCCESSORS}::test_it_is_not_made_before_the_proof",
    ),
    mutation(
        "a-successor-when-the-lock-is-free",
        "F392",
        "the pod of a successor is made when the lock of its predecessor is free",
        o("plan/writers/admission", "START_SECONDS = 30.0", "START_SECONDS = -1.0"),
        f"{SUCCESSORS}::test_its_pod_is_made_while_the_lock_is_drained",
    ),
    mutation(
        "a-successor-at-the-beginning-of-a-long-drain",
        "F392",
        "a successor waits ten minutes, with its place and its pods, for a drain of ten minutes",
        o("plan/writers/admission", "START_SECONDS = 30.0", "START_SECONDS = 600.0"),
        f"{SUCCESSORS}::test_a_long_drain_does_not_keep_it_waiting_for_long",
    ),
    mutation(
        "a-program-follows-early",
        "I9 F5",
        "a program, whose progress no commit compares, starts while its predecessor has the lock",
        o("plan/writers/admission", "        if program or not lock_is", "        if not lock_is"),
        f"{SUCCESSORS}::test_a_program_waits_until_the_lock_is_free",
    ),
    mutation(
        "a-successor-of-an-unknown-owner",
        "I9 F5",
        "a successor starts while nobody can read who has the lock",
        o(
            "plan/fencing/settling",
            "inc.phase is not Phase.Draining or inc.lock_unknown",
            "inc.phase is not Phase.Draining",
        ),
        f"{SUCCESSORS}::test_nobody_starts_while_the_owner_of_the_lock_cannot_be_read",
    ),
    mutation(
        "a-single-writer-waits-for-its-own-lock",
        "F392",
        "in the mode SingleWriter a successor starts when the lock of its predecessor is free",
        o("plan/writers/admission", "i.inc not in own", "(i.inc not in own or own)"),
        f"{SUCCESSORS}::test_alone_at_the_table_it_follows_its_own_predecessor",
    ),
    mutation(
        "progress-is-read-beside-the-lock-of-the-dead",
        "I9 F5",
        "a driver reads its progress while an earlier attempt of its writer owns the lock",
        a("writer/attempt", "            self._await_predecessor()\n", ""),
        f"{PREDECESSOR}::test_nothing_is_read_and_no_program_runs_before_the_lock_is_free",
    ),
    mutation(
        "an-unknown-owner-is-nobody",
        "I9 F5",
        "a driver reads its progress while the lock does not say whose it is",
        a(
            "writer/predecessor",
            "    if not owner:\n        return UNKNOWN\n",
            '    if not owner:\n        return ""\n',
        ),
        f"{PREDECESSOR}::test_who_is_waited_for",
    ),
    mutation(
        "no-answer-is-a-free-lock",
        "I9 I11 F5",
        "a driver reads its progress when etcd does not tell it who has the lock",
        a("writer/predecessor", "        return known or UNKNOWN\n", '        return ""\n'),
        f"{PREDECESSOR}::test_without_an_answer_it_goes_on_waiting",
    ),
    mutation(
        "it-waits-for-a-lock-for-ever",
        "availability",
        "a driver waits without end for the lock of an earlier attempt",
        a("writer/predecessor", "if time.monotonic() - began > seconds:", "if began > time.monotonic():"),
        f"{PREDECESSOR}::test_it_does_not_wait_for_ever",
    ),
    mutation(
        "it-waits-beside-a-closed-gate",
        "F44",
        "a change of the table waits for a driver that waits for a lock",
        a(
            "writer/predecessor",
            "        if change := closed():\n",
            "        if (change := closed()) and owner == change:\n",
        ),
        f"{PREDECESSOR}::test_it_does_not_wait_for_ever",
    ),
)

GATES = (
    mutation(
        "the-next-attempt-starts-at-once",
        "I9 F5",
        "a writer's next attempt starts although the last one may still commit",
        o(
            "plan/writers/admission",
            "        if program or not lock_is_free_within(t.view, inc, START_SECONDS):\n",
            "        if inc.inc == attempt.id:\n",
        ),
        "tests/tiers/unit/plan/fencing/test_refused_pods.py::test_a_refused_driver_that_runs_on_is_waited_for",
    ),
    mutation(
        "fenced-is-out-of-the-way",
        "I9 F5",
        "a writer's next attempt starts although the fenced last one has the lock",
        o(
            "plan/core/view",
            "return (self.fenced or self.phase is not None) and self.lock is None",
            "return self.fenced or self.phase is not None",
        ),
        "tests/tiers/unit/plan/fencing/test_refused_pods.py::test_a_refused_driver_that_runs_on_is_waited_for",
    ),
    mutation(
        "may-still-register",
        "I9 F5 F23",
        "a writer's next attempt starts although the last one may still register",
        o(
            "plan/writers/admission",
            "        if attempt.admitted:\n            return Block(",
            "        if attempt.admitted and not attempt.id:\n            return Block(",
        ),
        f"{RULES}::test_an_attempt_that_may_still_register_is_waited_for",
    ),
    mutation(
        "two-single-writers",
        "I9",
        "in the mode SingleWriter a writer starts beside an incarnation that may still publish",
        o("plan/writers/admission", "    if not t.running and others:\n", "    if t.running and others:\n"),
        f"{RULES}::test_a_single_writer_waits_for_whoever_may_still_publish",
    ),
    mutation(
        "no-limit-of-writers",
        "I9",
        "more writers run than the table allows",
        o(
            "plan/writers/admission",
            "    if len(t.running) < t.view.table.max_writers:\n        return None\n",
            "    if len(t.running) < t.view.table.max_writers or t.running:\n        return None\n",
        ),
        f"{REQUESTS}::test_max_writers_and_priority",
    ),
    mutation(
        "mode-changes-under-writers",
        "F8",
        "mode and durations change while writers run that started under others",
        o(
            "plan/gate/gate",
            "if writers_left(view):",
            "if not view.incs:",
        ),
        f"{REQUESTS}::test_mode_changes_only_without_writers",
    ),
    mutation(
        "mode-of-the-spec",
        "F8 I1",
        "settling follows the mode that the spec asks for, not the one that the writers run under",
        o("plan/core/view", "return self.gate.mode or self.table.fencing.mode", "return self.table.fencing.mode"),
        f"{RULES}::test_settling_follows_the_mode_that_writers_run_under",
    ),
    mutation(
        "a-table-in-another-ones-folder",
        "F61",
        "a table is made in another one's folder: cleaning and restoring one takes the other's files for its own",
        o(
            "hudi_contract/naming",
            "return first.startswith(second) or second.startswith(first)",
            "return first == second",
        ),
        f"{NESTING}::test_the_later_one_is_refused",
    ),
    mutation(
        "a-table-that-works-gives-way",
        "availability",
        "a table that works is stopped by one that claims to be older and lies in its folder",
        o("control/nesting", "    return not gate.was_open and", "    return"),
        f"{NESTING}::test_it_is_asked_before_anything_is_made_and_before_the_gate_opens",
    ),
    mutation(
        "any-path-keeps-others-out",
        "F210 availability",
        "a HudiTable that may not use its path keeps others out of it",
        o("control/nesting", "            first = allowed and (", "            first = True and ("),
        f"{NESTING}::test_one_that_may_not_use_its_path_does_not_count_unless_it_was_open",
    ),
    mutation(
        "closing-stops-those-who-run",
        "F20",
        "a gate that closes keeps those out who run",
        o(
            "plan/gate/gate",
            (
                "value = next_gate(\n"
                "        view,\n"
                "        GateState.CLOSED,\n"
                "        base=view.gate,\n"
                "        admitted=tuple(present_attempts(view)),\n"
                "        closed_for=change,\n"
                "        closed_for_ms=since,\n"
                "    )"
            ),
            "value = next_gate(view, GateState.CLOSED, base=view.gate, closed_for=change, closed_for_ms=since)",
        ),
        f"{GATE}::test_closing_keeps_those_who_run_admitted",
        f"{REQUESTS}::test_mode_changes_only_without_writers",
    ),
    mutation(
        "an-old-etcd-is-trusted",
        "I11 I8",
        "an etcd whose revision went back is used",
        o(
            "plan/gate/trust",
            "if same_cluster and observed.revision_floor > max(",
            "if not same_cluster and observed.revision_floor > max(",
        ),
        f"{GATE}::test_a_revision_that_went_back_freezes_until_a_person_has_looked",
        f"{GATE}::test_an_empty_etcd_that_should_not_be_empty_gets_no_gate",
    ),
    mutation(
        "a-forgetful-etcd-is-trusted",
        "F620 I2 I11",
        "an etcd that was set back is used if its revision is higher than before",
        o(
            "plan/gate/trust",
            "if view.etcd.gate is not None and etcd.forgotten > gate.accepted_floor:",
            "if view.etcd.gate is None and etcd.forgotten > gate.accepted_floor:",
        ),
        f"{GATE}::test_an_etcd_that_was_set_back_freezes_although_its_revision_did_not_go_back",
        f"{GATE}::test_a_table_that_is_made_after_etcd_was_set_back_is_not_frozen",
    ),
    mutation(
        "nobody-minds-the-pulse",
        "F620 I2 I11",
        "only a revision that went back tells that etcd was set back",
        o("adapters/etcd", "was.pulse if answer.pulse < was.pulse else 0)", "0)"),
        "tests/tiers/unit/adapters/test_errors_and_metrics.py::test_each_loss_is_found_once_and_outlives_the_process",
        "tests/tiers/component/operator/test_etcd_faults.py::"
        "test_an_etcd_set_back_below_a_higher_revision_freezes_and_forgets_no_fence",
    ),
    mutation(
        "a-new-table-lifts-a-freeze",
        "I2 F605",
        "whoever may create and delete HudiTables opens a gate that was frozen",
        o(
            "plan/gate/gate",
            "if view.gate.state is GateState.FROZEN and view.gate.reason != RELEASED:",
            "if view is None:",
        ),
        f"{GATE}::test_what_a_person_has_frozen_stays_so_for_the_next_huditable",
    ),
    mutation(
        "a-released-gate-is-trusted",
        "I2 F605",
        "a gate that no HudiTable had while etcd was set back is opened for its next one",
        o(
            "plan/gate/gate",
            "(view.gate.state is GateState.FROZEN and is_mine(view))",
            "view.gate.state is GateState.FROZEN",
        ),
        f"{GATE}::test_a_gate_that_was_released_freezes_for_its_next_huditable",
    ),
    mutation(
        "an-old-word-lifts-a-new-freeze",
        "I2 F606",
        "the word of a restore lifts the freeze after the next restore of the same backup",
        o(
            "plan/gate/trust",
            '    return f"{mod}-{view.etcd.forgotten}" if view.etcd.forgotten else str(mod)\n',
            "    return str(mod)\n",
        ),
        f"{GATE}::test_a_word_lifts_one_freeze",
    ),
    mutation(
        "another-etcd-is-trusted",
        "F10 I11",
        "an etcd that is another cluster than the one that wrote the gate is used",
        o(
            "plan/gate/trust",
            "if gate.cluster_id and gate.cluster_id != etcd.cluster_id:",
            "if gate.cluster_id and not etcd.cluster_id:",
        ),
        f"{GATE}::test_a_gate_from_another_cluster_freezes",
    ),
    mutation(
        "the-second-table-takes-the-path",
        "F10",
        "a second HudiTable of one path takes the gate of the first",
        o(
            "plan/gate/gate",
            "and gate.table_uid != view.table.ref.uid and gate.table != view.table.ref.key",
            "and gate.table_uid == view.table.ref.key",
        ),
        f"{GATE}::test_the_first_table_keeps_its_path",
    ),
    mutation(
        "another-authority-is-ignored",
        "F10",
        "a table whose marker names another lock stays open",
        o(
            "plan/gate/gate",
            "if report_error(view)[0] in OTHER_AUTHORITY and view.gate.state is GateState.OPEN:",
            "if report_error(view)[0] == GateState.OPEN and view.gate.state is GateState.OPEN:",
        ),
        f"{GATE}::test_another_lock_authority_freezes_an_open_gate",
    ),
    mutation(
        "open-on-anybodys-word",
        "F10 I11",
        "the gate opens on the word of an agent that is not registered",
        o(
            "plan/gate/gate",
            (
                "return report if inc is not None and inc.registration is not None and inc.record is None else "
                "TimelineReport()"
            ),
            "return report if inc is None or inc.registration is not None else TimelineReport()",
        ),
        f"{GATE}::test_the_gate_stays_closed_on_the_word_of_an_agent_that_is_not_registered",
    ),
    mutation(
        "unknown-is-empty",
        "I11",
        "an etcd that cannot be read counts as an empty one",
        (
            o("plan/table", "from typing import Any\n", "import dataclasses\nfrom typing import Any\n"),
            o(
                "plan/table",
                "from hudi_operator.model.facts import Observed",
                "from hudi_operator.model.facts import EtcdFacts, Observed",
            ),
            o(
                "plan/table",
                "    if observed.etcd is None:\n        reason",
                (
                    '    observed = dataclasses.replace(observed, etcd=observed.etcd or EtcdFacts(1, ""))\n'
                    "    if observed.etcd is None:\n"
                    "        reason"
                ),
            ),
        ),
        f"{PLAN}::test_unknown_is_not_empty",
    ),
    mutation(
        "the-pod-comes-before-its-number",
        "I6 F23",
        "the pod of an attempt is made before it is admitted",
        (
            o(
                "plan/writers/attempts",
                "        PutAdmit(table.table_id, writer.attempt_id(number), Role.WRITER),\n"
                "        CreatePod(pods.driver_pod(table, writer, number, view.config)),\n",
                "        CreatePod(pods.driver_pod(table, writer, number, view.config)),\n"
                "        PutAdmit(table.table_id, writer.attempt_id(number), Role.WRITER),\n",
            ),
        ),
        f"{PLAN}::test_an_attempt_is_in_status_before_anything_of_it_exists",
    ),
    mutation(
        "the-number-comes-after-the-pod",
        "I6",
        "an attempt's number is written to status after its pod was made",
        o(
            "plan/table",
            "(*rest, *own.actions, *writers.actions, *late, *writers.late)",
            "(*late, *writers.late, *rest, *own.actions, *writers.actions)",
        ),
        f"{PLAN}::test_an_attempt_is_in_status_before_anything_of_it_exists",
    ),
    mutation(
        "begun-meanwhile-is-nobodys",
        "I11",
        "an attempt that another operator begins during a look counts as one that nobody names",
        o(
            "control/observe",
            "        begun = sorted(unnamed & attempts_of(await self._kubernetes.writers(*key))) if unnamed else []\n",
            "        begun = sorted(unnamed & {key[0]}) if unnamed else []\n",
        ),
        (
            "tests/tiers/unit/control/"
            "test_observe.py::test_an_attempt_that_began_while_the_table_was_read_is_not_taken_for_nobodys"
        ),
    ),
    mutation(
        "one-agent-only",
        "F22",
        "a suspect agent is waited for before the next one starts",
        o(
            "plan/agent/agents",
            (
                "live = [\n"
                "        p\n"
                "        for p in view.agent_pods\n"
                "        if not containers.ended(p) and not p.deleting and p.uid not in suspects and not "
                "_on_lost_node(view, p)\n"
                "    ]"
            ),
            "live = [p for p in view.agent_pods if not containers.ended(p)]",
        ),
        f"{SIMULATED}::test_node_lost_then_rebooted",
    ),
    mutation(
        "nobody-needs-that-agent",
        "I11",
        "an agent's pod goes although it is not known who else needs it",
        o(
            "plan/agent/agent_pods",
            (
                "    if view.observed.agents_in_use is None or view.observed.evidence_needed is None:\n"
                "        return PartialPlan()\n"
                "    actions"
            ),
            "    actions",
        ),
        f"{RULES}::test_an_agents_pod_stays_while_it_is_not_known_who_needs_it",
    ),
)

AFTER_ADOPTION = o(
    "plan/gate/adoption", "view.gate.state is not GateState.CLOSED or gate.adopted(view):", "view.gate.state is None:"
)
OLD_TABLES = (
    mutation(
        "adopted-without-a-word",
        "I7",
        "pending instants of a table's former writers are rolled back although nobody has named them",
        o(
            "plan/gate/adoption",
            "unnamed = [f for f in found if f.instant not in named]",
            "unnamed = [f for f in found if f.instant in named and not named]",
        ),
        f"{ADOPTION}::test_pending_instants_stop_the_adoption_and_the_message_says_what_resolves_it",
        f"{ADOPTION}::test_nothing_is_touched_until_every_pending_instant_is_named",
    ),
    mutation(
        "adopted-for-ever",
        "I7",
        "a person's word about the writers before adoption counts whenever the agent speaks of pending instants",
        AFTER_ADOPTION,
        f"{ADOPTION}::test_instants_that_come_after_adoption_are_foreign_whatever_is_named",
        redundant="the agent asks for such a word only before the table is adopted",
        pair="adopted-whatever-comes",
    ),
    mutation(
        "adopted-whatever-comes",
        "I7",
        "a person's word about the writers before adoption counts for instants that came later",
        (
            AFTER_ADOPTION,
            o(
                "plan/gate/adoption",
                "if gate.report_error(view)[0] != AgentError.PENDING_INSTANTS:",
                "if gate.report_error(view)[0] == AgentError.PENDING_INSTANTS + view.agent:",
            ),
        ),
        f"{ADOPTION}::test_instants_that_come_after_adoption_are_foreign_whatever_is_named",
    ),
    mutation(
        "savepoint-at-once",
        "I8 F20",
        "a savepoint is asked for while writers run",
        o("plan/requests/savepoints", "    if drained:\n        new", "    if wanted:\n        new"),
        (
            "tests/tiers/unit/plan/requests/"
            "test_savepoint_requests.py::test_running_writers_finish_nobody_new_starts_and_then_it_is_taken"
        ),
    ),
)

COLLECTING = (
    mutation(
        "a-persons-word-is-certain",
        "I2 F30",
        "the fence of an incarnation that a person has called dead is collected",
        o(
            "plan/fencing/collection",
            "frozenset({ProofKind.POD_TERMINATED, ProofKind.NEVER_SCHEDULED, ProofKind.NODE_REBOOTED})",
            "frozenset(ProofKind)",
        ),
        f"{COLLECTION}::test_a_record_that_is_not_over_or_not_certain_stays",
    ),
    mutation(
        "collected-while-named",
        "I2 F30",
        "the fence of an incarnation goes although a key names it",
        o(
            "plan/fencing/collection",
            "return proven and swept and not evidence and not named",
            "return proven and swept and not evidence",
        ),
        f"{COLLECTION}::test_a_record_whose_incarnation_any_key_names_stays",
    ),
    mutation(
        "collected-before-it-is-swept",
        "I4 I5 F30",
        "a record goes although an instant of it has no outcome",
        o(
            "plan/fencing/collection",
            "return proven and swept and not evidence and not named",
            "return proven and not evidence and not named",
        ),
        f"{COLLECTION}::test_a_record_that_is_not_over_or_not_certain_stays",
    ),
    mutation(
        "collected-with-its-evidence-standing",
        "F14 F30",
        "a record goes although a pod needs its proof",
        o(
            "plan/fencing/collection",
            "return proven and swept and not evidence and not named",
            "return proven and swept and not named",
        ),
        f"{COLLECTION}::test_a_record_stays_while_a_pod_carries_its_evidence",
    ),
    mutation(
        "collected-at-once",
        "I2 F30",
        "a fence goes while a request of an earlier operator may be on the wire",
        o(
            "plan/fencing/collection",
            'if view.elapsed(f"{TIMER}{inc.inc}", COLLECT_SECONDS)]',
            "if inc.record is not None]",
        ),
        f"{COLLECTION}::test_after_a_failover_the_time_begins_again",
        f"{COLLECTION}::test_the_oldest_beyond_the_kept_ones_go_after_a_while",
    ),
    mutation(
        "never-collected",
        "F30",
        "records and fences stay for ever",
        o("plan/fencing/collection", "[:AT_ONCE]\n    collect", "[:0]\n    collect"),
        f"{COLLECTION}::test_the_oldest_beyond_the_kept_ones_go_after_a_while",
    ),
)

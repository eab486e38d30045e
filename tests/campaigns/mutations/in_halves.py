"""Mutations of what one half writes and the other one reads, and of an agent's work
at one table.
"""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import a
from tests.campaigns.mutations.in_settling import o
from tests.campaigns.mutations.mutation import mutation

HALVES = "tests/tiers/unit/halves/test_halves.py"
ASSIGNMENT = "tests/tiers/unit/runtime/agent/test_assignment.py"

WORDS = (
    mutation(
        "a-run-reads-another-word-of-the-gate",
        "F44",
        "the operator says in the gate what it is closed for, and runs look for it under another name",
        a("writer/gate", "    return gate.closed_for if", "    return gate.reason if"),
        f"{HALVES}::test_a_run_reads_what_the_gate_is_closed_for",
    ),
    mutation(
        "turns-stay-in-the-table",
        "availability",
        "what the HudiTable says about turns does not reach its writers: they never take any",
        o("manifests/configmaps", "            serialize_after=table.serialize_after_conflicts,\n"),
        f"{HALVES}::test_a_job",
    ),
    mutation(
        "the-operator-names-a-restore-otherwise",
        "I8",
        (
            "the word without which no agent undoes a commit stands in another field of the closed gate: no restore "
            "ever begins"
        ),
        o(
            "plan/gate/gate",
            "next_gate(view, GateState.CLOSED, restoring=nonce)",
            "next_gate(view, GateState.CLOSED, reason=nonce)",
        ),
        f"{HALVES}::test_a_restore",
    ),
    mutation(
        "adoption-is-called-otherwise",
        "I7",
        (
            "the word in etcd for instants that a person has handed over is another one: an agent of another version "
            "adopts before they are settled"
        ),
        o("hudi_contract/settle", 'ADOPTED = "Adopted"', 'ADOPTED = "Adoption"'),
        f"{HALVES}::test_adoption_of_pending_instants",
    ),
    mutation(
        "a-metadata-table-is-awaited-by-another-name",
        "availability",
        "the agent is never told that its own assignment names the change: it is asked for ever",
        o("plan/agent/agents", "metadata_table=(table.metadata_table or MetadataTable()).nonce", 'metadata_table=""'),
        f"{HALVES}::test_the_metadata_table",
    ),
)

ONE_TABLE = (
    mutation(
        "adopted-beside-an-instant-of-nobody",
        "I7",
        "a table is taken over although something of its former writers is pending",
        a(
            "agent/preparation",
            "        if foreigners:\n            raise adoption",
            "        if foreigners and not timeline:\n            raise adoption",
        ),
        f"{ASSIGNMENT}::test_a_pending_instant_without_an_owner_stops_the_adoption",
    ),
    mutation(
        "the-clock-stays-behind-an-adopted-table",
        "I10",
        "the next instant may be older than what the former writers have completed",
        a("agent/preparation", "        self._forward_clock(table.timeline().maximum)\n"),
        f"{ASSIGNMENT}::test_a_table_is_adopted_when_nothing_is_without_an_owner",
    ),
    mutation(
        "something-is-begun-between-two-agents-of-a-restore",
        "I8 F22",
        "with half a restore on the timeline services and savepoints begin",
        a("agent/assignment", "requests is not None and not between:", "requests is not None:"),
        f"{ASSIGNMENT}::test_between_two_agents_of_a_restore_nothing_is_begun",
    ),
    mutation(
        "an-agent-leaves-what-an-executor-may-still-write",
        "F4",
        "a clean exit although an executor was lost",
        a("agent/assignment", "            if not self._tasks.give_back():\n                return False\n"),
        f"{ASSIGNMENT}::test_it_does_not_leave_what_must_be_proven",
    ),
    mutation(
        "a-fence-is-the-sessions-to-see",
        "F48",
        "the signal that follows the fence ends the work at every table, because etcd was not asked",
        a(
            "agent/keys",
            "self._keys.of(Kind.FENCE, inc)) is not None",
            "self._keys.of(Kind.FENCE, inc)) is None and False",
        ),
        f"{ASSIGNMENT}::test_a_fence_is_seen_in_etcd_before_the_session_knows",
    ),
    mutation(
        "what-others-have-completed-is-forgotten",
        "I7",
        "a commit of a foreign writer is shown until the next one of ours moves the clock past it",
        a("agent/assignment", "found |= {key: listed[key] for key in before if key in listed}", "found |= {}"),
        f"{ASSIGNMENT}::test_what_others_have_completed_stays_known_to_the_next_agent",
    ),
    mutation(
        "a-done-stands-anywhere-in-the-trace",
        "I4",
        "the line of a forgotten instant has no revision: the checker cannot put it behind its owner's word",
        a("settle/settle", 'self._log("done", entry.mod_revision, ok=True', 'self._log("done", 0, ok=True'),
        (
            "tests/tiers/unit/runtime/settle/"
            "test_settler.py::test_the_log_of_a_given_up_instant_comes_after_its_owners_word"
        ),
    ),
)

SETTLING = (
    mutation(
        "what-a-dead-one-claimed-is-nobodys",
        "F3 I12",
        "a service instant that the dead incarnation executed for another one is not looked at",
        o("plan/fencing/settling", "if not inc.instants and not inc.claimed and keys", "if not inc.instants and keys"),
        "tests/tiers/unit/plan/fencing/test_settling_phases.py::test_what_it_has_claimed_or_abandoned_is_looked_at_too",
    ),
    mutation(
        "a-registration-is-no-reason-to-keep-evidence",
        "F14",
        "the finalizer of a pod goes while an incarnation of it is registered and nobody has fenced it",
        o(
            "plan/fencing/evidence",
            "    if any(i.record is None for i in incs):",
            "    if any(i.record is None and i.alive for i in incs):",
        ),
        "tests/tiers/unit/plan/fencing/test_pod_evidence.py::test_it_stays_while_a_registration_stands",
    ),
    mutation(
        "a-deleted-writer-waits-for-registrations-alone",
        "I1 F14",
        "the HudiWriter goes while an incarnation that is no longer registered is not unlocked",
        o(
            "plan/deletion",
            "left = [i for i in writer.unfinished if i.named or i.phase is not None]",
            "left = [i for i in writer.unfinished if i.registration]",
        ),
        "tests/tiers/unit/plan/test_deletion.py::test_it_waits_for_unlocked_and_not_for_a_rollback",
    ),
)

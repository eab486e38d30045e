"""Mutations of a table's own agent: its executors are evidence too, and it repeats nothing beside
one that it has lost.
"""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import RUNTIME, SERVICES, SETTLER, a
from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.in_settling import o
from tests.campaigns.mutations.mutation import mutation

AGENT = f"{RUNTIME}/agent/test_agent.py::test_the_fence_of_one_table_lets_the_others_end_what_they_are_at"
OWN_AGENTS = "tests/tiers/unit/plan/agent/test_own_agents.py"

EXECUTORS = (
    mutation(
        "executors-of-an-agent-are-forgotten",
        "I5 I12",
        "an agent counts as dead while its executors write: the next one executes the same compaction beside them",
        o(
            "plan/fencing/settling",
            "executors = view.executors(inc.pod) if inc.pod else ()",
            "executors = () if inc.is_agent or not inc.pod else view.executors(inc.pod)",
        ),
        f"{OWN_AGENTS}::test_death_is_not_proven_while_an_executor_lives",
    ),
    mutation(
        "executors-of-an-own-agent-are-not-listed",
        "I12 F26",
        "executors of a table's own agent are found by their labels alone",
        o(
            "control/observe",
            "if any(_executors_wanted(w) for w in objects.writers) or any(_is_agent(pod) for pod in drivers.values()):",
            "if any(_executors_wanted(w) for w in objects.writers) or not drivers.keys() <= found.keys():",
        ),
        f"{OWN_AGENTS}::test_which_executors_are_read",
    ),
    mutation(
        "executors-of-other-tables-agents-are-ended",
        "I8",
        (
            "a table takes executors of another table's agent for its own, finds no incarnation that they belong to, "
            "and ends them"
        ),
        o("control/observe", "if pod.labels.get(naming.LABEL_TABLE) == own}", "if own}"),
        f"{OWN_AGENTS}::test_which_executors_are_read",
    ),
    mutation(
        "evidence-of-an-agent-goes-with-its-proof",
        "F14",
        "the evidence of an agent's pod is dropped when one of its tables has its proof",
        o("plan/fencing/settling", "shared = {own} if inc.is_agent else set()", "shared: set[str] = set()"),
        f"{OWN_AGENTS}::test_evidence_of_the_agent_itself_is_left_to_the_planner_of_agent_pods",
    ),
    mutation(
        "ended-whatever-a-lost-executor-does",
        "I5 F4",
        "what an agent withdrew counts as ended although an executor was lost that may write for it",
        a("settle/settle", "if instant not in self.ended or self.lost():", "if instant not in self.ended:"),
        f"{SETTLER}::test_a_lost_executor_may_be_late_with_what_had_ended",
    ),
    mutation(
        "an-agent-leaves-with-a-lost-executor",
        "I5 F4",
        "an agent that gave an instant up leaves by itself although an executor of it was lost and may still write",
        a(
            "settle/settle",
            "        return own or self.session.etcd.get(",
            "        return own and self.session.etcd.get(",
        ),
        f"{SETTLER}::test_an_agent_leaves_by_itself_unless_a_lost_executor_may_write_for_it",
    ),
    mutation(
        "spark-ends-the-registration",
        "I5 F4",
        "a writer that must be proven dead stops Spark, whose plugin deregisters it",
        a(
            "writer/attempt",
            "    if attempt is None or not attempt.must_be_proven_dead:\n        sp.stop(",
            "    if sp:\n        sp.stop(",
        ),
        f"{RUNTIME}/writer/test_leaving.py::test_the_plugin_does_not_end_the_registration_of_who_must_be_proven_dead",
    ),
    mutation(
        "repeated-beside-a-lost-executor",
        "I12",
        "an agent executes a compaction again that has failed, beside an executor of its own that it has lost",
        a(
            "services/services",
            "(not isinstance(error, NotYet) and sp.lost_executors(self.spark))",
            "(isinstance(error, NotYet) and sp.lost_executors(self.spark))",
        ),
        f"{SERVICES}::test_a_failure_after_the_loss_of_an_executor_is_not_repeated_here",
    ),
    mutation(
        "an-agent-goes-on-beside-a-lost-executor",
        "I12",
        "an agent that may not repeat what it has left pending stays",
        a(
            "agent/agent",
            (
                "if (\n"
                "                    sp.jvm_exit_code() is not None\n"
                "                    or isinstance(error, MustEnd)\n"
                "                    or ErrorCode.ETCD_SET_BACK in str(error)\n"
                "                ):"
            ),
            "if sp.jvm_exit_code() is not None or ErrorCode.ETCD_SET_BACK in str(error):",
        ),
        f"{RUNTIME}/agent/test_agent.py::test_an_agent_that_may_have_left_an_executor_at_work_is_left_at_once",
    ),
)

SHARED = (
    mutation(
        "the-fence-of-one-table-halts-the-agent-of-all",
        "F48",
        "a fenced incarnation ends the JVM of an agent, in the middle of what it is at for other tables",
        j(
            "Liveness",
            "        if (endsNow() && !me.isAgent()) {\n",
            "        if (endsNow()) {\n",
        ),
        t("RegistrationTest.theFenceOfOneTableLeavesTheOthersOfAnAgent"),
    ),
    mutation(
        "an-agent-that-hands-over-waits-for-nobody",
        "F48",
        "an agent leaves at once when one of its tables has ended it",
        a(
            "agent/agent",
            "        while self._assignments and time.monotonic() < end and",
            "        while not self._assignments and time.monotonic() < end and",
        ),
        AGENT,
    ),
    mutation(
        "an-agent-that-hands-over-is-killed-at-once",
        "F48",
        "the pod of an agent that serves several tables has the grace of any fenced pod",
        o("plan/fencing/settling", "kill(p, _grace(inc, p)) for p in live", "kill(p) for p in live"),
        (
            "tests/tiers/unit/plan/agent/"
            "test_agents.py::test_an_agent_that_is_fenced_for_one_table_has_time_for_the_others"
        ),
    ),
    mutation(
        "a-fenced-agent-claims",
        "F48",
        "an agent that hands over takes more instants at the table at which it is fenced",
        a("settle/settle", "if self.session.state == FENCED:", 'if self.session.state == "NONE":'),
        f"{SETTLER}::test_a_fenced_agent_takes_nothing_more",
    ),
)

LEFT = (
    mutation(
        "a-missing-registration-is-proof",
        "I11 F38",
        "whoever is not registered counts as having left, whatever it has Pending",
        a(
            "settle/settle",
            "            and not any(inc in (held.inc, held.claimed_by)",
            "            or not any(inc in (held.inc, held.claimed_by)",
        ),
        f"{RUNTIME}/settle/test_settling.py::test_who_has_something_pending_has_not_left_whatever_is_missing",
    ),
)

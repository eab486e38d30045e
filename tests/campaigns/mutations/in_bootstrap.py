"""Mutations of the bootstrap: alone, once, and settled like any other commit."""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import RUNTIME, a
from tests.campaigns.mutations.in_settling import o
from tests.campaigns.mutations.mutation import mutation

OPERATOR = "tests/tiers/unit/plan/requests/test_bootstrap_requests.py"
AGENT = f"{RUNTIME}/agent/test_bootstrap.py"

BEGINNING = (
    mutation(
        "rows-of-a-table-without-a-commit",
        "F359",
        "the adoption of a table that was never written to looks for null in columns that it does not have",
        a("agent/adoption", "    if not rows.columns:\n", "    if not spec.ordering:\n"),
        "tests/tiers/hudi/test_agent.py::test_a_table_without_a_commit_has_no_row_that_its_adoption_refuses",
    ),
    mutation(
        "writers-beside-a-bootstrap",
        "I9",
        "the gate opens as soon as the table exists, whatever it is to begin with",
        o(
            "plan/gate/gate",
            "if bootstrapping(view):",
            "if not view:",
        ),
        f"{OPERATOR}::test_writers_wait_until_the_table_has_begun",
    ),
    mutation(
        "what-was-open-begins-again",
        "I9",
        "a table whose writers have come is bootstrapped when the record of that was lost",
        o("plan/requests/bootstrap", "and not adopted and record(view).result", "and record(view).result"),
        f"{OPERATOR}::test_what_was_open_once_never_begins_again",
    ),
    mutation(
        "the-word-of-another-huditable",
        "I9",
        "the record that an earlier HudiTable of the path has begun opens the gate of this one",
        o(
            "plan/requests/bootstrap",
            "return found if found.table_uid == view.table.ref.uid else",
            "return found if found.table_uid else",
        ),
        f"{OPERATOR}::test_a_record_of_an_earlier_huditable_does_not_count",
    ),
    mutation(
        "the-dataset-is-in-the-table",
        "availability",
        "a dataset inside of the table is accepted: the table's own files would be read as its rows",
        [
            o("api/bootstrap", '    if f"{source}/".startswith(f"{table}/"):\n', '    if f"{source}/" == table:\n'),
            o("api/bootstrap", '    if f"{table}/".startswith(f"{source}/"):\n', '    if f"{table}/" == source:\n'),
        ],
        f"{OPERATOR}::test_what_cannot_be_is_refused_by_name_and_value",
    ),
    mutation(
        "begun-twice",
        "I6 I9",
        "an agent does not look whether the one before it has committed the rows",
        a(
            "agent/bootstrap",
            "            found = self._found(request, ahead) or self._write(request, ahead)\n",
            "            found = self._write(request, ahead)\n",
        ),
        f"{AGENT}::test_a_commit_of_an_agent_that_died_before_its_word_is_found",
    ),
    mutation(
        "begun-over-commits",
        "I8",
        "a table that has commits is bootstrapped",
        a("agent/bootstrap", "        if written or self.table.has_archive():\n", "        if not self.table:\n"),
        f"{AGENT}::test_a_table_with_commits_is_not_begun",
    ),
    mutation(
        "a-hudi-table-is-begun",
        "I8",
        "a bootstrap takes over a table of somebody else instead of refusing it",
        a("agent/adoption", "    if policy != Adoption.BOOTSTRAP or mine:\n", "    if policy:\n"),
        f"{AGENT}::test_a_table_of_somebody_else_with_commits_is_refused",
    ),
    mutation(
        "begun-at-an-open-gate",
        "I9",
        "the agent begins whatever the gate says",
        a(
            "agent/bootstrap",
            "        if self.context.gate_state() != GateState.CLOSED:  # R14: only agents may acquire\n",
            "        if not request:\n",
        ),
        f"{AGENT}::test_nothing_begins_unless_the_gate_is_closed",
    ),
    mutation(
        "begun-beside-settling",
        "I7",
        "a try begins while what the last one has left is being settled",
        a(
            "agent/bootstrap",
            "        if look.records.settling() or look.records.other_agents(self.session.inc):\n",
            "        if look.records.other_agents(self.session.inc):\n",
        ),
        f"{AGENT}::test_what_another_agent_has_left_is_settled_before",
    ),
    mutation(
        "given-up-while-it-writes",
        "F4",
        "the instant of a failed try is given up while tasks of it may still write",
        a("agent/bootstrap", "if not sp.await_idle(self.spark, sp.IDLE_SECONDS, group=self._group):", "if False:"),
        f"{AGENT}::test_nothing_is_given_up_while_tasks_of_it_run",
    ),
    mutation(
        "what-settling-has-begun-is-given-up",
        "I6 I7",
        (
            "the end of a failed try gives up every instant of its incarnation, the rollback that settling has just "
            "recorded too"
        ),
        a("agent/bootstrap", "if self._inserts(t) and ((found := timeline.get(t))", "if ((found := timeline.get(t))"),
        f"{AGENT}::test_only_its_own_insert_is_given_up",
    ),
    mutation(
        "a-deleted-table-waits-for-its-bootstrap",
        "availability",
        "a HudiTable that was deleted waits until its bootstrap has ended, however long that takes",
        a("agent/agent", "retire(gone=table_id not in wanted)", "retire(gone=False)"),
        f"{RUNTIME}/agent/test_agent.py::test_what_is_no_table_of_its_own_any_more_is_told_so",
    ),
    mutation(
        "tasks-of-any-group",
        "F636",
        "a bootstrap waits for tasks of other tables, and perhaps not for its own",
        a(
            "process/spark",
            'job.getProperty("spark.jobGroup.id") == group',
            'job.getProperty("spark.jobGroup.id") != group',
        ),
        f"{RUNTIME}/process/test_await_idle.py::test_tasks_that_are_waited_for",
    ),
)

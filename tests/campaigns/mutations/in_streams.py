"""Mutations of what a writer reads from Kafka, and of runs that do not end."""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import RUNTIME, a
from tests.campaigns.mutations.in_settling import o
from tests.campaigns.mutations.mutation import mutation

KAFKA = f"{RUNTIME}/read/test_kafka_positions.py"
LOOKS = f"{RUNTIME}/read/test_kafka_looks.py"
RUN = f"{RUNTIME}/writer/test_run.py"
BAD_RECORDS = "tests/tiers/hudi/test_bad_records.py"
REGISTRY = f"{RUNTIME}/read/test_registry.py"
DATABASES = f"{RUNTIME}/read/test_jdbc_positions.py"
DATABASE_SPECS = "tests/tiers/unit/api/test_jdbc_spec.py"
DATABASE_READS = "tests/tiers/hudi/test_jdbc.py"
ATTEMPTS = "tests/tiers/unit/plan/writers/test_attempts.py"
CHANGES = "tests/tiers/unit/plan/writers/test_ending_for_change.py"

STREAMS = (
    mutation(
        "the-time-to-a-boundary-begins-anew",
        "F71",
        "the time-out of a change counts from the operator's own start",
        o("plan/writers/ending_for_change", "return at_once or over or view", "return at_once or view"),
        f"{CHANGES}::test_the_time_to_a_boundary_does_not_begin_anew_with_each_operator",
    ),
    mutation(
        "each-change-has-its-own-time",
        "F71",
        "another change that joins sets the time back",
        o("plan/gate/gate", "since = closed_for_ms(view) or view.now_ms", "since = view.now_ms"),
        f"{CHANGES}::test_another_change_gives_no_more_time",
    ),
    mutation(
        "removed-offsets-are-passed-over",
        "I9",
        "records that retention has removed before they were read are left out without a word",
        a("read/kafka_positions", "    if wanted < now.earliest[part]:\n", "    if wanted < 0:\n"),
        f"{KAFKA}::test_what_is_gone_is_told",
    ),
    mutation(
        "a-topic-made-again-is-the-same",
        "I9",
        "a topic that was deleted and made again is read from the old one's offset",
        a(
            "read/kafka_positions",
            "        if known.id and now.id and known.id != now.id:\n",
            "        if not known.next:\n",
        ),
        f"{KAFKA}::test_what_is_gone_is_told",
    ),
    mutation(
        "a-new-partition-begins-where-it-is-now",
        "I9",
        "a partition that appears later is read from what is left of it, as if nothing had been removed",
        a(
            "read/kafka_positions",
            "known.next + (0,) * (len(now.earliest) - len(known.next))",
            "known.next + now.earliest[len(known.next) :]",
        ),
        f"{KAFKA}::test_what_is_gone_is_told",
    ),
    mutation(
        "offsets-are-taken-again",
        "I9 F5",
        "the position that travels with a commit is the one before it",
        a(
            "read/kafka_positions",
            "tuple(ends.get((name, part), offset) for part, offset in enumerate(topic.next))",
            "tuple(topic.next)",
        ),
        f"{KAFKA}::test_the_limit_is_shared_fairly",
    ),
    mutation(
        "a-topic-off-the-list-is-forgotten",
        "I9",
        "a topic that is taken off the list and put back is read from its beginning once more",
        a(
            "read/kafka_positions",
            "    topics = dict(position.topics)\n",
            "    topics = {name: topic for name, topic in position.topics.items() if name in seen}\n",
        ),
        f"{KAFKA}::test_a_topic_that_is_read_no_more_keeps_its_place",
    ),
    mutation(
        "a-stream-looks-from-the-beginning",
        "I9 F5",
        "the second look of a streaming run begins where the first one began",
        a("writer/run", "            done = batch.done\n", ""),
        f"{RUN}::test_a_streaming_run_looks_again_and_goes_on_from_its_last_commit",
    ),
    mutation(
        "a-stopped-stream-has-succeeded",
        "availability",
        "a streaming writer that was suspended counts as finished and never goes on",
        a(
            "writer/run",
            (
                "raise RuntimeFailure(\n"
                '                    FailureClass.INFRASTRUCTURE, "asked to stop: a streaming run ended at a commit '
                'boundary"\n'
                "                )"
            ),
            "return",
        ),
        f"{RUN}::test_a_streaming_run_looks_again_and_goes_on_from_its_last_commit",
    ),
    mutation(
        "a-stream-uses-up-its-retries",
        "availability",
        "failures of a streaming run count for ever",
        o("plan/writers/runs", "        if entry.advanced:\n            break\n", ""),
        f"{ATTEMPTS}::test_failures_of_a_streaming_run_count_since_it_got_on",
    ),
    mutation(
        "a-run-does-not-look-at-the-gate",
        "F44",
        "a run goes on behind a gate that is closed for a change",
        a("writer/run", "            self._end_if_closed()\n            base =", "            base ="),
        f"{RUN}::test_a_closed_gate_ends_it_between_two_commits",
    ),
    mutation(
        "a-run-that-waits-does-not-look-at-the-gate",
        "F44",
        "a streaming run whose source has nothing more sees the closed gate at its next look only",
        a("writer/run", "            self._end_if_closed()\n            seconds -= nap", "            seconds -= nap"),
        f"{RUN}::test_a_closed_gate_ends_it_while_it_waits",
    ),
    mutation(
        "a-silent-etcd-ends-runs",
        "F44",
        "a run ends because etcd has not answered once",
        a("writer/gate", '        return ""\n    return', '        return "unknown"\n    return'),
        f"{RUN}::test_what_a_gate_says",
    ),
    mutation(
        "a-closed-gate-does-not-say-for-what",
        "F44",
        "no run learns that it is to end: one that streams blocks every change, and every other writer, for ever",
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
            "value = next_gate(view, GateState.CLOSED, base=view.gate, admitted=tuple(present_attempts(view)))",
        ),
        f"{CHANGES}::test_the_gate_says_what_it_is_closed_for",
    ),
    mutation(
        "a-run-that-hangs-is-waited-for",
        "F44",
        "a run that never comes to a commit boundary blocks the change for ever",
        o(
            "plan/writers/ending_for_change",
            "at_once or over or view.elapsed(_timer(attempt), view.table.change_timeout_seconds)",
            "at_once",
        ),
        f"{CHANGES}::test_a_run_that_hangs_is_ended_when_its_time_is_over",
    ),
    mutation(
        "an-application-is-waited-for",
        "F44",
        "an application that never ends blocks the change until the time-out",
        o("plan/writers/ending_for_change", "attempt.writer.application is not None or unregistered", "unregistered"),
        f"{CHANGES}::test_an_application_gets_its_grace",
    ),
    mutation(
        "a-change-uses-up-retries",
        "F44",
        "an attempt that was ended for a change counts as a failure: a few savepoints fail the writer",
        o("model/classify", "STOPPED = (CANCELLED, FailureClass.ENDED_FOR_CHANGE)", "STOPPED = (CANCELLED,)"),
        f"{CHANGES}::test_an_application_gets_its_grace",
    ),
    mutation(
        "a-change-hides-failures",
        "F44",
        "a failure beside a change is repeated for ever instead of told",
        o(
            "plan/writers/ending_for_change",
            'return bool(gate.ends_runs(view)) and (deleted or view.timer(f"stop/{attempt.id}") is not None)',
            "return bool(gate.ends_runs(view))",
        ),
        f"{CHANGES}::test_a_failure_beside_a_change_is_a_failure",
    ),
    mutation(
        "the-lag-of-a-database-is-left-out",
        "I9 F640",
        "a row that is committed after rows with greater values is never read",
        a("read/jdbc_positions", "before(self.kind, self.to, lag)", "before(self.kind, self.to, 0)"),
        f"{DATABASES}::test_where_the_next_read_begins",
    ),
    mutation(
        "equal-values-are-left-out",
        "I9 F640",
        "a read of a database begins behind the position: rows with an equal value are lost",
        a(
            "read/jdbc",
            'within = f"{column} >= {jp.literal(kind, low)} AND {within}"',
            'within = f"{column} > {jp.literal(kind, low)} AND {within}"',
        ),
        f"{DATABASE_READS}::test_a_table_that_changes_between_two_runs",
    ),
    mutation(
        "rows-of-a-database-are-read-again",
        "I9 F641",
        "a retry or a lost executor asks the database again, which may answer something else",
        a("read/jdbc", "reader.load().localCheckpoint()", "reader.load()"),
        f"{DATABASE_READS}::test_rows_are_read_once",
    ),
    mutation(
        "an-insert-of-a-database-writes-rows-twice",
        "I9 F640",
        "rows that are read again are inserted again",
        o(
            "api/jdbc",
            'if operation in ("Insert", "BulkInsert") and duplicates != Duplicates.DROP:',
            'if operation == "BulkInsert" and duplicates != Duplicates.DROP:',
        ),
        f"{DATABASE_SPECS}::test_problems_name_field_value_and_rule",
    ),
    mutation(
        "a-query-leaves-its-parentheses",
        "F642",
        "a query closes the parentheses that the runtime puts around it",
        o("api/jdbc", "        if depth < 0:\n            break\n", ""),
        f"{DATABASE_SPECS}::test_problems_name_field_value_and_rule",
    ),
    mutation(
        "a-backtick-hides-a-statement",
        "F642",
        "between backticks, which are no quotes in PostgreSQL, a query has a second statement",
        o("api/jdbc", r"\x60[^\x60\x27\x22;\\$#()]*\x60", r"\x60[^\x60]*\x60"),
        f"{DATABASE_SPECS}::test_nothing_gets_out_of_its_place",
    ),
    mutation(
        "one-broker-is-enough",
        "F633 I9",
        "one broker that has just started ends a stream for ever, or its topic is read from the beginning again",
        a("read/kafka", "        if not left or not (lost or look.never):\n", "        if True:\n"),
        f"{LOOKS}::test_a_broker_that_has_just_started_ends_nothing",
    ),
    mutation(
        "a-list-of-topics-is-complete",
        "F633 I9",
        "a topic that one broker leaves out of its list does not exist",
        a("read/kafka", "{name: self._exists(name) for name", "{name: False for name"),
        f"{LOOKS}::test_a_list_that_leaves_a_topic_out_says_nothing_of_it",
    ),
    mutation(
        "what-may-not-be-told-is-gone",
        "F633 I9",
        "a topic that the brokers may not tell of for a while does not exist",
        a("read/kafka", "    if refused:\n", "    if False:\n"),
        f"{LOOKS}::test_what_may_not_be_told_is_no_loss",
    ),
    mutation(
        "a-bad-record-is-set-aside-after-the-commit",
        "F637 I9",
        "what a commit leaves out is counted, and its content is written by nobody",
        a(
            "writer/commit",
            "            file = batch.bad.set_aside(self._table.storage, self._job.writer, bad)\n",
            '            file = f"{bad_records.folder_of(self._job.writer)}/later.json"\n',
        ),
        f"{BAD_RECORDS}::test_each_is_left_out_of_one_commit",
    ),
    mutation(
        "what-is-bad-is-found-in-another-execution",
        "F638 I9",
        "bad rows of a query that gives other rows each time are looked for, and left out",
        a(
            "writer/commit",
            "batch.bad is not None and self._repeatable(made)",
            "batch.bad is not None",
        ),
        f"{BAD_RECORDS}::test_rows_that_differ_each_time_are_not_spared",
    ),
    mutation(
        "two-executions-say-what-is-bad",
        "F638 I9",
        "rows are left out of another execution of the query than the one in which they are looked for",
        a("writer/commit", "        kept = marks.persist()\n", "        kept = marks\n"),
        f"{BAD_RECORDS}::test_what_is_bad_now_and_good_a_moment_later",
    ),
    mutation(
        "bad-records-are-counted-in-every-commit",
        "F637",
        "the total of a writer begins anew with each of its attempts",
        a("writer/attempt", "        self._tally.bad_records = done.bad\n", ""),
        f"{BAD_RECORDS}::test_a_limit_and_a_total",
    ),
    mutation(
        "a-bad-record-that-is-gone-is-passed-over",
        "F637 I9",
        "a record that was removed before its content was read is in no file",
        a("read/bad_records", "        if gone:\n", "        if len(gone) > len(bad):\n"),
        f"{BAD_RECORDS}::test_a_file_of_them",
    ),
    mutation(
        "one-replica-says-which-schemas-there-are",
        "F639 I9",
        "an id that a registry does not know at once makes its records bad ones",
        a("read/registry", "        if not left or all(", "        if left >= 0 or all("),
        f"{REGISTRY}::test_one_replica_may_not_know_it_yet",
    ),
)

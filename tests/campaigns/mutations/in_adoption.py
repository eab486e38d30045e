"""Mutations of adoption, of reports on writers without the lock, and of savepoints."""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import RUNTIME, SETTLING, a
from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.in_settling import o
from tests.campaigns.mutations.mutation import mutation

ADOPTION = "tests/tiers/unit/plan/gate/test_adoption.py"
TABLES = f"{RUNTIME}/agent/test_adopted_tables.py"
ROWS = f"{RUNTIME}/agent/test_stored_rows.py"
SAVEPOINTS = f"{RUNTIME}/agent/test_savepoints.py"
REQUESTS = "tests/tiers/unit/plan/requests/test_savepoint_requests.py"
GUARD = "TimelineGuardTest.aSavepointIsTheAgentsBehindTheClosedGate"
KNOWN = "    return is_mine(view) and view.gate.was_open"
KEPT_ALREADY = (
    "            if not any(kept.requested == commit.requested and not kept.pending for kept in timeline.savepoints):\n"
)

ADOPTING = (
    mutation(
        "nulls-that-order-rows-are-adopted",
        "F331",
        "an ordinary upsert makes an adopted table unreadable",
        a("agent/preparation", "        if unordered:\n", "        if not context.spec.ordering:\n"),
        "tests/tiers/hudi/test_adoption.py::test_a_row_that_an_update_would_make_unreadable_is_found",
    ),
    mutation(
        "one-named-adopts-all",
        "I7",
        "all pending instants of former writers are settled as soon as one of them is named",
        o("plan/gate/adoption", "    if unnamed:\n", "    if len(unnamed) == len(found):\n"),
        f"{ADOPTION}::test_nothing_is_touched_until_every_pending_instant_is_named",
    ),
    mutation(
        "adopted-although-it-lives",
        "I7",
        "a heartbeat file that is young stops no adoption",
        o("plan/gate/adoption", "    if beating:\n", "    if not found:\n"),
        f"{ADOPTION}::test_a_living_writer_is_waited_for",
    ),
    mutation(
        "adopted-whatever-it-is",
        "I4 I7",
        "an instant that the agent cannot bring to an end is adopted when it is named",
        o("plan/gate/adoption", "    if foreign:\n", "    if not found:\n"),
        f"{ADOPTION}::test_what_cannot_be_settled_here_is_refused_although_named",
    ),
    mutation(
        "a-released-table-is-known",
        "I7",
        "what others write between two HudiTables of one path counts as adopted",
        [
            o(
                "plan/gate/releasing",
                ('        restore_baseline="",\n        adopted=False,'),
                '        restore_baseline="",',
            ),
            o(
                "plan/gate/gate",
                "    return is_mine(view) and view.gate.was_open",
                "    return view.gate.was_open",
            ),
        ],
        f"{ADOPTION}::test_a_released_table_is_looked_at_again",
    ),
    mutation(
        "hostile-properties-are-adopted",
        "I9",
        "what a table's properties say to writers is not looked at",
        a("agent/adoption", "        if key.startswith(_HOSTILE) and", "        if not key and"),
        f"{TABLES}::test_a_property_that_does_not_fit",
    ),
    mutation(
        "a-timeline-in-the-future-is-adopted",
        "I10",
        "a table whose newest instant is in the future is adopted at once",
        a("agent/adoption", "    if newest[:14] <= limit[:14]:\n", "    if newest:\n"),
        f"{TABLES}::test_a_timeline_that_is_ahead_is_waited_for",
    ),
    mutation(
        "complete-is-ours",
        "I7",
        "a completed instant is taken for one of ours",
        a("agent/facts", "if not i.pending and i.completion > clock)", "if i.pending and i.completion > clock)"),
        f"{SETTLING}::test_a_completed_instant_past_the_clock_is_nobodys_of_ours",
    ),
    mutation(
        "a-timeline-without-a-beginning",
        "F630 I5",
        "files of a write that is pending, and may never commit, are rows of a table without a metadata table",
        a("agent/preparation", "        if metadata_in_force.goes(self._options):\n", "        if False:\n"),
        f"{RUNTIME}/agent/test_assignment.py::test_a_table_without_a_metadata_table_begins_before_its_first_commit",
        "tests/tiers/hudi/test_first_commit.py::test_files_of_an_older_write_that_is_pending_are_no_rows",
    ),
    mutation(
        "a-beginning-before-archived-commits",
        "F630 I8",
        "a beginning is put before commits, so that the files of archived ones are no rows any more",
        a(
            "agent/creation",
            "return not (timeline.begun or written or table.has_archive())",
            "return not timeline.begun",
        ),
        f"{RUNTIME}/agent/test_creation.py::test_what_was_committed_is_never_after_a_beginning",
    ),
    mutation(
        "a-beginning-beside-a-commit",
        "F630 I8",
        "whether anything was committed is looked at before the lock only",
        a(
            "agent/creation",
            "            if _lacks_beginning(table):\n                table",
            "            if True:\n                table",
        ),
        f"{RUNTIME}/agent/test_creation.py::test_what_was_committed_is_never_after_a_beginning",
    ),
    mutation(
        "the-beginning-is-a-commit",
        "F630",
        "readers, triggers and status take the beginning for a commit of somebody",
        a("table/timeline", "elif instant.requested == BEGINNING and not instant.pending:", "elif False:"),
        f"{RUNTIME}/table/test_timeline.py::test_the_beginning_is_no_instant",
    ),
    mutation(
        "a-writer-puts-the-beginning",
        "F630 I8",
        "a writer may put a beginning before the timeline",
        j(
            "OwnInstants",
            "if (me.isWriter()) {\n            throw ErrorCode.NOT_OWNER.refusal(\"only the table's agent begins",
            "if (false) {\n            throw ErrorCode.NOT_OWNER.refusal(\"only the table's agent begins",
        ),
        t("TimelineGuardTest.theBeginningOfATimelineIsTheAgentsUnderTheLock"),
    ),
    mutation(
        "rows-are-adopted-where-no-writer-looks",
        "F631",
        "a table of 8 buckets is adopted as one of 16: every update of half of the rows adds a second one",
        a("agent/stored_rows", "row.bucket is not None and in_buckets[row.group] != row.bucket", "False"),
        f"{ROWS}::test_a_row_lies_where_its_key_is_looked_for",
        "tests/tiers/hudi/test_adoption.py::test_an_index_that_would_find_no_row_is_refused",
    ),
    mutation(
        "a-write-without-files-hides-the-index",
        "F631",
        "after a write without files a table is adopted with any index",
        a("agent/stored_rows", "{*groups, *(row.group for row in rows)}", "{*groups}"),
        f"{ROWS}::test_the_rows_tell_the_index_when_the_last_write_has_no_files",
    ),
    mutation(
        "keys-of-another-form-are-adopted",
        "F631",
        "a table whose keys lack the name of their field is adopted: every update adds a second row",
        a(
            "agent/stored_rows",
            "        if not re.fullmatch(form.pattern, row.key, re.DOTALL):\n",
            "        if False:\n",
        ),
        f"{ROWS}::test_keys_of_another_form",
    ),
    mutation(
        "the-first-keys-are-like-all-keys",
        "F631",
        "a table that was written by two releases of Hudi is adopted, with keys of both forms",
        a(
            "agent/stored_rows",
            "    return said or key_problems(spec, _other_keys(frame, spec))\n",
            "    return said\n",
        ),
        "tests/tiers/hudi/test_adoption.py::test_keys_without_the_name_of_their_field_are_refused",
    ),
    mutation(
        "rows-in-log-files-are-adopted",
        "F631",
        "rows that others put into log files are adopted, where no index but that of buckets looks",
        a("agent/adoption", "        *stored_rows.log_problems(spec, count, found.only_in_logs),\n"),
        f"{TABLES}::test_the_index_is_told_by_the_names_of_file_groups",
    ),
)
KEEPING = (
    mutation(
        "the-metadata-table-beside-writers",
        "I12",
        "the metadata table is deleted and made anew although writers may still write",
        o("plan/requests/metadata_table", "    if not drained or (", "    if (False) or ("),
        (
            "tests/tiers/unit/plan/requests/"
            "test_metadata_requests.py::test_running_writers_finish_and_nobody_new_starts_before_the_change"
        ),
    ),
    mutation(
        "a-writer-comes-before-the-metadata-table-is-changed",
        "I12",
        "a writer that keeps up another metadata table than the others starts before the gate is closed",
        o("plan/gate/gate", " and not metadata_table.unfinished(view)\n", "\n"),
        (
            "tests/tiers/unit/plan/requests/"
            "test_metadata_requests.py::test_nobody_starts_with_the_new_options_before_the_change"
        ),
    ),
    mutation(
        "the-metadata-table-behind-an-open-gate",
        "I12",
        "an agent changes the metadata table although the gate was opened before it had the lock",
        a(
            "agent/metadata_table",
            "            if self.context.gate_state() != GateState.CLOSED:\n",
            '            if self.context.gate_state() == "":\n',
        ),
        f"{RUNTIME}/agent/test_metadata_table.py::test_the_gate_is_looked_at_under_the_lock",
    ),
    mutation(
        "a-listing-with-something-pending",
        "I4",
        "the metadata table is made anew while an instant is pending, whose files are then listed in it",
        a(
            "agent/metadata_table",
            "            if pending:\n",
            "            if not pending and self.context.gate_state() == '':\n",
        ),
        f"{RUNTIME}/agent/test_metadata_table.py::test_it_waits_for_what_is_pending",
    ),
    mutation(
        "a-half-made-metadata-table-is-made",
        "I6",
        "a metadata table counts as made although the table's configuration names an unfinished part of it",
        a("agent/metadata_table", "        if half_made or (FILES", "        if (FILES"),
        f"{RUNTIME}/agent/test_metadata_table.py::test_made_is_what_the_tables_configuration_says",
    ),
    mutation(
        "a-savepoint-beside-writers",
        "I9",
        "a savepoint is asked for as soon as the gate is closed, whoever still writes",
        o("plan/gate/gate", "and not _changed(view) and not writers_left(view)", "and not _changed(view)"),
        f"{REQUESTS}::test_running_writers_finish_nobody_new_starts_and_then_it_is_taken",
    ),
    mutation(
        "a-savepoint-with-something-pending",
        "I9",
        "a savepoint is taken although an instant is pending, which then is on neither side",
        a("agent/savepoints", "        if timeline.pending:\n", "        if not timeline.instants:\n"),
        f"{SAVEPOINTS}::test_what_is_pending_is_waited_for_and_what_is_nobodys_is_refused",
    ),
    mutation(
        "a-savepoint-twice",
        "I6",
        "an agent does not look whether the one before it has taken the savepoint",
        [
            a(
                "agent/savepoints",
                "        taken = self.table.savepoint_with(timeline, comment)\n",
                "        taken = None\n",
            ),
            a(
                "agent/savepoints",
                (
                    "            if not any(kept.requested == commit.requested and not kept.pending for kept in "
                    "timeline.savepoints):\n"
                ),
                "            if commit:\n",
            ),
        ],
        f"{SAVEPOINTS}::test_one_that_was_taken_before_its_agent_died_is_found_again",
    ),
    mutation(
        "a-savepoint-of-anybody",
        "I7",
        "the storage wrapper lets whoever holds the lock begin a savepoint",
        j(
            "TimelineGuard",
            "                if (InstantProtocol.SAVEPOINT.equals(target.action)\n"
            "                        && !session.instants().ownsSavepoint(target.instant)) {\n"
            "                    // a savepoint has no requested file, where it would have been refused\n",
            "                if (false) { // a savepoint has no requested file, where it would have been refused\n",
        ),
        t(GUARD),
    ),
    mutation(
        "a-savepoint-at-an-open-gate",
        "I9",
        "the agent may begin a savepoint whatever the gate says",
        j("OwnInstants", "if (me.isWriter() || !lock.isGateClosed()) {", "if (me.isWriter()) {"),
        t(GUARD),
    ),
    mutation(
        "a-record-of-a-savepoint-completes-a-commit",
        "I3",
        "under the record of a savepoint its commit may be completed once more",
        j(
            "OwnInstants",
            "if (savepoints.containsKey(instant) != InstantProtocol.SAVEPOINT.equals(action)) {",
            "if (false) {",
        ),
        t(GUARD),
    ),
)

"""Mutations of restore: who may undo acknowledged commits, when, which ones, and how often."""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import a
from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.in_settling import o
from tests.campaigns.mutations.mutation import AVAILABILITY, Edit, mutation

RESTORES = "tests/tiers/unit/runtime/agent/test_restores.py"
REQUESTS = "tests/tiers/unit/plan/requests/test_restore_requests.py"
POSITIONS = "tests/tiers/unit/runtime/read/test_positions.py"
PROGRESS = "tests/tiers/unit/runtime/read/test_progress.py"

UNDOING = (
    mutation(
        "a-restore-asks-nobody",
        "I8",
        "kubectl hudi restore undoes commits at once, with a slip of the hand",
        Edit("operator/hudi_kubectl/verbs.py", "    confirm(_what_a_restore_undoes(table, to), how)\n", ""),
        "tests/tiers/unit/kubectl/test_verbs.py::test_a_restore_says_what_it_undoes_and_needs_a_yes",
    ),
    mutation(
        "a-writer-removes-commits",
        "I8",
        "a writer that holds the lock may remove completed instants",
        j(
            "OwnInstants",
            '        if (me.isWriter()) {\n            throw ErrorCode.NOT_OWNER.refusal("a writer may not remove',
            '        if (held == null) {\n            throw ErrorCode.NOT_OWNER.refusal("a writer may not remove',
        ),
        t("TimelineGuardTest.deletingAndRenamingNeedTheLock"),
    ),
    mutation(
        "restored-without-a-request",
        "I8",
        "an agent may begin a restore that nobody has asked for",
        j(
            "OwnInstants",
            "if (RESTORE.equals(action) && !lock.mayRestore()) {",
            "if (RESTORE.equals(action) && lock.clock() == null) {",
        ),
        t("TimelineGuardTest.aRestoreIsTheAgentsBehindTheGateThatIsClosedForIt"),
    ),
    mutation(
        "restored-behind-any-gate",
        "I8 F20",
        "a restore begins behind a gate that is open, or closed for something else",
        j("OwnInstants", "if (me.isWriter() || !lock.isGateRestoring(nonce)) {", "if (me.isWriter()) {"),
        t("TimelineGuardTest.aRestoreIsTheAgentsBehindTheGateThatIsClosedForIt"),
    ),
    mutation(
        "a-withdrawn-restore-begins",
        "I8 F8",
        "a restore begins although the gate has changed since the lock was acquired",
        j("InstantProtocol", "    txn = gate == 0 ? txn : txn.modRevision(keys.gate(), gate); // F8\n"),
        t("TimelineGuardTest.aRestoreIsTheAgentsBehindTheGateThatIsClosedForIt"),
    ),
    mutation(
        "restored-beside-writers",
        "I8 F20",
        "the gate says that it is closed for a restore while writers may still commit",
        o("plan/gate/gate", "!= nonce and not writers_left(view):", "!= nonce:"),
        f"{REQUESTS}::test_running_writers_finish_nobody_new_starts_and_then_commits_are_undone",
    ),
    mutation(
        "what-is-there-at-the-beginning-is-restored",
        "I8",
        "a nonce that was there when the table was created is carried out",
        o(
            "plan/requests/restores",
            "view.table.suspend or wanted.nonce == baseline(view, adopted=adopted):",
            "view.table.suspend:",
        ),
        f"{REQUESTS}::test_a_nonce_that_is_there_at_the_beginning_is_never_carried_out",
    ),
    mutation(
        "what-etcd-forgot-is-restored-again",
        "I8 F621",
        "a restore of which an older etcd knows nothing is carried out again",
        o("plan/gate/gate", "if freeze_reason(view) and view.table.restore", "if not view and view.table.restore"),
        f"{REQUESTS}::test_an_etcd_that_was_set_back_does_not_restore_again",
    ),
    mutation(
        "a-nonce-counts-twice",
        "I8",
        "a nonce that was carried out is carried out again when it comes back",
        o(
            "plan/requests/restores",
            "_record(view, wanted.nonce).ended else wanted",
            "_record(view, wanted.nonce).result is Result.FAILED else wanted",
        ),
        f"{REQUESTS}::test_a_nonce_is_carried_out_once_whatever_yaml_is_applied_again",
    ),
    mutation(
        "half-a-restore-is-withdrawn",
        "I6 I8",
        "a restore that has begun is given up when the spec does not name it any more",
        o(
            "plan/requests/restores",
            "    if going_on is not None:\n        return going_on\n",
            "    if going_on == view.table.restore:\n        return going_on\n",
        ),
        f"{REQUESTS}::test_what_has_begun_is_ended_and_what_has_not_may_be_withdrawn",
    ),
    mutation(
        "a-withdrawn-restore-leaves-the-gate",
        "I8 F8",
        "the gate opens from the revision at which it was closed for a restore",
        o("plan/gate/gate", "    if view.gate.restoring:\n", "    if restores.recorded(view):\n"),
        f"{REQUESTS}::test_a_withdrawn_request_moves_the_gate_before_it_opens",
    ),
    mutation(
        "undone-by-requested-time",
        "I8",
        "what a restore undoes is told by requested time",
        a(
            "agent/restores",
            "[i for i in writes if i.completion > savepoint.completion]",
            "[i for i in writes if i.completion > savepoint.requested]",
        ),
        f"{RESTORES}::test_what_completed_after_the_boundary_goes_and_nothing_else",
    ),
    mutation(
        "a-service-is-named-once",
        "I6",
        "an agent that dies after a compaction was made pending again leaves it on the timeline",
        a(
            "agent/restores",
            "        if instant.planned and instant.planned not in (instant.action, LOG_COMPACTION):\n",
            "        if instant.pending:\n",
        ),
        f"{RESTORES}::test_what_a_service_wrote_is_named_as_it_is_and_as_it_was",
    ),
    mutation(
        "restored-without-its-files",
        "I8",
        "commits are undone although a file that the savepoint needs is gone",
        a("agent/restores", "        if missing:\n", '        if missing == "all":\n'),
        f"{RESTORES}::test_what_cannot_be_restored_is_refused_and_untouched",
    ),
    mutation(
        "restored-with-something-pending",
        "I7 I8",
        "commits are undone beside a pending instant of nobody",
        a("agent/restores", "        if foreign:\n", '        if foreign == ["all"]:\n'),
        f"{RESTORES}::test_what_cannot_be_restored_is_refused_and_untouched",
    ),
    mutation(
        "refused-and-undone",
        "F507",
        "a restore that is refused reports the commits that an earlier agent wanted to undo",
        a("agent/restores", "            if isinstance(error, Refused):\n", "            if error is None:\n"),
        f"{RESTORES}::test_one_that_is_refused_after_its_agent_died_undid_nothing",
    ),
    mutation(
        "savepoints-go-before-the-plan",
        "F507 I8",
        "later savepoints are deleted although the restore may still be refused",
        a(
            "agent/restores",
            "                instant = self.table.request_restore(",
            "                self._drop(wanted.dropped)\n                instant = self.table.request_restore(",
        ),
        f"{RESTORES}::test_a_restore_without_a_plan_has_changed_nothing",
    ),
    mutation(
        "savepoints-stay-beside-the-plan",
        "F507 I8",
        "later savepoints are not deleted, so that Hudi refuses to undo their commits",
        a("agent/restores", "            self._drop(later_savepoints(timeline, ahead.boundary))\n", ""),
        f"{RESTORES}::test_the_next_agent_drops_the_later_savepoints",
    ),
    mutation(
        "rollbacks-of-a-completed-restore",
        "F509 availability",
        "rollbacks that a completed restore has left stay pending",
        a("agent/restores", "                self._end_rollbacks()\n", ""),
        f"{RESTORES}::test_rollbacks_that_a_completed_restore_leaves_are_deleted",
    ),
    mutation(
        "restored-to-what-was-asked-first",
        "F525 I8",
        "a restore goes to a savepoint whose request was taken back",
        a(
            "agent/restores",
            "savepoint=known.savepoint if known.result is Result.RUNNING else request.savepoint,",
            "savepoint=known.savepoint or request.savepoint,",
        ),
        f"{RESTORES}::test_the_savepoint_is_that_of_the_request_until_it_has_begun",
    ),
    mutation(
        "what-was-asked-first-is-refused",
        "F533",
        "a restore that is refused is shown with a savepoint whose request was taken back",
        a("agent/restores", "stored if stored.result is Result.RUNNING else base", "stored if stored.result else base"),
        f"{RESTORES}::test_what_is_refused_or_waits_is_what_was_requested",
    ),
    mutation(
        "a-completed-restore-is-whole",
        "F534 I8",
        "a commit that a restore did not undo is found once, and then forgotten",
        a(
            "agent/restores",
            "                    if left\n                    else",
            "                    if not timeline\n                    else",
        ),
        f"{RESTORES}::test_a_commit_that_a_restore_has_not_undone_is_named",
    ),
    mutation(
        "a-restore-is-the-oldest",
        "F524",
        "deletions of a table that was ever restored are not carried over",
        a("table/timeline", "if instant.action not in NEVER_ARCHIVED", "if instant.action"),
        "tests/tiers/unit/runtime/read/test_deletions.py::test_a_base_file_is_complete_behind_what_is_never_archived",
    ),
    mutation(
        "a-restore-notes-no-loss",
        "F526 availability",
        "after a restore that has lost an executor the gate stays closed until a person deletes the agent",
        a("agent/restores", "self.unproven = self.unproven or left is not None", "self.unproven = self.unproven"),
        f"{RESTORES}::test_an_agent_whose_restore_has_lost_an_executor_ends",
    ),
    mutation(
        "only-services-note-losses",
        "F526 I12",
        "what a lost executor still writes after a restore or a bootstrap is not swept",
        a("services/tasks", "self.unproven = self.unproven or sp.lost_executors(self.spark)", "pass"),
        f"{RESTORES}::test_a_restore_that_failed_beside_a_loss_is_for_the_next_agent",
    ),
    mutation(
        "a-copy-of-the-properties-is-no-table",
        "F527",
        "an agent makes a table anew whose properties were just being changed",
        a(
            "table/hudi",
            '(".hoodie/hoodie.properties", ".hoodie/hoodie.properties.backup")',
            '(".hoodie/hoodie.properties",)',
        ),
        "tests/tiers/unit/runtime/table/test_existence.py::test_a_table_has_properties_or_a_copy_of_them",
    ),
    mutation(
        "restored-twice",
        "I6 I8",
        "an agent does not look whether the one before it has completed the restore",
        a(
            "agent/restores",
            "            done = self._ended(base)\n",
            "            done = None\n",
        ),
        f"{RESTORES}::test_one_whose_agent_died_before_its_word_is_found",
    ),
    mutation(
        "rollbacks-of-a-restore-are-settled",
        "I7",
        "settling rolls back by itself what a restore has made pending again",
        a(
            "settle/rollback",
            "    if found is not None and restoring:",
            "    if found is not None and restoring == instant:",
        ),
        f"{RESTORES}::test_settling_claims_a_restore_with_everything_that_is_pending_and_leaves_it_to_its_execution",
    ),
    mutation(
        "a-reader-of-what-was-undone-goes-on",
        "I9",
        "an incremental reader does not notice that the commit it stands behind was undone",
        a("read/positions", "if t != BEGINNING and t not in known and", "if t != BEGINNING and not known and"),
        f"{POSITIONS}::test_a_position_behind_a_commit_that_was_undone_is_lost",
    ),
    mutation(
        "fenced-readers-do-not-wait",
        "I8",
        (
            "a reader that waits for the oldest pending write gives what was requested after it, and never the write "
            "that ends last"
        ),
        a("read/positions", "if self.wants(i) and (not fence or i.requested < fence))", "if self.wants(i))"),
        f"{POSITIONS}::test_a_long_writer_that_finishes_last",
        "tests/tiers/hudi/test_matrix.py::test_a_cell_of_pulls_is_ok",
    ),
    mutation(
        "manifests-that-a-savepoints-names-are-pruned",
        "I9",
        "of the lists of files that a writer had read at a savepoint only the last one stays",
        a("read/manifests", "for name in self._named_by(_name_in(path))}", "for name in {_name_in(path)}}"),
        f"{PROGRESS}::test_what_a_savepoint_would_bring_back_stays",
    ),
    mutation(
        "progress-of-a-savepoint-is-pruned",
        "I9",
        "the list of files that a writer had read at a savepoint is deleted",
        a(
            "read/progress",
            'if c.get("manifest")), 1)',
            'if c.get("manifest")), 0)',
        ),
        f"{PROGRESS}::test_progress_that_a_savepoint_would_bring_back_is_kept",
    ),
    mutation(
        "a-program-reads-on-behind-a-restore",
        "F635 I9",
        "a program does not notice that the commits it has read were undone",
        a("read/incremental", "        if position.given:\n", "        if False:\n"),
        f"{POSITIONS}::test_a_pull_asks_whether_what_was_returned_is_still_there",
    ),
    mutation(
        "a-chosen-time-is-one-of-a-commit",
        AVAILABILITY,
        "a program that begins at a time of its own choice is told that the table was restored",
        a("read/incremental", "        if position.given:\n", "        if True:\n"),
        f"{POSITIONS}::test_a_time_that_somebody_has_chosen_is_that_of_no_commit",
    ),
)

"""Mutations of the agent: look and roll back, sweep, settling, services, archival.

And of a writer's conclusions about its own commits.
"""

from __future__ import annotations

from tests.campaigns.mutations.mutation import Edit, mutation

RUNTIME = "tests/tiers/unit/runtime"
ROLLBACK = f"{RUNTIME}/settle/test_rollback.py"
SETTLER = f"{RUNTIME}/settle/test_settler.py"
SETTLING = f"{RUNTIME}/settle/test_settling.py"
SERVICES = f"{RUNTIME}/services/test_service_runner.py"
TRIGGERS = f"{RUNTIME}/services/test_triggers.py"


def a(file: str, old: str, new: str = "") -> Edit:
    return Edit(f"spark-images/hudi_runtime/{file}.py", old, new)


ETCD = f"{RUNTIME}/process/test_etcd.py"

UNREADABLE = (
    mutation(
        "one-value-stops-every-pass",
        "F417",
        "a value that is no JSON ends each look of the agent at the whole table",
        a("process/etcd", "    except ValueError as error:", "    except ZeroDivisionError as error:"),
        f"{ETCD}::test_a_value_that_cannot_be_read_hides_no_other",
    ),
    mutation(
        "an-unreadable-value-is-an-absent-one",
        "F417",
        "a single key that cannot be read has the value of one that was never written",
        a("process/etcd", "        _ = entry.readable\n"),
        f"{ETCD}::test_a_single_value_that_cannot_be_read_is_no_absent_one",
    ),
    mutation(
        "an-unreadable-owner-is-nobody",
        "F417 I11",
        "who is not registered has left, although an instant may be its own",
        a("settle/settle", "            and not self.of_unknown_owner\n"),
        f"{SETTLER}::test_an_instant_without_a_readable_owner_may_be_anybodys",
    ),
    mutation(
        "settled-although-an-instant-may-be-its-own",
        "F417 I7",
        "an incarnation is swept while the owner of an instant cannot be read",
        a("settle/settle", "        if records.of_unknown_owner:\n            #", "        if False:\n            #"),
        f"{SETTLER}::test_a_value_that_is_no_json_keeps_no_instant_waiting",
    ),
    mutation(
        "an-unreadable-registration-is-a-writers",
        "F417 I12",
        "services begin beside an incarnation that may be an agent",
        a("settle/settle", "if entry.unreadable or entry.read(Registration)", "if entry.read(Registration)"),
        f"{SETTLER}::test_who_cannot_be_read_may_be_an_agent",
    ),
    mutation(
        "unreadable-given-up-is-forgotten",
        "F417 I4",
        "instants that were given up are forgotten when their record cannot be read",
        a("settle/settle", "Abandoned.from_json(entry.readable).instants", "Abandoned.from_json(entry.value).instants"),
        f"{SETTLER}::test_what_was_given_up_is_not_written_over_when_it_cannot_be_read",
    ),
    mutation(
        "an-agent-stays-with-a-wrong-clock",
        "F414",
        "an agent whose times are refused goes on, and settles nothing",
        a("agent/agent", "            raise ClockRefused(refused)\n", "            pass\n"),
        f"{RUNTIME}/agent/test_agent.py::test_an_agent_whose_times_nobody_accepts_is_left_at_once",
    ),
)

NOT_KEPT = a(
    "settle/rollback",
    '    if found is not None and not found.pending:\n        return Step.KEEP, ""\n    restoring',
    "    restoring",
)
NO_SECOND_LOOK = a(
    "settle/rollback",
    "if found is not None and (not found.pending or found.action not in tl.WRITE_ACTIONS):",
    "if found is not None and not victim:",
)

LOOK = (
    mutation(
        "completed-is-rolled-back",
        "I4 I8 F18",
        "a completed instant of a dead writer is rolled back like a pending one",
        NOT_KEPT,
        f"{SETTLING}::test_decision",
        f"{ROLLBACK}::test_completed_is_kept",
    ),
    mutation(
        "one-look-is-enough",
        "I4 I8 F18",
        "nobody looks once more directly before the rollback",
        NO_SECOND_LOOK,
        f"{ROLLBACK}::test_completed_between_the_looks_is_kept",
    ),
    mutation(
        "completed-in-the-drain-is-rolled-back",
        "I3 I4 I8",
        "what a dead writer's last request has completed is rolled back by both looks",
        (NOT_KEPT, NO_SECOND_LOOK),
        f"{ROLLBACK}::test_completed_is_kept",
        "tests/tiers/hudi/test_fault_cells.py::test_what_lands_in_the_drain_is_kept",
    ),
    mutation(
        "rollback-with-another-policy",
        "I7 F2",
        "the rollback goes on with a policy that lets Hudi choose instants by heartbeat",
        a("settle/rollback", "    if not config.getFailedWritesCleanPolicy().isNever():\n", "    if config is None:\n"),
        f"{ROLLBACK}::test_policy_must_be_never_on_the_built_config",
    ),
    mutation(
        "policy-of-the-builder",
        "I7 F2",
        "the policy NEVER is not set on the built config, where Hudi has made LAZY of it",
        a("settle/rollback", '    config.setValue(NEVER_KEY, "NEVER")\n'),
        f"{ROLLBACK}::test_pending_is_rolled_back_and_verified",
    ),
    mutation(
        "hudis-word-is-enough",
        "I5 F9 F18",
        "a rollback is done when the call comes back",
        a("settle/rollback", "    _verify(table, victim)\n    return", "    return"),
        f"{ROLLBACK}::test_not_done_while_the_timeline_shows_it",
    ),
    mutation(
        "heartbeats-of-the-dead-stay",
        "F9",
        "heartbeat files of a dead writer stay, and Hudi refuses its rollback for ever",
        a("settle/rollback", "    for heartbeat in sorted(touched):\n        remove_heartbeat(table, heartbeat)\n"),
        f"{ROLLBACK}::test_gone_but_named_by_a_pending_rollback_is_finished",
    ),
    mutation(
        "heartbeat-of-a-compaction-stays",
        "F9",
        "the heartbeat file of a dead executor makes Hudi wait for it when its compaction is executed again",
        a(
            "services/rewriting",
            (
                "        remove_heartbeat(self.table, instant)\n"
                "        with self.table.client(self.config(options)) as client:\n"
                "            client.compact("
            ),
            "        with self.table.client(self.config(options)) as client:\n            client.compact(",
        ),
        f"{TRIGGERS}::test_the_heartbeat_of_a_dead_executor_goes_before_its_compaction_is_executed_again",
    ),
    mutation(
        "gone-is-nothing-to-do",
        "I5 F18",
        "an instant that is gone needs nothing, also when a pending rollback names it",
        a(
            "settle/rollback",
            'return (Step.ROLL_BACK, instant) if instant in victims else (Step.NOTHING, "")',
            'return Step.NOTHING, ""',
        ),
        f"{SETTLING}::test_decision",
        f"{ROLLBACK}::test_gone_but_named_by_a_pending_rollback_is_finished",
    ),
    mutation(
        "services-are-rolled-back",
        "F3 I12",
        "a pending compaction or clean of a dead agent is rolled back exactly",
        a(
            "settle/rollback",
            "        return Step.EXECUTE, instant\n"
            "    if found is not None:\n"
            '        return (Step.ROLL_BACK, instant) if found.action in tl.WRITE_ACTIONS else (Step.UNSUPPORTED, "")',
            "        return Step.ROLL_BACK, instant\n"
            "    if found is not None:\n"
            '        return (Step.ROLL_BACK, instant) if found.action in tl.WRITE_ACTIONS else (Step.UNSUPPORTED, "")',
        ),
        f"{SETTLING}::test_decision",
        f"{ROLLBACK}::test_service_instants_are_claimed_for_their_execution",
    ),
    mutation(
        "everything-can-be-rolled-back",
        "F3",
        "a pending clustering or restore is rolled back like a commit",
        a(
            "settle/rollback",
            'if found.action in tl.WRITE_ACTIONS else (Step.UNSUPPORTED, "")\n    return (Step.ROLL_BACK',
            'if found.action else (Step.UNSUPPORTED, "")\n    return (Step.ROLL_BACK',
        ),
        f"{SETTLING}::test_decision",
    ),
    mutation(
        "nobody-claims",
        "I12 I7 F3",
        "an instant is rolled back without claiming it",
        a("settle/rollback", "    claim(instant)\n    touched", "    touched"),
        f"{ROLLBACK}::test_nothing_is_touched_when_the_claim_is_refused",
        f"{ROLLBACK}::test_pending_is_rolled_back_and_verified",
    ),
    mutation(
        "the-archive-is-not-read",
        "I4 I8",
        "an instant that was completed and archived counts as gone: its files are swept",
        a("settle/sweep", "return table.has_archive() and table.archived_completed(instant)", "return False"),
        f"{ROLLBACK}::test_archived_as_completed_is_kept",
    ),
    mutation(
        "two-completions-are-one",
        "I4",
        "a timeline that says two things about one instant is believed",
        a(
            "table/timeline",
            (
                "    if len(completed) > 1:\n"
                '        raise TimelineError(f"instant {requested} is completed more than once")\n'
            ),
        ),
        f"{RUNTIME}/table/test_timeline.py::test_ambiguity_stops",
    ),
    mutation(
        "requested-files-say-pending",
        "I4 I8",
        "an instant is pending while files of its earlier states are there",
        a(
            "table/timeline",
            "        return replace(completed[0], planned=planned)\n",
            (
                "        return next((instant for instant in states if instant.pending), replace(completed[0], "
                "planned=planned))\n"
            ),
        ),
        f"{RUNTIME}/table/test_timeline.py::test_pending_is_what_has_no_completed_file",
    ),
    mutation(
        "foreign-instants-are-not-shown",
        "I7",
        "a pending instant of nobody is not reported: people learn nothing of a foreign writer",
        a(
            "agent/facts",
            "    return tuple(instant for instant in second.pending if instant.requested in suspects)\n",
            "    return ()\n",
        ),
        "tests/tiers/hudi/test_agent.py::test_rolls_back_exactly_the_dead_writers_instant",
        "tests/tiers/hudi/test_foreign.py::test_the_first_instant_of_a_foreign_writer_is_shown",
    ),
)

SWEEP = (
    mutation(
        "what-counts-is-swept",
        "I4 I8",
        "files are swept without a fresh look at their instant",
        a("settle/sweep", "    _check_uncounted(table, instant)\n    if metadata_timeline", "    if metadata_timeline"),
        f"{ROLLBACK}::test_sweep_deletes_nothing_of_an_instant_that_counts",
    ),
    mutation(
        "deleted-while-listing",
        "I4 I11",
        "data files are deleted before everything could be listed",
        a(
            "settle/sweep",
            "                    data[instant] += late_files(paths, instant)\n",
            (
                "                    data[instant] += late_files(paths, instant)\n"
                "                    for path in data[instant]:\n"
                "                        table.storage.delete(path)\n"
            ),
        ),
        f"{ROLLBACK}::test_sweep_deletes_nothing_after_a_failed_listing",
        f"{ROLLBACK}::test_sweep_deletes_nothing_of_an_instant_that_counts",
    ),
    mutation(
        "late-files-of-the-metadata-table-stay",
        "I5 F11",
        "late files in the metadata table are not swept",
        a("settle/sweep", "        found += listing.metadata[instant]\n"),
        f"{ROLLBACK}::test_sweep_deletes_what_bears_the_instant",
    ),
    mutation(
        "late-data-files-stay",
        "I5 F4",
        "late data files of a rolled back instant stay, and count after archival",
        a(
            "settle/sweep",
            "    deleted = sum(storage.delete(path) for path in found)\n",
            "    deleted = sum(storage.delete(path) for path in found if METADATA in path)\n",
        ),
        f"{ROLLBACK}::test_sweep_deletes_what_bears_the_instant",
    ),
    mutation(
        "markers-stay",
        "I5 F11",
        "markers of a rolled back instant stay",
        a(
            "settle/sweep",
            '    storage.delete(f".hoodie/.temp/{instant}", recursive=True)\n    remove_heartbeat(table, instant)\n',
        ),
        f"{ROLLBACK}::test_sweep_removes_markers_and_heartbeats",
    ),
    mutation(
        "a-prefix-is-enough",
        "I4 I8",
        "files of an instant whose time begins like the other's are swept with it",
        a("settle/sweep", 'rf"_{instant}\\.[^/]+$"', 'rf"_{instant}[^/]+$"'),
        f"{SETTLING}::test_a_file_bears_its_instant_only",
    ),
    mutation(
        "any-error-means-missing",
        "I4 I11",
        "a listing that fails says that there is no such folder",
        a(
            "table/storage",
            "return name in ABSENT",
            "return bool(name)",
        ),
        f"{RUNTIME}/table/test_storage.py::test_only_a_definite_answer_says_missing",
    ),
    mutation(
        "a-folder-that-is-not-listed-is-empty",
        "I4 I11",
        "a listing that fails says that there is nothing in the folder",
        a(
            "table/storage",
            "                raise Missing(relative) from error\n            raise\n        return {",
            "                raise Missing(relative) from error\n            return {}\n        return {",
        ),
        "tests/tiers/hudi/test_failed_reads.py::test_a_store_that_does_not_list_takes_nothing_away",
    ),
)

HANDED_OVER = a(
    "settle/settle",
    "            if entry.read(SettleRecord).phase is Phase.RollingBack and not stopping():\n                handed",
    "            if not stopping():\n                handed",
)
GIVEN_UP = a(
    "settle/settle",
    "                record.abandoned\n                and record.inc not in records.settles\n",
    "                record.inc not in records.settles\n",
)
UNPROVEN = a(
    "settle/settle",
    "        if unproven:\n            raise NotYet",
    "        if unproven and not me:\n            raise NotYet",
)
CLAIMED = "the claim of an instant asks once more whether its owner is proven dead"

SETTLE = (
    mutation(
        "settled-before-it-is-handed-over",
        "I1 F17",
        "the agent looks at incarnations that the operator has not handed over",
        HANDED_OVER,
        f"{SETTLER}::test_nothing_before_the_operator_hands_over",
        redundant=CLAIMED,
        pair="settled-while-on-the-wire",
    ),
    mutation(
        "settled-while-on-the-wire",
        "I1 I7 F17",
        "the agent rolls back while requests of the dead may be on the wire",
        (HANDED_OVER, UNPROVEN),
        f"{SETTLER}::test_nothing_before_the_operator_hands_over",
    ),
    mutation(
        "drained-is-proven",
        "F17 I12",
        "an agent whose requests may be on the wire counts as proven dead",
        a(
            "settle/settle",
            "            return settle.read(SettleRecord).phase >= Phase.RollingBack",
            "            return settle.read(SettleRecord).phase >= Phase.Draining",
        ),
        f"{SETTLING}::test_proof",
        f"{SETTLER}::test_an_unproven_agents_rollback_is_awaited",
    ),
    mutation(
        "pending-is-given-up",
        "I7 F2",
        "pending instants of living writers are treated like those that they have given up",
        GIVEN_UP,
        f"{SETTLER}::test_living_writers_are_left_alone",
        redundant=CLAIMED,
        pair="the-living-are-rolled-back",
    ),
    mutation(
        "the-living-are-rolled-back",
        "I7 F2",
        "pending instants of living writers are rolled back",
        (GIVEN_UP, UNPROVEN),
        f"{SETTLER}::test_living_writers_are_left_alone",
    ),
    mutation(
        "given-up-by-a-suspect",
        "I7 F4",
        "what a suspect has given up is rolled back before it is settled",
        a(
            "settle/settle",
            "                and record.inc not in records.settles\n                and time",
            "                and time",
        ),
        f"{SETTLER}::test_abandoned_of_a_suspect_waits_for_its_settling",
    ),
    mutation(
        "folders-are-listed-for-each-instant",
        "F530",
        "a table with many partitions and many lost races has no time for its services",
        a(
            "settle/settle",
            "            try:\n                if victim:\n",
            (
                "            try:\n                listing = Listing.of(self.table, [victim or instant])\n"
                "                if victim:\n"
            ),
        ),
        f"{SETTLER}::test_folders_are_listed_once_for_all_instants",
    ),
    mutation(
        "who-stops-lists-a-table",
        "F530",
        "an agent that is to hand over within seconds lists thousands of folders first",
        a("settle/settle", "        if not looked or stopping():\n", "        if not looked:\n"),
        f"{SETTLER}::test_who_stops_lists_nothing_more",
    ),
    mutation(
        "each-incarnation-has-its-listing",
        "F562",
        "a node's drivers die, and the agent lists the table once for each of them",
        a(
            "settle/settle",
            (
                "        for instant, end in self._ends(sorted(due), records, stopping):\n"
                "            done += sum(self._ended(one, instant, end) for one in handed if instant in one.due)\n"
            ),
            (
                "        for one in handed:\n"
                "            for instant, end in self._ends(sorted(one.due & due), records, stopping):\n"
                "                done += self._ended(one, instant, end)\n"
            ),
        ),
        f"{SETTLER}::test_folders_are_listed_once_for_all_incarnations",
    ),
    mutation(
        "each-writer-that-left-has-its-listing",
        "F562",
        "many batches have lost a race each, and the agent lists the table once for each of them",
        a(
            "settle/settle",
            (
                "        for instant, end in self._ends(sorted(every), records, stopping):\n"
                "            for inc in [inc for inc, instants in left.items() if instant in instants]:\n"
            ),
            (
                "        for instant, end in (x for t in sorted(every) for x in self._ends([t], records, stopping)):\n"
                "            for inc in [inc for inc, instants in left.items() if instant in instants]:\n"
            ),
        ),
        f"{SETTLER}::test_folders_are_listed_once_for_all_incarnations",
    ),
    mutation(
        "what-was-not-looked-at-is-forgotten",
        "F562 F4 I5",
        "an agent that stops forgets what it has not looked at, and a late file of it stays",
        a(
            "settle/settle",
            "        for inc in [inc for inc, instants in left.items() if not instants]:\n",
            "        for inc in left:\n",
        ),
        f"{SETTLER}::test_who_stops_forgets_only_what_it_has_looked_at",
    ),
    mutation(
        "who-stops-lists-every-folder",
        "F562",
        "an agent that is asked to end lists thousands of folders until it is killed",
        a("settle/sweep", "            if stopping():\n                raise Stopped\n"),
        f"{ROLLBACK}::test_a_listing_ends_when_its_process_does",
    ),
    mutation(
        "a-listing-of-the-first-hundred",
        "F530 I5",
        "of many instants some are not listed, and their late files stay",
        a(
            "settle/sweep",
            "range(0, len(wanted), INSTANTS_AT_ONCE)",
            "range(0, min(len(wanted), 1), INSTANTS_AT_ONCE)",
        ),
        f"{ROLLBACK}::test_a_listing_is_of_many_instants",
    ),
    mutation(
        "foreign-instants-are-touched",
        "I7",
        "an instant without a record is rolled back along with a recorded one",
        a("settle/settle", '        raise NotYet(f"instant {instant} has no record: it is foreign")\n'),
        f"{SETTLER}::test_an_unrecorded_instant_is_foreign",
    ),
    mutation(
        "unproven-owners-are-passed-over",
        "I12 I7 F22",
        "an instant is taken over from an agent that is not proven dead",
        UNPROVEN,
        f"{SETTLER}::test_an_unproven_agents_rollback_is_awaited",
    ),
    mutation(
        "given-up-is-not-remembered",
        "I5 F4",
        "what a living writer has given up is swept once only",
        a(
            "settle/settle",
            "remembered = self._remember_given_up(inc, instant)\n",
            "remembered = True\n",
        ),
        f"{SETTLER}::test_the_owners_word_is_enough_and_the_sweep_comes_again",
    ),
    mutation(
        "left-is-not-looked-at",
        "I5 F4",
        "what a writer gave up that left by itself is never looked at again",
        a("settle/settle", "        self._collect(records, stopping)\n        return done", "        return done"),
        f"{SETTLER}::test_after_a_clean_exit_the_sweep_comes_again_too",
        f"{SETTLER}::test_a_late_requested_file_of_a_writer_that_left_is_rolled_back",
    ),
    mutation(
        "a-changed-record-is-written-on",
        "I6",
        "the agent goes on after the operator has changed the record that it works on",
        a(
            "settle/settle",
            (
                "        if updated is None:\n            handed.changed, handed.due = True, frozenset()\n"
                "        else:\n            handed.revision = updated\n"
            ),
            '        handed.revision = updated or self.session.etcd.get(f"settle/{inc}").mod_revision\n',
        ),
        f"{SETTLER}::test_a_lost_compare_and_set_writes_nothing_more",
    ),
    mutation(
        "swept-with-a-failure",
        "I4 I5",
        "a record is Swept although an instant of it has no outcome",
        a(
            "settle/settle",
            "        elif not record.without_outcome(record.instants):",
            "        elif record.instants:",
        ),
        f"{SETTLER}::test_a_failure_is_counted_and_does_not_stop_the_others",
    ),
    mutation(
        "one-failure-stops-everything",
        "F22",
        "an instant that cannot be rolled back keeps the others from it",
        a(
            "settle/settle",
            "            item = self._failed(inc, instant, item, end)\n",
            (
                "            item = self._failed(inc, instant, item, end)\n"
                "            handed.record = handed.record.but(instants={**handed.record.instants, instant: item})\n"
                "            self._put(inc, handed.record, handed.revision, instant=instant)\n"
                "            handed.due = frozenset()\n"
                "            return False\n"
            ),
        ),
        f"{SETTLER}::test_a_failure_is_counted_and_does_not_stop_the_others",
    ),
    mutation(
        "claimed-instants-are-not-settled",
        "F3 I7",
        "what a dead agent had claimed is left to nobody",
        a("settle/settle", "if inc in (owned.inc, owned.claimed_by):", "if inc == owned.inc:"),
        f"{SETTLING}::test_instants_of_an_incarnation",
    ),
    mutation(
        "completed-is-swept",
        "I4 I8",
        "files of an instant that is found completed are swept",
        a(
            "settle/settle",
            "                if victim:\n                    sweep(self.table, victim, listing)\n",
            "                if outcome:\n                    sweep(self.table, victim or instant, listing)\n",
        ),
        f"{SETTLER}::test_every_outcome_is_recorded_then_swept",
    ),
    mutation(
        "rolled-back-is-not-swept",
        "I5 F4",
        "an instant that is rolled back is not swept",
        a(
            "settle/settle",
            "                if victim:\n                    sweep(self.table, victim, listing)\n",
            "                if victim:\n                    pass\n",
        ),
        f"{SETTLER}::test_every_outcome_is_recorded_then_swept",
        f"{SETTLER}::test_the_owners_word_is_enough_and_the_sweep_comes_again",
    ),
)

AUDIT_OF_ROLLBACKS = (
    mutation(
        "archived-overlaps-are-not-seen",
        "I9",
        "the audit asks only commits of the active timeline whether they overlap: archival hides them",
        a(
            "audit/structure",
            "    every = [*(commit for commit in facts.archived_commits if",
            "    every = [*(commit for commit in () if",
        ),
        f"{RUNTIME}/audit/test_audit.py::test_archived_commits_are_asked_too",
    ),
    mutation(
        "non-blocking-commits-overlap-for-ever",
        "I9",
        "commits of the time when the table was NonBlocking count as overlapping for ever",
        a("audit/structure", "> allowed:", "> '':"),
        f"{RUNTIME}/audit/test_audit.py::test_archived_commits_are_asked_too",
    ),
    mutation(
        "audit-believes-every-plan",
        "I3",
        (
            "a compaction that is completed although its rollback removed what it had written is fine, whenever it "
            "was completed"
        ),
        a(
            "audit/structure",
            "if t in completed and not (t in planned and completed[t].completion > r)",
            "if t in completed and t not in planned",
        ),
        f"{RUNTIME}/audit/test_audit.py::test_what_is_allowed_is_not_called_wrong",
    ),
)

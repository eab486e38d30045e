"""Mutations of table services and archival, of a writer's conclusions about its own commits, of the
columns that it takes, and of the audit.
"""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import RUNTIME, SERVICES, SETTLING, TRIGGERS, a
from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.in_settling import o
from tests.campaigns.mutations.mutation import AVAILABILITY, Edit, mutation

SCHEMA = f"{RUNTIME}/writer/test_schema.py"
WITH_SPARK = "tests/tiers/hudi/test_schema.py"
_DEADLINES = "tests/tiers/unit/plan/writers/test_deadlines.py"
_EXECUTORS = "tests/tiers/unit/plan/writers/test_killed_executors.py"
_REASONS = "tests/tiers/unit/kubectl/test_reasons.py"

TENDING = (
    mutation(
        "what-completed-unseen-runs-again",
        "F567",
        "a clustering whose agent ended behind its completion rewrites everything a second time",
        a(
            "services/services",
            "    if found is None or found.pending:\n        return None\n    served",
            "    if found is not None:\n        return None\n    served",
        ),
        f"{RUNTIME}/services/test_service_runner.py::test_a_run_that_completed_unseen_has_served_who_asked_for_it",
    ),
    mutation(
        "the-last-nonce-is-told",
        "F568",
        "a wait for a runNonce that is set again never ends",
        o("plan/agent/table_services", "if service.run_nonce and service.run_nonce in record.runs:", "if False:"),
        "tests/tiers/unit/plan/agent/test_service_requests.py::test_a_person_asks_for_a_run",
    ),
    mutation(
        "a-clean-asks-nobody",
        "F464 I13",
        "a clean is planned without a look at the writes that are pending",
        a(
            "services/service_actions",
            "least = keep_at_least(timeline, self._kept_from(timeline, options))\n            plan",
            "least = 0\n            plan",
        ),
        f"{TRIGGERS}::test_a_clean_takes_nothing_that_a_pending_write_has_to_list",
    ),
    mutation(
        "a-clean-is-not-compared",
        "F464 I13",
        "the plan of a clean is not compared with what is pending when it is saved",
        a("services/service_actions", "if not needed or plan.keeps_from(needed):", "if True:"),
        f"{TRIGGERS}::test_a_clean_takes_nothing_that_a_pending_write_has_to_list",
    ),
    mutation(
        "the-policy-alone-cleans",
        "F464 I13",
        "versions are deleted by the policy alone, which does not look at pending writes",
        j("CleanPlan", "            restrict(plan, other);\n"),
        "tests/tiers/hudi/test_clean_beside_writers.py::test_a_clean_leaves_what_a_pending_write_has_to_list",
    ),
    mutation(
        "a-plan-says-nothing-of-what-it-leaves",
        "F479 I8",
        "a clean by file versions leaves replaced files, and archival takes them for deleted",
        j("CleanPlan", "&& (mine == null || bound.", "&& (mine != null && bound."),
        t("CleanPlanTest.whatIsLeftOutKeepsItsCommits"),
    ),
    mutation(
        "a-plan-has-no-bound",
        "F479 I8",
        "a replacement that completes while a clean is planned counts as cleaned",
        j("CleanPlan", "        if (plan.getEarliestInstantToRetain() == null) {", "        if (plan == null) {"),
        t("CleanPlanTest.aPlanWithoutBoundGetsOne"),
    ),
    mutation(
        "a-bound-is-later-than-what-was-pending",
        "F479 I8",
        "what was pending when a clean was planned counts as cleaned",
        j("CleanPlan", ".filter(each -> !known.contains(each.requestedTime()))", ".filter(each -> false)"),
        t("CleanPlanTest.aBoundIsNoLaterThanWhatWasPending"),
    ),
    mutation(
        "replaced-files-are-left-behind",
        "F479 I8",
        "a replacement is archived whether or not its replaced files are there",
        a("services/service_actions", "replaced = since_replaced(timeline, self.gone)", "replaced = 0"),
        f"{TRIGGERS}::test_a_commit_stays_while_the_files_that_it_replaced_are_there",
    ),
    mutation(
        "a-long-commit-is-an-old-one",
        "F475",
        "a clean with retainSeconds deletes what a long commit has replaced a minute ago",
        a(
            "services/service_actions",
            "{needed_from(timeline, records), _valid_since(timeline, options), held}",
            "{needed_from(timeline, records), held}",
        ),
        f"{TRIGGERS}::test_what_a_long_commit_replaced_stays_as_long_as_the_policy_says",
    ),
    mutation(
        "a-long-commit-is-archived-as-an-old-one",
        "F481",
        "a clean with retainSeconds knows nothing of a long commit that was archived at once",
        a(
            "services/service_actions",
            "                keep_at_least(timeline, _valid_since(timeline, options)),\n",
            "",
        ),
        f"{TRIGGERS}::test_what_a_long_commit_replaced_stays_as_long_as_the_policy_says",
    ),
    mutation(
        "hours-without-commits-are-never-cleaned",
        "F482",
        "a clean with retainSeconds deletes nothing when no commit was requested within them",
        j(
            "CleanPlan",
            "if (config.getCleanerPolicy() == HoodieCleaningPolicy.KEEP_LATEST_BY_HOURS",
            "if (config == null",
        ),
        "tests/tiers/hudi/test_clean_beside_writers.py::test_hours_without_a_commit_are_cleaned",
    ),
    mutation(
        "partitions-are-as-old-as-they-were-listed",
        "F472 I8",
        "ttl deletes rows that were committed between its look at the partitions and its begin",
        a(
            "services/expiry",
            "[partition for partition in expired if self._is_old(partition, options, now=now)]",
            "list(expired)",
        ),
        f"{RUNTIME}/services/test_expiry.py::test_what_was_written_since_the_partitions_were_listed_stays",
    ),
    mutation(
        "ages-are-as-they-were-listed",
        "F472 I8",
        "ttl deletes rows of a partition that was deleted and written to again since its look",
        a("services/expiry", "                    self.begun_anew(expired)\n", "                    pass\n"),
        f"{RUNTIME}/services/test_expiry.py::test_what_was_deleted_and_written_since_the_partitions_were_listed_stays",
    ),
    mutation(
        "one-partition-keeps-all",
        "F483 availability",
        "a partition that is always written keeps ttl from deleting any",
        a("services/expiry", "if partition not in written][:limit]", "if partition in written][:limit]"),
        f"{RUNTIME}/services/test_expiry.py::test_what_others_write_to_is_left_for_the_next_run",
    ),
    mutation(
        "the-limit-comes-first",
        "F500 availability",
        "ttl takes as many partitions as a run may delete, and then leaves those out that others write to",
        a(
            "services/expiry",
            "[partition for partition in found if partition",
            "[partition for partition in expired if partition",
        ),
        f"{RUNTIME}/services/test_expiry.py::test_the_limit_is_not_filled_with_what_others_write_to",
    ),
    mutation(
        "a-bootstrapped-partition-is-2000-years-old",
        "F499 I8",
        "ttl takes an instant of Hudi's own bootstrap for a time, and deletes the partition",
        a("services/expiry", r"_([1-9]\d{13}", r"_(\d{14}"),
        f"{RUNTIME}/services/test_expiry.py::test_a_partition_of_hudis_own_bootstrap_is_of_unknown_age",
    ),
    mutation(
        "a-bootstrapped-partition-was-created-2000-years-ago",
        "F499 I8",
        "with since: Creation ttl takes an instant of Hudi's own bootstrap for a time",
        a("services/expiry", 'return "" if created.startswith("0") else created', "return created"),
        f"{RUNTIME}/services/test_expiry.py::test_a_partition_of_hudis_own_bootstrap_is_of_unknown_age",
    ),
    mutation(
        "nobody-learns-who-holds-archival",
        "F497 availability",
        "archival waits for the end of a writer, and its message says nothing",
        a("services/service_actions", "if oldest in records.given_up_by(inc)", "if oldest == inc"),
        f"{TRIGGERS}::test_archival_says_which_writer_holds_it",
    ),
    mutation(
        "nobody-learns-which-files-hold-archival",
        "F501 availability",
        "archival waits for a clean, and its message says nothing",
        a(
            "services/service_actions",
            "self._replaced_that_holds(timeline) if least == replaced else",
            "self._replaced_that_holds(timeline) if False else",
        ),
        f"{TRIGGERS}::test_a_commit_stays_while_the_files_that_it_replaced_are_there",
    ),
    mutation(
        "a-deleted-partition-is-as-old-as-before",
        "F471 I8",
        "rows of a partition that was deleted and written to again expire with the old date",
        a("services/expiry", "            self.begun_anew(partitions)\n", "            pass\n"),
        f"{RUNTIME}/services/test_expiry.py::test_a_partition_that_was_deleted_and_written_again_is_young",
    ),
    mutation(
        "a-clustering-without-rows-deletes-its-partition",
        "F480",
        "a partition is as young as a clustering of file groups without rows, and never expires",
        a("table/hudi", "        if not self.carries_rows:\n            return set()\n", ""),
        f"{RUNTIME}/services/test_expiry.py::test_which_partitions_a_commit_has_emptied",
    ),
    mutation(
        "archived-deletions-are-forgotten",
        "F480 I8",
        "ttl knows nothing of a deletion that was archived before its run, and rows expire with the old date",
        a("services/services", "                self._actions.expiry.begun_anew()\n", "                pass\n"),
        f"{SERVICES}::test_a_deletion_is_remembered_before_it_is_archived",
    ),
    mutation(
        "files-are-listed-whenever",
        "F473 I9",
        "a clean that was planned while the files are listed hides file groups from a read",
        j("Relations", "            if (!before.contains(clean)) {", "            if (before.contains(clean)) {"),
        "tests/tiers/hudi/test_clean_beside_writers.py::test_a_clean_leaves_what_a_pending_write_has_to_list",
    ),
    mutation(
        "a-refreshed-relation-is-as-before",
        "F484 I9",
        "a relation that lists its files again is not looked at again",
        j("Relations", " && known.get(1).get() == timeline", ""),
        t("RelationsTest.aRelationThatIsRefreshedIsLookedAtAgain"),
    ),
    mutation(
        "a-program-lists-when-it-likes",
        "F474 I9",
        "a read of the own table may list its files late",
        j("StatementRules", 'rows && options.get(LISTING).exists("lazy"::equalsIgnoreCase)', "false"),
        "tests/tiers/hudi/test_clean_beside_writers.py::test_a_clean_leaves_what_a_pending_write_has_to_list",
    ),
    mutation(
        "empty-partitions-are-old",
        "F471 I8",
        "an old partition without rows keeps its time of creation",
        a(
            "services/expiry",
            "            self.table.emptied(sorted(set(old) - live), before(now, 0))\n",
            "            pass\n",
        ),
        f"{RUNTIME}/services/test_expiry.py::test_an_old_partition_without_rows_begins_anew",
    ),
    mutation(
        "a-run-pays-for-the-one-before",
        "F469 availability",
        "failures of an earlier run count when the next one has followed at once",
        o(
            "plan/writers/runs",
            "        if run_of(entry) != run_of(entries[-1]):",
            "        if entries[-1] is None:",
        ),
        "tests/tiers/unit/plan/writers/test_attempts.py::test_failures_of_a_run_that_was_followed_at_once_do_not_count",
    ),
    mutation(
        "empty-folders-go",
        "F465",
        "a clean deletes the folders of partitions that are empty when it is planned",
        j("CleanPlan", "        plan.setPartitionsToBeDeleted(List.of());\n"),
        "tests/tiers/hudi/test_clean_beside_writers.py::test_a_clean_leaves_the_folder_of_an_emptied_partition",
    ),
    mutation(
        "two-agents-begin-services",
        "I12 F22",
        "an agent begins a service beside another one that is not proven dead",
        a(
            "services/services",
            "if records.rolling_back() or records.other_agents(self._session.inc):",
            "if records.rolling_back():",
        ),
        f"{SERVICES}::test_settling_and_other_agents_come_first",
    ),
    mutation(
        "services-before-settling",
        "I5 I9",
        "an agent begins a service while something is to be rolled back",
        a(
            "services/services",
            "if records.rolling_back() or records.other_agents(self._session.inc):",
            "if records.other_agents(self._session.inc):",
        ),
        f"{SERVICES}::test_settling_and_other_agents_come_first",
    ),
    mutation(
        "what-was-planned-serves-nobody",
        "F548",
        "a service that was asked for once runs twice, because its first run failed after its plan",
        a(
            "services/services",
            "return record if asked is None or instant <= asked.up_to else _served(record, asked)",
            "return record",
        ),
        f"{SERVICES}::test_what_was_planned_serves_who_asked_for_it",
    ),
    mutation(
        "a-plan-from-before-serves-who-asked-later",
        "F548",
        "a plan that does not cover what was committed since serves who asked after that",
        a("services/services", "asked is None or instant <= asked.up_to", "asked is None"),
        f"{SERVICES}::test_a_plan_from_before_serves_nobody_who_asked_later",
    ),
    mutation(
        "served-with-its-plan",
        "F551",
        "status says that a run was executed while it is",
        a(
            "services/services",
            'replace(ahead, instant=planned, message="", left_out=left_out)',
            'replace(_served(ahead, ahead.asked or Asked()), instant=planned, message="", left_out=left_out)',
        ),
        f"{SERVICES}::test_nobody_is_served_while_the_run_that_was_asked_for_is_executed",
    ),
    mutation(
        "a-withdrawn-plan-serves-who-asked",
        "F552",
        "a clustering that was withdrawn is not run for who asked for it",
        a(
            "services/services",
            "self._save(kind, replace(record, instant=known.instant))",
            "self._save(kind, replace(_served(record, record.asked or Asked()), instant=known.instant))",
        ),
        f"{SERVICES}::test_a_plan_that_was_withdrawn_serves_nobody",
        f"{SERVICES}::test_a_plan_that_was_withdrawn_later_serves_nobody",
    ),
    mutation(
        "the-last-nonce-alone-is-known",
        "F553",
        "a sync that puts an earlier nonce back runs the service again",
        a("services/triggers", "request.run not in record.runs", "request.run not in record.runs[-1:]"),
        f"{TRIGGERS}::test_what_a_person_asks_for_runs_once",
        f"{SERVICES}::test_a_nonce_that_comes_back_was_served",
    ),
    mutation(
        "one-run-switches-clustering-on",
        "F554",
        "a section that is there for one run has the table clustered for ever",
        o("api/services", " or _on_demand(section)", ""),
        "tests/tiers/unit/api/test_service_spec.py::test_clustering_that_is_there_for_one_run_runs_once",
    ),
    mutation(
        "one-schedule-stops-all-requests",
        AVAILABILITY,
        "a schedule that cannot be read keeps the ticks and nonces of all services from the agent",
        o("plan/agent/table_services", "if services.problem((s,))}", "if services.problem(view.table.services)}"),
        "tests/tiers/unit/plan/agent/test_service_requests.py"
        "::test_a_schedule_that_cannot_be_read_keeps_no_other_service_waiting",
    ),
    mutation(
        "a-stopped-driver-has-the-last-word",
        "F550",
        "an attempt that is stopped for its deadline says UserError, and its run is over",
        o(
            "plan/writers/attempts",
            "if last.stopped_for and outcome.kind not in (classify.SUCCEEDED, *classify.STOPPED):",
            "if outcome.retried and last.stopped_for:",
        ),
        f"{_DEADLINES}::test_what_a_stopped_driver_says_of_its_end_does_not_end_the_run",
    ),
    mutation(
        "a-cancelled-job-is-the-users-error",
        "F550",
        "user code whose job was cancelled for a stop ends its run until a person acts",
        a("process/diagnosis", "if cancelled and failure.kind is", "if not cancelled and failure.kind is"),
        f"{RUNTIME}/writer/test_cancelled.py::test_a_function_whose_job_was_cancelled_is_no_user_error",
        f"{RUNTIME}/writer/test_cancelled.py::test_a_program_that_ends_because_its_job_was_cancelled_is_no_user_error",
        f"{RUNTIME}/writer/test_cancelled.py::test_an_error_within_the_grace_is_the_users",
    ),
    mutation(
        "stopped-and-running",
        "F555",
        "a writer whose attempt is stopped for its deadline is Running and Ready",
        o(
            "plan/writers/writer_status",
            "    if progress.entries and progress.entries[-1].stopped_for:\n        return WriterState.STOPPING\n",
        ),
        f"{_DEADLINES}::test_a_driver_that_does_not_end_is_fenced_for_its_deadline",
    ),
    mutation(
        "late-and-well",
        "F556",
        "nothing keeps a writer from writing whose driver hangs, says kubectl hudi",
        Edit("operator/hudi_kubectl/why.py", '"ExecutorsMissing", "Late")', '"ExecutorsMissing")'),
        "tests/tiers/unit/kubectl/test_plugin.py::test_a_writer_that_is_late_is_not_well",
    ),
    mutation(
        "what-waits-starts-now",
        "F569",
        "kubectl hudi plan says that a writer starts which the operator holds",
        Edit(
            "operator/hudi_kubectl/outlook.py",
            "    if decision.kind is not Kind.START:\n",
            "    if decision.kind is Kind.DELETING:\n",
        ),
        f"{_REASONS}::test_the_plan_says_what_the_operator_does",
    ),
    mutation(
        "a-gate-that-nobody-told-of-is-open",
        "F569",
        "kubectl hudi plan says that a writer starts of a table whose gate was never open",
        o("plan/forecast", "            untold and decisions[each.name].kind is Kind.START,\n", "            False,\n"),
        f"{_REASONS}::test_the_plan_says_what_the_operator_does",
    ),
    mutation(
        "nobody-asks-for-the-next-attempt",
        "F570",
        "kubectl hudi plan says that a running writer goes on, of a change that stalls its next attempt",
        o("plan/forecast", "or admission.stalls_next(view, each, progress[each.name]),", "or None,"),
        f"{_REASONS}::test_what_stalls_its_next_attempt_is_told_while_nothing_is_due",
    ),
    mutation(
        "a-start-beside-the-closing-of-the-gate",
        "F572",
        "an attempt begins in the look that closes the gate for a savepoint, and is stopped at once",
        o(
            "plan/writers/admission",
            "or not gate.awaited_change(t.view)):",
            "or True):",
        ),
        "tests/tiers/unit/plan/writers/test_ending_for_change.py::test_no_attempt_begins_in_the_look_that_closes_the_gate",
    ),
    mutation(
        "a-pod-goes-before-its-deadline-is-told",
        "F578",
        "an attempt is stopped for its deadline before status says so, and ends as evicted if that write fails",
        o(
            "plan/writers/attempts",
            "ending_for_change.asks(view, active) or active.entry.stopped_for:",
            "ending_for_change.asks(view, active) or entries[-1].stopped_for:",
        ),
        f"{_DEADLINES}::test_no_pod_is_deleted_for_a_deadline_that_is_not_in_status",
    ),
    mutation(
        "an-outage-counts-for-defaults",
        "F581",
        "an outage of etcd ends attempts whose deadline is one of their namespace's defaults",
        o(
            "plan/writers/deadlines",
            "or writer is None or not any(_seconds(writer)):",
            'or writer is None or not (obj.get("spec") or {}).get("startDeadlineSeconds"):',
        ),
        "tests/tiers/unit/plan/writers/test_held_up.py"
        "::test_an_outage_of_etcd_counts_towards_no_deadline_of_the_namespace",
    ),
    mutation(
        "an-old-record-stops-all-starts",
        "F582",
        "no attempt begins while the record of an old savepoint cannot be read",
        o("plan/writers/admission", "(doubts.undecided(t.view.etcd) or not gate", "(False or not gate"),
        "tests/tiers/unit/plan/test_unreadable.py"
        "::test_what_became_of_an_old_savepoint_keeps_no_attempt_from_beginning",
    ),
    mutation(
        "an-executor-is-blamed-for-ever",
        "F579",
        "an executor that ran out of memory is the reason for whatever ends its driver days later",
        o(
            "plan/writers/out_of_memory",
            "if not found and who and conditions.hudi_time(report.last_completion_time) > (since or now):",
            "if False:",
        ),
        f"{_EXECUTORS}::test_a_commit_that_follows_ends_the_want_of_memory",
    ),
    mutation(
        "an-executor-is-blamed-for-the-drivers-heap",
        "F579",
        "executors get more memory when the driver's JVM had too little",
        o("model/classify", " and not report.message.startswith(JVM_ENDED)", ""),
        f"{_EXECUTORS}::test_a_driver_without_its_jvm_is_no_reason_for_its_executors",
    ),
    mutation(
        "memory-shrinks-within-the-run",
        "F580",
        "after ten attempts of a stream its driver has as little memory again as when it was killed",
        o(
            "plan/writers/out_of_memory",
            "return first.drivers_lacked + of_drivers, first.executors_lacked + len(failed) - of_drivers",
            "return of_drivers, len(failed) - of_drivers",
        ),
        "tests/tiers/unit/plan/writers/test_out_of_memory.py"
        "::test_the_rest_of_the_run_is_longer_than_the_list_of_its_attempts",
    ),
    mutation(
        "why-tells-the-place-alone",
        "F573",
        "kubectl hudi why does not say what a writer in the queue waits for",
        Edit("operator/hudi_kubectl/why.py", "        behind.insert(0, Reason(said))\n", "        pass\n"),
        f"{_REASONS}::test_why_says_what_the_operator_says",
    ),
    mutation(
        "a-field-of-the-gate-is-not-told",
        "F574",
        "kubectl hudi plan does not say that a change ends running attempts",
        o(
            "plan/forecast",
            "for name, at in FIELD_OF.items() if getattr(old, name) != getattr(new, name)]",
            "for name, at in FIELD_OF.items() if getattr(old, name) is None]",
        ),
        "tests/tiers/unit/kubectl/test_plan.py::test_what_ends_running_attempts_is_what_closes_the_operators_gate",
    ),
    mutation(
        "who-is-stalled-takes-a-place",
        "F571",
        "kubectl hudi plan says that a writer waits for one that does not run",
        o(
            "plan/forecast",
            "    return name in space.asked or not stalled\n",
            "    return name in space.asked or True\n",
        ),
        f"{_REASONS}::test_a_stalled_writer_takes_no_place_of_the_plan",
    ),
    mutation(
        "a-drain-is-no-eviction",
        "F557",
        "a driver that leaves a drained node by itself uses up the retries that are meant for its job",
        o(
            "model/classify",
            'and pod.deleting and fenced_reason in ("", Reason.POD_TERMINATED):',
            "and pod.deleting and code in _KILLED:",
        ),
        "tests/tiers/unit/model/test_classify.py::test_a_driver_whose_pod_was_deleted_was_evicted",
    ),
    mutation(
        "a-clock-that-steps-stops-attempts",
        "F547",
        "a step of the operator's clock ends attempts of all tenants",
        Edit(
            "operator/hudi_operator/model/facts.py",
            "return self.now_ms if self.api_now_ms is None else min(self.now_ms, self.api_now_ms)",
            "return self.now_ms",
        ),
        f"{_DEADLINES}::test_a_clock_that_steps_forward_stops_nobody",
    ),
    mutation(
        "waits-are-counted-by-a-clock-that-is-behind",
        "F593",
        "a wait counts when the clock that was behind meanwhile is set right",
        Edit(
            "operator/hudi_operator/plan/writers/deadlines.py",
            "due, now = current(view, writer, attempt, entry), view.latest_ms",
            "due, now = current(view, writer, attempt, entry), view.earliest_ms",
        ),
        "tests/tiers/unit/plan/writers/test_held_up.py::test_a_wait_while_a_clock_is_behind_does_not_count",
    ),
    mutation(
        "times-are-written-by-a-clock-that-is-behind",
        "F593",
        "attempts of all tenants end when a clock that was behind is set right",
        Edit(
            "operator/hudi_operator/model/facts.py",
            "return self.now_ms if self.api_now_ms is None else max(self.now_ms, self.api_now_ms)",
            "return self.now_ms",
        ),
        f"{_DEADLINES}::test_a_clock_that_was_behind_stops_nobody_when_it_is_right",
    ),
    mutation(
        "an-ended-attempt-is-seen-running",
        "F547",
        "status says of an attempt that it was first seen running hours after its end",
        Edit(
            "operator/hudi_operator/plan/writers/attempts.py",
            '(now if running and not entry.class_ else "")',
            '(now if running else "")',
        ),
        f"{_DEADLINES}::test_an_attempt_that_has_ended_is_not_seen_running",
    ),
    mutation(
        "services-wait-for-every-lost-race",
        "F535",
        "an agent begins no service while a living writer's abandoned instant is drained",
        a(
            "services/services",
            "if records.rolling_back() or records.other_agents(self._session.inc):",
            "if records.settling() or records.other_agents(self._session.inc):",
        ),
        f"{SERVICES}::test_what_a_writer_has_given_up_is_not_waited_for",
    ),
    mutation(
        "old-records-begin-a-service",
        "I12",
        "an agent executes again what it knows from records that it read before the last run ended",
        a(
            "services/services",
            "            self._running = None\n            return\n",
            "            self._running = None\n",
        ),
        f"{SERVICES}::test_records_read_before_a_run_ended_decide_nothing",
    ),
    mutation(
        "archived-commits-are-forgotten",
        AVAILABILITY,
        "commits that were archived do not count for a service that waits for more of them than are left",
        a("services/services", "            self._count()\n", ""),
        f"{SERVICES}::test_commits_that_were_archived_are_not_forgotten",
    ),
    mutation(
        "services-of-others-are-executed",
        "I12 F3",
        "an agent executes pending service instants of others",
        a("settle/settle", " and (record.claimed_by or record.inc) == me\n", " and me\n"),
        f"{SETTLING}::test_service_instants_of_one_executor",
        f"{SERVICES}::test_an_instant_of_somebody_else_is_not_executed",
    ),
    mutation(
        "claimed-away-is-executed",
        "I12 F3",
        "an agent goes on with a service instant that another one has claimed",
        a(
            "settle/settle",
            "and (record.claimed_by or record.inc) == me\n",
            "and me in (record.claimed_by, record.inc)\n",
        ),
        f"{SETTLING}::test_service_instants_of_one_executor",
    ),
    mutation(
        "foreign-cleans-are-executed",
        "I12 F3",
        "a clean executes every pending clean that Hudi finds",
        a("services/service_actions", "        if others:\n", "        if others and not mine:\n"),
        f"{TRIGGERS}::test_a_clean_of_somebody_else_is_not_executed_along",
    ),
    mutation(
        "services-with-another-policy",
        "I7 F2",
        "a service runs with a policy that lets Hudi roll back what it takes for dead",
        a(
            "services/service_actions",
            "        if not config.getFailedWritesCleanPolicy().isNever():\n",
            "        if config is None:\n",
        ),
        f"{TRIGGERS}::test_no_service_runs_with_another_policy_than_never",
    ),
    mutation(
        "a-service-is-done-when-it-returns",
        "I8 I12",
        "a compaction counts as completed when the call comes back",
        a(
            "services/rewriting",
            (
                "    if found is None or found.pending:\n"
                '        raise OutcomeUnknown(f"instant {instant} is not completed after its execution")\n'
            ),
            "    assert found is None or found.requested\n",
        ),
        f"{TRIGGERS}::test_a_compaction_is_done_when_the_timeline_says_so",
    ),
    mutation(
        "a-lost-clustering-stays",
        "I9 I12",
        "a clustering that lost to a writer keeps its plan, which describes file groups that are no more",
        a(
            "services/rewriting",
            "            self._withdraw(client, instant)\n            ended(instant)\n",
            "            ended(instant)\n",
        ),
        f"{RUNTIME}/services/test_rewriting.py::test_one_that_lost_is_withdrawn",
    ),
    mutation(
        "a-completed-clustering-is-withdrawn",
        "I4 I8",
        "a clustering is rolled back without a look at the timeline",
        a(
            "services/rewriting",
            "        if found is None or not found.pending or found.action != ACTION:\n",
            "        if found is not None and found.action == instant:\n",
        ),
        f"{RUNTIME}/services/test_rewriting.py::test_only_a_pending_clustering_is_withdrawn",
    ),
    mutation(
        "archived-before-the-sweep",
        "I5 F4",
        "archival passes instants whose late files are not swept yet",
        a(
            "services/service_actions",
            "            named |= set(instants_of(inc, record, records))\n",
            "            named |= set()\n",
        ),
        f"{TRIGGERS}::test_archival_stays_behind_what_is_not_swept",
    ),
    mutation(
        "archived-before-the-last-sweep",
        "I5 F4",
        "archival passes instants that a living writer has given up",
        a("services/service_actions", "        named.update(records.given_up_by(inc))\n", "        named |= set()\n"),
        f"{TRIGGERS}::test_archival_stays_behind_what_is_not_swept",
    ),
    mutation(
        "archived-before-its-conflict-check",
        "I9",
        "archival takes commits away that a pending one has to be checked against",
        a(
            "services/service_actions",
            'return min(pending | overlapping, default="")',
            'return min(pending, default="")',
        ),
        f"{TRIGGERS}::test_commits_that_overlap_a_pending_one_stay",
    ),
    mutation(
        "the-timeline-begins-too-late",
        "I5",
        "the active timeline begins with an instant that is not swept: its late files count as committed",
        a(
            "services/service_actions",
            (
                "return (\n"
                "        1 + sum(1 for i in timeline.completed if i.requested >= oldest and i.action in "
                "tl.WRITE_ACTIONS)\n"
                "        if oldest\n"
                "        else 0\n"
                "    )"
            ),
            (
                "return sum(1 for i in timeline.completed if i.requested >= oldest and i.action in tl.WRITE_ACTIONS) "
                "if oldest else 0"
            ),
        ),
        f"{TRIGGERS}::test_the_active_timeline_begins_before_the_floor",
    ),
    mutation(
        "archival-without-the-lock",
        "I9 I10",
        "what may be archived is found out before the lock is held",
        a(
            "services/service_actions",
            "        with self.table.locked(self.config(options)), self.removing:\n"
            "            timeline, records = self.table.timeline(), self.records()\n",
            "        timeline, records = self.table.timeline(), self.records()\n"
            "        with self.table.locked(self.config(options)), self.removing:\n",
        ),
        f"{TRIGGERS}::test_a_backlog_is_archived_in_several_runs",
    ),
    mutation(
        "a-recorded-instant-without-file-is-nothing",
        "F12 I5",
        "archival passes an instant whose requested file may still be on the wire",
        a(
            "services/service_actions",
            "    named = set(records.instants)\n",
            "    named = {t for t in records.instants if timeline.get(t)}\n",
        ),
        f"{TRIGGERS}::test_a_recorded_instant_without_file_counts",
        redundant="such an instant counts as pending too",
        pair="a-recorded-instant-without-file-is-no-instant",
    ),
    mutation(
        "a-recorded-instant-without-file-is-no-instant",
        "F12 I5",
        "archival passes an instant whose requested file may still be on the wire, and nothing of it is pending",
        (
            a(
                "services/service_actions",
                "    named = set(records.instants)\n",
                "    named = {t for t in records.instants if timeline.get(t)}\n",
            ),
            a(
                "services/service_actions",
                (
                    "pending = {i.requested for i in timeline.pending} | {\n"
                    "        t for t in records.instants if (found := timeline.get(t)) is None or found.pending\n"
                    "    }"
                ),
                "pending = {i.requested for i in timeline.pending}",
            ),
        ),
        f"{TRIGGERS}::test_a_recorded_instant_without_file_counts",
    ),
    mutation(
        "a-log-file-is-no-write",
        "I8",
        "a partition whose rows are updated in log files expires",
        a(
            "services/expiry",
            "        return last_write(self.table.storage.names(partition))",
            '        return last_write(n for n in self.table.storage.names(partition) if n[0] != ".")',
        ),
        "tests/tiers/unit/runtime/services/test_expiry.py::test_a_log_file_is_a_write",
    ),
    mutation(
        "a-day-of-twelve-hours",
        "I8",
        "partitions expire in half of their time",
        a("services/expiry", "timedelta(days=days, hours=hours)", "timedelta(hours=12 * days + hours)"),
        "tests/tiers/unit/runtime/services/test_expiry.py::test_a_day_has_24_hours_however_many_they_are",
    ),
)

PROGRESS = (
    mutation(
        "files-are-taken-again",
        "I9 F5",
        "a restarted writer commits files once more that a completed commit names",
        a(
            "read/progress",
            "waiting = sorted(item for item in files if item not in progress.files)",
            "waiting = sorted(files)",
        ),
        f"{RUNTIME}/read/test_progress.py::test_a_restart_goes_on_where_the_commit_was",
    ),
    mutation(
        "a-rewritten-file-is-the-same",
        "I9",
        "a file that was rewritten counts as processed",
        (
            a(
                "read/manifests",
                "from dataclasses import dataclass, replace",
                "from dataclasses import dataclass, field, replace",
            ),
            a(
                "read/manifests",
                "    path: str\n    size: int\n    modified: int\n",
                "    path: str\n    size: int = field(compare=False)\n    modified: int = field(compare=False)\n",
            ),
        ),
        f"{RUNTIME}/read/test_progress.py::test_a_rewritten_file_is_another_file",
    ),
    mutation(
        "a-manifest-that-others-name-is-deleted",
        "I9",
        "manifests that the last commit's manifest names are deleted",
        a(
            "read/manifests",
            "for name in self._seen - self._needed - {name for files in known for name in files.names}:",
            "for name in self._seen - self._needed - {name for files in known for name in [*files.names][-1:]}:",
        ),
        f"{RUNTIME}/read/test_progress.py::test_whatever_is_interrupted_where_each_committed_file_is_known",
    ),
    mutation(
        "manifests-of-a-successor-are-deleted",
        "I9",
        "a process that goes on after its fence deletes manifests that it has never seen",
        a(
            "read/manifests",
            "for name in self._seen - self._needed -",
            "for name in {n.removesuffix('.json') for n in self._storage.names("
            "folder_of(self._writer))} - self._needed -",
        ),
        f"{RUNTIME}/read/test_progress.py::test_a_process_that_goes_on_after_its_fence_takes_nothing_from_its_successor",
    ),
    mutation(
        "files-without-a-manifest-are-forgotten",
        "I9",
        "files that had no rows are in a part that no manifest lists",
        a(
            "read/manifests",
            "while parts and (not parts[-1].name or len(parts[-1].files) <= len(last)):",
            "while parts and len(parts[-1].files) <= len(last):",
        ),
        f"{RUNTIME}/read/test_progress.py::test_whatever_is_interrupted_where_each_committed_file_is_known",
    ),
    mutation(
        "each-commit-lists-all-files",
        "I9",
        "a manifest takes over the files of all earlier ones each time",
        a(
            "read/manifests",
            "while parts and (not parts[-1].name or len(parts[-1].files) <= len(last)):",
            "while parts:",
        ),
        f"{RUNTIME}/read/test_progress.py::test_a_commit_lists_its_own_files_and_now_and_then_those_of_others",
    ),
    mutation(
        "leaves-with-a-lost-executor",
        "I5 F4 F495",
        "a writer that gave an instant up leaves by itself although an executor of it was lost and may still write",
        a(
            "writer/attempt",
            "if self._session.gave_up() and sp.lost_executors(self._spark):",
            "if self._session.gave_up() and self._session is self:",
        ),
        f"{RUNTIME}/writer/test_leaving.py::test_a_clean_exit_needs_every_executor_when_an_instant_was_given_up",
    ),
)

COLUMNS = (
    mutation(
        "whole-numbers-become-fractions",
        "I8",
        "a bigint column becomes double when a batch brings one: committed numbers beyond 2^53 are changed",
        a(
            "writer/schema",
            "    types.FloatType: (types.DoubleType,),\n",
            "    types.FloatType: (types.DoubleType,),\n    types.LongType: (types.DoubleType,),\n",
        ),
        f"{SCHEMA}::test_types_that_are_refused_are_named_with_column_and_rule",
    ),
    mutation(
        "parts-of-columns-become-wider",
        "I8",
        "a field of a struct becomes wider: Spark cannot read committed files any more",
        a("writer/schema", "        if nested:\n", "        if nested and old is new:\n"),
        f"{SCHEMA}::test_nothing_becomes_wider_inside_a_column",
    ),
    mutation(
        "keys-become-wider",
        "I9",
        "the type of a key changes: one key is in two file groups, because they are found by its text",
        a(
            "writer/schema",
            "if old.name in rules.fixed and _plain(merged) != _plain(old.dataType):",
            "if old.name in rules.fixed and old is new:",
        ),
        f"{SCHEMA}::test_their_type_stays",
    ),
    mutation(
        "columns-that-differ-by-case",
        "I8",
        "a column that differs from another one by case only is taken: neither can be read any more",
        a(
            "writer/schema",
            "if spelled.get(name.lower(), name) != name:",
            "if spelled.get(name.lower(), name) == name.swapcase() == name:",
        ),
        f"{SCHEMA}::test_names_that_differ_by_case_alone_are_refused",
    ),
    mutation(
        "missing-columns-are-null",
        "I8",
        "a batch without a column overwrites it with nulls although the table says Refuse",
        a(
            "writer/schema",
            "        if not rules.null_for_missing:\n",
            "        if not rules.null_for_missing and new is not None:\n",
        ),
        f"{SCHEMA}::test_a_missing_column_is_null_or_refused",
    ),
    mutation(
        "deleted-values-come-back",
        "I8",
        (
            "deletions are written to the log files of a table with partial updates: a record that comes again has "
            "its deleted values"
        ),
        a("writer/schema", "    if not rules.deletes and", "    if rules.deletes and not rules.deletes and"),
        f"{RUNTIME}/read/test_merged_reads.py::test_partial_updates_and_deletes_do_not_meet_in_log_files",
    ),
    mutation(
        "a-compaction-hides-rows",
        "I9",
        (
            "commits are pulled together with the compaction between them: rows whose newest version another commit "
            "wrote are left out"
        ),
        a(
            "read/incremental",
            "        if instant.requested in chosen:\n            pieces[-1]",
            "        if instant.requested:\n            pieces[-1]",
        ),
        f"{RUNTIME}/read/test_merged_reads.py::test_commits_between_which_another_one_completed_are_read_apart",
    ),
    mutation(
        "another-merge-is-adopted",
        "I8",
        "a table that merges by another rule than the HudiTable says is adopted",
        a(
            "job/merging",
            "if found is not None and found.lower() != needed.lower():",
            "if found is None and needed is None:",
        ),
        f"{RUNTIME}/agent/test_adopted_tables.py::test_a_table_merges_as_the_spec_says",
    ),
    mutation(
        "another-class-merges",
        "I8",
        "a class that calls its merge otherwise than the table is taken: each write fails with its instant begun",
        a("job/merging", "if found.strategy_id != merge.strategy_id:", "if found.strategy_id is None:"),
        f"{RUNTIME}/read/test_merged_reads.py::test_a_class_that_merges_is_what_the_table_needs",
    ),
    mutation(
        "services-without-the-class",
        "I8",
        "a compaction or a clustering is planned without the class that merges the table",
        a("services/service_actions", "        self.table.require_merger(self.merge)\n", ""),
        f"{TRIGGERS}::test_versions_are_not_merged_without_the_class_that_says_how",
    ),
    mutation(
        "writes-without-the-class",
        "I8",
        "a driver begins to write without the class that merges the table",
        a("writer/attempt", "merging.require(self._spark.sparkContext._jvm, self._job.table.merge)", "pass"),
        "tests/tiers/hudi/test_merging.py::test_nothing_is_begun_without_the_class",
    ),
    mutation(
        "columns-come-with-the-rows",
        "I8",
        "a column that a long write brings is hidden by a short one that began after it",
        a("writer/commit", "            if not fit.evolves:\n", "            if fit is not None:\n"),
        f"{WITH_SPARK}::test_a_long_write_that_brings_a_column_is_not_hidden_by_a_short_one",
    ),
    mutation(
        "one-float-becomes-two-doubles",
        "I8",
        "a float of a batch becomes another double than the same float in an old file",
        a("writer/schema", "column.cast(types.StringType()).cast(new)", "column.cast(new)"),
        f"{WITH_SPARK}::test_a_column_becomes_wider_beside_a_writer_of_the_narrow_type",
    ),
)

AUDIT = (
    mutation(
        "late-commits-are-not-reported",
        "I3",
        "the audit does not see a commit that was completed after it was rolled back",
        a(
            "audit/structure",
            "if item.outcome in (Outcome.ROLLED_BACK, Outcome.GONE) and instant in completed:",
            (
                "if item.outcome in (Outcome.ROLLED_BACK, Outcome.GONE) and instant not in facts.rolled_back and not "
                "completed:"
            ),
        ),
        f"{RUNTIME}/audit/test_audit.py::test_each_damage_is_found_by_its_check",
    ),
    mutation(
        "overlaps-are-not-reported",
        "I9",
        "the audit does not see two commits that overlap on a file group",
        a(
            "audit/structure",
            "if later.instant.requested < earlier.instant.completion]",
            "if later.instant.completion < earlier.instant.requested]",
        ),
        f"{RUNTIME}/audit/test_audit.py::test_each_damage_is_found_by_its_check",
    ),
)

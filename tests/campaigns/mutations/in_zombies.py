"""Mutations of what happens to files that a lost executor writes after the commit."""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import RUNTIME, SETTLER, a
from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.mutation import Edit, mutation

LATE = f"{RUNTIME}/settle/test_late_of_completed.py"

ZOMBIES = (
    mutation(
        "a-commit-with-a-lost-executor-is-forgotten",
        "I5 F36",
        "the record of an instant goes with its commit, although an executor was lost that may still write for it",
        j("LostExecutors", "now == atBegin.getOrDefault(t, 0L)", "atBegin.getOrDefault(t, 0L) <= now"),
        "tests/tiers/hudi/test_zombies.py::test_a_file_of_a_lost_executor_that_comes_after_the_commit_is_swept",
    ),
    mutation(
        "what-was-touched-is-asked-again",
        "F536 F36 I5",
        "the record of an instant for which a lost executor may write goes with a later release",
        j("LostExecutors", "        asked.forEach(kept::remove);\n", "        kept.addAll(completed);\n"),
        t("LostExecutorsTest.whatWasTouchedIsNotAskedAgain"),
    ),
    mutation(
        "what-could-not-be-told-is-not-asked-again",
        "F536",
        "the record of a completed instant stands for the agent's life, because events were late once",
        j("LostExecutors", "            kept.addAll(completed);\n"),
        t("LostExecutorsTest.whatCouldNotBeToldIsAskedAgain"),
    ),
    mutation(
        "what-nobody-counts-is-not-lost",
        "F559 F4 I5",
        "a driver whose events are late says that it has lost no executor, and leaves by itself",
        j("LostExecutors", "counted.applyAsLong(EVENTS_MILLIS) != 0", "counted.applyAsLong(EVENTS_MILLIS) > 0"),
        t("LostExecutorsTest.whatCannotBeToldCountsAsLost"),
    ),
    mutation(
        "who-is-not-heard-has-lost-nobody",
        "F559 F4 I5",
        "a driver with executors whose events nobody counts says that it has lost none",
        j("LostExecutors", ": !asked.isLocal());", ": false);"),
        "tests/tiers/hudi/test_lost_executor.py::test_a_killed_executor_is_remembered",
    ),
    mutation(
        "the-status-store-is-asked",
        "F559 F4 I5",
        "a loss that Spark's status store has missed is none",
        a(
            "process/spark",
            "    return bool(context._jvm.io.hudioperator.session.LostExecutors.lost(context._jsc.sc()))\n",
            (
                "    known = context._jsc.sc().statusStore().executorList(False)\n"
                "    return any(not known.apply(index).isActive() for index in range(known.size()))\n"
            ),
        ),
        f"{RUNTIME}/process/test_lost_executors.py::test_the_java_module_knows_what_the_status_store_has_missed",
    ),
    mutation(
        "late-events-are-not-waited-for",
        "F560 F36 I5",
        "a loss whose event is on its way is not counted at the release",
        j(
            "DriverEvents",
            "return waitMillis > 0 && !hasHeardAll(waitMillis) ? UNKNOWN : lost.get();",
            "return lost.get();",
        ),
        t("DriverEventsTest.whatWasSentBeforeIsCounted"),
        t("DriverEventsTest.whatIsLateIsNotKnown"),
    ),
    mutation(
        "events-come-with-those-of-others",
        "F560 availability",
        "beside a slow listener of a program no loss can be told at any commit",
        j(
            "DriverEvents",
            "context.listenerBus().addToQueue(listener, QUEUE);",
            "context.listenerBus().addToSharedQueue(listener);",
        ),
        "tests/tiers/hudi/test_lost_executor.py::test_a_killed_executor_is_remembered",
    ),
    mutation(
        "a-full-queue-drops-a-loss",
        "F560 F545 I5",
        "the queue of the driver's events is as short as any",
        j("DriverEvents", "        context.conf().set(CAPACITY, Integer.toString(Integer.MAX_VALUE));\n"),
        "tests/tiers/hudi/test_lost_executor.py::test_a_killed_executor_is_remembered",
    ),
    mutation(
        "who-is-cut-off-is-at-rest",
        "F4 F598",
        "an executor whose connection has ended, and whose loss is not known yet, counts as one without a task",
        Edit(
            "spark-images/hudi_runtime/process/spark.py",
            "(not group or _group_at_work(spark, group))) or _has_unreached(spark):",
            "(not group or _group_at_work(spark, group))):",
        ),
        "tests/tiers/unit/runtime/process/test_await_idle.py::test_an_executor_that_is_not_reached_is_waited_for",
    ),
    mutation(
        "who-is-cut-off-is-not-lost",
        "F4 F598",
        "a driver leaves by itself while an executor that it does not reach may still write",
        j(
            "LostExecutors",
            "        return hasUnreached.test(asked)\n                || (asked",
            "        return (asked",
        ),
        t("LostExecutorsTest.whoIsNotReachedCountsAsLost"),
    ),
    mutation(
        "who-is-cut-off-at-the-release-is-no-doubt",
        "I5 F600",
        "a commit's record goes, although an executor that is not reached may still write for its instant",
        j(
            "LostExecutors",
            "        return hasUnreached.getAsBoolean() ? UNKNOWN : recomputed.applyAsLong(EVENTS_MILLIS);\n",
            "        return recomputed.applyAsLong(EVENTS_MILLIS);\n",
        ),
        t("LostExecutorsTest.anExecutorIsNotReachedAtTheRelease"),
    ),
    mutation(
        "a-repeated-stage-is-no-doubt",
        "I5 F600",
        "a commit's record goes, although tasks of the first try of a stage may still write for its instant",
        j(
            "LostExecutors",
            "        this(LostExecutors::recomputed, () -> driver != null && hasUnreached(driver));\n",
            "        this(wait -> counted.applyAsLong(wait), () -> driver != null && hasUnreached(driver));\n",
        ),
        t("LostExecutorsTest.aStageWasRepeatedMeanwhile"),
    ),
    mutation(
        "who-never-registered-counts-as-lost",
        "F601 availability",
        "a pod of an executor that was never started keeps records and archival for the driver's life",
        j("DriverEvents", "if (executors.remove(removed.executorId())) {", "if (removed != null) {"),
        t("DriverEventsTest.whoNeverRegisteredWasNotLost"),
    ),
    mutation(
        "the-end-of-spark-closes-the-session",
        "F4 F602",
        "the end of Spark deregisters a driver that has given up an instant and lost an executor",
        Edit(
            "spark-images/etcd-lock/src/main/java/io/hudioperator/session/Session.java",
            "            if (instants.gaveUp() && LostExecutors.lost()) {\n",
            "            if (instants.gaveUp() && me == null) {\n",
        ),
        t("ReleaseTest.whoGaveUpAnInstantAndLostAnExecutorDoesNotLeave"),
    ),
    mutation(
        "what-fails-at-the-release-keeps-the-lock",
        "F561 availability",
        "an exception of Spark keeps the table's lock",
        j(
            "LostExecutors",
            "        } catch (Exception e) {\n",
            "        } catch (Exception e) {\n            if (kept != null) throw new IllegalStateException(e);\n",
        ),
        t("LostExecutorsTest.whateverFailsIsNotKnown"),
    ),
    mutation(
        "an-interrupt-keeps-the-lock",
        "F561 availability",
        "an interrupt of the thread that commits ends each look for its file, and the lock stays",
        j("TimelineGuard", "Uninterrupted.run(() -> length(path, lister))", "length(path, lister)"),
        t("ReleaseTest.anInterruptDoesNotReachTheListing"),
    ),
    mutation(
        "who-cannot-release-goes-on",
        "F561 availability",
        "a process whose release was refused keeps its heartbeat, and with it the lock for ten minutes",
        j("Session", "            liveness.keepsLock(", "            if (held == null) liveness.keepsLock("),
        t("AcquireTest.whoCannotReleaseEnds"),
        t("LockProviderTest.aReleaseThatFailsEndsTheIncarnation"),
    ),
    mutation(
        "the-release-sees-no-set-back",
        "I1 F587",
        "whose release is the first to see that etcd was set back ends as one that was fenced",
        j("Liveness", "        if (!haltsIfSetBack()) {\n", "        if (!why.isEmpty()) {\n"),
        t("AcquireTest.whoseReleaseFindsEtcdSetBackEndsAsItsHeartbeatWould"),
    ),
    mutation(
        "an-error-ends-a-heartbeat",
        "availability",
        "a heartbeat whose thread had no memory once never beats again, and nothing says so",
        j("Heartbeats", "        } catch (Error e) {", "        } catch (StackOverflowError e) {"),
        t("HeartbeatsTest.aBeatThatFailsWithAnErrorIsMissed"),
    ),
    mutation(
        "who-cannot-give-back-goes-on",
        "F561 availability",
        "a lock that is given back unused, and was not, stays with a process that does not know of it",
        j("Session", "            liveness.keepsLock(", "            if (held != null) liveness.keepsLock("),
        t("AcquireTest.whoCannotGiveBackEnds"),
    ),
    mutation(
        "of-a-completed-instant-nothing-is-swept",
        "I5 F36",
        "settling leaves files of a completed instant that no commit names",
        a(
            "settle/settle",
            (
                "                elif outcome is Outcome.COMPLETED:\n"
                "                    sweep_unnamed(self.table, instant, listing)\n"
            ),
        ),
        f"{SETTLER}::test_every_outcome_is_recorded_then_swept",
    ),
    mutation(
        "completed-at-the-word-is-done",
        "I5 F36",
        "what is completed at its owner's word is not looked at again after the owner's end",
        a(
            "settle/settle",
            "            if instant not in self.ended or",
            "            if outcome is not Outcome.COMPLETED and instant not in self.ended or",
        ),
        f"{SETTLER}::test_what_was_completed_at_its_owners_word_is_looked_at_again_after_its_end",
    ),
    mutation(
        "another-commits-file-is-swept",
        "I8 F36",
        "a file is deleted because its own commit does not name it, although another one does",
        a("settle/sweep", "tuple(other for other in timeline.completed if other.action in WRITE_ACTIONS)", "(found,)"),
        f"{LATE}::test_what_another_commit_names_stays",
    ),
    mutation(
        "what-the-metadata-table-lists-is-swept",
        "I4 I8 F36",
        "a file goes that the metadata table lists: readers fail",
        a("settle/sweep", "    if listed:\n", "    if listed and not unnamed:\n"),
        f"{LATE}::test_what_the_metadata_table_lists_is_kept_and_reported",
    ),
    mutation(
        "a-changed-instant-is-swept",
        "I4 F36",
        "files are deleted by metadata of an instant that is not completed any more",
        a(
            "settle/sweep",
            "    if again is None or again.completion != found.completion:\n",
            "    if again is None and found is None:\n",
        ),
        f"{LATE}::test_an_instant_that_changes_meanwhile_keeps_everything",
    ),
    mutation(
        "log-files-of-a-completed-instant-are-swept",
        "I8 F36",
        "log files go, too: an older table's bear the instant of their base file, whoever wrote them",
        a(
            "settle/sweep",
            'for path in listed_now if not path.rsplit("/", 1)[-1].startswith(".")}',
            "for path in listed_now}",
        ),
        f"{LATE}::test_only_the_base_file_that_no_commit_names_goes",
    ),
    mutation(
        "of-many-given-up-the-oldest-are-forgotten",
        "F634 I5",
        "the oldest of more than 500 instants that a writer has given up are not swept after its end",
        a(
            "settle/settle",
            "                return False\n            value",
            "                return True\n            value",
        ),
        f"{SETTLER}::test_what_a_writer_abandons_is_swept_at_its_end_however_much_it_is",
    ),
)

"""Mutations of what makes the outcome of a file that was sent definite."""

from __future__ import annotations

from tests.campaigns.mutations.in_agent import a
from tests.campaigns.mutations.in_jvm import j, t
from tests.campaigns.mutations.mutation import mutation

SETTLER = "tests/tiers/unit/runtime/settle/test_settler.py"
WHOLE = "    rule.require(whole());\n"
EMPTY = "    if (found == 0 || found > 0 && length >= 0 && found != length) {\n"

SENT = (
    mutation(
        "interrupts-reach-the-store",
        "I1 I3 F31",
        "a file is closed on the thread that wants it closed, and an interrupt ends that with success",
        j(
            "Uninterrupted",
            "        Future<T> answer = THREADS.submit(() -> {\n",
            (
                "        if (loader != null) {\n"
                "            return call.run();\n"
                "        }\n"
                "        Future<T> answer = THREADS.submit(() -> {\n"
            ),
        ),
        t("InterruptedCloseTest.theCompletedFileIsThereWhenItsCloseReturns"),
        t("InterruptedCloseTest.anInterruptFromBeforeDoesNotReachTheStore"),
        t("InterruptedCloseTest.aTaskThatIsCancelledEndsAfterItsDataFile"),
    ),
    mutation(
        "part-of-a-commit-is-sent",
        "I8 F34",
        "a completed file is sent as Hudi leaves it, also when it could not write it",
        j("CompletedOutputStream", WHOLE),
        t("CompletedFileTest.hudiClosesWhatItCouldNotWrite"),
    ),
    mutation(
        "empty-is-completed-after-the-drain",
        "I4 F34",
        "an empty completed file is taken for completed when the lock is released",
        j("Publication", EMPTY, "    if (found > 0 && length > found) {\n"),
        t("CompletedFileTest.anEmptyFileThatTheDrainFindsDecidesNothing"),
    ),
    mutation(
        "empty-is-completed",
        "I4 F34",
        "the runtime and the agent take an empty completed file for completed",
        a("table/timeline", "and not instant.pending and size == 0:", "and not instant.pending and size < 0:"),
        "tests/tiers/unit/runtime/table/test_timeline.py::test_a_completed_file_without_content_stops",
    ),
    mutation(
        "no-drain-after-the-word",
        "I5 F35",
        "an Abandoned instant is rolled back and swept at once",
        a(
            "settle/settle",
            "return now - self._since.setdefault((inc, instant), now) >= max(self.drain, self.gate_drain())",
            "return not instant or bool(now)",
        ),
        f"{SETTLER}::test_what_was_on_the_wire_at_the_owners_word_and_at_its_end_has_landed",
    ),
    mutation(
        "no-drain-after-the-end",
        "I5 F35",
        "the last sweep of a writer that has left comes at once",
        a("settle/settle", "            if not self._drained(inc):\n                continue\n"),
        f"{SETTLER}::test_what_was_on_the_wire_at_the_owners_word_and_at_its_end_has_landed",
    ),
    mutation(
        "only-publications-drain",
        "I1 F37",
        (
            "a file of the archived timeline, of the metadata table or the table's properties without an answer: the "
            "lock is released at once"
        ),
        j(
            "Session",
            "if (lock.unknown().isEmpty() && lock.unanswered().isEmpty()) {",
            "if (lock.unknown().isEmpty()) {",
        ),
        t("UnansweredTest.theNextOwnerBeginsWhenItHasLanded"),
        t("UnansweredTest.aSecondTryThatIsAnsweredSaysNothingAboutTheFirst"),
    ),
    mutation(
        "sent-under-another-lock",
        "I1 F37",
        "a file that was opened under an earlier lock is sent under a later one",
        j("Unanswered", "      lock.requireOpen();\n"),
        t("UnansweredTest.whatWasOpenedUnderALockIsNotSentWhenItIsGone"),
    ),
    mutation(
        "ranges-are-cut-off",
        "I11 F38",
        "of a range with more than 10,000 keys the rest counts as absent",
        j("GrpcEtcdClient", "if (op.getResponseRange().getMore()) {", "if (op.getResponseRange().getCount() < 0) {"),
        t("EtcdFacadeTest.aRangeThatIsTooLargeIsNotCutOff"),
    ),
)

"""The oracle asks again when the audit says so, and never for ever, and never over a violation."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hudi_runtime.audit.report import Check, not_asked, ok, unknown, unsettled, violated
from tests.support import oracle

WANTED = {"rows": "ok", "metadata": "ok"}
BUSY = [
    ok("rows", "3 rows"),
    unsettled(
        "metadata", "a clean is running: run it again", ["a/1.parquet is in the storage, not in the metadata table"]
    ),
]
QUIET = [ok("rows", "3 rows"), ok("metadata", "2 files in both")]


class Audits:
    """Answers one after the other; the last one for ever."""

    def __init__(self, *answers: Sequence[Check]) -> None:
        self._answers = list(answers)
        self.asked = 0

    def __call__(self) -> Sequence[Check]:
        self.asked += 1
        return self._answers[min(self.asked, len(self._answers)) - 1]


def settled(audits: Audits, wanted: dict[str, str] = WANTED) -> Sequence[Check]:
    return oracle.settled(audits, lambda checks: [check.to_dict() for check in checks], wanted, times=3, pause=0)


def test_what_ends_by_itself_is_asked_again() -> None:
    audits = Audits(BUSY, QUIET)
    assert settled(audits) == QUIET
    assert audits.asked == 2


def test_what_never_ends_fails_and_says_how_often_it_was_asked() -> None:
    audits = Audits(BUSY)
    with pytest.raises(
        AssertionError,
        match=(
            r"asked 3 of at most 3 times:\nmetadata: unknown, wanted ok: a clean is running: run it again: "
            r"a/1.parquet"
        ),
    ):
        settled(audits)
    assert audits.asked == 3


@pytest.mark.parametrize("bad", [violated("rows", "a row is missing"), unknown("rows", "could not be read")])
def test_what_does_not_end_by_itself_fails_at_once(bad: Check) -> None:
    """Also beside a check that says ask again: a violation that would be gone at a second
    look was one.
    """
    for audits in (Audits([bad, QUIET[1]], QUIET), Audits([bad, BUSY[1]], QUIET)):
        with pytest.raises(AssertionError, match="asked 1 of at most 3 times"):
            settled(audits)
        assert audits.asked == 1


def test_an_outcome_that_is_wanted_is_an_answer() -> None:
    audits = Audits(BUSY, QUIET)
    assert settled(audits, WANTED | {"metadata": "unknown"}) == BUSY
    with pytest.raises(AssertionError, match=r"asked for \['rows'\], the audit has \['metadata', 'rows'\]"):
        settled(audits, {"rows": "ok"})


def left_out(*checks: Check, **why: str) -> Sequence[Check]:
    return oracle.settled(
        lambda: checks, lambda checks: [check.to_dict() for check in checks], {"rows": "ok"}, without=why, pause=0
    )


def test_a_check_is_left_out_for_a_reason_while_it_does_not_hold() -> None:
    why = "a clean runs for ever"
    assert left_out(*BUSY, metadata=why) == tuple(BUSY)
    with pytest.raises(AssertionError, match=rf"metadata: left out \({why}\), but it holds"):
        left_out(*QUIET, metadata=why)
    with pytest.raises(AssertionError, match=r"rows: violated, wanted ok"):
        left_out(violated("rows", "a row is missing"), BUSY[1], metadata=why)


def test_what_nobody_has_seen_may_be_anything() -> None:
    """It is not asked, so that its outcome says nothing; its reason says that."""
    why = oracle.not_seen("metadata")
    assert {type(reason) for reason in why.values()} == {oracle.Unasked}
    found = [BUSY[0], not_asked("metadata", "switched off")]
    assert left_out(*found, **why) == tuple(found)


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ({"metadata": ""}, "metadata: left out for the reason '': it needs a sentence"),
        ({"metadata": "not asked"}, "metadata: left out for the reason 'not asked': it needs a sentence"),
        ({"meta": "a clean runs for ever"}, "meta: there is no such check of the audit; there are rows, origin"),
    ],
)
def test_no_check_is_left_out_without_a_reason(why: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        left_out(*BUSY, **why)

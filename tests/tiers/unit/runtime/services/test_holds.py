"""What a hold needs, and whether a clean has deleted some of it."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_contract.requests import HoldDone
from hudi_contract.shape import ShapeError
from hudi_contract.words import Result
from hudi_runtime.process.etcd import Entry
from hudi_runtime.services import holds
from hudi_runtime.services.holds import Hold, Proof
from hudi_runtime.table import timeline as tl
from tests.support.world.fake_holds import base, done, log, t

HOLD = Hold("a", t(3), t(4))


def timeline(*names: str) -> tl.Timeline:
    return tl.parse(names)


def entries(**more: Any) -> dict[str, Entry]:
    record = HoldDone(name="a", result=Result.PENDING, instant=t(3), boundary=t(4), kept_until_ms=1000)
    return {"hold-a": Entry("done/hold-a", record.but(**more).to_json(), 1)}


@pytest.mark.parametrize("result", [Result.PENDING, Result.COMPLETED])
def test_it_lasts_from_its_record_on_until_its_time_is_over(result: Result) -> None:
    """Before it is granted, too: what is deleted meanwhile could not be granted any more."""
    assert holds.lasting(entries(result=result), 999) == (HOLD,)
    assert holds.lasting(entries(result=result), 1000) == ()


def test_one_that_is_refused_or_has_no_commit_yet_keeps_nothing() -> None:
    assert holds.lasting(entries(result=Result.FAILED), 0) == ()
    assert holds.lasting(entries(instant=""), 0) == ()


def test_one_that_cannot_be_read_lets_nothing_be_deleted() -> None:
    with pytest.raises(ShapeError, match="done/hold-a"):
        holds.lasting({"hold-a": Entry("done/hold-a", {}, 1, "is not JSON")}, 0)
    with pytest.raises(ShapeError, match="keptUntilMs"):
        holds.lasting({"hold-a": Entry("done/hold-a", {"keptUntilMs": "soon"}, 1)}, 0)


def test_all_that_completed_since_is_kept_and_what_it_replaced() -> None:
    found = timeline(done(1, 2), done(3, 4), done(5, 6), done(7, 8, "clean"))
    assert holds.oldest_of(found, HOLD) == t(3)
    late = timeline(done(1, 2), done(3, 4), done(2, 9))
    assert holds.oldest_of(late, HOLD) == t(2), "requested before, and it has replaced what the readers see"
    assert holds.held_from(found, entries(), 0) == t(3)
    assert holds.held_from(found, {}, 0) == ""


def test_the_commit_that_is_asked_for_or_the_last_one() -> None:
    found = timeline(done(1, 9), done(3, 4), done(5, 6, "clean"), f"{t(7)}.commit.requested")
    assert holds.chosen(found, "") == (Hold("", t(3), t(9)), "")
    assert holds.chosen(found, t(1)) == (Hold("", t(1), t(9)), "")
    for instant, word in (
        (t(7), "is pending"),
        (t(5), "has no commit that was requested at"),
        (t(4), f"is the completion time of commit {t(3)}"),
        (t(2), "has no commit"),
    ):
        hold, why = holds.chosen(found, instant)
        assert hold is None
        assert word in why
    assert holds.chosen(timeline(), "") == (None, "the active timeline has no commit")


def test_it_is_gone_with_its_commit_or_the_last_one_that_its_readers_see() -> None:
    assert not holds.gone(timeline(done(1, 2), done(3, 4)), HOLD)
    assert holds.gone(timeline(done(1, 2)), HOLD)
    assert holds.gone(timeline(done(3, 4)), Hold("a", t(3), t(9)))


def test_a_clean_that_saw_no_later_commit_has_deleted_nothing_of_it() -> None:
    cleans = (done(5, 6, "clean"), done(9, 10, "clean"))
    assert holds.doubtful(timeline(done(3, 4), *cleans), HOLD) == ()
    found = holds.doubtful(timeline(done(3, 4), done(7, 8), *cleans), HOLD)
    assert [i.requested for i in found] == [t(9)]


COMPLETIONS = {t(1): t(2), t(3): t(4), t(5): t(6), t(7): t(8)}


def missing(
    *deleted: str, there: tuple[str, ...] = (), completions: dict[str, str] | None = None, replaced: str = ""
) -> str:
    proof = Proof(HOLD, {**COMPLETIONS, **(completions or {})}, {("p", "g"): replaced} if replaced else {})
    return proof.missing({"p": deleted}, lambda partition: there if partition == "p" else ())


def test_what_was_replaced_before_the_hold_is_not_needed() -> None:
    there = (base("g", 3), base("g", 5))
    assert missing(base("g", 1), there=there) == ""
    assert missing(log("g", 1), there=there) == ""


def test_the_version_that_readers_see_is_needed() -> None:
    assert missing(base("g", 1), there=(base("g", 5),)) == f"p/{base('g', 1)}"
    assert missing(base("g", 3)) == f"p/{base('g', 3)}"
    assert missing(base("g", 3), base("g", 1), there=(base("g", 5),)) == f"p/{base('g', 3)}"
    assert missing(log("g", 3), there=(base("g", 1), base("g", 5))) == f"p/{log('g', 3)}"
    assert missing(log("g", 3), there=(base("g", 5),)) == f"p/{log('g', 3)}", "of a group without a base file"


def test_a_log_file_belongs_to_the_version_after_whose_begin_it_was_completed() -> None:
    """A compaction was requested at 2, while a write that began at 1 was under way."""
    times = {t(1): t(3), t(2): t(4)}
    assert missing(log("g", 1), there=(base("g", 2), base("g", 5)), completions=times) == f"p/{log('g', 1)}"


def test_what_a_later_commit_wrote_is_needed_for_whoever_reads_from_the_hold_on() -> None:
    assert missing(base("g", 5), there=(base("g", 3), base("g", 7))) == f"p/{base('g', 5)}"
    assert missing(base("g", 1), there=(base("g", 2),), completions={t(2): t(9)}) == f"p/{base('g', 1)}", (
        "the version 2 was requested before the hold, and completed after it"
    )


def test_a_group_that_was_replaced_as_a_whole() -> None:
    assert missing(base("g", 1), replaced=t(3)) == ""
    assert missing(base("g", 1), replaced=t(5)) == f"p/{base('g', 1)}"


def test_what_is_of_no_known_kind_is_needed() -> None:
    assert missing("data.lance.tmp") == "p/data.lance.tmp"

"""Holds as the agent grants them: kept from the record on, granted when nothing that was planned
before can delete a file any more, and none is gone.
"""

from __future__ import annotations

from typing import Any

import pytest

from hudi_contract.words import Result
from hudi_operator.api.holds import Hold
from hudi_runtime.agent import holds as agent_holds
from hudi_runtime.table import timeline as tl
from tests.support.world.agent_contexts import look
from tests.support.world.fake_holds import Fake, base, done, t

NOW = 1_000_000
COMMITS = [done(1, 2), done(3, 4)]
KEY = "done/hold-a"


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_holds, "now_ms", lambda: NOW)


def asked(instant: str = "", *, seconds: int = 3600, since: int = NOW) -> dict[str, Any]:
    """As the operator asks."""
    return Hold(name="a", instant=instant, duration_seconds=seconds).request("uid", since_ms=since).to_json()


def answer(fake: Fake) -> tuple[str, str, str]:
    found = fake.kv[KEY]
    return found["result"], found.get("instant", ""), found.get("message", "")


def test_the_last_commit_is_held_and_granted_at_once() -> None:
    fake = Fake([done(1, 5), done(3, 4)])
    fake.serve(fake.holds(), asked())
    assert answer(fake) == ("Completed", t(3), "")
    found = fake.kv[KEY]
    assert (found["boundary"], found["sinceMs"], found["untilMs"]) == (t(5), NOW, NOW + 3_600_000)
    assert found["keptUntilMs"] == NOW + 3_605_000, "and what a clock may be ahead"
    assert fake.asked == []


def test_what_a_clock_may_be_ahead_is_the_gates() -> None:
    fake = Fake(COMMITS, gate={"state": "open", "lock": {"maxClockSkewSeconds": 60}})
    fake.serve(fake.holds(), asked())
    assert fake.kv[KEY]["keptUntilMs"] == NOW + 3_660_000


def test_it_is_recorded_before_anything_is_looked_at() -> None:
    """A clean that is planned from then on keeps its files; one before is seen."""
    fake, seen = Fake(COMMITS), list[str]()
    list_ = fake.timeline

    def timeline() -> tl.Timeline:
        seen.append(str(fake.kv.get(KEY, {}).get("instant", "")))
        return list_()

    fake.timeline = timeline  # type: ignore[method-assign]
    fake.serve(fake.holds(), asked())
    assert seen == ["", t(3)]


def test_a_clean_that_is_being_planned_is_waited_for() -> None:
    fake = Fake(COMMITS)
    keeper = fake.holds()
    with fake.removing:
        fake.serve(keeper, asked())
        assert answer(fake) == ("Pending", t(3), "a clean is being planned, or instants are being archived")
    fake.serve(keeper, asked())
    assert answer(fake) == ("Completed", t(3), "")


def test_a_clean_that_began_before_is_waited_for_until_it_is_over() -> None:
    fake = Fake([*COMMITS, f"{t(5)}.clean.requested"])
    keeper = fake.holds()
    fake.serve(keeper, asked())
    assert answer(fake) == ("Pending", t(3), f"clean {t(5)} began before the hold, and is not over")
    fake.names = [*COMMITS, done(5, 6, "clean")]
    fake.serve(keeper, asked())
    assert answer(fake) == ("Completed", t(3), "")


def test_another_agent_that_may_still_do_something_is_waited_for() -> None:
    fake = Fake(COMMITS, others=["agent-other"])
    fake.serve(fake.holds(), asked())
    assert answer(fake) == ("Pending", t(3), "another agent (agent-other) is not settled")


LATER = [done(1, 2), done(5, 6), done(7, 8, "clean")]


def test_an_older_commit_is_granted_when_no_file_of_it_is_gone() -> None:
    fake = Fake(LATER, files={"p": [base("g", 1), base("g", 5)]}, deleted={"p": {base("g", 0)}})
    fake.serve(fake.holds(), asked(t(1)))
    assert answer(fake) == ("Completed", t(1), "")
    assert fake.asked == [(t(7),)]


def test_an_older_commit_is_refused_when_a_clean_has_deleted_a_file_of_it() -> None:
    fake = Fake(LATER, files={"p": [base("g", 5)]}, deleted={"p": {base("g", 1)}})
    keeper = fake.holds()
    for _ in range(2):
        fake.serve(keeper, asked(t(1)))
        assert answer(fake) == ("Failed", t(1), f"file p/{base('g', 1)} was deleted by a clean before the hold")
    assert len(fake.asked) == 1, "it is not looked at again"


def test_the_last_commit_is_chosen_anew_when_a_clean_was_quicker() -> None:
    fake = Fake(LATER, files={"p": [base("g", 5)]}, deleted={"p": {base("g", 1)}})
    keeper = fake.holds()
    fake.put(KEY, {"name": "a", "result": "Pending", "instant": t(1), "boundary": t(2), "sinceMs": NOW,
                   "untilMs": NOW + 3_600_000, "keptUntilMs": NOW + 3_605_000, "atMs": 1})  # fmt: skip
    fake.serve(keeper, asked())
    assert answer(fake)[:2] == ("Pending", t(5))
    for _ in range(2):  # in the first pass the records may be from before the look
        fake.serve(keeper, asked())
    assert answer(fake) == ("Completed", t(5), "")


def test_what_completed_since_and_was_archived_is_not_known() -> None:
    archived = (tl.Instant(t(2), "commit", tl.State.COMPLETED, t(6)),)
    fake = Fake([done(3, 4), done(7, 8), done(9, 10, "clean")], archived=archived)
    fake.serve(fake.holds(), asked(t(3)))
    result, _, why = answer(fake)
    assert result == "Failed"
    assert why.startswith(f"commit {t(2)} completed after {t(3)} and was archived")


def test_an_archive_is_looked_at_even_if_nothing_in_the_active_timeline_is_later() -> None:
    long = (tl.Instant(t(2), "commit", tl.State.COMPLETED, t(6)),)
    fake = Fake([done(3, 4), done(7, 8, "clean")], archived=long)
    fake.serve(fake.holds(), asked(t(3)))
    assert answer(fake)[0] == "Failed"
    earlier = (tl.Instant(t(1), "commit", tl.State.COMPLETED, t(2)),)
    fake = Fake([done(3, 4), done(7, 8, "clean")], archived=earlier)
    fake.serve(fake.holds(), asked(t(3)))
    assert answer(fake) == ("Completed", t(3), "")


@pytest.mark.parametrize(
    ("instant", "why"),
    [(t(2), "is the completion time of commit"), (t(9), "has no commit that was requested at")],
)
def test_a_commit_that_is_not_there_is_refused_and_not_looked_for_again(instant: str, why: str) -> None:
    fake = Fake(COMMITS)
    keeper = fake.holds()
    for _ in range(3):
        fake.serve(keeper, asked(instant))
        result, held, said = answer(fake)
        assert (result, held) == ("Failed", "")
        assert why in said
    assert fake.listed == 1


def test_one_that_is_extended_is_proved_once_more() -> None:
    fake = Fake(COMMITS)
    keeper = fake.holds()
    fake.serve(keeper, asked())
    fake.names.append(f"{t(5)}.clean.requested")
    fake.serve(keeper, asked(seconds=7200))
    assert answer(fake)[:2] == ("Pending", t(3))
    assert fake.kv[KEY]["untilMs"] == NOW + 7_200_000
    fake.names[-1] = done(5, 6, "clean")
    fake.serve(keeper, asked(seconds=7200))
    assert answer(fake) == ("Completed", t(3), "")


def test_one_that_is_withdrawn_is_forgotten_and_another_one_of_its_name_begins_anew() -> None:
    fake = Fake(list(COMMITS))
    keeper = fake.holds()
    fake.serve(keeper, asked())
    fake.serve(keeper)
    assert KEY not in fake.kv
    fake.serve(keeper, asked())
    fake.names.append(done(5, 6))
    fake.serve(keeper, asked(since=NOW + 1))
    assert answer(fake) == ("Completed", t(5), "")


def test_one_whose_commit_a_restore_has_undone_is_refused() -> None:
    fake = Fake(list(COMMITS))
    keeper = fake.holds()
    fake.serve(keeper, asked())
    fake.serve(keeper, asked(), seen=False)
    assert answer(fake)[0] == "Completed", "before the first listing nothing is known"
    del fake.names[-1]
    fake.serve(keeper, asked())
    result, held, why = answer(fake)
    assert (result, held) == ("Failed", t(3))
    assert "a restore has undone it" in why


def test_a_failure_is_tried_again_later_and_takes_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = [100.0]
    monkeypatch.setattr(agent_holds.time, "monotonic", lambda: moment[0])
    fake = Fake(list(COMMITS), error=OSError("listing failed"))
    keeper = fake.holds()
    fake.serve(keeper, asked())
    assert answer(fake) == ("Pending", "", "OSError: listing failed")
    fake.error = None
    fake.serve(keeper, asked())
    assert answer(fake)[0] == "Pending", "its pause is not over"
    moment[0] += agent_holds.RETRY_SECONDS
    fake.serve(keeper, asked())
    assert answer(fake) == ("Completed", t(3), "")
    fake.error = OSError("listing failed")
    fake.serve(keeper, asked(), seen=False)
    assert answer(fake) == ("Completed", t(3), "")


def test_a_record_that_cannot_be_read_is_written_anew() -> None:
    fake = Fake(list(COMMITS))
    fake.put(KEY, {})
    fake.unreadable.add(KEY)
    fake.serve(fake.holds(), asked())
    assert answer(fake) == ("Completed", t(3), "")
    assert Result(fake.kv[KEY]["result"]) is Result.COMPLETED


def test_who_asks_as_of_a_commit_does_not_see_what_was_requested_after_it() -> None:
    """Also when that was completed before: a clean may have deleted what it had replaced."""
    names = [done(2, 9), done(4, 5), done(6, 7), done(10, 11, "clean")]
    fake = Fake(names, files={"a": [base("g", 4), base("g", 6)]}, deleted={"a": {base("g", 1)}})
    fake.serve(fake.holds(), asked(t(2)))
    assert answer(fake) == ("Failed", t(2), f"file a/{base('g', 1)} was deleted by a clean before the hold")


LAPSED = {"name": "a", "instant": t(3), "boundary": t(4), "sinceMs": NOW - 300_000, "untilMs": NOW - 10,
          "keptUntilMs": NOW - 5, "atMs": 1}  # fmt: skip


def test_a_hold_that_is_extended_after_its_end_is_looked_at_with_the_archive() -> None:
    archived = (tl.Instant(t(2), "commit", tl.State.COMPLETED, t(6)),)
    fake = Fake([done(3, 4), done(7, 8, "clean")], archived=archived)
    fake.put(KEY, LAPSED | {"result": "Completed"})
    fake.serve(fake.holds(), asked(since=NOW - 300_000, seconds=7200))
    result, instant, why = answer(fake)
    assert (result, instant) == ("Failed", t(3))
    assert why.startswith(f"commit {t(2)} completed after {t(3)} and was archived")


def test_a_hold_that_was_granted_is_of_no_other_commit() -> None:
    """Its reader has begun: what it reads is gone, whatever else could be kept."""
    fake = Fake([*COMMITS, done(5, 6), done(7, 8, "clean")], files={"p": [base("g", 5)]}, deleted={"p": {base("g", 3)}})
    keeper = fake.holds()
    fake.put(KEY, LAPSED | {"result": "Completed"})
    for _ in range(3):
        fake.serve(keeper, asked(since=NOW - 300_000, seconds=7200))
        assert answer(fake) == ("Failed", t(3), f"file p/{base('g', 3)} was deleted by a clean before the hold")


def test_a_hold_that_was_never_granted_in_its_time_is_of_the_last_commit() -> None:
    fake = Fake([*COMMITS, done(5, 6), done(7, 8, "clean")])
    fake.put(KEY, LAPSED | {"result": "Pending"})
    fake.serve(fake.holds(), asked(since=NOW - 300_000, seconds=7200))
    assert answer(fake) == ("Completed", t(5), "")


def test_what_an_agent_did_that_ends_meanwhile_is_listed() -> None:
    """It has put a clean on the timeline right after that was listed, and was gone right after."""
    fake = Fake(COMMITS, others=["agent-other"])
    keeper, listed = fake.holds(), fake.timeline

    def timeline() -> tl.Timeline:
        found = listed()
        if fake.kv.get(KEY, {}).get("instant"):
            fake.others, fake.names = [], [*COMMITS, f"{t(5)}.clean.requested"]
        return found

    fake.timeline = timeline  # type: ignore[method-assign]
    fake.serve(keeper, asked())
    assert answer(fake) == ("Pending", t(3), "another agent (agent-other) is not settled")
    fake.serve(keeper, asked())
    assert answer(fake) == ("Pending", t(3), f"clean {t(5)} began before the hold, and is not over")


def test_what_was_replaced_by_an_archived_commit_is_needed_by_nobody() -> None:
    names = [done(3, 4), done(5, 6), done(7, 8, "clean")]
    gone = (tl.Instant(t(1), "replacecommit", tl.State.COMPLETED, t(2)),)
    for replaced, result in ((frozenset({("p", "g")}), "Completed"), (frozenset(), "Failed")):
        fake = Fake(names, archived=gone, deleted={"p": {base("g", 0)}}, replaced={t(1): replaced})
        fake.serve(fake.holds(), asked(t(3)))
        assert answer(fake)[0] == result


def test_records_from_before_a_look_do_not_undo_its_answer() -> None:
    fake = Fake(LATER, files={"p": [base("g", 1), base("g", 5)]}, deleted={"p": {base("g", 0)}})
    keeper, request = fake.holds(), asked(t(1))
    fake.serve(keeper, request)
    assert answer(fake)[0] == "Completed"
    answered = dict(fake.kv[KEY])
    old = Fake(LATER, kv={KEY: answered | {"result": "Pending", "atMs": 1}})
    found = look({str(request["id"]): request}, old.records())
    object.__setattr__(found, "timeline", tl.parse(LATER))
    keeper.consider(found)
    assert fake.kv[KEY] == answered
    assert len(fake.asked) == 1

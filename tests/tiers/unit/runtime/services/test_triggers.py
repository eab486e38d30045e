"""When a service is due, and how far archival may go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_contract.assignment import ServiceOrder, Window
from hudi_contract.requests import Counted, ServiceDone, ServiceRequest
from hudi_contract.shape import ShapeError
from hudi_contract.words import MergeMode, Result, Service
from hudi_runtime.job import merging
from hudi_runtime.process.errors import OutcomeUnknown
from hudi_runtime.process.etcd import Entry
from hudi_runtime.services import triggers
from hudi_runtime.services.service_actions import (
    HOURS,
    KEEP_MAX,
    KEEP_MIN,
    OPTIONS,
    Actions,
    floor,
    keep_at_least,
    owner_that_holds,
    since_replaced,
    with_least,
)
from hudi_runtime.services.triggers import due
from hudi_runtime.settle.rollback import NotYet
from hudi_runtime.settle.settle import Records
from hudi_runtime.table import timeline as tl

NOW = 1_000_000
NEVER = ServiceRequest()
"""No tick was asked for."""
TICK = "2026-11-22T03:00:00Z"


def t(number: int) -> str:
    return f"20260101000000{number:03d}"


def timeline(*names: str) -> tl.Timeline:
    return tl.parse(names)


def done(requested: int, completed: int, action: str = "deltacommit") -> str:
    return f"{t(requested)}_{t(completed)}.{action}"


def test_commits_of_writers_are_counted() -> None:
    found = timeline(
        done(1, 2),
        done(3, 9),
        done(4, 5, "commit"),
        done(6, 7, "clean"),
        f"{t(8)}.deltacommit.requested",
        done(10, 11, "replacecommit"),
    )
    assert triggers.commits_since(found, "", merge_on_read=True) == 3, (
        "on MergeOnRead a commit is a compaction's result"
    )
    assert triggers.commits_since(found, "", merge_on_read=False) == 4
    assert triggers.commits_since(found, t(2), merge_on_read=True) == 2, "by completion time: 3 completed after 2"
    assert triggers.commits_since(found, t(9), merge_on_read=True) == 1


def test_archived_commits_are_counted() -> None:
    found = timeline(done(10, 11), done(12, 13))
    assert triggers.commits_after(found, t(2), None, merge_on_read=True) == 2
    assert triggers.commits_after(found, t(2), Counted(up_to=t(2), commits=7, to=t(11)), merge_on_read=True) == 8, (
        "one of the two was counted before"
    )
    assert triggers.commits_after(found, t(3), Counted(up_to=t(2), commits=7, to=t(11)), merge_on_read=True) == 2, (
        "the service has run since it was counted"
    )


def test_what_a_service_has_written_starts_no_service() -> None:
    """Its completed action is that of a writer; the files of the earlier states tell."""
    clustered, replaced = (
        [f"{t(1)}.clustering.requested", done(1, 2, "replacecommit")],
        [f"{t(3)}.replacecommit.requested", done(3, 4, "replacecommit")],
    )
    assert triggers.commits_since(timeline(*clustered), "", merge_on_read=False) == 0
    assert triggers.commits_since(timeline(*clustered, *replaced), "", merge_on_read=False) == 1
    assert triggers.commits_since(timeline(f"{t(1)}.logcompaction.requested", done(1, 2)), "", merge_on_read=True) == 0


@pytest.mark.parametrize(("commits", "starts"), [(4, False), (5, True), (6, True)])
def test_after_commits(commits: int, starts: bool) -> None:
    assert bool(due(ServiceOrder(after_commits=5), ServiceDone(), commits=commits, request=NEVER, now_ms=NOW)) is starts


@pytest.mark.parametrize(("at", "starts"), [(NOW - 1, False), (NOW, True), (NOW + 59, True), (NOW + 60, False)])
def test_a_run_begins_within_its_window_only(at: int, starts: bool) -> None:
    raw = {"afterCommits": 5, "scheduled": True, "window": {"fromMs": NOW, "untilMs": NOW + 60}}
    service = triggers.orders({"clean": ServiceOrder.from_json(raw)})[Service.CLEAN]
    assert bool(due(service, ServiceDone(), commits=9, request=NEVER, now_ms=at)) is starts
    assert bool(due(service, ServiceDone(), commits=0, request=ServiceRequest(nonce=TICK), now_ms=at)) is starts


def test_a_tick_runs_once() -> None:
    service = ServiceOrder(after_commits=None, scheduled=True)
    request = ServiceRequest(nonce=TICK)
    assert due(service, ServiceDone(), commits=99, request=NEVER, now_ms=NOW) == "", (
        "without afterCommits no number of commits starts it"
    )
    assert TICK in due(service, ServiceDone(nonce="2026-11-20T03:00:00Z"), commits=0, request=request, now_ms=NOW), (
        "missed ticks run once: the newest counts"
    )
    assert due(service, ServiceDone(nonce=TICK), commits=0, request=request, now_ms=NOW) == ""
    assert due(service, ServiceDone(), commits=0, request=request.but(baseline=True), now_ms=NOW) == "", (
        "what was past at the beginning is not run"
    )
    assert due(ServiceOrder(after_commits=None), ServiceDone(), commits=0, request=request, now_ms=NOW) == "", (
        "a request for a service without schedule"
    )


def test_what_a_person_asks_for_runs_once() -> None:
    """Its window does not delay it; a failure does, until the next try."""
    closed = Window(from_ms=NOW + 1, until_ms=NOW + 60)
    service, asked = ServiceOrder(after_commits=5, window=closed), ServiceRequest(run="now-1")
    assert "now-1" in due(service, ServiceDone(), commits=0, request=asked, now_ms=NOW)
    assert "now-1" in due(service, ServiceDone(runs=("before",)), commits=0, request=asked, now_ms=NOW)
    assert due(service, ServiceDone(runs=("now-1",)), commits=99, request=asked, now_ms=NOW) == "", (
        "it was served, and the window is closed for what else is due"
    )
    assert due(service, ServiceDone(runs=("now-1",)), commits=0, request=NEVER, now_ms=NOW) == "", "it was withdrawn"
    assert due(service, ServiceDone(runs=("now-1", "other")), commits=0, request=asked, now_ms=NOW) == "", "F553"
    assert due(service, ServiceDone(retry_at_ms=NOW + 1), commits=0, request=asked, now_ms=NOW) == ""


def test_nothing_before_the_next_try() -> None:
    service = ServiceOrder(after_commits=1)
    assert due(service, ServiceDone(retry_at_ms=NOW + 1), commits=9, request=NEVER, now_ms=NOW) == ""
    assert due(service, ServiceDone(retry_at_ms=NOW), commits=9, request=NEVER, now_ms=NOW)
    assert [triggers.backoff_ms(n) for n in (0, 1, 2, 3, 60)] == [0, 10_000, 20_000, 40_000, 3_600_000]


def test_partitions_that_were_left_out_are_not_forgotten() -> None:
    """A clustering follows when fewer have to be left out: no commit may come any more, and an
    agent that knows of none has not seen why there were some.
    """
    service = ServiceOrder(after_commits=5, window=Window(from_ms=NOW, until_ms=NOW + 60))
    for now_left_out, starts in ((2, False), (1, True), (0, True)):
        assert (
            bool(due(service, ServiceDone(left_out=2), commits=4, request=NEVER, now_ms=NOW, left_out=now_left_out))
            is starts
        )
    assert due(service, ServiceDone(left_out=2), commits=4, request=NEVER, now_ms=NOW + 60) == "", (
        "its window is closed"
    )
    assert due(service, ServiceDone(left_out=2, retry_at_ms=NOW + 2), commits=4, request=NEVER, now_ms=NOW + 1) == ""
    assert due(service, ServiceDone(), commits=4, request=NEVER, now_ms=NOW) == ""


def test_services_of_an_assignment() -> None:
    order = ServiceOrder(scheduled=True, options={"a": "b"})
    assert triggers.orders({"clean": order, "unknown": ServiceOrder()}) == {Service.CLEAN: order}
    assert triggers.orders({}) == {}, "an operator that knows no services asks for none"


# ---- archival


def records(**keys: Any) -> Records:
    entries = [Entry(f"/p/{name.replace('__', '/')}", value, 1) for name, value in keys.items()]
    return Records.from_entries(entries, prefix="/p/")


COMMITS = [done(n, n + 1) for n in range(10, 40, 2)]


def test_nothing_holds_a_quiet_table() -> None:
    quiet = timeline(*COMMITS)
    assert floor(quiet, records()) == ""
    assert keep_at_least(quiet, "") == 0


@pytest.mark.parametrize(
    "keys",
    [
        {"settle__dead": {"phase": "RollingBack", "instants": {t(20): {"action": "commit", "outcome": "RolledBack"}}}},
        {"settle__dead": {"phase": "Fenced", "instants": {t(20): {"action": "commit", "outcome": None}}}},
        {"done__abandoned-alive": {"inc": "alive", "instants": [t(30), t(20)]}},
        {f"instant__{t(20)}": {"inc": "alive", "action": "commit", "state": "Abandoned"}},
    ],
)
def test_archival_stays_behind_what_is_not_swept(keys: dict[str, Any]) -> None:
    """I5: rolled back is not enough, a late file may still come."""
    assert floor(timeline(*COMMITS), records(**keys)) == t(20)


def test_archival_says_which_writer_holds_it() -> None:
    """F497: one that lives for months holds it for months, and the service is healthy."""
    found = timeline(*COMMITS)
    given_up = records(**{"done__abandoned-alive": {"inc": "alive", "instants": [t(30), t(20)]}})
    told = owner_that_holds(found, floor(found, given_up), given_up)
    assert told == (
        f"incarnation alive has abandoned instant {t(20)}: newer instants are not archived until its process has ended"
    )
    kept = records(**{f"instant__{t(20)}": {"inc": "w", "action": "deltacommit", "state": "Pending"}})
    assert owner_that_holds(found, floor(found, kept), kept) == (
        f"incarnation w has completed instant {t(20)}, and a file of it may still come, because an executor was lost "
        "or a stage repeated: newer instants are not archived until its process has ended"
    )
    pending = timeline(f"{t(20)}.deltacommit.requested", f"{t(20)}.deltacommit.inflight")
    assert owner_that_holds(pending, floor(pending, kept), kept) == ""
    assert owner_that_holds(found, floor(found, records()), records()) == ""


def test_what_is_swept_holds_nothing() -> None:
    assert (
        floor(
            timeline(*COMMITS), records(settle__dead={"phase": "Swept", "instants": {t(20): {"outcome": "RolledBack"}}})
        )
        == ""
    )


def test_commits_that_overlap_a_pending_one_stay() -> None:
    """I9: the commit of 15 began before the pending 20 and ended after it.

    Its conflict check needs it. Hudi itself would archive it.
    """
    found = timeline(
        done(10, 11), done(15, 31), done(18, 19), f"{t(20)}.deltacommit.requested", done(22, 23), done(24, 25)
    )
    assert floor(
        found, records(**{f"instant__{t(20)}": {"inc": "w", "action": "deltacommit", "state": "Pending"}})
    ) == t(15)
    assert floor(found, records()) == t(15), "the timeline alone says it too"


def test_a_recorded_instant_without_file_counts() -> None:
    """F12: its requested file may still be on the wire."""
    assert floor(
        timeline(*COMMITS), records(**{f"instant__{t(21)}": {"inc": "w", "action": "commit", "state": "Pending"}})
    ) == t(21)


def test_the_active_timeline_begins_before_the_floor() -> None:
    found = timeline(*COMMITS)
    assert keep_at_least(found, t(20)) == len([c for c in COMMITS if c >= t(20)]) + 1
    assert keep_at_least(found, t(99)) == 1


def test_least_raises_what_hudi_keeps() -> None:
    options = {KEEP_MIN: "4", KEEP_MAX: "5", "other": "x"}
    assert with_least(options, 3) == options
    assert with_least(options, 4) == options
    assert with_least(options, 9) == {KEEP_MIN: "9", KEEP_MAX: "10", "other": "x"}
    assert with_least({KEEP_MIN: "4", KEEP_MAX: "20"}, 9) == {KEEP_MIN: "9", KEEP_MAX: "20"}


class Archiving:
    """A table whose archival only notes what it may go down to."""

    def __init__(self, commits: int) -> None:
        self.listing = timeline(*(f"2026010100{n:04d}000_2026010100{n:04d}001.commit" for n in range(commits)))
        self.kept: list[tuple[str, str]] = []
        self.looks: list[bool] = []
        self.asked: list[str] = []
        self.there: set[str] = set()
        """Commits whose replaced files are there."""
        self.archived = 1
        self.never = True
        self.locked_now = False

    def timeline(self) -> tl.Timeline:
        self.looks.append(self.locked_now)
        return self.listing

    def written(self, instants: tuple[tl.Instant, ...]) -> Iterator[tuple[tl.Instant, Any]]:
        for instant in instants:
            assert not self.locked_now, "folders are listed"
            self.asked.append(instant.requested)
            yield instant, SimpleNamespace(replaced=instant.requested)

    def any_file_of(self, groups: str) -> bool:
        return groups in self.there

    @contextmanager
    def locked(self, _config: object) -> Iterator[None]:
        self.locked_now = True
        yield
        self.locked_now = False

    def write_config(self, _name: str, options: dict[str, str]) -> Any:
        never = self.never
        policy = type("Policy", (), {"isNever": lambda _self: never})()
        return type(
            "Config",
            (),
            {"options": options, "setValue": lambda *_: None, "getFailedWritesCleanPolicy": lambda _self: policy},
        )()

    def client(self, _config: object) -> None:
        raise AssertionError("no client may be made")

    def require_merger(self, merge: merging.Merge) -> None:
        if merge.mode == MergeMode.CUSTOM:
            raise merging.NoMerger(f"no {merge.class_name}")

    def archive(self, config: Any) -> int:
        assert self.locked_now
        self.kept.append((config.options[KEEP_MIN], config.options[KEEP_MAX]))
        return self.archived


def actions(table: Any, options: dict[str, str] | None = None, merge: merging.Merge = merging.LATER_COMMIT) -> Actions:
    def never(instant: str) -> None:
        raise AssertionError(instant)

    return Actions(table, "t", lambda: options or {}, records, never, never, merge)


@pytest.mark.parametrize(("count", "kept"), [(9, ("4", "5")), (204, ("4", "5")), (1000, ("800", "801"))])
def test_a_backlog_is_archived_in_several_runs(count: int, kept: tuple[str, str]) -> None:
    """The lock is held meanwhile."""
    table: Any = Archiving(count)
    done_ = actions(table).archive({KEEP_MIN: "4", KEEP_MAX: "5"})
    assert done_.result is Result.COMPLETED
    assert table.kept == [kept]
    assert table.looks[-1], "the last look is under the lock"


def test_a_commit_stays_while_the_files_that_it_replaced_are_there() -> None:
    """F479: without it, their rows are back. Each is looked for until it is gone."""
    options = {KEEP_MIN: "2", KEEP_MAX: "3"}
    table: Any = Archiving(0)
    names = [done(n, n + 1, "replacecommit" if n in {20, 30, 46} else "commit") for n in range(10, 50, 2)]
    table.listing = timeline(*names)
    table.there = {t(20), t(30), t(46)}
    own = actions(table)
    for there, asked, kept in (
        ({t(20), t(30)}, [t(20)], 15),
        ({t(30)}, [t(20), t(30)], 10),
        ({t(30)}, [t(30)], 10),
        (set(), [t(30)], 2),
        ({t(46)}, [], 2),
    ):
        table.there, table.asked = there, []
        own.archive(options)
        assert (table.asked, int(table.kept[-1][0])) == (asked, kept)
    table.there, table.archived = {t(20)}, 0
    said = actions(table).archive(options)
    assert said.message == f"nothing may be archived yet: files that {t(20)} has replaced are there: " + (
        "a clean deletes them first"
    )
    table.listing = timeline(*names, done(25, 49, "replacecommit"))
    assert since_replaced(table.listing, own.gone) == 13, "completed meanwhile: nobody has looked"


def test_no_service_runs_with_another_policy_than_never() -> None:
    """F2: Hudi's clean() would roll back what it takes for dead."""
    table: Any = Archiving(9)
    table.never = False
    with pytest.raises(OutcomeUnknown, match="NEVER"):
        actions(table).archive({KEEP_MIN: "4", KEEP_MAX: "5"})
    with pytest.raises(OutcomeUnknown, match="NEVER"):
        actions(table).compaction.run({}, planned=lambda _instant: None)


def test_versions_are_not_merged_without_the_class_that_says_how() -> None:
    """I8: nothing is planned, and a plan that is there is not executed.

    What merges nothing goes on.
    """
    table: Any = Archiving(9)
    own = actions(table, merge=merging.Merge(MergeMode.CUSTOM, class_name="com.example.Own"))
    for service in (own.compaction, own.clustering):
        with pytest.raises(merging.NoMerger, match=r"com[.]example[.]Own"):
            service.run({}, planned=lambda _instant: None)
    assert own.archive({KEEP_MIN: "4", KEEP_MAX: "5"}).result is Result.COMPLETED


def test_the_tables_options_do_not_start_services_beside_it() -> None:
    theirs = {
        "hoodie.clean.automatic": "true",
        "hoodie.table.services.enabled": "false",
        "hoodie.fail.on.timeline.archiving": "false",
        "a": "b",
    }
    table: Any = Archiving(9)
    assert actions(table, theirs).config({"c": "d"}).options == {"a": "b", "c": "d", **OPTIONS}


def test_a_clean_of_somebody_else_is_not_executed_along() -> None:
    """I12: Hudi would execute every pending clean that it finds."""
    table: Any = Archiving(2)
    table.listing = timeline(f"{t(5)}.clean.requested", f"{t(7)}.clean.requested")
    table.locked_now = True
    with pytest.raises(NotYet, match=t(7)):
        actions(table).clean({}, mine=frozenset({t(5)}))


class Cleaning(Archiving):
    """A table in which other commits complete while a clean is planned.

    `listings`: the timeline at each look; `retained`: what each plan keeps.
    """

    def __init__(self, *listings: tl.Timeline, retained: tuple[str, ...] = ()) -> None:
        super().__init__(0)
        self.listings = list(listings)
        self.retained = list(retained)
        self.planned: list[int] = []
        self.saved: list[str] = []

    def timeline(self) -> tl.Timeline:
        return self.listings.pop(0)

    def plan_clean(self, _config: object, commits: int) -> Any:
        assert not self.locked_now, "planning takes long"
        self.planned.append(commits)
        if not self.retained:
            return None
        retained, table = self.retained.pop(0), self

        class Plan:
            def keeps_from(self, instant: str) -> bool:
                return bool(retained) and retained <= instant

            def emptied(self) -> list[str]:
                return ["was/empty"]

            def save(self) -> None:
                assert table.locked_now
                table.saved.append(retained)

        return Plan()

    @contextmanager
    def client(self, _config: object) -> Iterator[Any]:  # type: ignore[override]
        yield type("Client", (), {"clean": lambda _self: None})()


def test_a_clean_takes_nothing_that_a_pending_write_has_to_list() -> None:
    """F464: the commit 2 has completed since the write 5 began, and 2 is older than what it keeps
    first; the next plan keeps it.
    """
    began = timeline(done(1, 2), done(3, 4), f"{t(5)}.commit.requested")
    completed = timeline(done(1, 2), done(3, 4), done(2, 6), f"{t(5)}.commit.requested")
    table: Any = Cleaning(began, began, completed, completed, completed, retained=(t(3), t(1)))
    actions(table).clean({}, mine=frozenset())
    assert table.planned == [1, 3], "those from the oldest that matters to the pending write, and one more"
    assert table.saved == [t(1)]


def test_a_clean_beside_nobody_is_the_policys() -> None:
    idle = timeline(done(1, 2), done(3, 4))
    table: Any = Cleaning(idle, idle, idle, retained=("",))
    actions(table).clean({}, mine=frozenset())
    assert (table.planned, table.saved) == ([0], [""])


def test_a_clean_waits_for_its_next_turn_when_writes_begin_meanwhile() -> None:
    idle, begun = timeline(done(1, 2)), timeline(done(1, 2), f"{t(3)}.commit.requested")
    table: Any = Cleaning(idle, *[idle, begun] * 9, retained=("",) * 9)
    with pytest.raises(NotYet, match="while the clean was planned"):
        actions(table).clean({}, mine=frozenset())
    assert not table.saved


def test_what_a_long_commit_replaced_stays_as_long_as_the_policy_says() -> None:
    """F475: requested before the hours that are retained, completed within them."""

    def at(hours: float) -> str:
        return (datetime.now(UTC) - timedelta(hours=hours)).strftime("%Y%m%d%H%M%S%f")[:17]

    short, long = f"{at(9)}_{at(8.9)}.commit", f"{at(5)}_{at(0.1)}.commit"
    found = timeline(short, long)
    for options, planned in (({HOURS: "2"}, 2), ({HOURS: "8"}, 0), ({}, 0)):
        table: Any = Cleaning(found, found, found, retained=(at(10),))
        actions(table).clean(options, mine=frozenset())
        assert table.planned == [planned], options
    later = [f"{at(0.05 - n / 1000)}_{at(0.0495 - n / 1000)}.commit" for n in range(9)]
    for options, kept in (({HOURS: "2"}, "11"), ({HOURS: "8"}, "2"), ({}, "2")):
        table = Archiving(0)
        table.listing = timeline(short, long, *later)
        actions(table).archive({KEEP_MIN: "2", KEEP_MAX: "3", **options})
        assert table.kept[0][0] == kept, "F481: archived, it would be unknown to the next clean"


class Compacting:
    """A table whose compaction leaves the timeline as `after`.

    `deleted` are the files that went before it.
    """

    def __init__(self, *after: str) -> None:
        self.after = timeline(*after)
        self.storage = self
        self.deleted: list[str] = []
        self.compacted: list[list[str]] = []

    def names(self, _folder: str) -> list[str]:
        return [t(5)]

    def delete(self, path: str) -> None:
        self.deleted.append(path)

    def require_merger(self, _merge: merging.Merge) -> None:
        """Everything is there."""

    def write_config(self, _name: str, _options: object) -> Any:
        policy = type("Policy", (), {"isNever": lambda _self: True})()
        return type("Config", (), {"setValue": lambda *_: None, "getFailedWritesCleanPolicy": lambda _self: policy})()

    @contextmanager
    def client(self, _config: object) -> Iterator[Compacting]:
        yield self

    def compact(self, _instant: str, _complete: bool) -> None:
        self.compacted.append(list(self.deleted))

    def timeline(self) -> tl.Timeline:
        return self.after


def test_the_heartbeat_of_a_dead_executor_goes_before_its_compaction_is_executed_again() -> None:
    """F9: Hudi would wait for it for ever."""
    table: Any = Compacting(f"{t(5)}.compaction.requested", f"{t(5)}_{t(9)}.commit")
    assert actions(table).compaction.again(t(5), {}, failures=0).result is Result.COMPLETED
    assert table.compacted == [[f".hoodie/.heartbeat/{t(5)}"]]


@pytest.mark.parametrize("after", [[f"{t(5)}.compaction.requested"], []])
def test_a_compaction_is_done_when_the_timeline_says_so(after: list[str]) -> None:
    table: Any = Compacting(*after)
    with pytest.raises(OutcomeUnknown, match="not completed"):
        actions(table).compaction.again(t(5), {}, failures=0)


# ---- holds


def held(*, until: int = 10**14, result: str = "Pending") -> Records:
    """A reader has the commit 14, which completed at 15."""
    said = {"name": "a", "result": result, "instant": t(14), "boundary": t(15), "keptUntilMs": until}
    return records(**{"done__hold-a": said})


def beside(table: Any, *known: Records) -> Actions:
    """The services of a table whose records are these, one after the other; the last ones stay."""
    left = list(known)

    def read() -> Records:
        return left.pop(0) if len(left) > 1 else left[0]

    return Actions(table, "t", dict, read, lambda _: None, lambda _: None, merging.LATER_COMMIT)


@pytest.mark.parametrize("result", ["Pending", "Completed"])
def test_a_clean_deletes_nothing_that_a_hold_needs(result: str) -> None:
    found = timeline(*(done(n, n + 1) for n in range(10, 20, 2)))
    table: Any = Cleaning(*[found] * 3, retained=(t(12),))
    beside(table, held(result=result)).clean({}, mine=frozenset())
    assert (table.planned, table.saved) == ([4], [t(12)]), "14, 16, 18, and one more"


def test_a_clean_deletes_nothing_that_a_hold_needs_which_comes_while_it_is_planned() -> None:
    found = timeline(*(done(n, n + 1) for n in range(10, 20, 2)))
    table: Any = Cleaning(*[found] * 5, retained=(t(16), t(12)))
    beside(table, records(), held()).clean({}, mine=frozenset())
    assert (table.planned, table.saved) == ([0, 4], [t(12)])


def test_a_hold_that_is_over_or_refused_keeps_nothing() -> None:
    found = timeline(*(done(n, n + 1) for n in range(10, 20, 2)))
    for known in (held(until=1), held(result="Failed")):
        table: Any = Cleaning(*[found] * 3, retained=("",))
        beside(table, known).clean({}, mine=frozenset())
        assert (table.planned, table.saved) == ([0], [""])


def test_nothing_is_cleaned_nor_archived_beside_a_hold_that_cannot_be_read() -> None:
    damaged = Records.from_entries([Entry("/p/done/hold-a", {}, 1, "is not JSON")], prefix="/p/")
    table: Any = Archiving(20)
    for act in (
        lambda own: own.clean({}, mine=frozenset()),
        lambda own: own.archive({KEEP_MIN: "4", KEEP_MAX: "5"}),
    ):
        with pytest.raises(ShapeError, match="hold-a"):
            act(beside(table, damaged))
    assert table.kept == []


def test_the_commits_of_a_hold_are_not_archived() -> None:
    options = {KEEP_MIN: "2", KEEP_MAX: "3"}
    for known, kept in ((held(), ("9", "10")), (held(until=1), ("2", "3"))):
        table: Any = Archiving(0)
        table.listing = timeline(*(done(n, n + 1) for n in range(10, 30, 2)))
        beside(table, known).archive(options)
        assert table.kept == [kept]
    table.archived = 0
    assert beside(table, held()).archive(options).message == "nothing may be archived yet: commits stay for hold a"


def test_who_waits_for_what_removes_sees_it_as_over_or_as_not_begun() -> None:
    """Otherwise a hold is granted between the comparison of a plan and its file."""
    found = timeline(*(done(n, n + 1) for n in range(10, 20, 2)))
    table: Any = Cleaning(*[found] * 3, retained=("",))
    own, seen = beside(table, records()), list[bool]()
    real = table.plan_clean

    def plan_clean(config: object, commits: int) -> Any:
        seen.append(own.removing.locked())
        plan = real(config, commits)
        save = plan.save
        plan.save = lambda: (seen.append(own.removing.locked()), save())
        return plan

    table.plan_clean = plan_clean
    own.clean({}, mine=frozenset())
    assert seen == [False, True]
    table = Archiving(9)
    own, archive = beside(table, records()), table.archive
    table.archive = lambda config: (seen.append(own.removing.locked()), archive(config))[1]
    own.archive({KEEP_MIN: "4", KEEP_MAX: "5"})
    assert seen[2:] == [True]
    assert not own.removing.locked()

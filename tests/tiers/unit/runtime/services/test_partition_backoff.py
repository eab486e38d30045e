"""Partitions that a clustering leaves out because one has lost in them: for how long, and what
brings them back.
"""

from __future__ import annotations

from typing import Any

import pytest

from hudi_runtime.services import partition_backoff
from hudi_runtime.services.partition_backoff import (
    LEAST_MS,
    LONGEST_MS,
    MOST_MS,
    Loss,
    PartitionBackoff,
    changed,
    described,
    newest,
    planned,
)

NOW, T1 = 1_800_000_000_000, "20270115080000000"
TOOK = 60_000


def lost(*partitions: str, took_ms: int = TOOK, at: int = NOW) -> PartitionBackoff:
    known = PartitionBackoff()
    known.lost(dict.fromkeys(partitions, at), instant=T1, took_ms=took_ms, now_ms=at)
    return known


def test_left_out_until_it_is_quiet_for_as_long_as_the_lost_run_took() -> None:
    known = lost("hot", "warm")
    assert known.partitions(NOW + TOOK - 1) == ("hot", "warm")
    known.saw({"hot": NOW + TOOK // 2, "other": NOW}, up_to="20270115080030000")
    assert known.partitions(NOW + TOOK) == ("hot",), "nobody has written to the other one"
    known.saw({"hot": NOW}, up_to=T1)
    assert known.partitions(NOW + TOOK) == ("hot",), "an older change is no newer one"
    assert known.partitions(NOW + TOOK + TOOK // 2) == ()
    assert known.seen == "20270115080030000"


def test_what_was_changed_before_the_end_of_the_run_counts_from_then() -> None:
    known = PartitionBackoff()
    known.lost({"p": NOW - TOOK}, instant=T1, took_ms=TOOK, now_ms=NOW)
    assert known.partitions(NOW) == ()


@pytest.mark.parametrize(
    ("times", "took", "quiet"),
    [
        (1, 0, LEAST_MS),
        (1, TOOK, TOOK),
        (2, TOOK, 2 * TOOK),
        (4, TOOK, 8 * TOOK),
        (2, 0, 2 * LEAST_MS),
        (9, TOOK, MOST_MS),
        (1, 2 * MOST_MS, MOST_MS),
    ],
)
def test_the_quiet_that_is_asked_for_grows_within_bounds(times: int, took: int, quiet: int) -> None:
    loss = Loss(times, NOW, took, NOW)
    assert not loss.over(NOW + quiet - 1)
    assert loss.over(NOW + quiet)


def test_it_grows_with_losses_in_a_row_only() -> None:
    known = lost("p", "q")
    known.lost({"p": NOW}, instant=T1, took_ms=TOOK, now_ms=NOW)
    assert known.partitions(NOW + TOOK) == ("p",)
    known.forget_all_but(())
    assert not known.known, "a run with all of them has not lost"
    known.lost({"p": NOW}, instant=T1, took_ms=TOOK, now_ms=NOW)
    assert known.partitions(NOW + TOOK) == ()


def test_what_was_left_out_of_a_run_that_did_not_lose_stays_known() -> None:
    known = lost("p", "q")
    known.forget_all_but(("p",))
    assert known.partitions(NOW) == ("p",)


def test_nothing_is_left_out_for_ever() -> None:
    """However much is written to it: that clusterings lose there may have been bad luck."""
    known = lost("p")
    end = NOW + LONGEST_MS
    known.saw({"p": end}, up_to=T1)
    assert known.partitions(end - 1) == ("p",)
    assert known.partitions(end) == ()


def test_a_table_without_partitions_has_none_to_leave_out() -> None:
    known = lost("")
    assert not known.known
    assert known.partitions(NOW) == ()


def test_commits_are_looked_at_from_the_first_loss_on() -> None:
    known = lost("p")
    assert known.seen == T1
    known.saw({}, up_to="20270115080100000")
    known.lost({"q": NOW}, instant="20270115080200000", took_ms=1, now_ms=NOW)
    assert known.seen == "20270115080100000", "what was written to the other one since then is not known yet"


def stats(**groups: str | None) -> list[dict[str, Any]]:
    return [{"fileId": name, "prevCommit": before} for name, before in groups.items()]


def test_changed_file_groups() -> None:
    """Of a commit, and of what a write says before it begins: there the entry of new rows has no
    file group. Who makes a file group disturbs nobody.
    """
    metadata = {
        "partitionToWriteStats": {
            "p": [*stats(f1=T1, f2="null", f3=None), {"fileId": "", "prevCommit": "null"}],
            "q": stats(f4=T1),
            "r": stats(f5="null"),
        }
    }
    assert changed(metadata) == {("p", "f1"), ("q", "f4")}
    replaced = {
        "partitionToWriteStats": {"p": stats(new="null")},
        "partitionToReplaceFileIds": {"p": ["f1", "f2"], "q": []},
    }
    assert changed(replaced) == {("p", "f1"), ("p", "f2")}
    assert changed({}) == frozenset()


def test_a_pending_overwrite_changes_whole_partitions() -> None:
    """F491: it names them before it writes, and the next clustering leaves them out."""
    pending = {"operationType": "INSERT_OVERWRITE", "partitionToWriteStats": {"p": stats(**{"": "null"})}}
    assert changed(pending) == {("p", "")}
    assert changed(pending | {"operationType": "INSERT"}) == frozenset()
    plan = frozenset({("p", "f1"), ("q", "f2")})
    assert newest([(changed(pending), NOW)], among=plan) == {"p": NOW}
    assert newest([(changed(pending), NOW)], among=frozenset({("q", "f2")})) == {}


def test_file_groups_of_a_plan() -> None:
    groups = [
        {"slices": [{"partitionPath": "a,b/c", "fileId": "f1"}, {"partitionPath": "", "fileId": "f2"}]},
        {"slices": None},
    ]
    assert planned({"inputGroups": groups}) == {("a,b/c", "f1"), ("", "f2")}
    assert planned({"inputGroups": None}) == frozenset()


def test_lost_is_where_file_groups_of_the_plan_were_changed() -> None:
    changes = [
        (frozenset({("p", "f1"), ("q", "f2")}), 5),
        (frozenset({("p", "f1")}), 9),
        (frozenset({("p", "f3")}), 11),
    ]
    assert newest(changes, among=frozenset({("p", "f1"), ("q", "f9")})) == {"p": 9}, (
        "whoever writes to q has changed nothing of the plan"
    )
    assert newest(changes) == {"p": 11, "q": 5}


def test_names_of_any_kind_and_number() -> None:
    odd = ['day="1\\2"', "a,b", "Zürich", "c\nd"]
    value = partition_backoff.option(odd)[partition_backoff.OPTION]
    assert partition_backoff.json.loads(value) == {"partitions": odd}
    assert described(()) == ""
    assert described(["p"]) == "1 partition left out because of concurrent writes: p"
    assert described([f"p{n}" for n in range(7)]).endswith(": p0, p1, p2, p3, p4 and 2 more")
    assert len(described(["x" * 1000] * 9)) < 400, "status is bounded"

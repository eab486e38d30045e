"""The cells of RFC-22's test plan, what is written in them, and the page about them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.campaigns.matrix import eager, page
from tests.campaigns.matrix.cells import EVERY, PLAN, TESTS, Cell, cell, chosen
from tests.campaigns.matrix.pulls import Due
from tests.campaigns.matrix.workload import COMPACTED, LOST, NEW, OLD, REST, Work, work


def test_the_whole_plan_on_both_storages() -> None:
    assert len(PLAN) == 84
    assert len(EVERY) == len({each.name for each in EVERY}) == 86
    assert [each.name for each in EVERY if each not in PLAN] == ["cow/overlapping/8/s3", "mor/overlapping/8/s3"]
    assert sum(each.refused for each in EVERY) == 2 * 2 * 3 * 2, "types, ways to overlap, eager tests, storages"
    assert sum(each.beside_stock for each in EVERY) == 2 * 3 * 2
    assert [(test.eager, test.metadata, test.async_clean, test.incremental) for test in TESTS.values()] == [
        (True, False, False, False),
        (True, True, False, False),
        (True, True, True, False),
        (False, False, False, False),
        (False, True, False, False),
        (False, True, True, False),
        (False, True, False, True),
        (False, True, False, False),
    ]
    assert all(cell(each.name) == each for each in EVERY)


def test_cells_are_chosen_by_a_regular_expression() -> None:
    assert chosen("") == EVERY
    assert len(chosen("s3$")) == 44
    assert [each.name for each in chosen("^mor/overlapping/[67]/s3$")] == [
        "mor/overlapping/6/s3",
        "mor/overlapping/7/s3",
    ]
    with pytest.raises(ValueError, match="matches no cell"):
        chosen("hdfs")
    with pytest.raises(ValueError, match="not a regular expression"):
        chosen("(")


WRITTEN = [each for each in EVERY if not each.refused and (each.storage == "file" or each not in PLAN)]


@pytest.mark.parametrize("each", WRITTEN, ids=lambda each: each.name)
def test_what_every_workload_has(each: Cell) -> None:
    made = work(each, "/g/", killed=not each.test.incremental)
    assert made.commits >= 7, "archival keeps 3"
    batches = [*made.one, *made.two]
    assert {batch["schema"] for batch in batches} == {OLD, NEW}, "a column is added on the way"
    assert all(len(row) == (5 if batch["schema"] == NEW else 4) for batch in batches for row in batch["rows"])
    killed = [batch for batch in batches if batch.get("gate") == f"/g/{LOST}"]
    assert len(killed) == (0 if each.test.incremental else 1)
    assert sum(f"/g/{COMPACTED}" == batch.get("after") for batch in batches) == 1
    assert bool(made.two) == each.several
    assert all(
        gate.startswith("/g/") for batch in batches for gate in (batch.get("after", "/g/"), batch.get("gate", "/g/"))
    )


@pytest.mark.parametrize("each", [each for each in WRITTEN if each.several], ids=lambda each: each.name)
def test_writers_meet_on_a_file_group_only_where_the_cell_says_so(each: Cell) -> None:
    made = work(each, "/g/", killed=not each.test.incremental)
    places = [{row[1] for batch in batches for row in batch["rows"]} for batches in (made.one, made.two)]
    if each.writers == "disjoint":
        assert not places[0] & places[1]
        assert [race.conflict for race in made.races] == [False]
    else:
        assert places[0] & places[1] == ({"a", "c"} if each.test.new_keys else {"a"})
        assert [race.conflict for race in made.races] == ([False, True] if each.test.incremental else [True])
    assert made.races[-1].next_slow == REST
    slow = {batch["gate"]: batch["rows"][0][1] for batch in made.one if "gate" in batch}
    quick = {batch["after"]: batch["rows"][0][1] for batch in made.two if "after" in batch}
    for race in made.races:
        assert (slow[f"/g/{race.slow}"] == quick[f"/g/{race.quick}"]) is race.conflict


@pytest.mark.parametrize("each", [each for each in EVERY if each.test.new_keys], ids=lambda each: each.name)
def test_new_keys_are_in_no_file_before_the_race(each: Cell) -> None:
    made = work(each, "/g/", killed=True)
    (slow,) = (batch for batch in made.one if batch.get("gate", "").endswith("slow-0"))
    (quick,) = (batch for batch in made.two if batch.get("after", "").endswith("quick-0"))
    assert [row[:2] for row in slow["rows"]] == [row[:2] for row in quick["rows"]]
    before = made.one[: made.one.index(slow)] + made.two[: made.two.index(quick)]
    assert not {row[1] for batch in before for row in batch["rows"]} & {row[1] for row in slow["rows"]}


def test_the_newest_row_of_a_key_is_expected() -> None:
    one = [{"rows": [[1, "a", "old", 1], [2, "a", "alone", 1]]}, {"rows": [[1, "a", "new", 3]]}]
    assert Work(one, [{"rows": [[1, "a", "between", 2, 7], [1, "b", "other", 1, 7]]}]).expected == [
        (1, "a", "new", 3, None),
        (1, "b", "other", 1, 7),
        (2, "a", "alone", 1, None),
    ]


def test_eager_cleaning_is_refused_whatever_comes_with_it() -> None:
    for said in eager.refusals({eager.POLICY: "EAGER"}):
        assert said.startswith("spec.hudiOptions['hoodie.clean.failed.writes.policy'] = 'EAGER': owned by the operator")
    for said in eager.refusals({"hoodie.cleaner.policy.failed.writes": "EAGER"}):
        assert "owned by the operator" in said


def result(verdict: str, key: str, at: str, **more: Any) -> dict[str, Any]:
    return {
        "verdict": verdict,
        "key": key,
        "commit": key.split()[0],
        "at": at,
        "seconds": 31,
        "told": f"saw {key}",
        "counts": {"commits": 8, "archived": 5},
        **more,
    }


def test_a_page_without_results_says_so() -> None:
    text = page.page(lambda _: None)
    assert "**0 of 86 cells have a result: none; 86 have none.** The results are of 0 different commits" in text
    assert text.count("| not run | not run |") == 42
    assert text.count("| – | not run |") == 2
    assert "In all of these runs" not in text


def test_a_page_names_verdict_and_commit_of_each_cell() -> None:
    results = {
        "cow/single/1/file": result("ok", "c1 hudi=1.2.0", "2026-01-01"),
        "cow/single/1/s3": result("failed", "c2 hudi=1.2.0", "2026-01-02"),
        "mor/overlapping/7/s3": result("unknown", "c1 hudi=1.2.0", "2026-01-01"),
    }
    text = page.page(lambda each: results.get(each.name))
    assert (
        "**3 of 86 cells have a result: 1 ok, 1 failed, 1 unknown; 83 have none.** The results are of 2 different "
        "commits"
    ) in text
    assert (
        "| CopyOnWrite | single writer | 1: eager, without metadata | **ok** 31 s (b) | **failed** 31 s (a) |" in text
    )
    assert (
        "| MergeOnRead | optimistic, overlapping | 7: incremental pull, commits end out of order | not run | "
        "**unknown** 31 s (b) |"
    ) in text
    assert "* (a) `c2 hudi=1.2.0`\n* (b) `c1 hudi=1.2.0`" in text
    assert "24 commits, 0 conflicts, 0 compactions, 0 clusterings, 0 cleans, 15 instants archived" in text
    assert "Not covered: clustering" in text
    assert "* `cow/single/1/s3`: saw c2" in text


def test_clustering_is_named_as_missing_only_where_there_was_none() -> None:
    one = result("ok", "c1", "2026-01-01") | {"counts": {"clusterings": 1}}
    assert "Not covered" not in page.page(lambda each: one if each == EVERY[0] else None)


def test_what_a_reader_is_due_is_told_from_file_names() -> None:
    """Completed writes; in the order Fenced none that was begun after one that is not completed."""
    one, two, three, four = (f"2026010100000{n}000" for n in range(4))
    names = [
        f"{one}.commit.requested",
        f"{one}.inflight",
        f"{one}_{two}.commit",
        f"{two}.deltacommit.inflight",
        f"{three}_{four}.replacecommit",
    ]
    due = Due.of([*names, f"{three}.compaction.inflight", f"{four}_{four}.clean", "history"])
    assert due.to("OutOfOrder") == {one, three}
    assert due.to("Fenced") == {one}
    assert Due.of([f"{one}_{two}.commit", f"{one}.inflight"]).to("Fenced") == {one}

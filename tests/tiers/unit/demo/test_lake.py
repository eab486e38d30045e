"""What the demo and the e2e tier take for the truth about a table's files: a parser of their own,
held against the product's and against names by hand.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from demo.lake import DataFile, Instant, UnknownName, data_files, moment, parse_timeline
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_runtime.table import timeline as product

T = [f"2026010100000{n:04d}" for n in range(12)]
STATES = ("requested", "inflight", "completed")


def names(requested: str, action: str, states: int, completion: str) -> list[str]:
    """Files of an instant that has come so far.

    What a completed service is called differs from what it was while it was pending.
    """
    done = {"compaction": "commit", "clustering": "replacecommit"}.get(action, action)
    inflight = f"{requested}.inflight" if action == "commit" else f"{requested}.{action}.inflight"
    files = [f"{requested}.{action}.requested", inflight, f"{requested}_{completion}.{done}"]
    return files[1:states] if action == "savepoint" else files[:states]


ACTIONS = st.sampled_from(
    ["commit", "deltacommit", "replacecommit", "compaction", "clustering", "clean", "rollback", "restore", "indexing"]
)


@settings(max_examples=60, deadline=None, database=None)
@given(st.lists(st.tuples(ACTIONS, st.integers(1, 3), st.booleans()), min_size=0, max_size=6), st.randoms())
def test_the_two_parsers_agree(instants: list[tuple[str, int, bool]], chance: object) -> None:
    files: list[str] = []
    for number, (action, states, kept) in enumerate(instants):
        files += names(T[number], action, states, T[number + 6])
        if kept and action in ("commit", "deltacommit") and states == 3:
            files += names(T[number], "savepoint", 3, f"{T[number + 6]}")
    chance.shuffle(files)  # type: ignore[attr-defined]
    aside = [f"{T[11]}.rollback.requested.dd9e3a54-fee6-4ffc-a12c-0906f1b24917"]
    mine, theirs = parse_timeline([*files, *aside, "history"]), product.parse([*files, *aside])
    wanted = [*theirs.instants, *theirs.savepoints]
    assert len(mine) == len(wanted)
    assert {(i.requested, i.completed) for i in mine} == {(i.requested, i.completion) for i in wanted}
    actions = {(i.requested, i.completed): i.action for i in mine if i.completed}
    assert actions == {(i.requested, i.completion): i.action for i in wanted if not i.pending}


def test_a_savepoint_does_not_hide_its_commit() -> None:
    files = [*names(T[1], "commit", 3, T[2]), *names(T[1], "savepoint", 3, T[3])]
    assert {(i.action, i.completed) for i in parse_timeline(files)} == {("commit", T[2]), ("savepoint", T[3])}


def test_an_instant_tells_its_states() -> None:
    (found,) = parse_timeline(names(T[1], "deltacommit", 2, ""))
    assert found == Instant(T[1], "deltacommit", frozenset({"requested", "inflight"}), "")
    (found,) = parse_timeline(names(T[1], "compaction", 3, T[5]))
    assert (found.action, found.states, found.completed) == ("commit", frozenset(STATES), T[5])


@pytest.mark.parametrize("name", ["notes.txt", "2026.commit", f"{T[1]}.commit.requested.crc", f"{T[1]}_x.commit"])
def test_a_name_that_it_cannot_read_is_no_empty_timeline(name: str) -> None:
    with pytest.raises(UnknownName, match="timeline"):
        parse_timeline([name])


def test_data_files() -> None:
    id = "0f1e2d3c-0000-4000-8000-000000000000-0"
    files = {
        f"day=1/{id}_1-2-3_{T[1]}.parquet": 10,
        f"day=1/.{id}_{T[2]}.log.1_4-5-6": 20,
        f"day=1/.{id}_{T[2]}.log.2_4-5-6.cdc": 5,
        f"day=1/{id}_1-2-3_{T[3]}.orc": 7,
        "day=1/.hoodie_partition_metadata": 1,
        "day=2/.hoodie_partition_metadata.parquet": 1,
        f".hoodie/timeline/{T[1]}_{T[2]}.commit": 3,
        f".hoodie/metadata/files/.{id}_{T[1]}.log.1_0-0-0": 3,
    }
    found = data_files(files)
    assert [(file.instant, file.token, file.size) for file in found] == [
        (T[1], "1-2-3", 10),
        (T[2], "4-5-6", 20),
        (T[2], "4-5-6", 5),
        (T[3], "1-2-3", 7),
    ]
    assert {file.file_id for file in found} == {id}
    assert found[0] == DataFile(f"day=1/{id}_1-2-3_{T[1]}.parquet", id, T[1], "1-2-3", 10)


@pytest.mark.parametrize(
    "path", ["day=1/part-0.parquet", f"day=1/x_1-2_{T[1]}.parquet", "notes", f"day=1/.x_{T[1]}.log.1"]
)
def test_a_file_that_it_cannot_read_is_not_left_out(path: str) -> None:
    """A marker, a foreign file, a name of a later Hudi: whether it may be there is for a
    test to say.
    """
    with pytest.raises(UnknownName, match="table"):
        data_files({path: 1})


def test_moment() -> None:
    assert moment("20260102030405678") == datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)

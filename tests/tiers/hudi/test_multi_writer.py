"""What Hudi's own multi-writer tests look at and no other test of ours does:
docs/design/hudi-suite.md lists them one by one.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from hudi_operator.api.services import ALWAYS
from tests.support.harness.local import AGENT, Process, Row, World, rows, until
from tests.tiers.hudi.apps import dag_app

pytestmark = pytest.mark.extra
ROUNDS = 2


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_five_writers_begin_a_partition_each(world: World, agent: Process, kind: str) -> None:
    """All insert at once, each into a partition that nobody has written to: nobody conflicts with
    anybody, and every row is there.
    """
    table = world.table(f"five-{kind.lower()}", type=kind)
    world.create(table, agent=AGENT, process=agent)
    seed = table.writer("seed", python={"batches": [{"rows": rows(range(10), "p0", "seed", 1)}]})
    assert seed.wait() == 0, seed.log()[-4000:]
    gates = {p: world.folder / f"gate-five-{kind}-{p}" for p in ("p1", "p2", "p3", "p4", "p5")}
    data = {f"p{n}": rows(range(100 * n, 100 * n + 20), f"p{n}", f"w{n}", 1) for n in range(1, 6)}
    writers = [
        table.writer(p, operation="insert", retries=0, python={"batches": [{"rows": batch, "gate": str(gates[p])}]})
        for p, batch in data.items()
    ]
    for writer, gate in zip(writers, gates.values(), strict=True):
        until("it is in its batch", Path(f"{gate}.reached").exists, alive=writer)
    for gate in gates.values():
        gate.touch()
    for writer in writers:
        assert writer.wait() == 0, writer.log()[-4000:]
        assert writer.termination()["conflicts"] == 0
    table.audited([*rows(range(10), "p0", "seed", 1), *(row for batch in data.values() for row in batch)])


def test_two_bulk_inserts_into_the_same_partitions_both_commit(world: World, agent: Process) -> None:
    """A bulk insert makes file groups of its own: the second one is no conflict, although the first
    has committed while it was written.
    """
    table = world.table("bulk")
    world.create(table, agent=AGENT, process=agent)
    gate = world.folder / "gate-bulk"
    mine = [*rows(range(10), "a", "slow", 1), *rows(range(20, 30), "b", "slow", 1)]
    theirs = [*rows(range(10, 20), "a", "quick", 1), *rows(range(30, 40), "b", "quick", 1)]
    slow = table.writer(
        "slow", operation="bulk_insert", retries=0, python={"batches": [{"rows": mine, "gate": str(gate)}]}
    )
    until("the slow one writes", Path(f"{gate}.reached").exists, alive=slow)
    quick = table.writer("quick", operation="bulk_insert", retries=0, python={"batches": [{"rows": theirs}]})
    assert quick.wait() == 0, quick.log()[-4000:]
    gate.touch()
    assert slow.wait() == 0, slow.log()[-4000:]
    assert slow.termination()["conflicts"] == 0
    assert len(table.data_files()) >= 4
    table.audited([*mine, *theirs])


@pytest.mark.parametrize("places", [("a", "b"), ("a", "a")], ids=["apart", "together"])
def test_programs_insert_update_and_delete_in_rounds(world: World, agent: Process, places: tuple[str, str]) -> None:
    """Two programs and a stream of files at once.

    Apart nobody conflicts; in one partition the programs repeat what they lose, and lose no row.

    The stream ends a run, others commit, and its next run goes on where it was: its progress is not
    in the newest commit.
    """
    name = "".join(places)
    table = world.table(f"dag-{name}")
    world.create(table, agent=AGENT, process=agent)
    landing = world.lake / f"landing-{name}"
    landing.mkdir()
    arrive(landing, 0)
    arrive(landing, 1)
    files = {"format": "json", "paths": [world.url(landing)], "options": {}, "maxFilesPerCommit": 1}
    stream = {"files": files, "transform": "SELECT cast(id AS int) AS id, p, v, ts FROM source", "retries": 10}
    code = world.folder / f"code-{name}"
    code.mkdir()
    (code / "meet").mkdir()
    main = shutil.copy(dag_app.__file__, code)
    programs = []
    for number, p in enumerate(places):
        job = {
            "p": p,
            "first": 1000 * (number + 1),
            "rounds": ROUNDS,
            "tries": 30,
            "meet": [str(code / "meet"), len(places)],
        }
        programs.append(
            (
                job,
                table.writer(
                    f"program-{number}",
                    application={"mainFile": str(main), "arguments": [json.dumps(job)]},
                    duplicates="Allow",
                ),
            )
        )
    streams = [table.writer("stream", **stream)]
    assert streams[0].wait() == 0, streams[0].log()[-4000:]
    wanted: list[Row] = [row for n in range(3) for row in arriving(n)]
    for job, program in programs:
        assert program.wait() == 0, program.log()[-4000:]
        assert program.termination()["commits"] == 3 * ROUNDS
        wanted += dag_app.expected(job["p"], job["first"], ROUNDS)
    arrive(landing, 2)
    streams.append(table.writer("stream", **stream, run=2))
    assert streams[1].wait() == 0, streams[1].log()[-4000:]
    assert [one.termination()["commits"] for one in streams] == [2, 1], "files of the first run are not read again"
    races = sum(program.log().count("lost a race") for _, program in programs)
    assert (races > 0) is (places[0] == places[1]), (
        f"{races} lost races: both insert into one small file at once, or no file is shared"
    )
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    table.audited(wanted)


def arriving(number: int) -> list[Row]:
    """Rows of a file."""
    return rows(range(10 * number, 10 * number + 10), "c", f"file {number}", 1)


def arrive(landing: Path, number: int) -> None:
    lines = [json.dumps(dict(zip(("id", "p", "v", "ts"), row, strict=True))) for row in arriving(number)]
    (landing / f"{number}.json").write_text("\n".join(lines))


def test_a_clean_that_keeps_little_beside_a_write_with_column_statistics(world: World) -> None:
    """While a write is inflight the file versions before it are cleaned.

    It commits, with its column statistics. (A clean never goes beyond it.)
    """
    stats = {"indexes": ["ColumnStats"]}
    table = world.table("column-stats", metadataTable=stats)
    agent = world.agent("agent-column-stats")
    world.create(table, agent="agent-column-stats", process=agent)
    gate = world.folder / "gate-column-stats"
    before = [
        {"rows": [*rows(range(10), "a", "seed", 1), *rows(range(10, 20), "b", f"seed {n}", 1 + n)]} for n in range(4)
    ]
    slow = table.writer(
        "slow", retries=0, python={"batches": [*before, {"rows": rows(range(10), "a", "slow", 9), "gate": str(gate)}]}
    )
    until("the slow one writes", Path(f"{gate}.reached").exists, alive=slow)
    files = set(table.data_files())
    others = {kind: {"enabled": False} for kind in ALWAYS if kind != "clean"}
    world.table(
        "column-stats", metadataTable=stats, services=others | {"clean": {"afterCommits": 1, "retainCommits": 1}}
    ).assign("agent-column-stats")
    until("old versions are gone", lambda: files - set(table.data_files()), alive=agent)
    gate.touch()
    assert slow.wait() == 0, slow.log()[-4000:]
    assert slow.termination()["conflicts"] == 0
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    table.audited([*rows(range(10), "a", "slow", 9), *rows(range(10, 20), "b", "seed 3", 4)])
    agent.terminate()
    assert agent.wait() == 0, agent.log()[-3000:]

"""The driver's runtime: exactly once over a SIGKILL, conflicts, hostile user code.

Each told as the operator needs it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness import own_pulls
from tests.support.harness.local import AGENT, NOTHING, REFUSED_WRITES, Process, Table, World, rows, until
from tests.support.oracle import not_seen


def made(world: World, agent: Process, name: str, kind: str = "CopyOnWrite", **spec: Any) -> Table:
    table = world.table(name, type=kind, **spec)
    world.create(table, agent=AGENT, process=agent)
    return table


HELD_SECONDS = 60.0
"""For how long a commit of a few rows may hold the lock; on a machine with much else to do it was 8
s at most.
"""


def held(process: Process) -> list[float]:
    """For how long it has held the lock each time, by its own protocol log."""
    taken = {line["token"]: line["ts"] for line in process.protocol("acquire") if line["ok"]}
    return [
        (line["ts"] - taken[line["token"]]) / 1000
        for line in process.protocol("release")
        if line["ok"] and line.get("token") in taken
    ]


def test_files_exactly_once_over_sigkill(world: World, agent: Process) -> None:
    """I9: six files, two per commit; killed in the second commit.

    The next attempt commits the rest, each row once.
    """
    table = made(world, agent, "files")
    landing = world.lake / "files-landing"
    landing.mkdir()
    for number in range(6):
        lines = [json.dumps({"id": number * 10 + n, "p": "a", "v": f"f{number}", "ts": 1}) for n in range(10)]
        (landing / f"{number}.json").write_text("\n".join(lines))
    job = {
        "files": {"format": "json", "paths": [world.url(landing)], "options": {}, "maxFilesPerCommit": 2},
        "transform": "SELECT cast(id AS int) AS id, p, v, ts FROM source",
        "operation": "insert",
    }
    first = table.writer("ingest", **job)
    until(
        "second commit has begun",
        lambda: len(table.timeline().completed) == 1 and table.pending(),
        alive=first,
        every=0.005,
    )
    first.kill()
    (dead,) = table.pending()
    inc = table.fence(first)
    second = table.writer("ingest", **job)
    assert second.wait() == 0, second.log()[-4000:]
    assert second.termination()["commits"] == 2
    assert second.termination()["records"] == 40
    assert dead not in {i.requested for i in table.timeline().completed}, "a new attempt has new instants (RFC-22)"
    outcomes = until("swept", lambda: table.outcomes(inc), alive=agent)
    assert outcomes == {dead: "RolledBack"}
    table.audited([(number, "a", f"f{number // 10}", 1) for number in range(60)])


@pytest.mark.extra
def test_what_is_applied_again_under_the_same_name_writes(world: World, agent: Process) -> None:
    """F97: it ended as Succeeded, without a commit: the deleted writer had committed as many
    batches in its first run.
    """
    table = made(world, agent, "applied-again")
    for word, number in (("first", 1), ("second", 2)):
        writer = table.writer("same", applied=word, python={"batches": [{"rows": rows([number], "a", word, 1)}]})
        assert writer.wait() == 0, writer.log()[-4000:]
        assert writer.termination()["commits"] == 1
    table.audited([*rows([1], "a", "first", 1), *rows([2], "a", "second", 1)])


@pytest.mark.parametrize(
    ("kind", "retries", "index"),
    [
        pytest.param("CopyOnWrite", 3, {}, marks=pytest.mark.extra, id="CopyOnWrite-3"),
        pytest.param("MergeOnRead", 0, {}, id="MergeOnRead-0"),
        *(
            pytest.param(kind, 3, index, marks=pytest.mark.extra, id=f"{kind}-{index['type']}")
            for kind in ("CopyOnWrite", "MergeOnRead")
            for index in ({"type": "Bloom"}, {"type": "Bucket", "buckets": 1})
        ),
    ],
)
def test_two_writers_rewrite_one_file_group(
    world: World, agent: Process, kind: str, retries: int, index: dict[str, Any]
) -> None:
    """I9: the loser is told so, its instant is Abandoned and rolled back.

    With retries left it commits under a new instant.
    """
    name = f"conflict-{kind.lower()}{index.get('type', '').lower()}"
    table = made(world, agent, name, kind, **({"index": index} if index else {}))
    gate = world.folder / f"gate-{name}"
    slow = table.writer(
        "slow",
        retries=retries,
        python={
            "batches": [
                {"rows": rows(range(20), "a", "seed", 1)},
                {"rows": rows(range(10), "a", "slow", 3), "gate": str(gate)},
            ]
        },
    )
    until("the slow write is under way", Path(f"{gate}.reached").exists, alive=slow)
    (loser,) = table.pending()
    quick = table.writer("quick", python={"batches": [{"rows": rows(range(20), "a", "quick", 2)}]})
    assert quick.wait() == 0, quick.log()[-4000:]
    gate.touch()
    assert slow.wait() == (0 if retries else 13), slow.log()[-4000:]
    told = slow.termination()
    assert told["conflicts"] == 1
    assert told["class"] == (None if retries else "WriteConflict")
    report = table.get(f"report/attempt/{slow.name}")
    assert report is not None
    (conflict,) = report["conflicts"]
    assert conflict["instant"] == loser
    assert conflict["with"] == quick.termination()["lastInstant"]
    assert conflict["fileGroups"]
    assert (conflict["retriedAs"] == told["lastInstant"]) is bool(retries)
    assert slow.protocol("abandon")[0]["instant"] == loser
    if retries:
        assert told["lastInstant"] != loser, "a repeated commit has a new instant (RFC-22)"
        done = table.timeline().get(told["lastInstant"])
        assert done is not None
        assert (done.completion, loser < done.requested < done.completion) == (told["lastCompletionTime"], True), (
            "its start and its end"
        )
    holds = [seconds for process in (slow, quick) for seconds in held(process)]
    print(f"{kind}: the lock was held {len(holds)} times, {sum(holds):.1f} s in all, {max(holds):.2f} s at most")
    assert max(holds) < HELD_SECONDS
    until(
        "the loser's instant is rolled back",
        lambda: loser not in table.names("instant/") and not table.pending(),
        alive=agent,
    )
    expected = rows(range(10), "a", "slow", 3) if retries else rows(range(10), "a", "quick", 2)
    logs_alone = kind == "MergeOnRead" and index.get("type") == "Bucket"
    table.audited(
        expected + rows(range(10, 20), "a", "quick", 2),
        without=not_seen("hudi-rs") if logs_alone else NOTHING,
    )
    assert own_pulls.same(world.spark(), table.path, table.folder) == (5 if retries else 3), (
        "seed, quick, and slow where it was repeated"
    )
    until("what was given up is forgotten after the clean exit", lambda: not table.keys("done/abandoned-"), alive=agent)


def test_hostile_application_harms_nobody(world: World, agent: Process) -> None:
    """User code that sets lock, mode, policy or what the table is, by option or SET, gets an error.

    So does one that drops a database whose folder is the table's (F502).
    A living writer's instant stays (F26, F32, I7).
    """
    table = made(world, agent, "hostile")
    gate = world.folder / "gate-hostile"
    living = table.writer(
        "living",
        python={
            "batches": [
                {"rows": rows(range(5), "a", "seed", 1)},
                {"rows": rows(range(5), "b", "living", 1), "gate": str(gate)},
            ]
        },
    )
    until("a living writer is in its write", Path(f"{gate}.reached").exists, alive=living)
    (pending,) = table.pending()
    results = world.folder / "hostile.json"
    main = Path(__file__).with_name("apps") / "hostile_app.py"
    code = world.folder / "code"
    code.mkdir()
    shutil.copy(main, code)
    hostile = table.writer(
        "hostile", application={"mainFile": str(code / main.name), "arguments": [str(results), str(table.folder)]}
    )
    assert hostile.wait() == 0, hostile.log()[-4000:]
    found = json.loads(results.read_text())
    # EAGER alone is turned into LAZY by Hudi under optimistic concurrency: an ordinary commit under
    # the lock, with the check.
    eager = found.pop("eager by option")
    assert not eager["failed"]
    for name, way in found.items():
        # Some differences Hudi sees by itself, before it asks for the lock.
        assert way["failed"], (name, way)
        assert "[HUDIOP-" in way["message"] or (way["ofTheTable"] and "Config conflict" in way["message"]), (name, way)
    # Its folder would be refused, too; the statement is refused before Spark's catalog changes.
    assert "DROP DATABASE (whose folder has the table in it)" in found["database"]["message"], found["database"]
    of_the_table = [way for way in found.values() if way["ofTheTable"]]
    ours = [way for way in of_the_table if "Config conflict" not in way["message"]]
    assert all("[HUDIOP-OPTION]" in way["message"] and way["option"] in way["message"] for way in ours), ours
    assert {tuple(way["timeline"]) for way in of_the_table} == {tuple(of_the_table[0]["timeline"])}, (
        "nothing was begun (F32)"
    )
    assert all(pending in way["timeline"] for way in [*found.values(), eager]), (
        "the living writer's instant stays throughout"
    )
    assert table.pending() >= {pending}
    assert pending in table.heartbeats()
    gate.touch()
    assert living.wait() == 0, living.log()[-4000:]
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    expected = [*rows(range(5), "a", "seed", 1), *rows(range(5), "b", "living", 1), (100, "c", "hostile", 99)]
    table.audited(expected, without=REFUSED_WRITES)


def test_sigterm_gives_up_what_does_not_fit(world: World, agent: Process) -> None:
    """A commit that does not end within the grace is cancelled, its instant Abandoned, and the
    writer leaves clean; what was committed stays.
    """
    table = made(world, agent, "sigterm")
    gate = world.folder / "gate-sigterm"
    batches = [{"rows": rows(range(5), "a", "kept", 1)}, {"rows": rows(range(5), "a", "lost", 2), "gate": str(gate)}]
    writer = table.writer("writer", python={"batches": batches})
    until("the second write is under way", Path(f"{gate}.reached").exists, alive=writer)
    (pending,) = table.pending()
    writer.terminate()
    assert writer.wait() == 11, writer.log()[-4000:]
    assert writer.termination()["commits"] == 1
    assert [line["instant"] for line in writer.protocol("abandon")] == [pending]
    assert writer.inc not in table.names("writer/")
    until("the instant is rolled back", lambda: not table.pending(), alive=agent)
    gate.touch()
    again = table.writer("writer", python={"batches": batches})
    assert again.wait() == 0, again.log()[-4000:]
    assert again.termination()["commits"] == 1, "the first batch is not repeated"
    table.audited(rows(range(5), "a", "lost", 2))

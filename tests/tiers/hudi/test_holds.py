"""A hold keeps what a reader of a commit needs, for as long as it lasts: beside a clean that would
delete it, and a deletion of its partition. Without the hold the same clean deletes it.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from hudi_contract.requests import ServiceRequest
from hudi_contract.words import Service
from hudi_operator.api.holds import Hold
from tests.support.harness.local import Process, Table, World, rows, until

pytestmark = pytest.mark.extra
WAIT = 600.0
"""Seconds; a bound for a machine with much else to do, nothing is measured."""
QUIET: dict[str, Any] = {kind: {"enabled": False} for kind in ("clean", "archive", "compaction")}
EAGER = QUIET | {"clean": {"afterCommits": 1000, "retainCommits": 1}}


def now_ms() -> int:
    return int(time.time() * 1000)


def hold(table: Table, name: str, agent: Process, *, instant: str = "", since: int, seconds: int) -> dict[str, Any]:
    """The operator's part of a hold, and the agent's answer."""
    asked = Hold(name, instant, seconds).request(table.spec.ref.uid, since_ms=since)
    table.ask(asked.to_json())

    def answered() -> dict[str, Any] | None:
        done = table.get(f"done/hold-{name}") or {}
        wanted = (done.get("sinceMs"), done.get("untilMs")) == (asked.since_ms, asked.until_ms)
        return done if wanted and done.get("result") in ("Completed", "Failed") else None

    return until(f"hold {name} is answered", answered, alive=agent, timeout=WAIT)


def cleaned(table: Table, agent: Process, run: str) -> dict[str, Any]:
    """A clean, now, as the operator asks for it; it has seen every commit."""
    table.ask(ServiceRequest(id="service-clean", service=Service.CLEAN, run=run).to_json())

    def served() -> dict[str, Any] | None:
        record = table.get("done/service-clean") or {}
        return record if run in record.get("runs", ()) else None

    return until(f"clean {run} has ended", served, alive=agent, timeout=WAIT)


def ended(process: Process) -> None:
    assert process.wait(WAIT) == 0, process.log()[-4000:]


def newest(table: Table) -> Any:
    last = table.timeline().last_completed
    assert last is not None
    return last


def planned(table: Table) -> Any:
    """A snapshot query that has listed its files and has read none of them yet."""
    frame = (
        table.world.spark()
        .read.format("hudi")
        .option("hoodie.enable.data.skipping", "false")
        .option("hoodie.datasource.read.file.index.listing.mode", "eager")
        .load(table.path)
        .select("v")
    )
    assert frame.inputFiles()
    return frame


def values(frame: Any) -> set[str]:
    return {row.v for row in frame.collect()}


def as_of(table: Table, instant: str) -> set[str]:
    frame = table.world.spark().read.format("hudi").option("as.of.instant", instant).load(table.path)
    return values(frame.select("v"))


def since(table: Table, completion: str) -> set[str]:
    """Hudi's incremental query from a completion time on."""
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": completion,
        "hoodie.datasource.read.incr.fallback.fulltablescan.enable": "false",
    }
    frame = table.world.spark().read.format("hudi").options(**options).load(table.path)
    return values(frame.select("v"))


def bases(table: Table) -> int:
    """Base files of the first partition."""
    return len([name for name in table.data_files() if name.startswith("a/") and name.endswith(".parquet")])


@pytest.mark.timeout(6 * WAIT)
@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_what_a_reader_of_a_hold_needs_stays_until_its_end(world: World, kind: str) -> None:
    name, agent_name = f"held-{kind.lower()}", f"agent-held-{kind.lower()}"
    compacts = {"compaction": {"afterCommits": 1}} if kind == "MergeOnRead" else {}
    table = world.table(name, type=kind, services=QUIET | compacts)
    agent = world.agent(agent_name, pod=f"{agent_name}-1", storage=table)
    world.create(table, agent=agent_name, process=agent, pod=f"{agent_name}-1")
    gate = world.folder / f"gate-{name}"
    batches: list[dict[str, Any]] = [{"rows": rows(range(10), "a", f"v{number}", number)} for number in range(2, 6)]
    batches[0]["gate"] = str(gate)
    seed = [*rows(range(10), "a", "seed", 0), *rows([90], "b", "seed", 0)]
    writer = table.writer("writer", python={"batches": [{"rows": seed}, *batches]})
    until("its second write is under way", Path(f"{gate}.reached").exists, alive=writer, timeout=WAIT)
    begin = newest(table)
    files = set(table.data_files(begin.requested))
    assert len(files) == 2

    born = now_ms()
    done = hold(table, "reader", agent, since=born, seconds=3600)
    assert (done["result"], done["instant"], done["boundary"]) == ("Completed", begin.requested, begin.completion)
    in_time, too_long = planned(table), planned(table)

    # One partition is deleted, the other one has newer versions: the files of the hold are old.
    ended(table.writer("drop", operation="delete_partition", partitions=["b"]))
    gate.touch()
    ended(writer)
    if kind == "MergeOnRead":
        until("it is compacted", lambda: bases(table) > 1 and not table.pending(), alive=agent, timeout=WAIT)
    world.table(name, type=kind, services=EAGER | compacts).assign(agent_name)
    written = newest(table)
    record = cleaned(table, agent, "beside-the-hold")
    assert files <= set(table.data_files()), record
    assert values(in_time) == {"seed"}
    assert as_of(table, begin.requested) == {"seed"}
    assert since(table, begin.completion) == {"v5"}

    # Its end is in the past by now, and what a clock may be ahead is over.
    asked = Hold("reader", "", 60).request(table.spec.ref.uid, since_ms=born)
    table.ask(asked.but(until_ms=now_ms() - 10_000).to_json())
    until(
        "the agent knows its end",
        lambda: (table.get("done/hold-reader") or {})["keptUntilMs"] < now_ms(),
        alive=agent,
        timeout=WAIT,
    )
    record = cleaned(table, agent, "after-the-hold")
    left = set(table.data_files())
    assert record["result"] == "Completed"
    assert not files & left, "those of the deleted partition, too"
    with pytest.raises(Exception, match=r"FileNotFoundException|does not exist|No such file"):
        too_long.collect()

    # The last commit can be held at once. One whose files were deleted is refused, and says why.
    done = hold(table, "again", agent, since=now_ms(), seconds=3600)
    assert (done["result"], done["instant"]) == ("Completed", written.requested), "cleans write no rows"
    done = hold(table, "late", agent, instant=begin.requested, since=now_ms(), seconds=3600)
    assert done["result"] == "Failed"
    assert "was deleted by a clean before the hold" in done["message"]
    table.audited(rows(range(10), "a", "v5", 5))
    agent.terminate()
    assert agent.wait(WAIT) == 0, agent.log()[-3000:]

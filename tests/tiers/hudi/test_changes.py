"""A change of the table beside real runs that do not end (F44): they end at a commit boundary, and
go on after it exactly once (I9).
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from hudi_runtime.table import timeline as tl
from tests.support.harness.local import AGENT, Process, Row, Table, World, until

pytestmark = pytest.mark.extra
LIMIT = 600.0
CHANGE = "a change of lock"
NAP = 2.0
FILES = 12


def land(folder: Path, ids: range) -> list[Row]:
    """A file for each row, all in one partition of their own: runs that meet on a file group are
    another test's matter.
    """
    folder.mkdir(exist_ok=True)
    for number in ids:
        row = {"id": number, "p": folder.name, "v": "file", "ts": 1}
        (folder / f"{number:03d}.tmp").write_text(json.dumps(row) + "\n")
        (folder / f"{number:03d}.tmp").rename(folder / f"{number:03d}.json")
    return [(number, folder.name, "file", 1) for number in ids]


def start(table: Table, name: str, folder: Path, **job: object) -> Process:
    files = {"format": "json", "paths": [f"{table.world.url(folder)}/*.json"], "options": {}, "maxFilesPerCommit": 1}
    return table.writer(
        name, files=files, operation="insert", transform="SELECT int(id) AS id, p, v, ts FROM source", **job
    )


def said(table: Table, process: Process) -> dict[str, object]:
    return table.get(f"report/attempt/{process.name}") or {}


def ended(table: Table, process: Process) -> dict[str, object]:
    """It has ended by itself for the change, with nothing left to settle."""
    assert process.wait(90) == 12, process.log()[-4000:]
    assert table.get(f"writer/{process.inc}") is None
    told = process.termination()
    assert (told["class"], told["message"]) == (
        "EndedForChange",
        f"ended at a commit boundary: the table's gate is closed for {CHANGE}",
    )
    return told


@pytest.mark.timeout(4 * LIMIT)
def test_runs_end_for_a_change_and_go_on(world: World, agent: Process) -> None:
    """One that is in the middle of its files, one that waits for more, and one that ends
    with its source.
    """
    table = world.table("changing")
    world.create(table, agent=AGENT, process=agent)
    folders = {name: world.lake / f"landing-{name}" for name in ("busy", "idle", "once")}
    sent = land(folders["idle"], range(1))
    idle = start(table, "idle", folders["idle"], streaming=1)
    until("it waits", lambda: said(table, idle).get("stage") == "Waiting", alive=idle, timeout=LIMIT)
    sent += land(folders["busy"], range(100, 100 + FILES)) + land(folders["once"], range(200, 200 + FILES))
    busy = start(table, "busy", folders["busy"], streaming=1)
    once = start(table, "once", folders["once"])
    for process in (busy, once):
        until(
            f"{process.name} has committed",
            lambda p=process: int(said(table, p).get("commits") or 0) >= 2,
            alive=process,
            timeout=LIMIT,
        )

    attempts = (idle, busy, once)
    table.gate("closed", admitted=[process.name for process in attempts], closedFor=CHANGE)
    closed = time.monotonic()
    told = [ended(table, process) for process in attempts]
    took = time.monotonic() - closed
    print(f"{took:.1f} s from the closed gate to the end of the last of three runs")
    batches = [tl.milliseconds(i.completion) - tl.milliseconds(i.requested) for i in table.timeline().completed]
    print(f"the longest batch took {max(batches) / 1000:.1f} s")
    assert took < max(batches) / 1000 + 30, "the longest batch and 30 s"
    assert told[0]["commits"] == 1
    for one in told[1:]:
        assert 2 <= int(str(one["commits"])) < FILES, "it has ended with input left"
    assert not table.names("writer/") - {agent.inc}
    assert not table.pending()

    table.drain = 3
    table.gate("open")
    sent += land(folders["idle"], range(1, 2))
    again = [start(table, "idle", folders["idle"], streaming=1), start(table, "busy", folders["busy"], streaming=1)]
    rest = start(table, "once", folders["once"])
    assert rest.wait(LIMIT) == 0, rest.log()[-4000:]
    for process, more in zip(again, (1, FILES - int(str(told[1]["commits"]))), strict=True):
        until(
            f"{process.name} goes on",
            lambda p=process, n=more: said(table, p).get("records") == n,
            alive=process,
            timeout=LIMIT,
        )
        process.terminate()
        assert process.wait(60) == 11
    assert rest.termination()["commits"] == FILES - int(str(told[2]["commits"]))
    table.audited(sent)

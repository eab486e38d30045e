"""When the bytes of a deleted row are gone: looked for in every file of the table's folder, before
and after each of the steps of docs/use/erasure.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hudi_contract.requests import ServiceRequest
from hudi_contract.words import Service
from hudi_operator.plan.requests import savepoints
from tests.support.harness.local import Process, Row, Table, World, rows, until
from tests.support.harness.restore_requests import keep

pytestmark = pytest.mark.extra
WAIT = 600.0
"""Seconds; a bound for a machine with much else to do, nothing is measured."""
PERSON = "Ada-9f3c51d2-b7aa-erase-me"
"""A text that nothing else has."""
PLAIN = {"hoodie.parquet.compression.codec": "uncompressed"}
"""Otherwise the bytes could be there and not be found."""
QUIET: dict[str, Any] = {kind: {"enabled": False} for kind in ("clean", "archive", "compaction")}
CLEAN = {"clean": {"afterCommits": 1000, "retainCommits": 1}}


def places(table: Table) -> list[str]:
    """Files of the table, those of its timeline included, in which the person's text is."""
    found = [path for path in sorted(table.folder.rglob("*")) if path.is_file()]
    return [str(path.relative_to(table.folder)) for path in found if PERSON.encode() in read(path)]


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""  # deleted meanwhile


def write(table: Table, name: str, *batches: list[Row], **more: Any) -> None:
    """A commit for each batch."""
    writer = table.writer(name, python={"batches": [{"rows": content} for content in batches]}, **more)
    assert writer.wait(WAIT) == 0, writer.log()[-4000:]


def cleaned(table: Table, agent: Process, run: str) -> None:
    """A clean, now, as the operator asks for it; it has seen every commit."""
    table.ask(ServiceRequest(id="service-clean", service=Service.CLEAN, run=run).to_json())
    until(
        f"clean {run} has ended",
        lambda: run in (table.get("done/service-clean") or {}).get("runs", ()),
        alive=agent,
        timeout=WAIT,
    )


@pytest.mark.timeout(6 * WAIT)
@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_a_deleted_persons_bytes_are_gone_in_the_end(world: World, kind: str) -> None:
    name, agent_name = f"erased-{kind.lower()}", f"agent-erased-{kind.lower()}"
    compacts = {"compaction": {"afterCommits": 1}} if kind == "MergeOnRead" else {}
    options: dict[str, Any] = {"type": kind, "hudiOptions": PLAIN}
    table = world.table(name, services=QUIET, **options)
    agent = world.agent(agent_name, pod=f"{agent_name}-1", storage=table)
    world.create(table, agent=agent_name, process=agent, pod=f"{agent_name}-1")
    others, person = rows(range(10), "a", "seed", 0), rows([77], "a", PERSON, 0)
    write(table, "seed", [*others, *person])
    (first,) = places(table)
    assert first.startswith("a/"), "a data file, and nothing of the timeline"
    saved = keep(table, "before", agent)

    # Deleted: no reader sees it, and every byte is where it was.
    write(table, "forget", rows([77], "a", "", 1), operation="delete")
    table.audited(others)
    assert first in places(table)

    # A newer base file, and a clean that keeps one commit: the savepoint still has it.
    world.table(name, services=QUIET | CLEAN | compacts, **options).assign(agent_name)
    write(table, "others", *(rows(range(10), "a", f"v{number}", number) for number in (3, 4, 5)))
    if kind == "MergeOnRead":
        until("it is compacted", lambda: bases(table) > 1 and not table.pending(), alive=agent, timeout=WAIT)
    cleaned(table, agent, "beside-the-savepoint")
    assert places(table) == [first]

    # Without the savepoint the next clean deletes it: nowhere, the timeline included.
    table.ask(savepoints.deletion("before", saved["instant"]).to_json())
    until(
        "the savepoint is deleted",
        lambda: (table.get("done/savepoint-before") or {})["result"] == "Deleted",
        alive=agent,
        timeout=WAIT,
    )
    cleaned(table, agent, "without-it")
    assert places(table) == [], "nowhere"
    table.audited(rows(range(10), "a", "v5", 5))
    agent.terminate()
    assert agent.wait(WAIT) == 0, agent.log()[-3000:]


def bases(table: Table) -> int:
    return len([name for name in table.data_files() if name.startswith("a/") and name.endswith(".parquet")])

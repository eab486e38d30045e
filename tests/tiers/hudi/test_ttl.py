"""Partition lifecycle: what nobody writes any more is deleted.

Who writes to it wins, and nothing that was committed is lost.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hudi_runtime.table.timeline import State
from tests.support.harness.local import AGENT, Process, Table, World, rows, until
from tests.support.oracle import not_seen

SERVICES = {
    "ttl": {"afterCommits": 1, "retainSeconds": 86400, "partitionPattern": "old.*"},
    **{kind: {"enabled": False} for kind in ("compaction", "clean", "archive")},
}
WAIT = 600.0
"""Seconds; a bound for a machine with much else to do, nothing is measured."""


def record(table: Table) -> dict[str, Any]:
    return table.get("done/service-ttl") or {}


def at_once(table: Table) -> Table:
    """Whatever is there has expired. The API asks for one day at least."""
    sections = table.spec.service_sections
    assert sections.ttl is not None
    table.spec = replace(table.spec, service_sections=replace(sections, ttl=replace(sections.ttl, retain_seconds=0)))
    return table


def ended(table: Table, agent: Process, result: str) -> dict[str, Any]:
    return until(
        f"ttl: {result}",
        lambda: record(table) if record(table).get("result") == result else None,
        alive=agent,
        timeout=WAIT,
    )


@pytest.mark.extra
@pytest.mark.timeout(4 * WAIT)
def test_partitions_expire_beside_writers(world: World, agent: Process) -> None:
    """A writer that has begun to write to an expired partition is not made to fail.

    F483: others go meanwhile. When it has ended, the partition goes, in one commit, and others
    stay; what is written to it afterwards is there.
    """
    table = world.table("expiring")
    world.create(table, agent=AGENT, process=agent)
    gate = world.folder / "gate-expiring"
    seed = [*rows(range(5), "old", "first", 1), *rows(range(5, 10), "kept", "first", 1)]
    first = [{"rows": [*seed, *rows(range(10, 15), "older", "first", 1)]}]
    writer = table.writer(
        "writer",
        python={"batches": [*first, {"rows": rows(range(5), "old", "changed", 2), "gate": str(gate)}]},
        retries=0,
    )
    until("the second write is under way", Path(f"{gate}.reached").exists, alive=writer, timeout=WAIT)
    (pending,) = table.pending()

    at_once(world.table("expiring", services=SERVICES)).assign(AGENT)

    def deletions() -> list[str]:
        return [i.requested for i in table.timeline().completed if i.action == "replacecommit"]

    until("another partition has gone", deletions, alive=agent, timeout=WAIT)
    assert pending in ended(table, agent, "Postponed")["message"]
    until(
        "its instant is rolled back",
        lambda: table.pending() == {pending} and table.names("instant/") == {pending},
        alive=agent,
        timeout=WAIT,
    )
    gate.touch()
    assert writer.wait(WAIT) == 0, writer.log()[-4000:]
    assert writer.termination()["conflicts"] == 0
    table.audited(
        [*rows(range(5), "old", "changed", 2), *rows(range(5, 10), "kept", "first", 1)],
        without=not_seen("hudi-rs", "stray", "metadata", "incremental", "late", "overlap"),
    )

    table.world.etcd.delete(table.key("done/service-ttl"))  # instead of waiting until it has rested
    deleted = ended(table, agent, "Completed")
    assert deleted["message"] == "1 partitions deleted: old"
    found = table.timeline().get(deleted["instant"])
    assert found is not None
    assert (found.action, found.state) == ("replacecommit", State.COMPLETED)
    table.audited(rows(range(5, 10), "kept", "first", 1))

    world.table("expiring").assign(AGENT)
    again = table.writer("again", python={"batches": [{"rows": rows([0, 77], "old", "again", 3)}]})
    assert again.wait(WAIT) == 0, again.log()[-4000:]
    table.audited([*rows(range(5, 10), "kept", "first", 1), *rows([0, 77], "old", "again", 3)])
    assert not table.keys("done/abandoned-"), "an agent has no executors: archival does not wait for its end"

"""Clustering beside a partition that is written without a pause: that one is left out, and
clustered when it is quiet.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness.local import AGENT, Process, Table, World, rows, until

#: Each commit of new rows begins a file group of its own.
SMALL = {"hoodie.parquet.small.file.limit": "0", "hoodie.parquet.compression.codec": "snappy"}
SERVICES = {
    "clustering": {"afterCommits": 1},
    **{kind: {"enabled": False} for kind in ("compaction", "clean", "archive")},
}
HOT, QUIET = "always", "1,2"
"""A name with a comma: what Hudi's own list of partitions cannot hold."""
RUNS = 6
"""One is lost because of the partition that is written, and a later one only when the writer takes
long to say where it writes.
"""
WAIT = 600.0
"""Seconds; a bound for a machine with much else to do, nothing is measured."""


def record(table: Table) -> dict[str, Any]:
    return table.get("done/service-clustering") or {}


def ended(table: Table) -> dict[str, Any] | None:
    found = record(table)
    return found if found.get("result") not in (None, "Running") else None


@pytest.mark.extra
@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
@pytest.mark.timeout(4 * WAIT)
def test_the_quiet_partition_is_clustered(world: World, agent: Process, kind: str) -> None:
    name = f"always-written-{kind.lower()}"
    table = world.table(name, type=kind, hudiOptions=SMALL)
    world.create(table, agent=AGENT, process=agent)
    hot = [(number, HOT, "seed", 0) for number in range(20)]
    still = [rows(range(start, start + 10), QUIET, "seed", 0) for start in (100, 110, 120)]
    seed = table.writer("seed", python={"batches": [{"rows": batch} for batch in (hot[:10], hot[10:], *still)]})
    assert seed.wait(WAIT) == 0, seed.log()[-4000:]
    begun = len(table.timeline().completed)

    end = world.folder / f"end-{name}"
    paced = {"rows": [(*row[:2], "hot", 1) for row in hot], "seconds": 0, "until": str(end)}
    writer = table.writer("writer", function="paced", python=paced, retries=0)
    until("it writes", lambda: len(table.timeline().completed) > begun, alive=writer, timeout=WAIT)
    world.table(name, type=kind, hudiOptions=SMALL, services=SERVICES).assign(AGENT)
    told = []
    while len(told) < RUNS:
        found = until("a run ended", lambda: ended(table), alive=agent, timeout=WAIT)
        assert writer.poll() is None, writer.log()[-4000:]
        told.append(f"{found['result']} in {found['durationMs']} ms: {found['message']}")
        if found["result"] == "Completed":
            break
        assert (found["result"], found["failures"]) == ("Postponed", 0), found
        # It would rest now.
        world.etcd.put(table.key("done/service-clustering"), {**found, "retryAtMs": 0, "result": "Running"})
    print(*told, sep="\n")  # for the record: how many runs were lost
    assert found["result"] == "Completed", told
    assert f"1 partition left out because of concurrent writes: {HOT}" in found["message"], told
    assert found["leftOut"] == 1
    first = next(i for i in table.timeline().completed if i.action == "replacecommit")
    assert {name.rsplit("/", 1)[0] for name in table.data_files(first.requested)} == {QUIET}
    assert len(table.data_files(first.requested)) == 1, "three file groups became one"

    end.touch()
    assert writer.wait(WAIT) == 0, writer.log()[-4000:]
    ended_with = writer.termination()
    assert ended_with["conflicts"] == 0, "no commit was refused"
    # From now on no commit makes it due
    world.etcd.put(table.key("done/service-clustering"), {**record(table), "upTo": "99991231235959999"})

    def clustered() -> bool:
        return any(
            name.startswith(f"{HOT}/")
            for i in table.timeline().completed
            if i.action == "replacecommit"
            for name in table.data_files(i.requested)
        )

    until("the other partition is clustered, too", clustered, alive=agent, timeout=WAIT)
    until(
        "it is on record",
        lambda: record(table).get("result") == "Completed" and record(table)["leftOut"] == 0,
        alive=agent,
        timeout=WAIT,
    )
    last = ended_with["commits"] - 1
    table.audited(
        [*((number, HOT, f"hot-{last}", 1 + last) for number, *_ in hot), *(row for batch in still for row in batch)]
    )

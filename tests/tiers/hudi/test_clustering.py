"""Clustering beside writers: it loses against whoever changes its file groups, no row is lost, and
no commit fails because of it (RFC-22 R50).
"""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Any

import pytest

from hudi_runtime.table.timeline import Instant, State
from tests.support.harness.local import Process, Row, Table, World, rows, until

AGENT = "agent-clustered"
#: Each commit of new rows begins a file group of its own; clustering merges them.
SMALL = {"hoodie.parquet.small.file.limit": "0", "hoodie.parquet.compression.codec": "snappy"}
SERVICES = {
    "clustering": {"afterCommits": 1, "sortColumns": ["id"]},
    **{kind: {"enabled": False} for kind in ("compaction", "clean", "archive")},
}
WAIT = 600.0
"""Seconds; a bound for a machine with much else to do, nothing is measured."""


def part(number: int, value: str = "", ts: int = 1) -> list[Row]:
    """The rows of one of the first commits, as they are at the beginning or later."""
    return rows(range(number * 10, number * 10 + 10), "a", value or f"seed{number}", ts)


def clustering(table: Table, state: State) -> Instant | None:
    """The newest clustering in that state."""
    action = "replacecommit" if state is State.COMPLETED else "clustering"
    return next((i for i in reversed(table.timeline().instants) if i.action == action and i.state is state), None)


def record(table: Table) -> dict[str, Any]:
    return table.get("done/service-clustering") or {}


def again(table: Table) -> None:
    """Let the agent plan at once what it would plan after a rest."""
    table.world.etcd.delete(table.key("done/service-clustering"))


def postponed(table: Table, agent: Process) -> dict[str, Any]:
    found = until(
        "the clustering is postponed",
        lambda: record(table) if record(table).get("result") == "Postponed" else None,
        alive=agent,
        timeout=WAIT,
    )
    assert found["failures"] == 0, "what a writer wins is no failure"
    until("nothing of it is left", lambda: not clustering_left(table), alive=agent, timeout=WAIT)
    return found


def clustering_left(table: Table) -> bool:
    kinds = {i.action for i in table.timeline().pending} | {
        str(key.value.get("action")) for key in table.keys("instant/")
    }
    return bool(kinds & {"clustering", "rollback"})


def stopped_in_a_clustering(table: Table, agent: Process) -> Instant:
    """The agent stands still between plan and publication, without the lock."""
    found = until(
        "a clustering is under way", lambda: clustering(table, State.INFLIGHT), alive=agent, every=0.002, timeout=WAIT
    )

    def without_the_lock() -> bool:
        agent.signal(signal.SIGSTOP)
        if table.get("lock") is not None:
            agent.signal(signal.SIGCONT)
            return False
        return True

    until("it has not the lock", without_the_lock, alive=agent, every=0.02)
    assert clustering(table, State.INFLIGHT) == found, "not published yet"
    return found


def instants(text: str) -> set[str]:
    """Instants that a message names."""
    return set(re.findall(r"\d{17}", text))


@pytest.mark.parametrize("kind", ["CopyOnWrite", pytest.param("MergeOnRead", marks=pytest.mark.extra)])
@pytest.mark.timeout(6 * WAIT)
def test_updates_beside_clustering(world: World, kind: str) -> None:
    """I9, I12: it yields to a writer that has begun, and to commits that were begun and completed
    since its plan; one that nobody disturbs merges the file groups; one whose agent dies is
    executed again by the next agent.
    """
    name = f"clustered-{kind.lower()}"
    agent_name = f"{AGENT}-{kind.lower()}"
    table = world.table(name, type=kind, hudiOptions=SMALL)
    first = world.agent(agent_name, pod=f"{agent_name}-1")
    world.create(table, agent=agent_name, process=first, pod=f"{agent_name}-1")
    begun = world.folder / f"gate-{name}"
    changes = [
        {"rows": part(0, "begun before", 2), "gate": str(begun)},
        {"rows": part(1, "begun after", 2)},
        {"rows": part(3)},
    ]
    batches = [*({"rows": part(number)} for number in range(3)), *changes]
    writer = table.writer("writer", python={"batches": batches}, retries=0)
    rewritten = world.table(name, type=kind, hudiOptions=SMALL, services=SERVICES)

    until("the writer is in its fourth write", Path(f"{begun}.reached").exists, alive=writer, timeout=WAIT)
    (pending,) = table.pending()
    groups = file_groups(table)
    assert len(groups) == 3
    rewritten.assign(agent_name)
    found = postponed(table, first)
    assert pending in found["message"], "who has begun wins, although it has not said yet what it changes"
    assert file_groups(table) == groups

    again(table)
    lost = stopped_in_a_clustering(table, first)
    begun.touch()
    assert writer.wait(WAIT) == 0, writer.log()[-4000:]
    told = writer.termination()
    assert (told["commits"], told["conflicts"]) == (len(batches), 0), "no commit was refused"
    first.signal(signal.SIGCONT)
    found = postponed(table, first)
    assert {i.requested for i in table.timeline().completed if i.completion > lost.requested} & instants(
        found["message"]
    )
    assert table.data_files(lost.requested) == []
    if kind == "MergeOnRead":
        cost = until(
            "what readers have to merge is counted", lambda: merged_by_readers(table), alive=first, timeout=WAIT
        )
        assert (cost["fileGroups"], cost["fileGroupsWithLogs"]) == (4, 2)
        assert cost["baseBytes"] > 0

    again(table)
    merged = until(
        "the file groups are clustered", lambda: clustering(table, State.COMPLETED), alive=first, timeout=WAIT
    )
    assert len(file_groups(table, merged.requested)) == 1
    expected = [*part(0, "begun before", 2), *part(1, "begun after", 2), *part(2), *part(3)]
    table.audited(expected)
    if kind == "MergeOnRead":
        until(
            "nothing is to be merged any more",
            lambda: table.report()["readCost"]["logBytes"] == 0,
            alive=first,
            timeout=WAIT,
        )
    until("its record is gone", lambda: not table.names("instant/"), alive=first, timeout=WAIT)

    quick = table.writer("quick", python={"batches": [{"rows": part(4)}]})
    died = until(
        "a clustering is under way", lambda: clustering(table, State.INFLIGHT), alive=first, every=0.002, timeout=WAIT
    )
    first.kill()
    assert quick.wait(WAIT) == 0
    assert table.pending() == {died.requested}
    second = world.agent(agent_name, pod=f"{agent_name}-2")
    world.admit_agent(rewritten, agent_name, pod=f"{agent_name}-2")
    dead = str((table.get(f"instant/{died.requested}") or {})["inc"])
    table.fence(first, inc=dead)
    outcomes = until("the dead agent is settled", lambda: table.outcomes(dead), alive=second, timeout=WAIT)
    assert outcomes[died.requested] == "Completed"
    assert died.requested in [claim["instant"] for claim in second.protocol("claim") if claim["ok"]]
    until("nothing is pending", lambda: not table.pending() and not table.names("instant/"), alive=second, timeout=WAIT)
    table.audited([*expected, *part(4)])
    second.terminate()
    assert second.wait(WAIT) == 0, second.log()[-3000:]


@pytest.mark.extra
@pytest.mark.timeout(3 * WAIT)
def test_a_deletion_of_partitions_waits_for_a_clustering(world: World) -> None:
    """F486: Hudi deletes no partition that a pending clustering rewrites."""
    agent_name = f"{AGENT}-dropped"
    table = world.table("dropped", hudiOptions=SMALL)
    agent = world.agent(agent_name, pod=f"{agent_name}-1")
    world.create(table, agent=agent_name, process=agent, pod=f"{agent_name}-1")
    kept = rows([99], "b", "kept", 1)
    seed = table.writer("seed", python={"batches": [{"rows": part(0)}, {"rows": part(1)}, {"rows": kept}]})
    assert seed.wait(WAIT) == 0, seed.log()[-4000:]
    world.table("dropped", hudiOptions=SMALL, services=SERVICES).assign(agent_name)
    held = stopped_in_a_clustering(table, agent)
    drop = table.writer("drop", operation="delete_partition", partitions=["a"], retries=5)
    report = f"report/attempt/{drop.name}"
    until("it waits", lambda: (table.get(report) or {}).get("stage") == "Yielding", alive=drop, timeout=WAIT)
    agent.signal(signal.SIGCONT)
    assert drop.wait(WAIT) == 0, drop.log()[-4000:]
    assert drop.termination()["commits"] == 1
    assert (table.get(report) or {})["conflicts"][0]["with"] == held.requested
    until("nothing is pending", lambda: not table.pending(), alive=agent, timeout=WAIT)
    table.audited(kept)
    agent.terminate()
    assert agent.wait(WAIT) == 0, agent.log()[-3000:]


def merged_by_readers(table: Table) -> dict[str, int] | None:
    """What the agent has counted (R58), once that is everything that is there."""
    logs = sum((table.folder / name).stat().st_size for name in table.data_files() if Path(name).name.startswith("."))
    cost: dict[str, int] = table.report().get("readCost", {})
    return cost if logs and cost.get("logBytes") == logs else None


def file_groups(table: Table, instant: str = "") -> set[str]:
    """Ids of the file groups that have files (of one instant)."""
    return {Path(name).name.lstrip(".").split("_")[0] for name in table.data_files(instant)}

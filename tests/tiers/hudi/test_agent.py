"""The agent: rolls back exactly what it may, continues what another agent began, reports what it
must not touch.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hudi_contract.assignment import AssignmentRecord
from hudi_operator.plan.agent import agents
from hudi_runtime.agent import adoption
from hudi_runtime.job.job import TableSpec as JobTableSpec
from tests.support.harness.local import AGENT, Process, Table, World, rows, until


def test_rolls_back_exactly_the_dead_writers_instant(world: World, agent: Process) -> None:
    """I7: of three pending instants (dead writer, living writer, foreign) only the dead writer's
    goes; late files of it go too (I5).
    """
    table = world.table("exact")
    world.create(table, agent=AGENT, process=agent)
    gates = {name: world.folder / f"gate-exact-{name}" for name in ("living", "dead")}
    living = table.writer(
        "living",
        python={
            "batches": [
                {"rows": rows(range(5), "a", "seed", 1)},
                {"rows": rows(range(5), "b", "living", 1), "gate": str(gates["living"])},
            ]
        },
    )
    until("the living writer is in its write", Path(f"{gates['living']}.reached").exists, alive=living)
    (alive,) = table.pending()
    dead = table.writer(
        "dead", python={"batches": [{"rows": rows(range(5), "a", "dead", 9), "gate": str(gates["dead"])}]}
    )
    until("the dead writer is in its write", Path(f"{gates['dead']}.reached").exists, alive=dead)
    (victim,) = table.pending() - {alive}
    dead.kill()
    foreign = str(int(victim) + 1)
    (table.folder / ".hoodie" / "timeline" / f"{foreign}.commit.requested").touch()
    until(
        "the foreign instant is reported",
        lambda: table.report().get("foreign") == [{"instant": foreign, "action": "commit"}],
        alive=agent,
    )
    assert {item["instant"] for item in table.report()["pending"]} == {alive, victim, foreign}
    (seed,) = (commit for commit in table.report()["commits"] if commit["writer"].endswith("/living"))
    assert (seed["action"], seed["records"], seed["attempt"]) == ("commit", 5, living.name)
    assert seed["instant"] < seed["completionTime"]
    late = table.folder / "a" / f"00000000-1111-2222-3333-444444444444-0_0-1-1_{victim}.parquet"
    shutil.copy(table.folder / table.data_files()[0], late)
    inc = table.fence(dead)
    assert until("swept", lambda: table.outcomes(inc), alive=agent) == {victim: "RolledBack"}
    assert table.pending() == {alive, foreign}
    assert not late.exists()
    assert alive in table.heartbeats()
    table.settled(inc)
    gates["living"].touch()
    assert living.wait() == 0, living.log()[-4000:]
    report = table.audited(rows(range(5), "a", "seed", 1) + rows(range(5), "b", "living", 1), owners="violated")
    assert report.get("owners").findings == (f"{foreign} commit: no record in etcd: it is foreign",)


@pytest.mark.extra
def test_next_agent_finishes_a_rollback(world: World) -> None:
    """I6, F9, F18: an agent killed between plan and finish leaves a pending rollback with a fresh
    heartbeat; the next one finishes it.
    """
    table = world.table("resume", type="MergeOnRead")
    first = world.agent("agent-resume", pod="agent-resume-1")
    world.create(table, agent="agent-resume", process=first, pod="agent-resume-1")
    gate = world.folder / "gate-resume"
    writer = table.writer(
        "writer",
        python={
            "batches": [
                {"rows": rows(range(5), "a", "seed", 1)},
                {"rows": rows(range(5), "a", "dead", 9), "gate": str(gate)},
            ]
        },
    )
    until("the write is under way", Path(f"{gate}.reached").exists, alive=writer)
    (victim,) = table.pending()
    writer.kill()
    inc = table.fence(writer)
    rollback = until(
        "a rollback is planned",
        lambda: [i.requested for i in table.timeline().pending if i.action == "rollback"],
        alive=first,
        every=0.002,
    )[0]
    first.kill()
    assert rollback in table.pending()
    assert table.outcomes(inc) is None
    second = world.agent("agent-resume", pod="agent-resume-2")
    world.admit_agent(table, "agent-resume", pod="agent-resume-2")
    until("the second agent has registered", lambda: second.inc, alive=second)
    until("the second agent looks at the table", lambda: table.report().get("agentInc") == second.inc, alive=second)
    assert rollback in table.pending(), "an unproven agent's rollback is not touched (F22)"
    dead_agent = table.fence(first)
    outcomes = until(
        "both are swept",
        lambda: (
            table.outcomes(inc) and table.outcomes(dead_agent) and (table.outcomes(inc), table.outcomes(dead_agent))
        ),
    )
    assert set(outcomes[0]) == {victim}
    assert set(outcomes[1]) >= {rollback}
    assert {victim, rollback} & table.heartbeats() == set()
    table.audited(rows(range(5), "a", "seed", 1))
    second.terminate()
    assert second.wait() == 0, second.log()[-3000:]
    assert table.keys("writer/") == [] or second.inc not in table.names("writer/")


def test_a_table_of_another_lock_or_shape_is_refused(world: World, agent: Process) -> None:
    """F10: a copy of a table names another table id.

    Without the marker the spec is compared and the difference named.
    """
    original = world.table("shape")
    world.create(original, agent=AGENT, process=agent)
    copy = world.table("shape-copy", type="MergeOnRead")
    shutil.copytree(original.folder, copy.folder)
    copy.gate("closed")
    world.admit_agent(copy, AGENT)
    error = until("the difference is reported", lambda: copy.report().get("error"), alive=agent)
    assert error["code"] == "TableMismatch"
    assert "type: spec 'MERGE_ON_READ', table 'COPY_ON_WRITE'" in error["message"]
    assert "tableName: spec 'shape-copy', table 'shape'" in error["message"]
    alias = world.table("shape", path=world.url(world.lake / "shape-alias"))
    shutil.copytree(original.folder, alias.folder)
    alias.gate("closed")
    world.admit_agent(alias, AGENT)
    error = until("the other lock is reported", lambda: alias.report().get("error"), alive=agent)
    assert error["code"] == "OtherLockAuthority"
    assert original.id in error["message"]


def test_a_fenced_writer_halts_by_itself(world: World) -> None:
    """I2, and the rollback of what it was at.

    Its agent says what it was told of the bucket, and that another one is not there,
    within a minute.
    """
    table: Table = world.table("halts")
    nowhere = world.table("nowhere", path="s3a://no-such-bucket/nowhere")
    process = world.agent("agent-halts", storage=table)
    world.admit_agent(nowhere, "agent-halts")
    nowhere.gate("closed")
    world.create(table, agent="agent-halts", process=process)
    gate = world.folder / "gate-halts"
    writer = table.writer(
        "writer",
        python={
            "batches": [
                {"rows": rows(range(5), "a", "seed", 1)},
                {"rows": rows(range(5), "a", "dead", 9), "gate": str(gate)},
            ]
        },
    )
    until("the write is under way", Path(f"{gate}.reached").exists, alive=writer)
    (victim,) = table.pending()
    inc = table.fence(writer, phase="Terminating")
    assert writer.wait() == 15, writer.log()[-3000:]
    assert writer.termination()["class"] == "Fenced"
    assert table.fence(writer) == inc
    assert until("swept", lambda: table.outcomes(inc), alive=process) == {victim: "RolledBack"}
    assert table.report()["bucket"] == {"harmful": [], "costly": [], "unknown": ["lifecycle rules", "replication"]}, (
        "what versitygw tells"
    )
    table.audited(rows(range(5), "a", "seed", 1))
    error = until("the missing bucket is reported", lambda: nowhere.report().get("error"), alive=process, timeout=60)
    assert error["code"] == "StorageUnreachable"


def test_a_table_without_a_commit_has_no_row_that_its_adoption_refuses(world: World, agent: Process) -> None:
    """F359: neither one that nobody has written to, nor one whose only write was rolled back."""
    table = world.table("never-written", type="MergeOnRead")
    world.create(table, agent=AGENT, process=agent)
    spec = JobTableSpec.of(AssignmentRecord.from_json(agents.assignment(table.spec, 0)))
    assert spec.ordering
    assert adoption.unordered(world.spark(), spec) == []

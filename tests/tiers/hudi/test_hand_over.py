"""One agent, two tables: the end of its incarnation at one of them does not end what it is at for
the other (F48).
"""

from __future__ import annotations

import os
import signal
import time

import pytest

from hudi_runtime.table.timeline import State
from tests.support.harness.compactions import EAGER, batch, compaction
from tests.support.harness.executors import executor_of
from tests.support.harness.local import World, until
from tests.support.oracle import not_seen

HEARTBEATS_SECONDS = 8.0
"""In which a process has seen that it is fenced: one each 3 s."""


@pytest.mark.extra
def test_a_compaction_ends_although_the_agent_is_fenced_for_another_table(world: World) -> None:
    """The fenced incarnation does nothing more.

    The other table's compaction is completed and its incarnation leaves by itself.
    """
    busy = world.table("busy", type="MergeOnRead", services=EAGER)
    gone = world.table("gone")
    agent = world.agent("agent-two", pod="agent-two-1", executor=True)
    for table in (gone, busy):
        world.create(table, agent="agent-two", process=agent, pod="agent-two-1")
    incs = {table.id: str(table.report()["agentInc"]) for table in (gone, busy)}
    writer = busy.writer("writer", python={"batches": [batch(1), batch(2), batch(3)]})
    running = until("a compaction is under way", lambda: compaction(busy, State.INFLIGHT), alive=agent, every=0.002)
    executor = executor_of(agent)
    os.kill(executor, signal.SIGSTOP)
    try:
        assert running.requested in busy.pending()
        gone.fence(agent, phase="Terminating", inc=incs[gone.id])
        agent.terminate()  # as the operator does, by the pod's deletion
        time.sleep(HEARTBEATS_SECONDS)
        assert agent.poll() is None, agent.log()[-4000:]
        assert running.requested in busy.pending()
    finally:
        os.kill(executor, signal.SIGCONT)
    assert agent.wait() == 0, agent.log()[-4000:]
    assert running.requested not in busy.pending(), "it was cut off"
    assert not busy.names("instant/") & {running.requested}
    assert incs[busy.id] not in busy.names("writer/"), "the operator has to settle what has left in order"
    assert incs[gone.id] in gone.names("writer/"), "a fenced incarnation leaves by nobody's word"
    assert writer.wait() == 0, writer.log()[-4000:]
    busy.audited(
        [(number, "a", "v3", 3) for number in range(20)],
        without=not_seen("origin", "stray", "owners", "incremental", "late", "overlap"),
    )

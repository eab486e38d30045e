"""Who lives long needs no more connections to the object store than who lives short: none is kept
by what has been read.
"""

from __future__ import annotations

import os

import pytest

from tests.support.harness.local import World, rows

pytestmark = pytest.mark.extra
COMMITS = int(os.environ.get("CONNECTIONS_COMMITS", "30"))
SERVICES = {
    "compaction": {"afterCommits": 5},
    "clean": {"afterCommits": 10},
    "archive": {"enabled": False},
    "clustering": {"enabled": False},
}


@pytest.mark.timeout(1800)
def test_connections_are_given_back(world: World) -> None:
    """A writer with many commits, an agent with compactions, and a reader with as many pulls, each
    with the 16 connections to the S3 server that the harness gives them: a stream that stays open
    keeps one, and a process without any stands still. (Stock Hudi 1.2.0 leaves open about 30 with
    each commit of the writer.)
    """
    table = world.table("connected", type="MergeOnRead", services=SERVICES)
    chained = world.table("connected-chained", type="MergeOnRead", services=SERVICES)
    agent = world.agent("agent-connected", storage=table)
    for made in (table, chained):
        world.create(made, agent="agent-connected", process=agent)
    batches = [
        {"rows": [*rows(range(10), "a", str(n), n), *rows(range(10, 20), "b", str(n), n)]} for n in range(COMMITS)
    ]
    writer = table.writer("writer", retries=0, python={"batches": batches})
    assert writer.wait(600) == 0, writer.log()[-4000:]
    assert writer.termination()["commits"] == COMMITS
    reader = chained.writer("reader", retries=0, hudi={"path": table.path, "maxCommitsPerBatch": 1})
    assert reader.wait(900) == 0, reader.log()[-4000:]
    # Those whose files were cleaned come together.
    assert reader.termination()["commits"] > COMMITS // 4
    last = [
        *rows(range(10), "a", str(COMMITS - 1), COMMITS - 1),
        *rows(range(10, 20), "b", str(COMMITS - 1), COMMITS - 1),
    ]
    for made in (table, chained):
        made.audited(last)
    agent.terminate()
    assert agent.wait() == 0, agent.log()[-3000:]

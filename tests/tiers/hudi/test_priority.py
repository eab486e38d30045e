"""Priority at conflict: who comes later gives way to a more important writer that is at work on the
same file groups (RFC-22 R23, R42).
"""

from __future__ import annotations

from urllib.parse import urlparse

import pytest

from tests.support.harness import s3proxy
from tests.support.harness.local import World, rows, until


@pytest.mark.extra
def test_a_less_important_writer_gives_way(world: World) -> None:
    """I9: it would be first with its commit, and the other one would have to write everything
    again; it waits, and repeats its own write. Who writes other file groups does not wait, however
    unimportant.
    """
    server = urlparse(world.start_s3())
    proxy = s3proxy.Proxy("127.0.0.1", (str(server.hostname), int(server.port or 80)))
    table = world.table("priority", endpoint=proxy.url)
    agent = world.agent("agent-priority", storage=table)
    world.create(table, agent="agent-priority", process=agent)
    seed = table.writer(
        "seed", python={"batches": [{"rows": [*rows(range(10), "a", "seed", 1), *rows(range(10, 15), "b", "seed", 1)]}]}
    )
    assert seed.wait() == 0, seed.log()[-4000:]
    held = proxy.hold_next(s3proxy.data_file)
    live = table.writer("live", priority=10, retries=0, python={"batches": [{"rows": rows(range(10), "a", "live", 2)}]})
    until("it writes its data file", held.arrived.is_set, alive=live)
    (inflight,) = table.pending()
    backfill = table.writer("backfill", retries=0, python={"batches": [{"rows": rows(range(5), "a", "backfill", 3)}]})
    report = f"report/attempt/{backfill.name}"
    until("backfill gives way", lambda: (table.get(report) or {}).get("stage") == "Yielding", alive=backfill)
    elsewhere = table.writer(
        "elsewhere", priority=-10, retries=0, python={"batches": [{"rows": rows(range(10, 15), "b", "elsewhere", 2)}]}
    )
    assert elsewhere.wait() == 0, elsewhere.log()[-4000:]
    assert elsewhere.termination()["conflicts"] == 0
    assert inflight in table.pending()
    held.deliver.set()
    assert live.wait() == 0, live.log()[-4000:]
    assert live.termination()["conflicts"] == 0, "what it has written counts"
    assert backfill.wait() == 0, backfill.log()[-4000:]
    told = table.get(report)
    assert told is not None
    (conflict,) = told["conflicts"]
    assert (conflict["with"], conflict["yielded"]) == (inflight, True)
    assert conflict["retriedAs"] == backfill.termination()["lastInstant"]
    until("the given up instant is rolled back", lambda: not table.pending(), alive=agent)
    expected = [
        *rows(range(5), "a", "backfill", 3),
        *rows(range(5, 10), "a", "live", 2),
        *rows(range(10, 15), "b", "elsewhere", 2),
    ]
    table.audited(expected)
    agent.terminate()
    assert agent.wait() == 0, agent.log()[-3000:]
    proxy.stop()

"""`concurrency.earlyConflictDetection`: who meets the marker of an earlier write stops in the
middle of its own, and is repeated when that has ended.
"""

from __future__ import annotations

from urllib.parse import urlparse

import pytest

from tests.support.harness import s3proxy
from tests.support.harness.local import World, rows, until

pytestmark = pytest.mark.extra
REPEATED = 20


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_the_later_write_stops_before_it_has_written(world: World, kind: str) -> None:
    """I9: the first write stands still with its data file (MergeOnRead: log file) under way.

    The second one of that file group has given up its instant by then, without the lock and without
    a data file; a third one elsewhere notices nothing.
    """
    server = urlparse(world.start_s3())
    proxy = s3proxy.Proxy("127.0.0.1", (str(server.hostname), int(server.port or 80)))
    name = f"early-{kind.lower()}"
    table = world.table(
        name, type=kind, endpoint=proxy.url, concurrency={"mode": "Optimistic", "earlyConflictDetection": True}
    )
    agent = world.agent(f"agent-{name}", storage=table)
    world.create(table, agent=f"agent-{name}", process=agent)
    seed = table.writer(
        "seed", python={"batches": [{"rows": [*rows(range(10), "a", "seed", 1), *rows(range(10, 15), "b", "seed", 1)]}]}
    )
    assert seed.wait() == 0, seed.log()[-4000:]
    wanted = s3proxy.data_file if kind == "CopyOnWrite" else s3proxy.log_file
    held = proxy.hold_next(wanted)
    first = table.writer("first", retries=0, python={"batches": [{"rows": rows(range(10), "a", "first", 2)}]})
    until("the first one writes its data file", held.arrived.is_set, alive=first)
    (inflight,) = table.pending()
    # The client sends it again when it has waited for an answer for long.
    again = [proxy.hold_next(lambda line: wanted(line) and inflight in line) for _ in range(REPEATED)]
    second = table.writer("second", retries=1, python={"batches": [{"rows": rows(range(5), "a", "second", 3)}]})
    report = f"report/attempt/{second.name}"
    until("the second one waits", lambda: (table.get(report) or {}).get("stage") == "Yielding", alive=second)
    (conflict,) = (table.get(report) or {})["conflicts"]
    assert conflict["with"] == inflight
    (group,) = conflict["fileGroups"]
    assert group.startswith("a/")
    assert not table.data_files(conflict["instant"]), "it stopped before it wrote"
    elsewhere = table.writer(
        "elsewhere", retries=0, python={"batches": [{"rows": rows(range(10, 15), "b", "elsewhere", 2)}]}
    )
    assert elsewhere.wait() == 0, elsewhere.log()[-4000:]
    assert inflight in table.pending()
    for request in (held, *again):
        request.deliver.set()
    assert first.wait() == 0, first.log()[-4000:]
    assert second.wait() == 0, second.log()[-4000:]
    assert second.termination()["conflicts"] == 1
    until("the given up instant is rolled back", lambda: not table.pending(), alive=agent)
    table.audited(
        [
            *rows(range(5), "a", "second", 3),
            *rows(range(5, 10), "a", "first", 2),
            *rows(range(10, 15), "b", "elsewhere", 2),
        ]
    )
    agent.terminate()
    assert agent.wait() == 0, agent.log()[-3000:]
    proxy.stop()

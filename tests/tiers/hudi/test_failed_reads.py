"""I11: nothing is decided from a read that failed."""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import urlparse

from tests.support.harness import s3proxy
from tests.support.harness.local import World, rows, until

SEED = rows(range(5), "a", "seed", 1)


def test_a_store_that_does_not_list_takes_nothing_away(world: World) -> None:
    """A writer dies in its write, and the store refuses every listing while the agent settles it:
    no file is deleted, nothing is said of its instant, and the agent goes on when the store does.
    """
    server = urlparse(world.start_s3())
    proxy = s3proxy.Proxy("127.0.0.1", (str(server.hostname), int(server.port or 80)))
    try:
        table = world.table("no-listing", type="MergeOnRead", endpoint=proxy.url)
        agent = world.agent("agent-no-listing", storage=table)
        world.create(table, agent="agent-no-listing", process=agent)
        gate = world.folder / "gate-no-listing"
        batches = [{"rows": SEED}, {"rows": rows(range(5), "a", "dead", 9), "gate": str(gate)}]
        dead = table.writer("dead", python={"batches": batches})
        until("it is in its second write", Path(f"{gate}.reached").exists, alive=dead)
        (victim,) = table.pending()
        dead.kill()
        refused = proxy.refuse(s3proxy.listing)
        asked = len(proxy.lines)
        inc = table.fence(dead)
        until("the agent was refused three times", lambda: len(refused.lines) >= 3, alive=agent)
        time.sleep(3)  # what it would do on the strength of an empty listing, it does at once
        assert not [line for line in proxy.lines[asked:] if s3proxy.deletion(line)]
        assert table.outcomes(inc) is None
        refused.stop()
        assert until("settled", lambda: table.outcomes(inc), alive=agent) == {victim: "RolledBack"}
        assert victim not in table.pending()
        table.settled(inc)
        table.audited(SEED)
    finally:
        proxy.stop()

"""How often a small commit asks the store for its table's timeline and properties.

A number, not a time: what a commit costs grows with each look, and a look that comes into the loop
shows here. Most of them are Hudi's own.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.harness import s3_requests, s3proxy
from tests.support.harness.local import AGENT, Process, World, rows, until

WARM, COMMITS = 3, 3
"""Commits before those that are counted, and their number."""
MOST = {
    (s3_requests.LIST, s3_requests.TIMELINE): 22,
    ("GET", s3_requests.TIMELINE): 9,
    ("GET", s3_requests.PROPERTIES): 17,
    (s3_requests.LIST, s3_requests.DATA): 2,
}
"""Requests of one commit. A meta client of Hudi that is made anew reads the properties once."""


@pytest.mark.extra
def test_a_small_commit_looks_no_more_often_than_it_must(world: World, agent: Process) -> None:
    """One upsert of ten rows after the other, and nobody else: MergeOnRead, with the metadata
    table.
    """
    server = urlsplit(world.start_s3())
    proxy = s3proxy.Proxy("127.0.0.1", (str(server.hostname), int(server.port or 80)))
    try:
        table = world.table("requests", type="MergeOnRead", endpoint=proxy.url)
        world.create(table, agent=AGENT, process=agent)
        gates = [world.folder / f"gate-requests-{n}" for n in range(2)]
        batches = [{"rows": rows(range(10), "a", f"v{n}", n)} for n in range(WARM + COMMITS + 1)]
        for gate, n in zip(gates, (WARM, WARM + COMMITS), strict=True):
            batches[n]["after"] = str(gate)
        writer = table.writer("writer", python={"batches": batches})
        seen = []
        for gate in gates:
            until("everything before it is committed", Path(f"{gate}.reached").exists, alive=writer)
            seen.append(len(proxy.lines))
            gate.touch()
        assert writer.wait() == 0, writer.log()[-6000:]
    finally:
        proxy.stop()
    found = s3_requests.counted(proxy.lines[seen[0] : seen[1]])
    each = Counter({asked: number / COMMITS for asked, number in found.items()})
    print(f"requests of one commit: {dict(each.most_common())}")
    assert all(each[asked] <= most for asked, most in MOST.items()), dict(each.most_common())
    table.audited(rows(range(10), "a", f"v{WARM + COMMITS}", WARM + COMMITS))

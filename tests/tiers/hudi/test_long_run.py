"""A long run: two writers on disjoint partitions, 200 commits each, while the agent cleans,
compacts, clusters and archives; every commit is made, none conflicts. MergeOnRead: the run that the
last comment of RFC-22 asks for (optimistic, lazy, asynchronous services, until archival,
by data frames).
"""

from __future__ import annotations

import os
import re

import pytest

from tests.support.harness.local import AGENT, Process, Table, World, rows, until

COMMITS = int(os.environ.get("LONG_RUN_COMMITS", "200"))
"""Of each of the two writers."""
SERVICES = {
    "compaction": {"afterCommits": 10},
    "clean": {"afterCommits": 10, "retainCommits": 10},
    "archive": {"afterCommits": 10, "minCommitsToKeep": 20, "maxCommitsToKeep": 30},
    # It yields to whoever writes; the partition that was written once is sorted on the way or when
    # the writers have ended.
    "clustering": {"afterCommits": 20, "sortColumns": ["id"]},
}
QUIET = rows(range(20, 30), "c", "0", 0)
"""Written once."""
SECONDS = 30 * COMMITS
"""For all commits of a writer: many times what they need."""


def ran(agent: Process, table: Table, service: str) -> bool:
    return bool(re.search(rf"^table {re.escape(table.spec.ref.key)}: {service}: Completed \d* in", agent.log(), re.M))


@pytest.mark.extra
@pytest.mark.timeout(2 * SECONDS + 900)
@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_two_hundred_commits_each(world: World, agent: Process, kind: str) -> None:
    """Each batch rewrites its writer's ten rows, so every row tells which commit was the last.

    With two partitions nobody meets anybody. Archival has begun long before the end, and the number
    of files stays far below the number of commits.
    """
    table = world.table(f"long-{kind.lower()}", type=kind, services=SERVICES)
    world.create(table, agent=AGENT, process=agent)
    seed = table.writer(
        "seed",
        python={"batches": [{"rows": [*rows(range(10), "a", "0", 0), *rows(range(10, 20), "b", "0", 0), *QUIET]}]},
    )
    assert seed.wait() == 0, seed.log()[-4000:]
    begin = table.timeline().earliest
    writers = {
        p: table.writer(
            f"writer-{p}",
            retries=0,
            python={"batches": [{"rows": rows(ids, p, str(n), n)} for n in range(1, COMMITS + 1)]},
        )
        for p, ids in (("a", range(10)), ("b", range(10, 20)))
    }
    for writer in writers.values():
        assert writer.wait(SECONDS) == 0, writer.log()[-4000:]
        told = writer.termination()
        assert (told["commits"], told["conflicts"], told["records"]) == (COMMITS, 0, 10 * COMMITS)
    until("old instants are archived", lambda: table.timeline().earliest > begin and table.archived(), alive=agent)
    for service in ("clean", "archive", "clustering", *(["compaction"] if kind == "MergeOnRead" else [])):
        until(
            f"{service} has done something",
            lambda service=service: ran(agent, table, service),
            alive=agent,
            timeout=SECONDS,
        )
    until("nothing is pending", lambda: not table.pending(), alive=agent)
    assert len(table.data_files()) < COMMITS, "old versions of files are cleaned"
    table.audited(
        [*rows(range(10), "a", str(COMMITS), COMMITS), *rows(range(10, 20), "b", str(COMMITS), COMMITS), *QUIET]
    )

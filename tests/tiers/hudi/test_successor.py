"""An attempt whose predecessor died with the lock: it comes up meanwhile, and begins when the lock
is free (F5, F392).
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.harness.local import AGENT, Process, World, rows, until

SECONDS = 4.0
"""In which a driver that does not wait has begun."""


@pytest.mark.extra
def test_a_successor_registers_and_begins_when_the_lock_is_free(world: World, agent: Process) -> None:
    """No code of the user runs before, and it goes on behind the commits of its predecessor."""
    table = world.table("successor")
    world.create(table, agent=AGENT, process=agent)
    after = world.folder / "after-successor"
    reached = Path(f"{after}.reached")
    batches = [
        {"rows": rows(range(5), "a", "before", 1)},
        {"rows": rows(range(5, 10), "a", "behind", 1), "after": str(after)},
    ]
    first = table.writer("heir", python={"batches": batches})
    until("one commit", reached.exists, alive=first)
    first.kill()
    table.fence(first)
    lock = {"inc": first.inc, "attempt": first.name, "podUID": "", "nonce": "x", "sinceMs": 0}
    world.etcd.put(table.key("lock"), lock)
    reached.unlink()
    after.touch()
    second = table.writer("heir", python={"batches": batches})
    until("it waits", lambda: f"waiting until the lock of {first.name} is free" in second.log(), alive=second)
    assert second.inc in table.names("writer/"), "it is registered, and beats"
    time.sleep(SECONDS)
    assert not reached.exists(), "the user's code runs"
    assert not second.protocol("acquire")
    assert not table.names("queue/")
    assert (table.get(f"report/attempt/{second.name}") or {})["stage"] == "Starting"
    world.etcd.delete(table.key("lock"))
    assert second.wait() == 0, second.log()[-4000:]
    assert second.termination()["commits"] == 1
    table.audited([*rows(range(5), "a", "before", 1), *rows(range(5, 10), "a", "behind", 1)])

"""An object of one table's author, as large or as deep as the API server stores it: the other
tables of the operator are served all the same (F628).
"""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest

from tests.support.harness.operator_world import World


def deep(levels: int) -> Any:
    found: Any = []
    for _ in range(levels):
        found = [found]
    return found


@pytest.fixture
def any_depth() -> Any:
    """This process reads what it has sent, too."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(25_000)
    yield
    sys.setrecursionlimit(limit)


@pytest.mark.parametrize("kind", ["wide", "deep"])
@pytest.mark.usefixtures("any_depth")
def test_other_tables_are_served(world: World, kind: str) -> None:
    junk = [[] for _ in range(470_000)] if kind == "wide" else deep(5_000)
    world.table("evil", agent={"podTemplate": {"spec": {"affinity": {"x": junk}}}})
    operator = world.start_operator(leader_election=False)
    began = time.monotonic()
    world.table("after", storage={"options": {"fs.s3a.endpoint": "http://other"}})
    said = {"after": "", "evil": ""}
    while time.monotonic() - began < 60 and not all(said.values()):
        time.sleep(1)
        for name in (name for name, told in said.items() if not told):
            said[name] = str((world.get("huditables", name) or {}).get("status") or "")
            print(f"{kind}: {name} {time.monotonic() - began:.0f}s {bool(said[name])} {operator.get('/healthz')}")
    assert said["after"], "the other table"
    assert "spec.agent.podTemplate.spec.affinity.x: " in said["evil"], said["evil"]
    print([line for line in operator.get("/metrics")[1].splitlines() if "event_loop_lag_seconds" in line])

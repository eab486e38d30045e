"""One etcd and one agent for the whole tier: a JVM start costs seconds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness.local import AGENT, Process, World
from tests.support.trace import ended
from tests.support.trace.ended import pytest_runtest_makereport as pytest_runtest_makereport


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("hudi"))
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="session")
def agent(world: World) -> Process:
    return world.agent(AGENT)


@pytest.fixture(autouse=True)
def conform(request: pytest.FixtureRequest) -> Iterator[None]:
    """What the JVMs and agents say that they did with this test's tables is what the protocol
    allows, to its end (the test has played the operator). Then agents leave these tables, and what
    the test has started ends; what a module or the session has started goes on.
    """
    if "world" not in request.fixturenames:
        yield
        return
    world: World = request.getfixturevalue("world")
    tables, processes = set(world.tables), world.processes()
    yield
    try:
        world.conform(tables, complete=ended.complete(request.node))
    finally:
        world.leave(tables, processes)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Several JVMs share the machine: the bounds of the waits inside a test (`processes.TIMEOUT`)
    are what tells a failure.
    """
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(900))

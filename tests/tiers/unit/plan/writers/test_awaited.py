"""Which waits end with an event: every reason was thought of, and a table whose writers wait for
events alone is not looked at.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_contract.words import WriterState
from hudi_operator.control.loop import QUIET_SECONDS, is_quiet
from hudi_operator.model import conditions
from hudi_operator.plan import writers
from hudi_operator.plan.core import launch
from hudi_operator.plan.writers import admission, awaited
from tests.support.world.simulated_world import World, finished
from tests.support.world.watched_world import Hears, Watched, at_once, never

RESYNC_SECONDS = 260
_FIRST = {"Block": 0, "table_blocks": 0, "_stalled": 0}
"""Calls with a reason, and which argument it is."""
_DECIDED = {"WAIT", "STALLED"}
_NAMES = {**vars(launch), **vars(admission)}


def _reasons(tree: ast.AST) -> Iterator[str | None]:
    """Reasons with which code makes a writer wait; None: one that is computed."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        if name == "Decision" and getattr(call.args[0], "attr", "") in _DECIDED:
            reason = call.args[1]
        elif name in _FIRST and call.args:
            reason = call.args[_FIRST[name]]
        else:
            continue
        if isinstance(reason, ast.Constant):
            yield str(reason.value)
        else:
            yield _NAMES.get(getattr(reason, "id", getattr(reason, "attr", "")))


def _known() -> list[str | None]:
    folder = Path(writers.__file__).parent
    return [reason for path in sorted(folder.glob("*.py")) for reason in _reasons(ast.parse(path.read_text()))]


def test_every_reason_was_thought_of() -> None:
    """One that is new joins a list, with what ends it."""
    found = _known()
    assert {reason for reason in found if reason} == awaited.EVENTS.keys() | awaited.POLLED.keys()
    assert not awaited.EVENTS.keys() & awaited.POLLED.keys()
    # What an agent reports, the reason that table_blocks and _stalled hand on, and that of a block.
    assert found.count(None) == 4


def status(state: WriterState, reason: str, **more: Any) -> dict[str, Any]:
    kind = "Stalled" if state is WriterState.STALLED else "Admitted"
    return {"state": state.value, "conditions": [{"type": kind, "status": "True", "reason": reason}], **more}


@pytest.mark.parametrize("reason", sorted({*awaited.EVENTS, *awaited.POLLED, "StorageUnreachable"}))
def test_what_does_not_come_as_an_event_is_looked_for(reason: str) -> None:
    for state in (WriterState.WAITING, WriterState.RETRYING, WriterState.STALLED):
        assert awaited.waits(status(state, reason))
        assert awaited.comes_as_event(status(state, reason)) is (reason in awaited.EVENTS)
        assert not awaited.comes_as_event(status(state, reason, attempts=[{"number": 1}])), "an attempt goes on"


def waiting(hears: Hears) -> tuple[World, Watched]:
    """A table whose one place is taken, and a writer that waits for it."""
    world = World()
    world.make_table(concurrency={"maxWriters": 1})
    made = Watched(world, hears)
    world.writer_hang_at = 1
    world.make_writer("first")
    made.run(lambda w: w.is_true(w.writers["first"], "Running"))
    world.make_writer("second")
    made.run(lambda w: (w.writers["second"].get("status") or {}).get("state") == "Waiting")
    for _ in range(500):  # until looks have become rare
        made.second()
    return world, made


@pytest.mark.parametrize(
    ("hears", "seconds"), [pytest.param(at_once, 10, id="all events"), pytest.param(never, RESYNC_SECONDS, id="frozen")]
)
def test_a_writer_that_waits_for_a_place_is_not_looked_at_until_it_is_free(hears: Hears, seconds: int) -> None:
    """It was, every 15 s, for as long as the other one ran."""
    world, made = waiting(hears)
    live = made.observer.live
    for _ in range(600):
        made.second()
    assert made.observer.live - live <= 600 / QUIET_SECONDS + 1
    process = world.writer_process("first")
    assert process is not None
    world.writer_hang_at = process.hang_at = None
    made.run(finished("first"), seconds=RESYNC_SECONDS)
    made.run(lambda w: any(name.startswith("second-") for name in w.created), seconds=seconds)
    made.run(finished("second"), seconds=2 * RESYNC_SECONDS)


def test_a_retry_that_is_far_away_is_waited_for() -> None:
    """A time within the next quiet interval is looked for."""
    world = World()
    world.make_table()
    world.exit_codes = [11]
    world.make_writer("w", retryPolicy={"limit": 3, "backoffSeconds": 900, "maxBackoffSeconds": 900})
    world.run(lambda w: (w.writers["w"].get("status") or {}).get("state") == "Retrying" and not w.names("settle"))
    for _ in range(30):
        world.reconcile()
        world.tick()
    assert is_quiet(world.observe())
    retry = conditions.from_rfc3339(world.writers["w"]["status"]["nextRetryTime"])
    assert retry is not None
    world.now += (retry - world.now_ms) / 1000 - QUIET_SECONDS + 1
    assert not is_quiet(world.observe())


def test_every_writer_of_the_table_has_to_rest() -> None:
    world, made = waiting(at_once)
    assert is_quiet(world.observe())
    world.writers["second"]["status"] = status(WriterState.WAITING, "TableNotReady")
    assert not is_quiet(world.observe())
    assert made.world is world

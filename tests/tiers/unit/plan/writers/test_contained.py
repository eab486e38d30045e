"""F515: what cannot be read or decided of one writer stops this one, and its status says so."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_operator.api.spec import TableSpec, WriterSpec
from hudi_operator.plan.writers import attempts, overlaps, schedules, source_tables, writer_status
from tests.support.world.simulated_world import at_step, finished, ready_world


class Defect(Exception):
    """What nobody expects."""


def of_odd(value: Any) -> bool:
    """Whether a call is about the writer of that name."""
    spec = getattr(value, "spec", value)
    return isinstance(spec, WriterSpec) and spec.ref.name == "odd"


def defect(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
    whole = getattr(module, name)

    def broken(*args: Any, **kwargs: Any) -> Any:
        if any(map(of_odd, args)):
            raise Defect("unhashable type: 'list'")
        return whole(*args, **kwargs)

    monkeypatch.setattr(module, name, broken)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (source_tables, "problem"),
        (schedules, "problem"),
        (schedules, "status_of"),
        (overlaps, "waiting_since_ms"),
        (source_tables, "waits_for"),
        (attempts, "start_actions"),
        (writer_status, "writer_status"),
    ],
    ids=lambda each: getattr(each, "__name__", each).rpartition(".")[2],
)
def test_a_defect_stops_one_writer(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> None:
    defect(monkeypatch, module, name)
    world = ready_world(concurrency={"maxWriters": 1})
    world.make_writer("odd", priority=5)
    world.make_writer("other")
    world.run(finished("other"))
    odd = world.writers["odd"]
    told = world.condition(odd, "Stalled")
    assert (told["status"], told["reason"]) == ("True", "PlanningFailed")
    assert "unhashable type" in told["message"]
    assert odd["status"]["state"] == "Stalled"
    assert not odd["status"].get("attempts"), "it took no place"
    assert world.table is not None
    readable = world.condition(world.table, "RecordsReadable")
    assert readable["reason"] == "PlanningFailed"
    assert "odd" in readable["message"]
    monkeypatch.undo()
    world.run(finished("odd"))
    assert not world.is_true(odd, "Stalled")


def test_a_running_attempt_stays_in_a_status_that_cannot_be_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    world = ready_world()
    world.writer_hang_at = 1
    world.make_writer("odd")
    world.run(at_step("odd", 1))
    world.run(lambda w: w.is_true(w.writers["odd"], "Running"))
    before = world.writers["odd"]["status"]
    defect(monkeypatch, writer_status, "writer_status")
    world.run(lambda w: w.is_true(w.writers["odd"], "Stalled"))
    after = world.writers["odd"]["status"]
    assert (after["state"], after["attempts"]) == ("Running", before["attempts"])
    assert world.is_true(world.writers["odd"], "Running")


def test_a_defect_of_the_reader_is_a_spec_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    parse = WriterSpec.from_object

    def broken(obj: dict[str, Any]) -> Any:
        if obj["metadata"]["name"] == "odd" and "source" in obj["spec"]:
            raise Defect("unhashable type: 'list'")
        return parse(obj)

    monkeypatch.setattr(WriterSpec, "from_object", staticmethod(broken))
    world = ready_world()
    world.make_writer("odd")
    world.make_writer("other")
    world.run(finished("other"))
    told = world.condition(world.writers["odd"], "Stalled")
    assert (told["reason"], told["message"]) == ("InvalidSpec", "Defect: unhashable type: 'list'")


def test_a_defect_of_the_reader_keeps_nobody_from_being_fenced(monkeypatch: pytest.MonkeyPatch) -> None:
    world = ready_world()
    world.writer_hang_at = 1
    world.make_writer("a")
    world.run(at_step("a", 1))
    victim = world.writer_process("a")
    assert victim is not None
    parse = TableSpec.from_object

    def broken(obj: dict[str, Any]) -> Any:
        if obj["spec"]["recordKeyFields"] == ["id"]:
            raise Defect("unhashable type: 'list'")
        return parse(obj)

    monkeypatch.setattr(TableSpec, "from_object", staticmethod(broken))
    world.kill(victim)
    world.run(lambda w: f"settle/{victim.inc}" in w.kv)

"""A trial of a path: what it asks of the store, and what it says (F617)."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_contract import naming
from hudi_contract.assignment import AssignmentRecord, TrialRecord
from hudi_contract.outcomes import FailureClass
from hudi_contract.shape import ShapeError
from hudi_runtime.agent import trial as module
from hudi_runtime.agent import trouble
from hudi_runtime.agent.agent import Agent
from hudi_runtime.agent.trial import FOLDER, Trial
from hudi_runtime.process.errors import RuntimeFailure

ID = naming.trial_id("uid-1")
ORDER = TrialRecord(id=ID, path="s3a://lake/flights", table="lake/flights", trial=True).to_json()
REPORT = f"/hudi/tables/{ID}/report/timeline"
NO_SPARK: Any = None


class Keys:
    """etcd: what was put, by key."""

    prefix = "/hudi"

    def __init__(self) -> None:
        self.put_there: dict[str, dict[str, Any]] = {}

    def put(self, key: str, value: dict[str, Any]) -> int:
        self.put_there[key] = value
        return 1


class Files:
    """A store: the files that it has, and what it refuses."""

    def __init__(self, *names: str) -> None:
        self.names, self.calls, self.refuses = set(names), list[str](), set[str]()
        self.settings: dict[str, str] = {}

    def _do(self, what: str, name: str) -> None:
        self.calls.append(f"{what} {name}")
        if what in self.refuses:
            raise RuntimeFailure(FailureClass.STORAGE_UNREACHABLE, f"{what}: denied")

    def exists(self, name: str) -> bool:
        self._do("look", name)
        return name in self.names

    def read(self, name: str) -> str:
        self._do("read", name)
        return ""

    def write(self, name: str, text: str) -> None:
        self._do("write", name)
        self.names.add(name)

    def delete(self, name: str, *, recursive: bool) -> bool:
        self._do("delete", name)
        self.names = {each for each in self.names if not each.startswith(name)}
        return True

    def close(self) -> None:
        self.calls.append("close")


class World:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
        self.files, self.etcd, self.now = Files(*names), Keys(), 100.0
        monkeypatch.setenv("POD_NAMESPACE", "lake")
        monkeypatch.setenv("POD_NAME", "hudi-agent-1")

        def storage(spark: Any, path: str, settings: dict[str, str]) -> Files:
            assert path == "s3a://lake/flights"
            assert settings["fs.s3a.retry.limit"] == "1"
            return self.files

        monkeypatch.setattr(module, "Storage", storage)
        monkeypatch.setattr(trouble.time, "monotonic", lambda: self.now)
        etcd: Any = self.etcd
        self.trial = Trial(NO_SPARK, ORDER, etcd=etcd)

    def step(self, seconds: float = 100.0) -> dict[str, Any]:
        self.now += seconds
        self.files.calls.clear()
        self.trial.step()
        assert set(self.etcd.put_there) <= {REPORT}, "it writes nothing but its report"
        return self.etcd.put_there.get(REPORT, {})


def did(world: World) -> list[str]:
    """The calls; the name of the file is random."""
    return [f"{call.partition(FOLDER)[0]}{FOLDER}" if FOLDER in call else call for call in world.files.calls]


def test_a_table_is_read_and_its_folder_may_be_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch, ".hoodie/hoodie.properties")
    told = world.step()
    assert did(world) == [
        "look .hoodie/hoodie.properties",
        "read .hoodie/hoodie.properties",
        f"write {FOLDER}",
        f"delete {FOLDER}",
        "close",
    ]
    assert world.files.names == {".hoodie/hoodie.properties"}
    assert (told["exists"], told["agentInc"]) == (True, "lake.hudi-agent-1")
    assert "error" not in told
    assert world.step() == {**told, "atMs": world.etcd.put_there[REPORT]["atMs"]}
    assert not world.files.calls, "it is asked once"


def test_where_there_is_no_table_a_file_is_created_and_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(monkeypatch)
    told = world.step()
    assert told["exists"] is True
    assert [call for call in did(world) if not call.startswith("look")] == [
        f"write {FOLDER}",
        f"delete {FOLDER}",
        "close",
    ]
    assert not world.files.names


@pytest.mark.parametrize(
    ("there", "refused"), [(True, "look"), (True, "read"), (True, "write"), (False, "write"), (False, "delete")]
)
def test_what_the_store_refuses_is_no_reach(monkeypatch: pytest.MonkeyPatch, there: bool, refused: str) -> None:
    world = World(monkeypatch, *([".hoodie/hoodie.properties"] if there else []))
    world.files.refuses = {refused}
    told = world.step()
    assert told["exists"] is False
    assert told["error"] == {"code": "StorageUnreachable", "message": f"{refused}: denied"}
    assert not world.trial.reachable
    assert world.step(1.0) is told, "it waits before it tries again"
    assert not world.files.calls
    world.files.refuses = set()
    assert world.step()["exists"] is True


def test_it_has_nothing_that_the_operator_would_have_to_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = World(monkeypatch).trial
    trial.retire(gone=True)
    trial.cease()
    trial.cancel_service()
    assert trial.idle
    assert trial.close()
    assert [trial.must_end, trial.fenced, bool(trial.clock_refused), trial.fence_stands()] == [False] * 4


def test_an_agent_takes_the_order_of_a_trial_for_one() -> None:
    agent = Agent.__new__(Agent)
    agent._name, agent._assignments, agent._unread = "hudi-agent", {}, {}
    agent._spark, agent._etcd, agent._slot = NO_SPARK, Keys(), SimpleNamespace()  # type: ignore[assignment]
    agent._handing_over = threading.Event()
    assert agent._take(ID, ORDER)
    assert isinstance(agent._assignments[ID], Trial)


def test_an_agent_of_an_earlier_release_refuses_the_order() -> None:
    """It would take it for a table's, and create that table without a gate."""
    with pytest.raises(ShapeError):
        AssignmentRecord.from_json(ORDER)

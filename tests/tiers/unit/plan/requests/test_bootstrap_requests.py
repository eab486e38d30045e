"""Bootstrap (R14, R15): the agent alone behind the gate that was never open, resumed whoever dies
in it, writers wait for it.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from hudi_operator.api import bootstrap as model
from hudi_operator.api.fields import SpecError, read
from hudi_operator.api.spec import TableSpec
from hudi_operator.model.config import OperatorConfig
from hudi_operator.plan.gate.stalled import static_stall
from tests.support.world.simulated_world import NAMESPACE, World, finished

SOURCE = "s3a://lake/plain/flights"
BOOTSTRAP = {"source": {"path": SOURCE, "format": "Parquet"}, "mode": "FullRecord"}


def beginning(**spec: Any) -> World:
    world = World()
    world.make_table(**{"bootstrap": BOOTSTRAP, **spec})
    return world


def shown(world: World) -> dict[str, Any]:
    return dict((world.table or {}).get("status", {}).get("bootstrap") or {})


def bootstrapped(world: World) -> bool:
    return world.is_true(world.table, "Bootstrapped")


def look(world: World, seconds: int = 30) -> None:
    for _ in range(seconds):
        world.reconcile()
        world.tick()


def test_writers_wait_until_the_table_has_begun() -> None:
    world = beginning()
    world.bootstrap_hang_at = 3
    world.make_writer("eager")
    look(world)
    assert world.kv["gate"].value["state"] == "closed"
    assert world.kv["assignment"].value["adoption"] == "Bootstrap"
    admitted = world.condition(world.writers["eager"], "Admitted")
    assert (admitted["status"], admitted["reason"]) == ("False", "TableBootstrap")
    assert admitted["message"] == f"HudiTable flights is not bootstrapped yet: the agent writes the rows of {SOURCE}"
    assert world.condition(world.table, "Ready")["reason"] == "Bootstrapping"
    assert (
        world.condition(world.table, "Bootstrapped")["status"],
        world.condition(world.table, "Bootstrapped")["reason"],
    ) == ("False", "Running")
    assert not any(name.startswith("eager") for name in world.created)
    world.bootstrap_hang_at = None
    world.run(bootstrapped)
    assert (shown(world)["outcome"], shown(world)["instant"], shown(world)["records"]) == (
        "Completed",
        world.bootstrapped[0],
        7,
    )
    assert shown(world)["beginTime"] <= shown(world)["endTime"]
    world.run(finished("eager"))
    assert "request/bootstrap" not in world.kv, "the request goes when it is done"
    text = f"{SOURCE} is in commit {world.bootstrapped[0]}: 7 records in 2 files, 100 bytes"
    assert [e.message for e in world.events if e.reason == "Bootstrapped"] == [text]
    world.settle_down()


@pytest.mark.parametrize("step", range(1, 7))
def test_an_agent_that_dies_in_it_is_settled_and_the_next_one_goes_on(step: int) -> None:
    """R15, I6: rolled back like any other instant, or found by its commit.

    Never written twice (asserted in the world).
    """
    world = beginning()
    world.bootstrap_hang_at = step
    world.make_writer("later")
    world.run(
        lambda w: (
            ((p := w.agent_process()) is not None and p.step >= step)
            or bool(w.bootstrapped and "done/bootstrap" in w.kv and bootstrapped(w))
        )
    )
    process = world.agent_process()
    assert process is not None
    world.kill(process)
    world.bootstrap_hang_at = None
    world.run(lambda w: bootstrapped(w) and finished("later")(w))
    assert len(world.bootstrapped) == 1
    if step == 3:
        assert process.instant in world.rolled_back, "it was recorded, and never completed"
    if step > 3:
        assert world.bootstrapped == [process.instant]


@pytest.mark.parametrize("every", [2, 3, 5])
def test_the_operator_may_die_in_it_anywhere(every: int) -> None:
    world = beginning()
    world.make_writer("later")
    world.run(lambda w: bootstrapped(w) and finished("later")(w), crash_every=every)
    assert len(world.bootstrapped) == 1


def test_a_dataset_that_cannot_be_read_is_named_and_tried_again() -> None:
    world = beginning()
    world.bootstrap_error = f"{SOURCE}: 3 keys occur in more than one row"
    world.make_writer("later")
    world.run(lambda w: shown(w).get("outcome") == "Failed")
    assert world.condition(world.table, "Bootstrapped")["reason"] == "SourceInvalid"
    assert world.bootstrap_error in world.condition(world.table, "Bootstrapped")["message"]
    look(world)
    assert world.bootstrap_error in world.condition(world.writers["later"], "Admitted")["message"]
    assert world.kv["gate"].value["state"] == "closed"
    assert {e.message for e in world.events if e.reason == "BootstrapFailed"} == {f"{SOURCE}: {world.bootstrap_error}"}
    world.bootstrap_error = ""
    world.run(finished("later"))


def test_a_suspended_table_does_not_begin_and_does_not_open_either() -> None:
    world = beginning(suspend=True)
    look(world)
    assert "request/bootstrap" not in world.kv
    assert world.kv["gate"].value["state"] == "closed"
    assert "the table is suspended" in world.condition(world.table, "Bootstrapped")["message"]
    assert world.table is not None
    world.edit(world.table, suspend=False)
    world.run(bootstrapped)


def test_nothing_begins_when_the_agent_finds_a_table_of_somebody_else() -> None:
    world = beginning()
    world.table_error = {"code": "TableExists", "message": "spec.bootstrap is set, and there is a Hudi table"}
    look(world)
    assert world.condition(world.table, "Stalled")["reason"] == "TableExists"
    assert "request/bootstrap" not in world.kv


def test_a_record_of_an_earlier_huditable_does_not_count() -> None:
    world = beginning()
    world.put("done/bootstrap", {"tableUID": "somebody-else", "result": "Completed", "instant": "20260101000000000"})
    world.bootstrap_hang_at = 0
    look(world)
    assert not bootstrapped(world)
    assert world.kv["gate"].value["state"] == "closed"


def test_what_was_open_once_never_begins_again() -> None:
    """R14: writers have come; a record that was lost is no reason to write beside them."""
    world = beginning()
    world.run(lambda w: w.is_true(w.table, "Ready"))
    world.drop("done/bootstrap")
    assert world.table is not None
    world.edit(world.table, lock={"leaseSeconds": 20})  # the gate is closed for a moment
    world.run(lambda w: w.kv["gate"].value["lock"]["leaseSeconds"] == 20 and w.is_true(w.table, "Ready"))
    assert len(world.bootstrapped) == 1


def test_a_table_without_it_says_so() -> None:
    world = World()
    world.make_table()
    world.run(lambda w: w.is_true(w.table, "Ready"))
    assert world.condition(world.table, "Bootstrapped")["reason"] == "NotRequested"
    assert world.is_true(world.table, "Bootstrapped")
    assert not shown(world)
    assert not [e for e in world.events if e.reason == "Bootstrapped"]


REFUSED = [
    (
        {"source": {"path": "s3a://lake/flights/raw", "format": "Parquet"}},
        "spec.bootstrap.source.path: s3a://lake/flights/raw lies in the table",
    ),
    (
        {"source": {"path": "s3://lake/flights//", "format": "Parquet"}},
        "spec.bootstrap.source.path: s3://lake/flights// lies in the table",
    ),
    ({"source": {"path": "s3a://lake", "format": "Parquet"}}, "the table s3a://lake/flights lies in s3a://lake"),
    ({"source": {"path": "gs://lake/plain", "format": "Parquet"}}, "another scheme than s3a://lake/flights"),
    (
        {"source": {"path": "s3a://lake/../x", "format": "Parquet"}},
        "spec.bootstrap.source.path: 's3a://lake/../x' must not contain '.' or '..'",
    ),
    (
        {"source": {"path": "s3a://lake/x", "format": "ORC"}},
        "spec.bootstrap.source.format: 'ORC' must be one of Parquet",
    ),
    (
        {"source": {"path": SOURCE, "format": "Parquet"}, "mode": "MetadataOnly"},
        "spec.bootstrap.mode: MetadataOnly is not offered",
    ),
]


def stall(config: OperatorConfig, **spec: Any) -> str:
    metadata = {"namespace": NAMESPACE, "name": "flights", "uid": "u", "generation": 1, "resourceVersion": "1"}
    made = {"metadata": metadata, "spec": {"path": "s3a://lake/flights", "recordKeyFields": ["id"], **spec}}
    try:
        found = static_stall(TableSpec.from_object(made), config)
    except SpecError as error:
        return f"InvalidSpec: {error}"
    return f"{found.reason}: {found.message}" if found is not None else ""


@pytest.mark.parametrize(("bootstrap", "words"), REFUSED)
def test_what_cannot_be_is_refused_by_name_and_value(bootstrap: dict[str, Any], words: str) -> None:
    """The API server refuses most of it; an object may have been stored under an older CRD."""
    assert words in stall(OperatorConfig(), bootstrap=bootstrap)


def test_a_dataset_may_be_a_neighbour_whose_name_begins_like_the_tables() -> None:
    assert stall(OperatorConfig(), bootstrap={"source": {"path": "s3://lake/flights-plain", "format": "Parquet"}}) == ""


def test_the_dataset_is_below_a_prefix_that_the_namespace_may_use() -> None:
    config = OperatorConfig(path_prefixes={NAMESPACE: ("s3a://lake/flights", "s3a://lake/open")})
    assert "spec.bootstrap.source.path: not below a prefix" in stall(config, bootstrap=BOOTSTRAP)
    assert stall(config, bootstrap={"source": {"path": "s3a://lake/open/x", "format": "Parquet"}}) == ""


def test_an_adopted_table_is_not_begun() -> None:
    assert "Adopt contradicts spec.bootstrap" in stall(
        OperatorConfig(), bootstrap=BOOTSTRAP, adoption={"policy": "Adopt"}
    )


def test_defaults() -> None:
    assert TableSpec.from_object({"spec": {"path": "s3a://lake/t", "recordKeyFields": ["id"]}}).bootstrap is None
    assert read(
        model.Bootstrap, {"source": {"path": SOURCE, "format": "Parquet"}}, "spec.bootstrap"
    ) == model.Bootstrap(SOURCE)


def test_writers_that_read_the_table_wait_too() -> None:
    world = World()
    world.make_table()
    source = copy.deepcopy(world.table)
    assert source is not None
    source["metadata"]["name"] = "raw"
    source["spec"]["path"] = "s3a://lake/raw"
    conditions = [{"type": "Bootstrapped", "status": "False", "reason": "Running", "message": ""}]
    source["status"] = {"timeline": {"pendingCount": 0}, "conditions": conditions}
    world.sources["raw"] = source
    world.make_writer("chain", source={"hudi": {"tableRef": {"name": "raw"}}})
    look(world)
    assert world.condition(world.writers["chain"], "Admitted")["reason"] == "SourceNotReady"
    conditions[0]["status"] = "True"
    world.run(finished("chain"))


def test_the_example_begins_a_table() -> None:
    spec = yaml.safe_load((Path(__file__).resolve().parents[5] / "examples" / "bootstrap" / "table.yaml").read_text())[
        "spec"
    ]
    world = World()
    world.make_table(**spec)
    world.run(bootstrapped)
    assert world.condition(world.table, "Stalled")["status"] == "False"

"""Every example is run as far as it goes without a cluster: planned by the operator, and read by
the agent's and the writers' own code.

That the API accepts it as it stands is a test of the component tier; the flights of the demo are
run whole by `make demo`.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from hudi_contract import naming
from hudi_contract.assignment import AssignmentRecord
from hudi_operator.api.spec import TableSpec as OperatorTable
from hudi_operator.api.spec import WriterSpec
from hudi_operator.model.config import CredentialsBrokerConfig, OperatorConfig
from hudi_runtime.job.job import HudiSource, PythonSource, SqlSource, TableSpec
from hudi_runtime.job.options import check_allowed
from hudi_runtime.services import triggers
from tests.support import quick_yaml
from tests.support.world import simulated_world
from tests.support.world.job_across import parsed
from tests.support.world.meeting import Meeting

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"
META = {"namespace": "lake", "uid": "0a1b2c3d-uid", "generation": 1, "resourceVersion": "1"}


def objects(kind: str) -> list[Any]:
    found = []
    for path in sorted(EXAMPLES.rglob("*.yaml")):
        for number, one in enumerate(quick_yaml.load_all(path.read_text())):
            if one and one["kind"] == kind:
                found.append(
                    pytest.param(path, one, id=f"{path.relative_to(EXAMPLES)}-{one['metadata']['name']}-{number}")
                )
    return found


def of(one: dict[str, Any]) -> dict[str, Any]:
    return {**one, "metadata": {**META, "name": one["metadata"]["name"]}}


@pytest.mark.parametrize(("path", "one"), objects("HudiTable"))
def test_a_table(path: Path, one: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is planned without a complaint, and the agent reads in its assignment what
    the object says.
    """
    if one["spec"].get("fencing", {}).get("mode") == "Credentials":
        store = one["spec"]["storage"]["options"]["fs.s3a.endpoint"]
        broker = CredentialsBrokerConfig(url="https://broker:8443", store_endpoint=store)
        monkeypatch.setattr(simulated_world, "CONFIG", OperatorConfig(credentials_broker=broker))
    world = Meeting()
    world.make_table(**one["spec"])
    world.run(lambda w: "assignment" in w.kv)
    assert world.condition(world.table, "Stalled")["status"] != "True", world.condition(world.table, "Stalled")
    spec, told = OperatorTable.from_object(of(one)), TableSpec.of(AssignmentRecord.from_json(world.assignment()))
    assert (told.path, told.record_keys, told.partitions) == (
        spec.canonical_path,
        spec.record_key_fields,
        spec.partition_fields,
    )
    running = triggers.orders(AssignmentRecord.from_json(world.assignment()).services)
    assert {kind.value for kind in running} == {service.kind for service in spec.services}


def table_of(path: Path, writer: dict[str, Any]) -> OperatorTable:
    """The HudiTable that a writer of an example names: of its own folder, else of any."""
    name = writer["spec"]["tableRef"]["name"]
    every = [param.values for param in objects("HudiTable")]
    found = [one for place, one in every if one["metadata"]["name"] == name and place.parent == path.parent]
    found += [one for _, one in every if one["metadata"]["name"] == name]
    assert found, f"{path}: no example has a HudiTable {name}"
    return OperatorTable.from_object(of(found[0]))


def code_of(path: Path, name: str, key: str) -> str:
    """Code of a ConfigMap in the same folder."""
    for place in sorted(path.parent.glob("*.yaml")):
        for one in quick_yaml.load_all(place.read_text()):
            if one and one["kind"] == "ConfigMap" and one["metadata"]["name"] == name:
                return str(one["data"][key])
    raise AssertionError(f"{path}: no ConfigMap {name} beside it")


@pytest.mark.parametrize(("path", "one"), objects("HudiWriter"))
def test_a_writer(path: Path, one: dict[str, Any]) -> None:
    """Its job is one that the runtime reads.

    Its options are allowed, its code can be read and has the function that is named.
    """
    spec = WriterSpec.from_object(of(one))
    table = table_of(path, one)
    if spec.hudi is not None:
        spec = dataclasses.replace(spec, hudi=dataclasses.replace(spec.hudi, path="s3a://lake/source"))
    if spec.sql is not None:
        views = tuple(
            view if view.files is not None else dataclasses.replace(view, path=f"s3a://lake/{view.name}")
            for view in spec.sql.views
        )
        spec = dataclasses.replace(spec, sql=dataclasses.replace(spec.sql, views=views))
    job = parsed(table, spec)
    check_allowed(job.options)
    assert (job.table.path, job.writer) == (table.canonical_path, spec.ref.key)
    assert (job.source is None) == (
        spec.application is not None or spec.operation in ("DeletePartition", "RemoveDuplicates")
    )
    assert len(job.partitions) == len(spec.partitions)
    if isinstance(job.source, PythonSource):
        python = one["spec"]["source"]["python"]
        tree = ast.parse(code_of(path, python["configMapKeyRef"]["name"], python["configMapKeyRef"]["key"]))
        assert job.source.function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    if isinstance(job.source, SqlSource):
        assert all(view.path or view.files for view in job.source.views)
    if isinstance(job.source, HudiSource):
        assert job.source.path == "s3a://lake/source"


def test_the_advised_policy_is_for_drivers_only() -> None:
    """F558: executors must not have the class that the policy asks for."""
    text = (EXAMPLES / "places" / "README.md").read_text()
    ((key, value),) = re.findall(r"for\s+pods\s+with\s+the\s+label\s+`([^`]+): ([^`]+)`", text)
    driver = naming.driver_labels(table="visits", writer="visits", number=1, driver_pod="visits-1")
    executor = naming.executor_labels(table="visits", writer="visits", number=1, driver_pod="visits-1")
    assert (driver[key], executor[key]) == (value, "executor")
    assert value != "executor"


def test_there_are_examples() -> None:
    assert len(objects("HudiTable")) > 10
    assert len(objects("HudiWriter")) > 10

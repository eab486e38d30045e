"""Mode Credentials: who mounts which credentials, and which tables may have the mode."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from hudi_contract import naming
from hudi_operator.api import references, revocable
from hudi_operator.api.spec import TableSpec, WriterSpec
from hudi_operator.manifests import configmaps, pods
from hudi_operator.model.config import ConsentConfig, CredentialsBrokerConfig, OperatorConfig
from tests.support.world import simulated_world
from tests.support.world.simulated_world import World

ENDPOINT = "http://s3:9000"
BROKER = CredentialsBrokerConfig(url="https://broker:8443", store_endpoint=ENDPOINT)
CONFIG = OperatorConfig(credentials_broker=BROKER)
STORAGE: dict[str, Any] = {
    "secretRefs": [{"name": "of-the-agent", "as": "S3"}],
    "options": {"fs.s3a.endpoint": ENDPOINT},
}


def table(mode: str = "Credentials", path: str = "s3a://lake/flights", **storage: Any) -> TableSpec:
    body = {
        "path": path,
        "recordKeyFields": ["id"],
        "fencing": {"mode": mode},
        "storage": {**STORAGE, **storage},
    }
    meta = {"namespace": "ns", "name": "flights", "uid": "t-uid"}
    return TableSpec.from_object({"kind": "HudiTable", "metadata": meta, "spec": body})


def writer() -> WriterSpec:
    body = {
        "tableRef": {"name": "flights"},
        "source": {"files": {"format": "csv", "paths": ["s3a://in/"]}},
        "executors": {"instances": 2},
    }
    meta = {"namespace": "ns", "name": "load", "uid": "0123456789"}
    return WriterSpec.from_object({"kind": "HudiWriter", "metadata": meta, "spec": body})


def secrets(pod: dict[str, Any]) -> dict[str, bool]:
    """Secrets that a pod mounts, and whether it starts without them."""
    return {
        v["secret"]["secretName"]: bool(v["secret"].get("optional")) for v in pod["spec"]["volumes"] if "secret" in v
    }


def test_driver_and_executors_have_their_own_and_the_agent_the_tables() -> None:
    driver = pods.driver_pod(table(), writer(), 3, CONFIG)
    name = driver["metadata"]["name"]
    own = {naming.storage_key_name(name): False, naming.spark_key_name(name): False}
    assert secrets(driver) == own
    assert secrets(yaml.safe_load(pods.executor_template(table(), writer(), 3, CONFIG))) == own
    assert secrets(pods.agent_pod(table(), "hudi-agent-0", 1, CONFIG)) == {"of-the-agent": True}
    allowed = configmaps.attempt_config(table(), writer(), 3, CONFIG, run=1)["data"]["executor-secrets"].split(",")
    assert sorted(allowed) == sorted(own)
    others = pods.driver_pod(table("PodTermination"), writer(), 3, CONFIG)
    assert "of-the-agent" in secrets(others)
    assert naming.storage_key_name(name) not in secrets(others)


def test_both_are_found_where_the_client_looks() -> None:
    places = []
    for pod in (pods.driver_pod(table(), writer(), 3, CONFIG), pods.agent_pod(table(), "hudi-agent-0", 1, CONFIG)):
        (container,) = pod["spec"]["containers"]
        (folder,) = [e["value"] for e in container["env"] if e["name"] == "HUDI_OPERATOR_S3_CREDENTIALS"]
        (mount,) = [m for m in container["volumeMounts"] if m["mountPath"] == folder]
        assert "subPath" not in mount
        places.append(folder)
    assert places[0] == places[1]


NOT_POSSIBLE: dict[str, tuple[TableSpec, str]] = {
    "elsewhere": (table(path="gs://lake/flights"), "spec.path must begin with s3a://"),
    "an account": (table(serviceAccountName="irsa"), "spec.storage.serviceAccountName"),
    "no agent": (table(secretRefs=[]), "must be one Secret as S3"),
    "files": (table(secretRefs=[*STORAGE["secretRefs"], {"name": "f", "as": "Files"}]), "must be one Secret as S3"),
    "a provider": (
        table(options={**STORAGE["options"], "fs.s3a.aws.credentials.provider": "x"}),
        "fs.s3a.aws.credentials.provider would give writers",
    ),
    "a bucket": (
        table(options={**STORAGE["options"], "Fs.S3a.Bucket.lake.endpoint": "http://other"}),
        "Fs.S3a.Bucket.lake.endpoint would give writers",
    ),
    "another store": (table(options={"fs.s3a.endpoint": "http://other:9000"}), "http://other:9000 must be"),
    "any store": (table(options={}), "is unset and must be http://s3:9000"),
}


@pytest.mark.parametrize(("of", "told"), NOT_POSSIBLE.values(), ids=NOT_POSSIBLE.keys())
def test_a_table_whose_writers_would_have_another_access(of: TableSpec, told: str) -> None:
    """Asked again at each launch: an object may be older than a rule."""
    assert told in revocable.problem(of, ENDPOINT)
    assert revocable.problem(table(), ENDPOINT) == ""
    assert revocable.problem(table("PodTermination", serviceAccountName="irsa"), "") == ""


def test_no_table_names_the_secret_of_an_attempt() -> None:
    named = table("PodTermination", secretRefs=[{"name": "load-1-storage-key", "as": "S3"}])
    assert "are reserved for Secrets of the operator" in references.problem(
        references.of_table(named), {}, named, ConsentConfig().by_kind
    )


@pytest.mark.parametrize("broker", [CredentialsBrokerConfig(), BROKER], ids=["none", "given"])
def test_nothing_starts_without_a_broker(monkeypatch: pytest.MonkeyPatch, broker: CredentialsBrokerConfig) -> None:
    monkeypatch.setattr(simulated_world, "CONFIG", OperatorConfig(credentials_broker=broker))
    world = World()
    world.make_table(path="s3a://lake/flights", fencing={"mode": "Credentials"}, storage=STORAGE)
    for _ in range(6):
        world.reconcile()
        world.tick()
    found = world.condition(world.table, "Stalled")
    if broker.given:
        assert found["status"] == "False", found
        assert world.pods
        assert world.condition(world.table, "BrokerAnswers")["status"] == "True"
    else:
        assert (found["reason"], bool(world.pods)) == ("FencingModeNotPossible", False)
        assert "the operator has no broker of storage credentials" in found["message"]

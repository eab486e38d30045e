"""A Secret that an external store fills, as in examples/identities.

The ExternalSecret is checked by the CRD of the External Secrets Operator. In the long test its
controllers make the Secret (version 0.16.2: of later ones not all modules can be had), with keys of
a store that is a stand-in. The others make the Secret that the template describes, as its
documentation says.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hudi_operator.api import references
from hudi_operator.api.references import Consent
from hudi_operator.api.spec import TableSpec
from hudi_operator.manifests import pods
from hudi_operator.model.config import OperatorConfig
from tests.support import CACHE, ROOT, quick_yaml
from tests.support.harness.processes import until
from tests.support.harness.secret_store import SecretStore
from tests.tiers.component.crds.cluster import Cluster, JsonDict
from tests.tiers.component.crds.drivers import spec_of

EXAMPLE = ROOT / "examples" / "identities" / "external-secret.yaml"
REQUIRED = {references.SECRET: "Required", references.ACCOUNT: "Required"}


def example(namespace: str) -> tuple[JsonDict, JsonDict]:
    """ExternalSecret and HudiTable."""
    made = [dict(one) for one in quick_yaml.load_all(EXAMPLE.read_text())]
    for one in made:
        one["metadata"]["namespace"] = namespace
    external, table = made
    return external, table


def secret_of(external: JsonDict) -> JsonDict:
    """What the controller makes of it."""
    spec = external["spec"]
    metadata = {**spec["target"].get("template", {}).get("metadata", {}), "name": spec["target"]["name"]}
    values = {one["secretKey"]: f"of-{one['remoteRef']['property']}" for one in spec["data"]}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {**metadata, "namespace": external["metadata"]["namespace"]},
        "stringData": values,
    }


def test_its_schema_accepts_the_example(external_secrets: Cluster, namespace: str) -> None:
    """Strictly: an unknown field is an error. And it stores what was sent."""
    external, _ = example(namespace)
    command = ["create", "--dry-run=server", "--validate=strict", "-o", "json", "-f", "-"]
    stored = json.loads(external_secrets.kubectl(*command, stdin=quick_yaml.dump(external)))
    target = stored["spec"]["target"]
    assert target["template"]["metadata"] == external["spec"]["target"]["template"]["metadata"]
    assert target["name"] == external["spec"]["target"]["name"]
    assert [one["secretKey"] for one in stored["spec"]["data"]] == ["accessKeyId", "secretAccessKey"]
    external["spec"]["target"]["template"]["metadata"]["annotation"] = {}
    assert "annotation" in external_secrets.run(*command, stdin=quick_yaml.dump(external)).stdout


def test_the_table_may_use_the_secret_that_is_made(external_secrets: Cluster, namespace: str) -> None:
    """By the template's annotation; without it the table is refused. Its pods mount the keys of
    the Secret.
    """
    external, obj = example(namespace)
    table: TableSpec = spec_of(TableSpec, obj)

    def refusal(secret: JsonDict) -> str:
        external_secrets.apply(secret)
        name = secret["metadata"]["name"]
        stored = external_secrets.get("secret", name, "-n", namespace)
        consent = Consent.read(stored["metadata"].get("annotations", {}))
        consents = {references.Named(references.SECRET, name): consent}
        return references.problem(references.of_table(table), consents, table, REQUIRED)

    secret = secret_of(external)
    assert refusal(secret) == ""
    agent = pods.agent_pod(table, table.agent_name("image"), 1, OperatorConfig())
    (volume,) = [
        one
        for one in agent["spec"]["volumes"]
        if one.get("secret", {}).get("secretName") == table.storage.secret_refs[0].name
    ]
    assert set(secret["stringData"]) <= {item["key"] for item in volume["secret"]["items"]}
    assert secret["metadata"]["name"] == volume["secret"]["secretName"]
    del secret["metadata"]["annotations"]
    assert "lake-credentials allows no table" in refusal(secret)


@contextmanager
def controllers(cluster: Cluster, namespace: str, log: Path) -> Iterator[None]:
    """The External Secrets Operator for one namespace."""
    program = CACHE / "bin" / "external-secrets"
    assert program.exists(), "run hack/build/build-binaries external-secrets"
    others = ("cluster-external-secret", "cluster-push-secret", "push-secret")
    command = [str(program), f"--namespace={namespace}", "--metrics-addr=0"]
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    with log.open("wb") as file:
        process = subprocess.Popen(
            [*command, *(f"--enable-{name}-reconciler=false" for name in others)],
            stdout=file,
            stderr=file,
            env=environment,
        )
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.extra
def test_its_controllers_make_the_secret(external_secrets: Cluster, namespace: str, tmp_path: Path) -> None:
    """Of the example with a store of its name: the table may use it, and a key that changes in the
    store is in the Secret within the refreshInterval. A store that refuses leaves it as it is.
    """
    external, obj = example(namespace)
    table: TableSpec = spec_of(TableSpec, obj)
    external["spec"]["refreshInterval"] = "3s"
    where = external["spec"]["data"][0]["remoteRef"]["key"]
    store = SecretStore(tmp_path)
    store.values[where] = {"accessKeyId": "first", "secretAccessKey": "hidden"}
    token = {"name": "store", "namespace": namespace, "labels": {"external-secrets.io/type": "webhook"}}
    provider = store.provider("store", namespace)
    named = external["spec"]["secretStoreRef"]

    def keys() -> dict[str, str]:
        found = external_secrets.run("get", "secret", table.storage.secret_refs[0].name, "-n", namespace, "-o", "json")
        data = json.loads(found.stdout).get("data", {}) if found.returncode == 0 else {}
        return {name: base64.b64decode(value).decode() for name, value in data.items()}

    try:
        external_secrets.apply(
            {"apiVersion": "v1", "kind": "Secret", "metadata": token, "stringData": {"token": store.token}},
            {
                "apiVersion": external["apiVersion"],
                "kind": named["kind"],
                "metadata": {"name": named["name"]},
                "spec": {"provider": provider},
            },
            external,
        )
        assert keys() == {}
        with controllers(external_secrets, namespace, tmp_path / "log"):
            until("the Secret is made", lambda: keys() == store.values[where], timeout=60)
            secret = external_secrets.get("secret", table.storage.secret_refs[0].name, "-n", namespace)
            consent = Consent.read(secret["metadata"]["annotations"])
            consents = {references.Named(references.SECRET, secret["metadata"]["name"]): consent}
            assert references.problem(references.of_table(table), consents, table, REQUIRED) == ""
            store.values[where] = {"accessKeyId": "second", "secretAccessKey": "hidden too"}
            until("the new key is there", lambda: keys() == store.values[where], timeout=15)
            store.token, before = "another", store.refused
            until("the store refuses", lambda: store.refused > before, timeout=30)
            assert keys() == store.values[where]
    finally:
        store.stop()
        external_secrets.run("delete", named["kind"].lower(), named["name"])

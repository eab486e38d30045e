"""A Secret that an external store fills, as in examples/identities.

The ExternalSecret is checked by the CRD of the External Secrets Operator. Its controller is not
here: the test makes the Secret that the template describes, as its documentation says.
"""

from __future__ import annotations

import json

from hudi_operator.api import references
from hudi_operator.api.references import Consent
from hudi_operator.api.spec import TableSpec
from hudi_operator.manifests import pods
from hudi_operator.model.config import OperatorConfig
from tests.support import ROOT, quick_yaml
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

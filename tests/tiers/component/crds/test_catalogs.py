"""HudiTable: a catalog, as `kubectl apply` takes or refuses it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import quick_yaml
from tests.tiers.component.crds.cluster import Cluster, table

PORT = "its port must be between 1 and 65535"
NEVER = "nothing is sent to loopback, link-local and metadata addresses"
GOOD = "thrift://metastore.catalogs.svc:9083"


def to(*uris: str, **more: Any) -> dict[str, Any]:
    return {"catalog": {"hiveMetastore": {"uris": list(uris)}, **more}}


def glue(region: str, *, path: str = "s3a://lake/orders", **more: Any) -> dict[str, Any]:
    return {"path": path, "catalog": {"glue": {"region": region, **more}}}


REFUSED: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("no-kind", {"catalog": {}}, ("spec.catalog", "set exactly one of hiveMetastore and glue")),
    ("two-kinds", to(GOOD, glue={"region": "eu-central-1"}), ("set exactly one of hiveMetastore and glue",)),
    ("no-region", {"catalog": {"glue": {}}}, ("spec.catalog.glue.region", "Required value")),
    ("region", glue("eu-central-1.evil.example"), ("'eu-central-1.evil.example' must be an AWS region",)),
    ("account", glue("eu-central-1", account="12345678901"), ("'12345678901' must be an AWS account, 12 digits",)),
    (
        "glue-elsewhere",
        glue("eu-central-1", path="gs://lake/orders"),
        ("spec.catalog", "path 'gs://lake/orders' must begin with s3a:// or s3://"),
    ),
    ("on-delete", to(GOOD, onDelete="Purge"), ("spec.catalog.onDelete", 'supported values: "Keep", "Drop"')),
    ("no-uri", to(), ("spec.catalog.hiveMetastore.uris", "at least 1 items")),
    ("many", to(*[GOOD] * 6), ("spec.catalog.hiveMetastore.uris", "at most 5 items")),
    ("scheme", to("http://a.example:80"), ("'http://a.example:80' must be thrift://HOST:PORT",)),
    ("no-port", to("thrift://a.example"), ("must be thrift://HOST:PORT",)),
    ("two-in-one", to(f"{GOOD},thrift://b:1"), ("must be thrift://HOST:PORT",)),
    ("password", to("thrift://me:word@a.example:9083"), ("'(contains @ or white space)' must be",)),
    ("port", to(GOOD, "thrift://a.example:0"), ("uris[1]", "'thrift://a.example:0'", PORT)),
    ("large-port", to("thrift://a.example:65536"), (PORT,)),
    ("loopback", to("thrift://127.0.0.1:9083"), ("'thrift://127.0.0.1:9083'", NEVER)),
    ("localhost", to("thrift://a.LocalHost:9083"), (NEVER,)),
    ("metadata", to("thrift://169.254.169.254:80"), (NEVER,)),
    ("metadata-name", to("thrift://metadata.google.internal:80"), (NEVER,)),
    ("any", to("thrift://0.0.0.0:9083"), (NEVER,)),
    ("database", to(GOOD, database="a.b"), ("database 'a.b' must consist of lower case letters, digits and _",)),
    ("table", to(GOOD, table="Orders"), ("table 'Orders' must consist of lower case letters, digits and _",)),
    ("no-time", to(GOOD, timeoutSeconds=4), ("spec.catalog.timeoutSeconds", "greater than or equal to 5")),
    ("much-time", to(GOOD, timeoutSeconds=601), ("spec.catalog.timeoutSeconds", "less than or equal to 600")),
]


@pytest.mark.parametrize(("spec", "words"), [pytest.param(spec, words, id=name) for name, spec, words in REFUSED])
def test_a_refusal_names_field_value_and_rule(
    light_cluster: Cluster, spec: dict[str, Any], words: tuple[str, ...]
) -> None:
    message = light_cluster.refused(table("default", name="refused", **spec))
    for word in words:
        assert word in message


def test_what_is_accepted(light_cluster: Cluster) -> None:
    spec = to(GOOD, "thrift://203.0.113.7:1", "thrift://metadata-of-tables.example.com:65535", table="a_1")
    light_cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=str(quick_yaml.dump(table("default", **spec))))
    spec = glue("us-gov-west-1", path="s3://lake/orders", account="123456789012")
    light_cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=str(quick_yaml.dump(table("default", **spec))))


def test_defaults(light_cluster: Cluster, namespace: str) -> None:
    light_cluster.apply(table(namespace, name="listed", **to(GOOD)))
    wanted = {"hiveMetastore": {"uris": [GOOD]}, "database": "default", "timeoutSeconds": 60, "onDelete": "Keep"}
    assert light_cluster.get("huditable", "listed", "-n", namespace)["spec"]["catalog"] == wanted

"""HudiWriter: a database as source, as `kubectl apply` takes or refuses it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tiers.component.crds.cluster import Cluster, writer

WHOLE = {
    "engine": "PostgreSQL",
    "host": "orders-db.shop",
    "database": "shop",
    "table": "sales.orders",
    "secretRef": {"name": "orders-reader"},
}
NEW = {"column": "updated_at"}
SERVER = {name: value for name, value in WHOLE.items() if name != "table"}
CRON = {"cron": "0 * * * *"}


def jdbc(**changes: Any) -> dict[str, Any]:
    return {"source": {"jdbc": {**WHOLE, **changes}}}


def query(text: str) -> dict[str, Any]:
    return {"source": {"jdbc": {**SERVER, "query": text}}}


AT = "spec.source.jdbc"
REFUSED: list[tuple[str, dict[str, Any], tuple[str, ...]]] = [
    ("no-secret", jdbc(secretRef=None), (f"{AT}.secretRef", "Required value")),
    ("engine", jdbc(engine="Oracle"), (f"{AT}.engine", '"PostgreSQL", "MariaDB"')),
    ("property", jdbc(host="db/shop?socketFactory=x"), (f"{AT}.host", "must be one name or address")),
    ("hosts", jdbc(host="a,b"), (f"{AT}.host", "must be one name or address")),
    ("file", jdbc(database="shop?allowLoadLocalInfile=true"), (f"{AT}.database", "is not a name")),
    ("table", jdbc(table="orders; DROP TABLE x"), (f"{AT}.table", "must be TABLE or SCHEMA.TABLE")),
    ("nothing", {"source": {"jdbc": SERVER}}, (AT, "source.jdbc reads nothing")),
    ("both", jdbc(query="SELECT 1"), (AT, "source.jdbc.table and source.jdbc.query are both set")),
    ("statement", query("SELECT 1; DROP TABLE x"), (f"{AT}.query", "must be one statement")),
    ("delete", query("DELETE FROM x"), (f"{AT}.query", "must be one statement")),
    ("backslash", query("SELECT '\\'; DROP TABLE x; SELECT '"), (f"{AT}.query", "must be one statement")),
    ("dollars", query("SELECT $$a$$"), (f"{AT}.query", "must be one statement")),
    ("backtick", query("SELECT `) x; DROP TABLE x; SELECT (`"), (f"{AT}.query", "must be one statement")),
    ("comment", query("SELECT 1 --"), (f"{AT}.query", "begin comments")),
    ("column", jdbc(incremental={"column": 'a"b'}), (f"{AT}.incremental.column", "must be of letters")),
    ("start", jdbc(incremental={**NEW, "startFrom": "now"}), (f"{AT}.incremental.startFrom", "must be Earliest")),
    ("lag", jdbc(incremental={**NEW, "lag": -1}), (f"{AT}.incremental.lag", "greater than or equal to 0")),
    ("ranges", jdbc(partitioning={"column": "id", "partitions": 1}), (f"{AT}.partitioning.partitions", "2")),
    ("tls", jdbc(tls="None"), (f"{AT}.tls", '"Verify", "Off"')),
    ("stream", {**jdbc(), "streaming": {}}, ("spec.streaming", "source.jdbc.incremental")),
    (
        "replacing",
        {**jdbc(incremental=NEW), "operation": "InsertOverwrite"},
        ("spec.operation", "cannot be combined with source.jdbc.incremental"),
    ),
    (
        "deleting",
        {**jdbc(incremental=NEW), "operation": "Delete"},
        ("spec.operation", "operation Delete cannot be combined with source.jdbc.incremental"),
    ),
    (
        "inserting",
        {**jdbc(incremental=NEW), "operation": "Insert"},
        ("spec.duplicates", "operation Insert with source.jdbc.incremental needs duplicates Drop"),
    ),
    (
        "two-sources",
        {"source": {"jdbc": WHOLE, "files": {"format": "csv", "paths": ["s3a://x/y"]}}},
        ("spec.source", "source has several fields, use one of: files jdbc"),
    ),
]


@pytest.mark.parametrize(("spec", "told"), [pytest.param(spec, told, id=name) for name, spec, told in REFUSED])
def test_refused(light_cluster: Cluster, namespace: str, spec: dict[str, Any], told: tuple[str, ...]) -> None:
    message = light_cluster.refused(writer(namespace, **spec))
    assert [part for part in told if part not in message] == [], message


def test_accepted(light_cluster: Cluster, namespace: str) -> None:
    everything = {"column": "updated_at", "startFrom": "2026-01-31T23:59:59.5Z", "lag": 60, "maxRowsPerCommit": 9}
    light_cluster.apply(
        writer(
            namespace,
            "all",
            **jdbc(
                engine="MariaDB",
                host="[2001:db8::1]",
                port=3307,
                incremental=everything,
                partitioning={"column": "id", "partitions": 256},
                fetchSize=10,
                tls="Off",
            ),
            streaming={},
        ),
        writer(namespace, "whole", **jdbc(), operation="InsertOverwrite", schedule=CRON),
        writer(namespace, "inserts", **jdbc(incremental=NEW), operation="Insert", duplicates="Drop"),
        writer(namespace, "query", **query("SELECT a, '(;#$' AS b, \"c;\" FROM t WHERE (a = 'it''s')\n")),
    )
    stored = light_cluster.get("hw", "inserts", "-n", namespace)["spec"]["source"]["jdbc"]
    assert (stored["fetchSize"], stored["tls"]) == (1000, "Verify")
    assert stored["incremental"] == {"column": "updated_at", "startFrom": "Earliest", "lag": 0}


def test_what_a_position_refers_to_stays(light_cluster: Cluster, namespace: str) -> None:
    light_cluster.apply(writer(namespace, "new", **jdbc(incremental=NEW)), writer(namespace, "whole", **jdbc()))
    light_cluster.apply(writer(namespace, "new", **jdbc(incremental={**NEW, "lag": 5}, host="other")))
    light_cluster.apply(writer(namespace, "whole", **jdbc(table="other")))
    for name, changes, told in (
        ("new", {"incremental": {"column": "id"}}, "incremental.column cannot be set, removed or changed"),
        ("new", {}, "incremental.column cannot be set, removed or changed"),
        ("new", {"incremental": NEW, "table": "other"}, "database and table cannot be changed"),
        ("new", {"incremental": NEW, "database": "other"}, "database and table cannot be changed"),
        ("whole", {"incremental": NEW}, "incremental.column cannot be set, removed or changed"),
    ):
        assert told in light_cluster.refused(writer(namespace, name, **jdbc(**changes)))

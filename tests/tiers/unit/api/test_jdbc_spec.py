"""`source.jdbc` of a HudiWriter: read, checked again at launch, handed to the attempt; user and
password as files alone, and nothing that a driver would take for a property.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from hudi_operator.api import references
from hudi_operator.api.spec import SpecError, TableSpec, WriterSpec
from hudi_operator.manifests import configmaps, pods
from hudi_operator.model.config import OperatorConfig
from hudi_operator.plan.core import launch
from hudi_runtime.job.job import JdbcSource, Job

TABLE = TableSpec.from_object(
    {
        "metadata": {"namespace": "ns", "name": "t", "uid": "u"},
        "spec": {"path": "s3a://lake/t", "recordKeyFields": ["id"]},
    }
)
WHOLE = {
    "engine": "PostgreSQL",
    "host": "orders-db.shop",
    "database": "shop",
    "table": "sales.orders",
    "secretRef": {"name": "orders-reader"},
}
NEW = {**WHOLE, "incremental": {"column": "updated_at"}}
QUERY = {name: value for name, value in WHOLE.items() if name != "table"}


def writer(source: dict[str, Any], **spec: Any) -> WriterSpec:
    metadata = {"namespace": "ns", "name": "w", "uid": "0123456789"}
    source = {field: value for field, value in source.items() if value is not None}
    return WriterSpec.from_object(
        {"metadata": metadata, "spec": {"tableRef": {"name": "t"}, "source": {"jdbc": source}, **spec}}
    )


def job(source: dict[str, Any], **spec: Any) -> Job:
    """As the runtime reads it."""
    return Job.from_json(json.loads(json.dumps(configmaps.job(TABLE, writer(source, **spec), 1, run=1).to_json())))


def test_the_runtime_reads_what_was_written() -> None:
    everything = {
        **QUERY,
        "engine": "MariaDB",
        "host": "[fd00::1]",
        "port": 3307,
        "query": "SELECT id, updated_at FROM orders",
        "incremental": {"column": "updated_at", "startFrom": "2026-01-31", "lag": 60, "maxRowsPerCommit": 5},
        "partitioning": {"column": "id", "partitions": 4},
        "fetchSize": 10,
        "tls": "Off",
    }
    assert job(everything).source == JdbcSource(
        engine="MariaDB",
        host="[fd00::1]",
        port=3307,
        database="shop",
        table="",
        query="SELECT id, updated_at FROM orders",
        fetch_size=10,
        tls="Off",
        folder="/etc/hudi/jdbc",
        column="updated_at",
        start_from="2026-01-31",
        lag=60,
        max_rows=5,
        partition_column="id",
        partitions=4,
    )
    assert job(WHOLE).source == JdbcSource(
        engine="PostgreSQL",
        host="orders-db.shop",
        port=5432,
        database="shop",
        table="sales.orders",
        query="",
        fetch_size=1000,
        tls="Verify",
        folder="/etc/hudi/jdbc",
    )
    plain = job({**WHOLE, "engine": "MariaDB", "incremental": {"column": "id"}}).source
    assert isinstance(plain, JdbcSource)
    assert (plain.port, plain.column, plain.start_from, plain.lag, plain.max_rows) == (3306, "id", "Earliest", 0, None)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("host", "db?socketFactory=x"),
        ("host", "db/other?loggerFile=x"),
        ("host", "db:5432"),
        ("host", "user@db"),
        ("host", "a,b"),
        ("host", "address=(host=db)(localSocket=/x)"),
        ("host", "db%2f"),
        ("host", "db\n"),
        ("host", ""),
        ("database", "shop?allowLoadLocalInfile=true"),
        ("database", "shop&autoDeserialize=true"),
        ("database", "shop;x"),
        ("database", "shop/../x"),
        ("database", "shop#x"),
        ("database", "shop%3Fx"),
        ("database", "shop\n"),
        ("table", 'orders" WHERE 1=1; DROP TABLE orders; --'),
        ("table", "a.b.c"),
        ("table", "(SELECT 1)"),
        ("table", "orders o"),
        ("engine", "Oracle"),
        ("engine", "com.example.Driver"),
        ("tls", "Required"),
        ("secretRef", {"name": "../x"}),
        ("secretRef", {}),
        ("incremental", {"column": 'a"b'}),
        ("incremental", {"column": "a", "startFrom": "yesterday"}),
        ("incremental", {"column": "a", "startFrom": "2026-01-31T00:00:00+01:00"}),
        ("incremental", {"column": "a", "startFrom": "1' OR '1'='1"}),
        ("incremental", {"column": "a", "startFrom": "NaN"}),
        ("incremental", {"column": "a", "lag": -1}),
        ("partitioning", {"column": "a", "partitions": 1}),
        ("query", "DELETE FROM orders"),
        ("query", "SELECTED"),
        ("query", "VALUES (1)"),
        ("query", "SELECT 1; DROP TABLE orders"),
        ("query", "SELECT 1;"),
        ("query", "SELECT '\\'; DROP TABLE orders; SELECT '"),
        ("query", "SELECT $$a$$"),
        ("query", "SELECT $a$ ; DROP TABLE orders; $a$"),
        ("query", "SELECT 1 # a comment"),
        ("query", "SELECT 'open"),
        ("query", 'SELECT "open'),
        ("query", "SELECT `) x; DROP TABLE orders; SELECT (`"),
        ("query", "SELECT `) x UNION SELECT (`"),
    ],
)
def test_nothing_gets_out_of_its_place(field: str, value: Any) -> None:
    base = QUERY if field == "query" else WHOLE
    with pytest.raises(SpecError, match=rf"spec\.source\.jdbc\.{field}"):
        writer({**base, field: value})


@pytest.mark.parametrize(
    ("source", "spec", "told"),
    [
        (WHOLE, {}, ""),
        (WHOLE, {"operation": "InsertOverwrite"}, ""),
        (WHOLE, {"operation": "Insert"}, ""),
        (WHOLE, {"operation": "Delete"}, ""),
        (NEW, {}, ""),
        (NEW, {"streaming": {}}, ""),
        (NEW, {"operation": "Insert", "duplicates": "Drop"}, ""),
        ({**NEW, "incremental": {"column": "a", "startFrom": "2026-02-28T23:59:59.5Z"}}, {}, ""),
        ({**QUERY, "query": "SELECT a, '(;#$' AS b, \"c;(\", `d` FROM t WHERE (a = 'it''s')\n"}, {}, ""),
        ({**QUERY, "query": "with x AS (SELECT 1 AS a) SELECT * FROM x"}, {}, ""),
        (WHOLE, {"streaming": {}}, "spec.streaming: cannot be combined with source.jdbc without incremental"),
        (NEW, {"operation": "InsertOverwrite"}, "spec.operation: InsertOverwrite cannot be combined"),
        (NEW, {"operation": "Delete"}, "spec.operation: Delete cannot be combined with source.jdbc.incremental"),
        (NEW, {"operation": "Insert"}, "spec.duplicates: Insert with source.jdbc.incremental needs duplicates Drop"),
        (NEW, {"operation": "BulkInsert", "duplicates": "Allow"}, "spec.duplicates: BulkInsert with source.jdbc"),
        (QUERY, {}, "spec.source.jdbc.table: either table or query is set"),
        ({**WHOLE, "query": "SELECT 1"}, {}, "spec.source.jdbc.table: either table or query is set"),
        ({**QUERY, "query": "SELECT 1 -- x"}, {}, "spec.source.jdbc.query: -- and /* begin comments"),
        ({**QUERY, "query": "SELECT 1 /* x */"}, {}, "spec.source.jdbc.query: -- and /* begin comments"),
        ({**QUERY, "query": "SELECT 1) a, (SELECT 2"}, {}, "spec.source.jdbc.query: its parentheses do not match"),
        ({**QUERY, "query": "SELECT (1"}, {}, "spec.source.jdbc.query: its parentheses do not match"),
        ({**QUERY, "query": "SELECT '(') a, (SELECT ')'"}, {}, "spec.source.jdbc.query: its parentheses"),
        (
            {**NEW, "incremental": {"column": "a", "startFrom": "2026-02-30"}},
            {},
            "spec.source.jdbc.incremental.startFrom: '2026-02-30' is no day",
        ),
        (
            {**NEW, "incremental": {"column": "a", "startFrom": "2026-02-20T25:00:00Z"}},
            {},
            "spec.source.jdbc.incremental.startFrom: '2026-02-20T25:00:00Z' is no day",
        ),
    ],
)
def test_problems_name_field_value_and_rule(source: dict[str, Any], spec: dict[str, Any], told: str) -> None:
    found = launch.source_problem(writer(source, **spec))
    assert found.startswith(told)
    assert bool(found) == bool(told)


def test_user_and_password_are_files_of_driver_and_executors_and_nothing_else() -> None:
    config = OperatorConfig()
    with_executors = writer(NEW, executors={"instances": 1})
    secret = {"name": "jdbc", "secret": {"secretName": "orders-reader", "defaultMode": 0o440}}
    mount = {"name": "jdbc", "mountPath": "/etc/hudi/jdbc", "readOnly": True}
    driver = pods.driver_pod(TABLE, with_executors, 1, config)
    for pod in (driver, yaml.safe_load(pods.executor_template(TABLE, with_executors, 1, config))):
        assert secret in pod["spec"]["volumes"]
        assert mount in pod["spec"]["containers"][0]["volumeMounts"]
    assert {"name": "HUDI_OPERATOR_SECRET_FOLDERS", "value": "/etc/hudi/jdbc"} in driver["spec"]["containers"][0]["env"]
    made = configmaps.attempt_config(TABLE, with_executors, 1, config, run=1)["data"]
    assert "orders-reader" in made["executor-secrets"].split(",")
    assert "orders-reader" not in made["job.json"] + made["spark-defaults.conf"] + made["hudi-defaults.conf"]
    assert references.Reference("spec.source.jdbc.secretRef", references.Named("Secret", "orders-reader")) in (
        references.of_writer(with_executors)
    )

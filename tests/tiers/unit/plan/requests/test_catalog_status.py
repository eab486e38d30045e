"""The catalog as the operator hands it to the agent and shows it: assignment, status, condition."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_contract.records import Stored
from hudi_operator.api import catalog as api
from hudi_operator.api.fields import SpecError
from hudi_operator.api.spec import TableSpec
from hudi_operator.model.config import OperatorConfig
from hudi_operator.model.facts import EtcdFacts, Nodes, Observed
from hudi_operator.model.objects import Objects
from hudi_operator.plan.agent import agents
from hudi_operator.plan.core.view import View, build_view
from hudi_operator.plan.gate.stalled import table_stall
from hudi_operator.plan.requests import catalogs

URI = "thrift://metastore.catalogs.svc:9083"
METADATA = {"namespace": "lake", "name": "Orders.2026-x", "uid": "u", "resourceVersion": "1", "generation": 1}
REPORT = {
    "inc": "agent",
    "target": f"{URI} default.orders_2026_x u",
    "instant": "20260101000000000",
    "completionTime": "20260101000000500",
    "atMs": 1767225600000,
}


def table(*uris: str, **catalog: Any) -> dict[str, Any]:
    spec = {"path": "s3a://lake/orders", "recordKeyFields": ["id"], "tableName": "Orders.2026-x"}
    wanted = {"catalog": {"hiveMetastore": {"uris": list(uris)}, **catalog}} if uris else {}
    return {
        "apiVersion": "hudioperator.io/v1alpha1",
        "kind": "HudiTable",
        "metadata": METADATA | {"name": "orders"},
        "spec": spec | wanted,
    }


def view(report: dict[str, Any] | None, *uris: str, **catalog: Any) -> View:
    reports = {"catalog": Stored(report, 1, 1)} if report is not None else {}
    etcd = EtcdFacts(revision=1, cluster_id="c", reports=reports)
    objects = Objects(table(*uris, **catalog))
    return build_view(Observed(objects, pods=(), nodes=Nodes(), etcd=etcd, now_ms=1767225700000), OperatorConfig())


def condition(of: View) -> tuple[str, str, str]:
    (found,) = catalogs.synced(of)
    assert found.type == "CatalogSynced"
    return found.status, found.reason, found.message


def test_a_table_without_a_catalog_shows_nothing() -> None:
    assert "catalog" not in agents.assignment(TableSpec.from_object(table()), 0)
    assert catalogs.synced(view(REPORT)) == []
    assert catalogs.status(view(REPORT)) is None, "what is left of one that was withdrawn"


def test_the_agent_is_told_of_it() -> None:
    order = agents.assignment(TableSpec.from_object(table(URI)), 0)["catalog"]
    assert order == {"uris": [URI], "database": "default", "table": "orders_2026_x", "timeoutSeconds": 60, "uid": "u"}
    named = TableSpec.from_object(table(URI, database="lake", table="mine", timeoutSeconds=5))
    assert agents.assignment(named, 0)["catalog"] == {
        "uris": [URI],
        "database": "lake",
        "table": "mine",
        "timeoutSeconds": 5,
        "uid": "u",
    }


def test_status_and_condition() -> None:
    where = f"default.orders_2026_x in the Hive Metastore at {URI}"
    assert condition(view(None, URI)) == ("Unknown", "NotReported", f"the agent has not begun yet: {where}")
    first = {"inc": "agent", "target": REPORT["target"]}
    assert condition(view(first, URI))[:2] == ("Unknown", "NothingCommitted")
    assert condition(view(first | {"begun": 1}, URI))[1:] == ("Synchronizing", f"the first try has begun: {where}")
    good = view(REPORT, URI)
    assert condition(good) == ("True", "Synced", f"{where} shows the table as of instant 20260101000000000")
    shown = catalogs.status(good)
    assert shown is not None
    assert shown.to_json() == {
        "database": "default",
        "table": "orders_2026_x",
        "lastInstant": "20260101000000000",
        "lastCompletionTime": "20260101000000500",
        "lastSyncTime": "2026-01-01T00:00:00Z",
        "failures": 0,
    }
    failing = {**REPORT, "failures": 3, "reason": "ConnectionFailed", "message": "no answer"}
    bad = view(failing, URI)
    assert condition(bad) == (
        "False",
        "ConnectionFailed",
        f"{where}: no answer (3 failures in a row); it shows the table as of instant 20260101000000000",
    )
    assert condition(view({**failing, "reason": "a b\n"}, URI))[1] == "SyncFailed"
    less = view({**REPORT, "leftOut": ["a/b/c", "d"]}, URI)
    missing = (
        "partitions are left out because their paths do not have one value for each partition column, for example "
        "a/b/c, d"
    )
    assert condition(less) == (
        "False",
        "PartitionsLeftOut",
        f"{where} shows the table as of instant 20260101000000000, but {missing}",
    )
    told = catalogs.status(less)
    assert told is not None
    assert (told.message, told.failures) == (missing, 0)
    assert condition(view({**REPORT, "target": REPORT["target"] + "2"}, URI))[1] == "NotReported", "of an earlier table"
    assert condition(view(REPORT, URI, table="other"))[1] == "NotReported", "what another catalog shows"


@pytest.mark.parametrize(
    ("uri", "rule"),
    [
        ("thrift://a:0", "its port must be between 1 and 65535"),
        ("thrift://a:65536", "its port must be between 1 and 65535"),
        ("thrift://LocalHost:9083", "nothing is sent to loopback, link-local and metadata addresses"),
        ("thrift://127.1:9083", "nothing is sent to loopback, link-local and metadata addresses"),
        ("thrift://169.254.169.254:80", "nothing is sent to loopback, link-local and metadata addresses"),
    ],
)
def test_addresses_are_refused_at_launch_too(uri: str, rule: str) -> None:
    spec = TableSpec.from_object(table(URI, uri))
    assert api.problem(spec.catalog, spec.path) == f"spec.catalog.hiveMetastore.uris[1]: {rule}"
    stall = table_stall(view(None, URI, uri))
    assert stall is not None
    assert (stall.reason, rule in stall.message) == ("InvalidSpec", True)


@pytest.mark.parametrize(
    ("path", "kinds", "rule"),
    [
        (
            "gs://lake/orders",
            {"glue": {"region": "eu-central-1"}},
            "spec.catalog.glue: path 'gs://lake/orders' must begin",
        ),
        ("s3a://lake/orders", {}, "spec.catalog: set exactly one of hiveMetastore and glue"),
        (
            "s3a://lake/orders",
            {"glue": {"region": "eu-central-1"}, "hiveMetastore": {"uris": [URI]}},
            "spec.catalog: set exactly one of hiveMetastore and glue",
        ),
    ],
)
def test_kinds_are_refused_at_launch_too(path: str, kinds: dict[str, Any], rule: str) -> None:
    obj = table()
    obj["spec"] |= {"path": path, "catalog": kinds}
    spec = TableSpec.from_object(obj)
    assert api.problem(spec.catalog, spec.path).startswith(rule)


def test_glue_as_the_agent_is_told_of_it_and_as_it_is_shown() -> None:
    obj = table()
    obj["spec"]["catalog"] = {"glue": {"region": "eu-central-1", "account": "123456789012"}, "database": "lake"}
    spec = TableSpec.from_object(obj)
    assert api.problem(spec.catalog, spec.path) == ""
    order = agents.assignment(spec, 0)["catalog"]
    assert order == {
        "region": "eu-central-1",
        "account": "123456789012",
        "database": "lake",
        "table": "orders_2026_x",
        "timeoutSeconds": 60,
        "uid": "u",
    }
    report = {**REPORT, "target": "glue:eu-central-1:123456789012 lake.orders_2026_x u"}
    etcd = EtcdFacts(revision=1, cluster_id="c", reports={"catalog": Stored(report, 1, 1)})
    shown = build_view(Observed(Objects(obj), pods=(), nodes=Nodes(), etcd=etcd, now_ms=0), OperatorConfig())
    assert condition(shown)[2] == (
        "lake.orders_2026_x in AWS Glue of account 123456789012 in eu-central-1 shows the table as of instant "
        "20260101000000000"
    )


@pytest.mark.parametrize(
    ("catalog", "field"),
    [
        ({"database": "a.b"}, "spec.catalog.database"),
        ({"table": "A"}, "spec.catalog.table"),
        ({"timeoutSeconds": 4}, "spec.catalog.timeoutSeconds"),
        ({"onDelete": "Purge"}, "spec.catalog.onDelete"),
        ({"glue": {"region": "eu-central-1.evil.example"}}, "spec.catalog.glue.region"),
        ({"glue": {"region": "eu-central-1", "account": "1"}}, "spec.catalog.glue.account"),
    ],
)
def test_another_shape_is_refused_by_name(catalog: dict[str, Any], field: str) -> None:
    with pytest.raises(SpecError, match=field):
        TableSpec.from_object(table(URI, **catalog))
    with pytest.raises(SpecError, match=r"spec.catalog.hiveMetastore.uris"):
        TableSpec.from_object(table("http://a:80"))

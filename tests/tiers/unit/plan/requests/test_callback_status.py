"""The commit callback as the operator hands it to the agent and shows it: assignment, agent pod,
status, condition, event, metrics (R20).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hudi_contract.records import Stored
from hudi_operator.api.callback import Callback
from hudi_operator.api.fields import SpecError
from hudi_operator.api.spec import TableSpec
from hudi_operator.manifests import pods
from hudi_operator.metrics.meter import Metrics
from hudi_operator.model.config import OperatorConfig
from hudi_operator.model.facts import EtcdFacts, Nodes, Observed
from hudi_operator.model.objects import Objects
from hudi_operator.plan import table_events
from hudi_operator.plan.agent import agents
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.core.view import View, build_view
from hudi_operator.plan.requests import callbacks

URL = "https://example.com/hook"
METADATA = {"namespace": "lake", "name": "orders", "uid": "u", "resourceVersion": "1", "generation": 1}
REPORT = {
    "inc": "agent",
    "completionTime": "20260101000000500",
    "instant": "20260101000000000",
    "delivered": 7,
    "archivedTo": "",
    "lost": 0,
    "atMs": 1767225600000,
    "undelivered": 0,
    "oldest": "",
    "failures": 0,
    "reason": "",
    "message": "",
}
FAILING = {
    **REPORT,
    "undelivered": 3,
    "oldest": "20260101000100000",
    "failures": 4,
    "reason": "HTTP503",
    "message": "example.com answered 503",
}


def table(**callback: Any) -> dict[str, Any]:
    spec = {
        "path": "s3a://lake/orders",
        "recordKeyFields": ["id"],
        **({"commitCallback": callback} if callback else {}),
    }
    return {"apiVersion": "hudioperator.io/v1alpha1", "kind": "HudiTable", "metadata": METADATA, "spec": spec}


def view(report: dict[str, Any] | None, **callback: Any) -> View:
    obj = table(**callback)
    reports = {"callback": Stored(report, 1, 1)} if report is not None else {}
    etcd = EtcdFacts(revision=1, cluster_id="c", reports=reports)
    return build_view(Observed(Objects(obj), pods=(), nodes=Nodes(), etcd=etcd, now_ms=1767225700000), OperatorConfig())


def condition(of: View) -> tuple[str, str, str]:
    (found,) = callbacks.delivered(of)
    assert found.type == "CallbackDelivered"
    return found.status, found.reason, found.message


def shown_of(seen: View) -> dict[str, Any]:
    found = callbacks.status(seen)
    assert found is not None
    return found.to_json()


def test_a_table_without_a_callback_is_as_it_was() -> None:
    spec = TableSpec.from_object(table())
    assert spec.callback is None
    assert "callback" not in agents.assignment(spec, 0)
    assert callbacks.delivered(view(REPORT)) == []
    assert callbacks.status(view(REPORT)) is None, "what is left of one that was withdrawn"
    volumes = pods.agent_pod(spec, "a", 1, OperatorConfig())["spec"]["volumes"]
    assert "callback" not in {volume["name"] for volume in volumes}


def test_the_agent_is_told_and_sees_the_secret_as_files_that_it_can_do_without() -> None:
    spec = TableSpec.from_object(table(url=URL, secretRef={"name": "receiver"}, timeoutSeconds=5, tableServices=True))
    assert spec.callback == Callback(URL, "receiver", 5, table_services=True)
    assert agents.assignment(spec, 0)["callback"] == {
        "url": URL,
        "timeoutSeconds": 5,
        "secret": True,
        "tableServices": True,
    }
    pod = pods.agent_pod(spec, "a", 1, OperatorConfig())["spec"]
    (volume,) = (v for v in pod["volumes"] if v["name"] == "callback")
    assert (volume["secret"]["secretName"], volume["secret"]["optional"]) == ("receiver", True)
    assert [item["key"] for item in volume["secret"]["items"]] == ["bearerToken", "headers", "ca.crt"], (
        "not the token of a service account"
    )
    (container,) = pod["containers"]
    (mount,) = (m for m in container["volumeMounts"] if m["name"] == "callback")
    assert (mount["mountPath"], mount["readOnly"], "subPath" in mount) == ("/etc/hudi/callback", True, False)
    assert "receiver" not in str(container["env"]) + str(container["args"]) + str(container["envFrom"])


def test_tables_with_one_secret_share_an_agent_and_a_url_alone_changes_none() -> None:
    def agent(**callback: Any) -> str:
        return TableSpec.from_object(table(**callback)).agent_name("image")

    assert agent() == agent(url=URL)
    assert agent(url=URL, secretRef={"name": "a"}) == agent(url="https://example.com/other", secretRef={"name": "a"})
    assert len({agent(), agent(url=URL, secretRef={"name": "a"}), agent(url=URL, secretRef={"name": "b"})}) == 3


def test_a_callback_of_another_shape_is_refused_by_name() -> None:
    with pytest.raises(SpecError, match=r"spec.commitCallback.timeoutSeconds: expected int"):
        TableSpec.from_object(table(url=URL, timeoutSeconds="soon"))


def test_status_and_condition() -> None:
    assert condition(view(None, url=URL)) == ("Unknown", "NotReported", "the agent has not begun yet")
    good = view(REPORT, url=URL)
    assert condition(good) == ("True", "Delivered", "7 delivered")
    assert shown_of(good) == {
        "delivered": 7,
        "undelivered": 0,
        "failures": 0,
        "archivedUndelivered": 0,
        "lastInstant": "20260101000000000",
        "lastCompletionTime": "20260101000000500",
        "lastDeliveryTime": "2026-01-01T00:00:00Z",
    }
    bad = view(FAILING, url=URL)
    assert condition(bad) == (
        "False",
        "HTTP503",
        "example.com answered 503 (4 failures in a row); 3 commits wait since 2026-01-01T00:01:00Z",
    )
    assert shown_of(bad)["undeliveredSince"] == "2026-01-01T00:01:00Z"
    assert "5 were archived" in condition(view({**REPORT, "lost": 5}, url=URL))[2]
    assert condition(view({**FAILING, "reason": "not one word"}, url=URL))[1] == "NotDelivered"


def test_a_receiver_that_fails_is_an_event_once_and_metrics_follow() -> None:
    bad = view(FAILING, url=URL)
    (shown,) = callbacks.delivered(bad)
    told = {"type": shown.type, "status": shown.status, "reason": shown.reason, "message": shown.message}
    status = {"commitCallback": shown_of(bad), "conditions": [told]}
    obj = {**table(url=URL), "status": {}}
    (event,) = table_events.events(obj, status)
    assert (event.reason, event.message) == ("CallbackFailed", shown.message)
    assert table_events.events({**obj, "status": status}, status) == ()
    metrics, labels = Metrics(), {"namespace": "lake", "table": "orders"}

    def value(name: str) -> float | None:
        return metrics.registry.get_sample_value(f"hudi_operator_callback_{name}", labels)

    observed = replace(bad.observed, objects=Objects(obj))
    metrics.performed(observed, [act.UpdateStatus("HudiTable", "lake", "orders", "1", status)])
    assert (value("undelivered"), value("failures"), value("archived_undelivered")) == (3, 4, 0)
    assert value("undelivered_since_timestamp_seconds") == 1767225660
    metrics.performed(
        observed,
        [act.UpdateStatus("HudiTable", "lake", "orders", "1", {"commitCallback": shown_of(view(REPORT, url=URL))})],
    )
    assert (value("undelivered"), value("undelivered_since_timestamp_seconds")) == (0, 0)
    metrics.performed(observed, [act.UpdateStatus("HudiTable", "lake", "orders", "1", {})])
    assert value("undelivered") is None

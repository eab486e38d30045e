"""F245: what the API server does not make for one writer stops this writer, and says why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hudi_contract import naming
from tests.support.harness.operator_world import World
from tests.support.harness.servers import JsonDict, wait_for

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"


@contextmanager
def policy(world: World, *writers: str) -> Iterator[str]:
    """An admission policy of the cluster that lets no driver of these writers pass."""
    name = f"no-{world.namespace}"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    label = f"object.metadata.?labels[?'{naming.LABEL_WRITER}'].orValue('')"
    spec: JsonDict = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": f"!({label} in {list(writers)})", "message": "this team has no nodes"}],
    }
    selector = {"matchLabels": {"kubernetes.io/metadata.name": world.namespace}}
    bound = {"policyName": name, "validationActions": ["Deny"], "matchResources": {"namespaceSelector": selector}}
    world.cluster.request("POST", POLICIES, {"metadata": {"name": name}, "spec": spec})
    world.cluster.request("POST", BINDINGS, {"metadata": {"name": name}, "spec": bound})
    probe = {"metadata": {"name": "probe", "labels": {naming.LABEL_WRITER: writers[0]}}}
    probe |= {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "c", "image": "i"}]}}
    path = world.path("pods", group="/api/v1") + "?dryRun=All"

    def known() -> bool:
        try:
            world.cluster.request("POST", path, probe)
        except Exception as error:
            return "no nodes" in str(error)
        return False

    wait_for("the policy is known", known, seconds=60)
    try:
        yield name
    finally:
        world.cluster.request("DELETE", f"{BINDINGS}/{name}")
        world.cluster.request("DELETE", f"{POLICIES}/{name}")


def refused(world: World, name: str, *, status: str = "True") -> JsonDict:
    def find() -> JsonDict | None:
        found = world.condition("hudiwriters", name, "StartRefused")
        return found if found is not None and found["status"] == status else None

    return wait_for(f"{name} is refused: {status}", find, seconds=60)


def attempts(world: World, name: str) -> list[JsonDict]:
    found: list[JsonDict] = ((world.get("hudiwriters", name) or {}).get("status") or {}).get("attempts") or []
    return found


def test_a_policy_that_refuses_one_writer_stops_no_other(world: World) -> None:
    world.start_operator()
    world.running_table(maxWriters=8)
    with policy(world, "a-first", "b-second"):
        for name in ("a-first", "b-second"):
            world.writer(name)
            said = refused(world, name)
            assert said["reason"] == "AdmissionPolicy"
            assert "this team has no nodes" in said["message"]
        # Both are repeated now, before each other one.
        for name in ("c-third", "d-fourth"):
            world.writer(name)
            world.pod("driver", writer=name)
        refused(world, "a-first")
    for name in ("a-first", "b-second"):
        world.pod("driver", number=1, writer=name, seconds=180)
        refused(world, name, status="False")
        (entry,) = attempts(world, name)
        assert (entry["number"], entry.get("class")) == (1, None), "no retry was eaten"


@pytest.mark.parametrize("changed", ["quota", "suspended"])
def test_a_quota_is_waited_for(world: World, changed: str) -> None:
    world.start_operator()
    table_id, _, _ = world.running_table()
    quotas = world.path("resourcequotas", group="/api/v1")
    hard = {"count/pods": "1"}
    quota: JsonDict = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": hard}}
    made = world.cluster.request("POST", quotas, quota)
    # Nobody counts in this cluster.
    world.cluster.request("PUT", f"{quotas}/few/status", {**(made or {}), "status": {"hard": hard, "used": hard}})
    world.writer(retryPolicy={"limit": 0, "backoffSeconds": 1})
    said = refused(world, "load")
    assert said["reason"] == "QuotaExceeded"
    assert "exceeded quota: few" in said["message"]
    ready = world.condition("hudiwriters", "load", "Ready")
    assert ready is not None
    assert ready["status"] == "False"
    assert "exceeded quota: few" in ready["message"]
    if changed == "quota":
        world.cluster.request("DELETE", f"{quotas}/few")
        world.pod("driver", number=1, writer="load", seconds=180)
        refused(world, "load", status="False")
        return
    world.cluster.request(
        "PATCH", world.path("hudiwriters", "load"), {"spec": {"suspend": True}}, "application/merge-patch+json"
    )
    wait_for("its attempt is over", lambda: attempts(world, "load")[0].get("class") == "Cancelled", seconds=60)
    refused(world, "load", status="False")
    assert not world.etcd.read(f"/hudi/control/{table_id}/admit/{world.namespace}.load")

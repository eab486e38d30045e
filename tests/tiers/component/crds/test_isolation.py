"""Every promise of docs/operate/tenants.md, walked through in the name of its role.

The roles are those of examples/isolation/roles.yaml and of the chart; each cell of the page's table
is one request here.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from hudi_contract.defaults import CONFIG_MAP, KEY
from hudi_operator.api.references import ANNOTATION
from tests.support import ROOT, quick_yaml
from tests.tiers.component.crds.cluster import (
    Cluster,
    JsonDict,
    applied_executor,
    compared,
    table,
    wait_until,
    writer,
)

NAMESPACE = "lake"
EXAMPLE = ROOT / "examples" / "isolation" / "roles.yaml"
ROLES = {
    "viewer": ("Role", "hudi-viewer"),
    "writer author": ("Role", "hudi-writer-author"),
    "table author": ("Role", "hudi-table-author"),
    "`view`": ("ClusterRole", "view"),
    "`edit`": ("ClusterRole", "edit"),
    "`admin`": ("ClusterRole", "admin"),
    "attestor": ("ClusterRole", "hudi-operator-attestor"),
}
"""The columns of the page. An attestor edits tables, too."""
SECRET: JsonDict = {"secretRefs": [{"name": "lake-credentials", "as": "S3"}]}
OTHER: JsonDict = {"secretRefs": [{"name": "of-others", "as": "Env", "prefix": "APP_"}]}
PYTHON = {"python": {"configMapKeyRef": {"name": "code", "key": "a.py"}, "function": "f"}}
POD = "w-12345678-1-exec-1"
DEFAULTS: JsonDict = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"namespace": NAMESPACE, "name": CONFIG_MAP},
    "data": {KEY: "startDeadlineSeconds: 600"},
}


def _attested(user: str) -> JsonDict:
    entry = {
        "podUID": "0d3c0b54-6c0e-4c8e-9a55-7f2b9d1f0c11",
        "node": "n1",
        "statement": "powered off at the rack",
        "attestedBy": user,
        "at": "2026-01-01T00:00:00Z",
    }
    return {"spec": {"fencing": {"attestations": [entry]}}}


def _apply(obj: JsonDict) -> Any:
    return lambda user: (("apply", "--server-side", f"--field-manager={user}", "-f", "-"), quick_yaml.dump(obj))


def _patch(kind: str, name: str, patch: JsonDict) -> Any:
    return lambda user: (("patch", kind, name, "-n", NAMESPACE, "--type=merge", "-p", json.dumps(patch)), "")


def _can(verb: str, what: str, *more: str) -> Any:
    return lambda user: (("auth", "can-i", verb, what, "-n", NAMESPACE, *more), "")


ASKED: dict[str, Any] = {
    "see tables and writers": _can("list", "huditables.hudioperator.io"),
    "read the table's Secret": _can("get", "secrets/lake-credentials"),
    "create a table with the Secret": _apply(table(NAMESPACE, "mine", path="s3a://lake/mine", storage=SECRET)),
    "create a table with another Secret": _apply(table(NAMESPACE, "mine", path="s3a://lake/mine", storage=OTHER)),
    "create a table with another account": _apply(
        table(NAMESPACE, "mine", path="s3a://lake/mine", storage={"serviceAccountName": "rights"})
    ),
    "create a table with an image that is not allowed": _apply(table(NAMESPACE, "mine", image="evil:1")),
    "create a writer of the table": _apply(writer(NAMESPACE, "mine")),
    "create a writer with code": _apply(writer(NAMESPACE, "mine", source=PYTHON)),
    "create a writer with another account": _apply(writer(NAMESPACE, "mine", serviceAccountName="rights")),
    "create a writer with an image that is not allowed": _apply(writer(NAMESPACE, "mine", image="evil:1")),
    "create a writer of another table": _apply(writer(NAMESPACE, "mine", tableRef={"name": "orders"})),
    "suspend the table": _patch("huditable", "flights", {"spec": {"suspend": True}}),
    "fence by lease alone": _patch("huditable", "flights", {"spec": {"fencing": {"mode": "LeaseOnly"}}}),
    "roll back named instants": _patch(
        "huditable", "flights", {"spec": {"adoption": {"rollbackInstants": ["20260101000000000"]}}}
    ),
    "trust the deletion of nodes": _patch("huditable", "flights", {"spec": {"fencing": {"trustNodeDeletion": True}}}),
    "attest in their own name": lambda user: _patch("huditable", "flights", _attested(user))(user),
    "unfreeze the table": _patch(
        "huditable", "flights", {"metadata": {"annotations": {"hudioperator.io/unfreeze": "1"}}}
    ),
    "take the path of a table that is gone": _patch(
        "huditable", "flights", {"metadata": {"annotations": {"hudioperator.io/take-over": "1"}}}
    ),
    "write the table's status": _can("patch", "huditables.hudioperator.io", "--subresource=status"),
    "remove the evidence finalizer of a pod": _patch("pod", POD, {"metadata": {"finalizers": None}}),
    "change the labels of evidence": _patch("pod", POD, {"metadata": {"labels": {"hudioperator.io/role": "agent"}}}),
    "choose which tables may use a Secret": _patch(
        "secret", "of-others", {"metadata": {"annotations": {ANNOTATION: "mine"}}}
    ),
    "change an attempt's ConfigMap": _patch("configmap", "attempt", {"data": {"job.json": "{}"}}),
    "set the defaults of the namespace's writers": _apply(DEFAULTS),
    "read logs of pods": _can("get", "pods", "--subresource=log"),
    "start any pod": _can("create", "pods"),
    "run commands in a pod": _can("create", "pods", "--subresource=exec"),
    "delete a pod": _can("delete", "pods"),
    "change NetworkPolicies": _can("patch", "networkpolicies.networking.k8s.io"),
    "act as a driver": _can("create", "executors.hudioperator.io"),
    "see tables of another namespace": _can("list", "huditables.hudioperator.io", "-n", "default"),
    "read the operator's certificate for etcd": _can("get", "secrets/hudi-operator-etcd-operator", "-n", "hudi-system"),
    "read the certificate of etcd's root": _can("get", "secrets/hudi-operator-etcd-root", "-n", "hudi-system"),
    "read the key of etcd's authority": _can("get", "secrets/hudi-operator-etcd-ca", "-n", "hudi-system"),
}


def _page() -> dict[str, dict[str, str]]:
    """The table of the page: what is asked, and yes or no by role."""
    text = (ROOT / "docs" / "operate" / "tenants.md").read_text()
    rows = [[c.strip() for c in line.strip("| \n").split("|")] for line in text.splitlines() if line.startswith("|")]
    start = next(i for i, row in enumerate(rows) if row[0] == "may")
    names = rows[start][1:]
    found = {}
    for row in rows[start + 2 :]:
        if len(row) != len(names) + 1:
            break
        found[row[0]] = dict(zip(names, row[1:], strict=True))
    return found


@pytest.fixture(scope="module")
def lake(light_cluster: Cluster) -> Cluster:
    """The example, a table, another team's objects, and one user for each role."""
    light_cluster.kubectl("create", "namespace", NAMESPACE)
    wait_until(lambda: light_cluster.run("get", "serviceaccount", "default", "-n", NAMESPACE).returncode == 0)
    light_cluster.kubectl("apply", "-f", str(EXAMPLE))
    light_cluster.kubectl("create", "secret", "generic", "of-others", "-n", NAMESPACE)
    light_cluster.kubectl("create", "serviceaccount", "rights", "-n", NAMESPACE)
    light_cluster.apply(table(NAMESPACE, storage=SECRET), compared(NAMESPACE, "attempt"))
    applied_executor(light_cluster, NAMESPACE)
    for role, (kind, name) in ROLES.items():
        beside = ["hudi-operator-view", "hudi-operator-edit"] if role == "attestor" else []
        for bound in [(kind, name), *(("ClusterRole", other) for other in beside)]:
            _bind(light_cluster, _user(role), *bound)
    # Aggregation is a controller's work.
    wait_until(
        lambda: (
            light_cluster.run("auth", "can-i", "use", "secrets", "-n", NAMESPACE, f"--as={_user('`admin`')}")
            .stdout.strip()
            .endswith("yes")
        )
    )
    return light_cluster


def _bind(cluster: Cluster, user: str, kind: str, name: str) -> None:
    flag = "--role" if kind == "Role" else "--clusterrole"
    cluster.kubectl("create", "rolebinding", f"{user}-{name}", f"{flag}={name}", f"--user={user}", "-n", NAMESPACE)


def _user(role: str) -> str:
    return re.sub("[^a-z]+", "-", role.strip("`"))


def test_the_page_names_each_question_and_each_role() -> None:
    page = _page()
    assert list(page) == list(ASKED)
    assert all(list(answers) == list(ROLES) for answers in page.values())
    assert {answer for answers in page.values() for answer in answers.values()} == {"yes", "no"}


@pytest.mark.parametrize("role", ROLES)
def test_a_role_can_do_what_the_page_says(lake: Cluster, role: str) -> None:
    wrong = []
    for what, asked in ASKED.items():
        user = _user(role)
        command, stdin = asked(user)
        dry = [] if command[0] == "auth" else ["--dry-run=server"]
        done = lake.run(*command, *dry, f"--as={user}", stdin=stdin)
        answer = "yes" if done.returncode == 0 else "no"
        if answer != _page()[what][role]:
            wrong.append(f"{what}: the page says {_page()[what][role]}, it is {answer}: {done.stdout.strip()[:300]}")
    assert not wrong, "\n".join(wrong)


def test_a_quota_bounds_the_number_of_tables(light_cluster: Cluster, author: str) -> None:
    """By Kubernetes' object count. The controller that counts what is there does not run here: its
    first count is written by the test, and from then on the API server counts by itself.
    """
    hard = {"count/huditables.hudioperator.io": "1"}
    quota: JsonDict = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "tables", "namespace": author},
        "spec": {"hard": hard},
    }
    light_cluster.apply(quota)
    counted = json.dumps({"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}})
    light_cluster.kubectl(
        "patch", "resourcequota/tables", "-n", author, "--subresource=status", "--type=merge", "-p", counted
    )
    wait_until(
        lambda: (
            "exceeded quota"
            in light_cluster.run(
                "apply",
                "-f",
                "-",
                stdin=quick_yaml.dump_all(
                    [table(author, name=name, path=f"s3a://lake/{name}") for name in ("one", "two")]
                ),
            ).stdout
        )
    )
    said = light_cluster.refused(table(author, name="three", path="s3a://lake/three"), user="ann")
    assert "exceeded quota: tables, requested: count/huditables.hudioperator.io=1" in said, said
    assert len(light_cluster.get("huditables", "-n", author)["items"]) == 1

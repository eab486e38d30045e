"""The console in front of a real API server: what RBAC lets each of two users see, and that it is
live.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness.console_process import Console, console
from tests.tiers.component.crds.cluster import Cluster, table, wait_until, writer

JsonDict = dict[str, Any]


@pytest.fixture
def page(light_cluster: Cluster, tmp_path: Path) -> Iterator[Console]:
    config = light_cluster.get_config()
    with console(config["server"], config["ca"], tmp_path / "log") as found:
        yield found


def token(cluster: Cluster, namespace: str, name: str, *everywhere: str) -> str:
    """Of a ServiceAccount that may view one namespace, or all."""
    cluster.kubectl("create", "serviceaccount", name, "-n", namespace)
    kind, where = ("clusterrolebinding", ()) if everywhere else ("rolebinding", ("-n", namespace))
    account = f"--serviceaccount={namespace}:{name}"
    cluster.kubectl("create", kind, f"{namespace}-{name}", "--clusterrole=view", account, *where)
    return cluster.kubectl("create", "token", name, "-n", namespace).strip()


def tell(cluster: Cluster, namespace: str, kind: str, name: str, **status: Any) -> None:
    told = json.dumps({"status": {"observedGeneration": 1, **status}})
    cluster.kubectl("patch", kind, name, "-n", namespace, "--subresource=status", "--type=merge", "--patch", told)


def names(found: JsonDict) -> set[tuple[str, str]]:
    return {(row["namespace"], row["name"]) for row in found["rows"]}


def at(ago: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ago))


def test_each_user_sees_what_rbac_gives_them(light_cluster: Cluster, namespace: str, page: Console) -> None:
    other = f"{namespace}-other"
    light_cluster.kubectl("create", "namespace", other)
    light_cluster.apply(table(namespace), table(other, "orders"), writer(other, "live", tableRef={"name": "orders"}))
    all_of_it, own = token(light_cluster, namespace, "admin", "everywhere"), token(light_cluster, other, "viewer")
    wait_until(lambda: page.get(f"/api/v1/tables?namespace={other}", own)[0] == 200)
    wait_until(lambda: page.get("/api/v1/tables", all_of_it)[0] == 200)

    assert names(page.get("/api/v1/tables", all_of_it)[1]) >= {(namespace, "flights"), (other, "orders")}
    status, found = page.get("/api/v1/tables", own)
    assert status == 403
    assert f'User "system:serviceaccount:{other}:viewer" cannot list resource "huditables"' in found["error"]["message"]
    assert names(page.get(f"/api/v1/tables?namespace={other}", own)[1]) == {(other, "orders")}
    for path in (f"/api/v1/tables?namespace={namespace}", f"/api/v1/tables/{namespace}/flights"):
        assert page.get(path, own)[0] == 403
    assert page.get(f"/api/v1/writers/{other}/live", own)[1]["writer"]["tableExists"] is True
    assert page.get("/api/v1/tables", "no.such.token")[0] == 401

    with page.open(f"/api/v1/tables/{other}/orders?watch=true", own) as stream:
        assert json.loads(stream.readline())["queue"] == []
        tell(
            light_cluster, other, "hw", "live", state="Waiting", queue={"position": 1, "since": at(5), "blockedBy": "x"}
        )
        found = json.loads(stream.readline())
        assert [one["name"] for one in found["queue"]] == ["live"]
        assert "for admission as number 1: x" in found["writers"][0]["why"]
    with page.open(f"/api/v1/tables?watch=true&namespace={other}", own) as stream:
        assert names(json.loads(stream.readline())) == {(other, "orders")}
        light_cluster.apply(table(other, "later", path="s3a://lake/later"))
        assert names(json.loads(stream.readline())) == {(other, "later")}
        light_cluster.kubectl("delete", "ht", "later", "-n", other)
        assert json.loads(stream.readline())["gone"] == [[other, "later"]]

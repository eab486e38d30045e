"""Two namespaces name one path in the storage: it is served for the one whose credentials reach it.
The other one came first, and never has the path's gate (F191, F617).

Operator, API server, etcd, S3, agents and driver are real.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hudi_contract import naming
from tests.support.harness.local import rows
from tests.support.harness.local_kubelet import Kubelet
from tests.support.harness.operator_world import World
from tests.support.harness.servers import Cluster, Etcd, wait_for
from tests.support.harness.together import LONG, Together

pytestmark = [pytest.mark.extra, pytest.mark.timeout(1200)]

Both = tuple[Together, World]


@pytest.fixture
def both(cluster: Cluster, etcd: Etcd, tmp_path: Path) -> Iterator[Both]:
    """The owner's namespace, and the squatter's, whose keys the storage refuses; one operator."""
    suffix = os.urandom(2).hex()
    owner = Together(cluster, etcd, tmp_path, f"owner-{suffix}")
    (tmp_path / "squatter").mkdir()
    squatter = World(cluster, etcd, tmp_path / "squatter", f"squatter-{suffix}")
    data = {"accessKeyId": "AKIDNOBODY", "secretAccessKey": "wrong"}
    secret = {"metadata": {"name": "lake"}, "stringData": data}
    cluster.request("POST", f"/api/v1/namespaces/{squatter.namespace}/secrets", secret)
    kubelet = Kubelet(cluster, squatter.namespace, tmp_path / "squatters-pods", node=f"node-of-{squatter.namespace}")
    owner.world.settings = {"watchNamespaces": [owner.namespace, squatter.namespace]}
    try:
        owner.start()
        kubelet.start()
        yield owner, squatter
    finally:
        print(owner.told())  # pytest shows it when the test has failed
        print(*(f"---- {one.name}\n{one.process.log()[-3000:]}" for one in kubelet.running.values()))
        kubelet.close()
        owner.close()


def test_who_does_not_reach_the_path_gives_it_to_who_does(both: Both) -> None:
    owner, squatter = both
    path, later = owner.path("flights"), {"lock": {"leaseSeconds": 20}}
    storage = {
        "secretRefs": [{"name": "lake", "as": "S3"}],
        "options": {
            "fs.s3a.endpoint": owner.endpoint,
            "fs.s3a.endpoint.region": "us-east-1",
            "fs.s3a.path.style.access": "true",
            "fs.s3a.connection.ssl.enabled": "false",
        },
    }
    taken = squatter.table("flights", path=path, partitionFields=["p"], storage=storage, **later)

    def reasons(world: World) -> set[str]:
        status = (world.get("huditables", "flights") or {}).get("status") or {}
        return {condition["reason"] for condition in status.get("conditions", ())}

    def owned_by() -> str:
        found = owner.etcd.read(f"/hudi/control/{taken}/gate")
        return "".join(gate["table"].partition("/")[0] for gate in found.values())

    wait_for("the squatter is refused", lambda: "StorageUnreachable" in reasons(squatter), seconds=LONG)
    assert owned_by() == ""
    assert owner.table("flights") == taken, "one path, one table"
    owners = {owned_by()}

    def served() -> bool:
        owners.add(owned_by())
        return bool(owner.true("huditables", "flights", "Ready"))

    wait_for("the owner is served", served, seconds=LONG)
    assert owners == {"", owner.namespace}
    due = rows(range(10), "a", "one", 1)
    owner.wrote("load", "flights", due)
    assert owned_by() == owner.namespace
    wait_for("the squatter is told", lambda: "DuplicatePath" in reasons(squatter), seconds=LONG)
    assert not trials(owner, squatter), "nothing is left of either trial"
    owner.audited("flights", due)
    owner.conform("flights")


def trials(owner: Together, squatter: World) -> list[str]:
    """Keys of the trials of both HudiTables."""
    found = list[str]()
    for world in (owner.world, squatter):
        id = naming.trial_id((world.get("huditables", "flights") or {})["metadata"]["uid"])
        for part in ("control", "tables"):
            found += owner.etcd.read(f"/hudi/{part}/{id}/")
    return found

"""What a user does and sees: tables, writers, `kubectl get` and `kubectl wait`, refusals."""

from __future__ import annotations

import subprocess
import time
from typing import Any

from demo import cluster, world
from demo.cluster import kubectl
from demo.lake import moment

from tests.support.cluster.space import OPERATOR_NAMESPACE, Space, wait_for, written


def test_table_and_writer(space: Space) -> None:
    space.table("plain")
    space.writer("once", "plain", batches=2, rows=20)
    space.wait("huditable/plain", "Ready", seconds=300)
    space.wait("hudiwriter/once", "Finished", seconds=300)
    writer = space.get("hudiwriter", "once")
    assert cluster.is_true(writer, "Succeeded"), writer["status"]
    assert writer["status"]["records"] == 40
    done = [i for i in space.lake.timeline(space.path("plain")) if i.completed]
    assert len(done) == 2
    last = max(done, key=lambda i: i.completed)
    shown = writer["status"]["lastCommit"]
    assert (shown["instant"], shown["completionTime"]) == (last.requested, last.completed), (
        "its start and its end, as the timeline has them"
    )
    assert shown["time"].startswith(moment(last.completed).strftime("%Y-%m-%dT%H:%M:%S"))
    table = wait_for("both commits in the table's status", lambda: _commits(space, "plain", 2), seconds=60)
    assert [(c["writer"], c["records"]) for c in table] == [(f"{space.namespace}/once", 20)] * 2
    published = kubectl(
        "get",
        "events",
        "-n",
        space.namespace,
        "--field-selector=reason=Committed",
        "-o",
        "jsonpath={.items[*].message}",
    )
    assert published == "", "commits are in status and no events (F250)"
    space.audited("plain", written(batches=2, rows=20))
    lines = [line for line in kubectl("get", "hudi", "-n", space.namespace).splitlines() if line.strip()]
    assert any(line.split()[0].endswith("/plain") and "True" in line for line in lines), lines
    assert any(line.split()[0].endswith("/once") and "Succeeded" in line for line in lines), lines


def test_two_writers_bring_the_same_new_keys(space: Space) -> None:
    """Each finds no file when it looks for its keys, and would write one of its own: the later
    commit is refused, and its repetition updates what the earlier one has inserted (I13).
    """
    space.table("newkeys")
    space.wait("huditable/newkeys", "Ready", seconds=300)
    space.writer("slow-keys", "newkeys", rows=20, delay=3, add=1, operation="Upsert")
    wait_for("its instant", lambda: space.instants("slow-keys") or None, seconds=120)
    space.writer("quick-keys", "newkeys", rows=20, operation="Upsert")
    space.wait("hudiwriter/quick-keys", "Finished", seconds=200)
    assert cluster.is_true(space.get("hudiwriter", "quick-keys"), "Succeeded")
    assert not cluster.is_true(space.get("hudiwriter", "slow-keys"), "Finished"), "they did not meet"
    space.wait("hudiwriter/slow-keys", "Finished", seconds=400)
    writer = space.get("hudiwriter", "slow-keys")
    assert cluster.is_true(writer, "Succeeded"), writer["status"]
    assert writer["status"]["conflicts"] >= 1, writer["status"]
    due = written(batches=1, rows=20, add=1)
    space.audited("newkeys", due)
    space.read_by_own_rows("newkeys", due)


def _commits(space: Space, table: str, number: int) -> list[dict[str, Any]]:
    found = (space.get("huditable", table)["status"].get("timeline") or {}).get("commits") or []
    return found if len(found) >= number else []


def test_audit_as_a_job(space: Space) -> None:
    """The audit of docs/operate/operations.md, in the image, with the keys that a pod may read: ok
    for a good table, exit code 1 after damage.
    """
    if not cluster.exists("huditable", "plain", "-n", space.namespace):
        space.table("plain")
        space.writer("once", "plain", batches=2, rows=20)
        space.wait("hudiwriter/once", "Finished", seconds=300)
    job = (cluster.ROOT / "examples" / "flights" / "audit.yaml").read_text()
    job = job.replace("namespace: flights", f"namespace: {space.namespace}").replace(
        "s3a://lake/flights", f"s3a://{space.path('plain')}"
    )
    cluster.apply(job)
    kubectl(
        "wait", "-n", space.namespace, "--for=condition=Complete", "job/audit-flights", "--timeout=300s", timeout=310
    )
    said = kubectl("logs", "-n", space.namespace, "job/audit-flights")
    assert f"s3a://{space.path('plain')}: ok" in said, said
    kubectl("delete", "job", "audit-flights", "-n", space.namespace, "--wait=true")
    space.lake.mark(f"{space.path('plain')}/p/00000000-0000-0000-0000-000000000000-0_0-1-1_20250101000000000.parquet")
    cluster.apply(job)
    kubectl("wait", "-n", space.namespace, "--for=condition=Failed", "job/audit-flights", "--timeout=300s", timeout=310)
    said = kubectl("logs", "-n", space.namespace, "job/audit-flights")
    assert "there is no instant 20250101000000000" in said, said
    kubectl("delete", "job", "audit-flights", "-n", space.namespace, "--wait=true")
    space.lake.remove(f"{space.path('plain')}/p/00000000-0000-0000-0000-000000000000-0_0-1-1_20250101000000000.parquet")


def test_wrong_credentials_are_told_within_a_minute(space: Space) -> None:
    world.secret(space.namespace, "wrong", {"accessKeyId": "AKWRONG", "secretAccessKey": "not-the-key-at-all"})
    begin = time.monotonic()
    table = space.table("locked", apply=False)
    table["spec"]["storage"]["secretRefs"] = [{"name": "wrong", "as": "S3"}]
    space.table("locked", storage=table["spec"]["storage"])

    def unreachable() -> dict[str, str] | None:
        condition = space.condition("huditable", "locked", "Ready")
        return condition if condition.get("reason") == "StorageUnreachable" else None

    condition = wait_for("StorageUnreachable", unreachable, seconds=60)
    assert condition["status"] == "False"
    assert "not-the-key-at-all" not in condition["message"]
    print(f"StorageUnreachable after {time.monotonic() - begin:.0f} s: {condition['message']}")
    kubectl("delete", "huditable", "locked", "-n", space.namespace, "--timeout=60s")


def test_writer_for_a_missing_table_waits_and_says_so(space: Space) -> None:
    space.writer("early", "nowhere")

    def waiting() -> dict[str, str] | None:
        condition = space.condition("hudiwriter", "early", "Admitted")
        return condition if condition.get("status") == "False" else None

    condition = wait_for("Admitted=False", waiting, seconds=20)
    assert "nowhere" in condition["message"], condition
    assert not space.drivers("early")
    kubectl("delete", "hudiwriter", "early", "-n", space.namespace, "--timeout=30s")


def test_second_table_on_one_path_is_stalled(space: Space) -> None:
    if not cluster.exists("huditable", "plain", "-n", space.namespace):
        space.table("plain")
        space.wait("huditable/plain", "Ready", seconds=300)
    space.table("twin", path=f"s3://{space.path('plain')}/")

    def stalled() -> dict[str, str] | None:
        condition = space.condition("huditable", "twin", "Stalled")
        return condition if condition.get("status") == "True" else None

    assert wait_for("Stalled", stalled, seconds=30)["reason"] == "DuplicatePath"
    assert cluster.is_true(space.get("huditable", "plain"), "Ready")
    kubectl("delete", "huditable", "twin", "-n", space.namespace, "--timeout=60s")


def test_etcd_and_storage_survive_the_end_of_their_pods(space: Space) -> None:
    space.lake.mark("e2e/survivor")
    kubectl("delete", "pod", "-n", "storage", "-l", "app.kubernetes.io/name=s3", "--wait=true")
    kubectl("rollout", "status", "deployment/s3", "-n", "storage", "--timeout=60s")

    def there() -> bool:
        try:
            return space.lake.exists("e2e/survivor")
        except OSError:
            return False

    # A request on a connection to the old pod is given up after its own time first
    wait_for("the object after the restart", there, seconds=120)
    key = "/hudi/tables/00000000000000000000000000000000/done/e2e"
    space.watch.ask("put", key, "{}")
    kubectl("delete", "pod", "hudi-operator-etcd-0", "-n", OPERATOR_NAMESPACE, "--wait=true")
    kubectl("wait", "--for=create", "pod/hudi-operator-etcd-0", "-n", OPERATOR_NAMESPACE, "--timeout=60s")
    kubectl("wait", "--for=condition=Ready", "pod/hudi-operator-etcd-0", "-n", OPERATOR_NAMESPACE, "--timeout=60s")

    def kept() -> bool:
        try:
            return "{}" in space.watch.ask("get", key)
        except subprocess.CalledProcessError:
            return False

    wait_for("the key after the restart", kept, seconds=30)
    space.watch.ask("del", key)

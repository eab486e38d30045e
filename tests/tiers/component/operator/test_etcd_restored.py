"""A backup of a real etcd is restored by the commands of `kubectl hudi etcd restore`: the cluster
is the one that tables know, and nobody acts on what it has forgotten.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_kubectl.release import Etcd
from hudi_kubectl.restoring import BUMP, Wanted
from hudi_kubectl.restoring import pod as pod_of
from hudi_operator.etcd_upkeep import members as of
from hudi_operator.etcd_upkeep import snapshot
from hudi_operator.plan.gate.trust import UNFREEZE_ANNOTATION
from tests.support import CACHE
from tests.support.awaited import run
from tests.support.harness.etcd_members import Members, answers
from tests.support.harness.replica import Replica, T, agent_reports, huditable, stalled
from tests.support.harness.servers import ENVIRONMENT, wait_for

JsonDict = dict[str, Any]
TOKEN = "hudi-operator-etcd.ns"
DEAD = "00000000-0000-4000-8000-00000000dead"
UTL = CACHE / "bin/etcdutl"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Members]:
    made = Members(tmp_path, f"--initial-cluster-token={TOKEN}")
    try:
        yield made
    finally:
        made.stop()


def release(cluster: Members) -> Etcd:
    """The release's etcd, as its StatefulSet describes these members."""
    args = [
        "--data-dir=/var/lib/etcd/data",
        "--initial-advertise-peer-urls=$(POD_NAME)",
        f"--initial-cluster={cluster.initial}",
        f"--initial-cluster-token={TOKEN}",
    ]
    container = {"name": "etcd", "image": "e", "args": args, "volumeMounts": [{"name": "data", "mountPath": "/x"}]}
    labels = {"app.kubernetes.io/instance": "r"}
    template = {"spec": {"containers": [container]}}
    return Etcd({"metadata": {"name": "e", "labels": labels}, "spec": {"template": template}}, {"image": "o"})


def here(word: str, places: dict[str, str]) -> str:
    for old, new in places.items():
        word = word.replace(old, new)
    return word


def perform(cluster: Members, number: int, count: int, backup: Path) -> None:
    """What the pod of a member runs, in its folder."""
    pod = pod_of(release(cluster), number, count, Wanted("claim", backup.name))
    member = cluster.all[number]
    places = {
        "/var/lib/etcd/data": str(member.directory / "data"),
        "/backup/": f"{backup.parent}/",
        "/usr/local/bin/etcdutl": str(UTL),
        f"--initial-advertise-peer-urls=e{number}": f"--initial-advertise-peer-urls={member.peer}",
    }
    for step in (*pod["spec"]["initContainers"], *pod["spec"]["containers"]):
        command = [sys.executable if word == "python" else here(word, places) for word in step["command"]]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr


def inside(backup: Path) -> JsonDict:
    command = [str(UTL), "snapshot", "status", str(backup), "--write-out=json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def clusters(cluster: Members) -> set[str]:
    return {f"{member.cluster_id:x}" for member in of.look(cluster.config())}


def beats(replica: Replica) -> bool:
    run(replica.pulse.beat())
    return True


@pytest.mark.parametrize("count", [1, 3])
def test_nobody_acts_on_what_a_restored_etcd_has_forgotten(cluster: Members, tmp_path: Path, count: int) -> None:
    cluster.begin(count)
    etcd, table = cluster.all[0], huditable()
    first = Replica(etcd, table, {})
    first.until("closed")
    agent_reports(etcd)
    first.until("open")
    run(first.pulse.beat())
    lease = etcd.ctl("root", "lease", "grant", "5").stdout.split()[1]
    etcd.put(f"/hudi/tables/{T}/writer/{DEAD}", {"inc": DEAD, "attempt": "ns.one", "role": "writer", "podUID": "u"})
    etcd.put(f"/hudi/tables/{T}/alive/{DEAD}", {"inc": DEAD, "n": 1}, lease=lease)
    etcd.put(f"/hudi/tables/{T}/lock", {"inc": DEAD})

    report = snapshot.save(cluster.config(), tmp_path)
    backup = tmp_path / report["file"]
    looked = inside(backup)
    assert (looked["revision"], looked["totalKey"]) == (report["revision"], report["keys"])
    before = run(first.store.read_table(T, "agent-x"))
    assert release(cluster).cluster_id(count) == before.cluster_id == report["cluster_id"]

    # After the backup its owner was fenced, and its lock deleted.
    settle = {"phase": "Fenced", "reason": "PodTerminated", "times": {}}
    assert run(first.store.fence(T, inc=DEAD, attempt="", settle=settle, if_not_alive=False))
    assert before.lock is not None
    assert run(first.store.unlock(T, inc=DEAD, create_revision=before.lock.create_revision))
    run(first.pulse.beat())
    notes, last = first.notes.write(), etcd.revision()
    first.close()
    cluster.stop()

    for number in range(count):
        perform(cluster, number, count, backup)
        kept = list(cluster.all[number].directory.glob("data.before-*"))
        assert len(kept) == 1, "the old data is kept"
    for member in cluster.all:
        member.start()
    for member in cluster.all:
        wait_for("it answers", lambda each=member: answers(each))
    assert clusters(cluster) == {before.cluster_id}, "the one that markers name"
    assert etcd.revision() >= last + BUMP // 2, "no revision is given twice"
    old = etcd.ctl("root", "get", f"/hudi/control/{T}/gate", f"--rev={last}")
    assert "compacted" in old.stderr, "no watch goes on as if nothing had happened"
    assert "permission denied" in etcd.ctl("gateway", "put", f"/hudi/control/{T}/gate", "x").stderr

    second = Replica(etcd, table, notes)
    found = run(second.store.read_table(T, "agent-x"))
    assert not found.fences, "the fence is forgotten"
    assert found.lock is not None, "and the lock that was deleted is back"
    assert found.gate is not None
    assert found.gate.value["state"] == "open", "and the gate is open: without the pulse anybody may act"
    assert second.look() == "frozen"
    second.look()
    assert "knows nothing any more of its revision" in stalled(table)["message"]
    wait_for("heartbeats run out", lambda: not run(second.store.read_table(T, "agent-x")).alive.get(DEAD))
    second.unlock_dead()
    word = re.search(rf"{UNFREEZE_ANNOTATION}=([\d-]+)", stalled(table)["message"])
    assert word is not None
    table["metadata"]["annotations"] = {UNFREEZE_ANNOTATION: word[1]}
    second.until("open")
    assert beats(second)
    assert second.look() == "open"
    second.close()


def test_a_damaged_backup_makes_no_member(cluster: Members, tmp_path: Path) -> None:
    cluster.begin(1)
    backup = tmp_path / snapshot.save(cluster.config(), tmp_path)["file"]
    cluster.stop()
    content = bytearray(backup.read_bytes())
    content[len(content) // 2] ^= 1
    backup.write_bytes(content)
    with pytest.raises(AssertionError, match="expected sha256"):
        perform(cluster, 0, 1, backup)

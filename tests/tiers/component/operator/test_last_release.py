"""From the last release (the commit in `hack/last-release`) to this code and back, while writers
commit: CRDs, stored objects, the operator, and sessions of both releases at one table.

Real: API server, etcd, both operators, sessions of both Java modules. Played: the kubelet, and the
agent. Pods of both releases with Spark and the gateway are not here.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT, quick_yaml
from tests.support.harness import released
from tests.support.harness.operator_world import Operator, World
from tests.support.harness.servers import Cluster, Etcd, wait_for
from tests.support.harness.writer_process import WriterProcess

pytestmark = [pytest.mark.extra, pytest.mark.timeout(900)]

LOCK = {"leaseSeconds": 10, "keepAliveSeconds": 2, "rpcTimeoutSeconds": 2}
KINDS = {"HudiTable": "huditables", "HudiWriter": "hudiwriters"}


@pytest.fixture
def before(tmp_path: Path) -> Iterator[Cluster]:
    """A cluster with the CRDs of the last release."""
    with released.cluster(tmp_path / "cluster", released.files() / "crds") as made:
        yield made


@pytest.fixture
def world(before: Cluster, etcd: Etcd, tmp_path: Path) -> Iterator[World]:
    (tmp_path / "world").mkdir()
    made = World(before, etcd, tmp_path / "world", "upgraded")
    try:
        yield made
    finally:
        made.close()
        print(made.logs())


def leads(operator: Operator) -> Operator:
    wait_for("it leads", lambda: operator.leading, seconds=30)
    return operator


def attempts(world: World) -> dict[str, int]:
    """Number of pods of each writer."""
    found: dict[str, int] = {}
    for pod in world.pods("driver"):
        name = pod["metadata"]["labels"]["hudioperator.io/writer"]
        found[name] = found.get(name, 0) + 1
    return found


def undisturbed(world: World, table_id: str, *running: WriterProcess) -> None:
    """Everybody commits, nobody is suspected, no attempt was wasted."""
    for writers in running:
        writers.commit_on(3)
        assert writers.together == 0
        assert not any("halted" in one for one in writers.writers().values()), writers.writers()
    assert world.etcd.read(f"/hudi/tables/{table_id}/settle/") == {}
    assert set(attempts(world).values()) == {1}, attempts(world)
    gate = world.etcd.read(f"/hudi/control/{table_id}/gate")[f"/hudi/control/{table_id}/gate"]
    assert gate["state"] == "open", gate


def test_writers_commit_through_an_upgrade_and_back(world: World) -> None:
    """Old → new → old → new operator; writers of the old release run all the time, one of the new
    release comes, and one of the old is settled by whoever leads.
    """
    old, module = released.environment(), released.lock_module()
    first = leads(world.start_operator(**old))
    table_id, _, _ = world.running_table(lock=LOCK)
    pods: dict[str, dict[str, Any]] = {}
    for name in ("one", "two"):
        world.writer(name)
        pods[name] = world.pod("driver", number=1, writer=name)
        world.run_pod(pods[name])
    theirs = WriterProcess(world.etcd, world.directory, table_id, pods, module=module)
    undisturbed(world, table_id, theirs)

    # As `helm upgrade` does: the CRDs, then a second pod, then the end of the first one.
    released.apply_crds(world.cluster, ROOT / "crds")
    undisturbed(world, table_id, theirs)
    second = world.start_operator()
    assert not second.leading
    committed = theirs.committed()
    first.kill(signal.SIGTERM)
    leads(second)
    undisturbed(world, table_id, theirs)
    assert theirs.committed() > committed
    world.writer("three")
    pods["three"] = world.pod("driver", number=1, writer="three")
    world.run_pod(pods["three"])
    ours = WriterProcess(world.etcd, world.directory, table_id, {"three": pods["three"]})
    undisturbed(world, table_id, theirs, ours)

    # Back, with the new CRDs and what the new operator has written; the new one is killed.
    third = world.start_operator(**old)
    second.kill()
    leads(third)
    undisturbed(world, table_id, theirs, ours)
    ready(world)
    theirs.kill()  # both of its writers die, and lose what they had begun
    for name in ("one", "two"):
        world.end_pod(pods[name], exit_code=137)
    settled(world, table_id, theirs)
    third.kill(signal.SIGTERM)
    leads(world.start_operator())
    for name in ("one", "two"):
        world.run_pod(world.pod("driver", number=2, writer=name))
    ours.commit_on(3)
    ready(world)
    ours.kill()
    world.end_pod(pods["three"], exit_code=137)
    settled(world, table_id, ours)


def ready(world: World) -> None:
    wait_for(
        "Ready",
        lambda: (c := world.condition("huditables", "flights", "Ready")) and c["status"] == "True",
        seconds=60,
    )


def settled(world: World, table_id: str, dead: WriterProcess) -> None:
    """Its incarnations are settled, and the lock is free."""
    prefix, left = f"/hudi/tables/{table_id}/settle/", {one["inc"] for one in dead.writers().values()}

    def step() -> bool:
        records = {key.removeprefix(prefix): value for key, value in world.etcd.read(prefix).items()}
        for inc, record in records.items():
            if record["phase"] == "RollingBack":
                world.sweep(table_id, inc)
            elif record["phase"] == "Settled":
                left.discard(inc)
        return not left

    wait_for("settled", step, seconds=90)
    wait_for("the lock is free", lambda: not world.etcd.read(f"/hudi/tables/{table_id}/lock"), seconds=30)


def test_objects_of_the_last_release_stay_what_they_were(before: Cluster) -> None:
    """Each of its examples, stored under its CRDs: nothing is pruned by the new ones, and a new
    object with the same spec is accepted.
    """
    before.kubectl("create", "namespace", "kept")
    stored = {}
    for path in sorted((released.files() / "examples").rglob("*.yaml")):
        for number, obj in enumerate(one for one in quick_yaml.load_all(path.read_text()) if one):
            if obj["kind"] not in KINDS or not str(obj["apiVersion"]).startswith("hudioperator.io/"):
                continue
            obj["metadata"] = {"name": f"{path.parent.name}-{path.stem}-{number}", "namespace": "kept"}
            made = json.loads(before.kubectl("create", "-o", "json", "-f", "-", stdin=json.dumps(obj)))
            stored[obj["kind"], obj["metadata"]["name"]] = made["spec"]
    assert len(stored) > 40
    released.apply_crds(before, ROOT / "crds")
    for (kind, name), spec in stored.items():
        found = json.loads(before.kubectl("get", KINDS[kind], name, "-n", "kept", "-o", "json"))
        missing = lost(spec, found["spec"])
        assert not missing, f"{kind} {name}: the new CRDs do not know {missing}"
        again = {"apiVersion": found["apiVersion"], "kind": kind, "spec": spec}
        again["metadata"] = {"name": f"{name}-again", "namespace": "kept"}
        before.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(again))


def lost(old: Any, new: Any, at: str = "spec") -> list[str]:
    """Fields that had a value and have another one, or none."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [one for key, value in old.items() for one in lost(value, new.get(key), f"{at}.{key}")]
    return [] if old == new else [at]

"""Storage keys that change in their Secret while pods run, through a kubelet: drivers, executors
and agents have the new ones within two minutes, without a restart.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from demo import cluster, world
from demo.lake import Lake
from demo.protocol import Watch

from tests.support.cluster.node import HOST, NodeLogs
from tests.support.cluster.scene import executors
from tests.support.cluster.space import Space, make_space, wait_for, written
from tests.support.evidence import measured
from tests.support.harness.local import ACCESS_KEY, SECRET_KEY
from tests.support.harness.s3_users import Users

pytestmark = [pytest.mark.extra, pytest.mark.timeout(900)]

ROTATING, SECRET = "e2e-rotating", "keys"
WITHIN = 120
"""Seconds from the change of the Secret to the use of its keys, which the project promises."""
BATCHES, ROWS = 12, 40


@pytest.fixture
def users(installed: None, tmp_path: Path) -> Iterator[Users]:
    """An S3 server on this machine that refuses a removed user at once."""
    files = tmp_path / "files"
    (files / "e2e").mkdir(parents=True)
    found = Users(tmp_path, files, host=HOST)
    yield found
    found.stop()


@pytest.fixture
def rotating(users: Users, watch: Watch, operator_logs: NodeLogs) -> Iterator[Space]:
    found = make_space(ROTATING, Lake(users.url, ACCESS_KEY, SECRET_KEY), watch)
    found.endpoint = users.url
    found.logs.start()
    yield found
    found.logs.stop()
    cluster.kubectl("delete", "namespace", ROTATING, "--wait=false")


def rotate(users: Users, name: str) -> float:
    """The Secret has the keys of a new user; the time of it."""
    users.add(name)
    world.secret(ROTATING, SECRET, {"accessKeyId": name, "secretAccessKey": f"secret-of-{name}"})
    return time.monotonic()


def test_rotated_keys_reach_drivers_executors_and_agents(
    users: Users, rotating: Space, operator_logs: NodeLogs
) -> None:
    rotate(users, "first")
    spec: dict[str, Any] = rotating.table("rotated", apply=False)["spec"]
    rotating.table("rotated", storage={**spec["storage"], "secretRefs": [{"name": SECRET, "as": "S3"}]})
    executor = {"instances": 1, "memory": "512Mi", "resources": {"requests": {"cpu": "50m"}}}
    rotating.writer("long", "rotated", batches=BATCHES, rows=ROWS, delay=0.25, executors=executor)
    _, driver = rotating.wait_inflight("long", "rotated")
    pods = [driver, *wait_for("an executor", lambda: executors(rotating, driver) or None, seconds=60)]
    pods += [
        pod["metadata"]["name"] for pod in cluster.items("pods", "-n", ROTATING, "-l", "hudioperator.io/role=agent")
    ]
    assert len(pods) == 3
    changed = rotate(users, "second")
    seconds: dict[str, float] = {}

    def all_say_so() -> bool:
        for pod in pods:
            if (
                pod not in seconds
                and "S3 credentials have changed" in (rotating.logs.directory / f"{pod}.log").read_text()
            ):
                seconds[pod] = time.monotonic() - changed
        return len(seconds) == len(pods)

    wait_for("all three processes to have the new keys", all_say_so, seconds=WITHIN, every=0.2)
    users.remove("first")
    rotating.wait("hudiwriter/long", "Succeeded", seconds=400)
    assert [pod["metadata"]["name"] for pod in rotating.drivers("long")] == [driver], "one attempt, to its end"
    rotating.audited("rotated", written(batches=BATCHES, rows=ROWS))
    # Keys that nobody accepts are a condition, and right ones end it: no restart, nobody's doing.
    users.remove("second")

    def ready(status: str) -> dict[str, str] | None:
        found = rotating.condition("huditable", "rotated", "Ready")
        return found if found.get("status") == status else None

    refused = wait_for("the table to say so", lambda: ready("False"), seconds=120)
    assert refused["reason"] == "StorageUnreachable", refused
    assert "secret-of" not in refused["message"]
    rotate(users, "third")
    wait_for("the table to be Ready again", lambda: ready("True"), seconds=WITHIN + 60)
    assert rotating.logs.directory.joinpath(f"{pods[2]}.log").exists()
    names = [
        pod["metadata"]["name"] for pod in cluster.items("pods", "-n", ROTATING, "-l", "hudioperator.io/role=agent")
    ]
    assert names == [pods[2]], "the agent is the one that it was"
    rotating.conform(operator_logs, ended=rotating.tables)
    measured.keep(
        "rotated-keys",
        {role: seconds[pod] for role, pod in zip(("driver", "executor", "agent"), pods, strict=True)},
        settings={"within": WITHIN},
    )

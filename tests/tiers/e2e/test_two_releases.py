"""Two releases in one cluster, in namespaces with the restricted Pod Security Standard; the second
one's on a platform that gives each namespace its own users.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest
from demo import cluster, world
from demo.cluster import kubectl
from demo.lake import Lake
from demo.protocol import Watch
from demo.screen import Screen

from tests.support.cluster import platform_users
from tests.support.cluster.node import NodeLogs, Relay
from tests.support.cluster.platform_users import LABELS, RESTRICTED, USER
from tests.support.cluster.space import (
    NAMESPACE,
    OPERATOR_NAMESPACE,
    OUT,
    SMALL,
    Space,
    fresh_namespace,
    helm,
    installed_with,
    make_space,
    run,
    wait_for,
    written,
)

# Long, and it changes the installation that the other tests share.
pytestmark = pytest.mark.extra

FIRST, SECOND, RELEASE = "e2e-first", "e2e-second", "second"
SECOND_OPERATOR = "second-operator"
EXECUTOR = {
    "instances": 1,
    "memory": "512Mi",
    "resources": {"requests": {"cpu": "50m", "memory": "512Mi"}, "limits": {"memory": "2Gi"}},
}


@pytest.fixture
def spaces(space: Space, lake: Lake, watch: Watch) -> Iterator[tuple[Space, Space]]:
    """A namespace for each release, before the chart makes RoleBindings in them."""
    made = (
        make_space(FIRST, lake, watch, labels=RESTRICTED),
        make_space(SECOND, lake, watch, labels=RESTRICTED | LABELS),
    )
    yield made
    for each in made:
        kubectl("delete", "namespace", each.namespace, "--ignore-not-found", "--wait=false")


@pytest.fixture
def releases(spaces: tuple[Space, Space]) -> Iterator[None]:
    """The release of all tests has two namespaces only; a second one has another."""
    of_first = json.dumps([NAMESPACE, FIRST])
    kubectl("label", "namespace", OPERATOR_NAMESPACE, "--overwrite", *(f"{k}={v}" for k, v in RESTRICTED.items()))
    installed_with(f"--set-json=config.watchNamespaces={of_first}")
    with platform_users.platform():
        fresh_namespace(SECOND_OPERATOR, LABELS | RESTRICTED)
        mine = json.dumps([SECOND])
        try:
            helm(
                RELEASE,
                SECOND_OPERATOR,
                f"--set-json=config.watchNamespaces={mine}",
                "--set=crds.enabled=false,userIds=Platform",
            )
            yield
        finally:
            run("helm", "uninstall", RELEASE, "-n", SECOND_OPERATOR, "--ignore-not-found", "--wait")
            kubectl("delete", "namespace", SECOND_OPERATOR, "--ignore-not-found", "--wait=false")
            installed_with()


@pytest.fixture
def second_watch(releases: None) -> Iterator[Watch]:
    """Every change in the second release's etcd."""
    found, way = world.etcd_watch(Screen(), way=Relay, namespace=SECOND_OPERATOR, etcd=f"{RELEASE}-hudi-operator-etcd")
    found.start()
    yield found
    found.stop()
    way.stop()


def users(*namespaces: str) -> dict[str, set[int]]:
    """Users of the processes of running pods, by what the pods are (operator, driver, ...)."""
    found: dict[str, set[int]] = {}
    for namespace in namespaces:
        for pod in cluster.items("pods", "-n", namespace, "--field-selector=status.phase=Running"):
            role = pod["metadata"]["labels"].get("app.kubernetes.io/component", "")
            for pid in cluster.host_pids(namespace, pod["metadata"]["name"]):
                # A probe in a container is over at once, and runc is root until it has become it.
                with suppress(OSError):
                    status = Path(f"/proc/{pid}/status").read_text()
                    lines = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
                    if not lines["Name"].startswith("runc"):
                        found.setdefault(role, set()).update(int(user) for user in lines["Uid"].split())
    return found


@pytest.mark.timeout(900)
def test_two_releases_restricted_and_with_users_of_the_platform(
    spaces: tuple[Space, Space], watch: Watch, second_watch: Watch, operator_logs: NodeLogs
) -> None:
    """Tables of both work side by side, a killed writer of each is settled by its own release, and
    no process of the second one runs as a user that an image names.
    """
    logs = NodeLogs(SECOND_OPERATOR, OUT / "logs" / SECOND_OPERATOR)
    logs.start()
    first, second = spaces
    second.watch = second_watch
    try:
        for space in spaces:
            space.logs.start()
            space.table("shared")
            space.writer("killed", "shared", batches=2, rows=60, delay=0.5, executors=EXECUTOR)
        for space in spaces:
            _, pod = space.wait_inflight("killed", "shared", seconds=240)
            if space is second:
                seen = users(SECOND, SECOND_OPERATOR)
                roles = {"operator", "gateway", "etcd", "etcd-identity", "driver", "executor", "agent"}
                assert seen == {role: {USER} for role in roles}
            space.signal(pod, signal.SIGKILL)
            space.wait_settled(pod)
        for space, operator in ((first, operator_logs), (second, logs)):
            space.wait("hudiwriter/killed", "Succeeded", seconds=300)
            space.audited("shared", written(batches=2, rows=60))
            space.conform(operator, ended=space.tables)
        # Each release has its own tables in its own lock service.
        assert not first.tables & {change.key.split("/")[3] for change in second_watch.changes()}
        assert not second.tables & {change.key.split("/")[3] for change in watch.changes()}
        # A pod with a user of its own is refused by the platform, and the writer says so.
        template = {"spec": {"securityContext": {"runAsUser": 185}}}
        second.writer("other", "shared", rows=5, first=1000, driver={**SMALL, "podTemplate": template})
        refused = wait_for(
            "StartRefused",
            lambda: (
                c if (c := second.condition("hudiwriter", "other", "StartRefused")).get("status") == "True" else None
            ),
            seconds=120,
        )
        assert f"runAsUser must be {USER}" in refused["message"]
        second.writer("other", "shared", rows=5, first=1000)
        second.wait("hudiwriter/other", "Succeeded", seconds=300)
        expected = pd.concat([written(batches=2, rows=60), written(batches=1, rows=5, first=1000)])
        second.audited("shared", expected)
    finally:
        for space in spaces:
            space.logs.stop()
            kubectl("delete", "namespace", space.namespace, "--wait=false")
        for space in spaces:
            wait_for("its end", lambda space=space: not cluster.exists("namespace", space.namespace), seconds=240)
        logs.stop()

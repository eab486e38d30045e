"""etcd's authority is replaced while a writer runs: etcd's pod restarts twice, the gateways start
with certificates of the successor, and the writer's JVM goes on with one attempt.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography import x509
from demo import cluster, world
from demo.cluster import kubectl

from tests.support.cluster.node import NodeLogs
from tests.support.cluster.space import OPERATOR_NAMESPACE, Space, installed_with, suspend, wait_for, written

pytestmark = [pytest.mark.extra, pytest.mark.timeout(1500)]

TRUST_SECONDS, ROWS = 300, 10
AUTHORITY, GATEWAY = "hudi-operator-etcd-ca", "hudi-operator-etcd-gateway"
STEP_SECONDS = TRUST_SECONDS + 180


@pytest.fixture
def short_trust(installed: None) -> Iterator[None]:
    """The shortest time for which clients may take to trust a successor."""
    installed_with(f"--set=etcd.tls.trustSeconds={TRUST_SECONDS}")
    yield
    installed_with()


def certificates(secret: str, name: str) -> list[x509.Certificate]:
    data = cluster.get("secret", secret, "-n", OPERATOR_NAMESPACE)["data"]
    return x509.load_pem_x509_certificates(base64.b64decode(data[name])) if name in data else []


def pods(component: str) -> dict[str, dict[str, Any]]:
    found = cluster.items("pods", "-n", OPERATOR_NAMESPACE, "-l", f"app.kubernetes.io/component={component}")
    return {pod["metadata"]["name"]: pod for pod in found}


def ready(component: str, *, other_than: set[str]) -> bool:
    """All pods of the component are ready, and none of them is one of those."""
    found = pods(component)
    return bool(found) and all(
        pod["metadata"]["uid"] not in other_than and cluster.is_true(pod, "Ready") for pod in found.values()
    )


def uids(component: str) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods(component).values()}


def test_a_writer_runs_while_the_authority_is_replaced(
    short_trust: None, space: Space, operator_logs: NodeLogs
) -> None:
    space.table("authority")
    space.writer("through", "authority", batches=100_000, rows=ROWS, delay=0.2)

    def records() -> int:
        return int(space.get("hudiwriter", "through").get("status", {}).get("records", 0))

    def commits_after(what: str) -> None:
        before = records()
        wait_for(f"commits after {what}", lambda: records() >= before + 3 * ROWS, seconds=120)

    wait_for("the first commits", lambda: records() >= 3 * ROWS, seconds=240)
    (driver,) = space.drivers("through")
    operator = uids("operator")
    (former,) = certificates(AUTHORITY, "tls.crt")
    began = time.monotonic()
    members = uids("etcd")
    kubectl(
        *("annotate", "secret", "-n", OPERATOR_NAMESPACE, AUTHORITY, "--overwrite"),
        f"hudioperator.io/rotate={time.time():.0f}",
    )
    wait_for("etcd with both authorities", lambda: ready("etcd", other_than=members), seconds=180)
    commits_after("etcd's restart with both authorities")

    def successor() -> bool:
        (signing,) = certificates(AUTHORITY, "tls.crt")
        return signing != former

    wait_for("the successor to sign", successor, seconds=STEP_SECONDS, every=2)
    signing = time.monotonic() - began
    (now,) = certificates(AUTHORITY, "tls.crt")
    certificates(GATEWAY, "tls.crt")[0].verify_directly_issued_by(now)
    commits_after("the successor's first certificates")
    # Every connection of the writer ends; the next handshake shows a certificate of the successor.
    former_gateways = uids("gateway")
    gateways = "statefulset/hudi-operator-gateway"
    kubectl("rollout", "restart", gateways, "-n", OPERATOR_NAMESPACE)
    kubectl("rollout", "status", gateways, "-n", OPERATOR_NAMESPACE, "--timeout=300s", timeout=310)
    assert not former_gateways & uids("gateway")
    commits_after("the gateways' restart")
    # As after a leak: nobody trusts the former authority any more.
    members = uids("etcd")
    remove = '[{"op": "remove", "path": "/data/previous.crt"}]'
    kubectl("patch", "secret", "-n", OPERATOR_NAMESPACE, AUTHORITY, "--type=json", "-p", remove)
    wait_for("etcd without the former authority", lambda: ready("etcd", other_than=members), seconds=180)
    assert former not in certificates(GATEWAY, "ca.crt")
    commits_after("the end of the former authority")
    print(f"the successor signed after {signing:.0f} s; all of it took {time.monotonic() - began:.0f} s")

    suspend("through", space.namespace)
    space.wait("hudiwriter/through", "Suspended", seconds=120)
    attempts = space.get("hudiwriter", "through")["status"]["attempts"]
    assert [attempt["podUID"] for attempt in attempts] == [driver["metadata"]["uid"]], attempts
    assert uids("operator") == operator
    assert all(
        status["restartCount"] == 0
        for pod in pods("operator").values()
        for status in pod["status"]["containerStatuses"]
    )
    world.etcd_identity()  # the audit asks etcd with a certificate of the former authority otherwise
    space.audited("authority", written(batches=records() // ROWS, rows=ROWS))

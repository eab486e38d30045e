"""`fencing.mode: Credentials` on a node: the kubelet is lost with a writer inside the critical
section, and its table goes on without a person, because the store refuses that writer.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlparse

import pytest
from demo import cluster, world
from demo.cluster import kubectl
from demo.lake import Lake
from demo.protocol import Watch

from tests.support.cluster.node import HOST, NodeLogs, frozen
from tests.support.cluster.scene import EXECUTOR, ORDER, Scene, executors, kill_container
from tests.support.cluster.space import OPERATOR_NAMESPACE, Space, installed_with, make_space, wait_for
from tests.support.evidence import measured
from tests.support.harness.local import ACCESS_KEY, SECRET_KEY
from tests.support.harness.revocable_store import TOKEN, RevocableStore
from tests.support.harness.s3proxy import Proxy, completed, completed_in_metadata

pytestmark = [pytest.mark.extra, pytest.mark.timeout(1200)]

NAMESPACE = "e2e-revoked"
CACHE_SECONDS, LIMIT_SECONDS, REQUEST_SECONDS = 10, 5.0, 15
"""Short, so that the kubelet stands still for two minutes and not for six."""


@pytest.fixture
def store(installed: None, tmp_path: Path) -> Iterator[RevocableStore]:
    """Servers and broker on this machine, with the example's programs."""
    files = tmp_path / "files"
    (files / "e2e").mkdir(parents=True)
    found = RevocableStore(
        tmp_path / "store", files, cache_seconds=CACHE_SECONDS, limit_seconds=LIMIT_SECONDS, host=HOST
    )
    yield found
    found.stop()


@pytest.fixture
def proxy_before(store: RevocableStore) -> Iterator[Proxy]:
    """Before the store, so that requests can be held; the operator asks there, too."""
    server = urlparse(store.url)
    found = Proxy(HOST, (str(server.hostname), int(server.port or 0)))
    yield found
    found.stop()


@pytest.fixture
def revocable(store: RevocableStore, proxy_before: Proxy, watch: Watch, operator_logs: NodeLogs) -> Iterator[Space]:
    """A namespace on that store, and an operator that knows its broker."""
    world.secret(OPERATOR_NAMESPACE, "broker-token", {"token": TOKEN})
    broker = {
        "url": store.broker,
        "tokenSecret": "broker-token",
        "storeEndpoint": proxy_before.url,
        "identityCacheSeconds": CACHE_SECONDS,
        "requestSeconds": REQUEST_SECONDS,
    }
    installed_with(f"--set-json=credentialsBroker={json.dumps(broker)}")
    found = make_space(NAMESPACE, Lake(store.bare, ACCESS_KEY, SECRET_KEY), watch)
    found.endpoint = proxy_before.url
    found.logs.start()
    try:
        yield found
    finally:
        found.logs.stop()
        kubectl("delete", "hudiwriters,huditables", "--all", "-n", NAMESPACE, "--timeout=200s", timeout=210)
        kubectl("delete", "namespace", NAMESPACE, "--wait=false")
        installed_with()
        kubectl("delete", "secret", "broker-token", "-n", OPERATOR_NAMESPACE)


def test_a_lost_node_needs_no_person(revocable: Space, proxy_before: Proxy, operator_logs: NodeLogs) -> None:
    """The writer's last request is on its way when the node is lost, and arrives after its
    successor's commits: the store refuses that very request.
    """
    scene = Scene(
        revocable,
        proxy_before,
        "lost",
        victim={"retryPolicy": {"limit": 0}, "executors": {"instances": 1, **EXECUTOR}},
        fencing={"mode": "Credentials"},
    )
    instant, pod = scene.inflight()
    driver = next(d for d in revocable.drivers(scene.victim) if d["metadata"]["name"] == pod)
    executor = wait_for("its executor", lambda: executors(revocable, pod) or None, seconds=60)
    uids = {driver["metadata"]["uid"], *executor.values()}
    held = scene.hold(completed_in_metadata, instant)
    at = time.time()
    try:
        with frozen("kubelet"):
            revocable.signal_all(pod, signal.SIGSTOP)
            record = scene.settled("credentials", pod, at)
            proofs = scene.record(pod)["proofs"]
            # The executor has the Secret of its driver.
            assert {key: proof["kind"] for key, proof in proofs.items()} == dict.fromkeys(uids, "CredentialsRevoked")
            assert record.outcomes == {instant: "RolledBack"}, record
            assert record.phases["Unlocked"] - record.phases["Draining"] >= REQUEST_SECONDS - 1
            scene.assert_blocked(at, record)
            # The process was only paused: nobody has ended it, and nobody could.
            pid = scene.pid(pod)
            assert Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"
            held.deliver.set()
            assert held.delivered.wait(60)
            assert " 403 " in held.answer, held.answer
            revocable.signal_all(pod, signal.SIGCONT)
            wait_for("the end of the writer that was lost", lambda: not os.path.exists(f"/proc/{pid}"), seconds=120)
            assert not scene.published(completed, instant)
            scene.assert_gone(instant)
    finally:
        if cluster.exists("pod", pod, "-n", NAMESPACE) and cluster.host_pids(NAMESPACE, pod):
            kill_container(revocable, pod)
    kubectl("wait", "--for=condition=Ready", "nodes", "--all", "--timeout=60s")
    scene.finish(batches=0)
    revocable.conform(operator_logs, ended=revocable.tables)
    measured.keep(
        "credentials-fencing",
        {phase: record.phases[phase] - at for phase in ORDER if phase in record.phases},
        settings={"identityCacheSeconds": CACHE_SECONDS, "requestSeconds": REQUEST_SECONDS},
    )

"""Faults of the operator, of its etcd and of the gateway."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import grpc

from tests.campaigns.alerts.fault import Made, nothing
from tests.campaigns.alerts.played import Play
from tests.campaigns.alerts.stage import LONG_LEASE, RELEASE, Stage
from tests.support.harness.gateway import Client
from tests.support.harness.gateway import Pod as OwnPod
from tests.support.harness.other_clock import VARIABLE, library
from tests.support.harness.servers import Etcd
from tests.support.harness.wire import Wire

MANY = 60
"""Tables that are looked at at once."""
OPERATOR = {"job": "hudi-operator"}
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{RELEASE}/leases"
LEASE = f"{LEASES}/{RELEASE}-leader"


def stir(stage: Stage) -> None:
    """Change every table, so that the operator looks at it."""
    listed = stage.cluster.request("GET", stage.world.path("huditables")) or {"items": []}
    for table in listed["items"]:
        body = {"metadata": {"annotations": {"example.com/stirred": str(time.monotonic_ns())}}}
        path = stage.world.path("huditables", table["metadata"]["name"])
        stage.cluster.request("PATCH", path, body, "application/merge-patch+json")


def many_tables(stage: Stage) -> None:
    """Tables without an agent that runs."""
    for number in range(MANY):
        stage.world.table(f"many-{number}")


# ---- the operator's own


def down(stage: Stage) -> Made:
    stage.end_operator()
    return Made(OPERATOR, (f"{RELEASE}-",), lambda: void(stage.start()))


def void(_: object) -> None:
    """No value."""


def no_leader(stage: Stage) -> Made:
    stage.end_operator()

    def held() -> None:
        """Somebody else renews the Lease, as a replica that hangs in one place does."""
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        spec = {"holderIdentity": "a-stranger", "leaseDurationSeconds": 10, "acquireTime": now, "renewTime": now}
        stage.cluster.request("PATCH", LEASE, {"spec": spec}, "application/merge-patch+json")

    held()
    stage.start()
    return Made(OPERATOR, ("a-stranger",), again=held, lasts=90)


def no_pods(stage: Stage) -> Callable[[], None]:
    """A ResourceQuota that lets no pod in; returns what takes it away."""
    quotas = stage.world.path("resourcequotas", group="/api/v1")
    hard = {"count/pods": "0"}
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": hard}}
    stored = stage.cluster.request("POST", quotas, quota) or {}
    # Nobody counts in this cluster.
    stage.cluster.request("PUT", f"{quotas}/few/status", {**stored, "status": {"hard": hard, "used": hard}})
    return lambda: void(stage.cluster.request("DELETE", f"{quotas}/few"))


def requests_refused(stage: Stage) -> Made:
    Play(stage).table("refused", concurrency={"maxWriters": 16})
    repair = no_pods(stage)
    for number in range(8):
        stage.world.writer(f"over-quota-{number}", table="refused")
    words = {"NAMESPACE": stage.world.namespace}
    return Made({**OPERATOR, "code": "403"}, ("exceeded quota", "few"), repair, words)


@contextmanager
def over_a_wire(stage: Stage) -> Iterator[Wire]:
    """An operator whose way to the API server can be cut, and which keeps its Lease meanwhile."""
    with stage.wire() as wire:
        stage.start(settings=LONG_LEASE)
        stage.led()
        yield wire


def requests_failing(stage: Stage, wire: Wire) -> Made:
    def flap() -> None:
        wire.cut()
        stir(stage)
        time.sleep(1.5)
        wire.mend()
        stir(stage)
        time.sleep(1.5)

    return Made(OPERATOR, ("readyz check passed", "API server"), wire.mend, again=flap, every=0.1)


def held_up(stage: Stage, wire: Wire) -> None:
    """No answer of the API server for five seconds, with work for everybody: while etcd stood still
    before, the watches have told of all tables.
    """
    stage.etcd.pause()
    stir(stage)
    time.sleep(0.7)
    wire.hold()
    stage.etcd.resume()
    time.sleep(5)
    wire.mend()


def throttled(stage: Stage, wire: Wire) -> Made:
    def repair() -> None:
        wire.mend()
        stage.etcd.resume()

    again = partial(held_up, stage, wire)
    return Made(OPERATOR, ("readyz check passed",), repair, again=again, every=0.01, lasts=90)


def queue_long(_: Stage, made: Made) -> Made:
    """``made``: the fault that is there already."""
    return Made(OPERATOR, (f"{RELEASE}-", "Running"), made.repair, lasts=90)


def event_loop_lag(stage: Stage) -> Made:
    operator = stage.led()

    def stand_still() -> None:
        operator.process.send_signal(signal.SIGSTOP)
        time.sleep(1.4)
        operator.process.send_signal(signal.SIGCONT)
        time.sleep(0.6)

    return Made({"pod": "hudi-operator-0"}, (f"{RELEASE}-",), again=stand_still, every=0.01)


def reconcile_errors(stage: Stage) -> Made:
    """Agents of three tables are refused."""
    repair = no_pods(stage)
    for number in range(3):
        stage.world.table(f"refused-{number}", storage={"options": {"fs.s3a.endpoint": f"http://s3-{number}"}})
    return Made(OPERATOR, ("exceeded quota", "refused-0"), repair)


def clocks(stage: Stage) -> Made:
    where = library(stage.directory / f"clock-{time.monotonic_ns()}")
    stage.start(forks=False, LD_PRELOAD=str(where), **{VARIABLE: "-60"})
    stage.led()
    stir(stage)
    now = datetime.now(UTC)

    def repair() -> None:
        stage.start()
        stage.led()
        stir(stage)

    return Made(OPERATOR, (now.strftime("%Y"), "node1"), repair, again=partial(stir, stage), lasts=90)


# ---- the gateway


def gateway_down(stage: Stage) -> Made:
    stage.gateway.stop()
    return Made({"job": "hudi-operator-gateway"}, (f"{RELEASE}-gateway-0",), stage.gateway.start)


def gateway_refusing(stage: Stage) -> Made:
    """A pod that was never admitted puts the lock of a table."""
    stranger: Client = stage.gateway.pod(OwnPod(stage.world.namespace, "a-stranger", "no-uid"))
    lock = "/hudi/tables/0123456789abcdef0123456789abcdef/lock"

    def asks() -> None:
        for _ in range(5):
            with contextlib.suppress(grpc.RpcError):
                stranger.put(lock, {"inc": "x"})

    labels = {"job": "hudi-operator-gateway", "code": "PermissionDenied"}
    return Made(labels, ("a-stranger", "PermissionDenied"), nothing, again=asks)


# ---- etcd: one of its own, which is small


@contextmanager
def small_etcd(directory: Path, metrics: int) -> Iterator[Etcd]:
    """An etcd whose database may have 16 MiB."""
    directory.mkdir()
    made = Etcd(directory, f"--quota-backend-bytes={16 << 20}", f"--listen-metrics-urls=http://127.0.0.1:{metrics}")
    made.start()
    try:
        made.set_up_users()
        yield made
    finally:
        made.stop()


def expire_soon(etcd: Etcd, days: int) -> None:
    """Another certificate of the operator, valid for so many days."""
    pki = etcd.pki
    request = ["openssl", "req", "-new", "-key", pki / "operator.key", "-subj", "/CN=hudi-operator"]
    asked = subprocess.run(request, check=True, capture_output=True, text=True).stdout
    signed = ["openssl", "x509", "-req", "-CA", pki / "ca.crt", "-CAkey", pki / "ca.key", "-CAcreateserial"]
    usage = pki / "usage.txt"
    usage.write_text("extendedKeyUsage=clientAuth\nkeyUsage=critical,digitalSignature\n")
    made = subprocess.run(
        [*signed, "-days", str(days), "-extfile", usage], input=asked, check=True, capture_output=True, text=True
    ).stdout
    new = pki / "operator.new"
    new.write_text(made)
    new.replace(pki / "operator.crt")


FILLED = "/hudi/tables/0123456789abcdef0123456789abcdef/filler/"


def fill(etcd: Etcd) -> None:
    """Fill more than four fifths of the quota."""
    for number in range(230):
        etcd.put(f"{FILLED}{number}", {"x": "x" * 60_000})


def anew(stage: Stage) -> None:
    """The operator asks etcd at its start, and once a minute."""
    stage.end_operator()
    stage.start()
    stage.led()


def degraded(stage: Stage) -> Made:
    etcd = stage.world.etcd

    def authentication(word: str) -> None:
        done = etcd.ctl("root", "auth", word)
        assert done.returncode == 0, done.stderr
        anew(stage)

    authentication("disable")
    return Made(OPERATOR, ("authentication is not enabled",), partial(authentication, "enable"))


def almost_full(stage: Stage) -> Made:
    etcd = stage.world.etcd
    fill(etcd)
    anew(stage)

    def repair() -> None:
        told = json.loads(etcd.ctl("root", "get", "/hudi", "--write-out=json").stdout)
        etcd.ctl("root", "del", "--prefix", FILLED)
        for command in (("compaction", "--physical", str(told["header"]["revision"])), ("defrag",)):
            done = etcd.ctl("root", *command)
            assert done.returncode == 0, done.stderr
        anew(stage)

    return Made(OPERATOR, ("etcd_mvcc_db_total_size_in_bytes",), repair)


def etcd_slow(stage: Stage) -> Made:
    etcd = stage.world.etcd

    def stand_still() -> None:
        etcd.pause()
        stir(stage)
        time.sleep(0.8)
        etcd.resume()
        time.sleep(0.4)

    return Made(OPERATOR, ("etcd_disk_wal_fsync_duration_seconds_count",), etcd.resume, again=stand_still, every=0.05)


def certificate(stage: Stage) -> Made:
    etcd = stage.world.etcd
    expire_soon(etcd, 1)
    labels = {**OPERATOR, "certificate": "etcd-client"}
    return Made(labels, (f"{RELEASE}-etcd-identity", "notAfter"), partial(expire_soon, etcd, 3650))

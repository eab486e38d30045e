"""Certificates and authorities are replaced under an etcd that is in use.

Real: the API server with the StatefulSet's controller, etcd with the chart's arguments for TLS, the
process that makes the certificates with its own rights, the operator's connection to etcd. The test
plays the kubelet: it writes Secrets to files, and runs etcd for the pod that is there.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hudi_operator.adapters import authority
from hudi_operator.adapters import etcd_rpc as rpc
from hudi_operator.etcd_certificates.plan import ROTATE, SIGNING_SINCE
from hudi_operator.model.config import EtcdConfig
from hudi_operator.model.ports import Fatal, Retryable
from tests.support.harness.servers import ENVIRONMENT
from tests.support.ports import free_ports
from tests.tiers.component.crds.certificates import Played, options, token_config, variables
from tests.tiers.component.crds.cluster import BIN, Cluster, render, wait_until

SYSTEM, ETCD = "hudi-system", "hudi-operator-etcd"
CLIENT_SECONDS = 7 * 86400
SILENCE_SECONDS = 10.0
"""A writer halts when it has not heard of etcd for `lock.silenceSeconds`, at least this long."""


@dataclass
class PlayedNode:
    """Files of Secrets, and etcd as the one container of its pod."""

    cluster: Cluster
    directory: Path
    ports: list[int] = field(default_factory=lambda: free_ports(2))
    process: subprocess.Popen[bytes] | None = None
    pod: str = ""
    restarts: int = -1

    @property
    def endpoint(self) -> str:
        return f"https://127.0.0.1:{self.ports[0]}"

    def files(self, identity: str) -> Path:
        return self.directory / identity

    def secret(self, identity: str) -> dict[str, bytes]:
        found = self.cluster.get("secret", f"{ETCD}-{identity}", "-n", SYSTEM)
        return {name: base64.b64decode(value) for name, value in found["data"].items()}

    def sync(self) -> None:
        """As the kubelet does within two minutes: mounted Secrets, and pods that were replaced."""
        for identity in ("server", "operator", "gateway", "root"):
            self.files(identity).mkdir(exist_ok=True)
            for name, value in self.secret(identity).items():
                path = self.files(identity) / name
                path.with_suffix(".new").write_bytes(value)
                path.with_suffix(".new").rename(path)
        wait_until(lambda: self.cluster.run("get", "pod", f"{ETCD}-0", "-n", SYSTEM).returncode == 0)
        uid = self.cluster.get("pod", f"{ETCD}-0", "-n", SYSTEM)["metadata"]["uid"]
        if uid != self.pod:
            self.stop()
            self.start()
            self.pod, self.restarts = uid, self.restarts + 1

    def start(self) -> None:
        tls, peer = self.files("server"), f"http://127.0.0.1:{self.ports[1]}"
        addresses = [f"--listen-client-urls={self.endpoint}", f"--advertise-client-urls={self.endpoint}"]
        addresses += [f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}"]
        identity = ["--client-cert-auth", f"--trusted-ca-file={tls}/ca.crt"]
        identity += [f"--cert-file={tls}/tls.crt", f"--key-file={tls}/tls.key"]
        command = [str(BIN / "etcd"), "--name=e", f"--data-dir={self.directory}/data", f"--initial-cluster=e={peer}"]
        with (self.directory / "etcd.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--unsafe-no-fsync", "--log-level=warn", *addresses, *identity], stdout=log, stderr=log
            )

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(timeout=30)

    def connection(self, identity: str, folder: Path | None = None) -> rpc.Connection:
        at = folder or self.files(identity)
        files = (f"{at}/ca.crt", f"{at}/tls.crt", f"{at}/tls.key")
        return rpc.Connection(EtcdConfig((self.endpoint,), "/hudi", *files))

    def kept(self, identity: str, name: str) -> Path:
        """A copy of an identity as it is now."""
        folder = self.directory / name
        folder.mkdir()
        for path in self.files(identity).glob("*.*"):
            (folder / path.name).write_bytes(path.read_bytes())
        return folder


def put(connection: rpc.Connection) -> str:
    """Why a key could not be written; empty when it was."""
    try:
        connection.call_now(rpc.kv, "Put", rpc.messages.PutRequest(key=b"/hudi/tables/x", value=b"{}"), writes=True)
    except (Retryable, Fatal) as error:
        return str(error)
    return ""


def answers_to(node: PlayedNode, identity: str, folder: Path) -> bool:
    """Whether a new connection with these files is served, within some seconds."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        connection = node.connection(identity, folder)
        try:
            if not put(connection):
                return True
        finally:
            connection.close()
        time.sleep(0.5)
    return False


class Busy:
    """A client that writes all the time, over one connection; the longest time without success."""

    def __init__(self, node: PlayedNode) -> None:
        self._connection = node.connection("operator")
        self._stop = threading.Event()
        self.longest, self.writes, self.problems = 0.0, 0, set[str]()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        last = time.monotonic()
        while not self._stop.wait(0.05):
            problem = put(self._connection)
            if problem:
                self.problems.add(problem)
                continue
            now = time.monotonic()
            self.longest, last, self.writes = max(self.longest, now - last), now, self.writes + 1

    def __enter__(self) -> Busy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._connection.close()


@pytest.fixture
def node(bare_cluster: Cluster, tmp_path: Path) -> Iterator[PlayedNode]:
    bare_cluster.kubectl("create", "namespace", SYSTEM)
    wait_until(lambda: bare_cluster.run("get", "serviceaccount", "default", "-n", SYSTEM).returncode == 0)
    objects = [o for o in render() if o["metadata"]["name"].startswith(ETCD)]
    bare_cluster.apply(*objects)
    made = PlayedNode(bare_cluster, tmp_path)
    try:
        yield made
    finally:
        made.stop()


def test_clients_certificates_that_have_ended_are_renewed_under_a_connected_client(node: PlayedNode) -> None:
    """The clock of the process that makes them was behind, and jumps past their end."""
    with Played(node.cluster, options(endpoint=node.endpoint)) as process:
        lasting = timedelta(seconds=12)
        begun = datetime.now(tz=UTC)
        behind = begun - timedelta(seconds=CLIENT_SECONDS) + lasting
        process._runner.run(process.keeper._certificates(behind))
        node.sync()
        # Twelve seconds of validity are too few to look before: users are set up at once.
        wait_until(lambda: process.turn(behind) == "", 10)
        old = node.kept("operator", "old")
        with Busy(node) as client:
            wait_until(lambda: client.writes > 0, 10)
            first = client.writes
            while datetime.now(tz=UTC) < begun + lasting + timedelta(seconds=1):
                time.sleep(0.2)
            assert not answers_to(node, "operator", old), "etcd refuses a certificate that has ended"
            assert client.writes > first, "who is connected stays connected"
            assert process.turn() == ""
            assert node.secret("operator")["tls.crt"] != (old / "tls.crt").read_bytes()
            node.sync()
            assert node.restarts == 0, "a new certificate needs no restart"
            # The connection breaks, and comes back with the new certificate.
            node.stop()
            node.start()
            broken = client.writes
            wait_until(lambda: client.writes > broken + 10, 30)
        assert client.longest < SILENCE_SECONDS, client.problems
    print(f"{client.writes} writes, longest time without one {client.longest:.1f} s, also over a restart of etcd")


def test_an_authority_is_replaced_under_a_busy_client(node: PlayedNode) -> None:
    chosen = options(endpoint=node.endpoint, TRUST_SECONDS="1")
    with Played(node.cluster, chosen) as process:
        process.turn()
        node.sync()
        wait_until(lambda: process.turn() == "", 60)
        old, old_ca = node.kept("operator", "old"), node.secret("ca")["tls.crt"]
        with Busy(node) as client:
            wait_until(lambda: client.writes > 0)
            # Introduced: in every bundle, and etcd is restarted to read it.
            node.cluster.kubectl("annotate", "secret", f"{ETCD}-ca", "-n", SYSTEM, f"{ROTATE}=leaked")
            time.sleep(1.1)  # API objects have whole seconds
            process.turn()
            assert [len(authority.split(node.secret(i)["ca.crt"])) for i in ("server", "operator", "gateway")] == [
                2,
                2,
                2,
            ]
            node.sync()
            assert node.restarts == 1
            assert answers_to(node, "operator", old)
            late = node.kept("operator", "late")  # the old certificate, the new bundle

            # Signing: only after etcd was seen to accept it.
            wait_until(lambda: process.turn() == "" and node.secret("ca")["tls.crt"] != old_ca, 30)
            node.sync()
            assert node.restarts == 1, "the same authorities are trusted"
            assert authority.is_signed_by(node.secret("server")["tls.crt"], node.secret("ca")["tls.crt"])
            assert answers_to(node, "operator", late), "who has not read the new certificate yet is not locked out"
            assert answers_to(node, "operator", node.files("operator"))
            assert node.restarts == 1

            # Retired: a month later nobody can have a certificate of the old one.
            month = (datetime.now(tz=UTC) - timedelta(days=31)).strftime("%Y-%m-%dT%H:%M:%SZ")
            node.cluster.kubectl(
                "annotate", "secret", f"{ETCD}-ca", "-n", SYSTEM, "--overwrite", f"{SIGNING_SINCE}={month}"
            )
            process.turn()
            assert authority.split(node.secret("server")["ca.crt"]) == authority.split(node.secret("ca")["tls.crt"])
            node.sync()
            assert node.restarts == 2
            assert answers_to(node, "operator", node.files("operator"))
            assert not answers_to(node, "operator", late), "what the old authority signed is refused"
            before = client.writes
            wait_until(lambda: client.writes > before)
        assert client.longest < SILENCE_SECONDS, client.problems
    print(f"{client.writes} writes, longest time without one {client.longest:.1f} s, over two restarts of etcd")


def test_the_next_authority_does_not_sign_while_etcd_does_not_accept_it(node: PlayedNode) -> None:
    with Played(node.cluster, options(endpoint=node.endpoint, TRUST_SECONDS="1")) as process:
        process.turn()
        node.sync()
        wait_until(lambda: process.turn() == "", 60)
        ca = node.secret("ca")["tls.crt"]
        node.cluster.kubectl("annotate", "secret", f"{ETCD}-ca", "-n", SYSTEM, f"{ROTATE}=1")
        # The pod is replaced, but its container does not run the new bundle yet: no node.sync().
        deadline = time.monotonic() + 6
        while time.monotonic() < deadline:
            process.turn()
            time.sleep(0.5)
        assert node.secret("ca")["tls.crt"] == ca
        node.sync()
        wait_until(lambda: process.turn() == "" and node.secret("ca")["tls.crt"] != ca, 30)


def test_a_damaged_authority_is_reported_and_left_alone(node: PlayedNode) -> None:
    with Played(node.cluster, options(endpoint=node.endpoint)) as process:
        process.turn()
        before = node.cluster.get("secret", f"{ETCD}-gateway", "-n", SYSTEM)["metadata"]["resourceVersion"]
        damage = {"data": {"tls.key": base64.b64encode(b"x").decode()}}
        node.cluster.kubectl("patch", "secret", f"{ETCD}-ca", "-n", SYSTEM, "--type=merge", "-p", json.dumps(damage))
        with pytest.raises(Fatal, match=f"Secret {SYSTEM}/{ETCD}-ca: not a private key"):
            process.turn()
        assert node.cluster.get("secret", f"{ETCD}-gateway", "-n", SYSTEM)["metadata"]["resourceVersion"] == before


def test_the_process_itself(node: PlayedNode, tmp_path: Path) -> None:
    """As the Deployment starts it; ready when etcd has its users, and gone when it is told to."""
    port = free_ports(1)[0]
    environment = {
        **ENVIRONMENT,
        **variables(endpoint=node.endpoint),
        "KUBECONFIG": str(token_config(node.cluster, tmp_path / "token.kubeconfig")),
        "HUDI_OPERATOR_PROBE_PORT": str(port),
    }

    def ready() -> str:
        url = f"http://127.0.0.1:{port}/readyz"
        return subprocess.run(["curl", "-s", url], capture_output=True, text=True, timeout=20).stdout.strip()

    command = [sys.executable, "-m", "hudi_operator.etcd_certificates"]
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(command, env=environment, stderr=log) as process:
        try:
            wait_until(lambda: "users and roles of etcd" in ready(), 60)
            node.sync()
            wait_until(lambda: ready() == "ok", 60)
            node.cluster.kubectl("delete", "secret", f"{ETCD}-gateway", "-n", SYSTEM)
            wait_until(lambda: node.cluster.run("get", "secret", f"{ETCD}-gateway", "-n", SYSTEM).returncode == 0, 60)
            process.terminate()
            assert process.wait(timeout=20) == 0
        finally:
            process.kill()
    said = (tmp_path / "log").read_text()
    assert "Traceback" not in said
    assert "PRIVATE" not in said
    for missing in ("HUDI_OPERATOR_ETCD_NAME", "HUDI_OPERATOR_ETCD_MEMBERS"):
        wrong = {**environment, missing: "none"} if missing.endswith("MEMBERS") else {**environment}
        if missing.endswith("NAME"):
            del wrong[missing]
        done = subprocess.run(command, env=wrong, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2
        assert missing in done.stderr


def test_its_rights(bare_cluster: Cluster) -> None:
    objects = [o for o in render() if o["kind"] in ("Role", "RoleBinding")]
    rights = [o for o in objects if o["metadata"]["name"].endswith("identity")]
    bare_cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}})
    bare_cluster.apply(*rights)
    user = f"--as=system:serviceaccount:{SYSTEM}:hudi-operator-etcd-identity"
    for verb, what, answer in (
        ("get", f"secrets/{ETCD}-ca", "yes"),
        ("get", "secrets/hudi-operator-etcd", "no"),
        ("list", "secrets", "no"),
        ("delete", f"secrets/{ETCD}-ca", "no"),
        ("delete", f"pods/{ETCD}-0", "yes"),
        ("delete", "pods/hudi-operator-0", "no"),
        ("create", "pods", "no"),
        ("get", "configmaps", "no"),
    ):
        said = bare_cluster.run("auth", "can-i", verb, what, "-n", SYSTEM, user).stdout.split()
        assert said[-1] == answer, (verb, what)
    said = bare_cluster.run("auth", "can-i", "get", f"secrets/{ETCD}-ca", "-n", "default", user).stdout.split()
    assert said[-1] == "no"

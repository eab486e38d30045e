"""The gateway between pods and etcd, and pods with their tokens.

The test plays the kubelet: it issues the tokens, with a key of its own.
"""

from __future__ import annotations

import atexit
import base64
import functools
import json
import os
import shutil
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from hudi_operator.adapters import etcd_rpc as rpc
from tests.support import ROOT
from tests.support.harness.servers import Cluster, Etcd, JsonDict, wait_for
from tests.support.ports import free_ports

AUDIENCE = "hudi-operator-etcd"
ISSUER = "https://issuer.test"
CLOCK_LEEWAY = 10.0
"""Seconds for which the gateway takes a token after its end, because clocks differ."""
TIMEOUT = 10.0
"""Seconds for one call of the test."""


@functools.cache
def program() -> Path:
    """The gateway of this checkout, built once for each process of tests.

    Not the one in the cache directory: a copy of the checkout may differ from what was built there.
    """
    folder = Path(tempfile.mkdtemp(prefix="hudi-gateway-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    built = folder / "hudi-gateway"
    done = subprocess.run(
        ["go", "build", "-trimpath", "-o", built, "."],
        cwd=ROOT / "gateway",
        env={**os.environ, "CGO_ENABLED": "0"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return built


def _part(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


class Issuer:
    """Signs tokens as the API server does: RS256, bound to a pod."""

    def __init__(self, kid: str = "one") -> None:
        self.kid = kid
        self._key = rsa.generate_private_key(public_exponent=65537, key_size=2048)

    def jwk(self) -> JsonDict:
        """The public key, as the key set holds it."""
        numbers = self._key.public_key().public_numbers()
        named = {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": self.kid}
        return named | {
            name: _part(n.to_bytes((n.bit_length() + 7) // 8)) for name, n in (("n", numbers.n), ("e", numbers.e))
        }

    def token(self, pod: Pod, *, header: JsonDict | None = None, **claims: Any) -> str:
        """A token of that pod; ``claims`` and ``header`` are added, or replace what they name."""
        now = int(time.time())
        bound = {"namespace": pod.namespace, "pod": {"name": pod.name, "uid": pod.uid}}
        bound["serviceaccount"] = {"name": "hudi-driver", "uid": "0"}
        body = {"iss": ISSUER, "aud": [AUDIENCE], "iat": now, "nbf": now, "exp": now + 3600, "kubernetes.io": bound}
        head = {"alg": "RS256", "kid": self.kid} | (header or {})
        signed = ".".join(_part(json.dumps(part).encode()) for part in (head, body | claims))
        return f"{signed}.{_part(self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


@dataclass(frozen=True)
class Pod:
    """A pod as its token names it."""

    namespace: str
    name: str
    uid: str

    @property
    def attempt(self) -> str:
        """Its attempt's id in etcd."""
        return f"{self.namespace}.{self.name}"

    def registration(self, inc: str, role: str) -> JsonDict:
        """Value that its JVM puts at ``writer/<inc>``."""
        own = {"attempt": self.attempt, "namespace": self.namespace, "pod": self.name, "podUID": self.uid}
        return own | {"inc": inc, "role": role}


class Client:
    """etcd through the gateway, with one token. Raises grpc.RpcError."""

    def __init__(self, endpoint: str, ca: Path, token: str) -> None:
        credentials = grpc.ssl_channel_credentials(ca.read_bytes())
        self.channel = grpc.secure_channel(endpoint.removeprefix("https://"), credentials)
        self.metadata = [("authorization", f"Bearer {token}")] if token else []
        self._leases: list[int] = []

    def close(self) -> None:
        self.channel.close()

    def call(self, stub: Any, method: str, request: Any) -> Any:
        return getattr(stub(self.channel), method)(request, timeout=TIMEOUT, metadata=self.metadata)

    def txn(self, *success: Any, compare: tuple[Any, ...] = (), failure: tuple[Any, ...] = ()) -> Any:
        return self.call(rpc.kv, "Txn", rpc.txn_request(compare, success, failure))

    def put(self, key: str, value: JsonDict, *, lease: int = 0) -> Any:
        return self.txn(put(key, value, lease=lease))

    def get(self, key: str) -> JsonDict | None:
        found = self.txn(rpc.get(key)).responses[0].response_range.kvs
        return json.loads(found[0].value) if found else None

    def lease(self, seconds: int = 60) -> int:
        made = int(self.call(rpc.leases, "LeaseGrant", rpc.messages.LeaseGrantRequest(TTL=seconds)).ID)
        self._leases.append(made)
        return made

    def give_back(self) -> None:
        """Revoke its leases: the gateway bounds how many a pod has."""
        for lease in self._leases:
            with suppress(grpc.RpcError):
                self.revoke(lease)
        self._leases = []

    def revoke(self, lease: int) -> None:
        self.call(rpc.leases, "LeaseRevoke", rpc.revoke_request(lease))

    def keep_alive(self, lease: int) -> int:
        """Seconds that the lease has."""
        requests = iter([rpc.messages.LeaseKeepAliveRequest(ID=lease)])
        answers = rpc.leases(self.channel).LeaseKeepAlive(requests, timeout=TIMEOUT, metadata=self.metadata)
        return int(next(iter(answers)).TTL)

    def watch(self, prefix: str) -> Any:
        """The stream of a watch's answers."""
        requests = iter([rpc.watch_request(prefix, start_revision=0)])
        return rpc.watches(self.channel).Watch(_held(requests), timeout=TIMEOUT, metadata=self.metadata)


def _held(requests: Any) -> Any:
    yield from requests
    time.sleep(TIMEOUT)


def put(key: str, value: JsonDict, *, lease: int = 0) -> Any:
    """Operation: put JSON."""
    request = rpc.messages.PutRequest(key=key.encode(), value=json.dumps(value).encode(), lease=lease)
    return rpc.messages.RequestOp(request_put=request)


def api_server(cluster: Cluster, directory: Path) -> tuple[str, ...]:
    """Arguments by which the gateway asks a real API server for the keys of its tokens."""
    found = json.loads(cluster.kubectl("config", "view", "--raw", "--minify", "-o", "json"))["clusters"][0]["cluster"]
    data = found.get("certificate-authority-data")
    authority, account = directory / "api-ca.crt", directory / "api-token"
    authority.write_bytes(base64.b64decode(data) if data else Path(found["certificate-authority"]).read_bytes())
    account.write_text(cluster.kubectl("create", "token", "default", "-n", "default").strip())
    return f"-api-server={found['server']}", f"-api-ca={authority}", f"-api-token={account}"


def _curl(url: str) -> str | None:
    command = ["curl", "-sf", "--noproxy", "*", url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    return done.stdout if done.returncode == 0 else None


class Gateway:
    """The program itself between a test and an etcd."""

    def __init__(self, etcd: Etcd, directory: Path, *arguments: str, issuer: bool = True) -> None:
        """``issuer``: the test issues the tokens; False: ``arguments`` say who does."""
        self.etcd, self.directory, self._arguments, self._own = etcd, directory, arguments, issuer
        self.issuer = Issuer()
        self.key_set = directory / "keys.json"
        self.tell_keys(self.issuer)
        self.port, self._probe, self._metrics = free_ports(3)
        self.endpoint = f"https://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._clients: list[Client] = []

    def tell_keys(self, *issuers: Issuer) -> None:
        """The key set that the gateway reads."""
        self.key_set.write_text(json.dumps({"keys": [issuer.jwk() for issuer in issuers]}))

    def start(self) -> None:
        pki = self.etcd.pki
        own = [f"-token-keys={self.key_set}", f"-token-issuer={ISSUER}"] if self._own else []
        command = [
            program(),
            f"-listen=127.0.0.1:{self.port}",
            f"-probe=127.0.0.1:{self._probe}",
            f"-metrics={self.metrics_address}",
            f"-etcd-endpoints={self.etcd.endpoint}",
            f"-etcd-ca={pki / 'ca.crt'}",
            f"-etcd-cert={pki / 'gateway.crt'}",
            f"-etcd-key={pki / 'gateway.key'}",
            f"-cert={pki / 'server.crt'}",
            f"-key={pki / 'server.key'}",
            f"-contract={ROOT / 'operator/hudi_contract/protocol.json'}",
            *own,
            *self._arguments,
        ]
        with (self.directory / "gateway.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "no_proxy": "*"})
        wait_for("the gateway is ready", lambda: self.probe("readyz") is not None)

    @property
    def pid(self) -> int:
        """Process id of the running process."""
        assert self._process is not None
        return self._process.pid

    @property
    def metrics_address(self) -> str:
        """Address at which it is scraped."""
        return f"127.0.0.1:{self._metrics}"

    def metrics(self, path: str = "metrics") -> str | None:
        """Answer to a request without a token; None unless the status is 200."""
        return _curl(f"http://{self.metrics_address}/{path}")

    def probe(self, path: str) -> str | None:
        """Answer of a probe; None while it is not 200."""
        return _curl(f"http://127.0.0.1:{self._probe}/{path}")

    def log(self) -> str:
        return (self.directory / "gateway.log").read_text()

    def stop(self) -> None:
        for client in self._clients:
            client.close()
        self._clients = []
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def client(self, token: str) -> Client:
        made = Client(self.endpoint, self.etcd.pki / "ca.crt", token)
        self._clients.append(made)
        return made

    def pod(self, pod: Pod) -> Client:
        """etcd as that pod sees it."""
        return self.client(self.issuer.token(pod))

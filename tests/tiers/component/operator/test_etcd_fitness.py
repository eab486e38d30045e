"""An etcd without authentication, or an old one: the operator asks it, and tables say so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from hudi_operator.adapters import etcd_rpc as rpc
from hudi_operator.adapters.etcd_fitness import FitnessCheck, outdated
from hudi_operator.adapters.etcd_rpc import Connection
from hudi_operator.model.config import EtcdConfig
from hudi_operator.model.facts import EtcdFitness
from tests.campaigns.crashes.etcd_proxy import EtcdProxy
from tests.campaigns.crashes.faults import Injector
from tests.campaigns.crashes.monitor import Monitor
from tests.campaigns.crashes.naming import Names
from tests.support.harness.operator_world import World
from tests.support.harness.servers import Cluster, Etcd, wait_for


@pytest.fixture
def open_etcd(tmp_path: Path) -> Iterator[Etcd]:
    """A real etcd that asks for certificates and has no users."""
    server = Etcd(tmp_path)
    server.start()
    try:
        yield server
    finally:
        server.stop()


class OlderEtcd(EtcdProxy):
    """A real etcd behind a proxy that changes one word: the version that Maintenance/Status tells.

    What else an old etcd would do differently is not seen here.
    """

    def __init__(self, etcd: Etcd, version: str) -> None:
        self._version = version
        nobody = Injector(kill=lambda: None)
        super().__init__(
            etcd.pki, etcd.endpoint, injector=nobody, monitor=Monitor("", 0.0), names=Names("namespace", "table")
        )

    def _unary(self, method: str, request: bytes, context: Any) -> bytes:
        try:
            answer = self._forward(method, request)
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())
            raise
        if method != "/etcdserverpb.Maintenance/Status":
            return answer
        status = rpc.messages.StatusResponse.FromString(answer)
        status.version = self._version
        return bytes(status.SerializeToString())


@pytest.fixture
def older() -> Iterator[Callable[[Etcd, str], OlderEtcd]]:
    made: list[OlderEtcd] = []

    def make(etcd: Etcd, version: str) -> OlderEtcd:
        made.append(OlderEtcd(etcd, version))
        return made[-1]

    try:
        yield make
    finally:
        for proxy in made:
            proxy.close()


def fitness(etcd: Etcd, *, allowed: bool = False, endpoint: str = "") -> EtcdFitness:
    files = {name: str(etcd.pki / file) for name, file in (("ca_file", "ca.crt"), ("cert_file", "operator.crt"))}
    config = EtcdConfig(endpoints=(endpoint or etcd.endpoint,), key_file=str(etcd.pki / "operator.key"), **files)
    connection = Connection(config, timeout=10)
    try:
        return asyncio.run(FitnessCheck(connection, allow_unauthenticated=allowed)())
    finally:
        connection.close()


def test_etcd_is_asked_for_its_authentication(open_etcd: Etcd) -> None:
    wait_for("etcd answers", lambda: open_etcd.ctl("operator", "endpoint", "health").returncode == 0)
    found = fitness(open_etcd)
    assert (found.reason, found.refused) == ("EtcdUnauthenticated", True)
    assert "externalEtcd.allowUnauthenticated" in found.message
    meant = fitness(open_etcd, allowed=True)
    assert (meant.reason, meant.refused) == ("EtcdUnauthenticated", False)
    open_etcd.set_up_users()
    assert fitness(open_etcd) == fitness(open_etcd, allowed=True) == EtcdFitness()
    assert open_etcd.ctl("root", "auth", "disable").returncode == 0
    assert fitness(open_etcd).refused


def test_an_old_version_is_told_whatever_else_is_accepted(
    open_etcd: Etcd, older: Callable[[Etcd, str], OlderEtcd]
) -> None:
    """F343."""
    wait_for("etcd answers", lambda: open_etcd.ctl("operator", "endpoint", "health").returncode == 0)
    old, new = older(open_etcd, "3.5.32"), older(open_etcd, "3.5.33")
    wanted = "etcd is 3.5.32: 3.5.33, 3.6.14, 3.7.1 or newer is needed"
    found = fitness(open_etcd, allowed=True, endpoint=old.endpoint)
    assert (found.reason, found.refused) == ("EtcdVersion", False)
    assert found.message.startswith(f"{wanted}; authentication is not enabled in etcd")
    assert fitness(open_etcd, allowed=True, endpoint=new.endpoint).reason == "EtcdUnauthenticated"
    assert fitness(open_etcd, endpoint=old.endpoint).refused
    open_etcd.set_up_users()
    assert fitness(open_etcd, endpoint=old.endpoint) == EtcdFitness("EtcdVersion", wanted)
    assert fitness(open_etcd, endpoint=new.endpoint) == EtcdFitness()


@pytest.mark.parametrize("version", ["3.5.33", "3.6.14", "3.6.16", "3.7.1", "3.8.0", "4.0.0", "3.6.20-rc.0"])
def test_versions_that_will_do(version: str) -> None:
    assert outdated(version) == ""


@pytest.mark.parametrize("version", ["3.4.99", "3.5.32", "3.6.0", "3.6.13", "3.7.0", "2.3.8", "", "3.6", "new"])
def test_versions_that_are_too_old_or_unknown(version: str) -> None:
    assert "etcd" in outdated(version)


def test_no_table_is_served_without_authentication_unless_one_line_says_so(
    cluster: Cluster, open_etcd: Etcd, tmp_path: Path
) -> None:
    world = World(cluster, open_etcd, tmp_path, "etcd-fitness")

    def told(type_: str) -> tuple[Any, Any]:
        found = world.condition("huditables", "flights", type_) or {}
        return found.get("status"), found.get("reason")

    try:
        strict = world.start_operator()
        world.table()
        wait_for("Stalled", lambda: told("Stalled") == ("True", "EtcdUnauthenticated"))
        assert told("Degraded") == ("True", "EtcdUnauthenticated")
        assert told("Ready")[0] == "False"
        assert open_etcd.read("/hudi/") == {}
        assert world.pods("agent") == []
        open_etcd.set_up_users()
        wait_for("the table is served", lambda: open_etcd.read("/hudi/control/"), seconds=60)
        wait_for("told", lambda: told("Degraded") == ("False", "NotDegraded") and told("Stalled")[0] == "False")
        strict.kill()
        assert open_etcd.ctl("root", "auth", "disable").returncode == 0
        files = {"caFile": "ca.crt", "certFile": "operator.crt", "keyFile": "operator.key"}
        named = {name: str(open_etcd.pki / file) for name, file in files.items()}
        world.settings["etcd"] = {"endpoints": [open_etcd.endpoint], "allowUnauthenticated": True, **named}
        world.start_operator()
        wait_for("served, and said", lambda: told("Degraded") == ("True", "EtcdUnauthenticated"), seconds=60)
        assert told("Stalled")[0] == "False"
    finally:
        world.close()


def test_a_table_says_that_its_etcd_is_too_old(world: World, older: Callable[[Etcd, str], OlderEtcd]) -> None:
    def told(type_: str) -> tuple[Any, Any, Any]:
        found = world.condition("huditables", "flights", type_) or {}
        return found.get("status"), found.get("reason"), found.get("message")

    def column(name: str) -> str:
        head, row = world.cluster.kubectl("get", "huditable", "flights", "-n", world.namespace).splitlines()
        return row[head.index(name) :].split()[0]

    first = world.start_operator(endpoints=[older(world.etcd, "3.5.32").endpoint])
    table = world.table()
    wanted = "etcd is 3.5.32: 3.5.33, 3.6.14, 3.7.1 or newer is needed"
    wait_for("Degraded", lambda: told("Degraded") == ("True", "EtcdVersion", wanted))
    assert column("DEGRADED") == "True"
    metric = f'hudi_operator_table_condition{{condition="Degraded",namespace="{world.namespace}",table="flights"}} 1.0'
    wait_for("what the alert HudiEtcdDegraded counts", lambda: metric in first.get("/metrics")[1])
    # It is served: the lock of such an etcd may break, but whether to stop is for people to decide.
    wait_for(
        "a gate and an agent", lambda: bool(world.etcd.read(f"/hudi/control/{table}/gate") and world.pods("agent"))
    )
    assert told("Stalled")[0] == "False"
    first.kill()
    world.start_operator(endpoints=[older(world.etcd, "3.5.33").endpoint])
    wait_for("told at the next start", lambda: told("Degraded")[:2] == ("False", "NotDegraded"))
    assert column("DEGRADED") == "False"

"""An etcd without authentication, or an old one: the operator asks it, and tables say so."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_operator.adapters.etcd_fitness import FitnessCheck, outdated
from hudi_operator.adapters.etcd_rpc import Connection
from hudi_operator.model.config import EtcdConfig
from hudi_operator.model.facts import EtcdFitness
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


def fitness(etcd: Etcd, *, allowed: bool = False) -> EtcdFitness:
    files = {name: str(etcd.pki / file) for name, file in (("ca_file", "ca.crt"), ("cert_file", "operator.crt"))}
    config = EtcdConfig(endpoints=(etcd.endpoint,), key_file=str(etcd.pki / "operator.key"), **files)
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

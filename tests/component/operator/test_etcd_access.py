"""Who may do what in etcd: the roles that etcd_auth makes (docs/contracts.md §1)."""

from __future__ import annotations

import pytest
from tests.component.operator.servers import Etcd

T = "/hudi/control/0123456789abcdef"
TABLE = "/hudi/tables/0123456789abcdef"


def test_etcd_refuses_clients_without_a_certificate(etcd: Etcd) -> None:
    done = etcd.ctl("", "get", f"{T}/gate")
    assert done.returncode != 0


@pytest.mark.parametrize("key", ["gate", "fence/inc", "admit/attempt", "request/1", "seen/inc"])
def test_a_pod_reads_what_the_operator_decides_and_cannot_change_it(etcd: Etcd, key: str) -> None:
    assert etcd.ctl("writer", "get", f"{T}/{key}").returncode == 0
    for command in (["put", f"{T}/{key}", "{}"], ["del", f"{T}/{key}"]):
        done = etcd.ctl("writer", *command)
        assert done.returncode != 0
        assert "permission denied" in done.stderr


def test_pods_and_operator_write_the_keys_of_tables(etcd: Etcd) -> None:
    for identity in ("writer", "operator"):
        assert etcd.ctl(identity, "put", f"{TABLE}/clock", "{}").returncode == 0
    assert etcd.ctl("operator", "put", f"{T}/probe", "{}").returncode == 0
    etcd.ctl("operator", "del", "--prefix", T)
    etcd.ctl("operator", "del", "--prefix", TABLE)


@pytest.mark.parametrize("identity", ["writer", "operator"])
def test_nobody_but_root_reaches_keys_outside_the_prefix(etcd: Etcd, identity: str) -> None:
    assert etcd.ctl(identity, "get", "/other/key").returncode != 0
    assert etcd.ctl(identity, "put", "/other/key", "x").returncode != 0


def test_setting_up_again_changes_nothing(etcd: Etcd) -> None:
    before = etcd.ctl("root", "role", "get", "hudi-writer").stdout
    etcd.set_up_users()
    assert etcd.ctl("root", "role", "get", "hudi-writer").stdout == before

"""Who may do what in etcd: the roles that etcd_auth makes (docs/design/contracts.md §1).

What a pod may do behind the gateway's role: test_identities.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.harness.servers import Etcd, wait_for

T = "/hudi/control/0123456789abcdef0123456789abcdef"
TABLE = "/hudi/tables/0123456789abcdef0123456789abcdef"


def test_etcd_refuses_clients_without_a_certificate(etcd: Etcd) -> None:
    done = etcd.ctl("", "get", f"{T}/gate")
    assert done.returncode != 0


@pytest.mark.parametrize("key", ["gate", "fence/inc", "admit/attempt", "request/1", "seen/inc"])
def test_a_pod_reads_what_the_operator_decides_and_cannot_change_it(etcd: Etcd, key: str) -> None:
    assert etcd.ctl("gateway", "get", f"{T}/{key}").returncode == 0
    for command in (["put", f"{T}/{key}", "{}"], ["del", f"{T}/{key}"]):
        done = etcd.ctl("gateway", *command)
        assert done.returncode != 0
        assert "permission denied" in done.stderr


@pytest.mark.parametrize(
    "compound",
    [
        f'\n\nput {T}/gate "{{}}"\n\n',
        f"\n\ndel {T}/fence/inc\n\n",
        f'version("{TABLE}/clock") > "0"\n\nget {TABLE}/clock\n\nput {T}/admit/attempt "{{}}"\n\n',
    ],
    ids=["put", "del", "else"],
)
def test_a_transaction_does_not_get_a_pod_around_its_role(etcd: Etcd, compound: str) -> None:
    """In whichever branch the forbidden request stands, whether or not it would be executed."""
    done = etcd.ctl("gateway", "txn", stdin=compound)
    assert done.returncode != 0
    assert "permission denied" in done.stderr


@pytest.mark.parametrize(
    "command",
    [["del", "--prefix", "/hudi/"], ["del", "--from-key", "/hudi/control/"], ["put", "--lease=1", f"{T}/gate", "{}"]],
)
def test_a_range_that_is_not_all_its_own_is_refused(etcd: Etcd, command: list[str]) -> None:
    assert etcd.ctl("operator", "put", f"{T}/gate", "{}").returncode == 0
    done = etcd.ctl("gateway", *command)
    assert done.returncode != 0
    assert "permission denied" in done.stderr
    assert etcd.read(f"{T}/gate")
    etcd.ctl("operator", "del", "--prefix", T)


@pytest.mark.parametrize(
    "command",
    [
        ["user", "add", "me:pw"],
        ["role", "grant-permission", "hudi-gateway", "--prefix=true", "readwrite", "/"],
        ["auth", "disable"],
    ],
)
def test_a_pod_gives_itself_no_rights(etcd: Etcd, command: list[str]) -> None:
    done = etcd.ctl("gateway", *command)
    assert done.returncode != 0
    assert "permission denied" in done.stderr


def test_a_lease_of_the_operator_is_not_revoked_by_a_pod(etcd: Etcd) -> None:
    lease = etcd.ctl("operator", "lease", "grant", "300").stdout.split()[1]
    assert etcd.ctl("operator", "put", f"--lease={lease}", f"{T}/probe", "{}").returncode == 0
    done = etcd.ctl("gateway", "lease", "revoke", lease)
    assert done.returncode != 0
    assert "permission denied" in done.stderr
    assert etcd.read(f"{T}/probe")
    etcd.ctl("operator", "lease", "revoke", lease)


def test_pods_and_operator_write_the_keys_of_tables(etcd: Etcd) -> None:
    for identity in ("gateway", "operator"):
        assert etcd.ctl(identity, "put", f"{TABLE}/clock", "{}").returncode == 0
    assert etcd.ctl("operator", "put", f"{T}/probe", "{}").returncode == 0
    etcd.ctl("operator", "del", "--prefix", T)
    etcd.ctl("operator", "del", "--prefix", TABLE)


@pytest.mark.parametrize("identity", ["gateway", "operator"])
def test_nobody_but_root_reaches_keys_outside_the_prefix(etcd: Etcd, identity: str) -> None:
    assert etcd.ctl(identity, "get", "/other/key").returncode != 0
    assert etcd.ctl(identity, "put", "/other/key", "x").returncode != 0


def test_setting_up_again_changes_nothing(etcd: Etcd) -> None:
    before = etcd.ctl("root", "role", "get", "hudi-gateway").stdout
    etcd.set_up_users()
    assert etcd.ctl("root", "role", "get", "hudi-gateway").stdout == before


def test_the_operators_certificate_is_bounded_by_the_quota_only(tmp_path: Path) -> None:
    """It writes keys of any table until the database is full: then nobody writes, and what is there
    can be read.
    """
    etcd = Etcd(tmp_path, f"--quota-backend-bytes={16 * 1024 * 1024}")
    etcd.start()
    try:
        wait_for("users are made", lambda: etcd.set_up_users().returncode == 0)
        assert etcd.ctl("operator", "put", f"{TABLE}/clock", "1").returncode == 0
        much = "x" * 1_000_000
        for number in range(40):
            done = etcd.ctl("operator", "put", f"{T}/filler/{number}", stdin=much)
            if done.returncode != 0:
                break
        assert "database space exceeded" in done.stderr, done
        assert 5 < number < 30, number
        assert "database space exceeded" in etcd.ctl("gateway", "put", f"{TABLE}/clock", "2").stderr
        assert etcd.read(f"{TABLE}/clock") == {f"{TABLE}/clock": 1}
    finally:
        etcd.stop()

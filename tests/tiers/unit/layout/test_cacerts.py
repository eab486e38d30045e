"""Java's store of certificate authorities is the same in each build of the Spark image."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import cacerts


def _authority(folder: Path, name: str) -> Path:
    files = ("-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.crt"))
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    subprocess.run(["openssl", "req", "-x509", *curve, "-subj", f"/CN={name}", *files], check=True, capture_output=True)
    return folder / f"{name}.crt"


def _store(folder: Path, name: str, *authorities: Path) -> Path:
    """As Debian's package makes it, which takes the time as it is."""
    made = folder / name
    for authority in authorities:
        keytool = ["keytool", "-importcert", "-noprompt", "-storetype", "JKS", "-storepass", cacerts.PASSWORD]
        entry = ["-keystore", str(made), "-alias", f"debian:{authority.name}", "-file", str(authority)]
        subprocess.run([*keytool, *entry], check=True, capture_output=True)
    return made


def _listed(store: Path) -> str:
    command = ["keytool", "-list", "-keystore", str(store), "-storepass", cacerts.PASSWORD]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_two_stores_of_the_same_authorities_are_equal(tmp_path: Path) -> None:
    one, two = (_authority(tmp_path, name) for name in ("one", "two"))
    first, second = _store(tmp_path, "first", one, two), _store(tmp_path, "second", two, one)
    assert first.read_bytes() != second.read_bytes()
    cacerts.main([str(first), str(second)])
    assert first.read_bytes() == second.read_bytes()
    assert cacerts.dateless(first.read_bytes()) == first.read_bytes()
    listed = _listed(first)
    assert "Your keystore contains 2 entries" in listed
    assert listed.count("Jan 1, 1970, trustedCertEntry") == 2


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda store: store[:-1], "no Java key store"),
        (lambda store: b"", "no Java key store"),
        (lambda store: store[:20] + b"x" + store[21:], "no Java key store"),
    ],
)
def test_what_is_not_understood_is_not_rewritten(tmp_path: Path, damage, said: str) -> None:  # type: ignore[no-untyped-def]
    store = _store(tmp_path, "store", _authority(tmp_path, "one"))
    damaged = damage(store.read_bytes())
    store.write_bytes(damaged)
    with pytest.raises(cacerts.NotUnderstood, match=said):
        cacerts.main([str(store)])
    assert store.read_bytes() == damaged

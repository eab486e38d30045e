"""What is taken for a whole snapshot, and how the command is called."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from hudi_operator.etcd_upkeep import __main__ as command
from hudi_operator.etcd_upkeep.snapshot import Digest

DATABASE = bytes(range(256)) * 16
WHOLE = DATABASE + hashlib.sha256(DATABASE).digest()


def problem(data: bytes, *, parts: int = 700) -> str:
    digest = Digest()
    for begin in range(0, len(data), parts):
        digest.update(data[begin : begin + parts])
    return digest.problem()


@pytest.mark.parametrize("parts", [1, 31, 32, 33, 700, 10_000])
def test_a_whole_snapshot_however_it_comes(parts: int) -> None:
    assert problem(WHOLE, parts=parts) == ""


@pytest.mark.parametrize("left", [0, 31, 512, len(DATABASE), len(WHOLE) - 1])
def test_one_that_was_cut_off_is_none(left: int) -> None:
    assert "it was cut off" in problem(WHOLE[:left])


def test_one_that_was_cut_off_at_a_page_is_none() -> None:
    assert "it was damaged" in problem(WHOLE[: 512 + 32])


def test_one_that_was_damaged_is_none() -> None:
    assert "it was damaged" in problem(b"\xff" + WHOLE[1:])


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["defragment", "--least=2"], "--least: '2': expected a number from 0 to 1"),
        (["defragment", "--least=nan"], "--least: 'nan': expected a number from 0 to 1"),
        (["prune", "--folder=x", "--keep=0"], "--keep: '0': expected a whole number from 1"),
        (["prune", "--folder=x"], "--keep"),
        (["restore"], "restore"),
    ],
)
def test_a_wrong_argument_is_named(arguments: list[str], field: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments, {})
    assert ended.value.code == 2
    assert field in capsys.readouterr().err


@pytest.mark.parametrize(
    ("environment", "missing"),
    [
        ({}, "HUDI_OPERATOR_ETCD_ENDPOINTS is not set"),
        ({"HUDI_OPERATOR_ETCD_ENDPOINTS": "https://a:2379", "HUDI_OPERATOR_ETCD_CA": "x"}, "HUDI_OPERATOR_ETCD_CERT"),
    ],
)
def test_what_is_missing_is_named(
    environment: dict[str, str], missing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["backup"], environment) == 1
    assert missing in capsys.readouterr().err


def test_the_newest_stay_whatever_cluster_they_are_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"etcd-{'fedcba'[day]}-2026010{day}T000000Z-r{9 - day}.db" for day in range(1, 6)]
    for name in names:
        (tmp_path / name).touch()
    assert command.main(["prune", f"--folder={tmp_path}", "--keep=2"], {}) == 0
    assert json.loads(capsys.readouterr().out) == {"deleted": names[:3]}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[3:])

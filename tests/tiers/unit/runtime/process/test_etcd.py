"""Values of etcd as the runtime reads them, one that nobody can read included (F417)."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_contract.shape import ShapeError
from hudi_contract.table_keys import InstantRecord
from hudi_runtime.process.etcd import Etcd

PREFIX = "/hudi/tables/x/"
GOOD = '{"inc":"a","action":"commit","state":"Pending"}'
TOO_LONG = '{"n":' + "9" * 4301 + "}"


def etcd(**values: str) -> Etcd:
    """The facade of the Java module, with these values below `instant/`."""
    keys = {f"{PREFIX}instant/{name}": value for name, value in sorted(values.items())}

    def get(key: str) -> Any:
        value = keys.get(PREFIX + key)
        return None if value is None else SimpleNamespace(key=lambda: key, value=lambda: value, modRevision=lambda: 7)

    def read(prefix: str) -> list[list[object]]:
        return [[k, v, 7] for k, v in keys.items() if k.startswith(PREFIX + prefix)]

    return Etcd(
        SimpleNamespace(
            rangeAsJson=lambda prefix: json.dumps(read(prefix)),
            rangesAsJson=lambda prefixes: json.dumps([read(prefix) for prefix in prefixes.split("\n")]),
            get=get,
        )
    )


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (TOO_LONG, "is not JSON that can be read"),
        ("not JSON", "is not JSON that can be read"),
        ("[" * 100_000, "is nested too deeply"),
        ("[1]", "is not a JSON object, but of type list"),
    ],
    ids=["digits", "text", "nested", "list"],
)
def test_a_value_that_cannot_be_read_hides_no_other(value: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    keys = etcd(t1=GOOD, t2=value, t3=GOOD)
    for _ in range(3):
        found = {entry.name: entry for entry in keys.range("")}
    assert [found[name].read(InstantRecord).inc for name in ("t1", "t3")] == ["a", "a"]
    assert not found["t1"].unreadable
    assert why in found["t2"].unreadable
    assert found["t2"].value == {}
    assert found["t2"].mod_revision == 7
    with pytest.raises(ShapeError, match=f"the value of key {PREFIX}instant/t2 in etcd {why}"):
        _ = found["t2"].readable
    told = [line for line in capsys.readouterr().err.splitlines() if f"{PREFIX}instant/t2" in line]
    assert len(told) == 1, "told once"
    assert len(told[0]) < 400


def test_a_single_value_that_cannot_be_read_is_no_absent_one() -> None:
    """A request whose outcome cannot be read would be executed again."""
    keys = etcd(t1=GOOD, t2=TOO_LONG)
    assert keys.get("instant/t0") is None
    assert (found := keys.get("instant/t1")) is not None
    assert found.readable["inc"] == "a"
    with pytest.raises(ShapeError, match="instant/t2 in etcd is not JSON"):
        keys.get("instant/t2")


def test_several_ranges_are_one_question(capsys: pytest.CaptureFixture[str]) -> None:
    first, nothing, second = etcd(a1=GOOD, b1="not JSON").ranges("instant/a", "instant/c", "instant/b")
    assert [entry.name for entry in first] == ["a1"]
    assert nothing == []
    assert [bool(entry.unreadable) for entry in second] == [True]
    assert f"{PREFIX}instant/b1" in capsys.readouterr().err

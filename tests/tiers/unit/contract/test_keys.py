import pytest

from hudi_contract import keys


def test_ranges() -> None:
    assert keys.key("/hudi", "T", "gate") == "/hudi/control/T/gate"
    assert keys.key("/hudi", "T", "admit", "ns.pod-1") == "/hudi/control/T/admit/ns.pod-1"
    assert keys.key("/hudi", "T", "lock") == "/hudi/tables/T/lock"
    assert keys.key("/hudi", "T", "report", "attempt/ns.pod-1") == "/hudi/tables/T/report/attempt/ns.pod-1"
    assert keys.assignment_key("/hudi", "hudi-agent-x", "T") == "/hudi/control/agents/hudi-agent-x/T"


def test_a_name_is_there_exactly_when_it_is_needed() -> None:
    with pytest.raises(ValueError, match="missing"):
        keys.key("/hudi", "T", "fence")
    with pytest.raises(ValueError, match="superfluous"):
        keys.key("/hudi", "T", "gate", "x")
    with pytest.raises(KeyError):
        keys.key("/hudi", "T", "unknown")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("gate", ("gate", "")),
        ("writer/abc", ("writer", "abc")),
        ("report/attempt/a", ("report", "attempt/a")),
        ("odd/x", ("", "odd/x")),
        ("lock/x", ("", "lock/x")),
    ],
)
def test_kinds(path: str, expected: tuple[str, str]) -> None:
    assert keys.kind_of(path) == expected


def test_only_the_operator_writes_the_control_range() -> None:
    for kind, entry in keys.protocol()["keys"].items():
        assert (entry["range"] == "control") == (entry["writer"] == "operator"), kind

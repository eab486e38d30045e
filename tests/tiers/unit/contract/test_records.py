"""F46: values of etcd are read into known types, and no reader raises."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_contract import records
from hudi_contract.table_keys import Registration
from hudi_operator.model import doubts
from hudi_operator.model.facts import EtcdFacts

AGENT = f"hudi-agent-{'0a' * 16}-1"
KEYS = [
    "gate",
    "lock",
    "clock",
    "assignment",
    "admit/ns.w-1",
    "writer/i",
    "alive/i",
    "queue/i-n",
    "instant/1",
    "fence/i",
    "settle/i",
    "request/r",
    "seen/i",
    "report/timeline",
    "report/callback",
    "report/catalog",
    "report/attempt/ns.w-1",
    "done/restore-n",
    "done/savepoint-s",
    "done/metadata",
    "done/bootstrap",
    "done/service-clean",
    "done/callback",
    "done/unknown",
]
GARBAGE = (
    b"",
    b"{not JSON",
    b"\xff\xfe\x00",
    b"NaN",
    b"null",
    b"[" * 100_000 + b"]" * 100_000,
    b'"' + b"x" * 2_000_000 + b'"',
    b"9" * 5_000,
    b"[1]",
    b'"many"',
)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=5), x),
)


def stored(key: str, raw: object) -> Any:
    kind, _, name = key.partition("/")
    return records.stored(kind, name, raw)


INC = "f4cc3e84-3674-4137-89bd-5d1d6548d09b"


@pytest.mark.parametrize("key", KEYS)
def test_what_is_no_object_is_unreadable_and_says_why(key: str) -> None:
    for raw in GARBAGE:
        found = stored(key, raw)
        assert found.unreadable
        assert found.doubts == (found.unreadable,)
        assert set(found.value) <= {"inc", "attempt", "role"}


@settings(deadline=None)
@given(
    st.sampled_from(KEYS),
    st.dictionaries(
        st.sampled_from(
            [
                "inc",
                "state",
                "phase",
                "proofs",
                "pods",
                "instants",
                "error",
                "pendingCount",
                "commits",
                "sinceMs",
                "lock",
                "x",
            ]
        ),
        ANY,
    ),
)
def test_no_reader_raises_and_what_is_left_is_of_its_type(key: str, value: dict[str, Any]) -> None:
    found = stored(key, json.dumps(value).encode())
    again = stored(key, found.value)
    assert isinstance(found.value, dict)
    assert found.unreadable or not again.doubts


def test_unknown_fields_and_absent_ones_are_fine() -> None:
    for key, value in (
        ("gate", {"state": "open", "of": ["a", "later"]}),
        ("settle/i", {"phase": "Fenced", "new": {"x": 1}}),
        ("report/timeline", {"exists": True}),
    ):
        found = stored(key, value)
        assert not found.doubts
        assert found.value.items() >= value.items()


@pytest.mark.parametrize(
    ("key", "value", "left"),
    [
        ("report/timeline", {"exists": True, "pendingCount": "many", "commits": [1]}, {"exists": True}),
        ("writer/i", {"podUID": "u", "wallClockMs": 10**40}, {"podUID": "u", "inc": "i"}),
        ("settle/i", {"phase": "Draining", "times": [1]}, {"phase": "Draining", "inc": "i"}),
        ("lock", {"inc": "i", "sinceMs": -1}, {"inc": "i"}),
        (f"admit/ns.{AGENT}", {"role": [1]}, {"attempt": f"ns.{AGENT}", "role": "agent"}),
        ("admit/ns.hudi-agent-a-1", {"role": [1]}, {"attempt": "ns.hudi-agent-a-1"}),
        ("queue/i-n", {"inc": [1]}, {"inc": "i"}),
    ],
)
def test_a_field_on_which_no_decision_leans_is_left_out(key: str, value: dict[str, Any], left: dict[str, Any]) -> None:
    found = stored(key, value)
    assert (found.value, found.unreadable) == (left, "")
    assert found.doubts


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("gate", {"state": "ajar"}, ".state is not one of open, closed, frozen"),
        ("gate", {}, ".state is missing"),
        ("lock", {"attempt": "x"}, ".inc is missing"),
        ("settle/i", {"phase": "Quarantined"}, ".phase is not one of"),
        ("settle/i", {"phase": "Fenced", "proofs": {"u": {}}}, ".proofs.u.kind is missing"),
        ("instant/1", {"inc": "i", "state": "Lost"}, ".state is not one of Pending, Abandoned"),
        ("report/timeline", {"exists": True, "error": "bad"}, ".error is not an object"),
        ("done/restore-n", {"result": "Running", "undone": "x"}, ".undone is not a whole number"),
    ],
)
def test_of_a_value_with_a_vital_field_that_is_wrong_nothing_is_believed(
    key: str, value: dict[str, Any], reason: str
) -> None:
    found = stored(key, value)
    assert found.unreadable.startswith(reason)
    assert set(found.value) <= {"inc"}


@pytest.mark.parametrize("value", [{"inc": INC, "priority": 0}, {"inc": [1]}, b"{"])
def test_a_ticket_names_its_incarnation_and_not_a_part_of_its_nonce(value: Any) -> None:
    """Otherwise there is somebody whom no pod can ever prove dead."""
    assert stored(f"queue/{INC}-eddea38b-f834-45b4-8568-0123456789ab", value).value["inc"] == INC


def test_the_name_of_a_ticket_counts_and_not_its_value() -> None:
    """Whoever writes a ticket could otherwise have somebody else fenced, or somebody whom no pod
    can ever prove dead.
    """
    name = f"queue/{INC}-eddea38b-f834-45b4-8568-0123456789ab"
    assert stored(name, {"inc": "nobody"}).value["inc"] == INC
    assert stored("queue/other-form", {"inc": INC}).value["inc"] == INC


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("lock", {"inc": "i\ud800"}),
        ("writer/i", {"podUID": "\udc00"}),
        ("report/timeline", {"exists": True, "error": {"message": "\ud800"}}),
        ("settle/i", {"phase": "Fenced", "proofs": {"\ud800": {"kind": "PodTerminated"}}}),
        ("gate", {"state": "open", "path": "s3a://\udfff"}),
    ],
)
def test_half_of_a_surrogate_pair_is_no_text(key: str, value: dict[str, Any]) -> None:
    """JSON has an escape for it; no key of etcd and no request to the API server can have it."""
    found = stored(key, json.dumps(value).encode())
    assert "half of a surrogate pair" in found.doubts[0]
    json.dumps(found.value, ensure_ascii=False).encode()


@pytest.mark.parametrize("field", ["bootId", "appId"])
def test_what_a_settle_record_repeats_is_short(field: str) -> None:
    found = stored("writer/i", {"podUID": "u", field: "x" * 254})
    assert (found.value, found.unreadable) == ({"podUID": "u", "inc": "i"}, "")
    assert f".{field} is not a text of at most 253 characters" in found.doubts


def test_every_key_that_is_not_believed_is_named() -> None:
    facts = EtcdFacts(
        1,
        "c",
        gate=stored("gate", b"{"),
        done={"restore-n": stored("done/restore-n", b"7")},
        settles={"i": stored("settle/i", {"phase": "Fenced"})},
    )
    assert [each.key for each in doubts.unreadable(facts)] == ["done/restore-n", "gate"]
    assert doubts.undecided(facts) == "done/restore-n"


def test_a_writer_of_low_priority_is_read_whole() -> None:
    assert not stored("writer/i", {"podUID": "u", "priority": -1000}).doubts
    assert not stored("queue/i-n", {"inc": "i", "priority": -1000}).doubts


@pytest.mark.parametrize("node", ["../configmaps", "a/b", "..", ".", "Node", "a\nb", "a..b", "-a", "x" * 254, 7])
def test_a_node_has_a_name_of_kubernetes(node: Any) -> None:
    """What is none is left out, and named: the rest of the registration counts."""
    for kind in ("writer", "settle"):
        stored = records.stored(kind, "i", {"phase": "Fenced", "podUID": "u", "node": node})
        assert stored.read(Registration).node == ""
        assert stored.read(Registration).pod_uid == "u"
        assert not stored.unreadable
        (doubt,) = stored.doubts
        assert doubt.startswith(".node ")
    named = records.stored("writer", "i", {"node": "ip-10-0-0-1.ec2.internal"})
    assert (named.read(Registration).node, named.doubts) == ("ip-10-0-0-1.ec2.internal", ())


@pytest.mark.parametrize("element", ["[]", "{}", "[[]]", '{"":{}}', "0", '""'])
def test_a_value_of_many_elements_is_not_parsed(element: str) -> None:
    """F520: values that pods may put, 12 MiB, were 300 to 400 MB here."""
    for number in (100, 10_000):
        raw = f'{{"inc":"i","action":"commit","state":"Pending","x":[{",".join([element] * number)}]}}'.encode()
        found = records.stored("instant", "20260101000000000", raw)
        assert "elements" in found.unreadable
        assert found.value == {}


@pytest.mark.parametrize("text", [",[{" * 20_000, '\\",' * 20_000, "\\\\"], ids=["commas", "quotes", "backslash"])
def test_what_a_text_has_is_no_element(text: str) -> None:
    raw = f'{{"inc":"i","action":"commit","state":"Pending","x":"{text}"}}'.encode()
    assert not records.stored("instant", "20260101000000000", raw).unreadable


@pytest.mark.parametrize("raw", [b'"' + b'\\",' * 300_000, b"[," * 500_000, b'",' * 500_000])
def test_elements_are_counted_quickly(raw: bytes) -> None:
    assert records.stored("instant", "20260101000000000", raw).unreadable

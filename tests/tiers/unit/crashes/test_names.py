"""Names of writes and values: the same in each run, whatever uids, hashes and times are."""

from __future__ import annotations

from typing import Any

import pytest

from tests.campaigns.crashes.agent_proxy import agent_write
from tests.campaigns.crashes.naming import Names

JsonDict = dict[str, Any]
T, C = "20260101000000000", "20260101000000001"
INSTANTS = {T: {"outcome": None}, C: {"outcome": "RolledBack"}}


def test_a_hash_is_a_hash_with_and_without_quotes() -> None:
    """YAML quotes a hash that looks like a number, and that depends on the run."""
    names = Names("c-1", "00112233445566ff")
    assert names.text("a: 0123456789abcdef") == names.text("a: '0123456789012345'") == "a: H"


def test_instants_have_names_or_are_just_instants() -> None:
    names = Names("c-1", "00112233445566ff")
    names.call(T, "T1")
    assert names.value({"clock": T, "other": C}) == {"clock": "T1", "other": "INSTANT"}


@pytest.mark.parametrize(
    ("operations", "compared", "name"),
    [
        ([("put", "writer/i", {"inc": "i"}), ("put", "alive/i", {})], ["admit/a"], ("register", "writer/i", "")),
        ([("put", "lock", {})], ["lock"], ("acquire", "lock", "")),
        (
            [("put", f"instant/{T}", {"action": "rollback"}), ("put", "clock", {"value": T})],
            ["lock"],
            ("record-instant", f"instant/{T}", "rollback"),
        ),
        ([("put", "clock", {"value": C})], ["lock", f"instant/{T}"], ("publish", f"instant/{T}", C)),
        ([("put", "clock", {"value": C})], ["clock"], ("clock", "clock", "")),
        ([("put", f"instant/{T}", {"claimedBy": "i"})], [f"instant/{T}"], ("claim", f"instant/{T}", "")),
        (
            [("put", "settle/i", {"phase": "RollingBack", "instants": INSTANTS})],
            ["settle/i"],
            ("settle-update", "settle/i", "RollingBack open=1"),
        ),
        (
            [("put", "settle/i", {"phase": "Swept", "instants": {}})],
            ["settle/i"],
            ("settle-update", "settle/i", "Swept"),
        ),
        ([("delete", "lock", {}), ("delete", f"instant/{T}", {})], ["lock"], ("release", "lock", T)),
        ([("delete", f"instant/{T}", {})], [f"instant/{T}"], ("done", f"instant/{T}", "abandoned")),
        ([("put", "done/abandoned-i", {})], ["done/abandoned-i"], ("remember", "done/abandoned-i", "")),
        ([("delete", "done/abandoned-i", {})], ["done/abandoned-i"], ("forget", "done/abandoned-i", "")),
        ([("delete", "alive/i", {}), ("delete", "writer/i", {})], ["fence/i"], ("clean-exit", "alive/i", "")),
    ],
)
def test_each_write_of_the_agent_has_its_name(
    operations: list[tuple[str, str, JsonDict]], compared: list[str], name: tuple[str, str, str]
) -> None:
    assert agent_write(operations, compared=compared) == name

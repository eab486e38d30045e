"""Sections of status and entries of its lists have the fields of the CRDs; they are read
tolerantly and written back.
"""

from __future__ import annotations

from typing import Any

import pytest

from hudi_contract.shape import Record, fields_of
from hudi_operator.model import status
from tests.support import crds

ENTRIES = {
    ("hudiwriters", "attempts[]"): status.AttemptEntry,
    ("hudiwriters", "earlierAttempts"): status.Counts,
    ("hudiwriters", "recentConflicts[]"): status.ConflictEntry,
    ("huditables", "timeline.pending[]"): status.PendingEntry,
    ("huditables", "timeline.commits[]"): status.CommitEntry,
    ("huditables", "timeline.foreign[]"): status.ForeignEntry,
    ("huditables", "savepoints[]"): status.SavepointEntry,
    ("huditables", "holds[]"): status.HoldEntry,
    ("huditables", "settling[]"): status.SettlingEntry,
    ("huditables", "bootstrap"): status.BootstrapStatus,
    ("huditables", "restore"): status.RestoreStatus,
    ("huditables", "metadataTable"): status.MetadataTableStatus,
    ("huditables", "commitCallback"): status.CallbackStatus,
    ("huditables", "services.compaction"): status.ServiceStatus,
    ("huditables", "lock"): status.LockStatus,
}
TYPES = {"text": "string", "number": "integer", "true | false": "boolean", "[text]": "array"}


def schema(plural: str, at: str) -> crds.JsonDict:
    found = crds.schema(plural, "status")
    for part in at.split("."):
        found = found["properties"][part.removesuffix("[]")]
        found = found["items"] if part.endswith("[]") else found
    return found


@pytest.mark.parametrize(("place", "record"), ENTRIES.items(), ids=[at for _, at in ENTRIES])
def test_an_entry_has_the_fields_of_the_crd(place: tuple[str, str], record: type[Record]) -> None:
    wanted = {name: field["type"] for name, field in schema(*place)["properties"].items()}
    assert {one.name: TYPES.get(one.type.name, "string") for one in fields_of(record)} == wanted


@pytest.mark.parametrize(("place", "record"), ENTRIES.items(), ids=[at for _, at in ENTRIES])
def test_an_entry_is_written_as_it_was_read(place: tuple[str, str], record: type[Record]) -> None:
    samples: dict[str, Any] = {"string": "x", "integer": 1, "boolean": True, "array": ["x"]}
    words = {one.name: one.type.name.split(" | ")[-1] for one in fields_of(record) if one.type.name not in TYPES}
    full = {name: words.get(name, samples[field["type"]]) for name, field in schema(*place)["properties"].items()}
    assert record.known(full).to_json() == full
    newer = {**full, "ofANewerVersion": {"a": 1}}
    assert record.known(newer).to_json() == newer
    least = {name: full[name] for name in schema(*place).get("required", ())}
    assert least.items() <= record.known(least).to_json().items()


def test_values_of_another_type_are_tolerated() -> None:
    (entry,) = status.attempt_entries({"attempts": [{"number": 2, "pod": 7, "instants": "x", "advanced": None}]})
    assert entry == status.AttemptEntry(number=2)


@pytest.mark.parametrize(
    "entries", [[{}], [{"number": None}], [{"number": "one"}], [{"number": 1}, "x"], "x", {"a": 1}]
)
def test_an_attempt_without_a_number_is_an_error(entries: Any) -> None:
    """The writer waits for a person; its pods and incarnations are still found by other fields."""
    assert status.attempt_entries({"attempts": entries})
    with pytest.raises(ValueError, match="an entry has no number"):
        status.numbered_attempts({"attempts": entries})


def test_attempts_are_in_the_order_of_their_numbers() -> None:
    entries = [{"number": 11, "pod": "b"}, {"number": 2, "pod": "a"}]
    assert [entry.number for entry in status.numbered_attempts({"attempts": entries})] == [2, 11]
    assert status.numbered_attempts({}) == status.numbered_attempts({"attempts": None}) == ()

"""Whether a value of the table's own keys is one of the contract: values that a simulation or a
fake writes have no field that no reader knows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from hudi_contract import records
from hudi_contract.keys import Kind
from hudi_contract.shape import Record

TOLD = frozenset({Kind.DONE, Kind.SETTLE, Kind.REPORT})
"""Kinds of keys by which an agent and an attempt tell the operator what they have done."""


def wrong(key: str, value: Mapping[str, Any]) -> str:
    """The error of a value by its contract, with field and rule; empty when it is valid."""
    kind, _, name = key.partition("/")
    record = records._kind(kind, name).record
    if kind not in TOLD or record is Record:
        return ""
    if said := record.wrong(value):
        return f"{key}: {record.__name__}{said}"
    unknown = sorted(_unknown(record.from_json(value)))
    return f"{key}: {record.__name__} has no field {unknown[0]}" if unknown else ""


def _unknown(record: Record) -> Iterator[str]:
    yield from record.more
    for field in dataclasses.fields(record):
        found = getattr(record, field.name)
        parts = found.values() if isinstance(found, Mapping) else found if isinstance(found, tuple) else (found,)
        for part in parts:
            if isinstance(part, Record):
                yield from (f"{field.name}.{name}" for name in _unknown(part))

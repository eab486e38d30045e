"""Every record of the contract: strict about types, tolerant of what a newer
version has written.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from hudi_contract import assignment, job, reports, requests, settle, table_keys
from hudi_contract.shape import Record, ShapeError, fields_of, json_name
from tests.campaigns.pages.records import classes

RECORDS = [
    one for module in (table_keys, settle, requests, reports, assignment, job) for one in classes(module, Record)
]
SAMPLES: dict[str, Any] = {"text": "x", "number": 7, "true | false": True, "JSON": {"any": [1]}}


def value_of(name: str, parts: tuple[type[Record], ...]) -> Any:
    """A value in JSON of a type, as docs/design/records.md names it."""
    if name.startswith("["):
        return [value_of(name[1:-1], parts)]
    if name.startswith("{name: "):
        return {"a": value_of(name.removeprefix("{name: ")[:-1], parts)}
    if parts:
        return sample(parts[0])
    return SAMPLES.get(name, name.partition(" | ")[0])


def sample(record: type[Record]) -> dict[str, Any]:
    return {one.name: value_of(one.type.name, one.type.parts) for one in fields_of(record)}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_what_is_read_is_written_again(record: type[Record]) -> None:
    value = sample(record)
    assert value
    made = record.from_json(value)
    assert json.loads(json.dumps(made.to_json())) == value
    newer = {**value, "ofALaterVersion": {"kept": [1]}}
    assert record.from_json(newer).to_json() == newer
    absent = [one.name for one in fields_of(record) if one.optional and one.name not in record.REQUIRED]
    assert record.from_json({**value, **dict.fromkeys(absent)})


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_a_value_of_another_type_is_named(record: type[Record]) -> None:
    for one in fields_of(record):
        if one.type.name != "JSON":
            wrong = {**sample(record), one.name: 1.5}
            with pytest.raises(ShapeError, match=rf"^{record.__name__}\.{one.name} "):
                record.from_json(wrong)
            if one.default is not dataclasses.MISSING:
                assert getattr(record.known(wrong), one.attribute) == one.default
    with pytest.raises(ShapeError, match="is not an object"):
        record.from_json([])


def test_what_is_needed_is_named() -> None:
    with pytest.raises(ShapeError, match=r"^Gate\.state is missing"):
        table_keys.Gate.from_json({"state": ""})
    with pytest.raises(ShapeError, match=r"^RestoreRequest\.nonce is missing"):
        requests.RestoreRequest.from_json({"id": "restore-1", "savepoint": "a"})
    with pytest.raises(ShapeError, match=r"^JobRecord\.source\.files\.paths is not a list"):
        job.JobRecord.from_json({**sample(job.JobRecord), "source": {"files": {"format": "csv", "paths": "a"}}})


def test_a_flag_is_no_number_and_a_number_no_flag() -> None:
    assert table_keys.Gate.wrong({"state": "open", "protocolVersion": True}).startswith(
        ".protocolVersion is not a whole number"
    )
    assert table_keys.Gate.wrong({"state": "open", "adopted": 1}) == ".adopted is not true or false"


def test_names_in_json() -> None:
    assert [json_name(name) for name in ("pod_uid", "with_", "class_", "n", "at_ms")] == [
        "podUID",
        "with",
        "class",
        "n",
        "atMs",
    ]
    assert fields_of(assignment.AssignmentRecord)[0].name == "T"

"""`spec.validations` of a HudiWriter: what an object that was stored under another CRD may say."""

from __future__ import annotations

import re
from typing import Any

import pytest

from hudi_operator.api.spec import SpecError, WriterSpec
from hudi_operator.api.validations import Validation

FILES = {"source": {"files": {"format": "csv", "paths": ["s3a://landing/x"]}}}
EMPTY = {"name": "a", "sql": "SELECT 1 FROM batch", "expect": "Empty"}


def writer(*validations: dict[str, Any], **spec: Any) -> WriterSpec:
    given = {"tableRef": {"name": "t"}, **(spec or FILES), "validations": list(validations)}
    return WriterSpec.from_object({"kind": "HudiWriter", "metadata": {"name": "w"}, "spec": given})


def test_each_kind() -> None:
    found = writer(
        EMPTY,
        {"name": "b", "sql": "SELECT count(*) FROM batch", "equals": ""},
        {"name": "c", "minRows": 1},
        {"name": "d", "minRows": 2, "maxRows": 2},
        {"name": "e", "notNull": ["id", "a.b"]},
    ).validations
    assert found == (
        Validation("a", sql="SELECT 1 FROM batch", expect="Empty"),
        Validation("b", sql="SELECT count(*) FROM batch", equals=""),
        Validation("c", min_rows=1),
        Validation("d", min_rows=2, max_rows=2),
        Validation("e", not_null=("id", "a.b")),
    )
    assert [each.of_job.equals for each in found] == [None, "", None, None, None]


ONE = ": needs one of sql, minRows and maxRows, and notNull"
RESULT = ": sql needs one of expect and equals, the others have neither"


@pytest.mark.parametrize(
    ("validation", "said"),
    [
        ({}, ONE),
        ({"minRows": 1, "notNull": ["id"]}, ONE),
        ({**EMPTY, "maxRows": 1}, ONE),
        ({"sql": "SELECT 1"}, RESULT),
        ({**EMPTY, "equals": "0"}, RESULT),
        ({"minRows": 1, "equals": "0"}, RESULT),
        ({"notNull": ["id"], "expect": "Empty"}, RESULT),
        ({"minRows": 3, "maxRows": 2}, ".minRows: 3 is more than maxRows 2"),
        ({"minRows": 0}, ".minRows: 0 must be at least 1"),
        ({**EMPTY, "expect": "Full"}, ".expect: 'Full' must be one of Empty"),
        ({**EMPTY, "equals": 0}, ".equals: expected str, found 0"),
        ({**EMPTY, "name": "A b"}, ".name: 'A b' must match"),
        ({"notNull": ["a,b"]}, ".notNull: 'a,b' must match"),
    ],
)
def test_what_is_no_validation(validation: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=re.escape(f"spec.validations[0]{said}")):
        writer({"name": "a", **validation})


def test_a_program_is_not_validated() -> None:
    with pytest.raises(SpecError, match=r"spec[.]validations: cannot be combined with application"):
        writer(EMPTY, application={"mainFile": "local:///x.py"})


def test_no_deadline_is_set_for_the_commits_of_a_program() -> None:
    with pytest.raises(SpecError, match=r"spec[.]commitDeadlineSeconds: cannot be combined with application"):
        writer(application={"mainFile": "local:///x.py"}, commitDeadlineSeconds=60)

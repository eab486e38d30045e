"""Positions in a column of a database: no digit and no microsecond is lost, and nothing but a value
becomes SQL.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_runtime.read import jdbc_positions as jp

AT = jp.Position("shop", "sales.orders", "updated_at", jp.TIME, to="2026-01-31 12:00:00.000001", rows=2)


@pytest.mark.parametrize(
    ("kind", "text", "wanted"),
    [
        (jp.NUMBER, "-12", "-12"),
        (jp.NUMBER, "12345678901234567890123456789012345678.10", "12345678901234567890123456789012345678.10"),
        (jp.DATE, "2026-01-31", "2026-01-31"),
        (jp.TIME, "2026-01-31 12:00:00.000001+00", "2026-01-31 12:00:00.000001"),
        (jp.TIME, "2026-01-31T12:00:00Z", "2026-01-31 12:00:00"),
        (jp.TIME, "2026-01-31 12:00:00.5", "2026-01-31 12:00:00.500000"),
    ],
)
def test_a_value_is_kept_as_it_is(kind: str, text: str, wanted: str) -> None:
    assert jp.value(kind, text) == wanted
    assert jp.value(kind, wanted) == wanted


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (jp.NUMBER, "NaN"),
        (jp.NUMBER, "1e5"),
        (jp.NUMBER, "1 OR 1=1"),
        (jp.NUMBER, "1\n"),
        (jp.NUMBER, ""),
        (jp.NUMBER, "٣"),
        (jp.DATE, "infinity"),
        (jp.DATE, "2026-02-30"),
        (jp.DATE, "0000-00-00"),
        (jp.DATE, "10000-01-01"),
        (jp.DATE, "2026-01-31' OR '1'='1"),
        (jp.TIME, "infinity"),
        (jp.TIME, "2026-01-31 12:00:00+01"),
        (jp.TIME, "2026-01-31 12:00:00.0000001"),
        (jp.TIME, "0044-03-15 12:00:00 BC"),
        ("text", "a"),
    ],
)
def test_anything_else_is_refused(kind: str, text: str) -> None:
    with pytest.raises(jp.PositionError, match="that a position can have"):
        jp.value(kind, text)
    if kind in jp.KINDS:
        with pytest.raises(jp.PositionError, match="that a position can have"):
            jp.literal(kind, text)


def test_values_in_sql() -> None:
    assert jp.literal(jp.NUMBER, "-1.50") == "-1.50"
    assert jp.literal(jp.DATE, "2026-01-31") == "DATE '2026-01-31'"
    assert jp.literal(jp.TIME, "2026-01-31T12:00:00Z") == "TIMESTAMP '2026-01-31 12:00:00'"


@given(st.integers(-(10**60), 10**60), st.integers(0, 999_999), st.integers(0, 10**9))
def test_a_number_and_what_is_below_it(whole: int, part: int, lag: int) -> None:
    text = jp.value(jp.NUMBER, f"{whole}.{part:06}")
    assert text == f"{whole}.{part:06}"
    low = jp.before(jp.NUMBER, text, lag)
    assert Fraction(low) + lag == Fraction(text)
    assert jp.less(jp.NUMBER, low, text) is (lag > 0)


@given(st.integers(10**15, 2 * 10**17), st.integers(0, 10**8))
def test_a_time_and_what_is_below_it(micros: int, lag: int) -> None:
    time = datetime(1970, 1, 1) + timedelta(microseconds=micros)  # noqa: DTZ001 - as the database writes it
    text = jp.value(jp.TIME, time.isoformat(" "))
    assert datetime.fromisoformat(text) == time
    low = jp.before(jp.TIME, text, lag)
    assert datetime.fromisoformat(low) + timedelta(seconds=lag) == time
    assert jp.less(jp.TIME, low, text) is (lag > 0)


def test_there_is_a_first_time() -> None:
    assert jp.before(jp.TIME, "0001-01-01 00:00:05", 6) == "0001-01-01 00:00:00"
    assert jp.before(jp.DATE, "0001-01-05", 6) == "0001-01-01"
    assert jp.before(jp.DATE, "2026-01-01", 1) == "2025-12-31"


def test_where_the_next_read_begins() -> None:
    """At the position itself, which has rows with equal values, or below it, but not before
    `startFrom`.
    """
    assert replace(AT, to="").low(60) == ""
    assert AT.low(0) == AT.to
    assert AT.low(1) == "2026-01-31 11:59:59.000001"
    begun = replace(AT, begin="2026-01-31 12:00:00")
    assert begun.low(60) == begun.begin
    assert begun.low(0) == AT.to
    assert replace(begun, to="").low(60) == begun.begin


def test_a_position_is_stored_and_read() -> None:
    for position in (AT, replace(AT, table="", kind=jp.NUMBER, to="5", begin="-1"), replace(AT, to="", rows=0)):
        assert jp.parse(position.checkpoint()) == position


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"to": "2026-01-31' OR '1'='1"}, "is no time"),
        ({"begin": "now()"}, "is no time"),
        ({"kind": "text"}, "kind 'text': must be one of number, date, time"),
        ({"column": None}, "column None: must be a text"),
        ({"rows": -1}, "rows -1: must be a number of rows"),
        ({"rows": "1"}, "rows '1': must be a number of rows"),
    ],
)
def test_a_stored_position_is_not_believed(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(jp.PositionError, match=told):
        jp.parse({**AT.checkpoint(), **changed})

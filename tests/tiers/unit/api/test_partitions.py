"""Declared partitions: two patterns have a partition in common exactly when some
text matches both.
"""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudi_operator.api import partitions
from hudi_operator.api.spec import SpecError, WriterSpec

TEXTS = ["".join(text) for length in range(7) for text in product("ab", repeat=length)]


PATTERNS = st.lists(st.text("ab*?", max_size=4), min_size=1, max_size=3)


def in_common(mine: Sequence[str], others: Sequence[str]) -> tuple[str, str] | None:
    return partitions.in_common(partitions.Patterns(mine), partitions.Patterns(others))[0]


@given(PATTERNS, PATTERNS)
def test_what_is_in_common_is_what_some_text_shows(mine: list[str], others: list[str]) -> None:
    # With a '*' a pattern of four has three characters that a text must show; two such patterns are
    # shown by a text of six.
    matched = {p: {text for text in TEXTS if fnmatch.fnmatchcase(text, p)} for p in (*mine, *others)}
    shown = next(((a, b) for a, b in product(mine, others) if matched[a] & matched[b]), None)
    assert in_common(mine, others) == shown


def test_patterns_that_differ_at_the_end_only_are_compared_quickly() -> None:
    """F513: planners run in the loop that serves all tables."""
    mine, others = (["*" + "?" * (90 + n) + end for n in range(32)] for end in "ab")
    began = time.process_time()
    assert in_common(mine, others) is None
    assert in_common(mine, [*others, "*a"]) == (mine[0], "*a")
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    ("mine", "others", "found"),
    [
        (("2026-01-*",), ("2026-02-*",), None),
        (("2026-01-*",), ("2026-01-31", "2026-02-*"), ("2026-01-*", "2026-01-31")),
        (("2026-01-1?",), ("2026-01-2?",), None),
        (("de/*", "fr/*"), ("*/2026-01",), ("de/*", "*/2026-01")),
        (("a",), (), ("a", "*")),
        ((), (), ("*", "*")),
    ],
)
def test_in_common(mine: tuple[str, ...], others: tuple[str, ...], found: tuple[str, str] | None) -> None:
    """Who declares nothing may write anywhere."""
    assert in_common(mine, others) == found


def test_field_names_may_be_written_or_left_out() -> None:
    fields = ("land", "day")
    assert (
        partitions.normal("land=de/day=2026-01-*", fields)
        == partitions.normal("de/2026-01-*", fields)
        == "de/2026-01-*"
    )
    assert partitions.normal("day=1*", ("day",)) == "1*"
    assert partitions.normal("city=x", ("day",)) == "city=x", "a value may have a '=' of its own"


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("*a*a*a*a*a*", "has more than five *"),
        ("/a", "is not a partition path: no '/' at the beginning or end"),
        ("a/", "is not a partition path: no '/' at the beginning or end"),
        ("a//b", "none twice in a row"),
        *((f"2026-0{char}", "patterns are made of * (any characters)") for char in "[]{}!\\"),
        ("a\nx=y}", "patterns are made of *"),
    ],
)
def test_what_is_no_pattern(pattern: str, words: str) -> None:
    """The operator refuses what `kubectl apply` refuses, where the CRD was not asked, too."""
    assert words in partitions.problem(pattern)
    writer = {"tableRef": {"name": "t"}, "partitions": ["ok", pattern]}
    with pytest.raises(SpecError, match=r"spec\.partitions\[1\]"):
        WriterSpec.from_object({"metadata": {"namespace": "n", "name": "w", "uid": "u"}, "spec": writer})


@pytest.mark.parametrize("pattern", ["2026-01-*", "*", "de/2026-0?", "day=2026-01-01", "a b", "*a*a*a*a*"])
def test_what_is_a_pattern(pattern: str) -> None:
    assert partitions.problem(pattern) == ""

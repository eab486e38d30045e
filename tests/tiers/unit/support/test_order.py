"""Which files of a tier come first."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support import evidence, order

DAY = "2026-11-2{}T10:00Z"


def test_the_longest_file_comes_first() -> None:
    taken = {"a": {"t[1]": 10.0, "t[2]": 20.0, "extra": 900.0}, "b": {"t": 40.0}, "c": {"t": 40.0}}
    results = {file: {name: {"seconds": seconds} for name, seconds in group.items()} for file, group in taken.items()}
    tests = [("a", "t[1]"), ("c", "t"), ("a", "t[2]"), ("b", "t")]
    assert order.longest_first(tests, results) == ["c", "b", "a"], "of tests that are not run nothing counts"
    assert order.longest_first([*tests, ("new", "t")], results)[0] == "new", "it may be long"
    assert order.longest_first([("b", "x"), ("a", "x")], {}) == ["b", "a"]
    assert order.longest_first([], results) == []


def test_the_file_that_was_seen_longest_ago_comes_first() -> None:
    results = {
        "new": {"t": {"at": DAY.format(9), "seconds": 1.0}, "extra": {"at": DAY.format(0)}},
        "old": {"t": {"at": DAY.format(9)}, "u": {"at": DAY.format(1)}},
        "long": {"t": {"at": DAY.format(5), "seconds": 50.0}},
        "short": {"t": {"at": DAY.format(5).replace("10:", "11:"), "seconds": 5.0}},
    }
    tests = [("new", "t"), ("long", "t"), ("short", "t"), ("old", "t"), ("old", "u"), ("never", "t")]
    assert order.oldest_first(tests, results) == ["never", "old", "short", "long", "new"]


def test_the_stored_results_of_each_tier_decide() -> None:
    """They are kept by test or, as ``*``, by file."""
    for tier in ("component", "hudi"):
        stored = order.stored(evidence.RAW / "last-run" / f"{tier}.json")
        tests = [(file, name) for file, group in stored.items() for name in group]
        for file in (min(stored.keys() - order.OF_INVARIANTS), max(stored.keys() - order.OF_INVARIANTS)):
            old = {name: {**said, "at": DAY.format(0)} for name, said in stored[file].items()}
            of_the_file = [(file, f"test_{name}" if name == "*" else name) for name in stored[file]]
            others = [(one, name) for one, name in tests if one != file]
            found = order.oldest_first([*others, *of_the_file], {**stored, file: old})
            assert next(one for one in found if one not in order.OF_INVARIANTS) == file, tier


def test_files_that_show_an_invariant_come_first() -> None:
    """A run that is cut off has shown these."""
    shown = min(order.OF_INVARIANTS)
    tests, results = [("never", "t"), (shown, "t")], {shown: {"t": {"at": DAY.format(9), "seconds": 1.0}}}
    assert order.oldest_first(tests, results) == [shown, "never"]
    assert order.longest_first(tests, results) == [shown, "never"]
    assert any("/hudi/test_agent.py" in file for file in order.OF_INVARIANTS)


def test_results_are_those_that_are_stored(tmp_path: Path) -> None:
    assert order.stored(None) == order.stored(tmp_path / "none.json") == {}
    (tmp_path / "hudi.json").write_text(json.dumps({"tests/a.py": {"t": {"outcome": "passed", "at": "x"}}}))
    assert order.stored(tmp_path / "hudi.json") == {"tests/a.py": {"t": {"outcome": "passed", "at": "x"}}}

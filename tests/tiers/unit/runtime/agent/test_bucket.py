"""Which settings of a bucket damage a table, and which do not."""

from __future__ import annotations

import pytest

from hudi_runtime.agent.bucket import Rule, Settings, costly, harmful, unknown


@pytest.mark.parametrize("prefix", ["", "flights", "flights/", "flights/.hoodie/", "flights/month=2/part"])
def test_an_expiry_rule_over_the_tables_files_is_named(prefix: str) -> None:
    (sentence,) = harmful(Settings(rules=(Rule("old things", prefix, 30),)), "flights")
    assert sentence == (
        f"lifecycle rule 'old things' (prefix {prefix!r}) removes or moves files after 30 days, including files "
        "that the table still references"
    )


@pytest.mark.parametrize("prefix", ["landing/", "flights2", "flights-old/", "light"])
def test_a_rule_beside_the_table_is_none_of_its_business(prefix: str) -> None:
    assert harmful(Settings(rules=(Rule("r", prefix, 30),)), "flights/") == []


def test_a_rule_that_ends_unfinished_uploads_harms_nothing() -> None:
    assert harmful(Settings(rules=(Rule("uploads", "", None),), retention="", replicas=()), "flights") == []


def test_a_day_counts_as_days_do() -> None:
    assert "on a fixed date" in harmful(Settings(rules=(Rule("r", "", 0),)), "flights")[0]


def test_object_lock_and_replication_are_named() -> None:
    found = harmful(Settings(retention="GOVERNANCE, 3 days", replicas=("to-the-west",)), "flights")
    assert [("GOVERNANCE, 3 days" in found[0]), ("to-the-west" in found[1])] == [True, True]


def test_what_is_not_known_is_said() -> None:
    assert harmful(Settings(), "flights") == []
    assert unknown(Settings(rules=(), retention="")) == ["replication", "versioning"]
    assert unknown(Settings(rules=(), retention="", replicas=(), versioned=False)) == []


def test_what_nobody_removes_is_told() -> None:
    """It damages nothing. Without the rules nothing can be said."""
    uploads, versions = (
        "no lifecycle rule removes unfinished multipart uploads",
        "no lifecycle rule removes old versions",
    )
    for rules, versioned, told in (
        ((), True, [uploads, versions]),
        ((), False, [uploads]),
        ((Rule("u", "", None, ends_uploads=True),), True, [versions]),
        ((Rule("v", "flights/", None, ends_versions=True),), True, [uploads]),
        ((Rule("of others", "landing/", None, True, True),), True, [uploads, versions]),
        ((Rule("of a part of it", "flights/.hoodie/", None, True, True),), True, [uploads, versions]),
        ((Rule("both", "fl", None, True, True),), True, []),
    ):
        settings = Settings(rules=rules, versioned=versioned)
        found = costly(settings, "flights")
        assert len(found) == len(told)
        assert all(part in sentence for part, sentence in zip(told, found, strict=True)), found
        assert harmful(settings, "flights") == []
    assert costly(Settings(versioned=True), "flights") == []

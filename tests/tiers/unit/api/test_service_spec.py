"""`spec.services`: defaults, Hudi options, and what does not fit together."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from hudi_contract.options import TTL_PATTERN
from hudi_operator.api import metadata_table, services
from hudi_operator.api.fields import SpecError, read
from hudi_operator.api.schedule import Schedule
from hudi_operator.api.spec import TableSpec
from hudi_runtime.services.expiry import LIMIT


def given(raw: dict[str, Any], *, merge_on_read: bool = True) -> tuple[services.Service, ...]:
    return services.switched_on(read(services.ServicesSpec, raw, "spec.services"), merge_on_read=merge_on_read)


def made(raw: dict[str, Any], *, merge_on_read: bool = True) -> dict[str, services.Service]:
    return {s.kind: s for s in given(raw, merge_on_read=merge_on_read)}


def test_everything_is_on_with_hudis_own_numbers() -> None:
    found = made({})
    assert {kind: s.after_commits for kind, s in found.items()} == {"compaction": 5, "clean": 10, "archive": 10}
    assert found["clean"].options == {
        "hoodie.clean.policy": "KEEP_LATEST_COMMITS",
        "hoodie.clean.commits.retained": "10",
    }
    assert found["archive"].options == {
        **found["clean"].options,
        "hoodie.keep.min.commits": "20",
        "hoodie.keep.max.commits": "30",
    }
    assert services.problem(tuple(found.values())) == ""


def test_compaction_is_for_merge_on_read() -> None:
    assert set(made({}, merge_on_read=False)) == {"clean", "archive"}


def test_clustering_is_on_when_it_is_asked_for() -> None:
    assert "clustering" not in made({})
    found = made({"clustering": {}})["clustering"]
    plan = "hoodie.clustering.plan.strategy"
    assert found.after_commits == 20
    assert found.options == {
        f"{plan}.small.file.limit": str(300 * 1024 * 1024), f"{plan}.target.file.max.bytes": str(1024 * 1024 * 1024),
        f"{plan}.single.group.clustering.enabled": "false",
    }  # fmt: skip
    sorted_ = made({"clustering": {"sortColumns": ["a", "b"], "layout": "ZOrder", "smallFileSize": "1Mi"}})[
        "clustering"
    ]
    assert sorted_.options[f"{plan}.sort.columns"] == "a,b"
    assert sorted_.options["hoodie.layout.optimize.strategy"] == "ZORDER"
    some = made({"clustering": {"partitionPattern": "2026.*", "skipNewestPartitions": 2}})["clustering"]
    assert some.options[f"{plan}.partition.regex.pattern"] == "2026.*"
    assert some.options[f"{plan}.daybased.skipfromlatest.partitions"] == "2"
    assert some.options["hoodie.clustering.plan.partition.filter.mode"] == "RECENT_DAYS"
    assert "clustering" not in made({"clustering": {"enabled": False}})


@pytest.mark.parametrize(
    ("clustering", "table", "words"),
    [
        ({}, {"mode": "NonBlocking"}, "spec.services.clustering: contradicts concurrency.mode NonBlocking"),
        ({}, {"index": "Bucket"}, "spec.services.clustering: contradicts index.type Bucket"),
        (
            {"skipNewestPartitions": 3},
            {"partitioned": False},
            "spec.services.clustering.skipNewestPartitions = 3: the table has no partitionFields",
        ),
        ({"smallFileSize": "2000Mi"}, {}, "smallFileSize must not be more than targetFileSize"),
        ({"partitionPattern": "a("}, {}, "spec.services.clustering.partitionPattern 'a('"),
        ({"enabled": False}, {"mode": "NonBlocking", "index": "Bucket"}, ""),
        ({"skipNewestPartitions": 3, "smallFileSize": "1024Mi"}, {}, ""),
    ],
)
def test_what_cannot_be_clustered(clustering: dict[str, Any], table: dict[str, Any], words: str) -> None:
    found = services.clustering_problem(
        given({"clustering": clustering}), **{"mode": "Optimistic", "index": "", "partitioned": True, **table}
    )
    assert words in found
    assert bool(found) is bool(words)


@pytest.mark.parametrize(
    ("clustering", "words"),
    [
        ({"layout": "Linear"}, "layout Linear needs sortColumns"),
        ({"layout": "Hilbert", "sortColumns": ["a"]}, "layout Hilbert needs sortColumns"),
        ({"layout": "Linear", "sortColumns": ["a"]}, ""),
        ({"layout": "ZOrder", "sortColumns": ["a", "b"]}, ""),
        ({"sortColumns": ["a"]}, ""),
        ({}, ""),
    ],
)
def test_a_layout_needs_columns(clustering: dict[str, Any], words: str) -> None:
    found = services.layout_problem(read(services.ServicesSpec, {"clustering": clustering}, "spec.services").clustering)
    assert words in found
    assert bool(found) is bool(words)


def test_partitions_expire_when_it_is_asked_for() -> None:
    assert "ttl" not in made({})
    found = made({"ttl": {"retainSeconds": 30 * 86400, "partitionPattern": "day=.*"}})["ttl"]
    assert found.after_commits == 20
    prefix = "hoodie.partition.ttl"
    assert found.options == {
        f"{prefix}.management.strategy.type": "KEEP_BY_TIME",
        f"{prefix}.strategy.days.retain": "30",
        f"{prefix}.strategy.max.delete.partitions": "1000",
        TTL_PATTERN: "day=.*",
    }
    created = made({"ttl": {"retainSeconds": 86400, "since": "Creation", "maxPartitionsPerRun": 7}})["ttl"].options
    assert created[f"{prefix}.management.strategy.type"] == "KEEP_BY_CREATION_TIME"
    assert created[LIMIT] == "7"


@pytest.mark.parametrize(
    ("ttl", "mode", "partitioned", "words"),
    [
        ({"retainSeconds": 259200}, "Optimistic", False, "spec.services.ttl: the table has no partitionFields"),
        ({"retainSeconds": 259200, "partitionPattern": "("}, "Optimistic", True, "spec.services.ttl.partitionPattern"),
        ({"retainSeconds": 259200}, "NonBlocking", True, "spec.services.ttl: contradicts concurrency.mode NonBlocking"),
        ({"retainSeconds": 259200}, "Optimistic", True, ""),
        ({"enabled": False, "retainSeconds": 86400}, "NonBlocking", False, ""),
    ],
)
def test_what_cannot_expire(ttl: dict[str, Any], mode: str, partitioned: bool, words: str) -> None:
    found = services.ttl_problem(given({"ttl": ttl}, merge_on_read=False), mode=mode, partitioned=partitioned)
    assert words in found
    assert bool(found) is bool(words)


def test_clustering_that_is_there_for_one_run_runs_once() -> None:
    """F554: it ran every 20 commits from then on. Nothing else of a table is switched off by it."""
    once = made({"clustering": {"runNonce": "once"}})["clustering"]
    assert (once.after_commits, once.schedule, once.run_nonce) == (None, None, "once")
    for section in (
        {"sortColumns": ["a"]},
        {"afterCommits": 20},
        {"window": {"cron": "0 1 * * *", "durationSeconds": 60}},
    ):
        assert made({"clustering": {**section, "runNonce": "once"}})["clustering"].after_commits == 20
    for kind, after in (("compaction", 5), ("clean", 10), ("archive", 10)):
        assert made({kind: {"runNonce": "once"}})[kind].after_commits == after
    assert made({"ttl": {"retainSeconds": 86400, "runNonce": "once"}})["ttl"].after_commits == 20


def test_a_schedule_replaces_the_default_trigger() -> None:
    schedule = {"cron": "0 3 * * *"}
    assert made({"clean": {"schedule": schedule}})["clean"].after_commits is None
    both = made({"clean": {"schedule": schedule, "afterCommits": 3}})["clean"]
    assert (both.after_commits, both.schedule) == (3, Schedule("0 3 * * *", "Etc/UTC"))


@pytest.mark.parametrize(
    ("clean", "policy", "option"),
    [
        ({"retainCommits": 4}, "KEEP_LATEST_COMMITS", ("hoodie.clean.commits.retained", "4")),
        ({"retainSeconds": 5 * 3600}, "KEEP_LATEST_BY_HOURS", ("hoodie.clean.hours.retained", "5")),
        ({"retainFileVersions": 6}, "KEEP_LATEST_FILE_VERSIONS", ("hoodie.clean.fileversions.retained", "6")),
    ],
)
def test_what_cleaning_retains(clean: dict[str, int], policy: str, option: tuple[str, str]) -> None:
    found = made({"clean": clean})
    for kind in ("clean", "archive"):
        assert found[kind].options["hoodie.clean.policy"] == policy
        assert found[kind].options[option[0]] == option[1], "archival must know it: it goes no further"


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"archive": {"minCommitsToKeep": 30}}, "maxCommitsToKeep 30 must be more than minCommitsToKeep 30"),
        ({"archive": {"minCommitsToKeep": 10}}, "minCommitsToKeep 10 must be more than clean.retainCommits 10"),
        ({"clean": {"retainCommits": 20}}, "minCommitsToKeep 20 must be more than clean.retainCommits 20"),
        ({"compaction": {"schedule": {"cron": "x y z a b"}}}, "spec.services.compaction.schedule.cron 'x y z a b'"),
        ({"clean": {"retainCommits": 19}}, ""),
        ({"clean": {"retainSeconds": 99 * 3600}}, ""),
        ({"clean": {"retainCommits": 99}, "archive": {"enabled": False}}, ""),
    ],
)
def test_what_does_not_fit_together(raw: dict[str, Any], words: str) -> None:
    found = services.problem(given(raw))
    assert words in found
    assert bool(found) is bool(words)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"clean": {"retainCommits": "many"}}, "spec.services.clean.retainCommits: expected int, found 'many'"),
        ({"clean": {"retainSeconds": 5400}}, "spec.services.clean.retainSeconds: 5400 must be a multiple of 3600"),
        ({"clean": {"window": {"cron": "0 1 * * *"}}}, "spec.services.clean.window.durationSeconds: required"),
        (
            {"clustering": {"sortColumns": ["a"], "layout": "Random"}},
            "spec.services.clustering.layout: 'Random' must be one of Linear, ZOrder, Hilbert",
        ),
        (
            {"clustering": {"smallFileSize": "300m"}},
            "spec.services.clustering.smallFileSize: '300m' is not a size: a whole number and Mi or Gi",
        ),
        ({"ttl": {}}, "spec.services.ttl.retainSeconds: required"),
        ({"ttl": {"retainSeconds": 0}}, "spec.services.ttl.retainSeconds: 0 must be at least 86400"),
        (
            {"ttl": {"retainSeconds": 86400, "since": "Birth"}},
            "spec.services.ttl.since: 'Birth' must be one of LastWrite, Creation",
        ),
    ],
)
def test_what_cannot_be_read_names_field_value_and_rule(raw: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=re.escape(words)):
        given(raw)


def test_the_example_is_what_it_says() -> None:
    path = Path(__file__).resolve().parents[4] / "examples" / "services" / "table.yaml"
    table = TableSpec.from_object(yaml.safe_load(path.read_text()))
    assert services.problem(table.services) == ""
    found = {s.kind: s for s in table.services}
    assert found["compaction"].after_commits == 10
    assert found["clean"].schedule == Schedule("30 2 * * *", "Europe/Berlin")
    assert found["clean"].after_commits is None
    assert found["archive"].options["hoodie.keep.min.commits"] == "50"


def ms(*moment: int) -> int:
    return int(datetime(*moment, tzinfo=UTC).timestamp() * 1000)  # type: ignore[arg-type, misc]


def test_ticks_are_in_the_schedules_time_zone() -> None:
    berlin = Schedule("30 2 * * *", "Europe/Berlin")
    assert berlin.next(ms(2026, 7, 1, 12)) == datetime(2026, 7, 2, 0, 30, tzinfo=UTC)
    assert berlin.next(ms(2026, 1, 1, 12)) == datetime(2026, 1, 2, 1, 30, tzinfo=UTC)
    assert berlin.previous(ms(2026, 1, 1, 12)) == datetime(2026, 1, 1, 1, 30, tzinfo=UTC)


def test_a_tick_in_the_hour_that_does_not_exist_is_not_lost() -> None:
    """On 29 March 2026 the clocks of Berlin go from 2:00 to 3:00."""
    ticks = Schedule("30 2 * * *", "Europe/Berlin").next(ms(2026, 3, 28, 12))
    assert datetime(2026, 3, 29, 0, 0, tzinfo=UTC) < ticks < datetime(2026, 3, 29, 2, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("window", "words"),
    [
        (
            {"cron": "0 1 * * * *", "durationSeconds": 300},
            ("spec.services.clean.window.cron", "'0 1 * * * *'", "five fields"),
        ),
        (
            {"cron": "0 1 * * *", "timeZone": "Moon/Sea", "durationSeconds": 300},
            ("spec.services.clean.window.timeZone", "'Moon/Sea'"),
        ),
    ],
)
def test_windows_that_mean_nothing(window: dict[str, Any], words: tuple[str, ...]) -> None:
    found = services.problem(tuple(made({"clean": {"window": window}}).values()))
    assert all(word in found for word in words), found


@pytest.mark.parametrize(("hour", "opens"), [(0, 1), (1.5, 1), (2.9, 1), (3.1, 25), (23, 25)])
def test_the_window_that_is_open_or_comes_next(hour: float, opens: int) -> None:
    window = made({"clean": {"window": {"cron": "0 1 * * *", "durationSeconds": 7200}}})["clean"].window
    assert window is not None
    midnight = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1000)
    begin, end = window.around(midnight + int(hour * 3600_000))
    assert ((begin - midnight) / 3600_000, (end - begin) / 60_000) == (opens, 120)


@pytest.mark.parametrize(
    ("wanted", "wrong"),
    [
        ({"enabled": False, "indexes": list(metadata_table.INDEXES)}, True),
        ({"enabled": False}, False),
        ({"indexes": []}, False),
    ],
)
def test_a_metadata_table_that_is_off_has_no_indexes(wanted: dict[str, Any], wrong: bool) -> None:
    found = metadata_table.problem(read(metadata_table.MetadataTable, wanted, "spec.metadataTable"))
    assert found.startswith("spec.metadataTable.indexes: ") is wrong
    assert bool(found) is wrong

"""The audit's structural checks: a good table passes all of them, and each way to break it is found
by the check that is named for it.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from typing import Any

import pytest
from pyspark.sql.types import ArrayType, IntegerType, MapType, StringType, StructField, StructType

from hudi_runtime.audit import structure
from hudi_runtime.audit.command import arguments, hudi_rs_options, pairs
from hudi_runtime.audit.facts import Commit, Facts, Keys, instant_of, is_data_file, is_metadata_file, left_behind
from hudi_runtime.audit.keys import from_etcdctl
from hudi_runtime.audit.reader import commit, deleted_by
from hudi_runtime.audit.report import TITLES, Outcome, Report, not_asked, ok, unknown, violated
from hudi_runtime.audit.rows import for_hudi_rs, hudi_rs_cannot, nullable, read, retained_from, windows
from hudi_runtime.table import timeline as tl

A, A_DONE = "20260101000000100", "20260101000000200"
B, B_DONE = "20260101000000300", "20260101000000400"
P = "20260101000000500"
R, R_DONE = "20260101000000600", "20260101000000700"
FILE_A, FILE_B = f"p/g1-0_0-1-1_{A}.parquet", f"p/g1-0_0-2-2_{B}.parquet"
INC = "11111111-1111-1111-1111-111111111111"


def written(
    requested: str, done: str, *files: str, group: str = "p/g1-0", operation: str = "UPSERT", deletes: bool = False
) -> Commit:
    instant = tl.Instant(requested, "commit", tl.State.COMPLETED, done)
    return Commit(instant, operation, dict.fromkeys(files, 10), frozenset({group}), deletes)


def keys(**changes: Any) -> Keys:
    tables = {
        f"instant/{P}": {"inc": INC, "state": "Pending"},
        f"writer/{INC}": {"inc": INC},
        f"alive/{INC}": {"inc": INC},
    }
    control: dict[str, Any] = {"gate": {"state": "open"}}
    for name, value in changes.pop("control", {}).items():
        control[name] = value
    for name, value in changes.pop("tables", {}).items():
        if value is None:
            del tables[name]
        else:
            tables[name] = value
    return Keys(tables, control)


def names(*extra: str) -> list[str]:
    return [
        f"{A}.commit.requested",
        f"{A}_{A_DONE}.commit",
        f"{B}.inflight",
        f"{B}_{B_DONE}.commit",
        f"{P}.commit.requested",
        *extra,
    ]


def facts(**changes: Any) -> Facts:
    timeline = tl.parse(names())
    good = Facts(
        timeline=timeline,
        before=timeline,
        files={
            FILE_A: 10,
            FILE_B: 10,
            f"p/g2-0_0-3-3_{P}.parquet": 4,
            "p/.hoodie_partition_metadata": 1,
            f".hoodie/.heartbeat/{P}": 0,
        },
        commits=(written(A, A_DONE, FILE_A), written(B, B_DONE, FILE_B)),
        metadata_files={FILE_A: 10, FILE_B: 10},
        keys=keys(),
    )
    return dataclasses.replace(good, **changes)


def outcomes(found: Facts) -> dict[str, Outcome]:
    return {name: check(found).outcome for name, check in structure.CHECKS.items()}


def bad(found: Facts) -> set[str]:
    return {name for name, outcome in outcomes(found).items() if outcome is not Outcome.OK}


def test_a_good_table() -> None:
    assert bad(facts()) == set(), outcomes(facts())


def with_files(add: dict[str, int] | None = None, without: str = "") -> Facts:
    found = facts()
    return dataclasses.replace(found, files={p: s for p, s in {**found.files, **(add or {})}.items() if p != without})


LATE = tl.parse(names(f"{R}.rollback.requested", f"{R}_{R_DONE}.rollback"))
LONE = tl.parse(["20260101000000450.deltacommit.requested"])
SETTLED = {
    "settle/22222222-2222-2222-2222-222222222222": {"phase": "Settled", "instants": {A: {"outcome": "RolledBack"}}}
}
CASES: dict[str, tuple[Facts, set[str]]] = {
    "a file of a completed instant is deleted": (with_files(without=FILE_B), {"files", "metadata"}),
    "a file of a completed instant is cut off": (with_files({FILE_B: 3}), {"files", "metadata"}),
    "a file does not open": (facts(broken={FILE_B: "not a parquet file"}), {"files"}),
    "a file of nobody": (with_files({"p/g9-0_0-1-1_20250101000000000.parquet": 4}), {"stray"}),
    "a file that a completed instant does not name": (
        with_files({f"p/g9-0_0-1-1_{A}.parquet": 4}),
        {"stray", "metadata"},
    ),
    "a data file whose name bears no instant": (with_files({"p/part-0000.parquet": 4}), {"stray"}),
    "a marker of nobody": (with_files({".hoodie/.temp/20250101000000000/MARKERS.type": 1}), {"stray"}),
    "a heartbeat of nobody": (with_files({".hoodie/.heartbeat/20250101000000000": 1}), {"stray"}),
    "a file of nobody in the metadata table": (
        with_files({".hoodie/metadata/files/files-0_0-1-1_20250101000000000.hfile": 4}),
        {"stray"},
    ),
    "an unknown file on the timeline": (facts(timeline=tl.parse(names("what"))), {"stray"}),
    "a file only in the metadata table": (
        facts(metadata_files={FILE_A: 10, FILE_B: 10, f"p/x-0_0-1-1_{A}.parquet": 1}),
        {"metadata"},
    ),
    "a file only in the storage": (facts(metadata_files={FILE_A: 10}), {"metadata"}),
    "another size in the metadata table": (facts(metadata_files={FILE_A: 10, FILE_B: 11}), {"metadata"}),
    "a pending instant without a record": (facts(keys=keys(tables={f"instant/{P}": None})), {"owners"}),
    "a pending instant of a fenced owner whom nobody settles": (
        facts(keys=keys(control={f"fence/{INC}": {}})),
        {"owners"},
    ),
    "a pending instant of a settled owner": (
        facts(keys=keys(tables={f"settle/{INC}": {"phase": "Settled"}})),
        {"owners"},
    ),
    "a pending instant whose owner has left": (facts(keys=keys(tables={f"writer/{INC}": None})), {"owners"}),
    "pending in the metadata table alone": (
        facts(timeline=tl.parse(names()[:4]), before=tl.parse(names()), metadata_timeline=LONE),
        {"owners"},
    ),
    "completed although a rollback has removed it": (facts(timeline=LATE, rolled_back={A: R}), {"late"}),
    "completed although it was settled as rolled back": (facts(keys=keys(tables=SETTLED)), {"late"}),
    "overlapping commits on one file group": (
        facts(commits=(written(A, P, FILE_A), written(B, B_DONE, FILE_B))),
        {"overlap"},
    ),
}


GONE = "20250101000000000"
LEFT = {f".hoodie/metadata/.hoodie/.heartbeat/{GONE}": 0, f"p/g9-0_0-1-1_{GONE}.parquet": 4}
STILL_TO_BE_SWEPT = {
    "an abandoned instant": {f"instant/{GONE}": {"inc": INC, "state": "Abandoned"}},
    "an instant of a writer that left after it had abandoned it": {
        f"done/abandoned-{INC}": {"inc": INC, "instants": [GONE]}
    },
    "an instant that is being settled": {f"settle/{INC}": {"phase": "RollingBack", "instants": {GONE: {}}}},
    "an instant of an owner that is being settled": {
        f"settle/{INC}": {"phase": "Draining"},
        f"instant/{GONE}": {"inc": INC, "state": "Pending"},
    },
}


@pytest.mark.parametrize("case", STILL_TO_BE_SWEPT)
def test_files_that_wait_for_the_sweep_are_no_finding_yet(case: str) -> None:
    found = dataclasses.replace(with_files(LEFT), keys=keys(tables=STILL_TO_BE_SWEPT[case]))
    check = structure.stray(found)
    assert (check.outcome, check.ask_again, len(check.findings)) == (Outcome.UNKNOWN, True, 2), check
    swept = dataclasses.replace(found, keys=keys(tables={f"settle/{INC}": {"phase": "Swept", "instants": {GONE: {}}}}))
    assert structure.stray(swept).outcome is Outcome.VIOLATED, "files that came after the sweep are a finding"


@pytest.mark.parametrize("case", CASES)
def test_each_damage_is_found_by_its_check(case: str) -> None:
    found, wanted = CASES[case]
    assert {name for name, outcome in outcomes(found).items() if outcome is Outcome.VIOLATED} == wanted
    assert bad(found) == wanted
    for name in wanted:
        assert structure.CHECKS[name](found).findings


def test_what_is_allowed_is_not_called_wrong() -> None:
    """Cleaned files, compactions beside writers, other file groups, archived instants, commits one
    after the other.
    """
    assert bad(facts(files={FILE_B: 10}, cleaned=frozenset({FILE_A}), metadata_files={FILE_B: 10})) == set()
    compaction = written(A, P, FILE_A, operation="COMPACT")
    assert bad(facts(commits=(compaction, written(B, B_DONE, FILE_B)))) == set()
    assert bad(facts(commits=(written(A, P, FILE_A, group="p/other"), written(B, B_DONE, FILE_B)))) == set()
    before = dataclasses.replace(
        facts(timeline=LATE, rolled_back={A: "20250101000000000"}),
        commits=(written(A, A_DONE, FILE_A, operation="CLUSTER"), facts().commits[1]),
    )
    assert "late" not in bad(before), "a plan that was executed again after the rollback of its first execution"
    assert "late" in bad(dataclasses.replace(before, rolled_back={A: R})), "its first execution came late"
    old = "p/g7-0_0-1-1_20250101000000000.parquet"
    assert (
        bad(
            dataclasses.replace(
                with_files({old: 4}),
                archived=frozenset({"20250101000000000"}),
                metadata_files={FILE_A: 10, FILE_B: 10, old: 4},
            )
        )
        == set()
    )
    assert bad(
        facts(
            keys=keys(control={"gate": {"concurrency": "NonBlocking"}}),
            commits=(written(A, P, FILE_A), written(B, B_DONE, FILE_B)),
        )
    ) == {"overlap"}


def test_archived_commits_are_asked_too() -> None:
    """What happened is not hidden by archival (I3, I9).

    Commits of the time when the table was NonBlocking may overlap.
    """
    old = (written("20250101000000100", "20250101000000300"), written("20250101000000200", "20250101000000400"))
    assert bad(facts(archived_commits=old)) == {"overlap"}
    assert (
        "2 of them archived"
        in structure.overlap(
            facts(archived_commits=(old[0], written("20250101000000500", "20250101000000600")))
        ).sentence
    )
    assert (
        bad(facts(archived_commits=old, keys=keys(control={"gate": {"nonBlockingUntil": "20250101000000400"}})))
        == set()
    )
    assert bad(facts(archived_commits=old, keys=keys(control={"gate": {"nonBlockingUntil": "20250101000000399"}}))) == {
        "overlap"
    }
    beside = (written("20250101000000100", A_DONE), *facts().commits)
    assert bad(facts(archived_commits=beside[:1])) == {"overlap"}, "one is archived, the other is not"
    assert bad(facts(archived_commits=facts().commits)) == set(), "archived between two looks"
    assert bad(facts(archived_commits=old[:1], rolled_back={old[0].instant.requested: R})) == {"late"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({f"settle/{INC}": {"phase": "RollingBack"}}, "phase RollingBack"),
        ({f"instant/{P}": {"inc": INC, "state": "Abandoned"}}, "waits for the agent"),
        ({f"alive/{INC}": None}, "lease"),
    ],
)
def test_what_is_being_settled_is_unknown_not_ok(change: dict[str, Any], words: str) -> None:
    check = structure.owners(facts(keys=keys(tables=change)))
    assert (check.outcome, check.ask_again) == (Outcome.UNKNOWN, True), "it ends by itself"
    assert words in check.findings[0]


def test_a_difference_while_a_clean_is_under_way_is_asked_again() -> None:
    """A clean deletes the files first and completes then.

    The same difference without one is a violation.
    """
    clean = tl.parse(names("20260101000000600.clean.requested"))
    check = structure.metadata(facts(timeline=clean, metadata_files={FILE_A: 10}))
    assert (check.outcome, check.ask_again) == (Outcome.UNKNOWN, True)
    assert check.to_dict()["askAgain"] is True
    assert structure.metadata(facts(metadata_files={FILE_A: 10})).to_dict()["askAgain"] is False


def test_what_was_not_looked_at_is_unknown_or_not_asked() -> None:
    """Unknown is never ok: an aspect that failed, pending instants without etcd."""
    for aspect, wanted in {
        "commits": {"files", "stray", "overlap"},
        "archived": {"stray", "metadata"},
        "metadata": {"metadata"},
        "open": {"files"},
        "archive": {"late", "overlap"},
        "keys": {"owners", "late"},
        "rollbacks": {"late"},
        "cleaned": {"files"},
    }.items():
        found = outcomes(facts(errors={aspect: "refused"}))
        assert {name for name, outcome in found.items() if outcome is Outcome.UNKNOWN} == wanted, aspect
        assert not any(check(facts(errors={aspect: "refused"})).ask_again for check in structure.CHECKS.values()), (
            aspect
        )
    alone = outcomes(facts(keys=None))
    assert alone.pop("owners") is Outcome.UNKNOWN
    assert alone.pop("late") is Outcome.NOT_ASKED
    assert set(alone.values()) == {Outcome.OK}
    quiet = facts(timeline=tl.parse(names()[:4]), keys=None)
    assert structure.owners(quiet).outcome is Outcome.OK


def test_names_of_files() -> None:
    assert instant_of(FILE_A) == A
    assert instant_of(f"p/.g1-0_{A}.log.1_0-4-4") == A
    assert instant_of(f"p/.g1-0_{A}.log.1_0-4-4.cdc") == A
    assert instant_of("p/part-0000.parquet") == ""
    assert is_data_file(f"p/.g1-0_{A}.log.1_0-4-4")
    assert not is_data_file("p/.hoodie_partition_metadata")
    assert not is_data_file(f"p/.{FILE_A[2:]}.crc")
    assert not is_data_file(f".hoodie/metadata/files/x_0-1-1_{A}.hfile")
    assert is_metadata_file(f".hoodie/metadata/files/.files-0_{A}.log.1_0-1-1")
    assert not is_metadata_file(f".hoodie/metadata/.hoodie/timeline/{A}.deltacommit.requested")
    assert left_behind(f".hoodie/metadata/.hoodie/.temp/{A}/x") == A
    assert left_behind(f".hoodie/.heartbeat/{A}") == A
    assert left_behind(f".hoodie/timeline/{A}.inflight") == ""


def test_what_hudi_says_about_a_commit() -> None:
    stat = {
        "fileId": "g1-0",
        "path": FILE_A,
        "fileSizeInBytes": 10,
        "numDeletes": 0,
        "cdcStats": {f"p/.g1-0_{A}.log.1_0-1-1.cdc": 7},
    }
    instant = tl.Instant(A, "replacecommit", tl.State.COMPLETED, A_DONE)
    found = commit(
        instant,
        {
            "operationType": "CLUSTER",
            "partitionToWriteStats": {"p": [stat]},
            "partitionToReplaceFileIds": {"p": ["g0-0"]},
        },
    )
    assert found.files == {FILE_A: 10, f"p/.g1-0_{A}.log.1_0-1-1.cdc": 7}
    assert found.groups == {"p/g1-0", "p/g0-0"}
    assert found.deletes
    parts = {"p": {"successDeleteFiles": ["x.parquet", "s3a://b/t/p/y.parquet"]}, "": {"successDeleteFiles": ["z"]}}
    assert list(deleted_by({"partitionMetadata": parts})) == ["p/x.parquet", "p/y.parquet", "z"]


def test_keys_as_etcdctl_prints_them() -> None:
    def pair(key: str, value: dict[str, Any]) -> dict[str, str]:
        return {
            "key": base64.b64encode(key.encode()).decode(),
            "value": base64.b64encode(json.dumps(value).encode()).decode(),
        }

    gate, lock = pair("/hudi/control/t1/gate", {"state": "open"}), pair("/hudi/tables/t1/lock", {"inc": INC})
    read = from_etcdctl(json.dumps({"kvs": [gate, lock, pair("/hudi/tables/t2/lock", {"inc": "other"})]}))
    assert read("t1") == Keys({"lock": {"inc": INC}}, {"gate": {"state": "open"}})
    with pytest.raises(ValueError, match="no gate of table t2"):
        read("t2")


def test_report() -> None:
    """0 only when everything that was asked is ok; a violation goes before an unknown.

    Nothing asked is unknown.
    """
    good, no, maybe = (
        ok("files", "2 files"),
        violated("stray", "1 file", [f"f{n}" for n in range(30)]),
        unknown("owners", "etcd is silent"),
    )
    assert Report("t", (good, not_asked("rows", "no"))).exit_code == 0
    assert Report("t", (good, maybe)).exit_code == 2
    assert Report("t", (good, maybe, no)).exit_code == 1
    assert Report("t", (not_asked("rows", "no"),)).exit_code == 2
    text = Report("t", (good, no)).text()
    assert "t: violated" in text
    assert "… 10 more" in text
    told = Report("t", (no,)).to_dict()["checks"][0]
    assert (told["findingCount"], len(told["findings"]), told["title"]) == (30, 20, TITLES["stray"])


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    given = arguments(["s3a://lake/t", "--option", "fs.s3a.endpoint=http://s3:9000", "--skip", "rows"])
    assert pairs(given.option, "--option") == {"fs.s3a.endpoint": "http://s3:9000"}
    with pytest.raises(SystemExit) as stopped:
        pairs(["fs.s3a.endpoint"], "--option")
    assert stopped.value.code == 2
    assert "--option 'fs.s3a.endpoint': it must have the form KEY=VALUE" in capsys.readouterr().err
    options = hudi_rs_options({"fs.s3a.endpoint": "http://s3:9000", "fs.s3a.path.style.access": "true"})
    assert (options["aws_endpoint"], options["aws_allow_http"], options["aws_virtual_hosted_style_request"]) == (
        "http://s3:9000",
        "true",
        "false",
    )
    assert for_hudi_rs("s3a://lake/t") == "s3://lake/t"
    assert for_hudi_rs("file:///t") == "file:///t"


def test_what_hudi_rs_cannot_read() -> None:
    log = f"p/.g8-0_{A}.log.1_0-4-4"
    assert hudi_rs_cannot(with_files({f"p/.g1-0_{B}.log.1_0-4-4": 1})) == []
    assert hudi_rs_cannot(with_files({log: 1})) == [f"{log}: its file group has log files only"]


def test_windows_of_the_incremental_pull() -> None:
    """Single steps at the end, one pull before them; behind what was cleaned or archived."""
    a, b = facts().commits
    assert list(windows("000", [a, b], [A_DONE, B_DONE])) == [("000", A_DONE), (A_DONE, B_DONE)]
    assert list(windows("000", [a, b], [B_DONE])) == [("000", A_DONE), (A_DONE, B_DONE)]
    assert retained_from(facts(), [a, b]) == "000"
    assert retained_from(facts(cleaned=frozenset({FILE_A})), [a, b]) == A_DONE
    assert retained_from(facts(history=True), [a, b]) == A_DONE


def test_rows_are_read_without_data_skipping() -> None:
    """Hudi would unpersist its column statistics while Spark persists what it reads:
    a deadlock (measured).
    """
    given: dict[str, str] = {}

    class Reader:
        def format(self, name: str) -> Reader:
            assert name == "hudi"
            return self

        def options(self, **options: str) -> Reader:
            given.update(options)
            return self

        def load(self, path: str) -> str:
            return path

    spark: Any = type("Spark", (), {"read": Reader()})
    assert read(spark, "p", **{"hoodie.datasource.query.type": "incremental"}) == "p"  # type: ignore[comparison-overlap]
    assert given == {
        "hoodie.enable.data.skipping": "false",
        "hoodie.datasource.read.file.index.listing.mode": "eager",
        "hoodie.datasource.query.type": "incremental",
    }


def test_rows_are_compared_by_types_in_which_null_may_be_anywhere() -> None:
    """F608: of a value without null Spark says that it has none; a cast to that is refused."""

    def all_of(null: bool) -> StructType:
        inner = StructType([StructField("a", IntegerType(), null)])
        names = MapType(StringType(), ArrayType(inner, null), null)
        return StructType([StructField("s", inner, null), StructField("m", names, null)])

    assert nullable(all_of(null=False)) == all_of(null=True)
    assert nullable(IntegerType()) == IntegerType()

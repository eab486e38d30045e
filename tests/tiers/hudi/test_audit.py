"""The audit on real tables: a good one passes all checks, and each damage is found by the check
that is named for it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions

from hudi_runtime.audit import Keys, Outcome, Report, audit
from hudi_runtime.audit import rows as row_checks
from hudi_runtime.audit.reader import TableReader
from hudi_runtime.table import timeline as tl
from tests.support import ROOT
from tests.support.harness import own_pulls
from tests.support.harness.local import ACCESS_KEY, CLASS_PATH, JAVA_OPTIONS, SECRET_KEY, Row, World, rows

OPTIONS = {
    "hoodie.table.name": "audited",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "p",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.table.timeline.timezone": "UTC",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.embed.timeline.server": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.clean.commits.retained": "1",
    "hoodie.clean.automatic": "false",
}
SCHEMA = "id int, p string, v string, ts long"
BEFORE = [
    *rows(range(5), "a", "second", 2),
    *rows(range(5, 10), "a", "first", 1),
    *rows(range(10, 12), "b", "second", 2),
]
FINAL = [*rows(range(3), "a", "third", 3), *BEFORE[3:]]
MARKER = "0123456789abcdef0123456789abcdef"
KINDS = ("audit-cow", "audit-mor")
"""One table of each type; each check has been seen to fail on both."""


def of_kind(name: str) -> dict[str, str]:
    """Hudi's option for the type of a table of KINDS."""
    return {"hoodie.datasource.write.table.type": "MERGE_ON_READ" if name == "audit-mor" else "COPY_ON_WRITE"}


class Lake:
    """Tables written by Hudi alone, and copies of them to be damaged."""

    def __init__(self, world: World) -> None:
        self.world, self.spark = world, world.spark()
        self.folder = world.lake

    def write(self, table: str, data: list[Row], **options: str) -> None:
        frame = self.spark.createDataFrame(data, SCHEMA)
        frame.write.format("hudi").options(**{**OPTIONS, **options}).mode("append").save(self.url(table))

    def url(self, table: str) -> str:
        return self.world.url(self.folder / table)

    def make(self, table: str, kind: str) -> None:
        second = [*rows(range(5), "a", "second", 2), *rows(range(10, 12), "b", "second", 2)]
        for data in (rows(range(10), "a", "first", 1), second, rows(range(3), "a", "third", 3)):
            self.write(table, data, **{"hoodie.datasource.write.table.type": kind})
        marker = self.folder / table / ".hoodie" / "hudi-operator"
        marker.mkdir()
        (marker / MARKER).touch()

    def copy(self, source: str, name: str) -> Path:
        shutil.copytree(self.folder / source, self.folder / name)
        return self.folder / name

    def audit(self, table: Path, *, expected: list[Row] | None = None, keys: Keys | None = None, **more: Any) -> Report:
        def wanted(spark: Any, schema: Any) -> Any:
            return spark.createDataFrame(expected, SCHEMA)

        given = keys or Keys({}, {"gate": {"state": "open"}})
        options = self.world.s3_reader_options()
        wants = None if expected is None else wanted
        return audit(
            self.spark,
            self.url(table.name),
            expected=wants,
            keys=lambda table_id: given,
            hudi_rs_options=options,
            **more,
        )


@pytest.fixture(scope="module")
def lake(world: World) -> Lake:
    made = Lake(world)
    made.make("audit-cow", "COPY_ON_WRITE")
    made.make("audit-mor", "MERGE_ON_READ")
    return made


def timeline(table: Path) -> tl.Timeline:
    return tl.parse(os.listdir(table / ".hoodie" / "timeline"))


def data_files(table: Path) -> list[Path]:
    """Data files of partition a, the newest instant's last."""
    return sorted((path for path in (table / "a").glob("*.parquet")), key=lambda path: path.name.rsplit("_", 1)[-1])


def write_raw(path: Path, content: bytes) -> None:
    """Replace a file: it is another object, with another ETag."""
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def log_files(table: Path) -> list[Path]:
    """Log files of partition a, the newest instant's last."""
    return sorted((table / "a").glob(".*.log.*"), key=lambda path: path.name.partition(".log.")[0].rsplit("_", 1)[-1])


def newest_file(table: Path) -> Path:
    """The file in which the newest version of a row of partition a is."""
    return (log_files(table) or data_files(table))[-1]


def overwrite(table: Path) -> None:
    newest = newest_file(table)
    write_raw(newest, b"x" * newest.stat().st_size)


def pending(table: Path) -> None:
    action = "deltacommit" if log_files(table) else "commit"
    (table / ".hoodie" / "timeline" / f"{int(timeline(table).maximum) + 1}.{action}.requested").touch()


def foreign_file(table: Path) -> None:
    newest = data_files(table)[-1]
    shutil.copy(newest, newest.with_name(f"{newest.name.rsplit('_', 1)[0]}_20250101000000000.parquet"))


def foreign_log_file(table: Path) -> None:
    newest = newest_file(table)
    instant = timeline(table).completed[-1].requested
    name = (
        newest.name.replace(instant, "20250101000000000")
        if log_files(table)
        else f"{newest.name.rsplit('_', 1)[0]}_20250101000000000.parquet"
    )
    shutil.copy(newest, newest.with_name(name))


def forget_in_metadata(table: Path) -> None:
    """The metadata table forgets the newest commit, as if its write had not been completed."""
    newest = timeline(table).completed[-1].requested
    (done,) = (table / ".hoodie" / "metadata" / ".hoodie" / "timeline").glob(f"{newest}_*.deltacommit")
    done.unlink()


def forget_first_instant(table: Path) -> None:
    """The first commit's rows, copied on by the second or still in its own files, are then
    rows of nobody.
    """
    for path in (table / ".hoodie" / "timeline").glob(f"{timeline(table).completed[0].requested}*"):
        path.unlink()


DAMAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "a data file is deleted": (lambda table: newest_file(table).unlink(), "files"),
    "a data file is cut off": (
        lambda table: write_raw(newest_file(table), newest_file(table).read_bytes()[:-7]),
        "files",
    ),
    "a base file is deleted": (lambda table: data_files(table)[-1].unlink(), "files"),
    "a data file holds something else": (overwrite, "files"),
    "a file that belongs to no instant": (foreign_file, "stray"),
    "a newest file that belongs to no instant": (foreign_log_file, "stray"),
    "a pending instant of nobody": (pending, "owners"),
    "the metadata table forgets a commit": (forget_in_metadata, "metadata"),
    "rows of an instant that is not there": (forget_first_instant, "origin"),
}


@pytest.mark.parametrize("table", KINDS)
def test_good_tables(lake: Lake, table: str) -> None:
    report = lake.audit(lake.folder / table, expected=FINAL)
    assert [check.name for check in report.checks if check.outcome is not Outcome.OK] == [], report.text()
    assert report.exit_code == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_each_damage_is_found(lake: Lake, damage: str, kind: str) -> None:
    harm, name = DAMAGES[damage]
    table = lake.copy(kind, f"{kind}-{damage.replace(' ', '-')}")
    harm(table)
    report = lake.audit(table, only=[name])
    assert report.get(name).outcome is Outcome.VIOLATED, report.text()
    assert report.get(name).findings
    assert report.exit_code == 1


@pytest.mark.parametrize("kind", KINDS)
def test_what_spark_sees_otherwise_than_hudi_rs(lake: Lake, kind: str) -> None:
    """Nothing that damages a table has made the two differ, so Spark is made to miss a row, to see
    one twice, and to see another value.
    """
    path, options = lake.url(kind), lake.world.s3_reader_options()
    facts = TableReader(lake.spark, path, keys=None, open_files=False).facts()
    snapshot = row_checks.read(lake.spark, path)
    assert row_checks.hudi_rs(lake.spark, path, snapshot, facts, options).outcome is Outcome.OK
    for wrong in (
        snapshot.where("id <> 0"),
        snapshot.union(snapshot.where("id = 0")),
        snapshot.withColumn("v", functions.lit("other")),
    ):
        check = row_checks.hudi_rs(lake.spark, path, wrong, facts, options)
        assert check.outcome is Outcome.VIOLATED
        assert check.findings


@pytest.mark.parametrize("kind", KINDS)
def test_a_pull_gives_what_the_commits_of_its_range_have_written(lake: Lake, kind: str) -> None:
    """Of each range, by the files alone: the incremental check pulls by Hudi's own query."""
    assert own_pulls.same(lake.spark, lake.url(kind), lake.folder / kind) == 5
    other = lake.copy(kind, f"{kind}-pulls")
    lake.write(other.name, rows(range(2), "a", "fourth", 4), **of_kind(kind))
    with pytest.raises(AssertionError, match="the files hold"):
        own_pulls.same(lake.spark, lake.url(kind), other)


@pytest.mark.parametrize("kind", KINDS)
def test_other_rows_than_expected(lake: Lake, kind: str) -> None:
    """A missing row, a row too many, a double row."""
    for wrong in (FINAL[1:], [*FINAL, (99, "a", "more", 1)], [*FINAL, FINAL[0]]):
        report = lake.audit(lake.folder / kind, expected=wrong, only=["rows"])
        assert report.get("rows").outcome is Outcome.VIOLATED, report.text()
    assert "only in what is expected" in report.get("rows").findings[0]


@pytest.mark.parametrize("kind", KINDS)
def test_lost_update_of_overlapping_commits(lake: Lake, kind: str) -> None:
    """I9: A and B write one file group from the same start and both are completed, as behind a
    lease lock: CopyOnWrite loses A's rows.
    """
    action = "commit" if kind == "audit-cow" else "deltacommit"
    table, other = lake.copy(kind, f"{kind}-overlap"), lake.copy(kind, f"{kind}-overlap-other")
    lake.write(other.name, rows(range(2), "a", "A", 4), **of_kind(kind))
    lake.write(table.name, rows(range(2, 4), "a", "B", 4), **of_kind(kind))
    first, second = timeline(other).completed[-1], timeline(table).completed[-1]
    for path in (other / ".hoodie" / "timeline").glob(f"{first.requested}*"):
        done = path.name.startswith(f"{first.requested}_")
        shutil.copy(
            path,
            table
            / ".hoodie"
            / "timeline"
            / (f"{first.requested}_{int(second.completion) + 1}.{action}" if done else path.name),
        )
    for path in (other / "a").glob(f"*_{first.requested}.*"):
        shutil.copy(path, table / "a" / path.name)
    report = lake.audit(table)
    assert report.get("overlap").outcome is Outcome.VIOLATED, report.text()
    assert first.requested in report.get("overlap").findings[0]
    assert second.requested in report.get("overlap").findings[0]
    assert report.get("metadata").outcome is Outcome.VIOLATED, report.text()
    assert report.get("incremental").outcome is Outcome.VIOLATED, report.text()
    keep = {"hoodie.clean.automatic": "true", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    # Archival does not pass the last compaction of a MergeOnRead table.
    compact = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    options = {**OPTIONS, **of_kind(kind), **keep, **({} if kind == "audit-cow" else compact)}
    for number in range(5, 9):
        frame = lake.spark.createDataFrame(rows(range(40, 42), "b", f"v{number}", number), SCHEMA)
        frame.write.format("hudi").options(**options).mode("append").save(lake.url(table.name))
    assert not {first.requested, second.requested} & {i.requested for i in timeline(table).instants}, (
        "both are archived"
    )
    report = lake.audit(table, only=["overlap"])
    assert report.get("overlap").outcome is Outcome.VIOLATED, report.text()
    assert first.requested in report.get("overlap").findings[0]


@pytest.mark.parametrize("kind", KINDS)
def test_completed_after_it_was_rolled_back(lake: Lake, kind: str) -> None:
    """I3: the completed file arrives later than D: the rollback on the timeline tells, and so does
    the settle record.
    """
    table = lake.copy(kind, f"{kind}-late")
    victim = timeline(table).completed[-1]
    (done,) = (table / ".hoodie" / "timeline").glob(f"{victim.requested}_*.{victim.action}")
    held = done.read_bytes()
    jvm: Any = lake.spark.sparkContext._jvm
    config = (
        jvm.org.apache.hudi.config.HoodieWriteConfig.newBuilder().withPath(lake.url(table.name)).forTable("audited")
    )
    config = (
        config.withEngineType(jvm.org.apache.hudi.common.engine.EngineType.SPARK)
        .withEmbeddedTimelineServerEnabled(False)
        .build()
    )
    engine = jvm.org.apache.hudi.client.common.HoodieSparkEngineContext(lake.spark.sparkContext._jsc)
    client = jvm.org.apache.hudi.client.SparkRDDWriteClient(engine, config)
    assert client.rollback(victim.requested)
    client.close()
    settled = Keys(
        {"settle/x": {"phase": "Settled", "instants": {victim.requested: {"outcome": "RolledBack"}}}}, {"gate": {}}
    )
    report = lake.audit(table, expected=BEFORE, keys=settled)
    assert report.exit_code == 0, report.text()
    write_raw(done, held)
    for keys in (settled, Keys({}, {"gate": {}})):
        report = lake.audit(table, keys=keys, only=["late", "files"])
        assert report.get("late").outcome is Outcome.VIOLATED, report.text()
        assert victim.requested in report.get("late").findings[0]
        assert report.get("files").outcome is Outcome.VIOLATED, report.text()


def test_cleaned_and_archived_files_are_not_missed(lake: Lake) -> None:
    """After cleaning and archiving, what is gone by a clean is no damage, and the incremental pull
    begins behind it.
    """
    table = lake.copy("audit-cow", "audit-old")
    keep = {"hoodie.clean.automatic": "true", "hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    for number in range(4, 8):
        frame = lake.spark.createDataFrame(rows(range(2), "a", f"v{number}", number), SCHEMA)
        frame.write.format("hudi").options(**{**OPTIONS, **keep}).mode("append").save(lake.url(table.name))
    assert len(timeline(table).completed) < 10
    assert any((table / ".hoodie" / "timeline" / "history").iterdir())
    report = lake.audit(table, expected=[*rows(range(2), "a", "v7", 7), *FINAL[2:]])
    assert report.exit_code == 0, report.text()
    assert "older files were cleaned or archived" in report.get("incremental").sentence


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_that_stands_twice(lake: Lake, kind: str) -> None:
    """Hudi's bulk insert looks no key up: the key gets a second file group.

    Who has asked for that is not told of it.
    """
    table = lake.copy(kind, f"{kind}-twice")
    lake.write(
        table.name, rows([3], "a", "again", 9), **of_kind(kind), **{"hoodie.datasource.write.operation": "bulk_insert"}
    )
    report = lake.audit(table, only=["unique"])
    assert report.get("unique").outcome is Outcome.VIOLATED, report.text()
    assert report.get("unique").findings == ("2 × key 3 in partition a",)
    report = lake.audit(table, only=["unique"], keys=Keys({}, {"gate": {"insertConflicts": "Ignore"}}))
    assert report.get("unique").outcome is Outcome.NOT_ASKED, report.text()


def test_a_late_commit_that_brings_an_older_version_is_no_damage(lake: Lake) -> None:
    """Hudi's own pull gives what a log file holds, whatever the table has: a healthy table, from
    the beginning and from behind a clean.
    """
    bucket = {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "1",
    }
    tidy = {
        "hoodie.clean.automatic": "true",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "1",
    }
    lake.write("audit-late-version", rows(range(3), "a", "newest", 9), **bucket)
    lake.write("audit-late-version", rows(range(2), "a", "older", 4), **bucket)
    table, newest = lake.folder / "audit-late-version", rows(range(3), "a", "newest", 9)
    report = lake.audit(table, expected=newest, only=["rows", "incremental", "unique"])
    assert report.exit_code == 0, report.text()
    for number in (10, 11, 12):
        lake.write(table.name, rows([2], "a", f"v{number}", number), **bucket, **tidy)
    lake.write(table.name, rows(range(2), "a", "oldest", 3), **bucket)
    report = lake.audit(table, expected=[*newest[:2], (2, "a", "v12", 12)], only=["rows", "incremental", "unique"])
    assert report.exit_code == 0, report.text()
    assert "older files were cleaned or archived" in report.get("incremental").sentence


@pytest.mark.extra
def test_command(lake: Lake, tmp_path: Path) -> None:
    """Exit codes 0, 1 and 2; a table and JSON; the expected rows from a file."""
    expected = tmp_path / "expected.json"
    expected.write_text("\n".join(json.dumps({"id": i, "p": p, "v": v, "ts": ts}) for i, p, v, ts in FINAL))
    settings = [
        "--conf",
        f"spark.driver.extraClassPath={CLASS_PATH}",
        "--conf",
        f"spark.driver.extraJavaOptions={JAVA_OPTIONS}",
    ]
    options = [f"--option={key}={value}" for key, value in lake.world.s3_settings().items() if not key.endswith(".key")]

    def run(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "hudi_runtime.audit", lake.url(path.name), *settings, *options, *words]
        keep = {key: value for key, value in os.environ.items() if key in {"PATH", "HOME", "LANG", "JAVA_HOME"}}
        keep |= {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
        env = {**keep, "PYTHONPATH": os.pathsep.join((str(ROOT / "spark-images"), str(ROOT / "operator"))), "TZ": "UTC"}
        return subprocess.run(command, env=env, capture_output=True, text=True, cwd=tmp_path)

    good = run(lake.folder / "audit-cow", "--expected", str(expected), "--json")
    assert good.returncode == 0, good.stdout + good.stderr[-3000:]
    found = json.loads(good.stdout)
    assert found["outcome"] == "ok"
    assert {check["name"]: check["outcome"] for check in found["checks"]} == {
        **dict.fromkeys([c["name"] for c in found["checks"]], "ok"),
        "late": "not asked",
    }
    broken = lake.copy("audit-cow", "audit-command")
    data_files(broken)[-1].unlink()
    bad = run(broken, "--only", "files")
    assert bad.returncode == 1, bad.stdout + bad.stderr[-3000:]
    assert "is missing" in bad.stdout
    nowhere = run(lake.folder / "audit-nowhere")
    assert nowhere.returncode == 2, nowhere.stdout + nowhere.stderr[-3000:]
    assert "unknown" in nowhere.stdout

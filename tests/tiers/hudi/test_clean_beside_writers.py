"""F464-F466: a clean takes no file that a pending write has still to list, and no folder; a query
whose files it has taken fails.

A write lists the files of its partitions as of its begin, but when it looks its keys up: after its
rows were computed. To it, a file group whose version of that time is gone has no rows.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.harness.local import AGENT, Process, Table, World, rows, until
from tests.support.oracle import not_seen

UNSEEN = not_seen("hudi-rs", "owners", "incremental", "late", "overlap")
WAIT = 300.0
"""Seconds; a bound for a machine with much else to do, nothing is measured."""
QUIET: dict[str, Any] = {kind: {"enabled": False} for kind in ("clean", "compaction", "archive")}
SHORT = QUIET | {"archive": {"afterCommits": 1, "minCommitsToKeep": 2, "maxCommitsToKeep": 3}}
NEWEST = QUIET | {"clean": {"afterCommits": 1, "retainFileVersions": 1}}
DROP = """
from hudi_runtime.api import current_context

current = current_context()
options = {
    **current.table_options(),
    "hoodie.datasource.write.operation": "delete_partition",
}
some = current.spark.createDataFrame([(1, "a")], "id int, P string").write.format("hudi").mode("append")
try:
    some.options(**options).save(current.table_path)
except Exception as error:
    print("REFUSED", "delete_partition without the option" in str(error), flush=True)
named = {"hoodie.datasource.write.partitions.to.delete": "a"}
some.options(**options, **named).save(current.table_path)
"""
HOURS = """
from hudi_runtime.api import current_context
from hudi_runtime.settle.agent_table import AgentTable, _private

current = current_context()
table = AgentTable(current.spark, current.table_path)
for hours, commits in ((0, 0), (0, 2), (0, 4), (1, 0)):
    policy = {"hoodie.clean.policy": "KEEP_LATEST_BY_HOURS", "hoodie.clean.hours.retained": str(hours)}
    plan = table.plan_clean(table.write_config("hours", policy), commits)
    files = []
    if plan is not None:
        said = _private(plan.plan, plan.plan.getClass(), "plan")
        assert said.getPolicy() == policy["hoodie.clean.policy"]
        files = [str(info.getFilePath()) for info in said.getFilePathsToBeDeletedPerPartition()["a"]]
    print("SEEN", hours, commits, *sorted(file.split("_")[-1].split(".")[0] for file in files), flush=True)
"""
LATE = """
import os
import sys
import time

from pyspark.sql import DataFrame

from hudi_runtime.api import current_context

current, gate = current_context(), sys.argv[1]
spark, path = current.spark, current.table_path
mode = "hoodie.datasource.read.file.index.listing.mode"
frames = {"spark.read": spark.read.format("hudi").load(path)}
spark.conf.set(mode, "lazy")
frames["read_table"] = current.read_table()
try:
    spark.read.format("hudi").load(path)
except Exception as error:
    print("SEEN lazy", "HUDIOP-STATEMENT" in str(error) and mode in str(error), flush=True)
spark.conf.unset(mode)
# Made before the clean, and named after it: as if the clean had come while the files were listed.
options = spark._jvm.org.apache.spark.api.python.PythonUtils.toScalaMap({"path": path, mode: "eager"})
made = spark._jvm.org.apache.hudi.DefaultSource().createRelation(spark._jsparkSession.sqlContext(), options)
open(gate + ".reached", "w").close()
while not os.path.exists(gate):
    time.sleep(0.1)
for name, frame in frames.items():
    try:
        print("SEEN", name, frame.count(), flush=True)
    except Exception as error:
        print("SEEN", name, "FileNotFoundException" in str(error) or str(error), flush=True)
try:
    print("SEEN relation", DataFrame(spark._jsparkSession.baseRelationToDataFrame(made), spark).count(), flush=True)
except Exception as error:
    print("SEEN relation", "HUDIOP-SNAPSHOT-MOVED" in str(error) or str(error), flush=True)
"""


def program(table: Table, name: str, code: str, *arguments: str) -> Process:
    file = table.world.folder / f"{table.folder.name}-{name}.py"
    file.write_text(code)
    return table.writer(name, application={"mainFile": str(file), "arguments": list(arguments)})


def save(table: Table, name: str, ids: range, p: str, v: str, *ts: int) -> None:
    """One commit for each `ts`."""
    writer = table.writer(name, python={"batches": [{"rows": rows(ids, p, v, each)} for each in ts]})
    assert writer.wait(WAIT) == 0, writer.log()[-4000:]


def clean(table: Table, agent: Process, services: dict[str, Any] = NEWEST, kind: str = "clean") -> str:
    """Result of the first clean, or another service, that has seen the newest commit."""
    last = table.timeline().last_completed
    assert last is not None
    table.world.table(table.folder.name, services=services).assign(AGENT)

    def ended() -> str | None:
        record = table.get(f"done/service-{kind}") or {}
        ended = record.get("result") not in {None, "Running"} and str(record.get("upTo", "")) >= last.completion
        return str(record["result"]) if ended else None

    return until(f"{kind} has ended", ended, alive=agent, timeout=WAIT)


def test_a_clean_leaves_what_a_pending_write_has_to_list(world: World, agent: Process) -> None:
    """F464: two writers change the same keys; the slow one looks its keys up after a clean.

    F466: a program has named the table before; F473, F474: no read leaves out file groups. F470: an
    insert looks its keys up when its batch is computed.
    """
    table = world.table("listed", services=QUIET)
    world.create(table, agent=AGENT, process=agent)
    save(table, "seed", range(10), "a", "seed", 0)
    (first,) = table.data_files()
    gate = world.folder / "gate-listed"
    slow = table.writer("slow", python={"batches": [{"rows": rows(range(10), "a", "slow", 9), "gate": str(gate)}]})
    until("it computes its rows", Path(f"{gate}.reached").exists, alive=slow, timeout=WAIT)
    late = program(table, "late", LATE, f"{gate}-late")
    until("it has named the table", Path(f"{gate}-late.reached").exists, alive=late, timeout=WAIT)
    some = {"rows": rows([5, 20], "a", "insert", 5), "gate": f"{gate}-insert"}
    insert = table.writer("insert", operation="insert", duplicates="Drop", python={"batches": [some]})
    until("it computes its rows", Path(f"{gate}-insert.reached").exists, alive=insert, timeout=WAIT)
    save(table, "quick", range(10), "a", "quick", 1)
    clean(table, agent)
    assert first in table.data_files(), "the pending write has not listed it yet"
    gate.touch()
    assert slow.wait(WAIT) == 0, slow.log()[-4000:]
    assert slow.termination()["conflicts"] == 1, "it has seen the file group, and the other commit to it"

    assert clean(table, agent) == "Completed"
    assert first not in table.data_files(), "nobody needs it any more"
    Path(f"{gate}-late").touch()
    assert late.wait(WAIT) == 0, late.log()[-4000:]
    seen = sorted(line for line in late.log().splitlines() if line.startswith("SEEN"))
    names = ("lazy", "read_table", "relation", "spark.read")
    assert seen == [f"SEEN {name} True" for name in names], "not an empty table"
    Path(f"{gate}-insert").touch()
    assert insert.wait(WAIT) == 0, insert.log()[-4000:]
    assert insert.termination()["conflicts"] == 0
    due = rows(range(10), "a", "slow", 9) + rows([20], "a", "insert", 5)
    table.audited(due, without=UNSEEN)


@pytest.mark.extra
def test_a_commit_is_archived_after_the_files_that_it_replaced(world: World, agent: Process) -> None:
    """F479: a partition is deleted beside a pending write, so a clean leaves its files. Without the
    deletion on the active timeline its rows would be back.
    """
    table = world.table("replaced", services=QUIET)
    world.create(table, agent=AGENT, process=agent)
    save(table, "gone", range(10), "a", "gone", 0)
    (gone,) = table.data_files()
    save(table, "seed", range(10, 20), "b", "seed", 0, 1, 2)
    gate = world.folder / "gate-replaced"
    slow = table.writer("slow", python={"batches": [{"rows": rows(range(20, 30), "c", "slow", 0), "gate": str(gate)}]})
    until("it computes its rows", Path(f"{gate}.reached").exists, alive=slow, timeout=WAIT)
    drop = program(table, "drop", DROP)
    assert drop.wait(WAIT) == 0, drop.log()[-4000:]
    deletion = table.timeline().last_completed
    assert deletion is not None
    assert deletion.action == "replacecommit"
    assert clean(table, agent) == "Completed", "an old version of `b` is deleted"
    assert gone in table.data_files()
    world.table(table.folder.name, services=QUIET).assign(AGENT)  # no later clean deletes it
    gate.touch()
    assert slow.wait(WAIT) == 0, slow.log()[-4000:]
    # Archival waits for the first compaction of the metadata table, too.
    save(table, "more", range(10, 20), "b", "more", *range(3, 15))
    assert clean(table, agent, SHORT, "archive") == "Completed"
    assert table.timeline().get(deletion.requested) is not None
    due = rows(range(10, 20), "b", "more", 14) + rows(range(20, 30), "c", "slow", 0)
    table.audited(due)

    assert clean(table, agent) == "Completed"
    assert gone not in table.data_files()
    save(table, "last", range(10, 20), "b", "more", 15)
    assert clean(table, agent, SHORT, "archive") == "Completed"
    assert table.timeline().get(deletion.requested) is None, "nothing holds it any more"
    table.audited(rows(range(10, 20), "b", "more", 15) + rows(range(20, 30), "c", "slow", 0))


@pytest.mark.extra
def test_a_long_commit_that_was_requested_earlier_is_no_old_one(world: World, agent: Process) -> None:
    """F464: Hudi keeps commits by requested time. The long one completes while another write
    computes its rows, to which only the version before it is visible.
    """
    table = world.table("overtaken", services=QUIET)
    world.create(table, agent=AGENT, process=agent)
    save(table, "seed", range(10), "a", "seed", 0)
    (first,) = table.data_files()
    gates = {name: world.folder / f"gate-overtaken-{name}" for name in ("long", "slow")}

    def begun(name: str, ts: int) -> Process:
        batch = {"rows": rows(range(10), "a", name, ts), "gate": str(gates[name])}
        writer = table.writer(name, python={"batches": [batch]})
        until("it computes its rows", Path(f"{gates[name]}.reached").exists, alive=writer, timeout=WAIT)
        return writer

    long = begun("long", 1)
    save(table, "short", range(10, 20), "b", "short", 0)
    slow = begun("slow", 2)
    gates["long"].touch()
    assert long.wait(WAIT) == 0, long.log()[-4000:]
    clean(table, agent, QUIET | {"clean": {"afterCommits": 1, "retainCommits": 1}})
    assert first in table.data_files(), "the pending write has not listed it yet"
    gates["slow"].touch()
    assert slow.wait(WAIT) == 0, slow.log()[-4000:]
    assert slow.termination()["conflicts"] == 1
    due = rows(range(10), "a", "slow", 2) + rows(range(10, 20), "b", "short", 0)
    table.audited(due, without=UNSEEN)


def test_a_clean_leaves_the_folder_of_an_emptied_partition(world: World, agent: Process) -> None:
    """F465: somebody may write to it again between the plan of the clean and its end.

    F467: which partition is emptied is said by name. F471: it begins anew.
    """
    table = world.table("emptied", services=QUIET)
    world.create(table, agent=AGENT, process=agent)
    save(table, "seed", range(10), "a", "seed", 0)
    save(table, "more", range(10, 20), "b", "seed", 0)
    drop = program(table, "drop", DROP)
    assert drop.wait(WAIT) == 0, drop.log()[-4000:]
    assert "REFUSED True" in drop.log()
    last = table.timeline().last_completed
    assert last is not None
    assert clean(table, agent) == "Completed"
    assert not [file for file in table.data_files() if file.startswith("a/")]
    created = (table.folder / "a" / ".hoodie_partition_metadata").read_text()
    assert f"commitTime={last.requested}" < next(n for n in created.splitlines() if n.startswith("commitTime="))
    save(table, "again", range(3), "a", "again", 1)
    due = rows(range(10, 20), "b", "seed", 0) + rows(range(3), "a", "again", 1)
    table.audited(due, without=UNSEEN)


def test_hours_without_a_commit_are_cleaned(world: World, agent: Process) -> None:
    """F482: what the newest commit has replaced stays, and so does what a pending write needs.

    No hours at all stand for hours in which nothing was committed.
    """
    table = world.table("hours", services=QUIET)
    world.create(table, agent=AGENT, process=agent)
    save(table, "seed", range(1), "a", "seed", 0, 1, 2, 3)
    versions = [i.requested for i in table.timeline().completed]
    looks = program(table, "looks", HOURS)
    assert looks.wait(WAIT) == 0, looks.log()[-4000:]
    seen = [line for line in looks.log().splitlines() if line.startswith("SEEN")]
    due = {"0 0": versions[:2], "0 2": versions[:1], "0 4": [], "1 0": []}
    assert seen == [" ".join(["SEEN", name, *deleted]) for name, deleted in due.items()]

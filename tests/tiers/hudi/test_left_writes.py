"""What a program's failed write leaves on the timeline, while the program goes on."""

from __future__ import annotations

import time

from tests.support.harness.compactions import OFF
from tests.support.harness.local import AGENT, Process, Table, World, until
from tests.support.harness.told import Told

ROW = "SELECT {id} AS id, 'a' AS p, '{v}' AS v, {ts}L AS ts"
ASLEEP = """
def asleep():
    threads = spark.sparkContext._jsc.sc().getExecutorThreadDump("driver").get()
    workers = [thread for thread in threads if thread.threadName().startswith("Executor task launch worker")]
    return any("Thread.sleep" in thread.toString() for thread in workers)
"""
SLOW = """
import threading

def slow():
    spark.sparkContext.setJobGroup("slow", "")
    save('''SELECT cast(id AS int) AS id, 'a' AS p,
        IF(pause('asleep', id), reflect('java.lang.Thread', 'sleep', 30000L), '') AS v, 9L AS ts FROM range(7, 8)''')

thread = threading.Thread(target=slow)
thread.start()
"""


def left(table: Table) -> str:
    (instant,) = table.pending()
    record = table.get(f"instant/{instant}")
    assert record is not None
    assert record["state"] == "Pending"
    return instant


def rolled_back(table: Table, instant: str, agent: Process, program: Told) -> None:
    """Wait for it; the program goes on meanwhile."""
    until(
        f"{instant} is rolled back",
        lambda: instant not in table.names("instant/") and instant not in table.pending(),
        alive=agent,
    )
    assert instant in [line["instant"] for line in program.process.protocol("abandon")]
    assert program.ask("1") == 1


def test_what_a_write_leaves_is_rolled_back_while_its_program_runs(world: World, agent: Process) -> None:
    """F477: of a write that is refused, and of one that is cancelled while a task of it goes on.

    A task that was told to end may still write a file (F4): nothing is given up before its end.
    """
    table = world.table("left-writes", services=OFF)
    world.create(table, agent=AGENT, process=agent)
    program, other = Told(table, "program"), Told(table, "other")
    assert not program.run(f"save({ROW.format(id=1, v='first', ts=1)!r})")

    gave_up = "spark.sparkContext._jvm.io.hudioperator.Sessions.current().gaveUp()"
    assert not program.ask(gave_up)

    # Refused: another writer has changed what the program has read.
    assert not program.run("row = spark.read.format('hudi').load(path).first()")
    assert not other.run(f"save({ROW.format(id=1, v='other', ts=2)!r})")
    number = program.begin(f"save({ROW.format(id=1, v='mine', ts=3)!r})")
    assert program.kind(number) == "WriteConflict", program.said(number)
    (refused,) = table.pending() or {line["instant"] for line in program.process.protocol("abandon")}
    rolled_back(table, refused, agent, program)
    assert program.ask(gave_up), "F495: how the attempt ends depends on it"
    assert not program.run("row = spark.read.format('hudi').load(path).first()")
    assert not program.run(f"save({ROW.format(id=2, v='second', ts=4)!r})")

    # Cancelled, and one of its tasks sleeps on.
    assert not program.run(ASLEEP)
    slow = program.begin(SLOW)
    assert program.said(slow)[0] == ""
    assert program.reached("asleep", -1)
    cancelled = left(table)
    program.open("asleep")
    until("the task sleeps", lambda: program.ask("asleep()"), alive=program.process)
    assert not program.run("spark.sparkContext.cancelJobGroup('slow')")
    until("the statement has ended", lambda: not program.ask("thread.is_alive()"), alive=program.process)
    looks, end = 0, time.monotonic() + 5
    while time.monotonic() < end:
        record = table.get(f"instant/{cancelled}")
        if not program.ask("asleep()"):
            break
        assert record is not None
        assert record["state"] == "Pending", "a task of it still runs"
        looks += 1
    assert looks, "no task has outlived its statement"
    rolled_back(table, cancelled, agent, program)
    for each in (program, other):
        each.end()
    table.audited([(1, "a", "other", 2), (2, "a", "second", 4)])

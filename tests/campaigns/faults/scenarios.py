"""The faults: each does the same to any of the three setups and returns what the table
is like afterwards.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hudi_runtime.audit import TITLES, Outcome, Report
from tests.campaigns.faults.sides import DRAIN_SECONDS, SEED, TTL_SECONDS, Side, make, overlaid
from tests.support import ROOT
from tests.support.harness import s3proxy
from tests.support.harness.apart import why
from tests.support.harness.local import Process, Row, rows, until
from tests.support.harness.s3proxy import COMPLETED, Held, Refused

A, B = rows(range(2), "a", "A", 2), rows(range(2, 4), "a", "B", 2)
TAKE_OVER_SECONDS = 60.0


@dataclass
class Result:
    """One cell: the findings, and other events that the audit does not see."""

    verdict: str
    """`ok`, `corrupt`, `reported` (the audit reports it, nothing is silent), or `unknown`.
    """
    told: str
    checks: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)
    """Findings of the audit, some of each check."""


def judge(report: Report, *notes: str) -> Result:
    """The verdict of an audit: `ok` when each of its checks says so.

    Two may say nothing: instants that are pending for want of anybody who settles them are no
    corruption (`owners`), and stock Hudi has no records of who was settled (`late`).
    """
    wrong = {check.name: check for check in report.checks if check.outcome is Outcome.VIOLATED}
    said = {check.name: check.outcome for check in report.checks}
    may = {("owners", Outcome.UNKNOWN), ("late", Outcome.NOT_ASKED)}
    open_ = [name for name in TITLES if said.get(name) is not Outcome.OK and (name, said.get(name)) not in may]
    checks = {name: outcome.value for name, outcome in said.items()}
    if wrong:
        told = "; ".join(f"{name}: {check.sentence}" for name, check in wrong.items())
        return Result(
            "corrupt",
            told,
            checks,
            list(notes),
            [f"{name}: {finding}" for name, check in wrong.items() for finding in check.findings[:3]],
        )
    if open_:
        return Result("unknown", f"not to be checked: {', '.join(open_)}", checks, list(notes))
    return Result("ok", "every check of the audit holds", checks, list(notes))


def told_loudly(found: Result) -> Result:
    """Result for a table that the agent refuses to touch: the part that the audit cannot check is
    `reported`.

    A table that it finds damaged stays `corrupt`, even if the damage was reported.
    """
    return dataclasses.replace(found, verdict="reported") if found.verdict == "unknown" else found


def instant_of(held: Held) -> str:
    """The instant whose completed file is held."""
    match = COMPLETED.match(held.line)
    assert match is not None, held.line
    return match[1]


def arrive(held: Held, process: Process) -> None:
    until("the writer is about to publish", held.arrived.is_set, alive=process)


def second_writer(
    side: Side, first: Process, *, drain: Callable[[], None] = lambda: None, end_first: bool
) -> tuple[Process, list[str]]:
    """B comes while A is stopped: elsewhere it gets the lock once A's lease is over.

    With ours only after A was ended, proven and drained.
    """
    b = side.write("b", B)
    if side.setup != "ours":
        assert b.wait() == 0, b.log()[-3000:]
        return b, ["B got the lock while A was stopped, and committed"]
    assert side.table is not None
    until("B waits for the lock", lambda: side.table is not None and side.table.keys("queue/"), alive=b)
    begin = time.monotonic()
    while time.monotonic() - begin < TTL_SECONDS + 5:
        lock = side.table.get("lock")
        assert lock is not None, "the lock was lost with the lease"
        assert lock["inc"] == first.inc, "B got the lock while A was not proven dead"
        time.sleep(0.5)
    notes = [
        f"B waited for the lock for {TTL_SECONDS + 5} s, past A's lease; it got it after A's end was proven and drained"
    ]
    assert end_first
    first.kill()
    outcomes = side.settle(first, drain=drain)
    notes.append(f"settled: {outcomes}")
    assert b.wait() == 0, b.log()[-3000:]
    return b, notes


def final(side: Side, *written: tuple[Process | bool, list[Row]]) -> list[Row]:
    """The seed and what was acknowledged, in order."""
    return overlaid(
        SEED, *[data for who, data in written if (who if isinstance(who, bool) else side.acknowledged(who))]
    )


def due(side: Side, process: Process, instant: str) -> bool:
    """Rows are due when their writer was told so.

    And when their commit stands although nobody was told anything. An acknowledged one must stand,
    and with ours one whose completed file the store has taken. Raises AssertionError when such a
    one is gone: nothing else would miss its rows.
    """
    gone = side.proxy.published(instant) and not side.is_completed(instant)
    assert side.table is None or not gone, f"the store has taken the completed file of {instant}, and it is gone"
    return side.acknowledged(process) or side.is_completed(instant)


def paused_writer(side: Side) -> Result:
    """A is stopped inside its critical section, before its completed file, for longer than its
    lease; B commits to the same file group; A goes on.
    """
    held = side.proxy.hold_next(s3proxy.completed_in_metadata)
    a = side.write("a", A)
    arrive(held, a)
    a.signal(signal.SIGSTOP)
    held.deliver.set()
    b, notes = second_writer(side, a, end_first=True)
    if a.poll() is None:
        a.signal(signal.SIGCONT)
        a.wait()
        notes.append(f"A went on and was told: {'committed' if side.acknowledged(a) else 'not committed'}")
    if side.agent is not None:
        await_quiet(side)
    return judge(side.audit(final(side, (a, A), (b, B))), *notes)


def publication_on_the_wire(side: Side) -> Result:
    """The PUT of A's completed file is held and A stopped, for longer than its lease.

    B commits to the same file group; then the PUT arrives.
    """
    held = side.proxy.hold_next(s3proxy.completed)
    a = side.write("a", A)
    arrive(held, a)
    instant = instant_of(held)
    a.signal(signal.SIGSTOP)
    b, notes = second_writer(side, a, drain=held.deliver.set, end_first=True)
    if not held.delivered.is_set():
        held.deliver.set()
        until("the PUT has arrived", held.delivered.is_set)
    notes.append(f"the store's answer to the late PUT: {held.answer}")
    if a.poll() is None:
        a.signal(signal.SIGCONT)
        a.wait()
    notes.append(f"A's instant is {'completed' if side.is_completed(instant) else 'not completed'}")
    if side.setup == "ours":
        assert side.is_completed(instant), "A's commit had arrived before the drain was over, and was not kept"
    if side.table is not None:
        if a.inc in side.table.names("writer/"):
            side.settle(a)  # it has ended without giving back a lock that it had lost
        await_quiet(side)
    return judge(side.audit(final(side, (due(side, a, instant), A), (b, B))), *notes)


def arrives_inside_the_drain(side: Side) -> Result:
    """A dies with its completed file on the wire; the file arrives before the drain is over."""
    return _dead_writer(side, [(50, "b", "B", 2)], inside=True)


def arrives_after_the_drain(side: Side) -> Result:
    """A dies with its completed file on the wire.

    The file arrives after A was settled: the assumption about D is broken.
    """
    return _broken_drain(side, [(50, "b", "B", 2)])


def arrives_after_the_drain_in_the_same_group(side: Side) -> Result:
    """A dies with its completed file on the wire. B commits to the same file group after A was
    settled, and then the file arrives: the assumption about D is broken.
    """
    return _broken_drain(side, B)


def _broken_drain(side: Side, other: list[Row]) -> Result:
    found = _dead_writer(side, other, inside=False)
    if side.setup != "stock" and found.checks.get("late") == "violated":
        found.verdict = "reported"
    return found


def _dead_writer(side: Side, other: list[Row], *, inside: bool) -> Result:
    """A dies while its completed file is held, and B writes `other`."""
    held = side.proxy.hold_next(s3proxy.completed)
    a = side.write("a", A)
    arrive(held, a)
    instant = instant_of(held)
    a.kill()
    notes: list[str] = []

    def deliver() -> None:
        held.deliver.set()
        until("the PUT has arrived", held.delivered.is_set)

    if side.table is not None:
        notes.append(f"settled: {side.settle(a, drain=deliver if inside else lambda: None)}")
    elif inside:
        deliver()
    if side.stock is not None:
        time.sleep(11)  # until B calls A dead (stock.py)
        b = side.write("b", other, services=True)
    else:
        b = side.write("b", other)
    assert b.wait() == 0, b.log()[-3000:]
    if not inside:
        deliver()
    notes.append(f"A's instant is {'completed' if side.is_completed(instant) else 'not completed'}")
    if inside and side.stock is None:
        assert side.is_completed(instant), "A's commit had arrived before the drain was over, and was not kept"
    return judge(side.audit(final(side, (inside and side.is_completed(instant), A), (b, other))), *notes)


TIMEOUT_OPTIONS = {
    "fs.s3a.connection.timeout": "2000",
    "fs.s3a.attempts.maximum": "1",
    "fs.s3a.retry.limit": "1",
    # Requests that are refused here are answered with 503: S3A would try 20 times, each pause twice
    # the last one
    "fs.s3a.retry.throttle.limit": "1",
}


def _unanswered(side: Side, wanted: Callable[[str], bool]) -> tuple[Process, Held, Refused, list[str]]:
    """A's first request of that kind is held until its client has given up; A lives on.

    Ours: A holds the lock for longer than that, and then the request is delivered.
    """
    held = side.proxy.hold_next(wanted)
    refused = side.proxy.refuse(
        lambda line: (
            held.arrived.is_set() and not held.deliver.is_set() and wanted(line) and f"/{instant_of(held)}_" in line
        )
    )
    a = side.write("a", A, **(TIMEOUT_OPTIONS if side.stock is not None else {}))
    arrive(held, a)
    begin, notes = time.monotonic(), []
    if side.table is not None:
        time.sleep(2 + DRAIN_SECONDS / 2)
        lock = side.table.get("lock")
        assert lock is not None, "the lock was released while a file that was sent under it had no answer"
        assert lock["inc"] == a.inc, "the lock was released while a file that was sent under it had no answer"
        notes.append(
            f"{time.monotonic() - begin:.0f} s after the PUT was sent, and after its client gave up, A still held the "
            "lock"
        )
        held.deliver.set()
    a.wait()
    notes.append(f"A was told: {'committed' if side.acknowledged(a) else 'not committed'}")
    return a, held, refused, notes


def _then_b(side: Side, a: Process, held: Held, refused: Refused, notes: list[str]) -> Result:
    """B writes to the same file group; then the held request arrives, where it has not yet."""
    b = side.write("b", B)
    assert b.wait() == 0, b.log()[-3000:]
    held.deliver.set()
    refused.stop()
    until("the PUT has arrived", held.delivered.is_set)
    instant = instant_of(held)
    notes.append(f"A's instant is {'completed' if side.is_completed(instant) else 'not completed'}")
    if side.table is not None:
        await_quiet(side)
    return judge(side.audit(final(side, (due(side, a, instant), A), (b, B))), *notes)


def client_times_out(side: Side) -> Result:
    """The PUT of A's completed file is held; A's client gives up after 2 s, A lives on.

    B commits to the same file group; then the PUT arrives.
    """
    a, held, refused, notes = _unanswered(side, s3proxy.completed)
    assert side.table is None or side.acknowledged(a), a.log()[-3000:]
    return _then_b(side, a, held, refused, notes)


def other_file_times_out(side: Side) -> Result:
    """The PUT of the metadata table's completed file, which A sends under the lock, is held; A's
    client gives up after 2 s, A lives on. B writes to the same file group; then the PUT arrives.
    """
    return _then_b(side, *_unanswered(side, s3proxy.completed_in_metadata))


MANY_A = [rows(range(first, first + 2), "a", "A", 2) for first in (70, 72, 74)]
"""With the seed as many commits as are archived after."""
MANY_B = [rows(range(first, first + 2), "a", "B", 2) for first in (80, 82, 84)]


MANY_SECONDS = 600.0


def archive_version_times_out(side: Side) -> Result:
    """The PUT of `history/_version_`, which A (who archives: a writer of stock Hudi, our agent)
    sends under the lock, is held; A's client gives up after 2 s, A lives on. B writes, and the
    table is archived again; then the PUT arrives.
    """
    held = side.proxy.hold_next(s3proxy.archive_version)

    def deliver() -> str:
        before = side.archive_version()
        held.deliver.set()
        until("the PUT has arrived", held.delivered.is_set)
        return f"the late PUT changed the archived timeline's version from {before} to {side.archive_version()}"

    refused = side.proxy.refuse(
        lambda line: held.arrived.is_set() and not held.deliver.is_set() and s3proxy.archive_version(line)
    )
    a = side.write("a", *MANY_A, services=True, **(TIMEOUT_OPTIONS if side.stock is not None else {}))
    sent = "the archived timeline's version is sent"
    until(sent, held.arrived.is_set, alive=side.agent or a, timeout=MANY_SECONDS)
    begin, notes = time.monotonic(), []
    if side.table is not None:
        assert side.agent is not None
        assert a.wait(MANY_SECONDS) == 0, a.log()[-3000:]
        time.sleep(max(0.0, begin + 2 + DRAIN_SECONDS / 2 - time.monotonic()))
        lock = side.table.get("lock")
        assert lock is not None, "the lock was released while a file that was sent under it had no answer"
        assert lock["inc"] == side.agent.inc, "the lock was released while a file that was sent under it had no answer"
        notes.append(
            f"{time.monotonic() - begin:.0f} s after the PUT was sent, and after its client gave up, A still held the "
            "lock"
        )
        notes.append(deliver())
    else:
        a.wait(MANY_SECONDS)
        notes.append(f"A was told: {'committed' if side.acknowledged(a) else 'an error, after its commit'}")
    refused.stop()
    b = side.write("b", *MANY_B, services=True)
    assert b.wait(MANY_SECONDS) == 0, b.log()[-3000:]
    if side.table is not None:
        await_archived(side)
    else:
        notes.append(deliver())
    notes.append(f"in the end it is {side.archive_version()}")
    return judge(side.audit(overlaid(SEED, *MANY_A, *MANY_B)), *notes)


def listing_fails(side: Side) -> Result:
    """A dies while it writes; the store refuses every listing while the agent looks."""
    assert side.table is not None
    held = side.proxy.hold_next(s3proxy.completed_in_metadata)
    a = side.write("a", A)
    arrive(held, a)
    a.kill()
    held.deliver.set()
    inc = side.fence_only(a)
    time.sleep(side.table.drain)
    refused = side.proxy.refuse(s3proxy.listing)
    asked = len(side.proxy.lines)
    side.table.fence(a)
    until("the agent was refused", lambda: len(refused.lines) >= 2)
    time.sleep(10)
    deleted = [line for line in side.proxy.lines[asked:] if s3proxy.deletion(line)]
    assert not deleted, f"deleted while the listing failed: {deleted[:3]}"
    assert side.table.outcomes(inc) is None
    refused.stop()
    outcomes = until("the agent has settled it", lambda: side.settled(inc), alive=side.agent)
    notes = [f"{len(refused.lines)} listings refused, nothing deleted", f"settled: {outcomes}"]
    return judge(side.audit(final(side)), *notes)


def store_is_busy(side: Side) -> Result:
    """The store answers 503 to the first three PUTs of timeline files, and to three
    of data files. A writer of ours must not give up.
    """
    timeline = side.proxy.refuse(lambda line: line.startswith("PUT ") and "/.hoodie/timeline/" in line, times=3)
    data = side.proxy.refuse(lambda line: line.startswith("PUT ") and ".parquet" in line, times=3)
    a = side.write("a", A)
    code = a.wait()
    if side.table is not None:
        assert side.acknowledged(a), f"A has given up (exit {code}), though three PUTs of each kind were refused only"
    refused = (len(timeline.lines), len(data.lines))
    assert min(refused) > 0, f"the store was not busy: {refused} PUTs refused"
    notes = [
        f"{refused[0]} + {refused[1]} PUTs refused",
        f"A was told: {'committed' if side.acknowledged(a) else 'not committed'}",
    ]
    return judge(side.audit(final(side, (a, A))), *notes)


def await_quiet(side: Side) -> None:
    """Until the agent has rolled back what a living writer gave up."""
    table = side.table
    assert table is not None
    until("nothing is pending", lambda: not table.pending() and not table.keys("instant/"), alive=side.agent)


def await_archived(side: Side) -> None:
    """Until the agent has archived what is due, and does nothing more."""
    table = side.table
    assert table is not None

    def archived() -> bool:
        done = table.get("done/service-archive") or {}
        last = table.timeline().last_completed
        return bool(last and done.get("upTo", "") >= last.completion and done.get("result") != "Running")

    until("the agent has archived", archived, alive=side.agent)
    await_quiet(side)


def told(folder: Path) -> bool:
    """Whether a program that was stopped had been told that its write is committed."""
    return bool(json.loads((folder / "result.json").read_text())["acknowledged"])


def stopped_while_publishing(side: Side) -> Result:
    """A is a stream that its program ends with `query.stop()` while the PUT of its completed file
    is held; B commits to the same file group; then the PUT arrives.
    """
    held = side.proxy.hold_next(s3proxy.completed)
    a, folder = side.program("a", A, how="query")
    arrive(held, a)
    instant = instant_of(held)
    (folder / "stop").touch()
    notes = []
    if side.table is not None:
        b = side.write("b", B)
        until("B waits for the lock", lambda: side.table is not None and side.table.keys("queue/"), alive=b)
        time.sleep(TTL_SECONDS)
        lock = side.table.get("lock")
        assert lock is not None, "the lock was released while the publication was on the wire"
        assert lock["inc"] == a.inc, "the lock was released while the publication was on the wire"
        notes.append(f"{TTL_SECONDS} s after it was stopped, its PUT unanswered, A still held the lock")
        held.deliver.set()
        a.wait()
        assert b.wait() == 0, b.log()[-3000:]
        assert side.is_completed(instant), "A's file had arrived while A held the lock, and its commit was not kept"
        # The thread is interrupted again once the file is there, and what Hudi does after the
        # commit may end with that (F31): an interruption, and no word of another failure.
        said = (folder / "result.json").read_text()
        assert told(folder) or "InterruptedException" in said, f"A's commit stands, and A was told of a failure: {said}"
    else:
        a.wait()
        b = side.write("b", B)
        assert b.wait() == 0, b.log()[-3000:]
        held.deliver.set()
        until("the PUT has arrived", held.delivered.is_set)
    notes.append(
        f"A was told: {'committed' if told(folder) else 'an error'}; its instant is "
        f"{'completed' if side.is_completed(instant) else 'not completed'}"
    )
    if side.table is not None:
        await_quiet(side)
    return judge(side.audit(final(side, (told(folder) or side.is_completed(instant), A), (b, B))), *notes)


def cancelled_while_sending_data(side: Side) -> Result:
    """A's program cancels its jobs while the PUT of a data file is held, and lives on.

    The instant that A gave up is rolled back; then the PUT arrives.
    """
    held = side.proxy.hold_next(s3proxy.data_file)
    a, folder = side.program("a", [(60, "c", "A", 2)], how="jobs")
    arrive(held, a)
    (folder / "stop").touch()
    notes = []
    if side.table is not None:
        (instant,) = until("A has begun an instant", side.table.pending, alive=a)
        time.sleep(2 * DRAIN_SECONDS)
        record = side.table.get(f"instant/{instant}")
        assert record is not None, "A gave up its instant while a file of it was on the wire"
        assert record["state"] == "Pending", "A gave up its instant while a file of it was on the wire"
        notes.append(
            f"{2 * DRAIN_SECONDS} s after its jobs were cancelled A had not given up its instant: its file had no "
            "answer"
        )
        held.deliver.set()
        a.wait()
    else:
        a.wait()
        time.sleep(11)  # until B calls A dead (stock.py)
    other: list[Row] = [(50, "b", "B", 2)]
    b = side.write("b", other, services=True)
    assert b.wait() == 0, b.log()[-3000:]
    if not held.delivered.is_set():
        held.deliver.set()
        until("the PUT has arrived", held.delivered.is_set)
    notes.append(f"A was told: {'committed' if told(folder) else 'not committed'}")
    if side.table is not None:
        await_quiet(side)
    return judge(side.audit(final(side, (told(folder), [(60, "c", "A", 2)]), (b, other))), *notes)


def stopped_while_sending_data(side: Side) -> Result:
    """A gets SIGTERM while the PUT of a data file is held: it does not leave before the answer.

    A writer that leaves by itself, as one that has nothing under way, has no drain.
    """
    assert side.table is not None
    held = side.proxy.hold_next(s3proxy.data_file)
    a = side.write("a", [(60, "c", "A", 2)])
    arrive(held, a)
    (instant,) = until("A has begun an instant", side.table.pending, alive=a)
    a.terminate()
    time.sleep(2 * DRAIN_SECONDS)
    assert side.table.get(f"writer/{a.inc}") is not None, "A left by itself while a file of it was on the wire"
    record = side.table.get(f"instant/{instant}")
    assert record is not None, "A left by itself while a file of it was on the wire"
    assert record["state"] == "Pending", "A gave up its instant while a file of it was on the wire"
    held.deliver.set()
    code = a.wait()
    if side.table.get(f"writer/{a.inc}") is not None:
        side.settle(a)
    other: list[Row] = [(50, "b", "B", 2)]
    b = side.write("b", other, services=True)
    assert b.wait() == 0, b.log()[-3000:]
    await_quiet(side)
    return judge(
        side.audit(final(side, (due(side, a, instant), [(60, "c", "A", 2)]), (b, other))),
        f"{2 * DRAIN_SECONDS} s after SIGTERM A was still there: its file had no answer; then it ended with {code}",
    )


def empty_completed_file(side: Side) -> Result:
    """A dies before its completed file is sent, and the store shows an empty one (as hdfs does from
    the creation on); B writes to the same file group.
    """
    held = side.proxy.hold_next(s3proxy.completed)
    a = side.write("a", A)
    arrive(held, a)
    a.kill()
    name = held.line.split(" ")[1].partition("?")[0].rsplit("/", 1)[1]
    (side.timeline() / name).touch()
    notes = []
    if side.table is not None:
        inc = side.fence_only(a)
        time.sleep(side.table.drain)
        side.table.fence(a)
        asked = len(side.proxy.lines)
        error = until(
            "the agent tells of it",
            lambda: (side.table.report().get("error") or {}) if side.table else None,
            alive=side.agent,
        )
        time.sleep(5)
        notes.append(f"the agent reports {error}")
        deleted = [line for line in side.proxy.lines[asked:] if s3proxy.deletion(line)]
        assert not deleted, f"deleted although nobody knows what became of A's commit: {deleted[:3]}"
        assert side.table.outcomes(inc) is None, "settled although nobody knows what became of A's commit"
    b = side.write("b", B)
    b.wait()
    notes.append(f"B was told: {'committed' if side.acknowledged(b) else 'not committed'}")
    found = judge(side.audit(final(side, (b, B))), *notes)
    return told_loudly(found) if side.table is not None and not side.acknowledged(b) else found


OUTAGE_SECONDS = 300
MAVEN = (
    "mvn",
    "-q",
    "-B",
    "-f",
    str(ROOT / "spark-images/etcd-lock/pom.xml"),
    "-Dsurefire.failIfNoSpecifiedTests=true",
    "test",
)


def quorum_lost_for_minutes() -> Result:
    """Two of three etcd members are frozen for 300 s while ten writers commit: nothing is acquired
    or committed meanwhile, the JVMs halt, others follow.
    """
    command = [*MAVEN, "-Dtest=QuorumTest#withoutQuorumNothingIsDoneAndItGoesOnByItself"]
    done = subprocess.run(
        command, env={**os.environ, "OUTAGE_SECONDS": str(OUTAGE_SECONDS)}, capture_output=True, text=True, check=False
    )
    print(done.stdout, done.stderr)
    if done.returncode:
        return Result("failed", why(done.stdout + done.stderr))
    return Result("ok", "no commit without quorum; every JVM halted by itself; their followers commit")


@dataclass(frozen=True)
class Scenario:
    """One fault: its id, the invariant that it is about, and what each setup must show. Which
    acceptance cases it is about: :func:`tests.campaigns.faults.cases.numbers_of`.
    """

    id: str
    run: Callable[[Side], Result] | None
    invariant: str
    expected: dict[str, str]
    """Setup → verdict; `n/a: reason` where there is nothing to run."""
    s3_options: dict[str, str] = field(default_factory=dict)
    archives: bool = False
    """The table is archived after a few commits."""
    alone: Callable[[], Result] | None = None
    """Instead of `run`: what makes its world itself."""
    takes_seconds: float = 0
    """Time of the fault beyond the time that every cell has."""

    @property
    def fault(self) -> str:
        return " ".join(((self.run or self.alone).__doc__ or "").split())


NO_LOOK = "n/a: stock Hudi does not look at the timeline before it rolls back"
SCENARIOS = (
    Scenario("paused-writer", paused_writer, "I1, I9", {"stock": "corrupt", "lease-only": "ok", "ours": "ok"}),
    Scenario(
        "publication-on-the-wire",
        publication_on_the_wire,
        "I1, I9",
        {"stock": "corrupt", "lease-only": "corrupt", "ours": "ok"},
    ),
    Scenario("inside-the-drain", arrives_inside_the_drain, "I3, I8", {"stock": "ok", "lease-only": "ok", "ours": "ok"}),
    Scenario(
        "after-the-drain",
        arrives_after_the_drain,
        "I3",
        {"stock": "corrupt", "lease-only": "reported", "ours": "reported"},
    ),
    Scenario(
        "after-the-drain-same-group",
        arrives_after_the_drain_in_the_same_group,
        "I3",
        {"stock": "corrupt", "lease-only": "reported", "ours": "reported"},
    ),
    Scenario(
        "client-times-out",
        client_times_out,
        "I1",
        {"stock": "corrupt", "lease-only": "ok", "ours": "ok"},
        TIMEOUT_OPTIONS,
    ),
    Scenario(
        "other-file-times-out",
        other_file_times_out,
        "I1, F37",
        {"stock": "ok", "lease-only": "ok", "ours": "ok"},
        TIMEOUT_OPTIONS,
    ),
    Scenario(
        "archive-version-times-out",
        archive_version_times_out,
        "I1, F37",
        {"stock": "corrupt", "lease-only": "ok", "ours": "ok"},
        TIMEOUT_OPTIONS,
        archives=True,
        takes_seconds=60,
    ),
    Scenario("listing-fails", listing_fails, "I4, I11", {"stock": NO_LOOK, "lease-only": "ok", "ours": "ok"}),
    Scenario("store-is-busy", store_is_busy, "I8", {"stock": "ok", "lease-only": "ok", "ours": "ok"}),
    Scenario(
        "stopped-while-publishing",
        stopped_while_publishing,
        "I1, F31",
        {"stock": "corrupt", "lease-only": "ok", "ours": "ok"},
    ),
    Scenario(
        "cancelled-while-sending-data",
        cancelled_while_sending_data,
        "I5, F35",
        {"stock": "corrupt", "lease-only": "ok", "ours": "ok"},
    ),
    Scenario(
        "stopped-while-sending-data",
        stopped_while_sending_data,
        "I5, F35",
        {
            "stock": "n/a: see cancelled-while-sending-data",
            "lease-only": "n/a: it has the same drain",
            "ours": "ok",
        },
    ),
    Scenario(
        "empty-completed-file",
        empty_completed_file,
        "I4, F34",
        {"stock": "unknown", "lease-only": "reported", "ours": "reported"},
    ),
    Scenario(
        "quorum-lost",
        None,
        "I1, I11",
        {
            "stock": "n/a: no etcd",
            "lease-only": "n/a: the mode decides when a lock is free, nothing here",
            "ours": "ok",
        },
        alone=quorum_lost_for_minutes,
        takes_seconds=OUTAGE_SECONDS + 60,
    ),
)


def run(scenario: Scenario, setup: str, folder: Path) -> dict[str, Any]:
    """Run one cell from nothing; raises AssertionError when a rule was broken on the way."""
    begin = time.monotonic()
    if scenario.run is None:
        assert scenario.alone is not None
        alone = scenario.alone()
        return {**dataclasses.asdict(alone), "seconds": {"run": round(time.monotonic() - begin, 1)}}
    side = make(setup, folder, s3_options=scenario.s3_options, archives=scenario.archives)
    try:
        ready = time.monotonic()
        found = scenario.run(side)
        if side.table is not None:
            # A cell ends with what its fault has shown: who was hit may stand, or be unsettled
            side.world.conform(complete=False)
        seconds = {"set up": round(ready - begin, 1), "run": round(time.monotonic() - ready, 1)}
        return {**dataclasses.asdict(found), "seconds": seconds}
    finally:
        side.close()

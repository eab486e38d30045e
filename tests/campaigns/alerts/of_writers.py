"""Faults of writers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tests.campaigns.alerts.fault import Fault, Made, nothing
from tests.campaigns.alerts.played import FAST, Play
from tests.campaigns.alerts.stage import Stage, instant, now_ms
from tests.support.harness.servers import wait_for

MANY = 7
"""More than the five of the alerts about many."""


def made(play: Play, table: str, writer: str, *shows: str, repair: Callable[[], None], **more: object) -> Made:
    """A fault of a writer of that name."""
    return Made(play.of_writer(table, writer), shows, repair, play.words(table, writer), **more)  # type: ignore[arg-type]


def stalled(stage: Stage) -> Made:
    play, table, name = Play(stage), "of-stalled", "bad-data"
    play.table(table)
    pod, inc = play.writer(table, name, **FAST)
    play.fails(table, pod, inc, "BadData")
    wait_for("it is Stalled", lambda: play.true("hudiwriters", name, "Stalled"))
    found = made(play, table, name, "BadData", repair=partial(play.started, table, name, 2))
    found.words["POD"] = str(pod["metadata"]["name"])
    return found


def not_ready(stage: Stage) -> Made:
    play, table, name = Play(stage), "of-starting", "unscheduled"
    play.table(table)
    stage.world.writer(name, table=table)
    play.driver(name)
    return made(play, table, name, "Starting", "Pending", repair=partial(play.started, table, name))


def waiting(stage: Stage) -> Made:
    play, table, name = Play(stage), "of-waiting", "second-of-two"
    play.table(table, concurrency={"maxWriters": 1})
    play.writer(table, "first-of-two")
    stage.world.writer(name, table=table)
    wait_for("it waits", lambda: play.status("hudiwriters", name).get("queue"))

    def repair() -> None:
        play.patch("huditables", table, concurrency={"maxWriters": 2})
        play.started(table, name)

    return made(play, table, name, "MaxWriters", repair=repair)


def late(stage: Stage) -> Made:
    play, table, name = Play(stage), "of-late", "late"
    play.table(table)
    stage.world.writer(name, table=table, startDeadlineSeconds=80)
    play.driver(name)

    def repair() -> None:
        pods = stage.world.pods("driver", writer=name)
        play.started(table, name, int(pods[-1]["metadata"]["labels"]["hudioperator.io/attempt"]))

    return made(play, table, name, "NotStarted", repair=repair, seconds=90)


def lagging(stage: Stage) -> Made:
    play, table, name = Play(stage), "of-lagging", "behind"
    play.table(table)
    pod, inc = play.writer(table, name)
    tells = partial(play.tells, table, pod, inc)
    tells(waiting=700)
    return made(play, table, name, "Ready=True", repair=partial(tells, waiting=0))


def conflicts(stage: Stage) -> Made:
    play, table, name = Play(stage), "of-conflicts", "refused"
    play.table(table, concurrency={"maxWriters": 2})
    pod, inc = play.writer(table, name)
    winner, lost = instant(40), list[dict[str, object]]()

    def one_more() -> None:
        lost.append({"instant": instant(30), "with": winner, "fileGroups": [], "atMs": now_ms()})
        play.tells(table, pod, inc, conflicts=lost[-10:])

    return made(play, table, name, winner, repair=nothing, again=one_more, every=3.0)


def failing(stage: Stage) -> Made:
    play, table = Play(stage), "of-failing"
    play.table(table, concurrency={"maxWriters": 64})
    for number in range(MANY):
        stage.world.writer(f"mismatch-{number}", table=table, **FAST)
    running = [play.started(table, f"mismatch-{number}") for number in range(MANY)]
    for pod, inc in running:
        play.fails(table, pod, inc, "SchemaMismatch")
    words = play.words(table, "mismatch-0", running[0][0])
    return Made({"class": "SchemaMismatch"}, ("SchemaMismatch",), words=words)


def fenced(stage: Stage) -> Made:
    play, table = Play(stage), "of-fenced"
    play.table(table, concurrency={"maxWriters": 64})
    for number in range(MANY):
        stage.world.writer(f"silent-{number}", table=table)
    running = [play.started(table, f"silent-{number}") for number in range(MANY)]
    for _, inc in running:
        stage.world.revoke(inc)
    return Made({"reason": "LeaseGone"}, ("LeaseGone", "silent-0"), words=play.words(table))


def faults() -> list[Fault]:
    """All of them."""
    ends = "nothing more: it ends when no more are counted"
    return [
        Fault("HudiWriterLate", "a driver's pod stays Pending, with a deadline of 80 s", "the pod runs", late),
        Fault(
            "HudiWriterStalled", "its only attempt ends with BadData", "a new restartNonce, as the page says", stalled
        ),
        Fault("HudiWriterNotReady", "the driver's pod stays Pending", "the pod runs", not_ready),
        Fault("HudiWriterWaiting", "`maxWriters` is 1, and another one runs", "it is 2", waiting),
        Fault("HudiWriterLagging", "the backlog stays at 700", "it is 0", lagging),
        Fault("HudiWriterConflicts", "a commit is refused every 3 s, each after 30 s of work", ends, conflicts),
        Fault("HudiAttemptsFailing", f"{MANY} writers end with SchemaMismatch", ends, failing),
        Fault("HudiProcessesFenced", f"the heartbeats of {MANY} writers end", ends, fenced),
    ]

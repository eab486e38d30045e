"""Interruptions that are no fault of one write: watches that freeze or lose events, stale lists, a
second operator, servers that are away.

Each is a function of a run that is called when the play reaches a point: ``table`` (it stands,
nobody writes), ``running`` (the first attempt works), ``dead`` (it has just ended), ``second`` (the
second attempt works). The rules for all other runs hold for these, too.

A run counts only when its interruption has taken effect: `EFFECTS` says how often each was seen.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.harness.servers import wait_for
from tests.support.trace.events import read_files

if TYPE_CHECKING:
    from tests.campaigns.crashes.run import Run

AWAY_SECONDS = 6.0
"""Longer than a call to etcd waits, and than one round of its back-off."""


def frozen_watches(run: Run, point: str) -> None:
    """From the death of the first attempt on no watch delivers anything, though all stay open."""
    if point == "dead":
        run.api.frozen = True
        run.etcd.frozen.set()


def dropped_events(run: Run, point: str) -> None:
    """Watches lose every event of pods and writers, and every change of instants
    and settle records.
    """
    if point == "table":
        run.api.drop_events = lambda event: event["object"].get("kind") in ("Pod", "HudiWriter")
        run.etcd.drop_events = lambda response: any(
            b"/instant/" in e.kv.key or b"/settle/" in e.kv.key for e in response.events
        )


def stale_lists(run: Run, point: str) -> None:
    """A new operator's first lists are those of the old one's start: no table, no
    writer, no pod.
    """
    if point == "dead":
        run.api.stale = dict(run.api.recorded)
        assert run.api.stale, "no list was recorded"
        run.kill()


def two_operators(run: Run, point: str) -> None:
    """A second operator without leader election works beside the first from the beginning
    to the end.
    """
    if point == "table":
        run.start()


def _away(stop: Callable[[], None], start: Callable[[], None]) -> None:
    """Away, and back a while later; the play goes on meanwhile."""
    stop()
    threading.Timer(AWAY_SECONDS, start).start()


def api_server_away(run: Run, point: str) -> None:
    """The operator cannot reach the API server, while the first attempt dies and later while the
    second one works.
    """
    if point in ("dead", "second"):
        _away(run.api.stop, run.api.start)


def etcd_away(run: Run, point: str) -> None:
    """The operator cannot reach etcd, while the first attempt dies and later while the
    second one works.
    """
    if point in ("dead", "second"):
        _away(run.etcd.stop, run.etcd.start)


def api_server_restarted(run: Run, point: str) -> None:
    """The API server is killed and started again: its caches are empty, its watches gone."""
    if point in ("dead", "second"):
        restart(run.parts.cluster_directory / "pids/kube-apiserver")
        wait_for("API server", lambda: _answers(run))
        run.servers_disturbed += 1


def etcd_restarted(run: Run, point: str) -> None:
    """etcd is killed and started again on its data."""
    if point in ("dead", "second"):
        restart(run.parts.cluster_directory / "pids/our-etcd")
        wait_for("etcd", lambda: run.parts.etcd.ctl("root", "get", "/hudi/none").returncode == 0)
        run.servers_disturbed += 1


def etcd_frozen(run: Run, point: str) -> None:
    """etcd answers nothing for a while, though its connections stand."""
    if point in ("dead", "second"):
        pid = _pid(run.parts.cluster_directory / "pids/our-etcd")
        os.kill(pid, signal.SIGSTOP)
        time.sleep(AWAY_SECONDS)
        os.kill(pid, signal.SIGCONT)
        run.servers_disturbed += 1


def _answers(run: Run) -> bool:
    try:
        return run.parts.cluster.request("GET", "/api/v1/namespaces/default") is not None
    except (OSError, AssertionError):
        return False


def _pid(file: Path) -> int:
    return int(file.read_text().split()[0])


def restart(file: Path) -> None:
    """Kill the server whose process id a file holds, and start it again as it was.

    The file then holds the new id.
    """
    pid = _pid(file)
    command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
    os.kill(pid, signal.SIGKILL)
    wait_for("its end", lambda: _ended(pid))
    with (file.parent.parent / "log" / f"{file.name}.log").open("ab") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    started = Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2].split()[19]
    file.write_text(f"{process.pid} {started}\n")


def _ended(pid: int) -> bool:
    """Gone, or a zombie that only waits for its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except OSError:
        return True


SIDE_BY_SIDE = (frozen_watches, dropped_events, stale_lists, two_operators, api_server_away, etcd_away)
ALONE = (api_server_restarted, etcd_restarted, etcd_frozen)
"""These disturb every run that shares the servers."""
INTERRUPTIONS: dict[str, Callable[[Run, str], None]] = {
    f.__name__.replace("_", " "): f for f in (*SIDE_BY_SIDE, *ALONE)
}


def _worked(run: Run) -> dict[str, int]:
    """Each operator logs what it writes to etcd, or tries to."""
    return {f"writes of operator {n}": len(read_files([one.log])) for n, one in enumerate(run.world.operators, 1)}


def _disturbed(run: Run) -> dict[str, int]:
    return {"servers disturbed": run.servers_disturbed}


EFFECTS: dict[str, Callable[[Run], dict[str, int]]] = {
    f.__name__.replace("_", " "): seen
    for f, seen in {
        frozen_watches: lambda run: {
            "events of the API server held back": run.api.held_back,
            "events of etcd held back": run.etcd.held_back,
        },
        dropped_events: lambda run: {
            "events of the API server dropped": run.api.dropped,
            "events of etcd dropped": run.etcd.dropped,
        },
        stale_lists: lambda run: {"old lists": run.api.served_stale},
        two_operators: _worked,
        api_server_away: lambda run: {"requests cut": run.api.cut},
        etcd_away: lambda run: {"streams cut": run.etcd.cut},
        **dict.fromkeys(ALONE, _disturbed),
    }.items()
}
"""Signs that an interruption has taken effect, and how often each was seen: more than 0 times."""

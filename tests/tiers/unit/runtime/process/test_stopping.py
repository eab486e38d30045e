"""SIGTERM: how long work may go on, and that it is asked to end only once.

Real signals, in a process of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from hudi_runtime.process.stopping import DEFAULT_GRACE_SECONDS, LEAVE_SECONDS, Stop, working_seconds
from tests.support import ROOT

PROGRAM = """
import sys, time
from hudi_runtime.process.stopping import Stop

def over():
    print("over", f"{time.monotonic() - asked:.2f}", flush=True)

stop = Stop(over)
stop.install()
print("ready", flush=True)
while not stop.wait(0.02):
    pass
asked = time.monotonic()
print("asked", stop.requested, flush=True)
time.sleep(float(sys.argv[1]))
print("end", flush=True)
"""


@pytest.mark.parametrize(("grace", "works"), [(60, 50), (30, 20), (25, 15), (20, 12), (10, 6), (1, 0.6), (0, 0)])
def test_what_is_kept_of_the_grace_for_leaving(grace: float, works: float) -> None:
    assert working_seconds(grace) == works
    assert grace - works <= LEAVE_SECONDS, "never more than that is kept"


def _program(grace: str | None, sleep: float) -> subprocess.Popen[str]:
    keep = {key: value for key, value in os.environ.items() if key != "HUDI_OPERATOR_STOP_GRACE_SECONDS"}
    path = os.pathsep.join((str(ROOT / "spark-images"), str(ROOT / "operator")))
    environment = {**keep, "PYTHONPATH": path, **({} if grace is None else {"HUDI_OPERATOR_STOP_GRACE_SECONDS": grace})}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(sleep)], env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_what_works_longer_is_ended_when_the_grace_is_over_and_once() -> None:
    process = _program("1", 2.5)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=20)
    asked, over, end = said.splitlines()
    assert (asked, end) == ("asked True", "end")
    assert over.split()[0] == "over"
    assert 0.5 <= float(over.split()[1]) < 2.0


def test_what_ends_by_itself_is_left_alone() -> None:
    process = _program("30", 0.1)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=20)
    assert said.splitlines() == ["asked True", "end"], "the timer does not keep the process"


def test_without_a_variable_the_grace_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HUDI_OPERATOR_STOP_GRACE_SECONDS", raising=False)
    seen: list[float] = []

    class Timer:
        daemon = False

        def __init__(self, seconds: float, _call: object) -> None:
            seen.append(seconds)

        def start(self) -> None:
            return

    monkeypatch.setattr("hudi_runtime.process.stopping.threading.Timer", Timer)
    stop = Stop(lambda: None)
    assert not stop.requested
    stop._handle(signal.SIGTERM, None)
    stop._handle(signal.SIGTERM, None)
    assert stop.requested
    assert stop.wait(0)
    assert seen == [working_seconds(DEFAULT_GRACE_SECONDS)]

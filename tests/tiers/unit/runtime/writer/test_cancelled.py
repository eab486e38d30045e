"""The class of a driver that is asked to stop while user code runs: real signals, real termination
messages, and the runtime's own way from the job to the user's function.

Spark is played: its jobs are cancelled as it says so, by an error of the JVM in the thread that
waits for the job.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_contract.environment import STOP_GRACE_SECONDS
from hudi_contract.outcomes import EXIT_CODES
from hudi_runtime.process import spark as sp
from hudi_runtime.read.progress import Progress
from hudi_runtime.writer import attempt as writer
from tests.support.world.job_json import JOB
from tests.support.world.thrown import Thrown

CODE = """
def action(spark, context):
    spark.count()
    yield

def wrapped(spark, context):
    try:
        spark.count()
    except Exception as error:
        raise ValueError("the input cannot be counted") from error
    yield

def wrong(spark, context):
    spark.asked()
    raise ValueError("no such column")
    yield
"""
PROGRAM = """
import sys
from hudi_runtime.api import current_context

try:
    current_context().spark.count()
except Exception:
    sys.exit(3)
"""


class Spark:
    """A session whose one job ends when it is cancelled."""

    def __init__(self) -> None:
        self.sparkContext = SimpleNamespace(_jsc=object(), _jvm=None, cancelAllJobs=self._cancel)
        self.cancelled = threading.Event()

    def _cancel(self) -> None:
        self.cancelled.set()

    def asked(self) -> None:
        """The kubelet asks the process to stop."""
        signal.raise_signal(signal.SIGTERM)

    def count(self) -> int:
        """An action that hangs."""
        self.asked()
        if not self.cancelled.wait(20):
            raise AssertionError("nobody has cancelled it")
        raise Thrown("org.apache.spark.SparkException", "Job 3 cancelled as part of cancellation of all jobs")


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """SIGTERM is handled as before afterwards."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


def told(monkeypatch: pytest.MonkeyPatch, folder: Path, grace: str, **job: Any) -> dict[str, Any]:
    """The termination message of an attempt with this job, whose exit code it has."""
    spark: Any = Spark()
    etcd = SimpleNamespace(put=lambda *_: None)
    session = SimpleNamespace(
        attempt="default.w-1",
        inc="i",
        etcd=etcd,
        looking_up=None,
        quiet=lambda *_: True,
        gave_up=lambda: False,
        close=lambda: None,
        give_up_left_writes=lambda _spark: None,
        program_ended=lambda: None,
        completed=set,
    )
    timeline = SimpleNamespace(newest="0", completed=())
    table = SimpleNamespace(timeline=lambda: timeline, commits=lambda _: ())
    committer = SimpleNamespace(abandon_pending=list)
    monkeypatch.setattr(sp, "start", lambda _name, *, program, brought: spark)
    monkeypatch.setattr(sp, "stop", lambda *, wait_seconds: None)
    monkeypatch.setattr(writer.Session, "current", lambda _spark: session)
    monkeypatch.setattr(writer, "Table", lambda *_: table)
    monkeypatch.setattr(writer, "Committer", lambda *_, **__: committer)
    monkeypatch.setattr(writer.predecessor, "await_lock", lambda *_, **__: 0.0)
    monkeypatch.setattr(writer.gate, "closed_for", lambda _session: "")
    monkeypatch.setattr(writer.progress, "read", lambda *_, **__: (Progress(), "0"))
    monkeypatch.setenv(STOP_GRACE_SECONDS, grace)
    for name, value in (("HUDI_OPERATOR_JOB", "job.json"), ("HUDI_OPERATOR_TERMINATION_LOG", "told.json")):
        monkeypatch.setenv(name, str(folder / value))
    (folder / "job.json").write_text(json.dumps(JOB | job))
    code = writer.main()
    found: dict[str, Any] = json.loads((folder / "told.json").read_text())
    assert code == EXIT_CODES[found["class"]]
    return found


def of_function(folder: Path, name: str) -> dict[str, Any]:
    """A job whose source is this function."""
    file = folder / "main.py"
    file.write_text(CODE)
    return {"source": {"python": {"file": str(file), "function": name}}}


@pytest.mark.parametrize("function", ["action", "wrapped"])
def test_a_function_whose_job_was_cancelled_is_no_user_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, function: str
) -> None:
    """F550: whatever asked for the stop, the run failed until a person acted."""
    found = told(monkeypatch, tmp_path, "0.1", **of_function(tmp_path, function))
    assert found["class"] == "Infrastructure"
    assert found["message"].startswith(f"asked to stop, and its jobs were cancelled: {function}")


def test_a_program_that_ends_because_its_job_was_cancelled_is_no_user_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    found = told(monkeypatch, tmp_path, "0.1", application={"mainFile": str(file)}, source=None, operation=None)
    assert found["class"] == "Infrastructure"
    assert found["message"].endswith("program.py ended with exit code 3")


def test_an_error_within_the_grace_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing was cancelled: the same input would fail again."""
    found = told(monkeypatch, tmp_path, "600", **of_function(tmp_path, "wrong"))
    assert (found["class"], found["message"]) == ("UserError", "wrong, batch 1: ValueError: no such column")

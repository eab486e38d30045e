"""Termination message and job file."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_contract.outcomes import FailureClass
from hudi_contract.words import Stage
from hudi_runtime.job.job import FilesSource, Job, PythonSource
from hudi_runtime.process import result
from hudi_runtime.process.errors import Failure
from hudi_runtime.process.result import Reporter, Tally, termination_message
from hudi_runtime.process.session import Conflict
from tests.support.world.job_json import JOB
from tests.support.world.putting_etcd import Etcd


def test_success() -> None:
    tally = Tally()
    tally.conflict(Conflict("1", "2", ("a/fg",)))
    tally.committed("3", "4", 10, since=0)
    message = json.loads(termination_message(tally, None))
    assert message == {
        "outcome": "Succeeded", "class": None, "message": "", "commits": 1, "records": 10,
        "lastInstant": "3", "lastCompletionTime": "4", "conflicts": 1, "waiting": 0, "caughtUp": False,
    }  # fmt: skip
    assert tally.conflicts[0].retried_as == "3"


def test_conflicts_are_bounded() -> None:
    tally = Tally()
    for number in range(25):
        tally.conflict(Conflict(str(number), "x", ()))
    assert [entry.instant for entry in tally.conflicts] == [str(n) for n in range(15, 25)]
    assert tally.conflict_count == 25


def test_message_fits_the_kubelet() -> None:
    failure = Failure(FailureClass.USER_ERROR, "ü" * 5000)
    text = termination_message(Tally(), failure)
    assert len(text.encode()) <= 4096
    assert json.loads(text)["class"] == "UserError"


def test_sources() -> None:
    files = Job.from_json({**JOB, "source": {"files": {"format": "csv", "paths": ["s3a://x"], "maxFilesPerCommit": 2}}})
    assert files.source == FilesSource("csv", ("s3a://x",), {}, 2)
    python = Job.from_json(
        {**JOB, "source": {"python": {"file": "/etc/hudi/code/a.py", "function": "f", "arguments": {"n": 1}}}}
    )
    assert python.source == PythonSource("/etc/hudi/code/a.py", "f", {"n": 1})


def reported(etcd: Any) -> dict[str, Any]:
    (found,) = (entry.value for entry in etcd.range("report/attempt/"))
    return dict(found)


def test_a_report_says_when_a_stream_found_new_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its next commit is due from then on, however long it has waited."""
    clock = iter(range(1000, 9000, 1000))
    monkeypatch.setattr(result, "now_ms", lambda: next(clock))
    etcd = Etcd()
    session: Any = SimpleNamespace(attempt="default.live-1", inc="inc-1", etcd=etcd)
    reporter = Reporter(session, Tally())
    assert reporter.stage(Stage.WRITING)
    assert "resumedMs" not in reported(etcd), "it has not waited"
    reporter.stage(Stage.WAITING)
    reporter.stage(Stage.WAITING)
    reporter.stage(Stage.WRITING)
    found = reported(etcd)
    assert (found["resumedMs"], found["atMs"]) == (4000, 5000)
    reporter.stage(Stage.RETRYING)
    assert reported(etcd)["resumedMs"] == 4000, "what it does again is not new"


def test_a_report_that_was_not_put_is_told() -> None:
    session: Any = SimpleNamespace(attempt="default.live-1", inc="inc-1", etcd=None)
    assert not Reporter(session, Tally()).stage(Stage.WAITING)

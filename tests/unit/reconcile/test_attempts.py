"""Retries, back-off and the end of a run, on status alone."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_operator.model import conditions
from hudi_operator.model.spec import WriterSpec
from hudi_operator.reconcile import attempts

ENDED = "2026-01-01T00:10:00Z"
ENDED_MS = conditions.from_rfc3339(ENDED) or 0


def writer(**spec: Any) -> WriterSpec:
    retry = {"limit": 3, "backoffSeconds": 10, "maxBackoffSeconds": 60}
    return WriterSpec.from_object({"metadata": {"name": "w", "uid": "0123456789"}, "spec": {"tableRef": {"name": "t"}, "retryPolicy": retry, **spec}})


def entries(*classes: str) -> tuple[dict[str, Any], ...]:
    return tuple({"number": n + 1, "class": c, "startTime": f"2026-01-01T00:0{n}:00Z", "endTime": ENDED} for n, c in enumerate(classes))


def status(finished: str = "False", since: str = "2026-01-01T00:00:00Z", reason: str = "NotFinished", **more: Any) -> dict[str, Any]:
    return {"conditions": [{"type": "Finished", "status": finished, "reason": reason, "lastTransitionTime": since}], **more}


@pytest.mark.parametrize(("failed", "seconds"), [(1, 10), (2, 20), (3, 40), (4, 60), (9, 60)])
def test_backoff_doubles_up_to_its_cap(failed: int, seconds: int) -> None:
    delay = attempts.next_retry_ms(writer(), status(), entries(*["Infrastructure"] * failed)) - ENDED_MS
    assert seconds * 1000 <= delay <= seconds * 1000 * (1 + attempts.JITTER)


@pytest.mark.parametrize("kind", ["Succeeded", "Cancelled", ""])
def test_no_backoff_without_a_failure(kind: str) -> None:
    assert attempts.next_retry_ms(writer(), status(), entries(kind)) == 0
    assert attempts.next_retry_ms(writer(), status(), ()) == 0


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ((), ""),
        (("",), ""),
        (("Infrastructure",) * 3, ""),
        (("Infrastructure",) * 4, "Failed"),
        (("Infrastructure", "Cancelled", "Infrastructure", "Cancelled", "Infrastructure"), ""),
        (("Infrastructure",) * 3 + ("Cancelled",), ""),
        (("WriteConflict", "Succeeded"), "Succeeded"),
        (("UserError",), "Failed"),
        (("OptionNotAllowed",), "Failed"),
    ],
)
def test_verdicts(classes: tuple[str, ...], expected: str) -> None:
    assert attempts.verdict(writer(), status(), entries(*classes)) == expected


def test_failures_of_an_earlier_run_do_not_count() -> None:
    """The run began when Finished last became False."""
    assert attempts.failures(status(since="2026-01-01T00:02:00Z"), entries(*["Infrastructure"] * 4)) == 2


def test_a_finished_writer_stays_finished_whatever_its_spec_says() -> None:
    done = status("True", reason="Failed")
    assert attempts.verdict(writer(retryPolicy={"limit": 20}), done, entries(*["Infrastructure"] * 4)) == "Failed"
    assert attempts.verdict(writer(), done, entries("Cancelled")) == "Failed"


@pytest.mark.parametrize(
    ("nonce", "known", "wanted"),
    [
        ("", {}, False),
        ("a", {}, False),
        ("a", {"executedNonce": "a"}, False),
        ("b", {"executedNonce": "a"}, True),
        ("a", {"executedNonce": ""}, True),
        ("", {"executedNonce": "a"}, False),
    ],
)
def test_nonces(nonce: str, known: dict[str, str], wanted: bool) -> None:
    assert attempts.restart_wanted(writer(restartNonce=nonce), status(**known)) is wanted

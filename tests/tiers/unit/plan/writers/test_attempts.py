"""Retries, back-off and the end of a run, on status alone."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_contract.records import Stored
from hudi_contract.table_keys import Gate
from hudi_operator.api.retry_classes import RETRIED_CLASSES
from hudi_operator.api.spec import SpecError, WriterSpec
from hudi_operator.model import conditions
from hudi_operator.model.facts import ContainerFacts, Nodes, PodFacts
from hudi_operator.model.status import AttemptEntry
from hudi_operator.plan.writers import attempts, runs
from tests.support import crds

ENDED = "2026-01-01T00:10:00Z"
ENDED_MS = conditions.from_rfc3339(ENDED) or 0


def writer(**spec: Any) -> WriterSpec:
    retry = {"limit": 3, "backoffSeconds": 10, "maxBackoffSeconds": 60}
    return WriterSpec.from_object(
        {
            "metadata": {"name": "w", "uid": "0123456789"},
            "spec": {"tableRef": {"name": "t"}, "retryPolicy": retry, **spec},
        }
    )


def entries(*classes: str) -> tuple[AttemptEntry, ...]:
    return tuple(
        AttemptEntry(number=n + 1, class_=c, start_time=f"2026-01-01T00:0{n}:00Z", end_time=ENDED)
        for n, c in enumerate(classes)
    )


def status(
    finished: str = "False", since: str = "2026-01-01T00:00:00Z", reason: str = "NotFinished", **more: Any
) -> dict[str, Any]:
    return {
        "conditions": [{"type": "Finished", "status": finished, "reason": reason, "lastTransitionTime": since}],
        **more,
    }


@pytest.mark.parametrize(("failed", "seconds"), [(1, 10), (2, 20), (3, 40), (4, 60), (9, 60)])
def test_backoff_doubles_up_to_its_cap(failed: int, seconds: int) -> None:
    delay = runs.next_retry_ms(writer(), status(), entries(*["LockTimeout"] * failed)) - ENDED_MS
    assert seconds * 1000 <= delay <= seconds * 1000 * (1 + runs.JITTER)


@pytest.mark.parametrize("kind", ["Infrastructure", "HeartbeatLost", "Eviction", "NodeLost"])
def test_who_was_ended_from_outside_is_followed_at_once(kind: str) -> None:
    """F260: but for the second time in a row not, and not faster than its back-off."""
    assert runs.next_retry_ms(writer(), status(), entries(kind)) == ENDED_MS
    assert runs.next_retry_ms(writer(), status(), entries(kind, kind)) >= ENDED_MS + 20_000
    (last,) = entries(kind)
    young = last.but(start_time="2026-01-01T00:09:57Z")
    assert 7_000 <= runs.next_retry_ms(writer(), status(), (young,)) - ENDED_MS <= 8_000


@pytest.mark.parametrize("kind", ["OutOfMemory", "LockTimeout", "WriteConflict", "StorageUnreachable", "Fenced"])
def test_who_failed_at_its_work_backs_off(kind: str) -> None:
    assert runs.next_retry_ms(writer(), status(), entries(kind)) >= ENDED_MS + 10_000


LIMITED = {"limit": 1, "classLimits": [{"class": "Eviction", "limit": 3}, {"class": "OutOfMemory", "limit": 0}]}


@pytest.mark.parametrize(
    ("classes", "over"),
    [
        (["Eviction"] * 3, False),
        (["Eviction"] * 4, True),
        (["Eviction", "Eviction", "Eviction", "NodeLost"], False),
        (["NodeLost", "Eviction", "Infrastructure"], True),
        (["NodeLost", "Eviction", "Eviction", "Eviction"], False),
        (["NodeLost", "Eviction", "Eviction", "Eviction", "Eviction"], True),
        (["OutOfMemory"], True),
        (["NodeLost", "OutOfMemory"], True),
        (["NodeLost"], False),
    ],
)
def test_a_class_may_have_a_limit_of_its_own(classes: list[str], over: bool) -> None:
    limited = writer(retryPolicy={"backoffSeconds": 10, **LIMITED})
    assert runs.verdict(limited, status(), entries(*classes)) == ("Failed" if over else "")


def test_back_off_counts_what_the_limit_counts() -> None:
    limited = writer(retryPolicy={"backoffSeconds": 10, "maxBackoffSeconds": 300, **LIMITED})
    for classes, seconds in ((["Eviction"] * 3, 40), (["Eviction", "Eviction", "NodeLost"], 0)):
        delay = runs.next_retry_ms(limited, status(), entries(*classes)) - ENDED_MS
        assert seconds * 1000 <= delay <= seconds * 1000 * (1 + runs.JITTER)


def test_all_attempts_that_count_are_in_status() -> None:
    limited = writer(retryPolicy=LIMITED)
    assert limited.retry.most_attempts == 1 + 1 + 3
    many = [{"class": kind, "limit": 20} for kind in ("Eviction", "NodeLost")]
    assert writer(retryPolicy={"limit": 20, "classLimits": many}).retry.most_attempts == 61
    with pytest.raises(SpecError, match=r"spec.retryPolicy.classLimits: together with limit 61 retries, more than 60"):
        writer(retryPolicy={"limit": 20, "classLimits": [*many, {"class": "Fenced", "limit": 1}]})


def test_every_class_that_is_retried_may_have_a_limit() -> None:
    """In one object: the list had room for all but the last two."""
    limits = [{"class": kind, "limit": 1} for kind in RETRIED_CLASSES]
    assert set(writer(retryPolicy={"limit": 3, "classLimits": limits}).retry.by_class) == set(RETRIED_CLASSES)
    policy = crds.schema("hudiwriters", "spec")["properties"]["retryPolicy"]["properties"]
    assert policy["classLimits"]["maxItems"] == len(limits)


def test_attempts_lost_to_a_clock_back_off_and_do_not_count() -> None:
    """F47"""
    lost = entries("Infrastructure", "Infrastructure", *["ClockSkew"] * 8)
    assert runs.failures(status(), lost) == 2
    assert runs.verdict(writer(), status(), lost) == ""
    delay = runs.next_retry_ms(writer(), status(), lost) - ENDED_MS
    assert 60_000 <= delay <= 60_000 * (1 + runs.JITTER)
    assert runs.next_retry_ms(writer(), status(), entries("ClockSkew")) - ENDED_MS < 20_000


@pytest.mark.parametrize("kind", ["Succeeded", "Cancelled", ""])
def test_no_backoff_without_a_failure(kind: str) -> None:
    assert runs.next_retry_ms(writer(), status(), entries(kind)) == 0
    assert runs.next_retry_ms(writer(), status(), ()) == 0


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
    assert runs.verdict(writer(), status(), entries(*classes)) == expected


def test_failures_of_an_earlier_run_do_not_count() -> None:
    """The run began when Finished last became False."""
    assert runs.failures(status(since="2026-01-01T00:02:00Z"), entries(*["Infrastructure"] * 4)) == 2


def test_failures_of_a_run_that_was_followed_at_once_do_not_count() -> None:
    """F469: Finished never became True between the two runs, so it does not tell them apart."""
    first, second = entries(*["Infrastructure"] * 4), entries("Infrastructure")
    several = tuple(e.but(run=1) for e in first) + tuple(e.but(run=2) for e in second)
    assert runs.failures(status(), several) == 1
    assert runs.verdict(writer(), status(), several) == ""


def advanced(*classes: str) -> tuple[AttemptEntry, ...]:
    """Entries of a streaming run; `+` marks those that committed or had nothing left to do."""
    return tuple(
        e.but(advanced=c.endswith("+"))
        for e, c in zip(entries(*(c.rstrip("+") for c in classes)), classes, strict=True)
    )


@pytest.mark.parametrize(
    ("classes", "count", "expected"),
    [
        (("Infrastructure",) * 4, 4, "Failed"),
        (("Infrastructure",) * 3 + ("Infrastructure+",), 1, ""),
        (("Infrastructure+",) * 8, 1, ""),
        (("Infrastructure+",) + ("OutOfMemory",) * 3, 4, "Failed"),
        (("Infrastructure+",) + ("OutOfMemory",) * 2, 3, ""),
        (("Infrastructure",) * 3 + ("Cancelled+", "Infrastructure"), 1, ""),
        (("Infrastructure",) * 3 + ("+",), 0, ""),
        (("Infrastructure+", "PositionLost"), 2, "Failed"),
    ],
)
def test_failures_of_a_streaming_run_count_since_it_got_on(classes: tuple[str, ...], count: int, expected: str) -> None:
    """Else months of work would use up the retries."""
    assert runs.failures(status(), advanced(*classes)) == count
    assert runs.verdict(writer(), status(), advanced(*classes)) == expected


@pytest.mark.parametrize(
    ("report", "streaming", "expected"),
    [
        ({"commits": 1, "caughtUp": False}, True, True),
        ({"commits": 0, "caughtUp": True}, True, True),
        ({"commits": 0, "caughtUp": False}, True, False),
        ({}, True, False),
        ({"commits": 3, "caughtUp": False}, False, False),
    ],
)
def test_a_streaming_attempt_that_got_on(report: dict[str, Any], *, streaming: bool, expected: bool) -> None:
    """By its report, which may be older than its end, and by its last word."""
    spec = writer(**({"streaming": {}} if streaming else {}))
    driver = ContainerFacts(
        "driver", started=True, terminated=True, exit_code=11, message=json.dumps({"class": "Infrastructure", **report})
    )
    pod = PodFacts("ns", "w-1", "u", {}, "Failed", "node", deleting=False, finalizers=(), containers=(driver,))
    for told, ended in ((report, None), ({}, pod)):
        etcd = SimpleNamespace(reports={"attempt/a": Stored({"inc": "i", **told}, 1, 1)})
        view: Any = SimpleNamespace(
            etcd=etcd,
            gate=Gate(),
            nodes=Nodes(),
            now_ms=ENDED_MS,
            latest_ms=ENDED_MS,
            stopping=False,
            executors=lambda _: (),
        )
        attempt: Any = SimpleNamespace(
            id="a", number=1, entry=AttemptEntry(number=1), pod=ended, incs=(), admitted=False
        )
        entry = attempts._refreshed(view, attempt, spec)
        if ended is not None:
            entry = attempts._end(view, spec, attempt, [entry]).entries[-1]
        assert entry.advanced == expected


def test_a_finished_writer_stays_finished_whatever_its_spec_says() -> None:
    done = status("True", reason="Failed")
    assert runs.verdict(writer(retryPolicy={"limit": 20}), done, entries(*["Infrastructure"] * 4)) == "Failed"
    assert runs.verdict(writer(), done, entries("Cancelled")) == "Failed"


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
    assert runs.restart_wanted(writer(restartNonce=nonce), status(**known)) is wanted

"""Errors of the outside as the four that cross the layer; probes and metrics.

The oldest Kubernetes.
"""

from __future__ import annotations

import logging

import grpc
import pytest

from hudi_operator.adapters import etcd_rpc
from hudi_operator.adapters.etcd import RevisionNotes, Revisions, Seen
from hudi_operator.adapters.kubernetes import ApiError, translate
from hudi_operator.main import check_version
from hudi_operator.metrics.meter import Metrics
from hudi_operator.model.facts import Nodes, Observed
from hudi_operator.model.objects import Objects
from hudi_operator.model.ports import Conflict, Fatal, OutcomeUnknown, Refused, Retryable
from hudi_operator.observability import Probes, configure_from_environment
from hudi_operator.plan.core import actions as act


@pytest.mark.parametrize(
    ("code", "writes", "expected"),
    [
        ("UNAVAILABLE", True, OutcomeUnknown),
        ("DEADLINE_EXCEEDED", True, OutcomeUnknown),
        ("UNKNOWN", True, OutcomeUnknown),
        ("UNAVAILABLE", False, Retryable),
        ("RESOURCE_EXHAUSTED", True, Retryable),
        ("PERMISSION_DENIED", True, Fatal),
    ],
)
def test_a_write_that_may_have_happened_is_told_from_one_that_has_not(
    code: str, writes: bool, expected: type[Exception]
) -> None:
    assert type(etcd_rpc.translate(getattr(grpc.StatusCode, code), "x", method="Txn", writes=writes)) is expected


@pytest.mark.parametrize(
    ("status", "message", "writes", "expected"),
    [
        (409, "changed", True, Conflict),
        (410, "gone", True, Retryable),
        (429, "slow down", True, Retryable),
        (500, "oops", True, OutcomeUnknown),
        (503, "oops", False, Retryable),
        (403, "forbidden", True, Refused),
        (403, "forbidden", False, Fatal),
        (404, "the server could not find the requested resource", True, Fatal),
        (403, "exceeded quota: x", True, Refused),
        (403, "namespace is being terminated", True, Retryable),
        (422, "invalid", True, Refused),
    ],
)
def test_answers_of_the_api_server(status: int, message: str, writes: bool, expected: type[Exception]) -> None:
    assert type(translate(ApiError(status, message, retry_after=None), "x", writes=writes)) is expected


@pytest.mark.parametrize(
    ("status", "message", "reason"),
    [
        (
            403,
            'pods "a" is forbidden: exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2',
            "QuotaExceeded",
        ),
        (403, 'pods "a" is forbidden: failed quota: few: must specify limits.cpu', "QuotaExceeded"),
        (403, 'pods "a" is forbidden: status unknown for quota: few, resources: pods', "QuotaExceeded"),
        (403, 'pods "a" is forbidden: violates PodSecurity "restricted:latest": privileged', "PodSecurity"),
        (
            422,
            "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
            "AdmissionPolicy",
        ),
        (400, 'admission webhook "w.example" denied the request: no', "AdmissionWebhook"),
        (409, 'admission webhook "w.example" denied the request: no', "AdmissionWebhook"),
        (500, 'Internal error occurred: failed calling webhook "w.example": timeout', "AdmissionWebhook"),
        (403, 'pods "a" is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi', "LimitRange"),
        (403, 'pods "a" is forbidden: no PriorityClass with name x was found', "Forbidden"),
        (422, 'Pod "a" is invalid: spec.tolerations', "Invalid"),
    ],
)
def test_why_the_api_server_makes_no_object(status: int, message: str, reason: str) -> None:
    """F245: each of them was definitely not made, whatever the status."""
    error = translate(ApiError(status, message, retry_after=None), "create Pod lake/a")
    assert isinstance(error, Refused)
    assert error.reason == reason
    assert message in str(error)


def test_a_wish_to_wait_is_passed_on() -> None:
    error = translate(ApiError(429, "slow down", retry_after=7.0), "x")
    assert isinstance(error, Retryable)
    assert error.delay == 7.0


@pytest.mark.parametrize(
    ("major", "minor", "fine"), [("1", "30", True), ("1", "37+", True), ("1", "29", False), ("2", "0", True)]
)
def test_kubernetes_before_1_30_is_refused(major: str, minor: str, fine: bool) -> None:
    if fine:
        check_version(major, minor)
    else:
        with pytest.raises(Fatal, match=r"1\.30 is needed"):
            check_version(major, minor)


def test_the_highest_revision_outlives_the_process_in_annotations() -> None:
    before, after = Revisions(), Revisions()
    before.seen("abc", 7)
    before.seen("abc", 5)
    notes = RevisionNotes(before).write()
    after.seen("abc", 6)
    RevisionNotes(after).read({**notes, "other": "x"})
    assert after.floors() == {"abc": 7}


def test_each_loss_is_found_once_and_outlives_the_process() -> None:
    """F620: by the revision, by the pulse alone, and once more before what was lost is reached."""
    first = Revisions()
    first.learn("c", Seen(revision=100, pulse=90))
    for answer, lost in ((Seen(60, 50), 100), (Seen(5000, 40), 101)):
        old, before = Revisions(), first.known()
        RevisionNotes(old).read(RevisionNotes(first).write())
        assert first.judge("c", before, answer) == lost
        assert first.judge("c", before, answer) == lost, "two tables are read at once"
        assert first.judge("c", first.known(), answer) == lost
        assert first.known()["c"] == Seen(answer.revision, answer.pulse, lost)
        # A Lease of before it says nothing about what came after it, nor undoes it.
        RevisionNotes(first).read(RevisionNotes(old).write())
        assert first.known()["c"] == Seen(answer.revision, answer.pulse, lost)
        # Its successor knows of it by the Lease, or by the pulse if the Lease is older.
        after = Revisions()
        RevisionNotes(after).read(RevisionNotes(first).write())
        assert after.judge("c", after.known(), answer) == lost
        written = Seen(answer.revision + 1, answer.revision + 1, lost)
        assert old.judge("c", old.known(), written) == lost
        assert old.known()["c"] == written


def test_an_etcd_that_knows_all_was_not_set_back() -> None:
    revisions = Revisions()
    for answer in (Seen(7), Seen(9, 8), Seen(9, 8), Seen(12, 11)):
        assert revisions.judge("c", revisions.known(), answer) == 0
    assert revisions.known() == {"c": Seen(12, 11)}
    assert revisions.judge("another", revisions.known(), Seen(1)) == 0


def test_a_hung_loop_is_unhealthy_and_a_start_is_not_ready() -> None:
    now = [0.0]
    probes = Probes(stalled_after=30, clock=lambda: now[0])
    assert probes.answer("/healthz") == (200, "ok")
    assert probes.answer("/readyz") == (503, "starting")
    probes.not_ready = ""
    assert probes.answer("/readyz?x=1") == (200, "ok")
    now[0] = 31
    assert probes.answer("/healthz")[0] == 503
    assert probes.answer("/")[0] == 404


@pytest.mark.parametrize(
    ("level", "expected"), [(None, logging.INFO), ("DEBUG", logging.DEBUG), ("warning", logging.WARNING)]
)
@pytest.mark.parametrize("written", ["text", "json"])
def test_the_environment_says_what_is_logged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], level: str | None, expected: int, written: str
) -> None:
    monkeypatch.setenv("HUDI_OPERATOR_LOG_FORMAT", written)
    if level is None:
        monkeypatch.delenv("HUDI_OPERATOR_LOG_LEVEL", raising=False)
    else:
        monkeypatch.setenv("HUDI_OPERATOR_LOG_LEVEL", level)
    root, ours = logging.getLogger(), logging.getLogger("hudi_operator")
    before = root.handlers[:], root.level, ours.level
    try:
        configure_from_environment()
        assert ours.level == expected
        ours.warning("found")
        ours.log(expected - 10, "not shown")
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])
        ours.setLevel(before[2])
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("{") == (written == "json")
    assert "found" in line


def test_phases_of_settling_are_measured() -> None:
    metrics = Metrics()
    observed = Observed(Objects(None), pods=(), nodes=Nodes(), etcd=None)
    times = {"Fenced": 1000, "Terminating": 1500, "Draining": 4500}
    metrics.performed(
        observed,
        [
            act.UpdateSettle("t", "i", {"phase": "Draining", "times": times}, 1),
            act.Fence("t", "i", "a", {"reason": "LeaseGone"}, True),
        ],
    )
    assert metrics.registry.get_sample_value("hudi_operator_settle_phase_seconds_sum", {"phase": "Terminating"}) == 3.0
    assert metrics.registry.get_sample_value("hudi_operator_fences_total", {"reason": "LeaseGone"}) == 1.0

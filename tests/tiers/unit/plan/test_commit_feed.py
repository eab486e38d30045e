"""The feed of commits: status and metrics, and no events (RFC-22: commits are published to
readers).
"""

from __future__ import annotations

from typing import Any

from hudi_operator.metrics import statuses
from hudi_operator.metrics.meter import Metrics
from hudi_operator.model.facts import Nodes, Observed
from hudi_operator.model.objects import Objects
from hudi_operator.plan import table_events
from hudi_operator.plan.core import actions as act

TABLE = {"metadata": {"namespace": "lake", "name": "orders", "uid": "u", "resourceVersion": "1"}}


def commit(second: int, writer: str = "lake/live") -> dict[str, Any]:
    """A commit that completed in that second."""
    found = {
        "instant": f"202601010000{second:02d}000",
        "action": "deltacommit",
        "completionTime": f"202601010000{second:02d}500",
        "records": 20,
    }
    return {**found, **({"writer": writer, "attempt": "lake.live-1"} if writer else {})}


def status(*commits: dict[str, Any], pending: int = 0) -> dict[str, Any]:
    """A status that shows these commits."""
    timeline: dict[str, Any] = {"pendingCount": pending, "lastCommitTime": "2026-01-01T00:00:59Z"}
    return {"timeline": {**timeline, **({"commits": list(commits)} if commits else {})}}


def news(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Instants of the commits that a look has found."""
    return [commit.instant for commit in statuses.new_commits(before, after)]


def test_commits_are_no_events() -> None:
    """F250: each would be an object in the API server."""
    assert table_events.events({**TABLE, "status": status(commit(1))}, status(commit(1), commit(2))) == ()


def test_what_was_there_before_the_first_look_is_no_news() -> None:
    assert news({}, status(commit(1), commit(2))) == []
    assert news({"timeline": {"lastCompletionTime": commit(1)["completionTime"]}}, status(commit(1))) == [], (
        "shown by an older operator already"
    )
    assert news(status(), status(commit(1))) == [commit(1)["instant"]], "the first commit of a new table"


def test_a_commit_that_ends_late_is_news_although_it_began_first() -> None:
    late = {**commit(1), "completionTime": commit(9)["completionTime"]}
    assert news(status(commit(5)), status(commit(5), late)) == [late["instant"]]


def test_metrics_of_a_table_follow_its_status_and_go_with_it() -> None:
    metrics, labels = Metrics(), {"namespace": "lake", "table": "orders"}

    def value(name: str) -> float | None:
        return metrics.registry.get_sample_value(f"hudi_operator_{name}", labels)

    observed = Observed(Objects({**TABLE, "status": status(commit(1))}), pods=(), nodes=Nodes(), etcd=None)
    metrics.performed(
        observed,
        [act.UpdateStatus("HudiTable", "lake", "orders", "1", status(commit(1), commit(2), commit(3), pending=2))],
    )
    assert value("commits_total") == 2.0
    assert value("pending_instants") == 2.0
    assert value("last_commit_timestamp_seconds") == 1767225659.0
    metrics.performed(observed, [act.PatchFinalizers("HudiTable", "lake", "orders", remove="x")])
    assert value("commits_total") is None
    assert value("pending_instants") is None


def test_a_silent_table_has_its_series_after_a_restart() -> None:
    """F54: nothing changes, so nothing is written.

    The gauges say what stands in status, and alerts can ask for conditions and outcomes.
    """
    metrics, labels = Metrics(), {"namespace": "lake", "table": "orders"}

    def value(name: str, **more: str) -> float | None:
        return metrics.registry.get_sample_value(f"hudi_operator_{name}", {**labels, **more})

    held = [
        {"type": "Ready", "status": "True"},
        {"type": "AwaitingProofOfDeath", "status": "True"},
        {"type": "Stalled", "status": "False"},
    ]
    shown = {**status(commit(1), pending=2), "conditions": held}
    live = {
        "metadata": {"name": "live"},
        "status": {"state": "Running", "attempts": [{"number": 1, "class": "Infrastructure"}, {"number": 2}]},
    }
    observed = Observed(
        Objects({**TABLE, "status": shown}, (live, {"metadata": {"name": "new"}})), pods=(), nodes=Nodes(), etcd=None
    )
    metrics.performed(observed, [])
    assert (value("pending_instants"), value("last_commit_timestamp_seconds")) == (2.0, 1767225659.0)
    conditions = ("Ready", "Stalled", "AwaitingProofOfDeath")
    assert [value("table_condition", condition=kind) for kind in conditions] == [1.0, 0.0, 1.0]
    assert [value("writers", state=state) for state in ("Running", "Waiting")] == [1.0, 1.0]
    entries = [{"number": 1, "class": "Infrastructure"}, {"number": 2, "class": "Succeeded"}]
    ended = act.UpdateStatus("HudiWriter", "lake", "live", "1", {"state": "Succeeded", "attempts": entries})
    metrics.performed(observed, [ended])
    assert [value("writers", state=state) for state in ("Running", "Succeeded")] == [0.0, 1.0]
    assert metrics.registry.get_sample_value("hudi_operator_attempts_ended_total", {"class": "Succeeded"}) == 1.0
    assert metrics.registry.get_sample_value("hudi_operator_attempts_ended_total", {"class": "Infrastructure"}) == 0.0
    metrics.performed(observed, [act.PatchFinalizers("HudiTable", "lake", "orders", remove="x")])
    assert value("table_condition", condition="Ready") is None
    assert value("writers", state="Running") is None

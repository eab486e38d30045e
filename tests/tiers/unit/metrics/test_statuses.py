"""What a look shows of a table and its writers, and what goes with them."""

from __future__ import annotations

from typing import Any

from hudi_contract.records import Stored
from hudi_operator.metrics.meter import Metrics
from hudi_operator.model.facts import EtcdFacts, Nodes, Observed
from hudi_operator.model.objects import Objects
from hudi_operator.plan.core import actions as act

WHERE = {"namespace": "lake", "table": "orders"}
LIVE = {**WHERE, "writer": "live"}
START = 1767225600.0  # 2026-01-01T00:00:00Z


def table(status: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"namespace": "lake", "name": "orders", "uid": "u", "resourceVersion": "1"}, "status": status}


def writer(name: str, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "lake", "resourceVersion": "1"}, "status": status}


def seen(
    status: dict[str, Any], *writers: dict[str, Any], reports: dict[str, dict[str, Any]] | None = None
) -> Observed:
    etcd = EtcdFacts(
        revision=1, cluster_id="c", reports={name: Stored(value, 1, 1) for name, value in (reports or {}).items()}
    )
    return Observed(Objects(table(status), writers), pods=(), nodes=Nodes(), etcd=etcd)


class Shown:
    """The metrics after looks, by name without its prefix."""

    def __init__(self, *looks: Observed) -> None:
        self.metrics = Metrics()
        for look in looks:
            self.metrics.performed(look, [])

    def __call__(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"hudi_operator_{name}", labels)

    def lines(self, *, about: str) -> list[str]:
        """Names of all series with a label of this value."""
        return sorted(
            sample.name
            for family in self.metrics.registry.collect()
            for sample in family.samples
            if about in sample.labels.values()
        )


def test_a_catalog_shows_how_far_behind_it_is() -> None:
    timeline = {"lastCommitTime": "2026-01-01T00:02:00Z"}
    catalog = {"database": "lake", "table": "orders", "failures": 3}
    shown = Shown(seen({"timeline": timeline, "catalog": catalog}))
    assert shown("catalog_failures", **WHERE) == 3
    assert shown("catalog_lag_seconds", **WHERE) is None, "nothing is there yet"
    catalog |= {"lastCompletionTime": "20260101000030500", "failures": 0}
    shown = Shown(seen({"timeline": timeline, "catalog": catalog}))
    assert shown("catalog_last_commit_timestamp_seconds", **WHERE) == START + 30
    assert shown("catalog_lag_seconds", **WHERE) == 90
    shown = Shown(seen({"timeline": {"lastCommitTime": "2026-01-01T00:00:29Z"}, "catalog": catalog}))
    assert shown("catalog_lag_seconds", **WHERE) == 0, "the agent has brought a commit that is not reported yet"
    assert Shown(seen({"timeline": timeline}))("catalog_failures", **WHERE) is None


def test_a_silent_table_shows_everything_that_its_status_says() -> None:
    status = {
        "agent": "agent-a",
        "timeline": {
            "pendingCount": 2,
            "lowestPendingRequestedTime": "20260101000030000",
            "foreign": [{"instant": "1"}],
        },
        "readCost": {"baseBytes": 100, "logBytes": 40},
        "services": {
            "compaction": {"lastTime": "2026-01-01T00:01:00Z", "failures": 3},
            "clean": {"commitsUntilNext": 1},
        },
        "lock": {"owner": "i", "since": "2026-01-01T00:00:10Z"},
        "settling": [
            {"incarnation": "a", "phase": "Terminating", "since": "2026-01-01T00:00:20Z"},
            {"incarnation": "b", "phase": "Terminating", "since": "2026-01-01T00:00:05Z"},
        ],
        "conditions": [
            {"type": "ServicesHealthy", "status": "False"},
            {"type": "BucketSafe", "status": "Unknown"},
            {"type": "RollbackPending", "status": "True"},
        ],
    }
    shown = Shown(seen(status, reports={"timeline": {"atMs": 1767225600500, "exists": True}}))
    assert shown("oldest_pending_instant_timestamp_seconds", **WHERE) == START + 30
    assert shown("foreign_instants", **WHERE) == 1
    assert (shown("base_file_bytes", **WHERE), shown("log_file_bytes", **WHERE)) == (100, 40)
    assert shown("service_failures", **WHERE, service="compaction") == 3
    assert shown("service_last_run_timestamp_seconds", **WHERE, service="compaction") == START + 60
    assert shown("service_last_run_timestamp_seconds", **WHERE, service="clean") is None
    assert shown("lock_held_since_timestamp_seconds", **WHERE) == START + 10
    assert shown("settling", **WHERE, phase="Terminating") == 2
    assert shown("settling", **WHERE, phase="Draining") == 0
    assert shown("settling_since_timestamp_seconds", **WHERE, phase="Terminating") == START + 5
    assert shown("settling_since_timestamp_seconds", **WHERE, phase="Draining") is None
    conditions = ("Ready", "ServicesHealthy", "BucketSafe", "RollbackPending")
    assert [shown("table_condition", **WHERE, condition=kind) for kind in conditions] == [0, 0, None, 1]
    assert shown("timeline_report_timestamp_seconds", **WHERE) == START + 0.5
    assert shown("agent_tables", namespace="lake", agent="agent-a") == 1
    assert shown("commits_total", **WHERE) == 0, "begins with 0, so that the first increase shows"


def test_a_writer_shows_its_lag_and_sums_that_outlive_the_process() -> None:
    live = writer(
        "live",
        state="Running",
        records=70,
        badRecords=3,
        conflicts=4,
        lastCommit={"instant": "i", "time": "2026-01-01T00:00:09Z"},
        attempts=[{"number": 2, "pod": "live-2"}, {"number": 1, "pod": "live-1"}],
        conditions=[{"type": "Ready", "status": "True"}, {"type": "Late", "status": "True"}],
    )
    waits = writer("waits", queue={"position": 1, "since": "2026-01-01T00:00:03Z"})
    reports = {"attempt/lake.live-1": {"waiting": 9}, "attempt/lake.live-2": {"waiting": 5}}
    shown = Shown(seen({}, live, waits, reports=reports))
    assert shown("writer_backlog", **LIVE) == 5, "of the newest attempt"
    assert shown("writer_backlog", **WHERE, writer="waits") is None, "it has told nothing"
    assert (shown("writer_records_total", **LIVE), shown("writer_conflicts_total", **LIVE)) == (70, 4)
    assert shown("writer_bad_records_total", **LIVE) == 3
    assert shown("writer_bad_records_total", **WHERE, writer="waits") == 0
    assert shown("writer_last_commit_timestamp_seconds", **LIVE) == START + 9
    assert shown("writer_condition", **LIVE, condition="Ready") == 1
    assert shown("writer_condition", **LIVE, condition="Late") == 1
    assert shown("writer_condition", **WHERE, writer="waits", condition="Late") == 0
    assert shown("writer_waiting_since_timestamp_seconds", **WHERE, writer="waits") == START + 3
    assert shown("writer_waiting_since_timestamp_seconds", **LIVE) is None


def test_seconds_wasted_by_a_conflict_are_counted_once() -> None:
    before = [{"instant": "20260101000000500", "time": "2026-01-01T00:00:02Z"}]
    after = [*before, {"instant": "20260101000010500", "time": "2026-01-01T00:00:13Z"}]
    told = [
        {"instant": "20260101000000500", "atMs": 1767225602000},
        {"instant": "20260101000010500", "atMs": 1767225613250},
    ]
    look = seen({}, writer("live", recentConflicts=before), reports={"attempt/lake.live-1": {"conflicts": told}})
    metrics = Metrics()

    def wasted() -> float | None:
        return metrics.registry.get_sample_value("hudi_operator_writer_conflict_wasted_seconds_total", LIVE)

    metrics.performed(look, [])
    assert wasted() == 0, "told by an earlier look, of whatever process"
    metrics.performed(look, [act.UpdateStatus("HudiWriter", "lake", "live", "1", {"recentConflicts": after})])
    assert wasted() == 2.75


def test_series_end_with_their_objects() -> None:
    one, two = writer("one", conflicts=1), writer("two", conflicts=1)
    shown = Shown(seen({"agent": "a"}, one, two))
    shown.metrics.lock_waited(("lake", "orders"), 1.0)
    shown.metrics.lock_held(("lake", "orders"), 1.0)
    assert "hudi_operator_writer_conflict_wasted_seconds_total" in shown.lines(about="two")
    shown.metrics.performed(seen({"agent": "a"}, one), [])
    assert shown.lines(about="two") == []
    assert shown.lines(about="one") != []
    shown.metrics.forget(("lake", "orders"))
    assert shown.lines(about="orders") == []
    assert shown.lines(about="lake") == []


def test_numbers_of_pods_have_a_bound() -> None:
    """F543: one driver's number, or the time of one agent, is most of a metric of all tables."""
    look, metrics = seen({}, writer("live", conflicts=1)), Metrics()
    status = act.UpdateStatus("HudiWriter", "lake", "live", "1", {"conflicts": 2**31})
    times = {"Fenced": 1000, "RollingBack": 2000, "Swept": 253_402_300_799_999, "Settled": 5000}
    settled = act.FinishSettle("t", "inc", {"phase": "Settled", "times": times}, 1, ())
    before = {**times}
    del before["Settled"]
    swept = act.UpdateSettle("t", "inc", {"phase": "Swept", "times": before}, 1)
    metrics.performed(look, [status, settled, swept])
    found = metrics.registry.get_sample_value
    assert found("hudi_operator_write_conflicts_total") == 10_000
    assert found("hudi_operator_settle_phase_seconds_sum", {"phase": "Swept"}) == 0
    assert found("hudi_operator_settle_phase_seconds_sum", {"phase": "RollingBack"}) == 30 * 86_400

"""Every metric of this project, in one table.

The meter makes its series from it, the page docs/operate/metrics.md is made from it, and tests
compare rules, dashboards and the gateway's source with it. Names follow Prometheus' conventions: a
base unit as suffix, ``_total`` for counters, and no label without a bound. The values of
``namespace``, ``table``, ``writer`` and ``agent`` are names of objects, and their series end with
the object.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"
OPERATOR, GATEWAY = "operator", "gateway"

LATENCY = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_PHASES = (0.5, 1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 1800)
_LAG = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_LOCK = (0.01, 0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0)

TABLE = ("namespace", "table")
WRITER = (*TABLE, "writer")


@dataclass(frozen=True)
class Definition:
    """One metric."""

    name: str
    kind: str
    text: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    exposed_by: str = OPERATOR
    shown: bool = False
    """Made again by each look at a table (:mod:`statuses`), not counted as events happen."""

    @property
    def series(self) -> tuple[str, ...]:
        """Names of its series in an exposition."""
        if self.kind != HISTOGRAM:
            return (self.name,)
        return tuple(f"{self.name}_{part}" for part in ("bucket", "sum", "count"))


def _shown(name: str, kind: str, text: str, labels: tuple[str, ...]) -> Definition:
    return Definition(name, kind, text, labels, shown=True)


@dataclass(frozen=True)
class Section:
    """Metrics about one thing, for the page."""

    title: str
    text: str
    metrics: tuple[Definition, ...]


TABLES = Section(
    "Of tables",
    "One series for each HudiTable, from its status: it exists from the first reconcile on, also after a restart of "
    "the operator, until the HudiTable is deleted.",
    (
        _shown(
            "hudi_operator_table_condition",
            GAUGE,
            "1 while a condition of a table is True, 0 while it is False; no series while it is absent or Unknown, "
            "except for Ready, Stalled and AwaitingProofOfDeath, which are then 0",
            (*TABLE, "condition"),
        ),
        Definition(
            "hudi_operator_commits_total", COUNTER, "Commits that the table's agent has reported to this process", TABLE
        ),
        _shown(
            "hudi_operator_last_commit_timestamp_seconds",
            GAUGE,
            "When the last commit of a table completed; no series before the first one",
            TABLE,
        ),
        _shown("hudi_operator_pending_instants", GAUGE, "Instants of a table that are not completed", TABLE),
        _shown(
            "hudi_operator_oldest_pending_instant_timestamp_seconds",
            GAUGE,
            "When the oldest instant that is not completed was requested; no series without one",
            TABLE,
        ),
        _shown(
            "hudi_operator_foreign_instants",
            GAUGE,
            "Listed instants of writers that do not use the table's lock; at most 20 are listed",
            TABLE,
        ),
        _shown(
            "hudi_operator_timeline_report_timestamp_seconds",
            GAUGE,
            "When the table's agent last reported its timeline; it does so at least once a minute. No series before "
            "the first report",
            TABLE,
        ),
        _shown("hudi_operator_base_file_bytes", GAUGE, "Size of the newest base files of a MergeOnRead table", TABLE),
        _shown(
            "hudi_operator_log_file_bytes",
            GAUGE,
            "Size of the log files that readers of a MergeOnRead table merge with its base files",
            TABLE,
        ),
    ),
)

WRITERS = Section(
    "Of writers",
    "From the status of each HudiWriter and the report of its newest attempt. `hudi_operator_writer_records_total`, "
    "`hudi_operator_writer_conflicts_total` and `hudi_operator_writer_bad_records_total` are the sums kept in status: "
    "a restart does not reset them.",
    (
        _shown("hudi_operator_writers", GAUGE, "HudiWriters of a table by state", (*TABLE, "state")),
        _shown(
            "hudi_operator_writer_condition",
            GAUGE,
            "1 while the condition Ready, Stalled or Late of a HudiWriter is True",
            (*WRITER, "condition"),
        ),
        _shown(
            "hudi_operator_writer_backlog",
            GAUGE,
            "Files, commits or offsets (depending on the source) that the last read left for later commits; "
            "no series before the first report of the newest attempt",
            WRITER,
        ),
        _shown(
            "hudi_operator_writer_last_commit_timestamp_seconds",
            GAUGE,
            "When the last commit of a writer completed; no series before the first one",
            WRITER,
        ),
        _shown(
            "hudi_operator_writer_waiting_since_timestamp_seconds",
            GAUGE,
            "When a writer began to wait for admission; no series while it does not wait",
            WRITER,
        ),
        _shown("hudi_operator_writer_records_total", COUNTER, "Records that a writer has committed", WRITER),
        _shown(
            "hudi_operator_writer_conflicts_total",
            COUNTER,
            "Commits of a writer that were refused because of another writer's commit",
            WRITER,
        ),
        _shown(
            "hudi_operator_writer_bad_records_total",
            COUNTER,
            "Records of Kafka that a writer's commits have left out (`onBadRecord`)",
            WRITER,
        ),
        Definition(
            "hudi_operator_writer_conflict_wasted_seconds_total",
            COUNTER,
            "Time from the request of an instant until its commit was refused, summed over the refused commits that "
            "reached this process (at most the last ten for each reconcile)",
            WRITER,
        ),
        Definition("hudi_operator_write_conflicts_total", COUNTER, "Write conflicts that writers reported"),
        Definition("hudi_operator_attempts_total", COUNTER, "Driver pods created"),
        Definition("hudi_operator_attempts_ended_total", COUNTER, "Attempts that ended, by class", ("class",)),
    ),
)

LOCKS = Section(
    "The lock",
    "Observed by this process when a change arrives from its etcd watch. Waits and holds that were in progress while "
    "the watch was lost, or when the operator started, are not counted.",
    (
        Definition(
            "hudi_operator_lock_wait_seconds",
            HISTOGRAM,
            "Time in the queue of a table's lock until it was acquired; an acquire without a queue counts as 0",
            TABLE,
            _LOCK,
        ),
        Definition(
            "hudi_operator_lock_hold_seconds",
            HISTOGRAM,
            "Time from an acquire of a table's lock to its release",
            TABLE,
            _LOCK,
        ),
        _shown(
            "hudi_operator_lock_held_since_timestamp_seconds",
            GAUGE,
            "When the lock was acquired; only while status shows the lock: it is held for long, or its owner is being "
            "settled",
            TABLE,
        ),
    ),
)

FENCING = Section(
    "Fencing, proof, drain and rollback",
    "Phases are those of a settle record (docs/design/protocol.md): Fenced and Terminating wait for proof of death, "
    "Draining is the drain, Unlocked and RollingBack wait for the agent's rollback, Swept for the operator.",
    (
        Definition("hudi_operator_fences_total", COUNTER, "Incarnations fenced, by reason", ("reason",)),
        Definition(
            "hudi_operator_settle_phase_seconds", HISTOGRAM, "Time spent in a phase of settling", ("phase",), _PHASES
        ),
        _shown("hudi_operator_settling", GAUGE, "Incarnations of a table in a phase of settling", (*TABLE, "phase")),
        _shown(
            "hudi_operator_settling_since_timestamp_seconds",
            GAUGE,
            "When the incarnation that has been in a phase for the longest entered it; no series without one",
            (*TABLE, "phase"),
        ),
    ),
)

SERVICES = Section(
    "Table services and agents",
    "",
    (
        _shown(
            "hudi_operator_service_last_run_timestamp_seconds",
            GAUGE,
            "When a table service last reported a run; no series before the first one",
            (*TABLE, "service"),
        ),
        _shown(
            "hudi_operator_service_failures",
            GAUGE,
            "Consecutive failures of a table service; 0 after a run that succeeded",
            (*TABLE, "service"),
        ),
        Definition("hudi_operator_agents_total", COUNTER, "Agent pods created"),
        _shown("hudi_operator_agent_tables", GAUGE, "HudiTables that an agent serves", ("namespace", "agent")),
    ),
)

CALLBACK = Section(
    "The commit callback",
    "Only for tables with `commitCallback`.",
    (
        _shown(
            "hudi_operator_callback_undelivered", GAUGE, "Commits that are not delivered to the receiver yet", TABLE
        ),
        _shown("hudi_operator_callback_failures", GAUGE, "Consecutive failed deliveries", TABLE),
        _shown(
            "hudi_operator_callback_archived_undelivered", GAUGE, "Commits archived before they were delivered", TABLE
        ),
        _shown(
            "hudi_operator_callback_undelivered_since_timestamp_seconds",
            GAUGE,
            "Completion time of the oldest undelivered commit; 0: all are delivered",
            TABLE,
        ),
    ),
)

CATALOG = Section(
    "The catalog",
    "Only for tables with `spec.catalog`, from the first report of their agent on.",
    (
        _shown("hudi_operator_catalog_failures", GAUGE, "Consecutive failed updates of the catalog", TABLE),
        _shown(
            "hudi_operator_catalog_last_commit_timestamp_seconds",
            GAUGE,
            "Completion time of the last commit that the catalog shows; no series before the first one",
            TABLE,
        ),
        _shown(
            "hudi_operator_catalog_lag_seconds",
            GAUGE,
            "Time between that commit and the table's last one; 0: the catalog shows the last one",
            TABLE,
        ),
    ),
)

PROCESS = Section(
    "The operator's own health",
    "A replica that does not lead has no series of tables; its `hudi_operator_leader` is 0. The "
    "`process_…` metrics of Prometheus' client library are exposed, too.",
    (
        Definition("hudi_operator_build_info", GAUGE, "Always 1; the version is its label", ("version",)),
        Definition("hudi_operator_leader", GAUGE, "1 on the leader"),
        Definition("hudi_operator_tables", GAUGE, "HudiTables"),
        Definition("hudi_operator_queue_length", GAUGE, "Tables that wait for a reconcile"),
        Definition("hudi_operator_reconciles_total", COUNTER, "Reconciles by outcome", ("outcome",)),
        Definition("hudi_operator_reconcile_seconds", HISTOGRAM, "Duration of a reconcile", buckets=LATENCY),
        Definition(
            "hudi_operator_config_in_force",
            GAUGE,
            "1 while the configuration file is what the operator decides by; 0 while it cannot be used, or a change "
            "in it needs a restart",
        ),
        Definition(
            "hudi_operator_event_loop_lag_seconds",
            HISTOGRAM,
            "Lag of the event loop: by how much a sleep of one second took longer",
            buckets=_LAG,
        ),
        Definition(
            "hudi_operator_api_requests_total",
            COUNTER,
            "Requests to the API server by response code; `none`: no response. kopf's watches are not counted",
            ("verb", "code"),
        ),
        Definition(
            "hudi_operator_api_request_seconds",
            HISTOGRAM,
            "Duration of a request to the API server, without the wait before it",
            ("verb",),
            LATENCY,
        ),
        Definition(
            "hudi_operator_api_wait_seconds",
            HISTOGRAM,
            "Time that a request waited because 32 others were in progress",
            buckets=LATENCY,
        ),
        Definition(
            "hudi_operator_api_clock_offset_seconds",
            GAUGE,
            "Offset of the API server's clock from the operator's, within a second",
        ),
    ),
)

ETCD = Section(
    "etcd and certificates",
    "Sizes are those of the member that the operator uses, queried once a minute by the leader.",
    (
        Definition("hudi_operator_etcd_seconds", HISTOGRAM, "Duration of a call to etcd", ("action",), LATENCY),
        Definition("hudi_operator_etcd_database_bytes", GAUGE, "Size of etcd's database file"),
        Definition("hudi_operator_etcd_database_in_use_bytes", GAUGE, "Part of etcd's database file that is in use"),
        Definition(
            "hudi_operator_etcd_database_quota_bytes",
            GAUGE,
            "Size at which etcd stops accepting writes; reported by etcd 3.6 and newer",
        ),
        Definition(
            "hudi_operator_certificate_expiration_timestamp_seconds",
            GAUGE,
            "Expiration of a certificate: etcd-client and etcd-authority, with which the operator connects to etcd; "
            "etcd-server, as etcd presents it; gateway-authority, as distributed to pods; metrics-server. No series "
            "for a certificate that is not configured or cannot be read",
            ("certificate",),
        ),
    ),
)

OF_GATEWAY = Section(
    "The gateway",
    "On the gateway's port 9090.",
    (
        Definition("hudi_gateway_requests_total", COUNTER, "Requests of pods", exposed_by=GATEWAY),
        Definition(
            "hudi_gateway_refused_total", COUNTER, "Refused requests by gRPC status", ("code",), exposed_by=GATEWAY
        ),
        Definition("hudi_gateway_connections", GAUGE, "Open connections", exposed_by=GATEWAY),
        Definition(
            "hudi_gateway_connections_refused_total",
            COUNTER,
            "Connections that were closed because of a limit: of one address, of all, or of this process's memory",
            exposed_by=GATEWAY,
        ),
    ),
)

SECTIONS = (TABLES, WRITERS, LOCKS, FENCING, SERVICES, CALLBACK, CATALOG, PROCESS, ETCD, OF_GATEWAY)


def every(exposed_by: str = "") -> Iterator[Definition]:
    """All metrics, or those of one process."""
    for section in SECTIONS:
        for metric in section.metrics:
            if exposed_by in ("", metric.exposed_by):
                yield metric


_HEAD = (
    "The operator serves `/metrics` on `config.metricsPort`, the gateway on its port 9090. The gateway also serves "
    "the metrics of each etcd member as `/etcd/NUMBER/metrics`; "
    "[certificates](certificates.md#network) says who may read them. This page is made from "
    "`operator/hudi_operator/metrics/catalog.py` by `python -m hudi_operator.metrics.catalog`: do not edit it."
)


def page() -> str:
    """The page docs/operate/metrics.md."""
    lines = [
        "# Metrics",
        "",
        *textwrap.wrap(_HEAD, 100),
        "",
    ]
    for section in SECTIONS:
        lines += [f"## {section.title}", ""]
        if section.text:
            lines += [*textwrap.wrap(section.text, 100), ""]
        lines += ["| metric | type | labels | meaning |", "|---|---|---|---|"]
        for metric in section.metrics:
            labels = ", ".join(f"`{label}`" for label in metric.labels)
            lines.append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.text} |")
        lines.append("")
    return "\n".join(lines[:-1]) + "\n"


if __name__ == "__main__":
    print(page(), end="")

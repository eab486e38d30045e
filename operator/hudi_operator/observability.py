"""Logs, metrics and probes."""

from __future__ import annotations

import contextlib
import hmac
import json
import logging
import ssl
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import ThreadingWSGIServer, make_wsgi_app

from hudi_contract import naming
from hudi_contract.settle import SettleRecord
from hudi_operator.model import conditions
from hudi_operator.model.config import MetricsConfig
from hudi_operator.model.facts import Observed
from hudi_operator.model.status import attempt_entries
from hudi_operator.plan import table_events
from hudi_operator.plan.core import actions as act

LOG = logging.getLogger(__name__)
_LATENCY = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_PHASES = (0.5, 1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 1800)
SHOWN_CONDITIONS = ("Ready", "Stalled", "AwaitingProofOfDeath")


class _Format(logging.Formatter):
    """Text or JSON; a protocol line is not changed (docs/design/contracts.md §3)."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._json = as_json

    def format(self, record: logging.LogRecord) -> str:
        message = record.getMessage()
        if record.name == "hudi_operator.protocol":
            return message
        if record.exc_info:
            message = f"{message}\n{self.formatException(record.exc_info)}"
        at = datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self._json:
            return json.dumps(
                {"time": at, "level": record.levelname.lower(), "logger": record.name, "message": message}
            )
        return f"{at} {record.levelname[0]} {record.name.removeprefix('hudi_operator.')}: {message}"


def configure_logging(*, as_json: bool, level: int = logging.INFO) -> None:
    """Log everything to stderr; libraries only from level WARNING."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Format(as_json=as_json))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("hudi_operator").setLevel(level)
    # kopf logs every event that it dispatches.
    logging.getLogger("kopf.objects").setLevel(logging.ERROR)


class Metrics:
    """Metrics for Prometheus."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._states: dict[str, int] = {}
        self.reconciles = Counter(
            "hudi_operator_reconciles", "Reconciles by outcome", ["outcome"], registry=self.registry
        )
        self.reconcile_seconds = Histogram(
            "hudi_operator_reconcile_seconds", "Duration of a reconcile", buckets=_LATENCY, registry=self.registry
        )
        self.phase_seconds = Histogram(
            "hudi_operator_settle_phase_seconds",
            "Time spent in a phase of settling",
            ["phase"],
            buckets=_PHASES,
            registry=self.registry,
        )
        self.fences = Counter(
            "hudi_operator_fences", "Incarnations fenced, by reason", ["reason"], registry=self.registry
        )
        self.attempts = Counter("hudi_operator_attempts", "Driver pods created", registry=self.registry)
        self.agents = Counter("hudi_operator_agents", "Agent pods created", registry=self.registry)
        self.conflicts = Counter(
            "hudi_operator_write_conflicts", "Write conflicts that writers reported", registry=self.registry
        )
        self.commits = Counter(
            "hudi_operator_commits",
            "Commits that the tables' agents have reported",
            ["namespace", "table"],
            registry=self.registry,
        )
        self.last_completion = Gauge(
            "hudi_operator_last_commit_timestamp_seconds",
            "When the last commit of a table completed",
            ["namespace", "table"],
            registry=self.registry,
        )
        self.pending = Gauge(
            "hudi_operator_pending_instants",
            "Instants of a table that are not completed",
            ["namespace", "table"],
            registry=self.registry,
        )
        self.conditions = Gauge(
            "hudi_operator_table_condition",
            "1 while a condition of a table is True",
            ["namespace", "table", "condition"],
            registry=self.registry,
        )
        self.writers = Gauge(
            "hudi_operator_writers",
            "HudiWriters of a table by state",
            ["namespace", "table", "state"],
            registry=self.registry,
        )
        self.ended = Counter(
            "hudi_operator_attempts_ended", "Attempts that ended, by class", ["class"], registry=self.registry
        )
        self.callback = {
            "undelivered": Gauge(
                "hudi_operator_callback_undelivered",
                "Commits that are not delivered to the receiver yet",
                ["namespace", "table"],
                registry=self.registry,
            ),
            "failures": Gauge(
                "hudi_operator_callback_failures",
                "Consecutive failed deliveries",
                ["namespace", "table"],
                registry=self.registry,
            ),
            "archivedUndelivered": Gauge(
                "hudi_operator_callback_archived_undelivered",
                "Commits archived before they were delivered",
                ["namespace", "table"],
                registry=self.registry,
            ),
        }
        self.callback_since = Gauge(
            "hudi_operator_callback_undelivered_since_timestamp_seconds",
            "Completion time of the oldest undelivered commit; 0: all are delivered",
            ["namespace", "table"],
            registry=self.registry,
        )
        self.queue_length = Gauge(
            "hudi_operator_queue_length", "Tables that wait for a reconcile", registry=self.registry
        )
        self.tables = Gauge("hudi_operator_tables", "HudiTables", registry=self.registry)
        self.clock = Gauge(
            "hudi_operator_api_clock_offset_seconds",
            "Offset of the API server's clock from the operator's, within a second",
            registry=self.registry,
        )
        self.leader = Gauge("hudi_operator_leader", "1 on the replica that leads", registry=self.registry)
        self.etcd_seconds = Histogram(
            "hudi_operator_etcd_seconds",
            "Duration of a call to etcd",
            ["action"],
            buckets=_LATENCY,
            registry=self.registry,
        )

    def etcd_call(self, action: str, seconds: float) -> None:
        """One call to etcd."""
        self.etcd_seconds.labels(action).observe(seconds)

    def reconciled(self, outcome: str, seconds: float) -> None:
        """One reconcile: ``ok``, ``changed``, ``conflict`` or ``error``."""
        self.reconciles.labels(outcome).inc()
        self.reconcile_seconds.observe(seconds)

    def performed(self, observed: Observed, done: Sequence[act.Action]) -> None:
        """Update gauges from status, and count actions that changed something.

        Gauges are updated even without a change (after a restart, F54).
        """
        self._shown(observed, done)
        if observed.api_now_ms is not None:
            self.clock.set((observed.api_now_ms - observed.now_ms) / 1000)
        for action in done:
            if isinstance(action, act.Fence | act.Adopt):
                self.fences.labels(SettleRecord.known(action.settle).reason).inc()
            elif isinstance(action, act.CreatePod):
                role = action.manifest["metadata"]["labels"].get(naming.LABEL_ROLE)
                (self.attempts if role == naming.ROLE_DRIVER else self.agents).inc()
            elif isinstance(action, act.UpdateSettle | act.FinishSettle):
                self._phase(SettleRecord.known(action.value).times)
            elif isinstance(action, act.UpdateStatus) and action.kind == naming.WRITER_KIND:
                self._conflicts(observed, action)
                self._ended(observed, action)
            elif isinstance(action, act.UpdateStatus) and action.kind == naming.TABLE_KIND:
                self._commits(observed, action)
            elif isinstance(action, act.PatchFinalizers) and action.kind == naming.TABLE_KIND and action.remove:
                self._forget(action.namespace, action.name)

    def _forget(self, namespace: str, name: str) -> None:
        """Remove the series of a deleted table."""
        self._forget_callback(namespace, name)
        for series in (self.commits, self.last_completion, self.pending):
            with contextlib.suppress(KeyError):
                series.remove(namespace, name)
        for gauge, values in ((self.conditions, SHOWN_CONDITIONS), (self.writers, self._states)):
            for value in values:
                with contextlib.suppress(KeyError):
                    gauge.remove(namespace, name, value)

    def _forget_callback(self, namespace: str, name: str) -> None:
        for series in (*self.callback.values(), self.callback_since):
            with contextlib.suppress(KeyError):
                series.remove(namespace, name)

    def _delivered(self, namespace: str, name: str, shown: Mapping[str, Any]) -> None:
        if not shown:
            self._forget_callback(namespace, name)
            return
        for field, series in self.callback.items():
            series.labels(namespace, name).set(int(shown.get(field) or 0))
        since = shown.get("undeliveredSince")
        self.callback_since.labels(namespace, name).set(datetime.fromisoformat(since).timestamp() if since else 0)

    def _shown(self, observed: Observed, done: Sequence[act.Action]) -> None:
        """Gauges of a table and its writers, from the current statuses."""
        if observed.table is None:
            return
        meta = observed.table["metadata"]
        namespace, name = str(meta.get("namespace") or ""), str(meta["name"])
        written = {(a.kind, a.name): a.status for a in done if isinstance(a, act.UpdateStatus)}
        status = written.get((naming.TABLE_KIND, name), observed.table.get("status"))
        if status is not None:
            self._timeline(namespace, name, status)
        states = dict.fromkeys(self._states, 0)
        for writer in observed.writers:
            state = str(
                (written.get((naming.WRITER_KIND, writer["metadata"]["name"])) or writer.get("status") or {}).get(
                    "state"
                )
                or "Waiting"
            )
            states[state] = states.get(state, 0) + 1
        self._states.update(states)
        for state, number in states.items():
            self.writers.labels(namespace, name, state).set(number)

    def _timeline(self, namespace: str, name: str, status: Mapping[str, Any]) -> None:
        self._delivered(namespace, name, status.get("commitCallback") or {})
        timeline = status.get("timeline") or {}
        self.pending.labels(namespace, name).set(int(timeline.get("pendingCount") or 0))
        if timeline.get("lastCommitTime"):
            self.last_completion.labels(namespace, name).set(
                datetime.fromisoformat(timeline["lastCommitTime"]).timestamp()
            )
        for kind in SHOWN_CONDITIONS:
            self.conditions.labels(namespace, name, kind).set(int(conditions.is_true(dict(status), kind)))

    def _ended(self, observed: Observed, action: act.UpdateStatus) -> None:
        before = next((w.get("status") or {} for w in observed.writers if w["metadata"]["name"] == action.name), {})
        known = {entry.number for entry in attempt_entries(before) if entry.class_}
        for entry in attempt_entries(action.status):
            if entry.class_ and entry.number not in known:
                self.ended.labels(entry.class_).inc()

    def _commits(self, observed: Observed, action: act.UpdateStatus) -> None:
        before = (observed.table or {}).get("status") or {}
        more = len(table_events.new_commits(before, action.status))
        if more:
            self.commits.labels(action.namespace, action.name).inc(more)

    def _phase(self, times: Mapping[str, int]) -> None:
        """Observe the duration of the phase before the newest one.

        It is computed from the two newest times of a record.
        """
        newest = sorted(((at, phase) for phase, at in times.items()), reverse=True)[:2]
        if len(newest) == 2:
            (ended, _), (began, phase) = newest
            self.phase_seconds.labels(phase).observe(max(0, ended - began) / 1000)

    def _conflicts(self, observed: Observed, action: act.UpdateStatus) -> None:
        before = next((w.get("status") or {} for w in observed.writers if w["metadata"]["name"] == action.name), {})
        more = int(action.status.get("conflicts") or 0) - int(before.get("conflicts") or 0)
        if more > 0:
            self.conflicts.inc(more)


class Probes:
    """``/healthz``: the event loop is running.

    ``/readyz``: the operator has started; followers are ready, too.
    """

    def __init__(self, *, stalled_after: float = 30.0, clock: Callable[[], float] = time.monotonic) -> None:
        """``stalled_after``: how long a process may be silent, in seconds.

        After so long without a :meth:`beat` it counts as hung.
        """
        self._clock = clock
        self._stalled_after = stalled_after
        self._beat = clock()
        self.not_ready = "starting"
        """Why the operator is not ready; empty when it is."""

    def beat(self) -> None:
        """Record a turn of the event loop."""
        self._beat = self._clock()

    def healthy(self) -> str:
        """Why the process should be restarted; empty when it should not."""
        lag = self._clock() - self._beat
        return f"the event loop has been blocked for {lag:.0f} s" if lag > self._stalled_after else ""

    def answer(self, path: str) -> tuple[int, str]:
        """Status and text for a request."""
        checks: dict[str, Callable[[], str]] = {"/healthz": self.healthy, "/readyz": lambda: self.not_ready}
        check = checks.get(path.partition("?")[0])
        if check is None:
            return 404, "not found"
        problem = check()
        return (503, problem) if problem else (200, "ok")

    def serve(self, port: int) -> ThreadingHTTPServer:
        """Serve on ``port`` (0 = a free one) from a thread; returns the server."""
        probes = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, text = probes.answer(self.path)
                body = f"{text}\n".encode()
                self.send_response(status)
                self.send_header("Content-Type", "text/plain; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Probes are not logged."""

        server = ThreadingHTTPServer(("", port), Handler)
        threading.Thread(target=server.serve_forever, name="probes", daemon=True).start()
        return server


class _MetricsServer(ThreadingWSGIServer):
    """Metrics behind a token, a certificate, or nothing.

    Files are read again when they change. Handshakes are made on the thread of the connection: a
    client that does not speak keeps nobody else waiting.
    """

    access = MetricsConfig()
    _context: ssl.SSLContext | None = None
    _read_at: tuple[int, ...] = ()

    def get_request(self) -> tuple[Any, Any]:
        connection, address = super().get_request()
        try:
            context = self._current()
            if context is not None:
                wrapped = context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
                return wrapped, address
        except OSError as error:
            connection.close()
            LOG.warning("metrics: %s", error)
            raise
        return connection, address

    def _current(self) -> ssl.SSLContext | None:
        access = self.access
        if not access.cert_file:
            return None
        files = [name for name in (access.cert_file, access.key_file, access.client_ca_file) if name]
        stamps = tuple(Path(name).stat().st_mtime_ns for name in files)
        if self._context is None or stamps != self._read_at:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(access.cert_file, access.key_file)
            if access.client_ca_file:
                context.verify_mode = ssl.CERT_REQUIRED
                context.load_verify_locations(access.client_ca_file)
            self._context, self._read_at = context, stamps
        return self._context

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that breaks off, or shows no certificate, is the client's affair."""
        LOG.debug("metrics: connection of %s failed", client_address, exc_info=True)


class _MetricsHandler(WSGIRequestHandler):
    timeout = 10
    """Seconds that a client may keep a thread waiting."""

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not logged."""


def serve_metrics(metrics: Metrics, port: int, access: MetricsConfig) -> ThreadingWSGIServer:
    """Serve ``/metrics`` on ``port`` (0 = a free one) from a thread; returns the server."""
    application = make_wsgi_app(metrics.registry)

    def guarded(environment: Any, start: Any) -> Any:
        refused = _refused(access.token_file, str(environment.get("HTTP_AUTHORIZATION", "")))
        if not refused:
            return application(environment, start)
        start(refused, [("Content-Type", "text/plain"), ("WWW-Authenticate", "Bearer")])
        return [f"{refused}\n".encode()]

    server = make_server("", port, guarded, _MetricsServer, handler_class=_MetricsHandler)
    server.access = access
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server


def _refused(token_file: str, authorization: str) -> str:
    """The status of a refusal; empty when the request carries the token, or none is needed."""
    if not token_file:
        return ""
    try:
        token = Path(token_file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        token = ""
    if not token:
        return "503 Service Unavailable"
    scheme, _, given = authorization.partition(" ")
    same = hmac.compare_digest(given.strip().encode(), token.encode())
    return "" if scheme.lower() == "bearer" and same else "401 Unauthorized"

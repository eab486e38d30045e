"""The metrics of one process: counters of events, and current values by table."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from hudi_contract import naming
from hudi_contract.outcomes import FailureClass
from hudi_contract.settle import Phase, Reason, SettleRecord
from hudi_operator import __version__
from hudi_operator.metrics import catalog, certificates, statuses
from hudi_operator.model import classify
from hudi_operator.model.facts import Observed
from hudi_operator.model.status import attempt_entries
from hudi_operator.plan.core import actions as act

Key = tuple[str, str]
_MOST_CONFLICTS, _LONGEST_PHASE_SECONDS = 10_000, 30 * 86_400
"""Upper limits of numbers that pods report of themselves, in metrics of all tables."""
_CLASSES = (
    *FailureClass,
    classify.SUCCEEDED,
    classify.OUT_OF_MEMORY,
    classify.EVICTION,
    classify.DEADLINE_EXCEEDED,
    classify.START_DEADLINE_EXCEEDED,
    classify.READY_DEADLINE_EXCEEDED,
    classify.COMMIT_DEADLINE_EXCEEDED,
    classify.NODE_LOST,
    classify.CANCELLED,
)
_VERBS, _REFUSED = ("GET", "POST", "PUT", "PATCH", "DELETE"), ("401", "403", "422")
_DEFINITIONS = {metric.name: metric for metric in catalog.every(catalog.OPERATOR)}


class _Shown:
    """Series that each look at a table replaces; read by another thread at a scrape."""

    def __init__(self) -> None:
        self._samples: dict[Key, tuple[statuses.Sample, ...]] = {}
        self._agents: dict[Key, Key] = {}

    def put(self, key: Key, samples: tuple[statuses.Sample, ...], agent: str) -> None:
        """Replace the series of a table with its current ones."""
        self._samples[key] = samples
        if agent:
            self._agents[key] = (key[0], agent)
        else:
            self._agents.pop(key, None)

    def forget(self, key: Key) -> None:
        """A table is gone."""
        self._samples.pop(key, None)
        self._agents.pop(key, None)

    def collect(self) -> Iterator[Metric]:
        """Families of all shown metrics."""
        families = {metric.name: _family(metric) for metric in _DEFINITIONS.values() if metric.shown}
        for samples in list(self._samples.values()):
            for name, labels, value in samples:
                families[name].add_metric(labels, value)
        served: dict[Key, int] = {}
        for agent in list(self._agents.values()):
            served[agent] = served.get(agent, 0) + 1
        for agent, number in served.items():
            families["hudi_operator_agent_tables"].add_metric(agent, number)
        yield from families.values()

    def describe(self) -> Iterator[Metric]:
        """Families without samples, with which the registry compares names."""
        return (_family(metric) for metric in _DEFINITIONS.values() if metric.shown)


class _Certificates:
    """Ends of certificates, read at each scrape."""

    def __init__(self) -> None:
        self.files: Mapping[str, str] = {}
        self.seen: dict[str, float] = {}
        """Ends of certificates that servers have shown, by server."""

    def collect(self) -> Iterator[Metric]:
        """One family."""
        family = _family(_DEFINITIONS["hudi_operator_certificate_expiration_timestamp_seconds"])
        for name, at in {**certificates.expirations(self.files), **self.seen}.items():
            family.add_metric((name,), at)
        yield family

    def describe(self) -> Iterator[Metric]:
        """The family without samples."""
        yield _family(_DEFINITIONS["hudi_operator_certificate_expiration_timestamp_seconds"])


def _family(metric: catalog.Definition) -> CounterMetricFamily | GaugeMetricFamily:
    kind = CounterMetricFamily if metric.kind == catalog.COUNTER else GaugeMetricFamily
    return kind(metric.name, metric.text, labels=metric.labels)


class Metrics:
    """Metrics for Prometheus, as the catalog declares them."""

    def __init__(self) -> None:
        # Else each counter and histogram has one more series, which nobody asks for.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self._states: dict[str, int] = {}
        self._writers: dict[Key, set[str]] = {}
        self._shown = _Shown()
        self._certificates = _Certificates()
        self.registry.register(self._shown)
        self.registry.register(self._certificates)
        ProcessCollector(registry=self.registry)
        self.reconciles = self._counter("hudi_operator_reconciles_total")
        self.reconcile_seconds = self._histogram("hudi_operator_reconcile_seconds")
        self.phase_seconds = self._histogram("hudi_operator_settle_phase_seconds")
        self.fences = self._counter("hudi_operator_fences_total")
        self.attempts = self._counter("hudi_operator_attempts_total")
        self.agents = self._counter("hudi_operator_agents_total")
        self.conflicts = self._counter("hudi_operator_write_conflicts_total")
        self.commits = self._counter("hudi_operator_commits_total")
        self.wasted = self._counter("hudi_operator_writer_conflict_wasted_seconds_total")
        self.ended = self._counter("hudi_operator_attempts_ended_total")
        self.queue_length = self._gauge("hudi_operator_queue_length")
        self.tables = self._gauge("hudi_operator_tables")
        self.clock = self._gauge("hudi_operator_api_clock_offset_seconds")
        self.leader = self._gauge("hudi_operator_leader")
        self.config_in_force = self._gauge("hudi_operator_config_in_force")
        self.etcd_seconds = self._histogram("hudi_operator_etcd_seconds")
        self._lag = self._histogram("hudi_operator_event_loop_lag_seconds")
        self._api_requests = self._counter("hudi_operator_api_requests_total")
        self._api_seconds = self._histogram("hudi_operator_api_request_seconds")
        self._api_wait = self._histogram("hudi_operator_api_wait_seconds")
        self._lock_wait = self._histogram("hudi_operator_lock_wait_seconds")
        self._lock_hold = self._histogram("hudi_operator_lock_hold_seconds")
        self._sizes = {
            name: self._gauge(f"hudi_operator_etcd_database_{name}bytes") for name in ("", "in_use_", "quota_")
        }
        self._gauge("hudi_operator_build_info").labels(__version__).set(1)
        self._begin_at_zero()

    def _begin_at_zero(self) -> None:
        """Expose the series that alerts ask for by their increase before anything is counted.

        Prometheus sees no increase in the first value of a series: what had happened before the
        first scrape with it would count as nothing (F646).
        """
        for reason in Reason:
            self.fences.labels(reason)
        for class_ in _CLASSES:
            self.ended.labels(class_)
        for verb in _VERBS:
            for code in _REFUSED:
                self._api_requests.labels(verb, code)

    def _counter(self, name: str) -> Counter:
        metric = _DEFINITIONS[name]
        return Counter(name, metric.text, metric.labels, registry=self.registry)

    def _gauge(self, name: str) -> Gauge:
        metric = _DEFINITIONS[name]
        return Gauge(name, metric.text, metric.labels, registry=self.registry)

    def _histogram(self, name: str) -> Histogram:
        metric = _DEFINITIONS[name]
        return Histogram(name, metric.text, metric.labels, buckets=metric.buckets, registry=self.registry)

    # ---- what is counted

    def etcd_call(self, action: str, seconds: float) -> None:
        """One call to etcd."""
        self.etcd_seconds.labels(action).observe(seconds)

    def etcd_sizes(self, *, total: int, in_use: int, quota: int) -> None:
        """Bytes of etcd's database; 0: etcd does not say."""
        for name, value in (("", total), ("in_use_", in_use), ("quota_", quota)):
            self._sizes[name].set(value or float("nan"))

    def certificates(self, files: Mapping[str, str]) -> None:
        """Files of the certificates that are watched."""
        self._certificates.files = dict(files)

    def certificate_shown(self, name: str, expires: float) -> None:
        """Store the end of the certificate that a server has shown; 0: it showed none."""
        if expires:
            self._certificates.seen[name] = expires
        else:
            self._certificates.seen.pop(name, None)

    def api_waited(self, seconds: float) -> None:
        """A request to the API server was held back for so long."""
        self._api_wait.observe(seconds)

    def api_request(self, verb: str, status: int, seconds: float) -> None:
        """One request to the API server; status 0: no answer."""
        self._api_requests.labels(verb, str(status) if status else "none").inc()
        self._api_seconds.labels(verb).observe(seconds)

    def lagged(self, seconds: float) -> None:
        """A pause of the event loop was longer than asked for."""
        self._lag.observe(max(0.0, seconds))

    def lock_waited(self, table: Key, seconds: float) -> None:
        """A table's lock was acquired after so long in its queue."""
        self._lock_wait.labels(*table).observe(seconds)

    def lock_held(self, table: Key, seconds: float) -> None:
        """A table's lock was released after so long."""
        self._lock_hold.labels(*table).observe(seconds)

    def reconciled(self, outcome: str, seconds: float) -> None:
        """One reconcile: ``ok``, ``changed``, ``conflict`` or ``error``."""
        self.reconciles.labels(outcome).inc()
        self.reconcile_seconds.observe(seconds)

    # ---- what is shown

    def performed(self, observed: Observed, done: Sequence[act.Action]) -> None:
        """Show the findings of a look, and count its changes.

        A table is shown even without a change (after a restart, F54).
        """
        self._show(observed, done)
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
                self._written(observed, action)
            elif isinstance(action, act.UpdateStatus) and action.kind == naming.TABLE_KIND:
                self._commits(observed, action)
            elif isinstance(action, act.PatchFinalizers) and action.kind == naming.TABLE_KIND and action.remove:
                self.forget((action.namespace, action.name))

    def forget(self, table: Key) -> None:
        """Remove the series of a deleted table."""
        self._shown.forget(table)
        for series in (self.commits, self._lock_wait, self._lock_hold):
            with contextlib.suppress(KeyError):
                series.remove(*table)
        self._of_writers(table, set())

    def _show(self, observed: Observed, done: Sequence[act.Action]) -> None:
        if observed.table is None:
            return
        meta = observed.table["metadata"]
        key = (str(meta.get("namespace") or ""), str(meta["name"]))
        samples = tuple(statuses.samples(observed, done, self._states))
        self._states.update({labels[2]: 0 for name, labels, _ in samples if name == "hudi_operator_writers"})
        self._shown.put(key, samples, str((observed.table.get("status") or {}).get("agent") or ""))
        # A counter that begins with 0 shows its first increase.
        self.commits.labels(*key)
        self._of_writers(key, {str(writer["metadata"]["name"]) for writer in observed.writers})

    def _of_writers(self, table: Key, names: set[str]) -> None:
        """Counters of writers begin and end with the HudiWriter."""
        for gone in self._writers.pop(table, set()) - names:
            self.wasted.remove(*table, gone)
        for name in names:
            self.wasted.labels(*table, name)
        if names:
            self._writers[table] = names

    def _written(self, observed: Observed, action: act.UpdateStatus) -> None:
        before = next((w.get("status") or {} for w in observed.writers if w["metadata"]["name"] == action.name), {})
        known = {entry.number for entry in attempt_entries(before) if entry.class_}
        for entry in attempt_entries(action.status):
            if entry.class_ and entry.number not in known:
                self.ended.labels(entry.class_).inc()
        more = int(action.status.get("conflicts") or 0) - int(before.get("conflicts") or 0)
        if more > 0:
            self.conflicts.inc(min(more, _MOST_CONFLICTS))
        wasted = statuses.wasted_seconds(observed, before, action.status)
        if wasted and observed.table is not None:
            self.wasted.labels(action.namespace, str(observed.table["metadata"]["name"]), action.name).inc(wasted)

    def _commits(self, observed: Observed, action: act.UpdateStatus) -> None:
        before = (observed.table or {}).get("status") or {}
        more = len(statuses.new_commits(before, action.status))
        if more:
            self.commits.labels(action.namespace, action.name).inc(more)

    def _phase(self, times: Mapping[str, int]) -> None:
        """Observe the duration of the phase before the newest one.

        It is computed from the times of the last two phases of a record. One of them may be an
        agent's.
        """
        known = [(times[phase.name], phase.name) for phase in Phase if phase.name in times]
        newest = known[:-3:-1]
        if len(newest) == 2:
            (ended, _), (began, phase) = newest
            self.phase_seconds.labels(phase).observe(min(max(0, ended - began) / 1000, _LONGEST_PHASE_SECONDS))

"""The observation of one table, organized once.

Incarnations, attempts and pods that belong together.

Nothing is decided here. The attempt of an incarnation is taken from etcd and from the attempts that
this operator has written to status itself, never from a pod alone (F23).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from hudi_contract import keys, naming, records
from hudi_contract.records import Stored
from hudi_contract.reports import AttemptReport
from hudi_contract.settle import Phase, SettleRecord
from hudi_contract.table_keys import Durations, Gate, InstantRecord, Lock, Registration, Ticket
from hudi_contract.words import FencingMode, Role
from hudi_operator.api.spec import LockSpec, SpecError, TableSpec, WriterSpec
from hudi_operator.api.tolerant import agent_of, known_writer
from hudi_operator.model import doubts
from hudi_operator.model.config import OperatorConfig
from hudi_operator.model.facts import EtcdFacts, Nodes, Observed, PodFacts
from hudi_operator.model.objects import ReadWriter
from hudi_operator.model.status import AttemptEntry, attempt_entries, in_order
from hudi_operator.plan.core.ownership import labelled

JsonDict = dict[str, Any]
LONGEST_DRAIN_SECONDS = 600.0
"""The maximum that a HudiTable may specify."""


@dataclass(frozen=True)
class Incarnation:
    """One JVM start that is known in etcd. Unknown strings are empty or None."""

    inc: str
    attempt: str
    role: str
    namespace: str
    pod: str
    pod_uid: str
    node: str
    boot_id: str
    app_id: str
    registration: Stored | None
    alive: Stored | None
    lock: Stored | None
    """The table's lock, if this incarnation owns it."""
    instants: tuple[str, ...]
    """Instants recorded for it."""
    claimed: tuple[str, ...]
    """Service instants of other incarnations that it has claimed."""
    queued: bool
    fenced: bool
    record: Stored | None
    """Its settle record."""
    lock_unknown: bool = False
    """The lock is held, and its owner cannot be read."""

    @property
    def phase(self) -> Phase | None:
        """Phase of settling; None when it is not being settled."""
        return None if self.record is None else self.settling.phase

    @cached_property
    def settling(self) -> SettleRecord:
        """Its settle record; an empty one when there is none, or it is unreadable."""
        return records.read(self.record, SettleRecord)

    @property
    def label(self) -> str:
        """Name of this incarnation for people."""
        return self.attempt or f"incarnation {self.inc}"

    @property
    def named(self) -> bool:
        """True when a key other than its settle record and fence names it."""
        return bool(self.registration or self.lock or self.instants or self.queued)

    @property
    def unlocked(self) -> bool:
        """True when it can never hold the lock again and does not hold it now (I1, I2)."""
        return self.phase is not None and self.phase >= Phase.Unlocked and self.lock is None

    @property
    def out_of_the_way(self) -> bool:
        """True when its successor may start (F5): fenced and not owner of the lock."""
        return (self.fenced or self.phase is not None) and self.lock is None and not self.lock_unknown

    @property
    def settled(self) -> bool:
        """True when its settling is finished."""
        return self.phase is Phase.Settled and not (self.registration or self.lock or self.instants)

    @property
    def is_agent(self) -> bool:
        """Role agent."""
        return self.role == Role.AGENT


@dataclass(frozen=True)
class Attempt:
    """One attempt of a HudiWriter: its entry in status, and its live objects."""

    writer: WriterSpec
    """The spec; if it is unreadable, its known parts, from which nothing is started."""
    number: int
    entry: AttemptEntry
    pod: PodFacts | None
    incs: tuple[Incarnation, ...]
    admitted: bool

    @property
    def id(self) -> str:
        """Attempt as etcd knows it."""
        return self.writer.attempt_id(self.number)

    @property
    def ended(self) -> bool:
        """True when its outcome is in status."""
        return bool(self.entry.class_)

    @property
    def pod_uid(self) -> str:
        """Uid of its pod, from status or the live pod; empty when no pod was ever seen."""
        return self.entry.pod_uid or (self.pod.uid if self.pod else "")


@dataclass(frozen=True)
class WriterView:
    """One HudiWriter.

    ``spec`` is None when it is unreadable, and ``error`` then has the reason; its attempts are
    known all the same (F433).
    """

    obj: JsonDict
    spec: WriterSpec | None
    error: str
    status: JsonDict
    attempts: tuple[Attempt, ...] = ()

    @property
    def name(self) -> str:
        """metadata.name."""
        return str(self.obj["metadata"]["name"])

    @property
    def last(self) -> Attempt | None:
        """Newest attempt; None before the first."""
        return self.attempts[-1] if self.attempts else None

    @property
    def active(self) -> Attempt | None:
        """The attempt that has not ended; None when there is none."""
        return self.last if self.last is not None and not self.last.ended else None

    @property
    def unfinished(self) -> tuple[Incarnation, ...]:
        """Incarnations of all its attempts that may still hold the lock."""
        return tuple(i for a in self.attempts for i in a.incs if not i.unlocked and not i.settled)


@dataclass(frozen=True)
class View:
    """One table with everything that belongs to it; ``etcd`` is always readable here."""

    observed: Observed
    config: OperatorConfig
    table: TableSpec
    etcd: EtcdFacts
    status: JsonDict
    writers: tuple[WriterView, ...]
    incs: tuple[Incarnation, ...]
    agent: str
    agent_pods: tuple[PodFacts, ...]
    pods_by_uid: Mapping[str, PodFacts] = field(default_factory=dict)
    unreadable: str = ""
    """Field and reason of a spec that is not fully readable: ``table`` can then only be used for
    fencing and settling (F69).
    """

    @property
    def now_ms(self) -> int:
        """Wall clock, in Unix milliseconds."""
        return self.observed.now_ms

    @property
    def earliest_ms(self) -> int:
        """The earlier one of the operator's clock and the API server's, where that is known."""
        return self.observed.earliest_ms

    @property
    def latest_ms(self) -> int:
        """The later one of both."""
        return self.observed.latest_ms

    @property
    def nodes(self) -> Nodes:
        """Nodes by name, as far as they were asked for."""
        return self.observed.nodes

    @cached_property
    def gate(self) -> Gate:
        """The gate; one without a state when there is none, or it is unreadable."""
        return records.read(self.etcd.gate, Gate)

    @property
    def mode(self) -> str:
        """Fencing mode in force: the gate's, because attempts run under it.

        The spec's while there is no gate (F8).
        """
        if doubts.gate_unreadable(self.etcd):
            return FencingMode.POD_TERMINATION
        return self.gate.mode or self.table.fencing.mode

    @property
    def drain_seconds(self) -> float:
        """Drain in force: the longer of the gate's and the spec's.

        The maximum when neither is readable.
        """
        stored = float((self.gate.lock or Durations()).drain_seconds or 0)
        if doubts.gate_unreadable(self.etcd) or (self.unreadable and not stored):
            return LONGEST_DRAIN_SECONDS
        return max(stored, float(self.table.fencing.drain_seconds))

    @property
    def stopping(self) -> bool:
        """True when the table's own state requires running attempts to stop."""
        return self.table.suspend or self.table.ref.deleting or self.observed.namespace_terminating

    def timer(self, name: str) -> float | None:
        """Age of a timer in seconds; None when it does not run."""
        return self.observed.timers.get(name)

    def elapsed(self, name: str, seconds: float) -> bool:
        """True when a timer runs and is at least this old."""
        age = self.timer(name)
        return age is not None and age >= seconds

    def executors(self, driver_pod: str) -> tuple[PodFacts, ...]:
        """Executors of a driver or an agent.

        Executors without our labels are found by their owner (F26, ``ownership``).
        """
        return tuple(self._executors.get(driver_pod, ()))

    @cached_property
    def _executors(self) -> Mapping[str, list[PodFacts]]:
        """By driver or agent, looked up once: every writer of a table asks for its own."""
        found: dict[str, list[PodFacts]] = {}
        for pod in self.observed.pods:
            if pod.labels.get(naming.LABEL_ROLE) == naming.ROLE_EXECUTOR:
                found.setdefault(pod.labels.get(naming.LABEL_DRIVER, ""), []).append(pod)
        return found

    @cached_property
    def _named_attempts(self) -> Mapping[str, set[str]]:
        """Every attempt that a key names, by its name without its number (F439)."""
        reports = (keys.reporting_attempt(kind) for kind in self.etcd.reports)
        found: dict[str, set[str]] = {}
        for attempt in (*self.etcd.admits, *reports, *(inc.attempt for inc in self.incs)):
            found.setdefault(attempt.rpartition("-")[0], set()).add(attempt)
        return found

    def numbers_in_etcd(self, writer: WriterSpec) -> Mapping[int, str]:
        """Attempts of a writer that any key in etcd names, by their number."""
        named = self._named_attempts.get(writer.attempt_id(0).rpartition("-")[0], set())
        return {number: attempt for attempt in named if (number := writer.number_of(attempt))}


def build_view(observed: Observed, config: OperatorConfig) -> View:
    """Build the view of an observation.

    Raises SpecError when the table cannot be identified, ValueError without table or etcd.
    """
    if observed.table is None or observed.etcd is None:
        raise ValueError("a view needs the HudiTable and etcd")
    observed = labelled(observed)
    obj, etcd = observed.table or {}, observed.etcd
    assert etcd is not None  # noqa: S101 - checked above
    found, unreadable = observed.objects.table_spec
    if found is None:
        raise SpecError(unreadable)
    table = replace(found, lock=_stored_lock(found.lock, etcd)) if unreadable else found
    specs = observed.objects.writer_specs
    entries = [attempt_entries(obj.get("status") or {}) for obj, _, _ in specs]
    owners = _attempts_of(etcd, specs, entries)
    once = _Once(etcd, observed, specs, entries)
    incs = tuple(_incarnation(inc, etcd, once, owners) for inc in _names(etcd))
    once.group(incs)
    agent = observed.agent or agent_of(obj, table, unreadable, config.spark_image)
    return View(
        observed=observed,
        config=config,
        table=table,
        etcd=etcd,
        status=(observed.table or {}).get("status") or {},
        writers=tuple(
            _writer_view(obj, spec, error, known, once)
            for (obj, spec, error), known in zip(specs, entries, strict=True)
        ),
        incs=incs,
        agent=agent,
        agent_pods=tuple(p for p in _of_role(observed, naming.ROLE_AGENT) if p.labels[naming.LABEL_AGENT] == agent),
        pods_by_uid={p.uid: p for p in observed.pods},
        unreadable=unreadable,
    )


def _stored_lock(said: LockSpec, etcd: EtcdFacts) -> LockSpec:
    """Durations of a table whose spec is unreadable: the gate's, because writers run under them."""
    skew = (records.read(etcd.gate, Gate).lock or Durations()).max_clock_skew_seconds
    return replace(said, max_clock_skew_seconds=skew) if skew is not None else said


def _names(etcd: EtcdFacts) -> list[str]:
    """Every incarnation that any key names (F15).

    Registrations, lock, instants, tickets, and settle records.
    """
    found = set(etcd.writers) | set(etcd.settles)
    if etcd.lock is not None:
        found.add(etcd.lock.read(Lock).inc)
    found.update(i.read(InstantRecord).inc for i in etcd.instants.values())
    found.update(ticket_owner(name, ticket) for name, ticket in etcd.queue.items())
    return sorted(found - {""})


def ticket_owner(name: str, ticket: Stored) -> str:
    """Incarnation of a ticket ``<inc>-<nonce>``."""
    return ticket.read(Ticket).inc or records.ticket_owner(name)


class _Once:
    """Lookups for each incarnation and each attempt, grouped once (F439)."""

    def __init__(
        self,
        etcd: EtcdFacts,
        observed: Observed,
        writers: Sequence[ReadWriter],
        entries: Sequence[tuple[AttemptEntry, ...]],
    ) -> None:
        self.etcd = etcd
        self.uids: dict[tuple[str, str], str] = {}
        """Uid of an attempt's pod by namespace and name, for incarnations of which etcd has none:
        from status, else the live pod's (F23).
        """
        for (obj, _, _), known in zip(writers, entries, strict=True):
            for entry in known:
                if entry.pod_uid:
                    self.uids.setdefault((str(obj["metadata"].get("namespace")), entry.pod), entry.pod_uid)
        self.pods: dict[str, PodFacts] = {}
        self.drivers: dict[tuple[str, str], PodFacts] = {}
        for pod in observed.pods:
            self.pods.setdefault(pod.uid, pod)
            if pod.labels[naming.LABEL_ROLE] == naming.ROLE_DRIVER:
                self.drivers.setdefault((pod.namespace, pod.name), pod)
        for pod in _of_role(observed, naming.ROLE_DRIVER, naming.ROLE_AGENT):
            if pod.name:
                self.uids.setdefault((pod.namespace, pod.name), pod.uid)
        self.instants: dict[str, list[str]] = {}
        self.claimed: dict[str, list[str]] = {}
        for time, stored in sorted(etcd.instants.items()):
            record = stored.read(InstantRecord)
            self.instants.setdefault(record.inc, []).append(time)
            if record.claimed_by != record.inc:
                self.claimed.setdefault(record.claimed_by, []).append(time)
        self.queued = {ticket_owner(name, ticket) for name, ticket in etcd.queue.items()}
        self.of_attempt: dict[str, list[Incarnation]] = {}

    def group(self, incs: Iterable[Incarnation]) -> None:
        """Incarnations by attempt."""
        for inc in incs:
            self.of_attempt.setdefault(inc.attempt, []).append(inc)


def _attempts_of(
    etcd: EtcdFacts, writers: Iterable[ReadWriter], entries: Iterable[tuple[AttemptEntry, ...]]
) -> dict[str, str]:
    """Attempt by incarnation, as far as it is known.

    Records in etcd take precedence over status.
    """
    owners: dict[str, str] = {}
    for (obj, spec, _), listed in zip(writers, entries, strict=True):
        known = spec or known_writer(obj)
        for entry in listed:
            if known is not None and entry.incarnation and entry.number:
                owners[entry.incarnation] = known.attempt_id(entry.number)
    for kind, report in etcd.reports.items():
        attempt, inc = keys.reporting_attempt(kind), report.read(AttemptReport).inc
        if attempt and inc and not naming.is_agent_pod(naming.split_attempt(attempt)[1]):  # agents report on none
            owners[inc] = attempt
    lock = records.read(etcd.lock, Lock)
    if lock.attempt:
        owners[lock.inc] = lock.attempt
    for stored in (etcd.settles, etcd.writers):
        owners.update({inc: attempt for inc, s in stored.items() if (attempt := s.read(Registration).attempt)})
    return owners


def _incarnation(inc: str, etcd: EtcdFacts, once: _Once, owners: Mapping[str, str]) -> Incarnation:
    registration, record = etcd.writers.get(inc), etcd.settles.get(inc)
    lock = etcd.lock if etcd.lock is not None and etcd.lock.read(Lock).inc == inc else None
    # Only the owner of a lock is checked; its other fields are claims of its pod (F538).
    sources = [source.read(Registration) for source in (registration, record) if source is not None]
    if lock is not None:
        sources.append(Registration(pod_uid=lock.read(Lock).pod_uid))

    def told(field: str) -> str:
        return next((word for source in sources if (word := str(getattr(source, field)))), "")

    attempt = owners.get(inc, "")
    namespace, pod = naming.split_attempt(attempt) if attempt else ("", "")
    # The uid that etcd has of it comes first: an attempt's number, and with it the name of its pod,
    # may have been given again by an API server that was set back (F612).
    uid, node = told("pod_uid") or once.uids.get((namespace, pod), ""), told("node")
    live = once.pods.get(uid) if uid else None
    role = told("role") or (Role.AGENT if naming.is_agent_pod(pod) else Role.WRITER)
    return Incarnation(
        inc=inc,
        attempt=attempt,
        role=role,
        namespace=namespace or told("namespace"),
        pod=pod or told("pod"),
        pod_uid=uid,
        node=(live.node if live else "") or node,
        boot_id=told("boot_id"),
        app_id=told("app_id"),
        registration=registration,
        alive=etcd.alive.get(inc),
        lock=lock,
        instants=tuple(once.instants.get(inc, ())),
        claimed=tuple(once.claimed.get(inc, ())),
        queued=inc in once.queued,
        fenced=inc in etcd.fences,
        record=record,
        lock_unknown=doubts.owner_unknown(etcd),
    )


def _of_role(observed: Observed, *roles: str) -> list[PodFacts]:
    return [p for p in observed.pods if p.labels[naming.LABEL_ROLE] in roles]


def _writer_view(
    obj: JsonDict, spec: WriterSpec | None, error: str, entries: tuple[AttemptEntry, ...], once: _Once
) -> WriterView:
    status = obj.get("status") or {}
    known = spec or known_writer(obj)
    if known is None:
        return WriterView(obj, spec, error, status)
    try:
        attempts = _attempts(known, entries, once)
    except (KeyError, TypeError, ValueError, AttributeError) as unread:
        return WriterView(obj, None, f"status.attempts cannot be read: {type(unread).__name__}: {unread}", status)
    return WriterView(obj, spec, error, status, attempts)


def _attempts(spec: WriterSpec, entries: tuple[AttemptEntry, ...], once: _Once) -> tuple[Attempt, ...]:
    attempts = []
    for entry in in_order(entries):
        number = entry.number
        name, attempt = spec.driver_pod(number), spec.attempt_id(number)
        pod = once.drivers.get((spec.ref.namespace, name))
        if pod is not None and entry.pod_uid and pod.uid != entry.pod_uid:
            pod = None
        mine = tuple(once.of_attempt.get(attempt, ()))
        attempts.append(Attempt(spec, number, entry, pod, mine, attempt in once.etcd.admits))
    return tuple(attempts)

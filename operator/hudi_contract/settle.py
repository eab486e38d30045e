"""Settle records: they make settling a dead incarnation resumable (I6).

A settle record is the write-ahead record in etcd.

A record only moves forward through its phases, except that a Swept record without an outcome for an
instant goes back to RollingBack. It is changed by compare-and-set on its mod revision alone, by the
operator and (RollingBack → Swept) by the agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import ClassVar, Self

from hudi_contract.shape import LEFT_OUT, Count, Ms, ObjectName, Record
from hudi_contract.words import Outcome


class Phase(IntEnum):
    """Phases of settling in their order (protocol.md, Settling)."""

    Fenced = 0
    Terminating = 1
    Draining = 2
    Unlocked = 3
    RollingBack = 4
    Swept = 5
    Settled = 6


class Reason(StrEnum):
    """Why an incarnation is settled."""

    LEASE_GONE = "LeaseGone"
    POD_TERMINATED = "PodTerminated"
    POD_GONE = "PodGone"
    HELD_TOO_LONG = "HeldTooLong"
    DELETED = "Deleted"
    SUSPENDED = "Suspended"
    ENDED_FOR_CHANGE = "EndedForChange"
    """The table's gate is closed for a change, and an attempt that was asked to end for
    it did not.
    """
    OVERDUE = "DeadlineExceeded"
    """Its attempt was asked to stop because of a deadline, and did not."""
    REASSIGNED = "Reassigned"
    """The table has another agent, and this one has not left it."""
    CLOCK_SKEW = "ClockSkew"
    ADOPTED = "Adopted"
    """A synthetic incarnation: instants that a table's writers left before its adoption."""


FENCE_ALONE = "Fenced"
"""Reason of a record that is recreated for a fence without one; no incarnation is fenced
for this reason.
"""


@dataclass(frozen=True, kw_only=True)
class Proof(Record):
    """Why a pod counts as dead."""

    REQUIRED: ClassVar[frozenset[str]] = frozenset({"kind"})

    kind: str = ""
    """A value of `ProofKind`; an unknown value is still a proof, but not a certain one."""
    detail: str = ""
    at_ms: Ms = 0


@dataclass(frozen=True, kw_only=True)
class NamedPod(Record):
    """A pod that may run code of the incarnation.

    Once listed here, it needs a proof even when its object vanishes.
    """

    name: str = ""
    node: ObjectName = ""
    evidence: bool = False
    """It had our finalizer whenever it was seen: once false, it stays false (F26)."""


@dataclass(frozen=True, kw_only=True)
class SettledInstant(Record):
    """Outcome of one instant of the incarnation."""

    action: str = ""
    outcome: Outcome | None = None
    """None: nothing yet."""
    failures: Count = 0
    error: str = field(default="", metadata=LEFT_OUT)
    """Why the last try failed, or what it waits for."""


@dataclass(frozen=True, kw_only=True)
class SettleRecord(Record):
    """Progress of the settling of a fenced incarnation.

    The operator moves it from Fenced to RollingBack and from Swept to Settled; the agent fills
    `instants` and moves it from RollingBack to Swept.
    """

    REQUIRED: ClassVar[frozenset[str]] = frozenset({"phase"})

    inc: str = ""
    attempt: str = ""
    role: str = ""
    namespace: str = ""
    pod: str = ""
    pod_uid: str = ""
    boot_id: str = ""
    node: ObjectName = ""
    app_id: str = ""
    reason: str = ""
    """A value of `Reason`."""
    phase: Phase = Phase.Fenced
    """A record that cannot be read counts as Fenced, from where every step is repeated (I6)."""
    proofs: Mapping[str, Proof] = field(default_factory=dict)
    """By uid of the pod."""
    pods: Mapping[str, NamedPod] = field(default_factory=dict)
    """Every pod that was ever listed for it and has no proof yet, by uid."""
    instants: Mapping[str, SettledInstant] = field(default_factory=dict)
    abandoned: bool = False
    """One of its instants was abandoned by its owner earlier."""
    times: Mapping[str, Ms] = field(default_factory=dict)
    """Time at which each phase was reached."""

    @classmethod
    def of(cls, *, inc: str, reason: str, now_ms: int, **identity: str) -> Self:
        """Record of an incarnation that is about to be fenced.

        ``identity``: attempt, role, namespace, pod, pod_uid, boot_id, node, app_id.
        """
        return cls(inc=inc, reason=reason, times={Phase.Fenced.name: now_ms}, **identity)  # type: ignore[arg-type]

    def moved(self, phase: Phase, *, now_ms: int) -> Self:
        """The record in another phase."""
        return self.but(phase=phase, times={**self.times, phase.name: now_ms})

    def with_pods(self, pods: Mapping[str, NamedPod]) -> Self:
        """The record with pods that may run code of this incarnation, by uid.

        Once false, ``evidence`` stays false (F26).
        """
        known = dict(self.pods)
        for uid, pod in pods.items():
            before = known.get(uid)
            evidence = pod.evidence and (before is None or before.evidence)
            known[uid] = NamedPod(
                name=pod.name, node=pod.node or (before.node if before is not None else ""), evidence=evidence
            )
        return self.but(pods=known)

    def with_proofs(self, proofs: Mapping[str, Proof]) -> Self:
        """The record with proofs added, by pod uid; an existing proof is kept.

        A pod whose death is recorded is named by its proof alone: a driver may leave hundreds of
        executors' objects (F616).
        """
        if not proofs:
            return self
        added = {**proofs, **self.proofs}
        return self.but(proofs=added, pods={uid: pod for uid, pod in self.pods.items() if uid not in added})

    @property
    def proven(self) -> frozenset[str]:
        """Uids of pods whose death is recorded."""
        return frozenset(self.proofs)

    def without_outcome(self, instants: Iterable[str]) -> tuple[str, ...]:
        """The ``instants`` for which the agent has recorded no outcome.

        They must not be forgotten (I4).
        """
        return tuple(t for t in instants if (found := self.instants.get(t)) is None or found.outcome is None)

    @property
    def failures(self) -> tuple[int, str]:
        """The highest number of failed rollbacks of one instant, and that instant's error."""
        worst, error = 0, ""
        for entry in self.instants.values():
            if entry.failures > worst:
                worst, error = entry.failures, entry.error
        return worst, error

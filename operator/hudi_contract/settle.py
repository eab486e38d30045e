"""Settle records: the write-ahead record in etcd that makes settling a dead incarnation resumable (I6).

A record only moves forward through its phases, except that a Swept record without an outcome for an instant goes back to
RollingBack. It is changed by compare-and-set on its mod revision alone, by the operator and (RollingBack → Swept) by the agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Any

JsonDict = dict[str, Any]


class Phase(IntEnum):
    """Phases of settling in their order (protocol.md, Settling)."""

    Fenced = 0
    Terminating = 1
    Draining = 2
    Unlocked = 3
    RollingBack = 4
    Swept = 5
    Settled = 6


class Reason:
    """Why an incarnation is settled."""

    LEASE_GONE = "LeaseGone"
    POD_TERMINATED = "PodTerminated"
    POD_GONE = "PodGone"
    HELD_TOO_LONG = "HeldTooLong"
    DELETED = "Deleted"
    SUSPENDED = "Suspended"
    ENDED_FOR_CHANGE = "EndedForChange"
    """The table's gate is closed for a change, and what was asked to end for it has not."""
    CLOCK_SKEW = "ClockSkew"
    ADOPTED = "Adopted"
    """No incarnation of ours: what the writers of a table before its adoption have left."""


def phase_of(record: Mapping[str, Any]) -> Phase:
    """Phase of a record; an unreadable one counts as Fenced, from where every step is repeated (I6)."""
    try:
        return Phase[str(record.get("phase"))]
    except KeyError:
        return Phase.Fenced


def new_record(
    *,
    inc: str,
    attempt: str,
    role: str,
    namespace: str,
    pod: str,
    pod_uid: str,
    boot_id: str,
    node: str,
    app_id: str,
    reason: str,
    now_ms: int,
) -> JsonDict:
    """Record of an incarnation that is about to be fenced."""
    return {
        "inc": inc,
        "attempt": attempt,
        "role": role,
        "namespace": namespace,
        "pod": pod,
        "podUID": pod_uid,
        "bootId": boot_id,
        "node": node,
        "appId": app_id,
        "reason": reason,
        "phase": Phase.Fenced.name,
        "proofs": {},
        "pods": {},
        "instants": {},
        "abandoned": False,
        "times": {Phase.Fenced.name: now_ms},
    }


def moved(record: Mapping[str, Any], phase: Phase, *, now_ms: int) -> JsonDict:
    """The record in another phase."""
    return {**record, "phase": phase.name, "times": {**(record.get("times") or {}), phase.name: now_ms}}


def with_pods(record: Mapping[str, Any], pods: Mapping[str, JsonDict]) -> JsonDict:
    """The record with pods that may run code of this incarnation, by uid: ``{"name", "node", "evidence": had our finalizer}``.

    Once named, a pod needs a proof even when its object vanishes; ``evidence`` false once is false for ever (F26).
    """
    known: dict[str, JsonDict] = {uid: dict(pod) for uid, pod in (record.get("pods") or {}).items()}
    for uid, pod in pods.items():
        before = known.get(uid)
        evidence = bool(pod.get("evidence")) and (before is None or bool(before.get("evidence")))
        known[uid] = {"name": pod.get("name", ""), "node": pod.get("node") or (before or {}).get("node", ""), "evidence": evidence}
    return {**record, "pods": known}


def with_proofs(record: Mapping[str, Any], proofs: Mapping[str, JsonDict]) -> JsonDict:
    """The record with proofs added, by pod uid; a proof that stands is kept."""
    return {**record, "proofs": {**proofs, **(record.get("proofs") or {})}}


def proven(record: Mapping[str, Any]) -> frozenset[str]:
    """Uids of pods whose death is recorded."""
    return frozenset((record.get("proofs") or {}).keys())


def named_pods(record: Mapping[str, Any]) -> Mapping[str, JsonDict]:
    """Pods that the record names, by uid."""
    pods: Mapping[str, JsonDict] = record.get("pods") or {}
    return pods


def without_outcome(record: Mapping[str, Any], instants: Iterable[str]) -> tuple[str, ...]:
    """Those of ``instants`` for which the agent has recorded no outcome (I4: they may not be forgotten)."""
    outcomes = record.get("instants") or {}
    return tuple(t for t in instants if not (outcomes.get(t) or {}).get("outcome"))


def failures(record: Mapping[str, Any]) -> tuple[int, str]:
    """Most failures of one instant's rollback, and the error of that one."""
    worst, error = 0, ""
    for entry in (record.get("instants") or {}).values():
        count = int(entry.get("failures") or 0)
        if count > worst:
            worst, error = count, str(entry.get("error") or "")
    return worst, error

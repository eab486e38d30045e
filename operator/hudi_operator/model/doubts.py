"""Values in a table's keys in etcd that are not trusted.

Decisions must wait because of them (F46).

:mod:`hudi_contract.records` reads one value at a time; this module considers a look as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hudi_contract.keys import Kind
from hudi_contract.records import Stored
from hudi_contract.requests import every
from hudi_contract.table_keys import Registration
from hudi_contract.words import RequestKind
from hudi_operator.model.facts import EtcdFacts

_DECIDING = (every(RequestKind.RESTORE), every(RequestKind.SAVEPOINT), RequestKind.METADATA, RequestKind.BOOTSTRAP)


@dataclass(frozen=True)
class Unreadable:
    """A key, and why its value, or a part of it, is not trusted."""

    key: str
    reason: str


def _all(etcd: EtcdFacts) -> Iterator[tuple[str, Stored]]:
    for name, one in (
        (Kind.GATE, etcd.gate),
        (Kind.LOCK, etcd.lock),
        (Kind.CLOCK, etcd.clock),
        ("assignment", etcd.assignment),
    ):
        if one is not None:
            yield name, one
    groups = {
        Kind.ADMIT: etcd.admits,
        Kind.WRITER: etcd.writers,
        Kind.ALIVE: etcd.alive,
        Kind.QUEUE: etcd.queue,
        Kind.INSTANT: etcd.instants,
        Kind.FENCE: etcd.fences,
        Kind.SETTLE: etcd.settles,
        Kind.REQUEST: etcd.requests,
        Kind.SEEN: etcd.seen,
        Kind.REPORT: etcd.reports,
        Kind.DONE: etcd.done,
    }
    for kind, group in groups.items():
        for name, one in group.items():
            yield kind.of(name), one


def unreadable(etcd: EtcdFacts) -> tuple[Unreadable, ...]:
    """Every key with a value that is not fully trusted, sorted by name."""
    return tuple(
        Unreadable(key, "; ".join(one.doubts))
        for key, one in sorted(_all(etcd), key=lambda pair: pair[0])
        if one.doubts
    )


def gate_unreadable(etcd: EtcdFacts) -> str:
    """Why the gate is not trusted; empty when it is, or when there is none."""
    return etcd.gate.unreadable if etcd.gate is not None else ""


def owner_unknown(etcd: EtcdFacts) -> bool:
    """True when the lock is held and its owner is unreadable: any incarnation may be the owner."""
    return etcd.lock is not None and bool(etcd.lock.unreadable)


def unplaced(etcd: EtcdFacts) -> bool:
    """True when a registration or settle record does not name its pods.

    Any pod's evidence may be needed for it.
    """
    nowhere = any(
        not one.read(Registration).pod_uid
        for inc, one in etcd.writers.items()
        if one.doubts and inc not in etcd.settles
    )
    return nowhere or any(one.unreadable for one in etcd.settles.values())


def undecided(etcd: EtcdFacts) -> str:
    """First unreadable outcome on which the gate or a request depends; empty when there is none."""
    return next(
        (
            Kind.DONE.of(name)
            for name, one in sorted(etcd.done.items())
            if one.unreadable and name.startswith(_DECIDING)
        ),
        "",
    )

"""The rules of the protocol as switches, and the bounds of one search.

`Rules()` is the protocol. A variant switches one rule off (or drops one compare of a transaction)
and must fail: a model that cannot fail proves nothing. `Configuration` says who takes part and
which faults may happen, so that each search stays small.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Rules:
    """Each field is one sentence of docs/design/protocol.md.

    False means that the sentence is not obeyed.
    """

    lock_without_lease: bool = True
    """I1: the lock key has no lease."""
    renew_moves_alive: bool = True
    """I1: an acquire with unknown outcome is ended by putting `alive` again, never by
    reading back alone.
    """
    resolve_before_exit: bool = True
    """I1, I6: a clean exit first resolves every unknown outcome."""
    suspects_from_lock: bool = True
    """I6: suspects are also taken from `lock` and `instant/*`, not only from `writer/*`."""
    collects_settled: bool = True
    """I2: record and fence are collected only when the incarnation is settled: it can register,
    renew and acquire no more.
    """
    collect_waits: bool = True
    """I2: nothing is collected while a request of it, or about it, may still be on the wire."""
    admit_withdrawn: bool = True
    """I6: the admission of an attempt that died before registering is deleted before its pod's
    finalizer is dropped.
    """
    release_waits: bool = True
    """I1, I3: no release, and no Abandoned, while a publication is unknown (F1)."""
    record_ahead: bool = True
    """I6, I7: `instant/<t>` is written before the requested file (F12)."""
    clock_ahead: bool = True
    """I10: `clock` is written before the requested and the completed file, and a time not past it
    is refused (F6).
    """
    executors_in_proof: bool = True
    """I5, I11: the proof covers every executor."""
    live_proof: bool = True
    """I11: only a live, terminal pod status is a proof; "object gone" (force delete) is none."""
    drain: bool = True
    """I1, I3: D after the proof, before anything is unlocked or rolled back."""
    drain_always: bool = True
    """I6: the drain is kept for those too who do not own the lock (F17)."""
    proof_before_rollback: bool = True
    """I7: a rollback starts after Unlocked; False: as soon as the lease is gone, the whole rollback
    under the lock.
    """
    chosen_by_record: bool = True
    """I7: only recorded instants of settled owners and Abandoned ones are rolled back; False:
    Hudi's clean() chooses by heartbeat (F2).
    """
    fresh_look: bool = True
    """I4, I11: completed or not is seen on a timeline listed under the lock; False: on the timeline
    loaded before.
    """
    failed_look_keeps: bool = True
    """I4, I11: a failed listing means keep; False: it is taken for an empty one."""
    finish_pending_rollback: bool = True
    """I6: "gone" counts only when no pending rollback names the instant (F18)."""
    beats_removed: bool = True
    """I6: left-over heartbeat files are removed before a rollback is executed again (F9)."""
    sweep_metadata: bool = True
    """I5: the rollback and its sweep cover the metadata table (F11)."""
    sweep_after_lost: bool = True
    """I5: the sweep of an Abandoned instant is repeated after the lost executors are proven
    terminated, no archival before (F4).
    """
    claims: bool = True
    """I12: service instants and rollbacks are claimed, and taken over only from a
    settled owner (F3).
    """
    conflict_check: bool = True
    """I9: overlapping commits that completed since the start are looked for under the lock."""
    insert_check: bool = True
    """I13: a commit compares the keys that it inserts with those of commits that have completed
    since it was requested.
    """
    inserts_compared_under_lock: bool = True
    """I13: under the lock that comparison covers what completed after the one outside; False: the
    one outside is enough.
    """
    next_attempt_waits: bool = True
    """I9: the next attempt reads its progress when the old one does not own the lock (F5)."""
    next_attempt_after_fence: bool = True
    """I9: the next attempt starts when the old one is fenced; False: when its lease is gone."""
    progress_check: bool = True
    """I9: the commit compares its progress base with the timeline under the lock (F5)."""
    gate_waits: bool = True
    """I1: mode changes only when no `writer/*` is left (F8)."""
    revocation_verified: bool = True
    """I11: credentials count as revoked when the store has refused a request; False: as soon as the
    broker says so.
    """
    own_credentials_asked: bool = True
    """I11: the refused request carries the very credentials of the fenced writer."""
    identity_cache_waited: bool = True
    """I11: the store is asked for at least as long as any of its servers may still know the
    credentials; False: until one server has refused.
    """
    no_new_credentials: bool = True
    """I11: the broker gives an attempt whose credentials were revoked no others, whenever the
    request for them was sent.
    """
    without: frozenset[tuple[str, str]] = field(default=frozenset())
    """Compares left out: (transaction, compare)."""


@dataclass(frozen=True)
class Configuration:
    """Participants, and the faults that may happen."""

    name: str
    covers: str
    """One sentence for the reader of the table."""
    roles: tuple[str, ...]
    """Per incarnation: "writer", "next" (a later attempt of writer 0), "twin" (a second JVM of
    writer 0's attempt), "agent", "plain".
    """
    names: tuple[str, ...]
    files: tuple[tuple[int, ...], ...] = ((0,),)
    """Alternatives of file-group sets per instant (bit 1: group A, bit 2: group B)."""
    keys: tuple[int, ...] = ()
    """Per instant: bit set of the record keys that it inserts, as its writer saw the table when the
    instant was requested; empty: keys are not modelled.
    """
    program: str = "commit"
    """Program of the writers: "lock" (lock cycles only), "commit"."""
    begun: bool = False
    """Writer 0 begins after its first lock cycle: its instant is recorded and requested."""
    late: frozenset[str] = frozenset()
    """Transactions that may be executed after their client gave up."""
    max_late: int = 1
    leases: frozenset[int] = frozenset()
    """Incarnations whose lease may run out."""
    deaths: frozenset[int] = frozenset()
    """Incarnations whose driver may die."""
    unknown: str = ""
    """PUTs that are independent on the wire: r, i, m, c."""
    hold_limit: frozenset[int] = frozenset()
    """Incarnations that may exceed maxHoldSeconds, or be fenced by a person, in good health."""
    max_acquires: int = 2
    renewals: int = 2
    """Leases that one JVM may take in its life."""
    abandon: bool = False
    lost_executors: bool = False
    failing_lists: bool = False
    archival: bool = False
    clock: int = 0
    """Ticks of the wall clock; 0: time is not modelled."""
    collects: bool = False
    """Settle records and fences are collected."""
    gate: bool = False
    """The mode is changed from LeaseOnly to PodTermination through the gate."""
    credentials: bool = False
    """The mode Credentials: writer 0 is on a node that is lost forever, its credentials are its
    own, and the store has two servers that remember identities.
    """
    foreign: bool = False
    """The last instant belongs to somebody outside the protocol: no record, never touched."""
    compaction: bool = False
    """The last instant is a pending compaction of the first agent."""
    symmetric: bool = False
    """Writers 0 and 1 are interchangeable."""
    reduced: bool = True
    """Urgent steps of settling first (`operator.urgent`)."""
    rules: Rules = Rules()

    def same_keys(self, j: int, k: int) -> bool:
        """Whether both instants insert a key."""
        return bool(self.keys) and bool(self.keys[j] & self.keys[k])

    @property
    def agents(self) -> tuple[int, ...]:
        """The numbers of the agents."""
        return tuple(i for i, role in enumerate(self.roles) if role == "agent")

    def same_rows(self, i: int, k: int) -> bool:
        """Whether both are incarnations of one HudiWriter: they carry the same source rows."""
        family = ("next", "twin")
        return (
            i != k
            and (i == 0 or self.roles[i] in family)
            and (k == 0 or self.roles[k] in family)
            and bool({self.roles[i], self.roles[k]} & set(family))
        )

    @property
    def extra(self) -> int:
        """The number of the instant that is no writer's: the foreign one or the compaction."""
        return len(self.roles) - len(self.agents) if self.foreign or self.compaction else -1

    def is_compaction(self, k: int) -> bool:
        """Whether instant `k` is the pending compaction."""
        return self.compaction and k == self.extra

    def owner(self, k: int) -> int:
        """The incarnation that owns instant `k`; -1: a foreign instant."""
        if k != self.extra:
            return k
        return -1 if self.foreign else self.agents[0]

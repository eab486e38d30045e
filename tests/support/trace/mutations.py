"""Mutations of a good trace: one event deleted, two events swapped, or one field altered.

The checker must reject nearly all of them.

`equivalent` explains the others: the mutated trace is another run that the protocol allows, or
differs in something that no trace shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tests.support.trace.events import Event, in_order
from tests.support.trace.rules import WITHOUT_EFFECT

OTHER_INC = "ffffffff-ffff-4fff-bfff-ffffffffffff"
EARLY, LATE = "20250101000000000", "20250101000000001"
NEXT_PHASE = {
    "Terminating": "Unlocked",
    "Draining": "RollingBack",
    "Unlocked": "Swept",
    "RollingBack": "Draining",
    "Swept": "Fenced",
}


@dataclass(frozen=True)
class Mutation:
    """A changed trace, and what was changed."""

    kind: str
    what: str
    events: tuple[Event, ...]
    first: Event
    second: Event | None = None


def mutations(trace: list[Event]) -> Iterator[Mutation]:
    """Every deletion, every swap of neighbours of different content, and every alteration
    of one field.
    """
    events = tuple(in_order(trace))
    seen: set[Event] = set()
    for n, e in enumerate(events):
        same = replace(e, rev=0, ts=0, where="")
        if e.action in WITHOUT_EFFECT or same in seen:
            # The queue, assignments, heartbeats, and a step that is written a second time: the
            # model knows nothing of them
            continue
        seen.add(same)
        before, after = events[:n], events[n + 1 :]
        yield Mutation("delete", e.action, before + after, e)
        m = next((j for j in range(n + 1, len(events)) if related(e, events[j])), 0)
        if m:
            a, b = events[m], e
            late, early = replace(b, rev=a.rev, token=_moved(b, a.rev)), replace(a, rev=b.rev, token=_moved(a, b.rev))
            yield Mutation(
                "swap", f"{e.action} and {a.action}", (*before, early, *events[n + 1 : m], late, *events[m + 1 :]), e, a
            )
        for name, changed in _altered(e):
            yield Mutation("alter", f"{name} of {e.action}", (*before, changed, *after), e)


def _moved(e: Event, rev: int) -> int:
    """The token of an acquire is its revision.

    A swap moves both, so that the swap alone is what is wrong.
    """
    return rev if e.action == "acquire" and e.ok else e.token


def _altered(e: Event) -> Iterator[tuple[str, Event]]:
    if e.rev:
        yield "ok", replace(e, ok=not e.ok)
    if e.role != "operator":
        yield "actor", replace(e, actor=OTHER_INC)
    if e.token:
        yield "token", replace(e, token=e.token - 1)
    if e.instant:
        yield "instant", replace(e, instant=EARLY)
    if e.action == "publish":
        yield "completion time", replace(e, detail=LATE)
    if e.action == "release" and e.detail:
        yield "completed instants", replace(e, detail=EARLY)
    if e.action == "settle-update" and e.detail in NEXT_PHASE:
        yield "phase", replace(e, detail=NEXT_PHASE[e.detail])
    if e.key and e.role == "operator" and e.key != "gate":
        yield (
            "key",
            replace(e, key=f"{e.key.partition('/')[0]}/{OTHER_INC}") if "/" in e.key else replace(e, detail=OTHER_INC),
        )


def related(a: Event, b: Event) -> bool:
    """Whether the order of two writes is part of the run: they are about one incarnation, one
    attempt, or both about the lock.

    To exchange unrelated ones gives the same run: what two parties do without knowing of each other
    has no order.
    """
    if not (a.rev and b.rev and a.ok and b.ok) or {a.action, b.action} & WITHOUT_EFFECT or _repeats(a, b):
        return False
    lock = {"acquire", "release", "unlock"}
    admitted = a.action == "admit" and b.action == "register" and a.key == f"admit/{b.attempt}"
    return (
        admitted
        or (a.action in lock and b.action in lock)
        or (a.subject == b.subject and not {"gate-put", "admit", "delete-admit"} & {a.action, b.action})
    )


def _repeats(a: Event, b: Event) -> bool:
    return replace(a, rev=0, ts=0, where="") == replace(b, rev=0, ts=0, where="")


def equivalent(m: Mutation) -> str:
    """Why a mutation may pass; empty: it must not."""
    actions = {m.first.action, m.second.action if m.second else m.first.action}
    if m.kind == "swap" and actions in ({"claim", "release"}, {"abandon", "release"}):
        return "neither a claim nor giving up an instant needs the lock"
    if m.kind == "swap":
        if "fence" in actions or "settle-update" in actions or "register" in actions:
            return "a fenced owner whose process still runs may end its lock cycle at any moment until it is dead"
        return ""
    if "keepalive" in actions:
        return "a heartbeat changes nothing that the trace shows"
    if _killed_after(m):
        return "the last step of a process that was killed before it logged it"
    if m.kind == "delete" and m.first.action == "unlock":
        return "the dead owner had released the lock, and was killed before it logged it"
    if m.first.action == "drain":
        return "the wait before a release is seen only by the answers that end it"
    if m.kind == "delete":
        return _UNSEEN.get(m.first.action, "")
    return _UNSEEN.get(m.first.action, "") if m.what.startswith(("ok", "actor", "instant", "key")) else ""


def _killed_after(m: Mutation) -> bool:
    """Whether the changed event is the last of an incarnation that was fenced, one that `unlogged`
    puts back.
    """
    actor = m.first.actor
    return (
        (m.kind == "delete" or m.what.startswith("ok"))
        and m.first.action in ("acquire", "release", "record-instant", "claim")
        and any(e.action == "fence" and e.ok and e.subject == actor for e in m.events)
        and not any(e.actor == actor and e.rev > m.first.rev for e in m.events)
    )


# Steps without a consequence in the rest of this trace: without them it is the log of another run
# that the protocol allows.
_UNSEEN = {
    "register": "an incarnation that registers and does nothing more",
    "gate-put": "the gate stays closed, and the log does not say whom a closed gate admits",
    "admit": "an admission that nobody used",
    "delete-admit": "the fence of its incarnation deletes the admission too",
    "record-instant": "a recorded instant that never got any further",
    "publish": "leave to publish that came to nothing: the file was seen to be absent",
    "abandon": "a writer may also die with the instant Pending",
    "claim": "nothing later says who executed it",
    "done": "the record of an Abandoned instant may also be removed by settling its owner",
    "settle-update": "a phase that was written twice",
    "clean-exit": "an agent that stays",
    "drained": "a publication that was seen to have failed",
}

"""Table services: a pending compaction has one executor at any time, the one that
claimed it (I12).
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.model import jvm
from tests.support.model.operator import rolling_back
from tests.support.model.rules import Configuration
from tests.support.model.state import Request, State
from tests.support.model.transactions import Step, call


def service(s: State, c: Configuration, i: int) -> Iterator[Step]:
    """Steps of agent `i` as executor of the pending compaction, the last instant."""
    k = c.extra
    y, pc, who = s.instants[k], s.incs[i].pc, c.names[i]
    if pc == "idle" and not y.completed and y.record == "P":
        yield from _take(s, c, i, k)
    elif pc == "service-clear":
        yield (
            f"{who} deletes what an earlier execution of the compaction wrote",
            s.instant(k, data=0).inc(i, pc="service-write"),
        )
    elif pc == "service-write":
        yield f"{who} writes the compacted files", s.instant(k, data=i + 1).inc(i, pc="service-ready")
    elif pc == "service-ready":
        yield from jvm.acquire(s, c, i, "service-held")
    elif pc == "service-held":
        if y.completed:
            yield f"{who} finds the compaction completed and stops", s.inc(i, pc="service-end")
        else:
            q = Request("publish", i, token=s.incs[i].nonce, instant=k)
            yield from call(
                s,
                c,
                q,
                f"{who} may publish the compaction and sends its completed file",
                lambda t: t.instant(k, wire="c", sender=i).inc(i, pc="service-sent"),
                otherwise=lambda t: t.inc(i, pc="service-end"),
            )
    elif pc == "service-sent" and y.wire == "-":
        yield f"{who} knows how its publication ended", s.inc(i, pc="service-end")
    elif pc == "service-end":
        yield from jvm.release(s, c, i, "idle", k=k, done=bool(y.completed))


def _take(s: State, c: Configuration, i: int, k: int) -> Iterator[Step]:
    """Claimed by compare-and-set; taken over only from itself or from a settled owner (F3)."""
    y, who = s.instants[k], c.names[i]
    if not c.rules.claims:
        yield f"{who} finds the compaction pending and executes it without a claim", s.inc(i, pc="service-clear")
    elif y.claim == i or rolling_back(s, y.claim):
        q = Request("claim", i, instant=k, seen=y.claim + 1)
        yield from call(s, c, q, f"{who} claims the compaction", lambda t: t.inc(i, pc="service-clear"))

"""Last steps of a killed process that are not in its log.

A process logs a step when it has etcd's answer. If it is killed in between, it has changed etcd's
keys and logged nothing: only what others find afterwards shows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.support.trace.events import Event, in_order


def unlogged(events: list[Event], wrong: Event) -> Iterator[tuple[Event, list[Event]]]:
    """For a step that is forbidden according to the logs: a step that a killed process may have
    done before it, and the trace with that step.

    Only what an incarnation that is fenced would have logged last.
    """
    fenced = {e.subject for e in events if e.action == "fence" and e.ok}
    last: dict[str, int] = {}
    token: dict[str, int] = {}
    for n, e in enumerate(events):
        if e.actor in fenced:
            last[e.actor] = n
            if e.action == "acquire" and e.ok:
                token[e.actor] = e.token
    before = events.index(wrong)
    for actor, n in last.items():
        if n < before:
            recorded = any(e.instant == wrong.instant and e.action == "record-instant" for e in events[:before])
            for lost in _steps(events[n], wrong, token.get(actor, 0), recorded=recorded):
                if lost.action == "acquire":
                    yield lost, in_order([*events, lost])
                else:
                    yield lost, [*events[: n + 1], lost, *events[n + 1 :]]


def _steps(last: Event, wrong: Event, token: int, *, recorded: bool) -> Iterator[Event]:
    """Steps of the actor of `last`, its last line, that `wrong` reports.

    `recorded`: another line says who recorded the instant of `wrong`.
    """
    step = replace(last, ok=True, rev=0, key="", instant="", token=token, nonce="", detail="", attempt="", outcome="")
    if wrong.outcome and not recorded:
        yield replace(step, action="record-instant", instant=wrong.instant)
    if wrong.outcome and recorded and last.role == "agent":
        yield replace(step, action="claim", instant=wrong.instant, token=0)
    if wrong.action == "unlock" and wrong.detail == last.actor and wrong.token and last.action != "acquire":
        yield replace(step, action="acquire", rev=wrong.token, token=wrong.token)
    if wrong.action == "acquire" and token:
        yield replace(step, action="release")

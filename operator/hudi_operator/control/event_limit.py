"""Limit on the number of Kubernetes events of a table (F250).

Each event is an object in the API server, kept for an hour or longer, and people read the first of
many. An event of one name is sent once while the API server keeps it. Beyond that each table has
:data:`AT_ONCE` events and one more every :data:`EVERY_SECONDS`, separately for the HudiTable and
its HudiWriters, and for warnings and others, so that frequent events do not hide rare ones.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from hudi_contract import naming
from hudi_operator.plan.core import actions as act

AT_ONCE = 20
EVERY_SECONDS = 300.0
KEPT_SECONDS = 3600.0
"""The API server's default: then an event of that name can be made again (F251)."""
LEFT_OUT = " (events before this one were left out: see status)"
_REMEMBERED = 10_000

K = TypeVar("K")
V = TypeVar("V")


@dataclass
class _Share:
    """Budget for events at a time of the clock."""

    saved: float
    """Seconds; an event costs :data:`EVERY_SECONDS`."""
    at: float
    left_out: bool = False


class EventLimit:
    """Decides which events are sent, by those that this process has sent before."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock``: seconds, monotonic."""
        self._clock = clock
        self._sent: dict[tuple[str, str, str], float] = {}
        self._shares: dict[tuple[str, str, str, str], _Share] = {}

    def text(self, table: tuple[str, str], event: act.EmitEvent, key: str) -> str | None:
        """The text to send now; None: this event is not sent.

        ``key`` tells events of one object and reason apart.
        """
        now = self._clock()
        identity = (event.uid, event.reason, key)
        if identity in self._sent and now - self._sent[identity] < KEPT_SECONDS:
            return None
        share = self._share((*table, event.kind, event.type), now)
        if share.saved < EVERY_SECONDS:
            share.left_out = True
            return None
        share.saved -= EVERY_SECONDS
        _make_room(self._sent, lambda at: now - at >= KEPT_SECONDS)
        self._sent[identity] = now
        if not share.left_out:
            return event.message
        share.left_out = False
        return event.message[: act.EVENT_LIMIT - len(LEFT_OUT)] + LEFT_OUT

    def _share(self, name: tuple[str, str, str, str], now: float) -> _Share:
        full = AT_ONCE * EVERY_SECONDS
        if name not in self._shares:
            _make_room(self._shares, lambda share: now - share.at >= full)
        share = self._shares.setdefault(name, _Share(full, now))
        share.saved = min(full, share.saved + now - share.at)
        share.at = now
        return share


def regarding(action: act.EmitEvent) -> dict[str, str]:
    """The object of an event."""
    return {
        "apiVersion": naming.API_VERSION,
        "kind": action.kind,
        "namespace": action.namespace,
        "name": action.name,
        "uid": action.uid,
    }


def event_key(action: act.EmitEvent) -> str:
    """Key that distinguishes two events of one reason.

    The attempt, else the text without its numbers.
    """
    return str(action.attempt) if action.attempt else re.sub(r"\d+", "", action.message)


def _make_room(known: dict[K, V], over: Callable[[V], bool]) -> None:
    """Forget what is over when there is much; everything when that does not help."""
    if len(known) < _REMEMBERED:
        return
    for name in [name for name, value in known.items() if over(value)]:
        del known[name]
    if len(known) >= _REMEMBERED:
        known.clear()

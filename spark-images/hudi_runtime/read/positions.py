"""The position of an incremental reader.

RFC-22 ("Incremental reads") has three orders; there is one kind of position for each. Pure: no I/O.

    option 1   OutOfOrder a commit is returned as soon as it is completed; the checkpoint lists
               those returned beyond the oldest pending one
    option 2   Fenced         by requested time, and only commits before the oldest pending instant
    option 3   ByCompletion by completion time: the checkpoint is one time, and no late commit lies
               before it (I10)

None of them misses a writer that began first and finishes last. A position is a value: it changes
only by `advance`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from hudi_runtime.table import timeline as tl

BEGINNING = "0"
_TIME = re.compile(r"^(0|\d{14}|\d{17})$")


class PositionError(ValueError):
    """A stored position that cannot be parsed."""


@dataclass(frozen=True)
class _Read:
    """A position of either order."""

    given: bool = field(default=False, init=False, compare=False, repr=False)
    """Whether its times are of commits that were returned, so that the table must know them (F635).
    A time that somebody has chosen need not be that of a commit.
    """


@dataclass(frozen=True)
class ByCompletion(_Read):
    """Option 3: all commits completed up to and including `completion` were returned."""

    completion: str = BEGINNING
    """A completion time, 17 digits in UTC; `0`: nothing was returned."""

    def wants(self, instant: tl.Instant) -> bool:
        """Whether a completed instant has not been given yet."""
        return instant.completion > self.completion

    def ready(self, timeline: tl.Timeline) -> tuple[tl.Instant, ...]:
        """Instants that may be returned now, in order."""
        return tuple(i for i in _written(timeline) if self.wants(i))

    def advance(self, given: Sequence[tl.Instant], timeline: tl.Timeline) -> ByCompletion:
        """The position after processing `given`.

        `given` is a first part of the instants that were ready on this timeline.
        """
        position = ByCompletion(max([self.completion, *(i.completion for i in given)]))
        return _marked(position) if self.given or given else position

    def undone(self, written: Collection[tl.Instant]) -> str:
        """The time of the last returned commit when it is not in `written`; else empty.

        `written` has all commits that the table knows.
        """
        return _unknown({self.completion}, {i.completion for i in written})

    def checkpoint(self) -> dict[str, object]:
        """The form to store: a dictionary for JSON, which `parse` takes."""
        return {"order": "CompletionTime", "completion": self.completion}


@dataclass(frozen=True)
class Fenced(_Read):
    """Option 2: all commits requested up to and including `requested` were returned.

    It waits for the oldest pending write of the table.
    """

    requested: str = BEGINNING
    """A requested time, 17 digits in UTC; `0`: nothing was returned."""

    def wants(self, instant: tl.Instant) -> bool:
        """Whether a completed instant has not been given yet."""
        return instant.requested > self.requested

    def ready(self, timeline: tl.Timeline) -> tuple[tl.Instant, ...]:
        """Instants that may be returned now, in order: those before the oldest pending write."""
        fence = min(_pending(timeline), default="")
        found = (i for i in _written(timeline) if self.wants(i) and (not fence or i.requested < fence))
        return tuple(sorted(found, key=lambda i: i.requested))

    def advance(self, given: Sequence[tl.Instant], timeline: tl.Timeline) -> Fenced:
        """The position after processing `given`.

        `given` is a first part of the instants that were ready on this timeline.
        """
        position = Fenced(max([self.requested, *(i.requested for i in given)]))
        return _marked(position) if self.given or given else position

    def undone(self, written: Collection[tl.Instant]) -> str:
        """As of ByCompletion, by requested time."""
        return _unknown({self.requested}, {i.requested for i in written})

    def checkpoint(self) -> dict[str, object]:
        """The form to store: a dictionary for JSON, which `parse` takes."""
        return {"order": "Fenced", "requested": self.requested}


@dataclass(frozen=True)
class OutOfOrder(_Read):
    """Option 1: all commits requested up to and including `low` were returned.

    So were those requested at the times in `ahead`, all greater than `low`.
    """

    low: str = BEGINNING
    """The requested time of a commit, 17 digits in UTC; `0`: nothing was returned."""
    ahead: frozenset[str] = frozenset()

    def wants(self, instant: tl.Instant) -> bool:
        """Whether a completed instant has not been given yet."""
        return instant.requested > self.low and instant.requested not in self.ahead

    def ready(self, timeline: tl.Timeline) -> tuple[tl.Instant, ...]:
        """Instants that may be returned now, in order of completion."""
        return tuple(i for i in _written(timeline) if self.wants(i))

    def advance(self, given: Sequence[tl.Instant], timeline: tl.Timeline) -> OutOfOrder:
        """The position after processing `given`.

        `given` is a part of the instants that were ready on this timeline.

        `low` stops before the oldest write that is pending or not returned; an instant that was
        rolled back does not hold it back.
        """
        ahead = self.ahead | {i.requested for i in given}
        open_ones = [
            *_pending(timeline),
            *(i.requested for i in _written(timeline) if self.wants(i) and i.requested not in ahead),
        ]
        limit = min(open_ones, default="")
        low = max([self.low, *(t for t in ahead if not limit or t < limit)])
        position = OutOfOrder(low, frozenset(t for t in ahead if t > low))
        moved = given and (low != self.low or low == BEGINNING)
        return _marked(position) if self.given or moved else position

    def undone(self, written: Collection[tl.Instant]) -> str:
        """As of ByCompletion, by requested time."""
        return _unknown({self.low, *self.ahead}, {i.requested for i in written})

    def checkpoint(self) -> dict[str, object]:
        """The form to store: a dictionary for JSON, which `parse` takes."""
        return {"order": "OutOfOrder", "low": self.low, "ahead": sorted(self.ahead)}


Position = ByCompletion | Fenced | OutOfOrder
_Any = TypeVar("_Any", bound=_Read)


def _marked(position: _Any) -> _Any:
    """The same position, which names returned commits."""
    object.__setattr__(position, "given", True)
    return position


ORDERS: Mapping[str, Callable[[], Position]] = {
    "CompletionTime": ByCompletion,
    "Fenced": Fenced,
    "OutOfOrder": OutOfOrder,
}
"""Names of the orders, as in `source.hudi.order`, and the position at the beginning of a table."""


def parse(checkpoint: Mapping[str, object]) -> Position:
    """The position of a `checkpoint()`: the commits that it names were returned.

    Raises PositionError for anything else.
    """
    order, ahead = checkpoint.get("order"), checkpoint.get("ahead", [])
    if order not in ORDERS or not isinstance(ahead, list):
        raise PositionError(f"order {order!r}: must be one of {', '.join(ORDERS)}")
    if order == "CompletionTime":
        return _marked(ByCompletion(_time(checkpoint, "completion")))
    if order == "Fenced":
        return _marked(Fenced(_time(checkpoint, "requested")))
    return _marked(OutOfOrder(_time(checkpoint, "low"), frozenset(str(t) for t in ahead)))


def stable(first: tl.Timeline, second: tl.Timeline) -> tl.Timeline:
    """A timeline that is certain from two consecutive listings.

    `second` without instants newer than those in `first`.

    A listing is not atomic: it may show a commit and miss an older one that was published during
    the listing. An instant older than one in the first listing existed before that listing ended,
    so the second listing shows it.
    """
    requested = max((i.requested for i in first.instants), default="")
    completion = max((i.completion for i in first.instants), default="")
    seen = (i for i in second.instants if i.requested <= requested)
    held = (i if i.completion <= completion else tl.Instant(i.requested, i.action, tl.State.INFLIGHT) for i in seen)
    return tl.Timeline(tuple(held), second.unknown)


def _unknown(given: Collection[str], known: Collection[str]) -> str:
    """The first of the given times that is not known, although it is not older than all known ones.

    Older times may be forgotten.
    """
    oldest = min(known, default="")
    return next((t for t in sorted(given) if t != BEGINNING and t not in known and (not oldest or t >= oldest)), "")


def _written(timeline: tl.Timeline) -> tuple[tl.Instant, ...]:
    return tuple(i for i in timeline.completed if i.action in tl.WRITE_ACTIONS)


def _pending(timeline: tl.Timeline) -> list[str]:
    return [i.requested for i in timeline.pending if i.action in tl.WRITE_ACTIONS]


def _time(checkpoint: Mapping[str, object], name: str) -> str:
    value = str(checkpoint.get(name, ""))
    if not _TIME.match(value):
        raise PositionError(f"{name} {value!r}: must be a time such as 20260131235959999")
    return value

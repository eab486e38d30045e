"""The active timeline, parsed from its file names (timeline layout 2, table versions 8 and 9).

Pure: no I/O.

    <requested>.<action>.requested      <requested>.<action>.inflight
                                        <requested>_<completion>.<action>
    <requested>.inflight                (action commit)

Files of the earlier states stay beside the completed one until archival, so an instant is pending
when none of its files is completed.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime


class State(enum.Enum):
    """State of an instant, as Hudi names it."""

    REQUESTED = "REQUESTED"
    INFLIGHT = "INFLIGHT"
    COMPLETED = "COMPLETED"


#: Actions that are renamed on completion: pending name -> completed name.
COMPLETED_ACTION = {"compaction": "commit", "logcompaction": "deltacommit", "clustering": "replacecommit"}
#: Actions of writers: a pending one of a dead writer is rolled back, every other action is
# executed again.
WRITE_ACTIONS = frozenset({"commit", "deltacommit", "replacecommit"})
ACTIONS = WRITE_ACTIONS | frozenset(
    {
        "clustering",
        "compaction",
        "logcompaction",
        "clean",
        "rollback",
        "savepoint",
        "restore",
        "indexing",
        "schemacommit",
    }
)

#: Actions that Hudi 1.2.0 leaves in the active timeline for ever (TimelineArchiverV2).
NEVER_ARCHIVED = frozenset({"savepoint", "restore", "indexing", "schemacommit"})

#: Requested and completion time of the beginning that an agent puts before a timeline (F630). It is
# before all times of commits, and not after the zero of the table's clock.
BEGINNING, _BEGUN = "19700101000000000", "19700101000000001"

_TIME = r"\d{14}(?:\d{3})?"
_COMPLETED = re.compile(rf"^({_TIME})_({_TIME})\.([a-z]+)$")
_PENDING = re.compile(rf"^({_TIME})\.(?:([a-z]+)\.)?(requested|inflight)$")


def milliseconds(hudi_time: str) -> int:
    """A requested or completion time (UTC) as Unix milliseconds.

    Raises ValueError for other text.
    """
    parsed = datetime.strptime(hudi_time[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return int(parsed.timestamp()) * 1000 + int(hudi_time[14:17] or 0)


class TimelineError(ValueError):
    """The listing is ambiguous for this parser: stop (I4)."""


@dataclass(frozen=True, order=True)
class Instant:
    """One instant: requested time, action, state, and completion time.

    The completion time is empty unless it is completed.
    """

    requested: str
    action: str
    state: State = field(compare=False)
    completion: str = field(default="", compare=False)
    planned: str = field(default="", compare=False)
    """For a completed instant whose files of the earlier states still exist: its action while it
    was pending.
    """

    @property
    def pending(self) -> bool:
        """Whether the instant is not completed."""
        return self.state is not State.COMPLETED

    @property
    def of_a_service(self) -> bool:
        """Whether it belongs to a table service that rewrites rows.

        Its completed action is the same as a writer's.
        """
        return (self.planned or self.action) in COMPLETED_ACTION


@dataclass(frozen=True)
class Timeline:
    """The active timeline, ordered by requested time.

    `unknown` are file names that are neither an instant nor another known file.

    A savepoint bears the requested time of the commit that it keeps, so it is in `savepoints`, not
    in `instants`.
    """

    instants: tuple[Instant, ...] = ()
    unknown: tuple[str, ...] = ()
    savepoints: tuple[Instant, ...] = ()
    begun: bool = False
    """Whether a beginning stands before all instants. It is no instant: nobody wrote anything in it
    (F630).
    """

    def get(self, requested: str) -> Instant | None:
        """The instant with that requested time; None when it is not in the active timeline."""
        return next((instant for instant in self.instants if instant.requested == requested), None)

    @property
    def pending(self) -> tuple[Instant, ...]:
        """Instants without a completed file."""
        return tuple(instant for instant in self.instants if instant.pending)

    @property
    def completed(self) -> tuple[Instant, ...]:
        """Completed instants, ordered by completion time."""
        return tuple(sorted((i for i in self.instants if not i.pending), key=lambda i: i.completion))

    @property
    def last_completed(self) -> Instant | None:
        """The instant that completed last; None on an empty timeline."""
        return self.completed[-1] if self.completed else None

    @property
    def newest(self) -> str:
        """Completion time of the instant that completed last; `0` on an empty timeline."""
        last = self.last_completed
        return last.completion if last else "0"

    @property
    def maximum(self) -> str:
        """Largest requested or completion time, the lower bound of the table's clock.

        Empty on an empty timeline.
        """
        return max(
            (max(instant.requested, instant.completion) for instant in (*self.instants, *self.savepoints)), default=""
        )

    @property
    def lowest_pending(self) -> str:
        """Smallest requested time of a pending instant; empty when nothing is pending."""
        return min((instant.requested for instant in self.pending), default="")

    @property
    def earliest(self) -> str:
        """Requested time of the oldest instant in the active timeline that archival will remove.

        Hudi archives neither a restore nor a building of indexes: they stay in front of commits
        that came later and were archived. Empty when there is none.
        """
        return next((instant.requested for instant in self.instants if instant.action not in NEVER_ARCHIVED), "")


def beginning(*, merge_on_read: bool) -> str:
    """File name of the beginning of a table's timeline: a completed commit of a writer.

    In a MergeOnRead table a `commit` would be the result of a compaction.
    """
    return f"{BEGINNING}_{_BEGUN}.{'deltacommit' if merge_on_read else 'commit'}"


def parse_name(name: str) -> Instant | None:
    """The instant of a file name; None for other files (temporary, checksum, history)."""
    completed = _COMPLETED.match(name)
    if completed and completed[3] in ACTIONS:
        return Instant(completed[1], completed[3], State.COMPLETED, completed[2])
    pending = _PENDING.match(name)
    if pending and (pending[2] is None or pending[2] in ACTIONS):
        if pending[2] is None and pending[3] == "requested":
            return None
        return Instant(pending[1], pending[2] or "commit", State(pending[3].upper()))
    return None


def parse(names: Iterable[str]) -> Timeline:
    """Timeline from the file names of `.hoodie/timeline`.

    Raises TimelineError when one requested time has two different actions or two completions: no
    decision may be based on that.
    """
    found: dict[str, list[Instant]] = {}
    savepoints: dict[str, list[Instant]] = {}
    unknown: list[str] = []
    begun = False
    for name in names:
        if name.startswith(".") or name == "history" or name.endswith(".crc"):
            continue
        instant = parse_name(name)
        if instant is None:
            unknown.append(name)
        elif instant.requested == BEGINNING and not instant.pending:
            begun = True
        else:
            kind = savepoints if instant.action == "savepoint" else found
            kind.setdefault(instant.requested, []).append(instant)
    instants, kept = (tuple(_merge(kind[requested]) for requested in sorted(kind)) for kind in (found, savepoints))
    return Timeline(instants, tuple(sorted(unknown)), kept, begun)


def parse_sizes(sizes: Mapping[str, int]) -> Timeline:
    """Timeline from the files of `.hoodie/timeline`: name -> bytes.

    Raises TimelineError also for an empty completed file (F34): a store that shows a file before it
    is written leaves one when its writer dies at that point. The instant is neither completed nor
    absent, so nothing is decided until a person has checked.
    """
    timeline = parse(sizes)
    for name, size in sorted(sizes.items()):
        instant = parse_name(name)
        if instant is not None and not instant.pending and size == 0:
            raise TimelineError(
                f"completed file {name} is empty: whether instant {instant.requested} is completed is unknown"
            )
    return timeline


def _merge(states: list[Instant]) -> Instant:
    completed = [instant for instant in states if not instant.pending]
    pending_actions = {COMPLETED_ACTION.get(instant.action, instant.action) for instant in states if instant.pending}
    requested = states[0].requested
    if len(completed) > 1:
        raise TimelineError(f"instant {requested} is completed more than once")
    if completed:
        if pending_actions - {completed[0].action}:
            raise TimelineError(f"instant {requested} carries several actions")
        planned = next((instant.action for instant in states if instant.pending), "")
        return replace(completed[0], planned=planned)
    if len({instant.action for instant in states}) > 1:
        raise TimelineError(f"instant {requested} carries several actions")
    inflight = [instant for instant in states if instant.state is State.INFLIGHT]
    return inflight[0] if inflight else states[0]

"""Series made from the statuses and reports of one look at one table.

They are made again at each look, whether or not anything has changed, so they exist after a restart
(F54), and a deleted table leaves none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from hudi_contract import keys, naming
from hudi_contract.records import read
from hudi_contract.reports import AttemptReport, TimelineReport
from hudi_contract.settle import Phase
from hudi_contract.words import WriterState
from hudi_operator.model import conditions
from hudi_operator.model.facts import Observed
from hudi_operator.model.status import CommitEntry, attempt_entries, commit_entries, settling_entries
from hudi_operator.plan.core import actions as act

JsonDict = dict[str, Any]
Sample = tuple[str, tuple[str, ...], float]
"""Name, values of the labels, value."""

ALWAYS_SHOWN = ("Ready", "Stalled", "AwaitingProofOfDeath")
"""Conditions of a table that are 0 while they are absent."""
_OF_WRITERS = ("Ready", "Stalled", "Late")
_CALLBACK = {
    "undelivered": "hudi_operator_callback_undelivered",
    "failures": "hudi_operator_callback_failures",
    "archivedUndelivered": "hudi_operator_callback_archived_undelivered",
}
_READ_COST = {"baseBytes": "hudi_operator_base_file_bytes", "logBytes": "hudi_operator_log_file_bytes"}


def samples(observed: Observed, done: Sequence[act.Action], states: Mapping[str, int]) -> Iterator[Sample]:
    """Series of the table and its writers as they are after a look.

    ``done``: changes that the look has made. ``states``: states of writers that this process has
    met, so that the number of each goes back to 0.
    """
    table = observed.table
    if table is None:
        return
    where = (str(table["metadata"].get("namespace") or ""), str(table["metadata"]["name"]))
    written = {(a.kind, a.name): a.status for a in done if isinstance(a, act.UpdateStatus)}
    yield from _of_table(where, written.get((naming.TABLE_KIND, where[1]), table.get("status")), observed)
    counts = dict.fromkeys(states, 0)
    for writer in observed.writers:
        name = str(writer["metadata"]["name"])
        status = written.get((naming.WRITER_KIND, name)) or writer.get("status") or {}
        state = str(status.get("state") or WriterState.WAITING)
        counts[state] = counts.get(state, 0) + 1
        yield from _of_writer((*where, name), status, observed)
    for state, number in counts.items():
        yield "hudi_operator_writers", (*where, state), number


def _of_table(where: tuple[str, str], status: JsonDict | None, observed: Observed) -> Iterator[Sample]:
    if status is None:
        return
    yield from _conditions(where, status)
    timeline = status.get("timeline") or {}
    yield "hudi_operator_pending_instants", where, int(timeline.get("pendingCount") or 0)
    yield "hudi_operator_foreign_instants", where, len(timeline.get("foreign") or ())
    yield from _at("hudi_operator_last_commit_timestamp_seconds", where, timeline.get("lastCommitTime"))
    oldest = conditions.hudi_time(str(timeline.get("lowestPendingRequestedTime") or ""))
    yield from _at("hudi_operator_oldest_pending_instant_timestamp_seconds", where, oldest)
    yield from _at("hudi_operator_lock_held_since_timestamp_seconds", where, (status.get("lock") or {}).get("since"))
    for field, metric in _READ_COST.items():
        if field in (status.get("readCost") or {}):
            yield metric, where, int(status["readCost"][field])
    for service, run in (status.get("services") or {}).items():
        yield from _at("hudi_operator_service_last_run_timestamp_seconds", (*where, service), run.get("lastTime"))
        yield "hudi_operator_service_failures", (*where, service), int(run.get("failures") or 0)
    yield from _callback(where, status.get("commitCallback") or {})
    yield from _catalog(where, status.get("catalog") or {}, timeline)
    yield from _settling(where, status)
    if observed.etcd is not None:
        told = read(observed.etcd.reports.get(keys.TIMELINE), TimelineReport).at_ms
        if told:
            yield "hudi_operator_timeline_report_timestamp_seconds", where, told / 1000


def _conditions(where: tuple[str, str], status: JsonDict) -> Iterator[Sample]:
    shown: dict[str, float] = dict.fromkeys(ALWAYS_SHOWN, 0.0)
    for item in status.get("conditions") or ():
        if item.get("status") in ("True", "False"):
            shown[str(item["type"])] = float(item["status"] == "True")
    for kind, value in shown.items():
        yield "hudi_operator_table_condition", (*where, kind), value


def _callback(where: tuple[str, str], shown: JsonDict) -> Iterator[Sample]:
    if not shown:
        return
    for field, metric in _CALLBACK.items():
        yield metric, where, int(shown.get(field) or 0)
    since = _seconds(shown.get("undeliveredSince"))
    yield "hudi_operator_callback_undelivered_since_timestamp_seconds", where, since or 0


def _catalog(where: tuple[str, str], shown: JsonDict, timeline: JsonDict) -> Iterator[Sample]:
    """Series of a table in a catalog. Until there is a first commit, only its failures."""
    if not shown:
        return
    yield "hudi_operator_catalog_failures", where, int(shown.get("failures") or 0)
    there = conditions.hudi_time(str(shown.get("lastCompletionTime") or ""))
    yield from _at("hudi_operator_catalog_last_commit_timestamp_seconds", where, there)
    last, known = _seconds(timeline.get("lastCommitTime")), _seconds(there)
    if last is not None and known is not None:
        yield "hudi_operator_catalog_lag_seconds", where, max(0.0, last - known)


def _settling(where: tuple[str, str], status: JsonDict) -> Iterator[Sample]:
    entries = settling_entries(status)
    for phase in Phase:
        if phase is Phase.Settled:
            continue
        mine = [entry for entry in entries if entry.phase is phase]
        yield "hudi_operator_settling", (*where, phase.name), len(mine)
        since = [at for at in (_seconds(entry.since) for entry in mine) if at is not None]
        if since:
            yield "hudi_operator_settling_since_timestamp_seconds", (*where, phase.name), min(since)


def _of_writer(who: tuple[str, str, str], status: JsonDict, observed: Observed) -> Iterator[Sample]:
    for kind in _OF_WRITERS:
        yield "hudi_operator_writer_condition", (*who, kind), float(conditions.is_true(status, kind))
    yield "hudi_operator_writer_records_total", who, int(status.get("records") or 0)
    yield "hudi_operator_writer_conflicts_total", who, int(status.get("conflicts") or 0)
    yield "hudi_operator_writer_bad_records_total", who, int(status.get("badRecords") or 0)
    last = (status.get("lastCommit") or {}).get("time")
    yield from _at("hudi_operator_writer_last_commit_timestamp_seconds", who, last)
    waits = (status.get("queue") or {}).get("since")
    yield from _at("hudi_operator_writer_waiting_since_timestamp_seconds", who, waits)
    newest = max(attempt_entries(status), key=lambda entry: entry.number, default=None)
    if newest is not None and newest.pod and observed.etcd is not None:
        stored = observed.etcd.reports.get(keys.attempt_report(naming.attempt_id(who[0], newest.pod)))
        if stored is not None:
            yield "hudi_operator_writer_backlog", who, read(stored, AttemptReport).waiting


def _at(metric: str, labels: tuple[str, ...], time: object) -> Iterator[Sample]:
    """The Unix time of an RFC 3339 time; nothing when there is none."""
    seconds = _seconds(time)
    if seconds is not None:
        yield metric, labels, seconds


def _seconds(time: object) -> float | None:
    ms = conditions.from_rfc3339(str(time or ""))
    return None if ms is None else ms / 1000


def new_commits(old: JsonDict, new: JsonDict) -> list[CommitEntry]:
    """Commits of a status that the previous one did not have.

    Nothing when the previous one had no timeline yet (nothing is new at the first look).
    """
    if not old.get("timeline"):
        return []
    last = max(
        (commit.completion_time for commit in commit_entries(old)),
        default=str(old["timeline"].get("lastCompletionTime") or ""),
    )
    return [commit for commit in commit_entries(new) if commit.completion_time > last]


def wasted_seconds(observed: Observed, before: JsonDict, after: JsonDict) -> float:
    """Time that the newly refused commits of a writer had taken since their instants' request.

    An instant is a time of its driver's clock, as is the time of the refusal. ``before`` and
    ``after`` are the writer's status.
    """
    known = {(c.get("instant"), c.get("time")) for c in before.get("recentConflicts") or ()}
    news = {
        str(c.get("instant") or "")
        for c in after.get("recentConflicts") or ()
        if (c.get("instant"), c.get("time")) not in known
    }
    reports = observed.etcd.reports if observed.etcd is not None else {}
    told = {
        conflict.instant: conflict.at_ms
        for name, stored in reports.items()
        if keys.reporting_attempt(name)
        for conflict in read(stored, AttemptReport).conflicts
        if conflict.at_ms is not None
    }
    spans = (told[instant] / 1000 - at for instant in news if instant in told and (at := _instant(instant)) is not None)
    return sum(max(0.0, span) for span in spans)


def _instant(instant: str) -> float | None:
    """Unix time of a Hudi instant with its milliseconds; None when it is none."""
    try:
        at = datetime.strptime(instant[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC).timestamp()
        return at + int(instant[14:17] or 0) / 1000
    except ValueError:
        return None

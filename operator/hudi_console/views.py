"""Data of the pages, as JSON.

The answers of `kubectl hudi` to status, why, queue, history and timeline, side by side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from hudi_kubectl import lanes, past, pictures, why
from hudi_kubectl.objects import AS_ASKED, FAILED, STALLED, JsonDict, Table, Thing, Writer, of_table, when

GOOD, BAD, BUSY, QUIET = "good", "bad", "busy", "quiet"
"""Tones of a state or a condition: as it should be, in need of a person, in progress, neutral."""
_TRUE_IS_GOOD = (*why.NORMAL_TRUE, "Ready", "BucketSafe", "CallbackDelivered", "CatalogSynced")
_FALSE_IS_GOOD = (*why.NORMAL_FALSE, "CleaningHeld", *(kind for kind in why.REFUSED))
_PASSING = ("RollbackPending", "AwaitingProofOfDeath", "Late", "ExecutorsMissing")
"""Conditions that are bad for a while, and end by themselves as a rule."""
_BEGUN = (("Bootstrapped", "Running"), ("Bootstrapped", "Waiting"), ("ServicesHealthy", "ExecutorPending"))
"""Conditions and their reasons that are work on its way."""
_SPEC = ("suspend", "tableRef", "type", "path", "priority", "concurrency", "schedule", "streaming")
_STATUS = (
    "observedGeneration", "state", "blockedBy", "lock", "settling", "queue", "conflicts", "records", "lastCommit",
    "nextRetryTime", "nextScheduleTime",
)  # fmt: skip
_TIMELINE = ("pendingCount", "lastCommitTime")
_MESSAGE = 300
_REASON = 240
_LAST_TOLD = 200
_OF_AN_EVENT = 1024
"""Characters of its message; an author of Events may write any number."""


# ---------------------------------------------------------------- what is kept of an object
def kept(raw: JsonDict) -> JsonDict:
    """An object without what no page shows."""
    meta = {name: value for name, value in (raw.get("metadata") or {}).items() if name not in ("managedFields",)}
    meta.pop("annotations", None)
    meta.pop("resourceVersion", None)
    return {**raw, "metadata": meta}


def kept_in_short(raw: JsonDict) -> JsonDict:
    """Reduce a table or a writer to the fields that the list of all tables needs."""
    meta, spec, status = (raw.get(part) or {} for part in ("metadata", "spec", "status"))
    told: JsonDict = {name: status[name] for name in _STATUS if name in status}
    told["conditions"] = [
        {**one, "message": str(one.get("message") or "")[:_MESSAGE]}
        for one in status.get("conditions") or []
        if one.get("type") == "Ready" or tone(one) in (BAD, BUSY)
    ]
    timeline = status.get("timeline") or {}
    told["timeline"] = {name: timeline[name] for name in _TIMELINE if name in timeline}
    told["timeline"]["commits"] = list(timeline.get("commits") or [])[-1:]
    told["attempts"] = list(status.get("attempts") or [])[-1:]
    told["recentConflicts"] = list(status.get("recentConflicts") or [])[-1:]
    return {
        "kind": raw.get("kind"),
        "metadata": {name: meta[name] for name in ("namespace", "name", "generation") if name in meta},
        "spec": {name: spec[name] for name in _SPEC if name in spec},
        "status": told,
    }


def kept_of_a_pod(raw: JsonDict) -> JsonDict:
    """Reduce a pod to the fields that say why it does not start."""
    return {"metadata": {"name": (raw.get("metadata") or {}).get("name")}, "status": raw.get("status")}


def kept_of_an_event(raw: JsonDict) -> JsonDict:
    """Reduce an Event to the fields that lanes and history use."""
    about = raw.get("involvedObject") or {}
    return {
        **{name: raw.get(name) for name in ("lastTimestamp", "eventTime")},
        "reason": str(raw.get("reason") or "")[:_REASON],
        "message": str(raw.get("message") or "")[:_OF_AN_EVENT],
        "involvedObject": {name: about.get(name) for name in ("kind", "name")},
    }


# ---------------------------------------------------------------- parts
def time(text: Any) -> str | None:
    """A time of Kubernetes or of Hudi, as browsers read it; None when it is none."""
    found = when(text)
    return None if found is None else found.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def tone(condition: JsonDict) -> str:
    """Tone of a condition."""
    kind, status = condition.get("type"), condition.get("status")
    if kind not in (*_TRUE_IS_GOOD, *_FALSE_IS_GOOD):
        return QUIET
    if status == ("True" if kind in _TRUE_IS_GOOD else "False"):
        return GOOD
    passes = kind in _PASSING or (kind, condition.get("reason")) in _BEGUN
    return BUSY if status == "Unknown" or passes else BAD


def tone_of(thing: Table | Writer) -> str:
    """Tone of the state of a table or a writer."""
    if thing.state in (FAILED, STALLED):
        return BAD
    if isinstance(thing, Table):
        return GOOD if thing.state == "Ready" else BUSY
    return (GOOD if thing.state == "Running" else QUIET) if thing.state in AS_ASKED else BUSY


def conditions(thing: Thing) -> list[JsonDict]:
    """All conditions, those that a person has to look at first."""
    order = (BAD, BUSY, GOOD, QUIET)
    found = [
        {
            "type": one.get("type"),
            "status": one.get("status"),
            "reason": one.get("reason"),
            "message": one.get("message"),
            "since": time(one.get("lastTransitionTime")),
            "tone": tone(one),
        }
        for one in thing.status.get("conditions") or []
    ]
    return sorted(found, key=lambda one: order.index(one["tone"]))


def sentence(table: Table, writers: Sequence[Writer], at: datetime) -> str:
    """Summary of what waits, and why: the table's reason, else the first writer's that has one.

    Those that have failed go before those that merely wait.
    """
    world = why.World([table], list(writers), {}, at)
    said = _in_short(why.of_table(table, world))
    if said:
        return said
    for writer in sorted(writers, key=lambda w: tone_of(w) != BAD):
        said = _in_short(why.of_writer(writer, world))
        if said:
            return f"{writer.name}: {said}"
    return ""


def _in_short(reason: why.Reason) -> str:
    """The first cause, and what the API says of it."""
    said = why.in_short(reason, _REASON)
    behind = reason.causes[0].causes
    if not said or not behind:
        return said
    whole = f"{said}: {behind[0].fact}"
    return whole if len(whole) <= _REASON else f"{whole[: _REASON - 1]}…"


def _reasons(reason: why.Reason) -> JsonDict:
    return {**why.as_json(reason), "well": all(cause.is_well for cause in reason.causes)}


# ---------------------------------------------------------------- all tables
def row(table: Table, writers: Sequence[Writer], at: datetime) -> JsonDict:
    """A table in the list of all. ``writers``: its own."""
    timeline = table.status.get("timeline") or {}
    commits = table.commits()
    return {
        "namespace": table.namespace,
        "name": table.name,
        "type": table.spec.get("type"),
        "state": table.state,
        "tone": tone_of(table),
        "conditions": [
            one for one in conditions(table) if one["tone"] in (BAD, BUSY) and one["type"] not in ("Ready", table.state)
        ],
        "writers": [
            {"state": state, "count": count, "tone": tone_of(next(w for w in writers if w.state == state))}
            for state, count in sorted(Counter(w.state for w in writers).items())
        ],
        "conflicts": sum(int(w.status.get("conflicts") or 0) for w in writers),
        "pending": timeline.get("pendingCount"),
        "lastCommit": time(timeline.get("lastCommitTime") or (commits[-1].get("completionTime") if commits else None)),
        "why": sentence(table, writers, at),
    }


def rows(tables: Iterable[Table], writers: Iterable[Writer], at: datetime) -> list[JsonDict]:
    """All tables, and those that do not exist and have writers, by namespace and name."""
    own: dict[tuple[str, str], list[Writer]] = {}
    for writer in writers:
        own.setdefault((writer.namespace, writer.table), []).append(writer)
    ordered = sorted(tables, key=lambda t: (t.namespace, t.name))
    found = [row(t, sorted(own.pop((t.namespace, t.name), ()), key=lambda w: w.name), at) for t in ordered]
    found += [_missing(of, sorted(some, key=lambda w: w.name), at) for of, some in own.items()]
    return sorted(found, key=lambda one: (one["namespace"], one["name"]))


def _missing(of: tuple[str, str], writers: Sequence[Writer], at: datetime) -> JsonDict:
    """A row for a table that does not exist and has writers; it leads to the first of them."""
    namespace, name = of
    none = Table({"kind": "HudiTable", "metadata": {"namespace": namespace, "name": name}})
    said = f"there is no HudiTable {name}, which {', '.join(w.name for w in writers)} would write"
    found = {**row(none, writers, at), "state": "Missing", "tone": BAD, "orphan": writers[0].name}
    return {**found, "why": said if len(said) <= _REASON else f"{said[: _REASON - 1]}…"}


# ---------------------------------------------------------------- a table
def of_one_table(
    world: why.World, table: Table, events: Iterable[JsonDict] | None, before: Sequence[lanes.Lane] = ()
) -> tuple[JsonDict, list[lanes.Lane]]:
    """A table with its timeline, and the lanes to hand in as ``before`` the next time.

    ``events``: of the table; None: the user may not list them.
    """
    own = of_table(world.writers, table)
    found = lanes.remembered(before, lanes.lanes(table, own, world.at, events or ()), world.at)
    queued = sorted((w for w in own if w.status.get("queue")), key=lambda w: w.status["queue"].get("position") or 0)
    timeline = table.status.get("timeline") or {}
    shown = {
        "at": _at(world),
        "table": {**row(table, own, world.at), "conditions": conditions(table), "spec": _spec(table)},
        "why": _reasons(why.of_table(table, world)),
        "lanes": [lane.as_json() for lane in found],
        "writers": [_writer(w, world) for w in own],
        "queue": [{"name": w.name, "priority": w.spec.get("priority", 0), **w.status["queue"]} for w in queued],
        "lock": table.status.get("lock"),
        "settling": table.status.get("settling") or [],
        "services": [{"name": name, **one} for name, one in sorted((table.status.get("services") or {}).items())],
        "savepoints": table.status.get("savepoints") or [],
        "pending": timeline.get("pending") or [],
        "conflicts": _conflicts(own),
        "told": _told(table, own, events),
        "eventsHidden": events is None,
    }
    return shown, found


def _at(world: why.World) -> str:
    return world.at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _spec(table: Table) -> JsonDict:
    wanted = ("path", "type", "recordKeyFields", "partitionFields", "orderingFields", "suspend")
    found = {name: table.spec[name] for name in wanted if name in table.spec}
    return {**found, "mode": (table.spec.get("concurrency") or {}).get("mode")}


def _writer(writer: Writer, world: why.World) -> JsonDict:
    last = writer.attempt() or {}
    return {
        "namespace": writer.namespace,
        "name": writer.name,
        "state": writer.state,
        "tone": tone_of(writer),
        "mode": writer.status.get("mode"),
        "attempt": last.get("number"),
        "records": writer.status.get("records") or 0,
        "conflicts": writer.status.get("conflicts") or 0,
        "lastCommit": time((writer.status.get("lastCommit") or {}).get("time")),
        "why": _in_short(why.of_writer(writer, world)),
    }


def _conflicts(writers: Sequence[Writer]) -> list[JsonDict]:
    found = [{"writer": w.name, **one} for w in writers for one in w.status.get("recentConflicts") or []]
    return sorted(found, key=lambda one: str(one.get("time") or ""), reverse=True)


def _told(thing: Table | Writer, writers: Sequence[Writer], events: Iterable[JsonDict] | None) -> list[JsonDict]:
    """History, newest first."""
    found = past.told(thing, writers, events or ())
    return [
        {"time": time(f"{at:%Y%m%d%H%M%S}000"), "who": who, "what": what}
        for at, who, what in found[: -_LAST_TOLD - 1 : -1]
    ]


# ---------------------------------------------------------------- a writer
def of_one_writer(world: why.World, writer: Writer, events: Iterable[JsonDict] | None) -> JsonDict:
    """A writer with its attempts, the newest first."""
    table = world.table_of(writer)
    return {
        "at": _at(world),
        "writer": {
            **_writer(writer, world),
            "table": writer.table,
            "tableExists": table is not None,
            "operation": writer.spec.get("operation"),
            "priority": writer.spec.get("priority", 0),
            "suspend": bool(writer.spec.get("suspend")),
            "nextRetry": time(writer.status.get("nextRetryTime")),
            "nextSchedule": time(writer.status.get("nextScheduleTime")),
            "conditions": conditions(writer),
        },
        "why": _reasons(why.of_writer(writer, world)),
        "queue": writer.status.get("queue"),
        "attempts": [_attempt(one) for one in reversed(writer.attempts())],
        "earlier": writer.status.get("earlierAttempts"),
        "conflicts": _conflicts([writer]),
        "told": _told(writer, [writer], events),
        "eventsHidden": events is None,
    }


def _attempt(one: JsonDict) -> JsonDict:
    return {
        "number": one.get("number"),
        "run": one.get("run"),
        "pod": one.get("pod"),
        "executors": one.get("executors") or 0,
        "class": one.get("class"),
        "tone": _tone_of_attempt(one),
        "exitCode": one.get("exitCode"),
        "message": one.get("message"),
        "start": time(one.get("startTime")),
        "ready": time(one.get("readyTime")),
        "end": time(one.get("endTime")),
        "records": one.get("records") or 0,
        "conflicts": one.get("conflicts") or 0,
        "instants": one.get("instants") or [],
    }


def _tone_of_attempt(one: JsonDict) -> str:
    if not one.get("endTime"):
        return GOOD if one.get("readyTime") else BUSY
    return BAD if pictures.has_failed(one) else QUIET

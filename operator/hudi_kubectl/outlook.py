"""Forecast of what would happen to tables and writers if they were applied.

The operator's own planner decides it (`hudi_operator.plan.forecast`), with what statuses say. Facts
that they lack are listed in `UNKNOWN`. It needs the Python of the operator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from hudi_contract import defaults, naming
from hudi_kubectl.objects import INVALID_DEFAULTS, JsonDict, Table, Thing, Writer
from hudi_kubectl.objects import now as this_moment
from hudi_operator.api.defaults import Defaults
from hudi_operator.api.defaults import read as read_defaults
from hudi_operator.model import conditions
from hudi_operator.plan import forecast
from hudi_operator.plan.forecast import Fate
from hudi_operator.plan.writers.admission import Decision, Kind

REFUSED, STALLS, WAITS, STARTS, RUNS = "refused", "stalls", "waits", "starts now", "goes on"
RESTS, NEW, CHANGES, SAME, ACCEPTED = "does not start", "is new", "changes", "is unchanged", "is accepted"
NOT_ASKED, UNTOLD = "not asked", "starts now or waits"
UNKNOWN = (
    "the store: whether it is reached with these credentials, and what is at a path",
    "the data: whether rows fit the table",
    "settings of the operator's chart: schemes, path prefixes and stores, allowed images, additions to the allowed "
    "options, the broker of storage credentials",
    "whether Secrets and ServiceAccounts exist, and whether their owners consent (hudioperator.io/allowed-tables)",
    "which restores (by nonce) and savepoints (by name) were carried out long ago: none is carried out again",
    "the operator itself: its rights in the namespace, its version, defects",
    "cron expressions: whether the days that they name exist",
    "room for pods: quotas, nodes, whether an image can be pulled",
    "HudiTables of other namespaces with the same path, or in whose folder an event log would be",
)
"""Facts that cannot be read from the API with a user's rights."""
SETTINGS = "what the operator's chart allows beyond its defaults is not looked at"
"""Note for refusals that an administrator may have lifted."""
_MAY_BE_ALLOWED = "an administrator can add it"
_NONE = Defaults()
_AT_ONCE = ("startDeadlineSeconds", "readyDeadlineSeconds", "commitDeadlineSeconds", "suspend", "podHistory", "stop")
"""Fields of a HudiWriter that apply to the attempt that runs."""
_COMES_FIRST = ("TableRestore", "TableSavepoint", "TableMetadata", "TableChanging")
"""Reasons for which a writer waits until its table has changed."""


@dataclass(frozen=True)
class Outlook:
    """Forecast for one object. ``facts``: reasons and details of the verdict."""

    kind: str
    namespace: str
    name: str
    verdict: str
    facts: tuple[str, ...] = ()

    @property
    def is_bad(self) -> bool:
        """A person has to correct something first."""
        return self.verdict in (REFUSED, STALLS)

    def as_json(self) -> JsonDict:
        """The same for programs."""
        return {**vars(self), "facts": list(self.facts)}

    def lines(self) -> Iterator[str]:
        """The same for people."""
        where = f"{self.namespace}/" if self.namespace else ""
        yield f"{self.kind} {where}{self.name}: {self.verdict}"
        yield from (f"    {fact}" for fact in self.facts)


def _of(thing: Thing, verdict: str, *facts: str) -> Outlook:
    return Outlook(thing.kind, thing.namespace, thing.name, verdict, facts)


@dataclass(frozen=True)
class Namespace:
    """Tables and writers of one namespace, by name: as they are, and as they would be."""

    tables_before: Mapping[str, Table]
    writers_before: Mapping[str, Writer]
    tables: Mapping[str, Table]
    writers: Mapping[str, Writer]
    defaults: Defaults = _NONE
    """Defaults for its writers, as they would be."""


# ---------------------------------------------------------------- tables
def changed(before: Thing, after: Thing) -> list[str]:
    """Fields of the spec that differ."""
    return sorted(_differences(before.spec, after.spec))


def _differences(before: JsonDict, after: JsonDict, at: str = "") -> Iterator[str]:
    for name in {*before, *after}:
        old, new = before.get(name), after.get(name)
        if isinstance(old or new, dict):
            yield from _differences(old or {}, new or {}, f"{at}{name}.")
        elif old != new:
            yield f"{at}{name}"


def closing(before: Table, after: Table) -> list[str]:
    """Changes that wait until no writer runs: field and value.

    A table that is resumed also has those that were asked for while it was suspended.
    """
    resumed = before.spec.get("suspend") and not after.spec.get("suspend")
    savepoints, restore, metadata = forecast.pending(before.raw) if resumed else (frozenset[str](), "", False)
    found = [f"spec.{field}" for field in forecast.changed_alone(before.raw, after.raw)]
    found += ["spec.metadataTable"] if metadata and "spec.metadataTable" not in found else []
    known = {one.get("name") for one in before.spec.get("savepoints") or []} - savepoints
    found += [
        f"spec.savepoints: the savepoint {one.get('name')}"
        for one in after.spec.get("savepoints") or []
        if one.get("name") not in known and not one.get("deleteInstant")
    ]
    wanted = after.spec.get("restore") or {}
    old = (before.spec.get("restore") or {}).get("nonce")
    if wanted and (wanted.get("nonce") != old or wanted.get("nonce") == restore):
        undone = "which undoes all later commits"
        again = "" if wanted.get("nonce") == restore else ", if this nonce was not executed before"
        found.append(f"spec.restore: the restore to {wanted.get('savepoint')}, {undone}{again}")
    return found


def of_table(space: Namespace, name: str, now_ms: int | None = None) -> Outlook:
    """Forecast for a HudiTable that was accepted. ``now_ms`` None: the current time."""
    after, before = space.tables[name], space.tables_before.get(name)
    found = forecast.of_table(_asked(space, ()), name, now_ms=_moment(now_ms))
    wrong = [*([_with_settings(found)] if found else []), *_paths(space, after)]
    if wrong:
        return _of(after, STALLS, *wrong)
    if before is None:
        return _of(after, NEW, *_of_new_table(after))
    if before.meta.get("deletionTimestamp"):
        return _of(after, WAITS, "it is being deleted: apply it again when it is gone")
    facts = [*_of_changes(before, after), *_state_of(before)]
    return _of(after, CHANGES if changed(before, after) else SAME, *facts)


def _of_new_table(table: Table) -> Iterator[str]:
    policy = (table.spec.get("adoption") or {}).get("policy", "AdoptOrCreate")
    path = table.spec.get("path")
    yield {
        "Adopt": f"its agent adopts the table that must be at {path}",
        "Create": f"its agent creates the table at {path}, where none may be",
    }.get(policy, f"its agent adopts the table at {path}, or creates it if there is none")
    if table.spec.get("bootstrap"):
        yield f"it is filled from {(table.spec['bootstrap'].get('source') or {}).get('path')} before writers may write"
    if table.spec.get("restore"):
        yield "spec.restore.nonce of a new object is not executed"
    yield "writers may write when its condition Ready is True"


def _of_changes(before: Table, after: Table) -> Iterator[str]:
    alone = closing(before, after)
    for one in alone:
        yield f"{one}: running attempts end at their next commit, and go on after the change"
    for field in changed(before, after):
        if field in ("savepoints", "restore") or field.startswith("restore."):
            continue
        if field == "holds":
            yield from _of_holds(before, after)
            continue
        if field.endswith(".runNonce") and field.startswith("services."):
            yield f"spec.{field}: the service runs once, now"
        elif field == "suspend":
            yield "spec.suspend: " + (
                "running attempts end at their next commit" if after.spec.get("suspend") else "writers may start"
            )
        elif not any(f"spec.{field}.".startswith(f"{one}.") for one in alone):
            yield f"spec.{field}: changes"
    gone = {one.get("name") for one in before.spec.get("savepoints") or [] if not one.get("deleteInstant")}
    gone -= {one.get("name") for one in after.spec.get("savepoints") or []}
    kept = {str(one.get("name")) for one in before.spec.get("savepoints") or [] if not one.get("deleteInstant")}
    for one in after.spec.get("savepoints") or []:
        if one.get("deleteInstant") and str(one.get("name")) in kept:
            told = "it is deleted if that is its instant, and the table cannot be restored to it afterwards"
            yield f"spec.savepoints: {one.get('name')} has deleteInstant {one['deleteInstant']}: {told}"
    for name in sorted(map(str, gone)):
        yield f"spec.savepoints: {name} is no longer named; its savepoint stays"


def _of_holds(before: Table, after: Table) -> Iterator[str]:
    old, new = ({str(one.get("name")): one for one in each.spec.get("holds") or []} for each in (before, after))
    for name, one in new.items():
        if name not in old:
            yield f"spec.holds: the files of {one.get('instant') or 'the last commit'} stay for {name}; no writer waits"
        elif old[name] != one:
            yield f"spec.holds: {name} changes; whether all its files are there is looked at again"
    for name in old.keys() - new.keys():
        yield f"spec.holds: {name} ends; the next clean deletes what it has kept"


def _state_of(table: Table) -> Iterator[str]:
    for kind, bad in (("Stalled", "True"), ("Ready", "False")):
        one = table.condition(kind)
        if one.get("status") == bad:
            yield f"now it has {kind}={bad}, {one.get('reason')}: {one.get('message') or 'no message'}"
            return


def _paths(space: Namespace, table: Table) -> Iterator[str]:
    if table.name in space.tables_before:
        return
    mine = str(table.spec.get("path", ""))
    for other in space.tables.values():
        theirs = str(other.spec.get("path", ""))
        if other.name != table.name and naming.overlaps(mine, theirs):
            same = naming.canonical_path(mine) == naming.canonical_path(theirs)
            rule = "one path has one HudiTable" if same else "tables must not be nested"
            yield f"spec.path {mine}: HudiTable {other.name} has {theirs}, and {rule}"


# ---------------------------------------------------------------- writers
def of_writers(space: Namespace, names: Sequence[str], now_ms: int | None = None) -> list[Outlook]:
    """Forecasts for HudiWriters that were accepted. ``now_ms`` None: the current time."""
    asked, fates = _asked(space, names), dict[str, Fate]()
    for table in sorted({space.writers[name].table for name in names}):
        fates |= forecast.of_writers(asked, table, now_ms=_moment(now_ms))
    return [_of_writer(space, space.writers[name], fates[name]) for name in names]


def _moment(now_ms: int | None) -> int:
    return int(this_moment().timestamp() * 1000) if now_ms is None else now_ms


def _asked(space: Namespace, names: Sequence[str]) -> forecast.Space:
    """The same for the operator's planner."""
    return forecast.Space(
        {name: table.raw for name, table in space.tables_before.items()},
        {name: _with_status(table, space.tables_before.get(name)) for name, table in space.tables.items()},
        {name: _with_status(writer, space.writers_before.get(name)) for name, writer in space.writers.items()},
        frozenset(names),
        space.defaults,
    )


def _with_status(after: Thing, before: Thing | None) -> JsonDict:
    """A new object has none, whatever is written in a file."""
    return {**after.raw, "status": before.status if before is not None else {}}


def _of_writer(space: Namespace, writer: Writer, fate: Fate) -> Outlook:
    before = space.writers_before.get(writer.name)
    if before is not None and before.meta.get("deletionTimestamp"):
        return _of(writer, WAITS, "it is being deleted: apply it again when it is gone")
    found, stalls = _now(space, before, writer, fate), fate.stalls
    if stalls is None or found.verdict == STALLS:
        return found
    until = f"until its next attempt is due it {found.verdict}"
    rest = (until, *found.facts) if found.verdict in (RUNS, RESTS) else ()
    return _of(writer, STALLS, _with_settings(stalls.message), *rest)


def _now(space: Namespace, before: Writer | None, writer: Writer, fate: Fate) -> Outlook:
    """Immediate effect on a writer, independent of the outcome of the next attempt."""
    decision = fate.decision
    if decision.kind is Kind.STALLED:
        return _of(writer, STALLS, _with_settings(decision.message))
    if decision.kind is Kind.ACTIVE and before is not None:
        return _of_running(space, before, writer, fate)
    if decision.kind in (Kind.FINISHED, Kind.SUSPENDED):
        return _of(writer, RESTS, _rests(space, before, writer, decision))
    if decision.kind is not Kind.START:
        return _of(writer, WAITS, _waits(space, writer, decision))
    started, taken = f"as attempt {decision.number}", [*_with(writer, fate)]
    if not fate.gate_untold:
        return _of(writer, STARTS, started, *taken)
    now = next(_state_of(space.tables_before[writer.table]))
    if fate.table_repaired:
        now += "; this is corrected"
    said = f"it starts if the table was Ready before, {started}: whether its gate is open is not in its status"
    return _of(writer, UNTOLD, f"HudiTable {writer.table}: {now}", said, *taken)


def _with(writer: Writer, fate: Fate) -> Iterator[str]:
    """Say which fields of the writer come from the defaults of its namespace."""
    executors = (writer.spec.get("executors") or {}).get("instances")
    mine = [field for field in fate.from_defaults if executors or not field.startswith("spec.executors.")]
    if mine:
        yield f"with the defaults of the namespace (ConfigMap {defaults.CONFIG_MAP}): {', '.join(mine)}"


def _with_settings(message: str) -> str:
    return f"{message} ({SETTINGS})" if _MAY_BE_ALLOWED in message else message


def _rests(space: Namespace, before: Writer | None, writer: Writer, decision: Decision) -> str:
    table = space.tables.get(writer.table)
    if decision.kind is Kind.FINISHED:
        again = "a new spec.restartNonce starts another run"
        if writer.spec.get("schedule"):
            again = f"the next run begins with the schedule, {_next(before, writer)}"
        return f"its last run is over ({decision.reason}); {again}"
    if writer.spec.get("suspend"):
        return "spec.suspend is true"
    if table is not None and table.spec.get("suspend"):
        return f"spec.suspend of HudiTable {table.name} is true"
    return f"its first run begins with the schedule, {_next(before, writer)}"


def _restarts(before: Writer, after: Writer) -> bool:
    word = after.spec.get("restartNonce")
    return bool(word) and "executedNonce" in before.status and word != before.status["executedNonce"]


def _next(before: Writer | None, writer: Writer) -> str:
    if before is not None and before.spec.get("schedule") == writer.spec.get("schedule"):
        told = before.status.get("nextScheduleTime")
        if told:
            return f"at {told}"
    schedule = writer.spec.get("schedule") or {}
    return f"{schedule.get('cron')} ({schedule.get('timeZone', 'Etc/UTC')})"


def _of_running(space: Namespace, before: Writer, after: Writer, fate: Fate) -> Outlook:
    number = (before.attempt() or {}).get("number")
    fields = changed(before, after)
    table, now = space.tables.get(after.table), space.tables_before.get(after.table)
    facts = []
    if after.spec.get("suspend") and not before.spec.get("suspend"):
        facts.append(f"spec.suspend: attempt {number} ends at its next commit")
    at_once = [field for field in fields if field.split(".")[0] in _AT_ONCE and field != "suspend"]
    if at_once:
        facts.append(f"{', '.join(f'spec.{field}' for field in at_once)}: for attempt {number}, too")
    later = [field for field in fields if field.split(".")[0] not in (*_AT_ONCE, "restartNonce")]
    if later:
        listed = ", ".join(f"spec.{field}" for field in later)
        facts.append(f"{listed}: from the next attempt on; attempt {number} goes on as it began")
    if fate.defaults_problem:
        facts.append(f"no other attempt follows attempt {number}: {fate.defaults_problem}")
    if "restartNonce" in fields and _restarts(before, after):
        facts.append(f"spec.restartNonce: another run when attempt {number} has ended")
    if table is not None and now is not None:
        if table.spec.get("suspend") and not now.spec.get("suspend"):
            facts.append(f"spec.suspend of HudiTable {table.name}: attempt {number} ends at its next commit")
        facts += [
            f"{one} of HudiTable {table.name}: attempt {number} ends at its next commit, and another one follows"
            for one in closing(now, table)
        ]
    if fate.table_stalls is not None:
        stall = fate.table_stalls
        facts.append(f"HudiTable {after.table} is stalled ({stall.reason}: {stall.message}): no other attempt starts")
    return _of(after, RUNS, *(facts or [f"attempt {number} runs"]))


def _waits(space: Namespace, writer: Writer, decision: Decision) -> str:
    """Reason why a writer that is due waits; statuses are quoted where they say more."""
    table, now = space.tables.get(writer.table), space.tables_before.get(writer.table)
    if table is None:
        return f"there is no HudiTable {writer.table} in namespace {writer.namespace}; it starts when there is"
    if decision.retry_ms:
        return f"its last attempt failed, and is repeated at {conditions.rfc3339(decision.retry_ms)}"
    if decision.reason == "TableStalled":
        return decision.message
    if now is None:
        return f"HudiTable {table.name} is new: it waits until its condition Ready is True"
    if decision.reason in _COMES_FIRST:
        changes = closing(now, table)
        if changes:
            return f"{changes[0]} of HudiTable {table.name} comes first: writers start again after the change"
    if decision.reason in (*_COMES_FIRST, "TableBootstrap", "TableNotReady"):
        if not now.is_("Ready"):
            said = next(_state_of(now), "it has no condition Ready yet")
            return f"HudiTable {table.name}: {said}"
        return decision.message
    for one in now.status.get("settling") or []:
        # The planner gets no pods and nodes: the status says who awaits a proof.
        who = one.get("attempt") or one.get("incarnation")
        if decision.blocked_by and decision.blocked_by in (one.get("attempt"), one.get("incarnation")):
            return f"attempt {who} is {one.get('phase')}: {one.get('waitingFor') or one.get('reason')}"
    return decision.message


# ---------------------------------------------------------------- defaults of a namespace
def defaults_of(config_map: JsonDict | None, loads: Callable[[str], object]) -> Defaults:
    """Defaults in a ConfigMap; None: there is none.

    ``loads``: reads YAML, for which the operator has a package that need not be here. Raises
    ValueError.
    """
    return read_defaults(config_map, loads)


def said_of_defaults(space: Mapping[str, Writer]) -> Defaults | None:
    """Problem that the operator reports for the namespace's existing defaults; None: no problem.

    Its reader of YAML detects more than kubectl's: anchors, and names that occur twice.
    """
    for writer in space.values():
        said = writer.condition("Stalled")
        message = str(said.get("message") or "")
        if said.get("reason") == INVALID_DEFAULTS and "together with this HudiWriter" not in message:
            return Defaults(problem=message)
    return None


def of_defaults(raw: JsonDict, before: JsonDict | None, space: Namespace) -> Outlook:
    """Forecast for the ConfigMap with the defaults, and the writers that it affects."""
    thing = Thing({**raw, "kind": "ConfigMap"})
    if space.defaults.problem:
        return _of(thing, STALLS, space.defaults.problem, "no attempt of a HudiWriter of the namespace starts")
    same = before is not None and _text(before) == _text(raw)
    names = sorted(space.writers)
    more = [f"and {len(names) - 5} more"] if len(names) > 5 else []
    fact = f"from their next attempt on, for the HudiWriters {', '.join([*names[:5], *more]) or 'of the namespace'}"
    return _of(thing, SAME if same else NEW if before is None else CHANGES, *([] if same else [fact]))


def _text(config_map: JsonDict) -> object:
    return (config_map.get("data") or {}).get(defaults.KEY)

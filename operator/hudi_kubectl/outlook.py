"""What would happen to tables and writers if they were applied, as far as the API shows it.

The rules are those of the operator's planner (`plan/writers/admission.py`), in its order, for what
a spec and a status say. What they do not say is in `UNKNOWN`.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hudi_contract import allowed_options as allowed
from hudi_contract import defaults
from hudi_contract.options import OF_THE_TABLE, OWNED, Rule, rule_for, spellings
from hudi_contract.secret_names import REDACTED, is_secret
from hudi_kubectl.objects import FAILED, SUCCEEDED, JsonDict, Table, Thing, Writer

REFUSED, STALLS, WAITS, STARTS, RUNS = "refused", "stalls", "waits", "starts now", "goes on"
RESTS, NEW, CHANGES, SAME, ACCEPTED = "does not start", "is new", "changes", "is unchanged", "is accepted"
NOT_ASKED = "not asked"
UNKNOWN = (
    "the store: whether it is reached with these credentials, and what is at a path",
    "the data: whether rows fit the table",
    "settings of the operator's chart: path prefixes of the namespace, and additions to the allowed options",
    "whether the owners of Secrets and ServiceAccounts consent (hudioperator.io/allowed-tables)",
    "room for pods: quotas, nodes, whether an image can be pulled",
    "HudiTables of other namespaces with the same path",
)
"""What nobody can tell by reading the API on a user's rights."""
_CHANGED_ALONE = (
    "metadataTable",
    "hudiVersion",
    "fencing.mode",
    "fencing.drainSeconds",
    "lock",
    "concurrency.mode",
    "concurrency.insertConflicts",
)
"""Fields whose change waits until no writer runs; so do a new savepoint and a new restore."""
_BESIDE = ("lock.suspectSeconds", "lock.maxHoldSeconds")
_AT_ONCE = ("startDeadlineSeconds", "readyDeadlineSeconds", "commitDeadlineSeconds", "suspend", "podHistory", "stop")
"""Fields of a HudiWriter that apply to the attempt that runs."""
_VALUE_LIMIT = 80
DEFAULTS = f"ConfigMap {defaults.CONFIG_MAP}, {defaults.KEY}"
"""How the operator's messages about the defaults of a namespace begin."""


@dataclass(frozen=True)
class Outlook:
    """What would happen to one object. ``facts``: why, or what for."""

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
class Defaults:
    """Those of a namespace for its writers, as they would be. ``given``: a part of a writer's spec.

    ``problem``: why they cannot be used, and no attempt starts. ``refused``: by writer, what the
    API server says of it with them under its own fields.
    """

    given: JsonDict = dataclasses.field(default_factory=dict)
    problem: str = ""
    refused: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def told(self, writer: Writer) -> str:
        """Why no attempt of a writer starts with them; empty: one does."""
        one = self.refused.get(writer.name)
        return self.problem or (f"{DEFAULTS}: together with this HudiWriter: {one}" if one else "")


@dataclass(frozen=True)
class Namespace:
    """Tables and writers of one namespace, by name: as they are, and as they would be."""

    tables_before: Mapping[str, Table]
    writers_before: Mapping[str, Writer]
    tables: Mapping[str, Table]
    writers: Mapping[str, Writer]
    defaults: Defaults = Defaults()


# ---------------------------------------------------------------- tables
def changed(before: Thing, after: Thing) -> list[str]:
    """Fields of the spec that differ."""
    return sorted(_differences(before.spec, after.spec))


def _differences(before: JsonDict, after: JsonDict, at: str = "") -> Iterator[str]:
    for name in {*before, *after}:
        old, new = before.get(name), after.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            yield from _differences(old, new, f"{at}{name}.")
        elif old != new:
            yield f"{at}{name}"


def closing(before: Table, after: Table) -> list[str]:
    """Changes that wait until no writer runs: field and value."""
    found = [
        f"spec.{field}"
        for field in changed(before, after)
        if field not in _BESIDE and any(field == one or field.startswith(f"{one}.") for one in _CHANGED_ALONE)
    ]
    known = {one.get("name") for one in before.spec.get("savepoints") or []}
    found += [
        f"spec.savepoints: the savepoint {one.get('name')}"
        for one in after.spec.get("savepoints") or []
        if one.get("name") not in known
    ]
    wanted = after.spec.get("restore") or {}
    if wanted and wanted.get("nonce") != (before.spec.get("restore") or {}).get("nonce"):
        found.append(f"spec.restore: the restore to {wanted.get('savepoint')}, which undoes all later commits")
    return found


def of_table(space: Namespace, name: str) -> Outlook:
    """What would happen to a HudiTable that was accepted."""
    after, before = space.tables[name], space.tables_before.get(name)
    wrong = [*_options_of_table(after), *_paths(space, after)]
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
        if field.endswith(".runNonce") and field.startswith("services."):
            yield f"spec.{field}: the service runs once, now"
        elif field == "suspend":
            yield "spec.suspend: " + (
                "running attempts end at their next commit" if after.spec.get("suspend") else "writers may start"
            )
        elif f"spec.{field}" not in alone:
            yield f"spec.{field}: changes"
    gone = {one.get("name") for one in before.spec.get("savepoints") or []}
    gone -= {one.get("name") for one in after.spec.get("savepoints") or []}
    for name in sorted(map(str, gone)):
        yield f"spec.savepoints: {name} is no longer named; its savepoint stays"


def _state_of(table: Table) -> Iterator[str]:
    for kind, bad in (("Stalled", "True"), ("Ready", "False")):
        one = table.condition(kind)
        if one.get("status") == bad:
            yield f"now it has {kind}={bad}, {one.get('reason')}: {one.get('message') or 'no message'}"
            return


def _paths(space: Namespace, table: Table) -> Iterator[str]:
    if table.name in space.tables_before:
        return
    mine = _path(table)
    for other in space.tables.values():
        theirs = _path(other)
        if other.name != table.name and (f"{mine}/".startswith(f"{theirs}/") or f"{theirs}/".startswith(f"{mine}/")):
            rule = "one path has one HudiTable" if mine == theirs else "tables must not be nested"
            yield f"spec.path {table.spec.get('path')}: HudiTable {other.name} has {other.spec.get('path')}, and {rule}"


def _path(table: Table) -> str:
    scheme, sign, rest = str(table.spec.get("path", "")).partition("://")
    scheme = "s3a" if scheme.lower() in ("s3", "s3n") else scheme.lower()
    return f"{scheme}{sign}{re.sub('/+', '/', rest).strip('/')}"


# ---------------------------------------------------------------- options
def _options_of_table(table: Table) -> Iterator[str]:
    yield from _options(
        table.spec.get("hudiOptions"), OWNED, (*allowed.ALLOWED_HUDI, *allowed.ALLOWED_OF_THE_TABLE), "spec.hudiOptions"
    )


def _options_of_writer(writer: Writer) -> Iterator[str]:
    yield from _options(
        writer.spec.get("hudiOptions"), (*OWNED, *OF_THE_TABLE), allowed.ALLOWED_HUDI, "spec.hudiOptions"
    )
    yield from _options(writer.spec.get("sparkConf"), allowed.OWNED_SPARK, allowed.ALLOWED_SPARK, "spec.sparkConf")


def _options(
    given: Mapping[str, str] | None, owned: Sequence[Rule], listed: Sequence[str], field: str
) -> Iterator[str]:
    """Options that the operator owns, or that are on no list of ours."""
    for name, value in sorted((given or {}).items()):
        rule = rule_for(name, owned)
        shown = REDACTED if is_secret(name) else str(value)[:_VALUE_LIMIT]
        if rule is not None:
            whose = "of the table" if rule in OF_THE_TABLE else "owned by the operator"
            yield f"{field}[{name!r}] = {shown!r}: {whose} (rule {rule.pattern}): {rule.why}"
        elif not all(any(fnmatch.fnmatchcase(form, p.lower()) for p in listed) for form in spellings(name)):
            yield (
                f"{field}[{name!r}] = {shown!r}: not on the allow-list, unless an administrator has added it to the "
                "chart's options.allow"
            )


# ---------------------------------------------------------------- writers
def is_active(writer: Writer) -> bool:
    """Whether an attempt of it has started and not ended."""
    last = writer.attempt()
    return last is not None and not last.get("endTime")


def of_writers(space: Namespace, names: Sequence[str]) -> list[Outlook]:
    """What would happen to HudiWriters that were accepted."""
    found = {name: _own_state(space, space.writers[name]) for name in names}
    due = [name for name, outlook in found.items() if outlook is None]
    queued = [w.name for w in space.writers.values() if w.name not in found and w.status.get("queue")]
    running = {w.name for w in space.writers.values() if is_active(w)}
    ahead: list[Writer] = []
    for writer in sorted((space.writers[name] for name in (*due, *queued)), key=_order):
        blocked = _blocked(space, writer, running, ahead)
        if blocked:
            ahead.append(writer)
        else:
            running.add(writer.name)
        if writer.name in due:
            started = f"as attempt {int(writer.status.get('attempt') or 0) + 1}"
            found[writer.name] = _of(writer, WAITS if blocked else STARTS, blocked or started, *_with(space, writer))
    return [outlook for name in names if (outlook := found[name]) is not None]


def _with(space: Namespace, writer: Writer) -> Iterator[str]:
    """What it has of the defaults of its namespace."""
    fields = defaults.under(writer.spec, space.defaults.given).fields
    mine = [one for one in fields if instances(writer) or not one.startswith("spec.executors.")]
    if mine:
        yield f"with the defaults of the namespace (ConfigMap {defaults.CONFIG_MAP}): {', '.join(mine)}"


def instances(writer: Writer) -> int:
    """How many executors it asks for."""
    return int((writer.spec.get("executors") or {}).get("instances") or 0)


def _order(writer: Writer) -> tuple[int, str, str, str]:
    """As the operator's queue, but for writers that were overtaken often."""
    since = str((writer.status.get("queue") or {}).get("since") or "~")
    return -int(writer.spec.get("priority") or 0), since, str(writer.meta.get("creationTimestamp") or "~"), writer.name


def _own_state(space: Namespace, writer: Writer) -> Outlook | None:
    """What its own state says, in the operator's order; None: it is due to start."""
    before = space.writers_before.get(writer.name)
    table = space.tables.get(writer.table)
    if before is not None and before.meta.get("deletionTimestamp"):
        return _of(writer, WAITS, "it is being deleted: apply it again when it is gone")
    if before is not None and is_active(before):
        return _of_running(space, before, writer)
    if before is not None and before.state in (SUCCEEDED, FAILED) and not _restarts(writer):
        again = "a new spec.restartNonce starts another run"
        if writer.spec.get("schedule"):
            again = f"the next run begins with the schedule, {_next(before, writer)}"
        return _of(writer, RESTS, f"its last run is over ({before.state}); {again}")
    if writer.spec.get("suspend"):
        return _of(writer, RESTS, "spec.suspend is true")
    if table is not None and table.spec.get("suspend"):
        return _of(writer, RESTS, f"spec.suspend of HudiTable {table.name} is true")
    if writer.spec.get("schedule") and not _restarts(writer) and not _goes_on(before):
        return _of(writer, RESTS, f"its first run begins with the schedule, {_next(before, writer)}")
    told = space.defaults.told(writer)
    wrong = [told] if told else [*_options_of_writer(writer)]
    if not told and table is not None and writer.spec.get("partitions") and not table.spec.get("partitionFields"):
        given = list(writer.spec["partitions"])[:5]
        wrong.append(f"spec.partitions = {given}: HudiTable {table.name} has no partitionFields")
    if wrong:
        return _of(writer, STALLS, *wrong)
    retry = before.status.get("nextRetryTime") if before is not None else None
    if retry and not _restarts(writer):
        return _of(writer, WAITS, f"its last attempt failed, and is repeated at {retry}")
    return None


def _restarts(writer: Writer) -> bool:
    word = writer.spec.get("restartNonce")
    return bool(word) and "executedNonce" in writer.status and word != writer.status["executedNonce"]


def _goes_on(before: Writer | None) -> bool:
    return before is not None and bool(before.attempts()) and before.state not in (SUCCEEDED, FAILED, "Scheduled")


def _next(before: Writer | None, writer: Writer) -> str:
    if before is not None and before.spec.get("schedule") == writer.spec.get("schedule"):
        told = before.status.get("nextScheduleTime")
        if told:
            return f"at {told}"
    schedule = writer.spec.get("schedule") or {}
    return f"{schedule.get('cron')} ({schedule.get('timeZone', 'Etc/UTC')})"


def _of_running(space: Namespace, before: Writer, after: Writer) -> Outlook:
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
    told = space.defaults.told(after)
    if told:
        facts.append(f"no other attempt follows attempt {number}: {told}")
    if "restartNonce" in fields and _restarts(after):
        facts.append(f"spec.restartNonce: another run when attempt {number} has ended")
    if table is not None and now is not None:
        if table.spec.get("suspend") and not now.spec.get("suspend"):
            facts.append(f"spec.suspend of HudiTable {table.name}: attempt {number} ends at its next commit")
        facts += [
            f"{one} of HudiTable {table.name}: attempt {number} ends at its next commit, and another one follows"
            for one in closing(now, table)
        ]
    return _of(after, RUNS, *(facts or [f"attempt {number} runs"]))


def _blocked(space: Namespace, writer: Writer, running: set[str], ahead: Sequence[Writer]) -> str:
    """What a writer that is due waits for; empty: nothing that can be seen."""
    return next(filter(None, _reasons(space, writer, running, ahead)), "")


def _reasons(space: Namespace, writer: Writer, running: set[str], ahead: Sequence[Writer]) -> Iterator[str]:
    table, now = space.tables.get(writer.table), space.tables_before.get(writer.table)
    if table is None:
        yield f"there is no HudiTable {writer.table} in namespace {writer.namespace}; it starts when there is"
        return
    if now is None:
        yield f"HudiTable {table.name} is new: it waits until its condition Ready is True"
        return
    yield next((f"HudiTable {table.name}: {fact}" for fact in _state_of(now)), "")
    if not now.is_("Ready"):
        yield f"HudiTable {table.name} has no condition Ready yet"
    for one in closing(now, table):
        yield f"{one} of HudiTable {table.name} comes first: writers start again after the change"
    own = [one.get("pod") for one in writer.attempts()]
    for one in now.status.get("settling") or []:
        if one.get("pod") in own:
            yield f"its attempt of pod {one['pod']} is {one.get('phase')}: {one.get('waitingFor') or one.get('reason')}"
    yield _source(space, writer)
    others = sorted(w.name for w in map(space.writers.get, running - {writer.name}) if w and w.table == table.name)
    concurrency = table.spec.get("concurrency") or {}
    most = 1 if concurrency.get("mode") == "SingleWriter" else int(concurrency.get("maxWriters") or 16)
    mine = [w for w in ahead if w.table == table.name]
    if len(others) >= most:
        yield f"{len(others)} of {most} writers of HudiTable {table.name} run or start: {', '.join(others[:5])}"
    if concurrency.get("admission") == "DisjointPartitions":
        for other in [*(space.writers[name] for name in others), *mine]:
            doing = "runs" if other.name in others else "comes first"
            common = _in_common(table, writer, other, space.writers_before.get(other.name))
            if common:
                yield f"{other.name} {doing} and may write the same partitions: {common[0]} here, {common[1]} there"


def _source(space: Namespace, writer: Writer) -> str:
    reference = ((writer.spec.get("source") or {}).get("hudi") or {}).get("tableRef") or {}
    name = reference.get("name")
    if not name:
        return ""
    if name not in space.tables:
        return f"HudiTable {name}, the source, does not exist in this namespace"
    now = space.tables_before.get(name)
    if now is None or not now.status.get("timeline"):
        return f"HudiTable {name}, the source, has not been created yet"
    return ""


def _in_common(table: Table, mine: Writer, other: Writer, before: Writer | None) -> tuple[str, str] | None:
    """The first two patterns of partitions that meet; None: there are none."""
    theirs = other.spec.get("partitions") or []
    if is_active(other) and before is not None and before.spec.get("partitions") != other.spec.get("partitions"):
        theirs = []  # its attempt began with other ones
    fields = [str(one) for one in table.spec.get("partitionFields") or []]
    for one in mine.spec.get("partitions") or ["*"]:
        for another in theirs or ["*"]:
            if meet(_plain(one, fields), _plain(another, fields)):
                return (one if mine.spec.get("partitions") else "any"), (another if theirs else "any")
    return None


def _plain(pattern: str, fields: Sequence[str]) -> str:
    """Without names of fields, which are optional."""
    levels = []
    for level in pattern.split("/"):
        name, sign, value = level.partition("=")
        levels.append(value if sign and name in fields else level)
    return "/".join(levels)


def meet(one: str, another: str) -> bool:
    """Whether some text matches both patterns: `*` is any characters, `?` is one."""
    left, seen = [(0, 0)], {(0, 0)}
    while left:
        a, b = left.pop()
        if a == len(one) and b == len(another):
            return True
        steps = []
        if a < len(one) and one[a] == "*":
            steps.append((a + 1, b))
            if b < len(another):
                steps.append((a, b + 1))
        if b < len(another) and another[b] == "*":
            steps.append((a, b + 1))
            if a < len(one):
                steps.append((a + 1, b))
        if a < len(one) and b < len(another) and (one[a] == another[b] or "?" in (one[a], another[b])):
            steps.append((a + 1, b + 1))
        for step in steps:
            if step not in seen:
                seen.add(step)
                left.append(step)
    return False


# ---------------------------------------------------------------- defaults of a namespace
def defaults_problem(given: object) -> str:
    """Why these cannot be defaults, as far as it shows without a writer; empty: they can.

    Options are judged as those of a writer; the values of other fields are the API server's.
    """
    found = defaults.problem(given)
    settings = given.get("sparkConf") if isinstance(given, dict) else None
    if not found and settings:
        found = "; ".join(_options(settings, allowed.OWNED_SPARK, allowed.ALLOWED_SPARK, "sparkConf"))
    return f"{DEFAULTS}: {found}" if found else ""


def of_defaults(raw: JsonDict, before: JsonDict | None, space: Namespace) -> Outlook:
    """What would happen to the ConfigMap itself, and to whom it matters."""
    thing = Thing({**raw, "kind": "ConfigMap"})
    if space.defaults.problem:
        return _of(thing, STALLS, space.defaults.problem, "no attempt of a HudiWriter of the namespace starts")
    same = before is not None and (before.get("data") or {}).get(defaults.KEY) == (raw.get("data") or {}).get(
        defaults.KEY
    )
    names = sorted(space.writers)
    more = [f"and {len(names) - 5} more"] if len(names) > 5 else []
    fact = f"from their next attempt on, for the HudiWriters {', '.join([*names[:5], *more]) or 'of the namespace'}"
    return _of(thing, SAME if same else NEW if before is None else CHANGES, *([] if same else [fact]))

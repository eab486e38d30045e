"""Commands that change a table or a writer: each is one merge patch of one object."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from hudi_kubectl import finding, waiting
from hudi_kubectl.changing import SPEC, Fields, How, change, confirm, nonce, told
from hudi_kubectl.cluster import Failed, Kubectl
from hudi_kubectl.objects import FAILED, RUNNING, JsonDict, Table, Thing, Writer, now, when
from hudi_kubectl.screen import Screen
from hudi_kubectl.waiting import Seen, waits

COMPLETED, PENDING, DELETED = "Completed", "Pending", "Deleted"
SERVICES = {
    "clean": "clean",
    "archive": "archive",
    "compaction": "compaction",
    "compact": "compaction",
    "clustering": "clustering",
    "cluster": "clustering",
    "ttl": "ttl",
}
"""Words that a user may type for a table service, and its name in the spec."""
OFF_BY_DEFAULT = ("clustering", "ttl")
INDEXES = ("ColumnStats",)
"""Indexes that a metadata table may have besides its list of files."""
UNFREEZE, TAKE_OVER = "hudioperator.io/unfreeze", "hudioperator.io/take-over"
FROZEN = ("Frozen", "OtherLockAuthority")
"""Reasons of Stalled that end with an annotation."""
MOST_SAVEPOINTS = 16
MOST_HOLDS, LONGEST_HOLD = 16, 604_800
GRANTED = "Granted"
NOTHING_HELD = ("Refused", "Expired")
"""Outcomes of a hold that keeps nothing."""
UNPROVEN = ("Fenced", "Terminating")
"""Phases of settling in which the death is not proven yet."""
DUPLICATE_PATH = "DuplicatePath"
PENDING_INSTANTS, TABLE_EXISTS = "PendingInstants", "TableExists"
"""Reasons of Stalled that end with a decision about an adoption."""
_UNFREEZE_WITH = re.compile(rf"{re.escape(UNFREEZE)}=(\d+(?:-\d+)?)")
_TAKE_OVER_WITH = re.compile(rf"{re.escape(TAKE_OVER)}=(\d+(?:-\d+)?)")
_NOT_PROVEN = re.compile(r"pod (\S+) \(uid ([0-9a-f-]{36})\) on (?:node (\S+)|an unknown node) is not proven dead")


def _found(entries: Any, field: str, value: str) -> JsonDict:
    """The entry of a list with that value; empty when there is none."""
    return next((dict(one) for one in entries or [] if one.get(field) == value), {})


# ---------------------------------------------------------------- writers, and whole tables
def suspend(kubectl: Kubectl, screen: Screen, name: str, value: bool, how: How) -> int:
    """Set spec.suspend of a writer or a table."""
    thing = finding.named(kubectl, name)
    look = _ended if value else _runs
    if bool(thing.spec.get("suspend")) == value:
        screen.tell(f"{thing.kind} {thing.name}: spec.suspend is {str(value).lower()} already")
        return _as_it_is(kubectl, screen, thing, look, how)
    changed = change(kubectl, thing, lambda _: {(SPEC, "suspend"): value}, how)
    done = " is being suspended: it ends at its next commit" if value else " goes on"
    if isinstance(thing, Table):
        done = " is being suspended: its writers end at their next commits" if value else " takes writes again"
    told(screen, changed, how, done)
    return waiting.follow(kubectl, screen, thing, look, how)


def _as_it_is(kubectl: Kubectl, screen: Screen, thing: Thing, look: Callable[[Thing], Seen], how: How) -> int:
    """Nothing has to be changed: the object for programs, and what is still to be waited for."""
    if screen.as_json and not how.wait:
        screen.give(thing.shown)
    return waiting.follow(kubectl, screen, thing, look, how)


def _ended(thing: Thing) -> Seen:
    if isinstance(thing, Writer):
        last = thing.attempt() or {}
        running = [f"attempt {last.get('number')}"] if last and not last.get("endTime") else []
    else:
        count = (thing.status.get("writers") or {}).get("running") or 0
        running = [f"{count} writer{'' if count == 1 else 's'}"] if count else []
    if running or not thing.looked_at:
        return Seen(f"waits for {running[0]} to end" if running else "the operator has not looked at it yet")
    if isinstance(thing, Writer):
        return Seen("its attempt has ended", is_over=True)
    # An attempt has ended in status before its process is proven dead.
    dead = [str(one.get("attempt") or one.get("incarnation")) for one in thing.status.get("settling") or []]
    if dead:
        return Seen(f"waits for {dead[0]}, which has died, to be settled")
    return Seen("nothing of it runs any more", is_over=True)


def _runs(thing: Thing) -> Seen:
    ready = thing.condition("Ready")
    said = f"Ready is {ready.get('status', 'Unknown')}, {ready.get('reason', 'no reason')}"
    if not thing.looked_at:
        return Seen("the operator has not looked at it yet")
    if thing.condition("Stalled").get("status") == "True":
        return Seen(f"{said}: {thing.condition('Stalled').get('message', '')}", is_over=True, is_well=False)
    # A writer of a suspended table is Ready, as it should be, and does not go on.
    return Seen(said, is_over=ready.get("status") == "True" and ready.get("reason") != "Suspended")


def restart(kubectl: Kubectl, screen: Screen, name: str, how: How) -> int:
    """Another run of a writer: a new spec.restartNonce."""
    thing = finding.named(kubectl, name)
    if not isinstance(thing, Writer):
        raise Failed(f"{name} is a HudiTable; writers are restarted")
    word = f"{now():%Y-%m-%dT%H:%M:%SZ}"
    changed = change(kubectl, thing, lambda _: {(SPEC, "restartNonce"): word}, how)
    told(screen, changed, how, f": another run is asked for (spec.restartNonce: {word})")
    return 0


# ---------------------------------------------------------------- savepoints and restores
def savepoint(kubectl: Kubectl, screen: Screen, name: str, called: str, how: How) -> int:
    """A new name in spec.savepoints. ``called``: empty: a name made of the time."""
    table = finding.table_named(kubectl, name)
    called = called or f"{now():%Y-%m-%d-%H%M%S}"

    def fields(thing: Thing) -> Fields:
        known = list(thing.spec.get("savepoints") or [])
        if _found(known, "name", called):
            outcome = _found(thing.status.get("savepoints"), "name", called).get("outcome", PENDING)
            raise Failed(
                f"spec.savepoints of HudiTable {thing.name}: {called!r} is there already ({outcome}): a name is used "
                "once, take another one"
            )
        if len(known) >= MOST_SAVEPOINTS:
            raise Failed(
                f"spec.savepoints of HudiTable {thing.name}: {len(known)} names, and there may be {MOST_SAVEPOINTS}: "
                "remove one first; its savepoint stays"
            )
        return {(SPEC, "savepoints"): [*known, {"name": called}]}

    changed = change(kubectl, table, fields, how)
    told(screen, changed, how, f": savepoint {called} is asked for; running writers end at their next commit first")
    return waiting.follow(kubectl, screen, table, _savepoint_of(called), how)


def _savepoint_of(called: str) -> Callable[[Thing], Seen]:
    def look(thing: Thing) -> Seen:
        if not _found(thing.spec.get("savepoints"), "name", called):
            return Seen(f"savepoint {called}: its name is gone from spec.savepoints", is_over=True, is_well=False)
        one = _found(thing.status.get("savepoints"), "name", called)
        outcome = one.get("outcome", PENDING)
        if outcome == COMPLETED:
            said = f"of commit {one.get('instant')}, taken at {one.get('time')}"
            return Seen(f"savepoint {called}: {outcome}, {said}", is_over=True)
        if outcome == FAILED:
            said = f"{one.get('message') or 'no message'}; another try needs another name"
            return Seen(f"savepoint {called}: {outcome}: {said}", is_over=True, is_well=False)
        return Seen(f"savepoint {called}: {outcome}: {waits(Table(thing.raw))}")

    return look


def delete_savepoint(kubectl: Kubectl, screen: Screen, name: str, called: str, how: How) -> int:
    """The savepoint's own instant as deleteInstant of its entry in spec.savepoints."""
    table = finding.table_named(kubectl, name)

    def fields(thing: Thing) -> Fields:
        one = _found(thing.status.get("savepoints"), "name", called)
        if not _found(thing.spec.get("savepoints"), "name", called) or not one:
            raise Failed(
                f"spec.savepoints of HudiTable {thing.name}: {called!r} is not there, or the operator has not looked "
                "at it yet: add its name first, so that its instant is in the status"
            )
        if one.get("outcome") != COMPLETED:
            raise Failed(f"--name {called}: it is {one.get('outcome')}, and only one that is {COMPLETED} is deleted")
        if (thing.spec.get("restore") or {}).get("savepoint") == called:
            raise Failed(f"spec.restore of HudiTable {thing.name} names {called!r}: remove restore first")
        wanted = [
            {**each, "deleteInstant": one["instant"]} if each.get("name") == called else each
            for each in thing.spec.get("savepoints") or []
        ]
        return {(SPEC, "savepoints"): wanted}

    fields(table)  # what is refused is not asked about
    confirm(
        f"Savepoint {called} of HudiTable {table.name} is deleted: the table cannot be restored to it afterwards, and "
        "a clean deletes what it alone has kept.",
        how,
    )
    changed = change(kubectl, table, fields, how)
    told(screen, changed, how, f": savepoint {called} is to be deleted")
    return waiting.follow(kubectl, screen, table, _deletion_of(called), how)


def _deletion_of(called: str) -> Callable[[Thing], Seen]:
    def look(thing: Thing) -> Seen:
        one = _found(thing.status.get("savepoints"), "name", called)
        if one.get("outcome") == DELETED:
            return Seen(f"savepoint {called}: {DELETED}", is_over=True)
        if not _found(thing.spec.get("savepoints"), "name", called).get("deleteInstant"):
            return Seen(f"savepoint {called}: its deletion is no longer asked for", is_over=True, is_well=False)
        said = str(one.get("message") or "the agent has not looked at it yet")
        refused = said.startswith("not deleted:")
        return Seen(f"savepoint {called}: {said}", is_over=refused, is_well=not refused)

    return look


def restore(kubectl: Kubectl, screen: Screen, name: str, to: str, remove_later: bool, how: How) -> int:
    """Take a table back to a savepoint: spec.restore with a new nonce."""
    table, word = finding.table_named(kubectl, name), nonce()

    def fields(thing: Thing) -> Fields:
        later = _later_savepoints(thing, to, how)
        if later and not remove_later:
            raise Failed(
                f"spec.savepoints of HudiTable {thing.name}: {', '.join(later)} {'is' if len(later) == 1 else 'are'} "
                f"later than {to!r}: a restore undoes them with their commits, so their names have to go first; "
                "--remove-later does both in one change"
            )
        wanted: dict[tuple[str, ...], Any] = {(SPEC, "restore"): {"savepoint": to, "nonce": word}}
        if later:
            kept = [one for one in thing.spec.get("savepoints") or [] if one.get("name") not in later]
            wanted[SPEC, "savepoints"] = kept
        return wanted

    fields(table)  # what is refused is not asked about
    confirm(_what_a_restore_undoes(table, to), how)
    changed = change(kubectl, table, fields, how)
    told(screen, changed, how, f": the restore to savepoint {to} is asked for (spec.restore.nonce: {word})")
    return waiting.follow(kubectl, screen, table, _restore_of(to, word), how)


def _later_savepoints(thing: Thing, to: str, how: How) -> list[str]:
    """Names in the spec that are later than the savepoint ``to``, which must have been taken."""
    names = [str(one.get("name")) for one in thing.spec.get("savepoints") or []]
    known = {str(one.get("name")): dict(one) for one in thing.status.get("savepoints") or []}
    if to not in names:
        raise Failed(
            f"--savepoint {to}: it is none of spec.savepoints of HudiTable {thing.name} "
            f"({', '.join(names) or 'which has none'}): a table is restored to one of its savepoints"
        )
    outcome = known.get(to, {}).get("outcome", PENDING)
    if outcome != COMPLETED:
        raise Failed(f"--savepoint {to}: it is {outcome}, and a table is restored to one that is {COMPLETED}")
    going_on = thing.status.get("restore") or {}
    if going_on.get("outcome") == RUNNING or (going_on.get("outcome") == PENDING and not how.force):
        raise Failed(
            f"spec.restore of HudiTable {thing.name}: the restore to {going_on.get('savepoint')!r} is "
            f"{going_on.get('outcome')}"
            + ("; --force replaces it, as it has not begun" if going_on["outcome"] == PENDING else "")
        )
    boundary = str(known[to].get("boundaryCompletionTime") or "")
    return [
        one
        for one in names
        if one != to
        and known.get(one, {}).get("outcome") not in (FAILED, DELETED)
        and str(known.get(one, {}).get("boundaryCompletionTime") or "~") > boundary
    ]


def _what_a_restore_undoes(table: Table, to: str) -> str:
    saved = _found(table.status.get("savepoints"), "name", to)
    boundary = str(saved.get("boundaryCompletionTime") or "")
    gone = [one for one in table.commits() if str(one.get("completionTime") or "") > boundary]
    more = " or more" if gone and len(gone) == len(table.commits()) else ""
    at = when(boundary)
    since = f"{at:%Y-%m-%d %H:%M:%S} UTC" if at is not None else "its savepoint"
    return (
        f"HudiTable {table.name} is taken back to {since}: {len(gone)}{more} commits that completed since then are "
        "undone, and cannot be recovered."
    )


def _restore_of(to: str, word: str) -> Callable[[Thing], Seen]:
    def look(thing: Thing) -> Seen:
        one = thing.status.get("restore") or {}
        if one.get("nonce") != word:
            if (thing.spec.get("restore") or {}).get("nonce") != word:
                return Seen(f"restore to {to}: spec.restore has another nonce by now", is_over=True, is_well=False)
            return Seen(f"restore to {to}: {waits(Table(thing.raw))}")
        outcome = one.get("outcome")
        if outcome == COMPLETED:
            return Seen(f"restore to {to}: {outcome}, {one.get('undone', 0)} instants are undone", is_over=True)
        if outcome in (FAILED, "NotExecuted"):
            said = one.get("message") or "nothing was changed"
            return Seen(f"restore to {to}: {outcome}: {said}", is_over=True, is_well=False)
        if outcome == RUNNING:
            said = f": {one['message']}" if one.get("message") else ""
            return Seen(f"restore to {to}: {outcome}, {one.get('undone', 0)} instants to undo{said}")
        return Seen(f"restore to {to}: {outcome}: {waits(Table(thing.raw))}")

    return look


# ---------------------------------------------------------------- holds
def hold(
    kubectl: Kubectl,
    screen: Screen,
    name: str,
    called: str,
    *,
    seconds: float | None,
    instant: str,
    reader: str,
    how: How,
) -> int:
    """A new name in spec.holds.

    ``called``: empty: a name made of the time; ``seconds``: None: the default.
    """
    table = finding.table_named(kubectl, name)
    called = called or f"{now():%Y-%m-%d-%H%M%S}"
    if seconds is not None and not 60 <= seconds <= LONGEST_HOLD:
        raise Failed(f"--for {seconds:.0f}s: a hold lasts for 60 to {LONGEST_HOLD} seconds (7 days)")
    asked = {"name": called, "instant": instant, "durationSeconds": int(seconds or 0), "reader": reader}

    def fields(thing: Thing) -> Fields:
        known = list(thing.spec.get("holds") or [])
        if _found(known, "name", called):
            outcome = _found(thing.status.get("holds"), "name", called).get("outcome", PENDING)
            raise Failed(
                f"spec.holds of HudiTable {thing.name}: {called!r} is there already ({outcome}): take another name"
            )
        if len(known) >= MOST_HOLDS:
            over = [one["name"] for one in thing.status.get("holds") or [] if one.get("outcome") in NOTHING_HELD]
            raise Failed(
                f"spec.holds of HudiTable {thing.name}: {len(known)} names, and there may be {MOST_HOLDS}: end one "
                f"first; over: {', '.join(map(str, over)) or 'none'}"
            )
        return {(SPEC, "holds"): [*known, {key: value for key, value in asked.items() if value}]}

    changed = change(kubectl, table, fields, how)
    told(screen, changed, how, f": hold {called} is asked for; read when it is {GRANTED}")
    return waiting.follow(kubectl, screen, table, _hold_of(called), how)


def _hold_of(called: str) -> Callable[[Thing], Seen]:
    def look(thing: Thing) -> Seen:
        if not _found(thing.spec.get("holds"), "name", called):
            return Seen(f"hold {called}: its name is gone from spec.holds", is_over=True, is_well=False)
        one = _found(thing.status.get("holds"), "name", called)
        outcome, why = one.get("outcome", PENDING), f": {one['message']}" if one.get("message") else ""
        if outcome == GRANTED:
            return Seen(f"hold {called}: {outcome}, commit {one.get('instant')} until {one.get('until')}", is_over=True)
        over = outcome in NOTHING_HELD
        return Seen(f"hold {called}: {outcome}{why}", is_over=over, is_well=not over)

    return look


def unhold(kubectl: Kubectl, screen: Screen, name: str, called: str, how: How) -> int:
    """A name less in spec.holds."""
    table = finding.table_named(kubectl, name)

    def fields(thing: Thing) -> Fields:
        known = list(thing.spec.get("holds") or [])
        if not _found(known, "name", called):
            names = ", ".join(str(one.get("name")) for one in known)
            raise Failed(f"spec.holds of HudiTable {thing.name}: {called!r} is none of {names or 'them: it has none'}")
        return {(SPEC, "holds"): [one for one in known if one.get("name") != called]}

    changed = change(kubectl, table, fields, how)
    told(screen, changed, how, f": hold {called} ends; the next clean deletes what it has kept")
    return 0


# ---------------------------------------------------------------- services and the metadata table
CLUSTERED_AFTER = 20
"""Commits after which a clustering without its own trigger runs (`AFTER_COMMITS`)."""


def service(kubectl: Kubectl, screen: Screen, name: str, kind: str, how: How) -> int:
    """Run a table service once, now: a new runNonce."""
    kind = SERVICES[kind]
    table, word = finding.table_named(kubectl, name), nonce()

    def fields(thing: Thing) -> Fields:
        section = (thing.spec.get("services") or {}).get(kind)
        where = f"spec.services.{kind} of HudiTable {thing.name}"
        if section is None and kind in OFF_BY_DEFAULT:
            raise Failed(f"{where} is not there: {kind} is off by default, and the section itself turns it on")
        if (section or {}).get("enabled") is False:
            raise Failed(f"{where}: enabled is false, and a disabled service does not run")
        if kind == "compaction" and thing.spec.get("type") != "MergeOnRead":
            raise Failed(
                f"spec.type of HudiTable {thing.name} is {thing.spec.get('type', 'CopyOnWrite')}: only a MergeOnRead "
                "table has log files to compact"
            )
        asked: dict[tuple[str, ...], Any] = {(SPEC, "services", kind, "runNonce"): word}
        if kind == "clustering" and not set(section or {}) - {"enabled"}:
            # With only a runNonce it would run on demand only; afterCommits keeps the automatic
            # runs.
            asked[SPEC, "services", kind, "afterCommits"] = CLUSTERED_AFTER
        return asked

    changed = change(kubectl, table, fields, how)
    told(screen, changed, how, f": {kind} is asked for, once (spec.services.{kind}.runNonce: {word})")
    return waiting.follow(kubectl, screen, table, _service_of(kind, word, _last(table, kind)), how)


def _last(thing: Thing, kind: str) -> tuple[Any, ...]:
    one = (thing.status.get("services") or {}).get(kind) or {}
    return tuple(one.get(key) for key in ("outcome", "lastTime", "failures"))


def _service_of(kind: str, word: str, before: tuple[Any, ...]) -> Callable[[Thing], Seen]:
    def look(thing: Thing) -> Seen:
        wanted = ((thing.spec.get("services") or {}).get(kind) or {}).get("runNonce")
        one = (thing.status.get("services") or {}).get(kind) or {}
        outcome, message = one.get("outcome"), f": {one['message']}" if one.get("message") else ""
        if one.get("executedNonce") == word and outcome in (COMPLETED, "NothingToDo"):
            instant = f" {one['lastInstant']}" if one.get("lastInstant") and outcome == COMPLETED else ""
            return Seen(f"{kind}: {outcome}{instant}{message}", is_over=True)
        if outcome == FAILED and _last(thing, kind) != before:
            return Seen(f"{kind}: {outcome}{message}; it is tried again", is_over=True, is_well=False)
        if wanted != word and one.get("executedNonce") != word:
            return Seen(f"{kind}: its runNonce is another one by now", is_over=True, is_well=False)
        if one.get("executedNonce") == word or outcome == RUNNING:
            return Seen(f"{kind}: {outcome}{message}")
        if outcome == FAILED:
            return Seen(f"{kind}: its last run failed{message}; it is tried again")
        return Seen(f"{kind}: {waits(Table(thing.raw))}")

    return look


def metadata_word(section: JsonDict) -> str:
    """Name of such a metadata table in the status."""
    parts = "+".join(("Files", *sorted(section.get("indexes") or [])))
    return f"{parts if section.get('enabled', True) else 'Off'}/{section.get('rebuild') or ''}"


def metadata_table(
    kubectl: Kubectl,
    screen: Screen,
    name: str,
    *,
    on: bool | None,
    indexes: Sequence[str] | None,
    rebuild: bool,
    how: How,
) -> int:
    """Change or rebuild the metadata table. ``on``, ``indexes``: None: as they are."""
    table = finding.table_named(kubectl, name)
    if on is None and indexes is None and not rebuild:
        raise Failed("nothing is asked for: use --on, --off, --indexes or --rebuild")
    wanted: JsonDict = {"rebuild": nonce()} if rebuild else {}
    if on is not None:
        wanted["enabled"] = on
    if indexes is not None:
        wanted["indexes"] = list(indexes)
    before = table.spec.get("metadataTable") or {}
    word = metadata_word({**before, **wanted})
    look = _metadata_table_of(word, (table.status.get("metadataTable") or {}).get("failures") or 0)
    if word == metadata_word(before):
        screen.tell(f"HudiTable {table.name}: spec.metadataTable is {word} already")
        return _as_it_is(kubectl, screen, table, look, how)
    changed = change(kubectl, table, lambda _: {(SPEC, "metadataTable", k): v for k, v in wanted.items()}, how)
    told(screen, changed, how, f": the metadata table {word} is asked for; running writers end at their next commit")
    return waiting.follow(kubectl, screen, table, look, how)


def _metadata_table_of(word: str, failures: int) -> Callable[[Thing], Seen]:
    def look(thing: Thing) -> Seen:
        if metadata_word(thing.spec.get("metadataTable") or {}) != word:
            return Seen("the metadata table: spec.metadataTable is another one by now", is_over=True, is_well=False)
        one = thing.status.get("metadataTable") or {}
        if not one and thing.looked_at and thing.is_("Ready"):
            return Seen("the metadata table: it is as asked for", is_over=True)
        if one.get("wanted") != word:
            return Seen(f"the metadata table: {waits(Table(thing.raw))}")
        outcome, message = one.get("outcome"), f": {one['message']}" if one.get("message") else ""
        if outcome == COMPLETED:
            has = f", it has {', '.join(one['partitions'])}" if one.get("partitions") else ""
            return Seen(f"the metadata table: {outcome}{has}", is_over=True)
        if outcome == FAILED and (one.get("failures") or 0) != failures:
            return Seen(f"the metadata table: {outcome}{message}; it is tried again", is_over=True, is_well=False)
        return Seen(f"the metadata table: {outcome}{message or ': ' + waits(Table(thing.raw))}")

    return look


# ---------------------------------------------------------------- a person's word
def adopt(kubectl: Kubectl, screen: Screen, name: str, instants: Sequence[str], how: How) -> int:
    """Decide about an existing table: adopt it, or name the instants that are rolled back."""
    table = finding.table_named(kubectl, name)
    stalled = table.condition("Stalled")
    reason = str(stalled.get("reason")) if stalled.get("status") == "True" else ""
    if not instants and reason == PENDING_INSTANTS:
        raise Failed(
            f"HudiTable {table.name}: {stalled.get('message')}. Name each of them with --roll-back INSTANT: by that "
            "you say that its writer has ended for good"
        )
    if reason not in (PENDING_INSTANTS, TABLE_EXISTS) and not how.force:
        said = f"Stalled is {stalled.get('status', 'Unknown')}, {stalled.get('reason', 'no reason')}"
        raise Failed(
            f"HudiTable {table.name} waits for no decision about an adoption: {said}; --force makes it beforehand"
        )

    def fields(thing: Thing) -> Fields:
        if not instants:
            return {(SPEC, "adoption", "policy"): "Adopt"}
        known = list((thing.spec.get("adoption") or {}).get("rollbackInstants") or [])
        return {(SPEC, "adoption", "rollbackInstants"): [*known, *(one for one in instants if one not in known)]}

    if instants:
        confirm(
            f"You say that the writers of {', '.join(instants)} have ended for good: what they began is rolled back, "
            "or completed if it is a cleaning, a compaction or a rollback.",
            how,
        )
    changed = change(kubectl, table, fields, how)
    done = f"instants {', '.join(instants)} are to be settled" if instants else "the table at its path is to be adopted"
    told(screen, changed, how, f": {done}")
    return waiting.follow(kubectl, screen, table, _without_stall((PENDING_INSTANTS, TABLE_EXISTS)), how)


def _without_stall(before: Sequence[str]) -> Callable[[Thing], Seen]:
    """Until a table is ready, or stands still for another reason than those before."""

    def look(thing: Thing) -> Seen:
        stalled = thing.condition("Stalled")
        if thing.is_("Ready") and thing.looked_at:
            return Seen("Ready: writers may write", is_over=True)
        if stalled.get("status") == "True" and stalled.get("reason") not in before:
            return Seen(f"{stalled.get('reason')}: {stalled.get('message')}", is_over=True, is_well=False)
        return Seen(waits(Table(thing.raw)))

    return look


def unfreeze(kubectl: Kubectl, screen: Screen, name: str, how: How) -> int:
    """Accept the state of etcd for a frozen table: the annotation that its condition names."""
    table = finding.table_named(kubectl, name)
    stalled = table.condition("Stalled")
    if stalled.get("status") != "True" or stalled.get("reason") not in FROZEN:
        said = f"Stalled is {stalled.get('status', 'Unknown')}, {stalled.get('reason', 'no reason')}"
        raise Failed(f"HudiTable {table.name} is not frozen: {said}")
    number = _UNFREEZE_WITH.search(str(stalled.get("message")))
    if number is None:
        raise Failed(
            f"HudiTable {table.name}: no annotation helps before its cause is gone: {stalled.get('reason')}: "
            f"{stalled.get('message')}"
        )
    confirm(
        f"HudiTable {table.name} is frozen: {stalled.get('message')}. You say that no process that may write to the "
        "table runs anywhere, and that the state of the lock is right.",
        how,
    )
    path = ("metadata", "annotations", UNFREEZE)
    changed = change(kubectl, table, lambda _: {path: number[1]}, how)
    told(screen, changed, how, f": its gate is to be unfrozen ({UNFREEZE}={number[1]})")
    return waiting.follow(kubectl, screen, table, _unfrozen(number[1]), how)


def _unfrozen(number: str) -> Callable[[Thing], Seen]:
    def look(thing: Thing) -> Seen:
        stalled = thing.condition("Stalled")
        again = _UNFREEZE_WITH.search(str(stalled.get("message") or ""))
        if stalled.get("status") == "True" and again is not None and again[1] != number:
            return Seen(f"frozen again: {stalled.get('message')}", is_over=True, is_well=False)
        if stalled.get("status") == "False" and thing.is_("Ready"):
            return Seen("Ready: writers may write", is_over=True)
        return Seen(waits(Table(thing.raw)))

    return look


def take_over(kubectl: Kubectl, screen: Screen, name: str, how: How) -> int:
    """Take the path of a HudiTable that is gone: the annotation that the condition names."""
    table = finding.table_named(kubectl, name)
    stalled = table.condition("Stalled")
    said = str(stalled.get("message") or "")
    word = _TAKE_OVER_WITH.search(said) if stalled.get("reason") == DUPLICATE_PATH else None
    if word is None:
        raise Failed(
            f"HudiTable {table.name} has no path to take over: Stalled is {stalled.get('status', 'Unknown')}, "
            f"{stalled.get('reason', 'no reason')}: {said or 'no message'}"
        )
    confirm(
        f"The path of HudiTable {table.name} belongs to another HudiTable, which does not exist in this cluster. You "
        "say that it is in no other cluster that uses the same etcd, and that no pod of it runs anywhere.",
        how,
    )
    path = ("metadata", "annotations", TAKE_OVER)
    changed = change(kubectl, table, lambda _: {path: word[1]}, how)
    told(screen, changed, how, f": its path is to be taken over ({TAKE_OVER}={word[1]})")
    return waiting.follow(kubectl, screen, table, _without_stall((DUPLICATE_PATH,)), how)


def attest(
    kubectl: Kubectl, screen: Screen, name: str, pod: str, statement: str, *, uid: str, node: str, how: How
) -> int:
    """Say that a pod has ended: an entry of spec.fencing.attestations, in the user's own name.

    ``uid`` and ``node``: empty: those of the pod, or those that the status names.
    """
    table = finding.table_named(kubectl, name)
    awaited = _awaited(table)
    raw = _pod(kubectl, pod)
    if pod not in awaited and not how.force:
        listed = ", ".join(sorted(awaited)) or "no pod"
        raise Failed(
            f"pod {pod}: nothing of HudiTable {table.name} waits for proof of its end (it waits for {listed}); "
            "--force attests it all the same"
        )
    lives = raw is not None and _lives(raw)
    if raw is not None and not how.force and lives:
        raise Failed(
            f"pod {pod} is Ready, says the kubelet of node {raw['spec'].get('nodeName')}: only of a pod that has "
            "ended can it be attested; --force attests it all the same"
        )
    waited_uid, waited_node = awaited.get(pod, ("", ""))
    seen = (raw or {}).get("metadata", {}).get("uid", "")
    if seen and waited_uid and seen != waited_uid and not uid:
        raise Failed(f"pod {pod} has uid {seen}, and uid {waited_uid} is waited for: choose one with --uid")
    uid = uid or waited_uid or seen
    node = node or waited_node or str((raw or {}).get("spec", {}).get("nodeName") or "")
    for flag, value in (("--uid", uid), ("--node", node)):
        if not value:
            raise Failed(f"pod {pod}: there is no such pod any more, and the status does not name it: add {flag}")
    word = {"podUID": uid, "node": node, "statement": statement, "attestedBy": kubectl.user()}
    word["at"] = f"{now():%Y-%m-%dT%H:%M:%SZ}"

    def fields(thing: Thing) -> Fields:
        known = list((thing.spec.get("fencing") or {}).get("attestations") or [])
        if _found(known, "podUID", uid):
            by = _found(known, "podUID", uid).get("attestedBy")
            raise Failed(f"spec.fencing.attestations of HudiTable {thing.name}: uid {uid} is attested already, by {by}")
        return {(SPEC, "fencing", "attestations"): [*known, word]}

    fields(table)
    confirm(
        f"You say, as {word['attestedBy']}, that pod {pod} (uid {uid}) on node {node} has ended and cannot write any "
        "more. If it still can, rows of commits may be lost."
        + (" The kubelet says that it is Ready." if lives else "")
        + ("" if pod in awaited else " Nothing waits for proof of its end."),
        how,
    )
    changed = change(kubectl, table, fields, how)
    told(screen, changed, how, f": pod {pod} (uid {uid}) on node {node} is attested by {word['attestedBy']}")
    return waiting.follow(kubectl, screen, table, _settled(pod), how)


def _awaited(table: Table) -> dict[str, tuple[str, str]]:
    """Pods whose death is to be proven: uid and node of each, as far as the status names them."""
    found: dict[str, tuple[str, str]] = {}
    for one in table.status.get("settling") or []:
        if one.get("pod") and one.get("phase") in UNPROVEN:
            found.setdefault(str(one["pod"]), ("", ""))
        for pod, uid, node in _NOT_PROVEN.findall(str(one.get("waitingFor") or "")):
            found[pod] = (uid, node)
    # Some pods belong to no incarnation that is being settled (F613).
    for pod, uid, node in _NOT_PROVEN.findall(str(table.condition("AwaitingProofOfDeath").get("message") or "")):
        found.setdefault(pod, (uid, node))
    return found


def _pod(kubectl: Kubectl, name: str) -> JsonDict | None:
    """A pod; None where it is gone, or may not be read."""
    try:
        return kubectl.get("pods", name)
    except Failed as error:
        if "NotFound" in str(error) or "Forbidden" in str(error):
            return None
        raise


def _lives(pod: JsonDict) -> bool:
    """Whether its kubelet says so; of a lost node the API server says that it is not ready."""
    return _found((pod.get("status") or {}).get("conditions"), "type", "Ready").get("status") == "True"


def _settled(pod: str) -> Callable[[Thing], Seen]:
    def look(thing: Thing) -> Seen:
        mine = [
            one
            for one in thing.status.get("settling") or []
            if one.get("pod") == pod or f"pod {pod} " in str(one.get("waitingFor") or "")
        ]
        if not thing.looked_at:
            return Seen("the operator has not looked at it yet")
        if not mine:
            return Seen(f"nothing waits for pod {pod} any more", is_over=True)
        said = f": {mine[0]['waitingFor']}" if mine[0].get("waitingFor") else ""
        return Seen(f"{mine[0].get('pod')} is {mine[0].get('phase')}{said}")

    return look

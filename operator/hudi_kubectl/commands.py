"""What users type."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from hudi_kubectl import pictures, report, why
from hudi_kubectl.cluster import MANAGER, Failed, Kubectl
from hudi_kubectl.objects import (
    FAILED,
    RUNNING,
    STALLED,
    SUCCEEDED,
    TABLE,
    WRITER,
    JsonDict,
    Table,
    Thing,
    Writer,
    ago,
    now,
    of_table,
    when,
)

_GREEN, _YELLOW, _RED, _PLAIN = "\033[32m", "\033[33m", "\033[31m", "\033[0m"
_COLOURS = re.compile(r"(\x1b\[(?:0|3[123])m)")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_GOOD = (RUNNING, SUCCEEDED, "Ready")
_BAD = (FAILED, STALLED)
DRIVER = "hudioperator.io/writer"
"""Label of the pods of writers."""


def printable(text: str) -> str:
    """The text, with control characters written out, but for our own colours.

    A status has words of a driver, which are not trusted: a terminal would obey them (F543).
    """
    parts = _COLOURS.split(text)  # every second one is a colour
    return "".join(
        part if n % 2 else _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), part)
        for n, part in enumerate(parts)
    )


class Screen:
    """Where a command writes. ``colour``: whether words have colours."""

    def __init__(self, *, colour: bool = False, as_json: bool = False) -> None:
        self.colour, self.as_json = colour, as_json

    def say(self, *lines: str) -> None:
        """Lines, one after the other."""
        for line in lines:
            print(printable(line))

    def give(self, found: Any) -> None:
        """The answer for programs."""
        print(json.dumps(found, indent=2, default=str))

    def word(self, said: str) -> str:
        """A state in its colour."""
        if not self.colour or not said:
            return said
        colour = _GREEN if said in _GOOD else _RED if said in _BAD else _YELLOW
        return f"{colour}{said}{_PLAIN}"

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]], coloured: Sequence[int] = ()) -> None:
        """Columns as kubectl writes them."""
        wide = [max(len(str(row[n])) for row in (head, *rows)) for n in range(len(head))]
        for number, row in enumerate((head, *rows)):
            cells = [str(cell).ljust(wide[n] if n < len(head) - 1 else 0) for n, cell in enumerate(row)]
            for n in coloured if number else ():
                cells[n] = self.word(str(row[n])) + cells[n][len(str(row[n])) :]
            print(printable("   ".join(cells).rstrip()))


def wants_colour(choice: str) -> bool:
    """``choice``: auto, always or never; auto obeys NO_COLOR (no-color.org) and the terminal."""
    if choice != "auto":
        return choice == "always"
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


# ---------------------------------------------------------------- what is read
def _named(kubectl: Kubectl, given: str) -> Table | Writer:
    """A HudiWriter or HudiTable by its name, or as `kind/name`; a writer first."""
    kind, slash, name = given.rpartition("/")
    kinds = {"huditable": (TABLE,), "ht": (TABLE,), "table": (TABLE,), "hudiwriter": (WRITER,), "hw": (WRITER,)}
    kinds["writer"] = kinds["hudiwriter"]
    chosen = kinds.get(kind.lower().rstrip("s").split(".")[0]) if slash else (WRITER, TABLE)
    if chosen is None:
        raise Failed(f"{given}: {kind} is none of huditable and hudiwriter")
    missing = ""
    for one in chosen:
        try:
            raw = kubectl.get(one, name)
        except Failed as error:
            if "NotFound" not in str(error):
                raise
            missing = missing or str(error)
            continue
        return Table(raw) if one == TABLE else Writer(raw)
    raise Failed(missing if slash else f"there is neither a HudiWriter nor a HudiTable {name} here")


def _table(kubectl: Kubectl, given: str) -> Table:
    """A HudiTable by its name, or that of a writer."""
    if "/" not in given:
        try:
            return Table(kubectl.get(TABLE, given))
        except Failed as error:
            if "NotFound" not in str(error):
                raise
    found = _named(kubectl, given)
    return Table(kubectl.get(TABLE, found.table)) if isinstance(found, Writer) else found


def _writers(kubectl: Kubectl, thing: Table | Writer) -> list[Writer]:
    """A writer, or the writers of a table."""
    if isinstance(thing, Writer):
        return [thing]
    return of_table(map(Writer, kubectl.objects(WRITER)), thing)


def _world(kubectl: Kubectl, *, everywhere: bool = False) -> why.World:
    tables = [Table(raw) for raw in kubectl.objects(TABLE, everywhere=everywhere)]
    writers = [Writer(raw) for raw in kubectl.objects(WRITER, everywhere=everywhere)]
    found = kubectl.optional("pods", everywhere=everywhere, selector=DRIVER) or []
    return why.World(tables, writers, {pod["metadata"]["name"]: pod for pod in found}, now())


# ---------------------------------------------------------------- commands that look
def status(kubectl: Kubectl, screen: Screen, name: str, everywhere: bool) -> int:
    """Tables and their writers, with the first reason of what is not well."""
    world = _world(kubectl, everywhere=everywhere)
    tables = [t for t in world.tables if name in ("", t.name)]
    if name and not tables:
        raise Failed(f"there is no HudiTable {name} here")
    orphans = [w for w in world.writers if not name and world.table_of(w) is None]
    if screen.as_json:
        screen.give([_summary(table, world) for table in tables])
        return 0
    rows: list[tuple[str, ...]] = []
    for table in sorted(tables, key=lambda t: (t.namespace, t.name)):
        where = f"{table.namespace}/" if everywhere else ""
        state = "Ready" if table.is_("Ready") else "Stalled" if table.is_("Stalled") else "NotReady"
        commits = table.commits()
        last = ago(commits[-1].get("completionTime"), world.at) if commits else ""
        rows.append((f"{where}{table.name}", state, last, "", "", _first(why.of_table(table, world))))
        own = of_table(world.writers, table)
        rows += [_writer_row(w, world, "└─ " if w is own[-1] else "├─ ") for w in own]
    rows += [_writer_row(w, world, f"{w.namespace}/" if everywhere else "") for w in orphans]
    if not rows:
        screen.say("no HudiTables and no HudiWriters here; -A looks into all namespaces")
        return 0
    screen.table(("NAME", "STATE", "LAST COMMIT", "RECORDS", "CONFLICTS", "WHY"), rows, (1,))
    return 0


def _writer_row(writer: Writer, world: why.World, before: str) -> tuple[str, ...]:
    last = (writer.status.get("lastCommit") or {}).get("time")
    counts = (str(writer.status.get(key, 0)) for key in ("records", "conflicts"))
    because = _first(why.of_writer(writer, world))
    return (f"{before}{writer.name}", writer.state, ago(last, world.at), *counts, because)


def _first(reason: why.Reason, width: int = 100) -> str:
    """The first cause in a few words; nothing when all is well."""
    first = reason.causes[0]
    if first.is_well:
        return ""
    return first.fact if len(first.fact) <= width else f"{first.fact[: width - 1]}…"


def _summary(table: Table, world: why.World) -> JsonDict:
    own = of_table(world.writers, table)
    return {
        "namespace": table.namespace,
        "name": table.name,
        "why": why.as_json(why.of_table(table, world)),
        "writers": [{"name": w.name, "state": w.state, "why": why.as_json(why.of_writer(w, world))} for w in own],
    }


def explain(kubectl: Kubectl, screen: Screen, name: str) -> int:
    """Why a writer does not write, or a table takes no writes."""
    thing = _named(kubectl, name)
    world = _world(kubectl)
    found = why.of_writer(thing, world) if isinstance(thing, Writer) else why.of_table(thing, world)
    if screen.as_json:
        screen.give(why.as_json(found))
    else:
        screen.say(*why.lines(found))
    return 0


def timeline(kubectl: Kubectl, screen: Screen, name: str, minutes: float, file: str) -> int:
    """Attempts and commits on one axis, as text or as an SVG file."""
    table, at = _table(kubectl, name), now()
    shown = pictures.rows(table, _writers(kubectl, table), at, timedelta(minutes=minutes) if minutes else None)
    if file:
        title = f"{table.namespace}/{table.name}, {at:%Y-%m-%d %H:%M:%S} UTC"
        Path(file).write_text(pictures.svg(title, shown, at), encoding="utf-8")
        screen.say(f"{file} is written")
    elif screen.as_json:
        screen.give([{"name": r.name, "bars": [vars(b) for b in r.bars]} for r in shown])
    else:
        screen.say(*pictures.text(shown, at, shutil.get_terminal_size((100, 24)).columns))
    return 0


def queue(kubectl: Kubectl, screen: Screen, name: str) -> int:
    """Who waits for admission, in order."""
    table, at = _table(kubectl, name), now()
    waiting = [w for w in _writers(kubectl, table) if w.status.get("queue")]
    waiting.sort(key=lambda w: w.status["queue"].get("position", 0))
    if screen.as_json:
        screen.give([{"name": w.name, "priority": w.spec.get("priority", 0), **w.status["queue"]} for w in waiting])
        return 0
    if not waiting:
        screen.say(f"no writer of {table.name} waits for admission")
        return 0
    rows = [
        (
            str(w.status["queue"].get("position", "?")), w.name, str(w.spec.get("priority", 0)),
            ago(w.status["queue"].get("since"), at), w.status["queue"].get("blockedBy", ""),
        )
        for w in waiting
    ]  # fmt: skip
    screen.table(("PLACE", "WRITER", "PRIORITY", "WAITING", "BLOCKED BY"), rows)
    return 0


def conflicts(kubectl: Kubectl, screen: Screen, name: str) -> int:
    """Commits that were refused because of another writer, the newest last."""
    writers, at = _writers(kubectl, _named(kubectl, name)), now()
    found = [(w, one) for w in writers for one in w.status.get("recentConflicts") or []]
    found.sort(key=lambda pair: str(pair[1].get("time", "")))
    if screen.as_json:
        screen.give([{"writer": w.name, **one} for w, one in found])
        return 0
    rows = [
        (
            ago(one.get("time"), at), w.name, str(one.get("instant", "")), str(one.get("with", "")),
            "gave way" if one.get("yielded") else str(one.get("retriedAs", "not repeated")),
            ", ".join(one.get("fileGroups") or []),
        )
        for w, one in found
    ]  # fmt: skip
    total = sum(int(w.status.get("conflicts") or 0) for w in writers)
    if rows:
        screen.table(("AGO", "WRITER", "REFUSED", "BECAUSE OF", "REPEATED AS", "FILE GROUPS"), rows)
    screen.say(f"{total} in all" + ("" if len(rows) == total else f", of which the status has the last {len(rows)}"))
    return 0


def history(kubectl: Kubectl, screen: Screen, name: str) -> int:
    """What has happened, oldest first: attempts, commits, savepoints, restores, Events."""
    thing = _named(kubectl, name)
    writers = _writers(kubectl, thing)
    told = [*_of_attempts(writers), *(_of_table(thing) if isinstance(thing, Table) else ())]
    names = {thing.name, *(w.name for w in writers)}
    events = kubectl.optional("events")
    for one in events or []:
        about = one.get("involvedObject") or {}
        if about.get("kind") in ("HudiTable", "HudiWriter") and about.get("name") in names:
            at = one.get("lastTimestamp") or one.get("eventTime")
            told.append((at, about["name"], f"{one.get('reason')}: {one.get('message', '')}"))
    known = sorted(
        ((when(at), who, what) for at, who, what in told if when(at) is not None), key=lambda x: x[0] or now()
    )
    if screen.as_json:
        screen.give([{"time": at, "who": who, "what": what} for at, who, what in known])
        return 0
    screen.table(("TIME (UTC)", "WHO", "WHAT"), [(f"{at:%Y-%m-%d %H:%M:%S}", who, what) for at, who, what in known])
    if events is None:
        screen.say("Events may not be listed here, and are left out.")
    return 0


def _of_attempts(writers: Sequence[Writer]) -> Iterator[tuple[Any, str, str]]:
    for writer in writers:
        for one in writer.attempts():
            number = one.get("number")
            yield one.get("startTime"), writer.name, f"attempt {number} began in pod {one.get('pod')}"
            said = f": {one['message']}" if one.get("message") else ""
            records = one.get("records") or 0
            yield (
                one.get("endTime"),
                writer.name,
                f"attempt {number} ended: {one.get('class')}, {records} records{said}",
            )
        for one in writer.status.get("recentConflicts") or []:
            yield one.get("time"), writer.name, f"commit {one.get('instant')} was refused because of {one.get('with')}"


def _of_table(table: Table) -> Iterator[tuple[Any, str, str]]:
    for one in table.commits():
        who = str(one.get("writer") or "services").rpartition("/")[2]
        yield (
            one.get("completionTime"),
            who,
            f"{one.get('action')} {one.get('instant')}: {one.get('records', '?')} records",
        )
    for one in table.status.get("savepoints") or []:
        yield (
            one.get("time"),
            table.name,
            f"savepoint {one.get('name')}: {one.get('outcome')} {one.get('message') or ''}",
        )
    restore = table.status.get("restore") or {}
    if restore:
        yield restore.get("beginTime"), table.name, f"restore to {restore.get('savepoint')} began"
        said = restore.get("message") or f"{restore.get('undone', 0)} instants are undone"
        yield (
            restore.get("endTime"),
            table.name,
            f"restore to {restore.get('savepoint')}: {restore.get('outcome')}, {said}",
        )
    for service, one in (table.status.get("services") or {}).items():
        yield one.get("lastTime"), table.name, f"{service}: {one.get('outcome')} {one.get('message') or ''}"


def logs(kubectl: Kubectl, name: str, attempt: int, follow: bool, tail: int) -> int:
    """The driver's log of a writer's attempt, or the log of a table's agent."""
    thing = _named(kubectl, name)
    if isinstance(thing, Writer):
        one = thing.attempt(attempt)
        if one is None:
            known = ", ".join(str(each.get("number")) for each in thing.attempts()) or "none"
            wanted = f"attempt {attempt}" if attempt else "attempt"
            raise Failed(f"{thing.name}: the status has no {wanted} (it has {known})")
        pod, container = str(one.get("pod")), "driver"
    else:
        agent = str(thing.status.get("agent") or "")
        pods = kubectl.objects("pods", selector=f"hudioperator.io/agent={agent}") if agent else []
        if not pods:
            raise Failed(f"no pod of an agent serves {thing.name} here")
        pod, container = max((p["metadata"]["creationTimestamp"], p["metadata"]["name"]) for p in pods)[1], "agent"
    flags = [f"--container={container}", *(["--follow"] if follow else []), *([f"--tail={tail}"] if tail >= 0 else [])]
    return kubectl.show_logs(pod, *flags)


# ---------------------------------------------------------------- commands that change
def suspend(kubectl: Kubectl, screen: Screen, name: str, value: bool, force: bool) -> int:
    """Set spec.suspend of a writer or a table."""
    thing = _named(kubectl, name)
    if bool(thing.spec.get("suspend")) == value:
        screen.say(f"{thing.kind} {thing.name}: spec.suspend is {str(value).lower()} already")
        return 0
    _change(kubectl, thing, "suspend", value, force)
    done = "is being suspended: it ends at its next commit" if value else "goes on"
    if isinstance(thing, Table):
        done = "is being suspended: its writers end at their next commits" if value else "takes writes again"
    screen.say(f"{thing.kind} {thing.name} {done}")
    return 0


def restart(kubectl: Kubectl, screen: Screen, name: str, force: bool) -> int:
    """Another run of a writer: a new spec.restartNonce."""
    thing = _named(kubectl, name)
    if not isinstance(thing, Writer):
        raise Failed(f"{name} is a HudiTable; writers are restarted")
    nonce = f"{now():%Y-%m-%dT%H:%M:%SZ}"
    _change(kubectl, thing, "restartNonce", nonce, force)
    screen.say(f"HudiWriter {thing.name}: another run is asked for (spec.restartNonce: {nonce})")
    return 0


_BY_HAND = (MANAGER, "kubectl", "Mozilla")


def _change(kubectl: Kubectl, thing: Thing, field: str, value: Any, force: bool) -> None:
    """Change one field of the spec.

    What somebody else keeps in place is not changed half-way: it is refused, or the user hears that
    it was taken back.
    """
    owners = [one for one in thing.managers_of(field) if not one.startswith(_BY_HAND)]
    if owners and not force:
        raise Failed(
            f"spec.{field} of {thing.kind} {thing.name} is kept by {', '.join(owners)}, which would set it back: "
            "change it there, or use --force"
        )
    kind = TABLE if isinstance(thing, Table) else WRITER
    kubectl.patch(kind, thing.name, {"spec": {field: value}})
    end = time.monotonic() + 3
    while time.monotonic() < end:
        time.sleep(0.5)
        seen = Thing(kubectl.get(kind, thing.name))
        if seen.spec.get(field) != value:
            by = [one for one in seen.managers_of(field) if not one.startswith(MANAGER)]
            raise Failed(
                f"spec.{field} of {thing.kind} {thing.name} was set back to {seen.spec.get(field)!r} at once"
                f"{' by ' + ', '.join(by) if by else ''}: change it where it is kept"
            )


def make_report(kubectl: Kubectl, screen: Screen, name: str, file: str, lines: int) -> int:
    """A bundle for support."""
    table = _table(kubectl, name)
    world = _world(kubectl)
    own = of_table(world.writers, table)
    files: dict[str, Any] = {"table.json": table.raw, "version.json": json.loads(kubectl.version())}
    files["why.txt"] = "\n\n".join("\n".join(why.lines(w)) for w in _whys(table, own, world)) + "\n"
    files["timeline.txt"] = "\n".join(pictures.text(pictures.rows(table, own, world.at), world.at, 120)) + "\n"
    for writer in own:
        files[f"writers/{writer.name}.json"] = writer.raw
    names = {table.name, *(w.name for w in own)}
    events = kubectl.optional("events") or []
    files["events.json"] = [e for e in events if (e.get("involvedObject") or {}).get("name") in names]
    pods = kubectl.optional("pods", selector=f"hudioperator.io/table={table.name}") or []
    missing = []
    for pod in pods:
        pod_name = pod["metadata"]["name"]
        files[f"pods/{pod_name}.json"] = pod
        try:
            files[f"logs/{pod_name}.txt"] = kubectl.logs(pod_name, "--all-containers", f"--tail={lines}")
        except Failed as error:
            missing.append(f"{pod_name}: {error}")
    files["missing.txt"] = "\n".join(missing) + "\n" if missing else "nothing\n"
    place = Path(file or f"hudi-report-{table.name}-{world.at:%Y%m%dT%H%M%SZ}.tar.gz")
    place.write_bytes(report.bundle(files, world.at.timestamp()))
    screen.say(
        f"{place}: {len(files)} files, {len(pods)} pods. Secrets were not read; values with names of secrets and what "
        "looks like one in texts are left out. Logs may show what user code has printed: look before you share it."
    )
    return 0


def _whys(table: Table, own: Sequence[Writer], world: why.World) -> Iterator[why.Reason]:
    yield why.of_table(table, world)
    yield from (why.of_writer(writer, world) for writer in own)


def names(kubectl: Kubectl, tables: bool, writers: bool) -> Iterator[str]:
    """Names for completion."""
    for wanted, kind in ((tables, TABLE), (writers, WRITER)):
        for raw in (kubectl.optional(kind) or []) if wanted else []:
            yield str(raw["metadata"]["name"])

"""Commands that only read; `verbs` has those that change something."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from hudi_kubectl import finding, past, pictures, report, why
from hudi_kubectl.cluster import Failed, Kubectl
from hudi_kubectl.objects import TABLE, WRITER, JsonDict, Table, Writer, ago, now, of_table
from hudi_kubectl.screen import Screen


def status(kubectl: Kubectl, screen: Screen, name: str, everywhere: bool) -> int:
    """Tables and their writers, with the first reason of what is not well."""
    world = finding.world(kubectl, everywhere=everywhere)
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
        commits = table.commits()
        last = ago(commits[-1].get("completionTime"), world.at) if commits else ""
        rows.append((f"{where}{table.name}", table.state, last, "", "", why.in_short(why.of_table(table, world))))
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
    because = why.in_short(why.of_writer(writer, world))
    return (f"{before}{writer.name}", writer.state, ago(last, world.at), *counts, because)


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
    thing = finding.named(kubectl, name)
    world = finding.world(kubectl)
    found = why.of_writer(thing, world) if isinstance(thing, Writer) else why.of_table(thing, world)
    if screen.as_json:
        screen.give(why.as_json(found))
    else:
        screen.say(*why.lines(found))
    return 0


def timeline(kubectl: Kubectl, screen: Screen, name: str, minutes: float, file: str) -> int:
    """Attempts and commits on one axis, as text or as an SVG file."""
    table, at = finding.table_of(kubectl, name), now()
    since = timedelta(minutes=minutes) if minutes else None
    shown = pictures.rows(table, finding.writers_of(kubectl, table), at, since)
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
    """List the writers that wait for admission, in order."""
    table, at = finding.table_of(kubectl, name), now()
    waiting = [w for w in finding.writers_of(kubectl, table) if w.status.get("queue")]
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
    writers, at = finding.writers_of(kubectl, finding.named(kubectl, name)), now()
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
    """List the history, oldest first: attempts, commits, savepoints, restores, Events."""
    thing = finding.named(kubectl, name)
    writers = finding.writers_of(kubectl, thing)
    events = kubectl.optional("events")
    known = past.told(thing, writers, events or [])
    if screen.as_json:
        screen.give([{"time": at, "who": who, "what": what} for at, who, what in known])
        return 0
    screen.table(("TIME (UTC)", "WHO", "WHAT"), [(f"{at:%Y-%m-%d %H:%M:%S}", who, what) for at, who, what in known])
    if events is None:
        screen.say("Events may not be listed here, and are left out.")
    return 0


def logs(kubectl: Kubectl, name: str, attempt: int, follow: bool, tail: int) -> int:
    """The driver's log of a writer's attempt, or the log of a table's agent."""
    thing = finding.named(kubectl, name)
    if isinstance(thing, Writer):
        one = thing.attempt(attempt)
        if one is None:
            known = ", ".join(str(each.get("number")) for each in thing.attempts()) or "none"
            wanted = f"attempt {attempt}" if attempt else "attempt"
            raise Failed(f"{thing.name}: the status has no {wanted} (it has {known})")
        pod, container = str(one.get("pod")), "driver"
    else:
        pods = finding.agent_pods(kubectl, thing)
        if not pods:
            raise Failed(f"no pod of an agent serves {thing.name} here")
        pod, container = str(pods[-1]["metadata"]["name"]), "agent"
    flags = [f"--container={container}", *(["--follow"] if follow else []), *([f"--tail={tail}"] if tail >= 0 else [])]
    return kubectl.show_logs(pod, *flags)


def make_report(kubectl: Kubectl, screen: Screen, name: str, file: str, lines: int) -> int:
    """A bundle for support."""
    table = finding.table_of(kubectl, name)
    world = finding.world(kubectl)
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


def savepoints(kubectl: Kubectl, name: str) -> Iterator[str]:
    """Savepoints of a table, for completion."""
    for raw in kubectl.optional(TABLE) or []:
        if raw["metadata"]["name"] == name.rpartition("/")[2]:
            yield from (str(one.get("name")) for one in raw["spec"].get("savepoints") or [])


def holds(kubectl: Kubectl, name: str) -> Iterator[str]:
    """Holds of a table, for completion."""
    for raw in kubectl.optional(TABLE) or []:
        if raw["metadata"]["name"] == name.rpartition("/")[2]:
            yield from (str(one.get("name")) for one in raw["spec"].get("holds") or [])


def awaited_pods(kubectl: Kubectl, name: str) -> Iterator[str]:
    """Pods of dead writers of a table, for completion."""
    for raw in kubectl.optional(TABLE) or []:
        if raw["metadata"]["name"] == name.rpartition("/")[2]:
            yield from (str(one["pod"]) for one in Table(raw).status.get("settling") or [] if one.get("pod"))

"""`kubectl hudi plan`: what would happen if a file was applied; nothing is changed."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from hudi_kubectl import outlook
from hudi_kubectl.cluster import Failed, Kubectl
from hudi_kubectl.objects import TABLE, WRITER, JsonDict, Table, Thing, Writer
from hudi_kubectl.outlook import Namespace, Outlook
from hudi_kubectl.screen import Screen


def plan(kubectl: Kubectl, screen: Screen, files: Sequence[str]) -> int:
    """Say of each object what would happen; exit code 1: a person has to correct one first."""
    written = [one for file in files for one in _objects(kubectl, file)]
    if not written:
        raise Failed(f"-f {', '.join(files)}: there is no object in it")
    namespaces = {one["metadata"].get("name") for one in written if one.get("kind") == "Namespace"}
    accepted: dict[int, Thing] = {}
    found: dict[int, Outlook] = {}
    for number, one in enumerate(written):
        thing, meta = Thing(one), one.get("metadata") or {}
        told = (thing.kind, str(meta.get("namespace") or ""), str(meta.get("name") or meta.get("generateName") or ""))
        try:
            after = kubectl.applied(one)
        except Failed as error:
            missing = meta.get("namespace") in namespaces and "NotFound" in str(error) and "namespaces" in str(error)
            said = f"namespace {meta.get('namespace')} is made by the same file, and is not there yet"
            verdict = outlook.NOT_ASKED if missing else outlook.REFUSED
            found[number] = Outlook(*told, verdict, (said,) if missing else tuple(str(error).splitlines()))
            continue
        if _is_ours(after):
            accepted[number] = _thing(after)
        else:
            found[number] = Outlook(*told, outlook.ACCEPTED, ())
    judged = {(one.kind, one.namespace, one.name): one for one in _judged(kubectl, list(accepted.values()))}
    answers = [found[n] if n in found else judged[_key(accepted[n])] for n in range(len(written))]
    if screen.as_json:
        screen.give({"objects": [one.as_json() for one in answers], "notLookedAt": list(outlook.UNKNOWN)})
    else:
        for answer in answers:
            screen.say(*answer.lines())
        screen.say("Nothing was changed. Not looked at, and able to change this:")
        screen.say(*(f"    {one}" for one in outlook.UNKNOWN))
    return int(any(one.is_bad for one in answers))


def _objects(kubectl: Kubectl, file: str) -> list[JsonDict]:
    try:
        return kubectl.written_in(file, sys.stdin.read() if file == "-" else "")
    except Failed as error:
        raise Failed(f"-f {file}: {error}") from None


def _is_ours(raw: JsonDict) -> bool:
    return str(raw.get("apiVersion", "")).startswith("hudioperator.io/") and raw.get("kind") in (
        "HudiTable",
        "HudiWriter",
    )


def _thing(raw: JsonDict) -> Thing:
    return Table(raw) if raw.get("kind") == "HudiTable" else Writer(raw)


def _key(thing: Thing) -> tuple[str, str, str]:
    return thing.kind, thing.namespace, thing.name


def _judged(kubectl: Kubectl, accepted: Sequence[Thing]) -> list[Outlook]:
    """What would happen to the accepted ones, with the others of their namespaces."""
    answers: list[Outlook] = []
    for namespace in sorted({one.namespace for one in accepted}):
        there = kubectl.within(namespace)
        tables = {t.name: t for t in map(Table, there.objects(TABLE))}
        writers = {w.name: w for w in map(Writer, there.objects(WRITER))}
        mine = [one for one in accepted if one.namespace == namespace]
        space = Namespace(
            tables,
            writers,
            tables | {one.name: one for one in mine if isinstance(one, Table)},
            writers | {one.name: one for one in mine if isinstance(one, Writer)},
        )
        answers += [outlook.of_table(space, one.name) for one in mine if isinstance(one, Table)]
        answers += outlook.of_writers(space, [one.name for one in mine if isinstance(one, Writer)])
    return answers

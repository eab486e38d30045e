"""`kubectl hudi plan`: what would happen if a file was applied; nothing is changed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial

from hudi_contract import defaults
from hudi_kubectl import outlook
from hudi_kubectl.cluster import Failed, Kubectl
from hudi_kubectl.objects import TABLE, WRITER, JsonDict, Table, Thing, Writer
from hudi_kubectl.outlook import Namespace, Outlook
from hudi_kubectl.screen import Screen

WRITERS = "hudioperator.io/v1alpha1"
"""API version of a HudiWriter that is made up to read defaults."""


def plan(kubectl: Kubectl, screen: Screen, files: Sequence[str]) -> int:
    """Say of each object what would happen; exit code 1: a person has to correct one first."""
    written = [one for file in files for one in _objects(kubectl, file)]
    if not written:
        raise Failed(f"-f {', '.join(files)}: there is no object in it")
    namespaces = {(one.get("metadata") or {}).get("name") for one in written if one.get("kind") == "Namespace"}
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
    unread: list[str] = []
    judged = {(one.kind, one.namespace, one.name): one for one in _judged(kubectl, list(accepted.values()), unread)}
    answers = [found[n] if n in found else judged[_key(accepted[n])] for n in range(len(written))]
    unknown = [*unread, *outlook.UNKNOWN]
    if screen.as_json:
        screen.give({"objects": [one.as_json() for one in answers], "notLookedAt": unknown})
    else:
        for answer in answers:
            screen.say(*answer.lines())
        screen.say("Nothing was changed. Not looked at, and able to change this:")
        screen.say(*(f"    {one}" for one in unknown))
    return int(any(one.is_bad for one in answers))


def _objects(kubectl: Kubectl, file: str) -> list[JsonDict]:
    try:
        return kubectl.written_in(file, sys.stdin.read() if file == "-" else "")
    except Failed as error:
        raise Failed(f"-f {file}: {error}") from None


def _is_ours(raw: JsonDict) -> bool:
    if _is_defaults(raw):
        return True
    return str(raw.get("apiVersion", "")).startswith("hudioperator.io/") and raw.get("kind") in (
        "HudiTable",
        "HudiWriter",
    )


def _is_defaults(raw: JsonDict) -> bool:
    kind = raw.get("apiVersion"), raw.get("kind"), (raw.get("metadata") or {}).get("name")
    return kind == ("v1", "ConfigMap", defaults.CONFIG_MAP)


def _thing(raw: JsonDict) -> Thing:
    if _is_defaults(raw):
        return Thing(raw)
    return Table(raw) if raw.get("kind") == "HudiTable" else Writer(raw)


def _key(thing: Thing) -> tuple[str, str, str]:
    return thing.kind, thing.namespace, thing.name


def _judged(kubectl: Kubectl, accepted: Sequence[Thing], unread: list[str]) -> list[Outlook]:
    """Forecasts for accepted objects, together with the others of their namespaces.

    ``unread``: gets what could not be looked at.
    """
    answers: list[Outlook] = []
    for namespace in sorted({one.namespace for one in accepted}):
        there = kubectl.within(namespace)
        tables = {t.name: t for t in map(Table, there.objects(TABLE))}
        writers = {w.name: w for w in map(Writer, there.objects(WRITER))}
        mine = [one for one in accepted if one.namespace == namespace]
        made = [one for one in mine if isinstance(one, Writer)]
        given = next((one.raw for one in mine if _is_defaults(one.raw)), None)
        known, unseen = _config_map(there)
        if unseen:
            unread.append(f"the defaults of namespace {namespace}: {unseen}")
        # The operator has said nothing yet about a text that is to replace it.
        said = outlook.said_of_defaults(writers) if given is None and (known is not None or unseen) else None
        space = Namespace(
            tables,
            writers,
            tables | {one.name: one for one in mine if isinstance(one, Table)},
            writers | {one.name: one for one in made},
            said or outlook.defaults_of(known if given is None else given, partial(_loads, there)),
        )
        answers += [outlook.of_table(space, one.name) for one in mine if isinstance(one, Table)]
        answers += outlook.of_writers(space, [one.name for one in made])
        if given is not None:
            answers.append(outlook.of_defaults(given, known, space))
    return answers


# ---------------------------------------------------------------- defaults of a namespace
def _config_map(kubectl: Kubectl) -> tuple[JsonDict | None, str]:
    """The ConfigMap with the defaults of the namespace as it is; None: there is none.

    And why it is not known; empty: it is.
    """
    try:
        return kubectl.get("configmaps", defaults.CONFIG_MAP), ""
    except Failed as error:
        return None, "" if "NotFound" in str(error) else f"you may not read ConfigMap {defaults.CONFIG_MAP}"


def _loads(kubectl: Kubectl, text: str) -> object:
    """Parse a YAML text; kubectl reads it, as part of an object. Raises ValueError."""
    lines = text.split("\n")
    while lines and (lines[0].strip() in ("", "---") or lines[0].startswith("#")):
        lines.pop(0)
    head = f"apiVersion: {WRITERS}\nkind: HudiWriter\nmetadata: {{name: defaults}}\nspec:\n"
    try:
        (found,) = kubectl.written_in("-", head + "".join(f"  {line}\n" for line in lines))
    except Failed as error:
        raise ValueError(str(error)) from None
    return found.get("spec")

"""`kubectl hudi plan`: what would happen if a file was applied; nothing is changed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from hudi_contract import defaults
from hudi_kubectl import outlook
from hudi_kubectl.cluster import Failed, Kubectl
from hudi_kubectl.objects import INVALID_DEFAULTS, TABLE, WRITER, JsonDict, Table, Thing, Writer
from hudi_kubectl.outlook import DEFAULTS, Defaults, Namespace, Outlook
from hudi_kubectl.screen import Screen

WRITERS = "hudioperator.io/v1alpha1"
"""API version of a HudiWriter that is made up to ask about defaults."""


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
    """What would happen to the accepted ones, with the others of their namespaces.

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
        known = _config_map(there, namespace, unread)
        space = Namespace(
            tables,
            writers,
            tables | {one.name: one for one in mine if isinstance(one, Table)},
            writers | {one.name: one for one in made},
            _defaults(there, known if given is None else given, [] if given is not None else writers.values(), made),
        )
        answers += [outlook.of_table(space, one.name) for one in mine if isinstance(one, Table)]
        answers += outlook.of_writers(space, [one.name for one in made])
        if given is not None:
            answers.append(outlook.of_defaults(given, known, space))
    return answers


# ---------------------------------------------------------------- defaults of a namespace
def _config_map(kubectl: Kubectl, namespace: str, unread: list[str]) -> JsonDict | None:
    """The ConfigMap with the defaults of the namespace as it is.

    None: there is none, or the user may not see it.
    """
    try:
        return kubectl.get("configmaps", defaults.CONFIG_MAP)
    except Failed as error:
        if "NotFound" not in str(error):
            unread.append(f"the defaults of namespace {namespace}: you may not read ConfigMap {defaults.CONFIG_MAP}")
        return None


def _defaults(
    kubectl: Kubectl, config_map: JsonDict | None, judged: Iterable[Writer], made: Sequence[Writer]
) -> Defaults:
    """What the operator would make of a ConfigMap.

    ``judged``: writers of which the operator says already what it makes of this one. ``made``:
    those that are to be applied.
    """
    if config_map is None:
        return Defaults()
    for writer in judged:
        said = writer.condition("Stalled")
        message = str(said.get("message") or "")
        if said.get("reason") == INVALID_DEFAULTS and "together with this HudiWriter" not in message:
            return Defaults(problem=message)
    data = config_map.get("data") or {}
    if defaults.KEY not in data:
        found = ", ".join(sorted(data)) or "none"
        return Defaults(problem=f"ConfigMap {defaults.CONFIG_MAP}: needs the key {defaults.KEY}, has {found}")
    try:
        given = _read(kubectl, str(data[defaults.KEY]))
    except Failed as error:
        return Defaults(problem=f"{DEFAULTS}: {error}")
    problem = outlook.defaults_problem(given) or _values_problem(kubectl, given)
    if problem:
        return Defaults(problem=problem)
    return Defaults(given, refused={w.name: told for w in made if (told := _refusal(kubectl, w, given))})


def _read(kubectl: Kubectl, text: str) -> JsonDict:
    """The object that a text says: kubectl reads YAML."""
    lines = text.split("\n")
    while lines and (lines[0].strip() in ("", "---") or lines[0].startswith("#")):
        lines.pop(0)
    head = f"apiVersion: {WRITERS}\nkind: HudiWriter\nmetadata: {{name: defaults}}\nspec:\n"
    (found,) = kubectl.written_in("-", head + "".join(f"  {line}\n" for line in lines))
    given: JsonDict = {} if found.get("spec") is None else found["spec"]
    return given


def _values_problem(kubectl: Kubectl, given: JsonDict) -> str:
    """What the API server says of these values, in a writer without others; empty: it takes them.

    A user who may not create such a writer is told nothing here.
    """
    known = {name: value for name, value in given.items() if value is not None}
    if not known:
        return ""
    source = {"files": {"format": "csv", "paths": ["s3a://any/"]}}
    spec = {"tableRef": {"name": "any"}, "source": source, **known}
    meta = {"name": defaults.CONFIG_MAP}
    try:
        kubectl.applied({"apiVersion": WRITERS, "kind": "HudiWriter", "metadata": meta, "spec": spec})
    except Failed as error:
        _, invalid, why = " ".join(str(error).split()).partition("is invalid: ")
        return f"{DEFAULTS}: {why}" if invalid else ""
    return ""


def _refusal(kubectl: Kubectl, writer: Writer, given: JsonDict) -> str:
    """What the API server says of a writer with these under its own fields; empty: it takes it."""
    merged = defaults.under(writer.spec, given)
    if not merged.fields:
        return ""
    meta = {"name": writer.name, "namespace": writer.namespace}
    try:
        kubectl.applied(
            {"apiVersion": writer.raw.get("apiVersion"), "kind": writer.kind, "metadata": meta, "spec": merged.spec}
        )
    except Failed as error:
        return " ".join(str(error).split())
    return ""

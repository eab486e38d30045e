"""A job as objects, with a report of each option.

Below it is everything else of this folder; it uses no more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hudi_kubectl.streamer import jdbc, rules, services, sources, table, words, writer, yaml
from hudi_kubectl.streamer.given import MISSING, NOT_NEEDED, TABLE, TRANSLATED, WRITER, JsonDict, Needed, Places, Said
from hudi_kubectl.streamer.work import Wishes, Work

API = "hudioperator.io/v1alpha1"
_ORDER_OF_TABLE = ("path", "tableName", "type", "recordKeyFields", "partitionFields", "orderingFields")
_ORDER_OF_WRITER = ("suspend", "tableRef", "source", "transform", "operation", "duplicates", "streaming")
_HEADS = {
    TRANSLATED: "translated",
    NOT_NEEDED: "not needed here",
    MISSING: "NOT translated",
}


@dataclass(frozen=True)
class Outcome:
    """``objects``: those that can be written; ``blocked``: of the others, by kind, why not."""

    objects: tuple[JsonDict, ...]
    blocked: dict[str, list[str]]
    said: tuple[Said, ...]
    needed: tuple[Needed, ...]
    notes: tuple[str, ...]
    others: int
    """Options that were given."""

    @property
    def missing(self) -> tuple[Said, ...]:
        """Options whose effect the objects do not have."""
        return tuple(one for one in self.said if one.kind == MISSING)

    @property
    def is_whole(self) -> bool:
        """Whether both objects are written."""
        return not any(self.blocked.values())


def translate(
    commands: Sequence[tuple[str, Sequence[str]]],
    files: Sequence[str],
    places: Places,
    wishes: Wishes,
    *,
    namespace: str = "",
    allow_missing: bool = False,
) -> Outcome:
    """Translate a job. ``commands``: origin and words of each. Raises BadInput.

    Unless ``allow_missing``, a writer that lacks something of its job is suspended.
    """
    work = Work(words.job(commands, files, places), places, wishes)
    table.translate(work)
    services.translate(work)
    sources.translate(work)
    writer.translate(work)
    jdbc.agree(work)
    if wishes.image:
        work.table["image"] = wishes.image
    rules.translate(work)
    lacks = any(one.kind == MISSING for one in work.said)
    if lacks and not allow_missing:
        work.writer["suspend"] = True
    work.writer["tableRef"] = {"name": work.table_name}
    for section in [name for name, value in work.writer.items() if value == {}]:
        del work.writer[section]
    objects = []
    for kind, name, spec, order in (
        (TABLE, work.table_name, work.table, _ORDER_OF_TABLE),
        (WRITER, work.writer_name, work.writer, _ORDER_OF_WRITER),
    ):
        if not work.blocked[kind]:
            meta = {"name": name, **({"namespace": namespace} if namespace else {})}
            first = {field: spec[field] for field in order if field in spec}
            objects.append({"apiVersion": API, "kind": kind, "metadata": meta, "spec": {**first, **spec}})
    work.notes.append(
        "What HoodieStreamer has read of the source is not known here: the writer begins where its source says. "
        "An Upsert may read rows once more; set startFrom if it should not."
    )
    return Outcome(
        tuple(objects),
        work.blocked,
        tuple(work.said),
        tuple(work.needed),
        tuple(work.notes),
        len(work.given.every),
    )


def as_yaml(outcome: Outcome) -> str:
    """The objects for `kubectl apply`, with what is missing as comments."""
    parts = []
    for kind, reasons in outcome.blocked.items():
        if reasons:
            parts.append(f"# No {kind} is written:\n" + "".join(f"# - {each}\n" for each in reasons))
    for one in outcome.objects:
        parts.append(_comments(outcome, one["kind"]) + yaml.dump(one))
    return "---\n".join(parts)


def _comments(outcome: Outcome, kind: str) -> str:
    """The comments go with the writer, or with the table when there is no writer."""
    if kind != outcome.objects[-1]["kind"]:
        return ""
    lines = [f"# NOT translated: {one.name} ({one.origin}): {one.reason}" for one in outcome.missing]
    lines += [
        f"# Create {each.kind} {each.name} first, with {', '.join(key.partition(':')[0] for key in each.keys)}"
        for each in outcome.needed
    ]
    return "".join(f"{_one_line(line)}\n" for line in lines)


def _one_line(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def as_text(outcome: Outcome) -> list[str]:
    """The report for people."""
    lines = []
    for kind, head in _HEADS.items():
        found = [one for one in outcome.said if one.kind == kind]
        if not found:
            continue
        lines.append(f"{head}: {len(found)}")
        for one in found:
            said = " -> ".join(filter(None, (one.field, one.reason))) if one.field else one.reason
            lines.append(_one_line(f"{one.name} ({one.origin}): {said}").join(("  ", "")))
            if one.instead:
                lines.append(_one_line(f"instead: {one.instead}").join(("    ", "")))
    for needed in outcome.needed:
        lines.append(f"create {needed.kind} {needed.name} with the keys")
        lines += [f"  {key}" for key in needed.keys]
        lines.append("  and allow the table to use it: docs/operate/tenants.md")
    lines += [f"note: {note}" for note in outcome.notes]
    return lines


def as_json(outcome: Outcome) -> JsonDict:
    """Objects and report for programs."""
    options: list[dict[str, Any]] = []
    for one in outcome.said:
        told = {"name": one.name, "origin": one.origin, "outcome": one.kind}
        more = {"field": one.field, "reason": one.reason, "instead": one.instead}
        options.append({**told, **{name: text for name, text in more.items() if text}})
    return {
        "objects": list(outcome.objects),
        "notWritten": {kind: reasons for kind, reasons in outcome.blocked.items() if reasons},
        "options": options,
        "create": [{"kind": one.kind, "name": one.name, "keys": list(one.keys)} for one in outcome.needed],
        "notes": list(outcome.notes),
    }

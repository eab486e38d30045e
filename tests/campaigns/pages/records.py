"""docs/design/records.md: every record of the contract with its fields, made from hudi_contract.

    python -m tests.campaigns.pages.records      write the page

The text under a field is its docstring, so the page says only what the code says.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import sys
import textwrap
from enum import Enum
from types import ModuleType

from hudi_contract import assignment, job, keys, outcomes, reports, requests, settle, table_keys, words
from hudi_contract.shape import Field, Record, fields_of
from tests.support import ROOT
from tests.support.evidence.prose import wrapping

PAGE = ROOT / "docs/design/records.md"
KEYS = {
    "Gate": "gate",
    "Admit": "admit/<attempt>",
    "Registration": "writer/<inc>",
    "Alive": "alive/<inc>",
    "Lock": "lock",
    "Ticket": "queue/<inc>-<nonce>",
    "InstantRecord": "instant/<t>",
    "Clock": "clock",
    "Fence": "fence/<inc>",
    "Sighting": "seen/<inc>",
    "Pulse": "P/control/pulse",
    "SettleRecord": "settle/<inc>",
    "AssignmentRecord": "P/control/agents/<agent>/<T>",
    "TrialRecord": "P/control/agents/<agent>/<T>",
    "JobRecord": "job.json",
    "TerminationMessage": "/dev/termination-log",
}
"""Location of a record whose docstring does not begin with it."""
SECTIONS: tuple[tuple[str, ModuleType], ...] = (
    ("The lock protocol", table_keys),
    ("Settling", settle),
    ("Requests, and what became of them", requests),
    ("Reports", reports),
    ("The assignment of an agent", assignment),
    ("job.json", job),
)


def docs_of(class_: type) -> dict[str, str]:
    """Docstrings of the attributes of a class, its bases' included."""
    found: dict[str, str] = {}
    for one in reversed(class_.__mro__):
        if one.__module__.startswith("hudi_contract"):
            (tree,) = ast.parse(textwrap.dedent(inspect.getsource(one))).body
            body = tree.body if isinstance(tree, ast.ClassDef) else []
            for node, after in itertools.pairwise(body):
                target = (
                    node.target
                    if isinstance(node, ast.AnnAssign)
                    else node.targets[0]
                    if isinstance(node, ast.Assign)
                    else None
                )
                if (
                    isinstance(target, ast.Name)
                    and isinstance(after, ast.Expr)
                    and isinstance(after.value, ast.Constant)
                ):
                    found[target.id] = " ".join(str(after.value.value).split())
    return found


def classes(module: ModuleType, base: type) -> list[type]:
    """Classes that a module defines, in its order."""
    found = [
        one
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, base) and one.__module__ == module.__name__
    ]
    return [one for one in found if one is not base]


def prose(text: str) -> str:
    """A docstring as a page has it."""
    return " ".join(text.replace("``", "`").split())


def _field(one: Field, doc: str) -> str:
    value = one.default
    if value is dataclasses.MISSING:
        when = "always there"
    elif isinstance(value, Enum):
        when = f"default {value.name if not isinstance(value, str) else value.value}"
    elif isinstance(value, Record):
        when = "default: that of its fields"
    else:
        when = (
            {None: "may be null"}.get(value, f"default {value!r}")
            if not isinstance(value, dict | tuple)
            else "default: empty"
        )
    left = ", left out then" if one.left_out else ""
    names = one.type.name
    for part in one.type.parts:
        names = names.replace(part.__name__, f"[{part.__name__}](#{part.__name__.lower()})")
    return prose(f"* `{one.name}`: {names} ({when}{left}).{' ' + doc if doc else ''}")


def record(class_: type[Record]) -> list[str]:
    docs = docs_of(class_)
    lines = [f"### {class_.__name__}", ""]
    if class_.__name__ in KEYS:
        lines += [f"`{KEYS[class_.__name__]}`", ""]
    lines += [prose(inspect.getdoc(class_) or ""), ""]
    for one in fields_of(class_):
        lines.append(_field(one, docs.get(one.attribute, "")))
    return [*lines, ""]


def enum(class_: type[Enum]) -> list[str]:
    docs = docs_of(class_)
    lines = [f"### {class_.__name__}", "", prose(inspect.getdoc(class_) or ""), ""]
    for word in class_:
        value = word.value if isinstance(word.value, str) else word.name
        lines.append(prose(f"* `{value}`{': ' + docs[word.name] if word.name in docs else ''}"))
    return [*lines, ""]


@wrapping
def page() -> str:
    lines = ["# Records, words and codes", ""]
    lines.append(
        "Made from `operator/hudi_contract`, which operator and runtime use, by `python -m "
        "tests.campaigns.pages.records`; a test compares it. "
        "All values are JSON objects. A field of another type is not believed, one that a version does not know is "
        "left as it is."
    )
    lines += ["", "## Keys", "", "| key | range | written by | lease |", "|---|---|---|---|"]
    for entry in keys.protocol()["keys"].values():
        lines.append(
            f"| `{entry['path']}` | {entry['range']} | {entry['writer']} | {'yes' if entry.get('lease') else ''} |"
        )
    lines.append("")
    for title, module in SECTIONS:
        lines += [f"## {title}", "", prose(module.__doc__ or ""), ""]
        for class_ in classes(module, Record):
            lines += record(class_)
    lines += ["## Words", ""]
    for class_ in (*classes(words, Enum), *classes(settle, Enum), outcomes.FailureClass, outcomes.Ending):
        lines += enum(class_)
    lines += ["## Exit codes", "", "| code | class |", "|---|---|", f"| 0 | {outcomes.Ending.SUCCEEDED} |"]
    for code in sorted(set(outcomes.EXIT_CODES.values())):
        kinds = [str(kind) for kind, of in outcomes.EXIT_CODES.items() if of == code]
        halts = " (the JVM halts)" if outcomes.FIRST_CLASSES[code] in outcomes.HALTS else ""
        lines.append(f"| {code} | {', '.join(kinds)}{halts} |")
    lines += [
        "",
        "## Error codes",
        "",
        "An error begins with its code in brackets. The last ones are of the runtime alone.",
        "",
    ]
    for error in outcomes.ErrorCode:
        lines.append(prose(f"* `{error}`: {error.meaning}"))
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE, file=sys.stderr)

"""docs/use/huditable.md and hudiwriter.md: every field of the CRDs, made from crds/.

    python -m tests.campaigns.pages.api      write the pages

The text on a field is made of its schema: type, default, bounds, description, and the rules that
the API server evaluates (CEL) with the message of each.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

from tests.support import ROOT, crds
from tests.support.evidence.prose import wrapping

JsonDict = dict[str, Any]
KINDS = {"huditables": "HudiTable", "hudiwriters": "HudiWriter"}
RULES = "x-kubernetes-validations"
KNOWN = {
    *crds.KEYWORDS,
    "description",
    "properties",
    "additionalProperties",
    "items",
    "minProperties",
    "nullable",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    RULES,
}
"""Keywords that the pages show, or that say nothing to a reader (types of lists and maps)."""


def page_of(plural: str) -> Any:
    return ROOT / "docs" / "use" / f"{KINDS[plural].lower()}.md"


def code(text: str) -> str:
    """A span of code that may contain back quotes."""
    ticks = "`" * (max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    pad = " " if "`" in text else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def plain(text: str) -> str:
    """Text as a page shows it, outside of its spans of code."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") else part.replace("*", r"\*").replace("<", "&lt;") for part in parts)


def shown(value: object) -> str:
    """A value as YAML of one line has it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {shown(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(shown, value)) + "]"
    return '""' if value == "" else str(value)


def kind_of(schema: JsonDict) -> str:
    """Type of a field, as a reader calls it."""
    if schema.get("x-kubernetes-int-or-string") or "anyOf" in schema:
        return "number or string"
    kind = str(schema.get("type", "any value"))
    if kind == "array":
        return f"list of {_plural(kind_of(schema['items']))}"
    if kind == "object" and "additionalProperties" in schema:
        inner = schema["additionalProperties"]
        return f"map of {_plural(kind_of(inner))}" if isinstance(inner, dict) else "map"
    if schema.get("x-kubernetes-preserve-unknown-fields") and "properties" not in schema:
        return "any value" if kind == "object" else kind
    return kind


def _plural(kind: str) -> str:
    first, space, rest = kind.partition(" ")
    return f"{first}s{space}{rest}" if first != "any" else kind


def bounds(schema: JsonDict, *, required: bool) -> list[str]:
    """Allowed values of a field."""
    found = ["required"] if required else []
    if "default" in schema:
        found.append(f"default {code(shown(schema['default']))}")
    if "enum" in schema:
        found.append("one of " + ", ".join(code(shown(one)) for one in schema["enum"]))
    found += _range(schema.get("minimum"), schema.get("maximum"), "")
    if "multipleOf" in schema:
        found.append(f"a multiple of {schema['multipleOf']}")
    found += _range(schema.get("minLength"), schema.get("maxLength"), " characters")
    found += _range(schema.get("minItems"), schema.get("maxItems"), " items")
    found += _range(schema.get("minProperties"), schema.get("maxProperties"), " entries")
    if "pattern" in schema:
        found.append(f"matches {code(schema['pattern'])}")
    if schema.get("nullable"):
        found.append("may be null")
    inner = schema.get("items") or schema.get("additionalProperties")
    if isinstance(inner, dict) and "properties" not in inner:
        each = [one for one in bounds(inner, required=False) if one]
        if each:
            found.append("each: " + ", ".join(each))
    return found


def _range(low: object, high: object, unit: str) -> list[str]:
    if low is None and high is None:
        return []
    if high is None:
        return [f"at least {low}{unit}"]
    if low is None:
        return [f"at most {high}{unit}"]
    return [f"{low} to {high}{unit}"] if low != high else [f"exactly {low}{unit}"]


def message(rule: JsonDict) -> str:
    """Message of the API server; a part that it fills in is shown as `…`."""
    if "message" in rule:
        return plain(rule["message"])
    found = re.fullmatch(r'"((?:[^"\\]|\\.)*)"(?:\.format\(\[.*\]\))?', " ".join(rule["messageExpression"].split()))
    if found is None:
        return code(" ".join(rule["messageExpression"].split()))
    return plain(found[1].replace("%s", "…").replace("%d", "…").replace("%%", "%").replace('\\"', '"'))


def rules(schema: JsonDict, indent: int = 0) -> Iterator[str]:
    """Each rule of a schema, and those of what its list or map holds."""
    for rule in schema.get(RULES, ()):
        at = f"{code(rule['fieldPath'].lstrip('.'))}: " if "fieldPath" in rule else ""
        yield f"{' ' * indent}* {at}{message(rule)} ({code(' '.join(rule['rule'].split()))})"
    inner = schema.get("items") or schema.get("additionalProperties")
    if isinstance(inner, dict) and "properties" not in inner:
        yield from rules(inner, indent)


def children(schema: JsonDict, at: str) -> tuple[str, JsonDict]:
    """The object that has the fields below a field, and its path; empty when there are none."""
    inner, path = schema, at
    while "properties" not in inner:
        if isinstance(inner.get("items"), dict):
            inner, path = inner["items"], f"{path}[]"
        elif isinstance(inner.get("additionalProperties"), dict):
            inner, path = inner["additionalProperties"], f"{path}.NAME"
        else:
            return "", {}
    return path, inner


def anchor(path: str) -> str:
    return re.sub(r"[^\w\- ]", "", path.lower()).replace(" ", "-")


def objects(schema: JsonDict, at: str) -> Iterator[str]:
    """The section of an object, and those of the objects in it."""
    unknown = {word for word in schema if word not in KNOWN}
    if unknown:
        raise ValueError(f"{at}: the page does not know {sorted(unknown)}")
    yield from (f"## {at}" if at in ("spec", "status") else f"### {at}", "")
    if "description" in schema:
        yield from (plain(schema["description"]), "")
    below = []
    for name, field in schema["properties"].items():
        if unknown := {word for word in field if word not in KNOWN}:
            raise ValueError(f"{at}.{name}: the page does not know {sorted(unknown)}")
        path, inner = children(field, f"{at}.{name}")
        kind = f"[{kind_of(field)}](#{anchor(path)})" if inner else kind_of(field)
        facts = "; ".join((kind, *bounds(field, required=name in schema.get("required", ()))))
        # The section of an object says what it is.
        said = "" if inner is field else plain(field.get("description", ""))
        yield f"* **{code(name)}** ({facts}).{' ' + said if said else ''}"
        if inner is not field:
            yield from rules(field, 2)
        if inner:
            below.append((inner, path))
    yield ""
    if schema.get(RULES):
        yield from ("Rules:", "", *rules(schema), "")
    for inner, path in below:
        yield from objects(inner, path)


@wrapping
def page(plural: str) -> str:
    spec = crds.crd(plural)["spec"]
    (version,) = spec["versions"]
    root = version["schema"]["openAPIV3Schema"]
    names = spec["names"]
    lines = [f"# {names['kind']}", "", plain(root["description"])]
    lines += ["", f"`apiVersion: {spec['group']}/{version['name']}`, `kind: {names['kind']}`; short name", ""]
    lines[-2] += f" `{names['shortNames'][0]}`, category `{names['categories'][0]}`, {spec['scope'].lower()}."
    lines.append(
        f"Made from `crds/{spec['group']}_{plural}.yaml` by `python -m tests.campaigns.pages.api`; a test compares it. "
        "In brackets: type, default and bounds. Below a field, or below the fields of an object, is each rule that the "
        "API server evaluates at `kubectl apply`: its message, in which … is what the message fills in, and the rule "
        "that must be true, in CEL (`self` is the value, `oldSelf` the one that is stored)."
    )
    lines += ["", "| column | shows |", "|---|---|"]
    for column in version["additionalPrinterColumns"]:
        wide = " (`-o wide`)" if column.get("priority") else ""
        about = f": {plain(column['description'])}" if "description" in column else ""
        lines.append(f"| {column['name']}{wide} | `{column['jsonPath']}`{about} |")
    lines.append("")
    if root.get(RULES):
        lines += ["Rules of the object:", "", *rules(root), ""]
    for part in ("spec", "status"):
        lines += objects(root["properties"][part], part)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


if __name__ == "__main__":
    for one in KINDS:
        page_of(one).write_text(page(one), encoding="utf-8")
        print(page_of(one), file=sys.stderr)

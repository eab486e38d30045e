"""The CRDs as data, and what the types of hudi_operator.api declare, in the same form, so that the
two can be compared.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from hudi_operator.api.fields import DISTINCT, KEYS, NOTHING, SpecError, check, declarations
from tests.support import ROOT, quick_yaml

JsonDict = dict[str, Any]

#: Keywords by which a type describes a value. The rest (descriptions, rules between fields, the
# merging of lists) is in the CRDs only.
KEYWORDS = (
    "type",
    "format",
    "enum",
    "minimum",
    "maximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "maxProperties",
    "required",
    "default",
    "anyOf",
    "x-kubernetes-int-or-string",
    DISTINCT,
    KEYS,
)


FREE = "free"
"""Keyword of a type's schema: the part below is in the CRD only, and a module judges it."""


@cache
def _text(plural: str) -> str:
    return json.dumps(quick_yaml.load((ROOT / "crds" / f"hudioperator.io_{plural}.yaml").read_text()))


def crd(plural: str) -> JsonDict:
    """The CRD of ``huditables`` or ``hudiwriters``.

    A copy in which no part is shared by two places.
    """
    found: JsonDict = json.loads(_text(plural))
    return found


def schema(plural: str, part: str) -> JsonDict:
    """The schema of ``spec`` or ``status``."""
    found: JsonDict = crd(plural)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][part]
    return found


def fields(node: JsonDict, at: str) -> Iterator[tuple[str, JsonDict]]:
    """Every value below ``node`` with its path.

    ``[]`` is an item of a list, ``{}`` an entry of a map.
    """
    for name, value in node.get("properties", {}).items():
        yield f"{at}.{name}", value
        yield from fields(value, f"{at}.{name}")
    for keyword, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(node.get(keyword), dict):
            yield f"{at}{mark}", node[keyword]
            yield from fields(node[keyword], f"{at}{mark}")


def declared(kind: type[Any]) -> JsonDict:
    """Schema that a class declares."""
    top: JsonDict = {"type": "object", "properties": {}}
    for _, field in declarations(kind):
        if not field.at:
            assert field.record is not None
            embedded = declared(field.record)
            top["properties"].update(embedded["properties"])
            _require(top, *embedded.get("required", ()))
            continue
        node = top
        for name in field.at[:-1]:
            if field.way_required:
                _require(node, name)
            node = node["properties"].setdefault(name, {"type": "object", "properties": {}})
        if field.required:
            _require(node, field.at[-1])
        node["properties"][field.at[-1]] = _leaf(field)
    return top


def _leaf(field: Any) -> JsonDict:
    leaf: JsonDict = copy.deepcopy(dict(field.schema))
    if field.record is not None and leaf["type"] == "array":
        leaf["items"] = declared(field.record)
    elif field.record is not None:
        leaf |= declared(field.record)
    if field.free:
        leaf[FREE] = True
    return leaf if field.default is NOTHING else leaf | {"default": field.default}


def _require(node: JsonDict, *names: str) -> None:
    node["required"] = sorted({*node.get("required", ()), *names})


def differences(crds: JsonDict, types: JsonDict, at: str = "spec") -> list[str]:
    """Differences between the CRD and the types, by path and keyword."""
    found = [
        f"{at}: {keyword}: the CRD says {_said(crds, keyword)!r}, the type {_said(types, keyword)!r}"
        for keyword in KEYWORDS
        if _said(crds, keyword) != _said(types, keyword)
    ]
    if types.get(FREE):
        return found
    ours, theirs = types.get("properties", {}), crds.get("properties", {})
    found += [f"{at}.{name}: only in the CRD" for name in theirs if name not in ours]
    found += [f"{at}.{name}: only in the type" for name in ours if name not in theirs]
    for name in ours:
        if name in theirs:
            found += differences(theirs[name], ours[name], f"{at}.{name}")
    for keyword, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if keyword in crds or keyword in types:
            found += differences(crds.get(keyword, {}), types.get(keyword, {}), f"{at}{mark}")
    return found


def _said(node: JsonDict, keyword: str) -> Any:
    value = node.get(keyword)
    if keyword == "required":
        return sorted(value or ())
    if keyword == DISTINCT and value == "atomic":
        return None  # the meaning of a list without the keyword
    if keyword == "default" and isinstance(value, dict):
        return None  # of an object: see wrong_object_defaults
    return value


def wrong_object_defaults(node: JsonDict, at: str = "spec") -> list[str]:
    """Objects whose own default says something else than the defaults of their fields."""
    found = []
    for path, value in [(at, node), *fields(node, at)]:
        default = value.get("default")
        if isinstance(default, dict) and completed(default, value) != completed({}, value):
            found.append(f"{path}: default {default} is not that of its fields, {completed({}, value)}")
    return found


def refused(value: Any, node: JsonDict, at: str) -> list[str]:
    """Parts of a value that the API server would refuse, or drop because the schema does not have
    them.
    """
    if isinstance(value, dict) and "properties" in node:
        found = [f"{at}.{name}: not in the CRD" for name in value if name not in node["properties"]]
        found += [f"{at}.{name}: required" for name in node.get("required", ()) if name not in value]
        return found + [
            said
            for name, entry in value.items()
            if name in node["properties"]
            for said in refused(entry, node["properties"][name], f"{at}.{name}")
        ]
    if isinstance(value, list) and "items" in node:
        found = [f"{at}: {len(value)} items, at most {node['maxItems']}"] if len(value) > node["maxItems"] else []
        return found + [said for item in value for said in refused(item, node["items"], f"{at}[]")]
    try:
        check(value, node, at)
        return [f"{at}: {value!r} is not of format {node['format']}"] if not _formatted(value, node) else []
    except SpecError as error:
        return [str(error)]
    except KeyError:
        return [f"{at}: {value!r} is not of type {node.get('type')}"]


def _formatted(value: Any, node: JsonDict) -> bool:
    """Whether a value has the format of its field, as the API server judges it."""
    match node.get("format"):
        case "int32" | "int64" as kind:
            most = 1 << (int(kind[3:]) - 1)
            return -most <= value < most
        case "date-time":
            return bool(re.fullmatch(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d([.]\d+)?([Zz]|[+-]\d\d:\d\d)", value))
    return True


def completed(value: Any, node: JsonDict) -> Any:
    """The value as the API server stores it: with the defaults of the schema."""
    if isinstance(value, list):
        return [completed(item, node.get("items", {})) for item in value]
    if not isinstance(value, dict):
        return value
    entries = node.get("additionalProperties")
    filled = {
        name: completed(entry, entries if isinstance(entries, dict) else node.get("properties", {}).get(name, {}))
        for name, entry in value.items()
    }
    for name, field in node.get("properties", {}).items():
        if name not in filled and "default" in field:
            filled[name] = completed(field["default"], field)
    return filled

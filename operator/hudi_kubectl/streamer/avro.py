"""An Avro schema as columns for Spark's JSON reader.

It uses nothing else of the plugin, and below it is only the standard library.
"""

from __future__ import annotations

import json
import re
from typing import Any

_PLAIN = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "bytes": "BINARY",
    "string": "STRING",
}
_OPTIONAL = 2
"""Branches of a union that is a type or null."""


class Unsaid(Exception):
    """The schema cannot be said as columns; the text is the reason."""


def columns(text: str) -> tuple[str, tuple[str, ...]]:
    """Spark's list of columns, and the columns with a default value other than null.

    Raises Unsaid.
    """
    try:
        schema = json.loads(text)
    except ValueError:
        raise Unsaid("the file is no JSON") from None
    if not isinstance(schema, dict) or schema.get("type") != "record":
        raise Unsaid("the schema is no Avro record")
    fields = _fields(schema, "", ())
    defaults = [
        str(one["name"]) for one in schema["fields"] if one.get("default") is not None and one["default"] != "null"
    ]
    return ", ".join(f"{name} {kind}" for name, kind in fields), tuple(defaults)


def _fields(schema: dict[str, Any], at: str, above: tuple[str, ...]) -> list[tuple[str, str]]:
    fields = schema.get("fields")
    if not isinstance(fields, list) or not fields:
        raise Unsaid(f"the record {at or schema.get('name', '')} has no fields")
    found = []
    for one in fields:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str) or "type" not in one:
            raise Unsaid(f"a field of the record {at or schema.get('name', '')} has no name or no type")
        where = f"{at}.{one['name']}" if at else one["name"]
        found.append((_quoted(one["name"]), _type(one["type"], where, above)))
    return found


def _quoted(name: str) -> str:
    return name if re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) else "`" + name.replace("`", "``") + "`"


def _type(kind: Any, at: str, above: tuple[str, ...]) -> str:
    if isinstance(kind, list):
        known = [one for one in kind if one != "null"]
        if len(known) != 1 or len(kind) > _OPTIONAL:
            raise Unsaid(f"{at}: a union of several types")
        return _type(known[0], at, above)
    if isinstance(kind, str):
        if kind not in _PLAIN:
            raise Unsaid(f"{at}: the type {kind} refers to another one")
        return _PLAIN[kind]
    if not isinstance(kind, dict):
        raise Unsaid(f"{at}: no Avro type")
    logical = kind.get("logicalType")
    if logical == "decimal" and isinstance(kind.get("precision"), int):
        return f"DECIMAL({kind['precision']},{int(kind.get('scale', 0))})"
    if logical not in (None, "uuid"):
        raise Unsaid(
            f"{at}: HoodieStreamer reads numbers in JSON as {logical}, Spark's reader does not: name it BIGINT or "
            "STRING, and convert it in SQL"
        )
    return _nested(kind, at, above)


def _nested(kind: dict[str, Any], at: str, above: tuple[str, ...]) -> str:
    name = kind.get("type")
    if name == "record":
        if kind.get("name") in above:
            raise Unsaid(f"{at}: a type that contains itself")
        inner = _fields(kind, at, (*above, str(kind.get("name"))))
        return f"STRUCT<{', '.join(f'{each}: {its}' for each, its in inner)}>"
    if name == "array":
        return f"ARRAY<{_type(kind.get('items'), f'{at}[]', above)}>"
    if name == "map":
        return f"MAP<STRING, {_type(kind.get('values'), f'{at}{{}}', above)}>"
    if name == "enum":
        return "STRING"
    if name == "fixed":
        return "BINARY"
    return _type(name, at, above)

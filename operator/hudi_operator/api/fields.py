"""Declarations of CRD fields beside their types, and the reader of objects with such declarations.

With ``text``, ``number``, ``flag`` and so on a dataclass declares the CRD's schema of each field:
name, type, default, bounds, choices. ``read`` creates a value of the class, and repeats the
validation of the API server: an object may have been stored under a CRD of another release. A test
compares declarations and CRDs (tests/tiers/unit/api/test_crds.py). Descriptions, and rules between
fields, are only in the CRDs.

pydantic, which the Kubernetes client brings along, is not used: its models would make a second
schema and second messages beside the CRD's, and it is compiled, while `kubectl hudi plan` reads
specs with these classes where nothing is installed but Python.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

JsonDict = dict[str, Any]
_T = TypeVar("_T")
NAME = "^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"
"""Pattern of Kubernetes object names."""
IMAGE = "^[A-Za-z0-9][A-Za-z0-9._:/@-]*$"
"""Pattern of references of images."""
SIZE = "^[1-9][0-9]{0,5}[MG]i$"
"""The CRDs have the same check as a rule with its own message."""
DISTINCT = "x-kubernetes-list-type"
"""Keyword of a list in which nothing stands twice: ``set``, or ``map`` by the field in ``KEYS``."""
KEYS = "x-kubernetes-list-map-keys"
NONCE = "^[A-Za-z0-9._:-]*$"
"""Pattern of a value that only says that something is wanted again."""
RULE = "matches"
"""Keyword of a declaration whose regular expression is a rule in the CRD, not the schema's
``pattern``.
"""
VALUE_LIMIT = 80
"""Maximum number of characters of a value in a message."""
_METADATA = "hudi_operator.crd"


class SpecError(ValueError):
    """An object's spec is invalid; the message names the field."""


class _Nothing:
    """Neither a default nor a value."""


NOTHING = _Nothing()
_LIKE_THE_FIELD = ("?",)


@dataclass(frozen=True)
class Declared:
    """The CRD's schema of one field of a class."""

    at: tuple[str, ...]
    """Path to the value within the object that the class describes. Empty: the fields of ``record``
    are fields of that object itself.
    """
    schema: Mapping[str, Any]
    """Keywords of the CRD's schema; of a record only its type."""
    default: object = NOTHING
    """Filled in by the API server."""
    unset: object = NOTHING
    """Value in the class when the field, or an object on the path to it, is absent."""
    required: bool = False
    way_required: bool = False
    """Whether the objects on the path to the value are required, too."""
    record: type[Any] | None = None
    """Class of an object, or of the items of a list."""
    plain: bool = False
    """Validated as ``record``, and kept as plain JSON."""
    size: bool = False
    """A string that must be a SIZE."""
    free: bool = False
    """An object that another module judges, as it is."""


# ---- Declarations. They return Any, so that a field keeps its annotated type.


def text(
    default: object = NOTHING,
    *,
    at: str | None = None,
    unset: object = NOTHING,
    required: bool = False,
    way_required: bool = False,
    choices: Iterable[str] = (),
    at_least: int | None = None,
    at_most: int | None = None,
    pattern: str = "",
    matches: str = "",
    form: str = "",
) -> Any:
    """A string. ``at_least`` and ``at_most`` are numbers of characters.

    ``form`` is a format of OpenAPI. ``matches`` is a regular expression for the whole string: the
    CRD has it as a separate rule with its own message. ``choices`` may be an enum, whose words
    become plain strings, as does a default.
    """
    default, unset = (str(value) if isinstance(value, str) else value for value in (default, unset))
    schema = _string(choices=choices, at_least=at_least, at_most=at_most, pattern=pattern, matches=matches, form=form)
    return _declare(
        at,
        schema,
        default,
        "" if unset is NOTHING and default is NOTHING and not required else unset,
        required=required,
        way_required=way_required,
    )


def number(
    default: object = NOTHING,
    *,
    at_least: int,
    at_most: int | None = None,
    at: str | None = None,
    unset: object = NOTHING,
    required: bool = False,
    multiple_of: int | None = None,
    form: str = "int32",
) -> Any:
    """A whole number."""
    bounds = {
        keyword: value for keyword, value in (("maximum", at_most), ("multipleOf", multiple_of)) if value is not None
    }
    return _declare(
        at, {"type": "integer", "format": form, "minimum": at_least, **bounds}, default, unset, required=required
    )


def flag(default: object = NOTHING, *, at: str | None = None, unset: object = NOTHING) -> Any:
    """True or false."""
    return _declare(at, {"type": "boolean"}, default, unset)


def size(default: object = NOTHING, *, unset: object = NOTHING, required: bool = False) -> Any:
    """A size that a JVM accepts: whole MiB or GiB, in Kubernetes notation (``512Mi``, ``2Gi``)."""
    return _declare(None, _string(at_most=8), default, unset, required=required, size=True)


def tree(*, at: str | None = None) -> Any:
    """An object that is kept as it is, and that another module judges; empty when it is absent."""
    return _declare(at, {"type": "object"}, NOTHING, {}, free=True)


def quantity(at: str | None = None) -> Any:
    """A Kubernetes quantity, as a number or a string."""
    either = [{"type": "integer"}, {"type": "string"}]
    pattern = r"^[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$"
    return _declare(
        at,
        {"anyOf": either, "x-kubernetes-int-or-string": True, "minimum": 0, "maxLength": 32, "pattern": pattern},
        NOTHING,
        None,
    )


def texts(
    *,
    at: str | None = None,
    unset: tuple[str, ...] = (),
    required: bool = False,
    at_least: int | None = None,
    at_most: int,
    length: tuple[int | None, int] | None = None,
    choices: Iterable[str] = (),
    matches: str = "",
    distinct: bool = False,
) -> Any:
    """A list of ``at_least`` to ``at_most`` strings, none of which stands twice if ``distinct``.

    Each string has a number of characters within ``length``, and ``matches`` as in `text`.
    """
    shortest, longest = length or (None, None)
    items = _string(choices=choices, at_least=shortest, at_most=longest, matches=matches)
    bounds: JsonDict = {} if at_least is None else {"minItems": at_least}
    bounds |= {DISTINCT: "set"} if distinct else {}
    return _declare(
        at,
        {"type": "array", **bounds, "maxItems": at_most, "items": items},
        NOTHING,
        NOTHING if required else unset,
        required=required,
    )


def text_map(*, at: str | None = None, at_most: int, longest: int, pattern: str = "") -> Any:
    """A map of strings with at most ``at_most`` entries.

    Values have at most ``longest`` characters.
    """
    values = _string(at_most=longest, pattern=pattern)
    return _declare(at, {"type": "object", "maxProperties": at_most, "additionalProperties": values}, NOTHING, {})


def record(
    kind: type[Any], *, at: str | None = None, optional: bool = False, required: bool = False, plain: bool = False
) -> Any:
    """An object.

    When it is absent: None if ``optional``, else one with its own defaults. ``at=""``: its fields
    are those of the object around it.
    """
    unset = NOTHING if required or at == "" else None if optional else kind
    return _declare(at, {"type": "object"}, NOTHING, {} if plain else unset, required=required, kind=kind, plain=plain)


def records(kind: type[Any], *, at: str | None = None, at_most: int, plain: bool = False, by: str = "") -> Any:
    """A list of objects, no two of which have the same value of the field ``by`` (if it is set)."""
    distinct = {DISTINCT: "map", KEYS: [by]} if by else {}
    return _declare(at, {"type": "array", "maxItems": at_most, **distinct}, NOTHING, (), kind=kind, plain=plain)


def _string(
    *,
    choices: Iterable[str] = (),
    at_least: int | None = None,
    at_most: int | None = None,
    pattern: str = "",
    matches: str = "",
    form: str = "",
) -> JsonDict:
    said = {
        "minLength": at_least,
        "maxLength": at_most,
        "enum": [str(choice) for choice in choices] or None,
        "pattern": pattern or None,
        RULE: matches or None,
        "format": form or None,
    }
    return {"type": "string"} | {keyword: value for keyword, value in said.items() if value is not None}


def _declare(
    at: str | None,
    schema: JsonDict,
    default: object,
    unset: object,
    *,
    required: bool = False,
    way_required: bool = False,
    kind: type[Any] | None = None,
    plain: bool = False,
    size: bool = False,
    free: bool = False,
) -> Any:
    unset = default if unset is NOTHING else unset
    way = _LIKE_THE_FIELD if at is None else tuple(part for part in at.split(".") if part)
    declared = Declared(way, schema, default, unset, required, way_required, kind, plain, size, free)
    metadata = {_METADATA: declared}
    if unset is NOTHING:
        return field(metadata=metadata)
    if isinstance(unset, type):
        return field(default_factory=unset, metadata=metadata)
    return field(default_factory=dict, metadata=metadata) if unset == {} else field(default=unset, metadata=metadata)


def declarations(kind: type[Any]) -> tuple[tuple[str, Declared], ...]:
    """The declared fields of a class, by name.

    The CRD's name is the same in camel case, unless the declaration sets another one.
    """
    if kind not in _DECLARATIONS:
        _DECLARATIONS[kind] = tuple(_declarations(kind))
    return _DECLARATIONS[kind]


_DECLARATIONS: dict[type[Any], tuple[tuple[str, Declared], ...]] = {}


def _declarations(kind: type[Any]) -> Iterator[tuple[str, Declared]]:
    for each in dataclasses.fields(kind):
        declared = each.metadata.get(_METADATA)
        if declared is not None:
            yield (
                each.name,
                declared if declared.at != _LIKE_THE_FIELD else dataclasses.replace(declared, at=(_camel(each.name),)),
            )


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


# ---- The reader


def read(kind: type[_T], raw: object, where: str, **given: object) -> _T:
    """A value of ``kind`` from the object at ``where``.

    ``given`` are fields that are not in the object. Raises SpecError.
    """
    source = _mapping(raw, where)
    return kind(**given, **{name: _value(declared, source, where) for name, declared in declarations(kind)})


def _mapping(raw: object, where: str) -> Mapping[str, Any]:
    if not isinstance(raw, Mapping):
        raise SpecError(f"{where}: expected an object, found {_shown(raw)}")
    return raw


def _value(declared: Declared, source: Mapping[str, Any], where: str) -> object:
    if not declared.at:
        return read(cast("type[Any]", declared.record), source, where)
    *way, last = declared.at
    for name in way:
        where = f"{where}.{name}"
        inner = source.get(name)
        if inner is None:
            if declared.way_required:
                raise SpecError(f"{where}: required")
            return _absent(declared.unset)
        source = _mapping(inner, where)
    where, value = f"{where}.{last}", source.get(last)
    if value is None:
        if declared.required:
            raise SpecError(f"{where}: required")
        return _absent(declared.unset if declared.default is NOTHING else declared.default)
    return _checked(value, declared, where)


def _absent(unset: object) -> object:
    if isinstance(unset, type):
        return unset()
    return {} if unset == {} else unset


def _checked(value: object, declared: Declared, where: str) -> object:
    kind, schema = declared.record, declared.schema
    if schema.get("type") == "array":
        items = _list(value, schema, where)
        if kind is None:
            return tuple(check(item, schema["items"], where) for item in items)
        found = tuple(read(kind, item, f"{where}[{number}]") for number, item in enumerate(items))
        return tuple(items) if declared.plain else found
    if kind is not None:
        found = read(kind, value, where)
        return dict(_mapping(value, where)) if declared.plain else found
    if declared.free:
        return dict(_mapping(value, where))
    if schema.get("type") == "object":
        return _map(value, schema, where)
    if declared.size:
        size_bytes(str(value), where)
    return check(value, schema, where)


def _list(value: object, schema: Mapping[str, Any], where: str) -> list[Any]:
    if not isinstance(value, list):
        raise SpecError(f"{where}: expected a list, found {_shown(value)}")
    _count(len(value), schema.get("minItems"), schema.get("maxItems"), "items", where)
    if schema.get(DISTINCT) in ("set", "map"):
        _all_distinct(value, schema.get(KEYS, []), where)
    return value


def _all_distinct(items: list[Any], keys: list[str], where: str) -> None:
    """As the API server compares items: by value, and by the values of the keys."""
    seen: list[Any] = []
    for number, item in enumerate(items):
        known = {key: item[key] for key in keys if key in item} if keys and isinstance(item, Mapping) else item
        if known in seen:
            raise SpecError(f"{where}[{number}]: {_shown(known)} stands there twice")
        seen.append(known)


def _map(value: object, schema: Mapping[str, Any], where: str) -> dict[str, Any]:
    entries = _mapping(value, where)
    _count(len(entries), None, schema.get("maxProperties"), "entries", where)
    return {
        str(name): check(entry, schema["additionalProperties"], f"{where}[{name!r}]") for name, entry in entries.items()
    }


def check(value: object, schema: Mapping[str, Any], where: str) -> object:
    """Validate a single value against its schema and return it.

    Raises SpecError with field, value and rule.
    """
    kind = schema.get("type", "quantity")
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    types, told = _TYPES[kind]
    if not isinstance(value, types) or (isinstance(value, bool) and kind != "boolean"):
        raise SpecError(f"{where}: expected {told}, found {_shown(value)}")
    if isinstance(value, str):
        _count(len(value), schema.get("minLength"), schema.get("maxLength"), "characters", where)
        if "enum" in schema and value not in schema["enum"]:
            raise SpecError(f"{where}: {_shown(value)} must be one of {', '.join(schema['enum'])}")
        for keyword in ("pattern", RULE):
            # ASCII: what the API server's regular expressions mean by \\s, too.
            if keyword in schema and not re.fullmatch(schema[keyword], value, re.ASCII):
                raise SpecError(f"{where}: {_shown(value)} must match {schema[keyword]}")
    elif kind in ("integer", "quantity"):
        least, most = schema.get("minimum"), schema.get("maximum")
        if least is not None and value < least:
            raise SpecError(f"{where}: {value} must be at least {least}")
        if most is not None and value > most:
            raise SpecError(f"{where}: {value} must be at most {most}")
        if value % schema.get("multipleOf", 1):
            raise SpecError(f"{where}: {value} must be a multiple of {schema['multipleOf']}")
    return value


_TYPES: dict[str, tuple[Any, str]] = {
    "string": (str, "str"),
    "integer": (int, "int"),
    "boolean": (bool, "bool"),
    "quantity": ((int, str), "a quantity"),
}


def _shown(value: object) -> str:
    return repr(value)[:VALUE_LIMIT]


def size_bytes(written: str, where: str = "size") -> int:
    """Bytes of a size such as ``300Mi`` or ``1Gi``. Raises SpecError."""
    if not re.fullmatch(SIZE, written):
        raise SpecError(f"{where}: {_shown(written)} is not a size: a whole number and Mi or Gi, such as 512Mi or 2Gi")
    return int(written[:-2]) << (30 if written.endswith("Gi") else 20)


def _count(found: int, least: int | None, most: int | None, of: str, where: str) -> None:
    if least is not None and found < least:
        raise SpecError(f"{where}: has {found} {of}, must have at least {least}")
    if most is not None and found > most:
        raise SpecError(f"{where}: has {found} {of}, must have at most {most}")

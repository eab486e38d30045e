"""Conversion between records and JSON.

A record is a frozen dataclass; its fields, types and defaults define the JSON.

The field ``pod_uid`` is ``podUID`` in JSON. Reading is strict about types and tolerant of newer
fields: a value of another type is an error that names field and rule, a field that this version
does not know is kept unchanged and written back (`more`).
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Annotated, Any, ClassVar, Final, Self, Union

JsonDict = dict[str, Any]
Check = Callable[[object], str]
"""Returns the error of a value; empty when it is valid."""

_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")
MAX_MS = 253_402_300_799_999
"""Last millisecond of the year 9999."""


class ShapeError(ValueError):
    """A value violates the contract. The message names record, field and rule."""


# ---- checks


def text(limit: int = 1 << 16) -> Check:
    """A text of at most ``limit`` characters that UTF-8 can encode."""

    def check(value: object) -> str:
        if not isinstance(value, str) or len(value) > limit:
            return f"is not a text of at most {limit} characters"
        return _unpaired(value)

    return check


def _unpaired(value: str) -> str:
    r"""The error of a text with half of a surrogate pair.

    JSON can say one (``"\ud800"``), and no key, log or event can have it.
    """
    return "" if value.isascii() or not _SURROGATE.search(value) else "has half of a surrogate pair"


def whole(most: int = (1 << 63) - 1) -> Check:
    """A whole number from 0 to ``most``. A bool is not a number."""
    return lambda value: (
        ""
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most
        else f"is not a whole number from 0 to {most}"
    )


def integer(value: object) -> str:
    """A whole number of either sign that 64 bits hold."""
    fits = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63
    return "" if fits else "is not a whole number"


def one_of(*words: str) -> Check:
    """One of some words."""
    return lambda value: "" if isinstance(value, str) and value in words else f"is not one of {', '.join(words)}"


def flag(value: object) -> str:
    """True or false."""
    return "" if isinstance(value, bool) else "is not true or false"


def object_name(value: object) -> str:
    """Empty, or a name of Kubernetes: a DNS subdomain of at most 253 characters."""
    named = isinstance(value, str) and (not value or is_object_name(value))
    return "" if named else "is no name of a Kubernetes object"


def is_object_name(text: str) -> bool:
    """Whether a text is a DNS subdomain of at most 253 characters."""
    return len(text) <= 253 and _SUBDOMAIN.fullmatch(text) is not None


def listed(item: Check) -> Check:
    """A list of items that pass ``item``."""

    def check(value: object) -> str:
        if not isinstance(value, list | tuple):
            return "is not a list"
        return next((at(f"[{n}]", wrong) for n, one in enumerate(value) if (wrong := item(one))), "")

    return check


def mapped(item: Check) -> Check:
    """An object with any names whose values pass ``item``."""

    def check(value: object) -> str:
        if not isinstance(value, Mapping):
            return "is not an object"
        if any(isinstance(name, str) and _unpaired(name) for name in value):
            return "has a name with half of a surrogate pair"
        return next((at(f".{str(name)[:64]}", wrong) for name, one in value.items() if (wrong := item(one))), "")

    return check


def at(where: str, wrong: str) -> str:
    """An error, with its place in front of it."""
    return f"{where}{'' if wrong[0] in '.[' else ' '}{wrong}"


Count = Annotated[int, whole()]
"""0 or more."""
Ms = Annotated[int, whole(MAX_MS)]
"""Unix milliseconds of the writing host's wall clock: for people and metrics, never
for a decision.
"""
Time = Annotated[str, text(32)]
"""Time of an instant, `yyyyMMddHHmmssSSS`, or another short text."""
Short = Annotated[str, text(253)]
"""A short text that somebody else's record repeats."""
ObjectName = Annotated[str, object_name]
"""Name of an object of Kubernetes, such as a node; empty: unknown."""
Free = Any
"""JSON that is not checked here."""

LEFT_OUT: Final = {"left out": True}
"""Metadata of a field that is not written while it has its default."""


# ---- types of fields


@dataclass(frozen=True)
class Type:
    """Functions that check, read and write values of one type.

    ``name``: its name in docs/design/contracts.md.
    """

    check: Check
    read: Callable[[Any], Any]
    write: Callable[[Any], Any]
    name: str
    parts: tuple[type[Record], ...] = ()
    """Record types that it contains."""


def _same(value: Any) -> Any:
    return value


def type_of(hint: Any) -> Type:
    """The type of an annotation. Raises TypeError for an annotation that records do not support."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return dataclasses.replace(type_of(arguments[0]), check=arguments[1])
    if origin in (Union, types.UnionType):
        (inner,) = (type_of(part) for part in arguments if part is not types.NoneType)
        return dataclasses.replace(inner, write=lambda value: None if value is None else inner.write(value))
    if origin is tuple:
        item = type_of(arguments[0])
        return Type(
            listed(item.check),
            lambda v: tuple(map(item.read, v)),
            lambda v: [item.write(one) for one in v],
            f"[{item.name}]",
            item.parts,
        )
    if origin is not None and issubclass(origin, Mapping):
        item = type_of(arguments[1])
        return Type(
            mapped(item.check),
            lambda v: {name: item.read(one) for name, one in v.items()},
            lambda v: {name: item.write(one) for name, one in v.items()},
            f"{{name: {item.name}}}",
            item.parts,
        )
    return _plain(hint)


def _plain(hint: Any) -> Type:
    if hint is Any:
        return Type(lambda value: "", _same, _same, "JSON")
    if issubclass(hint, Record):
        return Type(hint.wrong, hint.from_json, lambda value: value.to_json(), hint.__name__, (hint,))
    if issubclass(hint, StrEnum):
        words = [word.value for word in hint]
        return Type(one_of(*words), hint, str, " | ".join(words))
    if issubclass(hint, Enum):  # an ordered enum is written by name
        return Type(
            one_of(*(word.name for word in hint)),
            lambda name: hint[name],
            lambda value: value.name,
            " | ".join(word.name for word in hint),
        )
    known = {
        str: Type(text(), _same, str, "text"),
        int: Type(integer, _same, int, "number"),
        bool: Type(flag, _same, bool, "true | false"),
    }
    if hint not in known:
        raise TypeError(f"records have no fields of type {hint}")
    return known[hint]


@dataclass(frozen=True)
class Field:
    """One field of a record."""

    attribute: str
    name: str
    """Name in JSON."""
    type: Type
    default: Any
    """`dataclasses.MISSING`: no default."""
    left_out: bool
    optional: bool
    """None is written as null."""


def json_name(attribute: str) -> str:
    """``pod_uid`` is ``podUID``, ``at_ms`` is ``atMs``.

    A trailing ``_`` avoids a Python keyword and is not written.
    """
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), re.sub(r"_uid\b", "UID", attribute.rstrip("_")))


@dataclass(frozen=True, kw_only=True)
class Record:
    """Base of all records. Subclasses are frozen, keyword-only dataclasses."""

    REQUIRED: ClassVar[frozenset[str]] = frozenset()
    """Required fields (names in JSON): absent, null or empty is an error."""
    more: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Fields that this version does not know."""

    @classmethod
    def wrong(cls, value: object) -> str:
        """The error of a JSON value, with field and rule; empty when it is valid."""
        if not isinstance(value, Mapping):
            return "is not an object"
        for name in sorted(cls.REQUIRED):
            if value.get(name) in (None, ""):
                return f".{name} is missing"
        for one in fields_of(cls):
            found = value.get(one.name)
            if found is None:
                if one.default is dataclasses.MISSING:
                    return f".{one.name} is missing"
            elif wrong := one.type.check(found):
                return at(f".{one.name}", wrong)
        return ""

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read a record strictly. Raises ShapeError."""
        if wrong := cls.wrong(value):
            raise ShapeError(at(cls.__name__, wrong))
        return cls.known(value)

    @classmethod
    def known(cls, value: object) -> Self:
        """Read a record tolerantly: a field that is absent, or not of its type, has its default.

        Raises ShapeError for a field without a default.
        """
        found = value if isinstance(value, Mapping) else {}
        said: JsonDict = {}
        for one in fields_of(cls):
            raw = found.get(one.name)
            if raw is not None and not one.type.check(raw):
                said[one.attribute] = one.type.read(raw)
            elif one.default is dataclasses.MISSING:
                raise ShapeError(f"{cls.__name__}.{one.name} is missing")
        names = _names_of(cls)
        return cls(**said, more={name: raw for name, raw in found.items() if name not in names})

    def to_json(self) -> JsonDict:
        """The record as JSON, including fields of a newer version."""
        written: JsonDict = dict(self.more)
        for one in fields_of(type(self)):
            value = getattr(self, one.attribute)
            if not (one.left_out and value == one.default):
                written[one.name] = None if value is None else one.type.write(value)
        return written

    def but(self, **changes: Any) -> Self:
        """The record with some fields changed."""
        return dataclasses.replace(self, **changes)


_FIELDS: dict[type[Record], tuple[Field, ...]] = {}
_NAMES: dict[type[Record], frozenset[str]] = {}


def _names_of(record: type[Record]) -> frozenset[str]:
    """Names of the fields in JSON."""
    if record not in _NAMES:
        _NAMES[record] = frozenset(one.name for one in fields_of(record))
    return _NAMES[record]


def fields_of(record: type[Record]) -> tuple[Field, ...]:
    """The fields of a record, in their order."""
    if record not in _FIELDS:
        _FIELDS[record] = _read_fields(record)
    return _FIELDS[record]


def _read_fields(record: type[Record]) -> tuple[Field, ...]:
    hints = typing.get_type_hints(record, include_extras=True)
    found = []
    for one in dataclasses.fields(record):
        if one.name != "more":
            default = one.default_factory() if one.default_factory is not dataclasses.MISSING else one.default
            optional = types.NoneType in typing.get_args(hints[one.name])
            name = str(one.metadata.get("name") or json_name(one.name))
            found.append(
                Field(one.name, name, type_of(hints[one.name]), default, bool(one.metadata.get("left out")), optional)
            )
    return tuple(found)


def every_but(record: type[Record], *names: str) -> frozenset[str]:
    """Names (in JSON) of all fields of a record except some."""
    return frozenset(one.name for one in fields_of(record)) - set(names)

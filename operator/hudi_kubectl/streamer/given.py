"""Configuration that a job was given, and the result of translating each part of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

JsonDict = dict[str, Any]

TRANSLATED, NOT_NEEDED, MISSING = "translated", "notNeeded", "missing"
"""Results of translating an option. ``missing``: it has an effect that the objects do not have."""
TABLE, WRITER = "HudiTable", "HudiWriter"
LOCAL = ("file://", "file:")


class BadInput(Exception):
    """The input cannot be read; the text names the place and the rule."""


@dataclass(frozen=True)
class Option:
    """One option as it was given. ``origin``: where, for people. Its value is never shown."""

    name: str
    value: str
    origin: str


@dataclass(frozen=True)
class Said:
    """Result of translating one option.

    ``field``: the field that has it, when it is translated. ``reason``: why it is not needed, or
    not translated; ``instead``: what a person can do.
    """

    kind: str
    name: str
    origin: str
    field: str = ""
    reason: str = ""
    instead: str = ""


@dataclass(frozen=True)
class Needed:
    """An object that a person has to create. ``keys``: its required keys, with the reasons."""

    kind: str
    name: str
    keys: tuple[str, ...]


@dataclass
class Given:
    """A job: options of HoodieStreamer, properties, and options of spark-submit.

    By their names in the report, the winning value of each; ``others`` are those that lost, with
    the origin of the one that won, and ``strays`` are words that belong to no option.
    """

    flags: dict[str, Option] = field(default_factory=dict)
    properties: dict[str, Option] = field(default_factory=dict)
    spark: dict[str, Option] = field(default_factory=dict)
    submit: dict[str, Option] = field(default_factory=dict)
    others: list[tuple[Option, str]] = field(default_factory=list)
    strays: list[Option] = field(default_factory=list)

    def put(self, where: dict[str, Option], name: str, option: Option) -> None:
        """Set an option; a former one of that name is kept among the others."""
        if name in where:
            self.others.append((where[name], option.origin))
        where[name] = option

    @property
    def every(self) -> list[Option]:
        """Every option, each once."""
        kept = (*self.submit.values(), *self.spark.values(), *self.flags.values(), *self.properties.values())
        return [*kept, *(option for option, _ in self.others), *self.strays]


@dataclass(frozen=True)
class Places:
    """Lookup of local files that a job names: at their path, then by name in a folder."""

    folder: str = ""

    def find(self, named: str) -> Path | None:
        """The local copy; None: there is none."""
        plain = named
        for scheme in LOCAL:
            if plain.startswith(scheme):
                plain = plain[len(scheme) :]
                break
        places = [] if "://" in plain else [Path(plain)]
        if self.folder:
            places.append(Path(self.folder) / plain.rstrip("/").rpartition("/")[2])
        return next((place for place in places if place.is_file()), None)

    def text(self, named: str) -> str | None:
        """Its content; None: there is no local copy. Raises BadInput."""
        place = self.find(named)
        if place is None:
            return None
        try:
            return place.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise BadInput(f"{place}: cannot be read as UTF-8 text: {type(error).__name__}") from None

"""A translation under way: the two objects, and what has been said of each option.

Below it are the records of `given`; it uses nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hudi_kubectl.streamer.given import (
    MISSING,
    NOT_NEEDED,
    TABLE,
    TRANSLATED,
    WRITER,
    Given,
    JsonDict,
    Needed,
    Option,
    Places,
    Said,
)

MOST_OPTIONS = 64
_TRUE, _FALSE = "true", "false"


@dataclass(frozen=True)
class Wishes:
    """Values from the command line: names of the objects, an image, a file system."""

    table: str = ""
    writer: str = ""
    image: str = ""
    default_fs: str = ""


@dataclass
class Work:
    """``table`` and ``writer`` are specs. An object that is ``blocked`` is not written.

    A value of ``blocked`` is the reason.
    """

    given: Given
    places: Places
    wishes: Wishes
    table_name: str = ""
    writer_name: str = ""
    table: JsonDict = field(default_factory=dict)
    writer: JsonDict = field(default_factory=dict)
    said: list[Said] = field(default_factory=list)
    needed: list[Needed] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    blocked: dict[str, list[str]] = field(default_factory=lambda: {TABLE: [], WRITER: []})
    _done: set[int] = field(default_factory=set)

    # ---- what was given

    def flag(self, name: str) -> Option | None:
        """An option of HoodieStreamer; None: it is not given."""
        return self.given.flags.get(name)

    def prop(self, name: str) -> Option | None:
        """A property by its present name; None: it is not given."""
        return self.given.properties.get(name)

    def value(self, name: str, unset: str = "") -> str:
        """The value of an option or a property."""
        option = (self.given.flags if name.startswith("--") else self.given.properties).get(name)
        return unset if option is None else option.value

    def is_true(self, name: str, unset: str = _FALSE) -> bool:
        """Whether a property is true; a switch is true when it is given."""
        return name in self.given.flags if name.startswith("--") else self.value(name, unset).lower() == _TRUE

    def below(self, prefix: str) -> list[Option]:
        """Properties of a family of which nothing has been said."""
        return [
            option
            for name, option in self.given.properties.items()
            if name.startswith(prefix) and id(option) not in self._done
        ]

    @property
    def open(self) -> list[Option]:
        """Options of which nothing has been said."""
        return [option for option in self.given.every if id(option) not in self._done]

    def is_open(self, option: Option) -> bool:
        """Whether nothing has been said of an option."""
        return id(option) not in self._done

    # ---- what becomes of it

    def to(self, option: Option | None, at: str, reason: str = "") -> None:
        """It is in this field (`HudiTable spec.path`)."""
        self._say(option, TRANSLATED, field_=at, reason=reason)

    def unneeded(self, option: Option | None, reason: str) -> None:
        """It has no counterpart, and needs none."""
        self._say(option, NOT_NEEDED, reason=reason)

    def missing(self, option: Option | None, reason: str, instead: str, blocks: str = "") -> None:
        """It has no counterpart, and is missed. ``blocks``: the kind that cannot be written."""
        self._say(option, MISSING, reason=reason, instead=instead)
        if blocks:
            self.block(blocks, f"{option.name if option is not None else 'the job'}: {reason}")

    def not_given(self, name: str, reason: str, instead: str, blocks: str) -> None:
        """An option that is needed and was not given."""
        self.said.append(Said(MISSING, name, "not given", reason=reason, instead=instead))
        self.block(blocks, f"{name}: {reason}")

    def block(self, kind: str, reason: str) -> None:
        """An object is not written."""
        self.blocked[kind].append(reason)

    def _say(self, option: Option | None, kind: str, field_: str = "", reason: str = "", instead: str = "") -> None:
        if option is None or id(option) in self._done:
            return
        self._done.add(id(option))
        self.said.append(Said(kind, option.name, option.origin, field_, reason, instead))

    def choose(self, name: str, same: Sequence[str], reason: str, otherwise: tuple[str, str], blocks: str = "") -> None:
        """An option that is like here with some values (in lower case), and missed with others."""
        option = self.flag(name) if name.startswith("--") else self.prop(name)
        if option is None:
            return
        if option.value.lower() in same:
            self.unneeded(option, reason)
        else:
            self.missing(option, *otherwise, blocks)

    def number(self, option: Option | None, at: str, low: int, high: int, put: Callable[[int], Any]) -> bool:
        """A whole number that goes to a field; one that the field cannot hold is missed."""
        if option is None:
            return False
        if not re.fullmatch("[0-9]{1,18}", option.value) or not low <= int(option.value) <= high:
            self.missing(
                option, f"{at} is a whole number from {low} to {high}", "correct the value, or set the field by hand"
            )
            return False
        put(int(option.value))
        self.to(option, at)
        return True

    def names(self, option: Option | None) -> list[str]:
        """A list of columns."""
        return [] if option is None else [each.strip() for each in option.value.split(",") if each.strip()]

    def section(self, *way: str) -> JsonDict:
        """A section of the HudiTable's spec; it is made when it is not there."""
        found = self.table
        for name in way:
            found = found.setdefault(name, {})
        return found

    def hudi_option(self, spec: JsonDict, option: Option, name: str) -> bool:
        """Keep an option in `hudiOptions`; whether there was place for it."""
        kept = spec.setdefault("hudiOptions", {})
        if len(kept) >= MOST_OPTIONS or len(option.value) > 2048 or "${" in option.value:
            return False
        kept[name] = option.value
        return True

"""Draws of one family of fields.

Each family of a seed has its own sequence: the draws of one family stay when another one is
changed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tests.support.hostile.vocabulary import FIELDS, TOKENS

JsonDict = dict[str, Any]
Choice = Sequence[Any] | Callable[[], Any]
"""One of some values, or a function that draws one."""


class Draw:
    """Random choices of one seed for one family."""

    def __init__(self, seed: int, family: str) -> None:
        self.random = random.Random(f"{seed} {family}")
        self._odd = self.random.random() < 0.4

    def one(self, choice: Choice) -> Any:
        """A value."""
        return choice() if callable(choice) else self.random.choice(choice)

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.random.random() < probability

    def odd(self, probability: float) -> bool:
        """True with about this probability, for what is refused.

        Most families of a seed have no odd values: otherwise one of many would be refused in each
        seed, and nothing would launch.
        """
        return self._odd and self.chance(2.5 * probability)

    def some(self, names: Sequence[str], safe: int) -> str:
        """Mostly one of the first names, which may be set."""
        found: str = self.random.choice(names if self.odd(0.07) else names[:safe])
        return found

    def fields(self, probability: float, choices: Mapping[str, Choice]) -> JsonDict:
        """Each field with this probability; a dot in its name is an object around it."""
        found: JsonDict = {}
        for name, choice in choices.items():
            if self.chance(probability):
                *way, last = name.split(".")
                at = found
                for part in way:
                    at = at.setdefault(part, {})
                at[last] = self.one(choice)
        return found

    def map(self, names: Sequence[str], safe: int) -> dict[str, str]:
        """Up to two options."""
        values = ("true", "128", "http://s3:9000", "a b", "NA", "$x", "x=y:z", "a\\nb", "ü")
        return {self.some(names, safe): self.random.choice(values) for _ in range(self.random.randrange(3))}

    def text(self, ordinary: str) -> str:
        """Free text: everything may be in it, and must come out unchanged."""
        return ordinary if self.chance(0.5) else ordinary + "".join(self.random.choices(TOKENS, k=3))

    def into(self, text: str) -> str:
        """The text with a token in it, or a token alone."""
        at, token = self.random.randrange(len(text) + 1), self.random.choice(TOKENS)
        return token if self.chance(0.1) else text[:at] + token + text[at:]

    def spoil(self, spec: JsonDict) -> None:
        """Put a token somewhere into one text of the spec: a value, or the name of an entry."""
        holder, key = self.random.choice(list(_texts(spec)))
        if isinstance(holder, dict) and key not in FIELDS and self.chance(0.5):
            holder[self.into(key)] = holder.pop(key)
        else:
            holder[key] = self.into(holder[key])

    def displace(self, spec: JsonDict) -> None:
        """Put a value of another type in the place of one somewhere in the spec."""
        holder, key = self.random.choice(list(_values(spec)))
        holder[key] = self.random.choice((None, 0, 1, -1, 2**63, 1.5, False, True, "", "x", [], ["x"], {}, {"x": "y"}))


def _texts(node: Any) -> Iterator[tuple[Any, Any]]:
    return ((holder, key) for holder, key in _values(node) if isinstance(holder[key], str))


def _values(node: Any) -> Iterator[tuple[Any, Any]]:
    for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
        yield node, key
        if isinstance(value, (dict, list)):
            yield from _values(value)

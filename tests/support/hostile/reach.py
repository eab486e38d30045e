"""Fields of the CRDs that a pair of objects has.

`python -m tests.support.hostile.reach FIELD...` prints the first seed of objects that launch and
have these fields, such as `HudiTable.spec.bootstrap.source.path`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from itertools import count
from typing import Any

from tests.support import crds
from tests.support.hostile.grammar import Generator
from tests.support.hostile.launch import refusal

JsonDict = dict[str, Any]

PLURALS = {"HudiTable": "huditables", "HudiWriter": "hudiwriters"}


def fields() -> set[str]:
    """Every field of both CRDs, as `HudiTable.spec.path`; `[]`: an item, `{}`: an entry."""
    return {
        f"{kind}.{path}"
        for kind, plural in PLURALS.items()
        for path, _ in crds.fields(crds.schema(plural, "spec"), "spec")
    }


@cache
def _schema(kind: str) -> JsonDict:
    return crds.schema(PLURALS[kind], "spec")


def drawn(*objects: JsonDict) -> set[str]:
    """The fields that these objects have, and their CRDs know."""
    return {f"{one['kind']}.{path}" for one in objects for path in _drawn(one["spec"], _schema(one["kind"]), "spec")}


def _drawn(value: Any, node: JsonDict, at: str) -> Iterator[str]:
    if isinstance(value, dict):
        known, entries = node.get("properties", {}), node.get("additionalProperties")
        for name, entry in value.items():
            inner, path = (known[name], f"{at}.{name}") if name in known else (entries, f"{at}{{}}")
            if isinstance(inner, dict) and entry is not None:
                yield path
                yield from _drawn(entry, inner, path)
    elif isinstance(value, list) and isinstance(node.get("items"), dict):
        for entry in value:
            yield f"{at}[]"
            yield from _drawn(entry, node["items"], f"{at}[]")


def seed_of(*paths: str) -> int:
    """The first seed of objects that launch and have these fields."""
    known = fields()
    assert set(paths) <= known, f"no fields of the CRDs: {sorted(set(paths) - known)}"
    return next(
        seed for seed in count() if set(paths) <= drawn(*(pair := Generator(seed).objects())) and not refusal(*pair)
    )


if __name__ == "__main__":
    print(seed_of(*sys.argv[1:]))

"""What is different in the parts of two builds of an image, by their bills of materials.

`python -m hack.sbom.compare OLD NEW [--same]`: one line for each part that is new (+), gone (-), of
another version, or of the same version with other content (~). With ``--same`` a difference is an
error.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Component = Mapping[str, Any]


def parts(bill: Path) -> dict[str, dict[str, Component]]:
    """The parts of a bill: by kind and name, by version."""
    found: dict[str, dict[str, Component]] = {}
    for part in json.loads(bill.read_text())["components"]:
        kind = str(part.get("purl", "")).partition("/")[0].removeprefix("pkg:") or str(part.get("type", ""))
        name = f"{kind} {part.get('group', '')}{':' if part.get('group') else ''}{part['name']}"
        found.setdefault(name, {})[str(part.get("version", ""))] = part
    return found


def differences(old: Path, new: Path) -> list[str]:
    """One line for each part that is not the same in both, sorted by name."""
    before, after, told = parts(old), parts(new), []
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name, {}), after.get(name, {})
        gone, come = sorted(was.keys() - now.keys()), sorted(now.keys() - was.keys())
        if len(gone) == len(come) == 1:
            told.append(f"~ {name} {gone[0]} -> {come[0]}")
        else:
            told += [f"- {name} {version}" for version in gone] + [f"+ {name} {version}" for version in come]
        told += [
            f"~ {name} {version}: other content"
            for version in sorted(was.keys() & now.keys())
            if _content(was[version]) != _content(now[version])
        ]
    return told


def _content(part: Component) -> frozenset[tuple[str, str]]:
    return frozenset((str(each["alg"]), str(each["content"])) for each in part.get("hashes") or ())


def main(old: str, new: str, *flags: str) -> None:
    """Print the differences; with ``--same`` exit with them."""
    found = differences(Path(old), Path(new))
    if found and "--same" in flags:
        sys.exit("\n".join(found))
    print("\n".join(found) or "the same parts")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Check whether a tag may be released, as far as possible without running anything.

    python -m hack.release.ready v0.1.0
    python -m hack.release.ready --notes        what CHANGELOG.md says of this version

The tag is the version of the project, and CHANGELOG.md has its section with a day. That `make
test-all` has passed on the commit is a maintainer's word (GOVERNANCE.md).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from hack.release import version


def faults(tag: str, root: Path = version.ROOT) -> list[str]:
    """Why not; nothing: it may."""
    found, number = [], version.read(root)
    if tag != f"v{number}":
        found.append(f"tag {tag!r}: must be v{number}, the version of the project")
    if not notes(root):
        found.append(f"CHANGELOG.md: has no section `## [{number}] - YEAR-MONTH-DAY`")
    return found


def notes(root: Path = version.ROOT) -> str:
    """The section of this version in CHANGELOG.md, without its heading; empty: it has none."""
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = rf"^## \[{re.escape(version.read(root))}\] - \d{{4}}-\d{{2}}-\d{{2}}\n(.*?)(?=^## |\Z)"
    found = re.search(heading, changes, re.MULTILINE | re.DOTALL)
    return found[1].strip() + "\n" if found else ""


def main(arguments: Sequence[str]) -> int:
    """Entry point; returns the exit code."""
    if len(arguments) != 1:
        print("usage: python -m hack.release.ready TAG | --notes", file=sys.stderr)
        return 2
    if arguments[0] == "--notes":
        print(notes(), end="")
        return int(not notes())
    wrong = faults(arguments[0])
    print("\n".join(wrong) or f"{arguments[0]} may be released", file=sys.stderr if wrong else sys.stdout)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

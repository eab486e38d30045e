"""The version of the project. It is one number, written where tools read it.

    python -m hack.release.version          print it; an error when two places differ
    python -m hack.release.version NEW      write it to each of them

Images, charts and the bill of materials take it from these places. Afterwards `make manifests`
writes deploy/ and bundle/ anew, `python -m tests.campaigns.pages.chart_values` the chart's README,
and CHANGELOG.md gets the version's heading.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?")
"""Semantic Versioning 2.0.0, without build metadata: a tag of an image has no `+`."""
PLACES = (
    ("operator/hudi_operator/__init__.py", r'^__version__ = "([^"]+)"$'),
    ("charts/hudi-operator/Chart.yaml", r"^version: (\S+)$"),
    ("charts/hudi-operator/Chart.yaml", r"^appVersion: (\S+)$"),
    ("spark-images/etcd-lock/pom.xml", r"^  <version>([^<]+)</version>$"),
)
"""Each file, and the line that has the version in its first group."""


def _found(root: Path, path: str, line: str) -> re.Match[str]:
    found = list(re.finditer(line, (root / path).read_text(encoding="utf-8"), re.MULTILINE))
    if len(found) != 1:
        raise ValueError(f"{path}: {len(found)} lines match {line}, not one")
    return found[0]


def read(root: Path = ROOT) -> str:
    """The version. Raises ValueError, with all of them, when they differ."""
    found = [(path, _found(root, path, line)[1]) for path, line in PLACES]
    if len({version for _, version in found}) != 1:
        raise ValueError("versions differ: " + ", ".join(f"{path} has {version}" for path, version in found))
    return found[0][1]


def write(version: str, root: Path = ROOT) -> None:
    """Raises ValueError when it is no version."""
    if not VERSION.fullmatch(version):
        raise ValueError(f"version {version!r}: must be MAJOR.MINOR.PATCH or MAJOR.MINOR.PATCH-PRERELEASE")
    for path, line in PLACES:
        found = _found(root, path, line)
        text = found.string
        (root / path).write_text(text[: found.start(1)] + version + text[found.end(1) :], encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Entry point; returns the exit code."""
    try:
        for version in arguments:
            write(version)
        print(read())
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:2]))

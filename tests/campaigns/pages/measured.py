"""Page of the times that tests on a cluster have measured: docs/results/on-a-cluster.md.

    python -m tests.campaigns.pages.measured    write the page;
                                                `python -m tests.campaigns.pages.last_run` does it,
                                                too

Such a test keeps the seconds of its last run when it has passed
(`tests.support.evidence.measured`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support import ROOT
from tests.support.evidence import NOTHING, Evidence, as_said
from tests.support.evidence.measured import FOLDER

PAGE = ROOT / "docs" / "results" / "on-a-cluster.md"
E2E = "tests/tiers/e2e"


@dataclass(frozen=True)
class Measured:
    """What the seconds of a test mean."""

    title: str
    test: str
    says: str
    """From when they count, and until when."""


EVERY = {
    "rotated-keys": Measured(
        "Storage keys that change in their Secret",
        f"{E2E}/test_rotated_keys.py",
        "From the change of the Secret until the log of each process says that it has the new keys;\n"
        "`within`: what is promised ([rotate\n"
        "credentials](../operate/operations.md#rotate-credentials)).",
    ),
    "credentials-fencing": Measured(
        "A lost node whose writer held the lock, `fencing.mode: Credentials`",
        f"{E2E}/test_credentials_fencing.py",
        "From just before the kubelet and the writer are stopped until each phase of its settling\n"
        "([credentials broker](../operate/credentials-broker.md)); with `Draining` its revocation is\n"
        "proven.",
    ),
}
"""By the name under which the test keeps them."""
HEAD = """\
# Times on a cluster

Written by `python -m tests.campaigns.pages.measured`, and by `make test-all`; do not edit. The tests
run on one node with real pods and S3, and keep the seconds of their last run when they have passed.
One run says nothing of the spread.
"""


def results(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """What is kept, by name."""
    found = {name: folder / f"{name}.json" for name in EVERY}
    return {name: json.loads(path.read_text(encoding="utf-8")) for name, path in found.items() if path.exists()}


def _section(name: str, kept: Mapping[str, Any] | None) -> Iterator[str]:
    one = EVERY[name]
    yield from ("", f"## {one.title}", "", f"Measured by `{one.test}`.", one.says, "")
    if kept is None:
        yield "No run is kept."
        return
    yield from ("| | seconds |", "|---|---:|")
    yield from (f"| {what} | {seconds:.1f} |" for what, seconds in kept["seconds"].items())
    settings = ", ".join(f"`{key}: {value:g}`" for key, value in kept["settings"].items())
    yield from (
        "",
        f"* with {settings}",
        f"* {kept['at']}, commit {as_said(kept['commit'])}",
        f"* {kept['processors']} processors, load average {kept['load']} at the end",
    )


def page(folder: Path = FOLDER) -> str:
    """The whole page, from what is kept."""
    kept = results(folder)
    said = str(
        Evidence.of(kept.values(), f"the last one of {len(kept)} of {len(EVERY)} tests", left_out="earlier runs")
        if kept
        else NOTHING
    )
    return "\n".join([HEAD, said, *(line for name in EVERY for line in _section(name, kept.get(name))), ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.exit(0)

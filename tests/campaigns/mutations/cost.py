"""Cost of each test of the hudi tier, and the mutations that only this test is named for.

    python -m tests.campaigns.mutations.cost [PYTEST OPTIONS]

For who chooses the slice of `make test` (docs/design/test-time.md, *What is left out*). Prints one
line for each function, the most expensive first: its seconds when they were noted last (with all
of its parameters that the options select; by default those of the slice), how many mutations name
it, how many of them name no other test, and whether a page names it for a claim.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable

from tests.campaigns.mutations.lists import MUTATIONS
from tests.support import ROOT, order

TIER = "tests/tiers/hudi"
NOTED = ROOT / "docs" / "results" / "raw" / "last-run" / "hudi.json"
CLAIMS = ROOT / "docs" / "results" / "shown.md"


def collected(options: Iterable[str]) -> list[str]:
    """The names of the tests that pytest selects, with their parameters."""
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", *options, TIER]
    found = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return [line for line in found.stdout.splitlines() if line.startswith(TIER)]


def function(test: str) -> str:
    """The name of a test without its parameters."""
    return test.partition("[")[0]


def main(options: list[str]) -> None:
    noted, claims = order.stored(NOTED), CLAIMS.read_text(encoding="utf-8")
    seconds = defaultdict[str, float](float)
    for test in collected(options or ["-m", "not extra"]):
        file, _, name = test.partition("::")
        seconds[function(test)] += float(noted.get(file, {}).get(name, {}).get("seconds", order.UNKNOWN_SECONDS))
    named = Counter(function(test) for one in MUTATIONS for test in set(one.tests))
    alone = Counter(function(one.tests[0]) for one in MUTATIONS if len(set(one.tests)) == 1)
    print(f"{'seconds':>7} {'named':>5} {'alone':>5}  claim  test")
    for test, cost in sorted(seconds.items(), key=lambda one: -one[1]):
        claim = "yes" if f"{test}`" in claims or f"{test.partition('::')[0]}`" in claims else ""
        print(f"{cost:7.0f} {named[test]:5} {alone[test]:5}  {claim:5}  {test.removeprefix(TIER + '/')}")
    print(f"{sum(seconds.values()):7.0f} in all")


if __name__ == "__main__":
    main(sys.argv[1:])

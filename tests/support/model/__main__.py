"""`python -m tests.support.model [-v]`: search the protocol and all broken designs, print the
table; exit 1 when a verdict is not the expected one.

-v prints every counter-example, in plain sentences.
"""

from __future__ import annotations

import sys
import time

from tests.support.model import configurations, variants
from tests.support.model.search import Result, explore

WIDTH = 66


def line(name: str, found: str, result: Result, verdict: str) -> str:
    """One row of the table.

    "+" after the number of states: stopped when all that was looked for was found.
    """
    return (
        f"{name:{WIDTH}}{found:40}{result.states:>8}{' ' if result.complete else '+'}{result.seconds:7.1f}  {verdict}"
    )


def violated(result: Result) -> str:
    """The invariants broken, each with the length of its shortest counter-example."""
    return " ".join(f"{name}({len(steps)})" for name, steps in result.counter_examples.items()) or "-"


def explain(result: Result) -> None:
    """Print the counter-examples."""
    for name, steps in result.counter_examples.items():
        print(f"    {name}: " + ("nothing can be settled any more after:" if name == "I6" else "broken by:"))
        for n, step in enumerate(steps, 1):
            print(f"      {n:2}. {step}")


def main() -> int:
    """Run every search and print the table."""
    verbose, wrong, began, states = "-v" in sys.argv[1:], 0, time.monotonic(), 0
    print(f"{'':{WIDTH}}{'invariants violated (steps)':40}{'states':>8} {'seconds':>7}  verdict")
    print("the protocol, by configuration")
    for c in configurations.ALL.values():
        result = explore(c)
        states += result.states
        bad = bool(result.counter_examples) or not result.complete
        wrong += bad
        print(line(f"  {c.name}", violated(result), result, "UNEXPECTED" if bad else "holds"), flush=True)
        if verbose:
            print(f"      {c.covers}")
        if bad:
            explain(result)
    for title, some in (("designs that must fail", variants.REQUIRED), ("more rules, each left out", variants.FURTHER)):
        print(title)
        for v in some:
            result = explore(v.configuration, until=v.breaks)
            states += result.states
            bad = not v.breaks <= result.counter_examples.keys()
            wrong += bad
            verdict = "UNEXPECTED: should break " + " ".join(sorted(v.breaks)) if bad else "fails, as it must"
            print(line(f"  {v.name}", violated(result), result, verdict), flush=True)
            if verbose:
                explain(result)
    print(
        f"{states} states, {time.monotonic() - began:.0f} s, {wrong or 'no'} unexpected "
        f"verdict{'s' if wrong != 1 else ''}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

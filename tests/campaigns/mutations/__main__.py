"""`make mutations`: take rules out of the product's code, one at a time, and see that tests notice.

Writes docs/results/mutations.md.

    python -m tests.campaigns.mutations                      what has no result yet for this code
    python -m tests.campaigns.mutations --only 'I4|sweep'    mutations whose id, rule, file or test
                                                             the expression finds
    python -m tests.campaigns.mutations --minutes 5          stop after the mutation that is under
                                                             way then
    python -m tests.campaigns.mutations --table              only the page, from the results that
                                                             are there
    python -m tests.campaigns.mutations --again              judge also what has a result
    python -m tests.campaigns.mutations --tiers unit,model   only those whose dearest test is of one
                                                             of these tiers, and nothing
                                                             else beside them

The checkout is copied to build/mutations/copy-1 and copy-2 and never changed itself: the tiers
unit, model and component are judged in the one, java and hudi in the other, side by side. Outcomes
are kept in docs/results/mutations.json, each valid for its code only, so a run that was cut off is
continued. Exit status 1 when an outcome is not what it must be, or is missing.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys

from tests.campaigns.mutations import judges, page
from tests.campaigns.mutations.campaign import Campaign, chosen_by, keep, wanted_of
from tests.campaigns.mutations.lists import CONTROLS, MUTATIONS


def _tiers(text: str) -> tuple[str, ...]:
    found = tuple(text.split(","))
    if unknown := sorted(set(found) - set(judges.TIERS)):
        raise argparse.ArgumentTypeError(
            f"{unknown[0]!r} is no tier that judges: choose from {', '.join(judges.TIERS)}"
        )
    return found


def _other_lane(given: argparse.Namespace) -> subprocess.Popen[bytes]:
    """The same for the other tiers, in a separate process and copy."""
    command = [
        sys.executable,
        "-m",
        "tests.campaigns.mutations",
        "--only",
        given.only,
        "--tiers",
        ",".join(judges.LANES[1]),
        "--copy",
        "copy-2",
        "--no-page",
    ]
    return subprocess.Popen([*command, *(("--minutes", str(given.minutes)) if given.minutes != float("inf") else ())])


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaigns.mutations",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", metavar="REGEX", help="of id, rule, file or test")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so long (default: never)")
    parser.add_argument("--table", action="store_true", help="write the page only")
    parser.add_argument("--again", action="store_true", help="judge also what has a result")
    parser.add_argument(
        "--tiers",
        type=_tiers,
        default=(),
        metavar="TIER,...",
        help=f"of {', '.join(judges.TIERS)} (default: all, in two lanes side by side)",
    )
    parser.add_argument(
        "--copy",
        default="",
        metavar="NAME",
        help="copy of the checkout to be mutated: two runs at once need two (default: one for each lane)",
    )
    parser.add_argument("--no-page", action="store_true", help="only judge; the page is written by somebody else")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    everything = [*((one, wanted_of(one)) for one in MUTATIONS), *CONTROLS]
    chosen = chosen_by(given.only, everything)
    if not chosen:
        parser.error(f"--only {given.only}: no mutation has such an id, rule, file or test")
    if given.again:
        keep(lambda outcomes: [outcomes.pop(one.id, None) for one, _ in chosen])
    campaign = Campaign(chosen, copy=given.copy or "copy-1", tiers=given.tiers or judges.LANES[0])
    if not given.table:
        beside = _other_lane(given) if not given.tiers and not given.copy else None
        try:
            campaign.run(seconds=given.minutes * 60)
            if beside is not None:
                beside.wait()
        finally:
            if beside is not None and beside.poll() is None:
                beside.terminate()
                beside.wait()
    if given.no_page:
        return 0
    wrong = []
    for one, wanted in chosen:
        found = campaign.result(one)
        if found is None or found["outcome"] != wanted:
            wrong.append(f"{one.id}: must be {wanted}, is {found['outcome'] if found else 'not judged'}")
    print(f"{page.write(campaign)}; {len(chosen) - len(wrong)} of {len(chosen)} as they must be", *wrong, sep="\n  ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.campaigns.values`: the campaign, and docs/use/what-a-table-can-hold.md.

    python -m tests.campaigns.values                    what has no result of this commit yet
    python -m tests.campaigns.values --only 'payload'   only cases whose name
                                                        (case/table type) matches
    python -m tests.campaigns.values --minutes 5        begin no case after so long
    python -m tests.campaigns.values --again            also what has a result
    python -m tests.campaigns.values --page             only the page, from docs/results/values.json

Exit status 1 when a value was neither held nor refused.
"""

from __future__ import annotations

import argparse
import re
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from tests.campaigns.values import page
from tests.campaigns.values.cases import CASES
from tests.campaigns.values.run import HELD, Run
from tests.support.harness.local import AGENT, World


def campaign(only: str, *, again: bool, minutes: float) -> None:
    """Run what is wanted and has no result, in one world; each result is kept at once.

    No case is begun after `minutes`.
    """
    end = time.monotonic() + minutes * 60
    wanted = [(case, kind) for case in CASES for kind in case.kinds if re.search(only, f"{case.name}/{kind}")]
    wanted = [(case, kind) for case, kind in wanted if again or not page.fresh(case.name, kind)]
    if not wanted:
        return
    world = World(Path(tempfile.mkdtemp(prefix="values-")))
    world.start()
    try:
        agent = world.agent(AGENT, storage=world.table("any"))
        page.keep_refusals(world)
        for number, (case, kind) in enumerate(wanted):
            if time.monotonic() > end:
                break
            run = Run(world, agent, AGENT, case, kind, f"values-{number}")
            before = page.earlier(case.name, kind)
            seen = run.run(partial(page.keep, case, kind, run.seen, whole=False, earlier=before))
            page.keep(case, kind, seen, whole=True, earlier=before)
            wrong = {
                reading: {name: what for name, what in found.items() if what != HELD} for reading, found in seen.items()
            }
            print(f"{case.name}/{kind}: {list(seen)}: {({r: w for r, w in wrong.items() if w}) or 'held'}", flush=True)
    finally:
        world.stop()


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaigns.values",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", default="", metavar="REGEX", help="only cases whose name matches")
    parser.add_argument("--again", action="store_true", help="run also what has a result")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="begin no case after so long (default: all)"
    )
    parser.add_argument("--page", action="store_true", help="write the page only")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if not given.page:
        campaign(given.only, again=given.again, minutes=given.minutes)
    print(f"{page.write()}; {page.damaged()} cells are neither held nor refused")
    return 1 if page.damaged() else 0


if __name__ == "__main__":
    sys.exit(main())

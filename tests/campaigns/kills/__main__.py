"""`make kills`: kill a writer again and again while three others write to the same table.

Docs/results/kills.md says what came of it.

    python -m tests.campaigns.kills                      rounds until there are 30 kills of each
                                                         kind for this commit
    python -m tests.campaigns.kills critical --kills 10  one kind, fewer kills
    python -m tests.campaigns.kills --table              only the table, from the results
                                                         that are there

Two kinds: `writing` (SIGKILL at a random moment while data files are written) and `critical`
(SIGKILL in the critical section: the lock is held and the completed file is on its way; a proxy
before the S3 server delivers it later, or never). A round is one fresh table with some kills; it
counts when in the end every row of every acknowledged commit is there once, and nothing else. Needs
the cluster with the chart (`make demo`, or `demo/run install`). Results are files in
docs/results/raw/kills, one per round, so that a run that was cut off is continued. A round in which
the product hangs is kept as well, with what was waited for, and ends the campaign.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time

from tests.campaigns.kills.results import KINDS, OUT, earlier
from tests.campaigns.kills.results import rounds as results
from tests.campaigns.kills.rounds import Broken, Rounds
from tests.campaigns.kills.table import write
from tests.support import ROOT

PER_ROUND = 15


def main() -> int:
    """Exit status 1 when a round broke an invariant or is stuck."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaigns.kills", description="kill writers of a table that others write to"
    )
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{' or '.join(KINDS)} (default: both)")
    parser.add_argument("--kills", type=int, default=30, help="of each kind (default 30)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of the random moments (default: the time)")
    parser.add_argument("--table", action="store_true", help="only write docs/results/kills.md")
    given = parser.parse_args()
    unknown = set(given.kinds) - set(KINDS)
    if unknown:
        parser.error(f"KIND: {', '.join(sorted(unknown))} is none of {', '.join(KINDS)}")
    OUT.mkdir(parents=True, exist_ok=True)
    good = True
    if not given.table:
        with Rounds() as rounds:
            for kind in given.kinds or KINDS:
                done = sum(len(one["kills"]) for one in results(kind, rounds.commit) if one["rows"] == "ok")
                while done < given.kills and good:
                    seed = given.seed + done
                    try:
                        found = rounds.run(kind, min(PER_ROUND, given.kills - done), random.Random(seed))
                    except Broken as broken:
                        found, good = broken.round, False
                    found |= {"seed": seed}
                    (OUT / f"{kind}-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}.json").write_text(
                        json.dumps(found, indent=1) + "\n"
                    )
                    done += len(found["kills"])
    write(ROOT / "docs" / "results" / "kills.md", {kind: results(kind) for kind in KINDS}, earlier())
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

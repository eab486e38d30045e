"""`make chaos`: writers of overlapping keys on a real cluster while drivers, agents, the operator,
etcd and S3 are killed and frozen.

    python -m tests.campaigns.chaos                              20 minutes of each cell, with a
                                                                 seed of its own
    python -m tests.campaigns.chaos mor-default --minutes 5      one cell
    python -m tests.campaigns.chaos --page                       only docs/results/chaos.md, from
                                                                 the results that are there

Cells: cow-default, cow-bucket, mor-default, mor-bucket (table type, index). Needs the cluster
(`make demo`, or `demo/run install`); E2E_INSTALLED=1 uses the chart that is installed. Raw results
are files in docs/results/raw/chaos, one per run; they are kept with the code. A run in which the
product hangs is kept as `stuck`, with what was waited for; its writers may still run, so no further
run is begun.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from tests.campaigns.chaos.campaign import BAD, Chaos
from tests.campaigns.chaos.page import PAGE, keep, page, results
from tests.campaigns.chaos.workload import INDEXES, TYPES

CELLS = tuple(f"{kind}-{index}" for index in INDEXES for kind in TYPES)


def main() -> int:
    """Exit status 1 when a run is broken or stuck."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaigns.chaos",
        description="kill and freeze everything while writers write the same keys",
    )
    parser.add_argument("cells", nargs="*", metavar="CELL", help=f"{', '.join(CELLS)} (default: all)")
    parser.add_argument("--minutes", type=float, default=20.0, help="of faults in each run (default 20)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of keys and faults (default: the time)")
    parser.add_argument("--page", action="store_true", help="only write docs/results/chaos.md")
    given = parser.parse_args()
    if unknown := set(given.cells) - set(CELLS):
        parser.error(f"CELL: {', '.join(sorted(unknown))} is none of {', '.join(CELLS)}")
    good = True
    if not given.page:
        os.environ["PATH"] = os.pathsep.join(
            [
                str(Path(os.environ.get("HUDI_OPERATOR_CACHE", Path.home() / ".cache" / "hudi-operator")) / "bin"),
                os.environ["PATH"],
            ]
        )
        with Chaos() as chaos:
            for number, cell in enumerate(given.cells or CELLS):
                found = chaos.run(cell, given.seed + number, given.minutes * 60)
                keep(found)
                why = found["stuck"] or found["bad"] or ""
                print(f"{cell}, seed {given.seed + number}: {found['verdict']} {why}", flush=True)
                good = good and found["verdict"] not in BAD
                if found["verdict"] == "stuck":
                    break
    PAGE.write_text(page(results()))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

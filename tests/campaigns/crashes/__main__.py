"""``python -m tests.campaigns.crashes``: run the enumerated crashes, or continue them, and write
the report.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.campaigns.crashes import campaign, report


def main() -> int:
    """Exit status: 0 when every run was made and none deviates, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.crashes", description=__doc__)
    parser.add_argument("--workers", type=int, default=6, choices=range(1, 9), help="runs side by side, 1 to 8")
    parser.add_argument("--minutes", type=float, default=240, help="begin no run later than this")
    parser.add_argument("--only", default="", help="regular expression on a case, as printed")
    parser.add_argument(
        "--report", action="store_true", help="write the report of what was run so far, and run nothing"
    )
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return campaign.work(options.worker)
    if options.report:
        return report.write(campaign.Results(campaign.RESULTS / campaign.code_key()))
    with tempfile.TemporaryDirectory(prefix="crashes-") as place:
        results = campaign.campaign(Path(place), workers=options.workers, minutes=options.minutes, only=options.only)
    return report.write(results)


if __name__ == "__main__":
    sys.exit(main())

"""`make alerts`: each alert, its fault and its runbook, on a cluster; docs/results/alerts.md.

    python -m tests.campaigns.alerts                          what has no good result yet
                                                              for this code
    python -m tests.campaigns.alerts --only 'HudiTable.*'     only alerts whose name matches
    python -m tests.campaigns.alerts --again                  also what has one
    python -m tests.campaigns.alerts --minutes 5              begin no act after that (default 10)
    python -m tests.campaigns.alerts --page                   only the page, from the results
                                                              that are there

Results are files in docs/results/raw/alerts, one per alert, written after each act: a campaign that
was cut off is continued. Exit status 1 when an alert of this code has no good result.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.campaigns.alerts import page, rules, run
from tests.campaigns.alerts.acts import Acts
from tests.campaigns.alerts.stage import stage
from tests.support import ROOT

OUT = ROOT / "build" / "alerts"
"""Logs of the last campaign that was not good."""


def _todo(only: str, *, again: bool) -> set[str]:
    """Alerts that are to be tried."""
    names = {name for name in rules.every() if re.fullmatch(only, name)}
    code = run.commit()
    done = {name for name in names if (found := run.load(name)) and found["verdict"] == run.OK}
    return names if again else {name for name in names if name not in done or (run.load(name) or {})["commit"] != code}


def _campaign(todo: set[str], minutes: float) -> None:
    """Run the acts of these alerts; keeps each result."""
    began = time.monotonic()
    directory = Path(tempfile.mkdtemp(prefix="hudi-alerts-"))
    bad = False
    try:
        with stage(directory) as made:
            for act in Acts().every():
                if not todo & {fault.alert for fault in act.faults}:
                    continue
                if time.monotonic() - began > 60 * minutes:
                    print(f"{minutes:g} minutes are over: run the same again for the rest")
                    break
                for result in run.play(act, made, todo):
                    run.keep(result)
                    bad |= result["verdict"] != run.OK
                    said = "; ".join(result["wrong"]) or f"fired after {result['firedAfter']} s"
                    print(f"{result['alert']}: {result['verdict']}: {said}", flush=True)
    except BaseException:
        bad = True
        raise
    finally:
        if bad:
            shutil.rmtree(OUT, ignore_errors=True)
            OUT.mkdir(parents=True)
            for log in directory.rglob("*.log"):
                shutil.copy(log, OUT / "-".join(log.relative_to(directory).parts))
            print(f"logs: {OUT}")
        shutil.rmtree(directory, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.campaigns.alerts", description="try alerts and runbooks on a cluster"
    )
    parser.add_argument("--only", default=".*", metavar="REGEX", help="of names of alerts")
    parser.add_argument("--again", action="store_true", help="also those with a good result of this code")
    parser.add_argument("--minutes", type=float, default=10, help="begin no act after that (default 10)")
    parser.add_argument("--page", action="store_true", help="only write docs/results/alerts.md")
    given = parser.parse_args()
    if not given.page:
        todo = _todo(given.only, again=given.again)
        if todo:
            _campaign(todo, given.minutes)
    page.write()
    left = _todo(given.only, again=False)
    if left and not given.page:
        print(f"without a good result of this code: {', '.join(sorted(left))}")
    return 1 if left and not given.page else 0


if __name__ == "__main__":
    sys.exit(main())

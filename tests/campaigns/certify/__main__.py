"""`make certify`: run the tests that decide about a version of Hudi or Spark.

    python -m tests.campaigns.certify                              the versions of this checkout
    python -m tests.campaigns.certify --hudi 1.2.1 --spark 3.5.9   others, in a checkout of its own
    python -m tests.campaigns.certify --only lock                  decisions or tests with that word
    python -m tests.campaigns.certify --only classes               only whether the jars have them
    python -m tests.campaigns.certify --list                       what would be run
    python -m tests.campaigns.certify --page                       only the page

Exit status 1: something has failed, or is not as listed; 2: the version cannot be had. A result is
written file by file, and a run that was cut off is continued. With other versions than those of
this checkout the tier e2e is not run: the image of that version needs a lock of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

from tests.campaigns.certify import candidate, decisions, page, run
from tests.support import ROOT, evidence


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.certify", description=__doc__.split("\n")[0])
    parser.add_argument("--hudi", default="", metavar="VERSION", help="of Hudi (default: as pinned)")
    parser.add_argument("--spark", default="", metavar="VERSION", help="of Spark (default: as pinned)")
    parser.add_argument("--only", default="", metavar="WORD", help="of a decision or test; or `classes`")
    parser.add_argument("--list", action="store_true", help="print what would be run")
    parser.add_argument("--page", action="store_true", help="only write docs/results/certify.md")
    given = parser.parse_args(arguments)
    listed = decisions.decisions()
    wanted = {} if given.only == run.CLASSES else listed.files(given.only)
    if not wanted and given.only != run.CLASSES:
        names = ", ".join(one.name for one in listed.decisions)
        parser.error(f"--only {given.only}: no decision and no test has it in its name; decisions: {names}")
    if given.list:
        print("\n".join(f"{tier} {file}" for tier, files in wanted.items() for file in files))
        return 0
    bad = 0
    if not given.page:
        try:
            versions = candidate.wanted(given.hudi, given.spark)
            same = versions == candidate.pinned()
            bad = run.here(given.only) if same else elsewhere(versions, given.only)
        except candidate.CannotBeHadError as error:
            print(f"certify: {error}", file=sys.stderr)
            return 2
    page.write()
    return 1 if bad else 0


def elsewhere(versions: candidate.Versions, only: str) -> int:
    """Run the list in a checkout with these versions, and take over its result."""
    if evidence.commit().endswith("+"):
        raise candidate.CannotBeHadError(f"{versions}: commit your changes first, the checkout is made of a commit")
    checkout, env = candidate.make(versions)
    kept = run.load(versions)
    code = (
        "import json, sys; from tests.campaigns.certify import run; "
        "from tests.campaigns.certify.candidate import pinned; from tests.support import evidence; "
        "given = json.load(sys.stdin); evidence.commit = lambda: given['commit']; "
        "run.keep(given['kept'], pinned()) if given['kept'] else None; "
        "sys.exit(min(run.here(given['only'], given['tiers']), 1))"
    )
    given = {"commit": evidence.commit(), "kept": kept, "only": only, "tiers": ["java", "unit", "hudi"]}
    done = subprocess.run(
        [checkout.parent / "cache" / "venv" / "bin" / "python", "-c", code],
        cwd=checkout,
        env=env | {"PYTHONPATH": f"{checkout / 'operator'}:{checkout / 'spark-images'}:{checkout}"},
        input=json.dumps(given),
        text=True,
        check=False,
    )
    made = checkout / run.path(versions).relative_to(ROOT)
    if not made.exists():
        raise candidate.CannotBeHadError(f"{versions}: its checkout could not be set up, see above; nothing was run")
    run.keep(json.loads(made.read_text(encoding="utf-8")), versions)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())

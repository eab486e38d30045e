"""Judge mutations one after the other.

Each result is a file, so that a run that was cut off is continued.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.campaigns.mutations import judges
from tests.campaigns.mutations.mutation import Drifted, Mutation, sources
from tests.campaigns.mutations.place import OUT, Place, beside, digest, tracked
from tests.campaigns.mutations.substance import substance
from tests.support import ROOT, evidence

RESULTS = ROOT / "docs" / "results" / "mutations.json"
"""Outcomes by mutation, of whatever code; kept with the code. `key` says for which code one is
(none: not known).
"""
SHOWN = 200
"""Characters of what a test said that are kept."""
CAUGHT, SURVIVED, INVALID, NO_END = "caught", "survived", "invalid", "no end"
_NO_END = re.compile(rf"no end after |\w+(\[.*?\])?: ({judges.TIMED_OUT.pattern})")
"""Stored text of a test that did not end: by the runner's limit, or, after its name, its own."""
RELEVANT = {
    "unit": (
        "operator/hudi_contract/",
        "operator/hudi_operator/",
        "spark-images/hudi_runtime/",
        "tests/tiers/unit/",
        "tests/support/",
        "pyproject.toml",
    ),
    "model": ("operator/hudi_contract/", "operator/hudi_operator/", "tests/tiers/model/", "tests/support/"),
    "java": ("spark-images/etcd-lock/", "operator/hudi_contract/protocol.json"),
    "component": (
        "operator/hudi_contract/",
        "operator/hudi_operator/",
        "gateway/",
        "crds/",
        "tests/tiers/component/",
        "tests/support/",
        "pyproject.toml",
    ),
    "hudi": (
        "operator/hudi_contract/",
        "operator/hudi_operator/",
        "spark-images/",
        "tests/tiers/hudi/",
        "tests/support/",
        "pyproject.toml",
    ),
}
"""Files that the outcome of a tier's tests depends on."""


@dataclass(frozen=True)
class Verdict:
    """Outcome of one mutation.

    ``told``: the first line of each failed test by its name, or why it is invalid (key empty).
    """

    outcome: str
    told: dict[str, str]
    seconds: float


def key(tests: Iterable[str], names: list[str], hashes: dict[str, str]) -> str:
    """Hash of everything that the outcome of tests depends on."""
    kinds = sorted({judges.tier(test) for test in tests})
    for kind in kinds:
        if kind not in hashes:
            hashes[kind] = digest([name for name in names if name.startswith(RELEVANT[kind])])
    return hashlib.sha256("\0".join([*(hashes[kind] for kind in kinds), *sorted(tests)]).encode()).hexdigest()[:24]


def own_key(one: Mutation, names: list[str], root: Path = ROOT) -> str:
    """Hash of what a mutation changes and into what, of the tests that must notice it, and of what
    those share with others; of all these the substance.

    Other product code counts too, strictly speaking; then each change would cost a whole run.
    `--again` asks everything again. Raises Drifted.
    """
    tests = {test.partition("::")[0] for test in one.tests}
    named = frozenset(test.partition("::")[2] for test in one.tests)
    found = hashlib.sha256("\0".join(sorted(one.tests)).encode())
    for file, text in sources(one, root).items():
        found.update(f"\0{file}\0{substance(file, (root / file).read_text())}\0{substance(file, text)}".encode())
    for file in sorted(tests | beside(tests, names, root)):
        found.update(
            f"\0{file}\0{substance(file, (root / file).read_text(), named if file in tests else frozenset())}".encode()
        )
    return found.hexdigest()[:24]


def verdict(one: Mutation, seen: judges.Seen, seconds: float) -> Verdict:
    """Caught: every named test has failed.

    Survived: one has passed. No end: one did not end in its time, so that nobody knows what it
    would have said. Invalid: that is not known.
    """
    if seen.endless and not set(one.tests) & seen.passed:
        return Verdict(NO_END, seen.endless, seconds)
    if seen.invalid and not set(one.tests) & seen.passed:
        return Verdict(INVALID, {"": seen.invalid}, seconds)
    if set(one.tests) <= set(seen.failed):
        return Verdict(CAUGHT, {test: seen.failed[test] for test in one.tests}, seconds)
    quiet = sorted(set(one.tests) - set(seen.failed))
    return Verdict(SURVIVED, {**seen.failed, **dict.fromkeys(quiet, "passes")}, seconds)


class Campaign:
    """The mutations of one run, in one copy of the checkout."""

    def __init__(
        self, chosen: list[tuple[Mutation, str]], *, copy: str = "copy", tiers: Collection[str] = judges.TIERS
    ) -> None:
        """``chosen``: mutations with the outcome that each must have.

        ``copy``: which copy of the checkout is mutated.

        ``tiers``: only those are judged whose dearest test is of one of these.
        """
        self.chosen, self.tiers = chosen, tiers
        self._place = Place(OUT / copy)
        self._scratch = OUT / f"{copy}.log"
        self._names = tracked()
        self._hashes: dict[str, str] = {}
        self._mutated_jar = False
        """The jar in the copy is of a mutation that was judged before."""

    def result(self, one: Mutation) -> dict[str, Any] | None:
        """The stored result of a mutation for this code; None: there is none."""
        found = stored(one)
        return found if found is not None and found.get("key") and found["key"] == self._key(one) else None

    def _key(self, one: Mutation) -> str:
        """Empty of one that does not fit the code any more."""
        try:
            return own_key(one, self._names)
        except Drifted:
            return ""

    def run(self, *, seconds: float = float("inf")) -> bool:
        """Judge what has no result yet.

        False when time was over before the end, or when tests fail that should judge.
        """
        end = time.monotonic() + seconds
        mine = [(one, wanted) for one, wanted in self.chosen if dearest(one) in self.tiers]
        todo = [(one, wanted) for one, wanted in mine if self.result(one) is None]
        print(
            f"{len(mine)} mutations ({', '.join(self.tiers)}), {len(mine) - len(todo)} judged for this code before",
            flush=True,
        )
        if not todo:
            return True
        self._scratch.mkdir(parents=True, exist_ok=True)
        alone = (self._scratch / "lock").open("w")
        try:
            fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(f"another run uses {self._place.folder}") from None
        self._place.refresh()
        bad = self._prepare([one for one, _ in todo])
        # The cheap ones first; those of one tier share what is compiled.
        todo.sort(key=lambda pair: judges.TIERS.index(dearest(pair[0])))
        for number, (one, wanted) in enumerate(todo, 1):
            if time.monotonic() > end:
                print(f"time is over: {len(todo) - number + 1} are left", flush=True)
                return False
            if self.result(one) is not None:
                continue  # another run, in another copy, was faster
            if useless := sorted(set(one.tests) & bad):
                print(f"{number}/{len(todo)} {one.id}: not judged, {useless[0]} fails without it", flush=True)
                continue
            found = self._judge(one)
            text = next(iter(found.told.values()), "")
            flag = "" if found.outcome == wanted else f"   <-- must be {wanted}"
            print(
                f"{number}/{len(todo)} {one.id}: {found.outcome} ({found.seconds:.0f} s){flag}: {text[:150]}",
                flush=True,
            )
        return not bad

    def _judge(self, one: Mutation) -> Verdict:
        begin = time.monotonic()
        self._place.apply(one)
        try:
            java = any(name.endswith(".java") for name in one.files)
            if "hudi" in map(judges.tier, one.tests) and (java or self._mutated_jar):
                self._package()
                self._mutated_jar = java
            seen = judges.run(one.tests, self._place.folder, self._scratch, one.files)
        finally:
            self._place.restore()
        found = verdict(one, seen, time.monotonic() - begin)
        judged = own_key(one, self._names, self._place.folder)  # the checkout may be another by now
        # Stored with the code: without paths of a machine
        told = next(iter(found.told.values()), "").replace(f"{ROOT}/", "")[:SHOWN]
        value = {
            "key": judged,
            "outcome": found.outcome,
            "told": told,
            "tests": sorted(one.tests),
            "commit": evidence.commit(),
            "at": time.strftime("%Y-%m-%d", time.gmtime()),
        }
        keep(lambda outcomes: outcomes.update({one.id: {**value, "seconds": round(found.seconds, 1)}}))
        return found

    def _package(self) -> None:
        problem = judges.build(self._place.folder, self._scratch, package=True)
        if problem:
            raise SystemExit(problem)

    def _prepare(self, todo: list[Mutation]) -> set[str]:
        """Build what the tests need, and see them pass without a mutation.

        Returns those that do not: a test that fails anyhow proves nothing.
        """
        tests = sorted({test for one in todo for test in one.tests})
        kinds = {judges.tier(test) for test in tests}
        if "hudi" in kinds:
            self._package()
        if "java" in kinds and (problem := judges.build(self._place.folder, self._scratch)):
            raise SystemExit(problem)
        good = _baseline()
        fresh = [test for test in tests if good.get(test) != key([test], self._names, self._hashes)]
        if not fresh:
            return set()
        print(f"the tests themselves, without a mutation: {len(fresh)}", flush=True)
        bad = set[str]()
        for several in judges.batches(fresh):
            seen = judges.run(several, self._place.folder, self._scratch)
            passed = {test: key([test], self._names, self._hashes) for test in seen.passed}
            _baseline(passed)
            told = "\n".join([seen.invalid, *(f"  {test}: {said}" for test, said in seen.failed.items())])
            if missing := set(several) - seen.passed:
                bad |= missing
                print(
                    f"fail without any mutation, so they can judge none: {', '.join(sorted(missing))}: {told}",
                    flush=True,
                )
        return bad


def dearest(one: Mutation) -> str:
    """The dearest tier of a mutation's tests."""
    return max((judges.tier(test) for test in one.tests), key=judges.TIERS.index)


def _baseline(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Tests that have passed without a mutation, and of which code; `more` is added.

    Several campaigns may run at once.
    """
    file = OUT / "baseline.json"
    with _alone("baseline"):
        good: dict[str, str] = json.loads(file.read_text()) if file.exists() else {}
        if more:
            good.update(more)
            file.write_text(json.dumps(good, indent=1))
    return good


def chosen_by(pattern: str, all_: Iterable[tuple[Mutation, str]]) -> list[tuple[Mutation, str]]:
    """Mutations whose id, rule, file or test a regular expression finds."""
    wanted = re.compile(pattern)
    return [
        (one, outcome)
        for one, outcome in all_
        if any(wanted.search(text) for text in (one.id, *one.breaks, *one.files, *one.tests))
    ]


def wanted_of(one: Mutation) -> str:
    """The outcome that a mutation must have."""
    return SURVIVED if one.redundant else CAUGHT


def stored(one: Mutation) -> dict[str, Any] | None:
    """The newest outcome of a mutation, of whatever code; None: it was never judged, or by other
    tests than those that it names today.

    One that was stored as `invalid` or `caught` because a test did not end is `no end`, by what was
    kept of its test.
    """
    found: dict[str, Any] | None = _outcomes(RESULTS.stat().st_mtime_ns if RESULTS.exists() else 0).get(one.id)
    if found and sorted(one.tests) != found.get("tests", sorted(one.tests)):
        return None
    if found and found["outcome"] in (CAUGHT, INVALID) and _NO_END.match(found.get("told", "")):
        return {**found, "outcome": NO_END}
    return found


@functools.lru_cache(maxsize=1)
def _outcomes(_changed: int) -> dict[str, Any]:
    return dict(json.loads(RESULTS.read_text())) if RESULTS.exists() else {}


def keep(change: Callable[[dict[str, Any]], object]) -> None:
    """Change the outcomes that are kept; several campaigns may run at once, each in its copy."""
    with _alone("outcomes"):
        outcomes = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        change(outcomes)
        RESULTS.write_text(json.dumps(outcomes, indent=0, sort_keys=True) + "\n")


@contextmanager
def _alone(name: str) -> Iterator[None]:
    OUT.mkdir(parents=True, exist_ok=True)
    with (OUT / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield

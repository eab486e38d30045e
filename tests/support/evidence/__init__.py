"""Evidence behind a page of results: the code that was run, when, how often, and omissions.

This module writes the sentence about it for every page.

A page describes the code of its runs, not today's: it names the commits, and how to see the changes
since. `faults` is the lint test's check of a page.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from math import comb
from typing import Any

from tests.support import ROOT

PRODUCT = ("operator", "spark-images", "gateway", "crds", "charts")
"""Folders of what users run; a later change in them makes a run one of older code."""
RAW = ROOT / "docs" / "results" / "raw"
"""Raw results, a folder for each campaign; they are committed, so that a page can be made again and
examined.
"""
MARK = "**Evidence.**"
NOTHING = f"{MARK} Not run."
OLDER = "**Older code**: what was committed later was not part of it;"
GONE = "not in this repository's history"
GATEWAY = "e1810866ab547755fd2da9119d2d48a5fd698f4a"
"""The commit that added the gateway, through which pods reach etcd: runs of earlier code did not
use it.
"""
S3 = "3a985dbaf25f3fc57f6c8d373dc6df73f2097f05"
"""The commit since which the tables of the hudi tier's world, which several campaigns share, are on
S3: before it they were local files.
"""
DIRECT = (
    "Writers and agent reach etcd directly, with the gateway's certificate: the gateway, through which pods reach "
    "it, is no part of these runs."
)
"""`Evidence.direct` of what runs in the processes of the hudi tier (docs/design/testing.md)."""
ONE_EACH = "one run each, so nothing is known of the spread"
_NAMED = re.compile(r"\bcommits? `?([0-9a-f]{7,40})\b|`([0-9a-f]{7,40})[`+ ]")
"""A commit behind that word, or in backticks, alone or before versions."""


@dataclass(frozen=True)
class Evidence:
    """`commits`: each commit of a run (`+` behind one that had changes which are not committed)
    with the day or days of its runs.
    """

    commits: Mapping[str, str]
    runs: str
    """Number of runs, and out of how many."""
    repeats: str = ONE_EACH
    """Repeats of one and the same run, and their spread."""
    left_out: str = "nothing"
    """Runs that were thrown away, and why."""
    more: tuple[str, ...] = field(default=())
    """Further sentences."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Number of runs of each commit; 1 for a commit that is not listed."""
    direct: str = ""
    """For a campaign whose processes do not reach etcd as pods do: a sentence that says how they
    reach it.
    """

    @classmethod
    def of(cls, results: Iterable[Mapping[str, Any]], runs: str, **more: Any) -> Evidence:
        """For raw results as `of_results` takes them; `more`: other fields."""
        found = list(results)
        return cls(of_results(found), runs, **{"counts": counted(found), **more})

    def __str__(self) -> str:
        if not self.commits:
            return NOTHING
        named = ", ".join(f"{as_said(commit)} ({days})" for commit, days in self.commits.items())
        known = [commit.rstrip("+") for commit in self.commits if reachable(commit.rstrip("+"))]
        oldest = "the oldest of them" + ("" if len(known) == len(self.commits) else " that is in the history")
        how = (
            f"`git diff --stat {min(known, key=position)} -- {' '.join(PRODUCT)}`, from {oldest}, shows it"
            if known
            else "no commit of these runs is in the history, so the changes since cannot be shown"
        )
        return " ".join(
            [
                MARK,
                f"Runs: {self.runs}, on {named}. Repeats: {self.repeats}. Left out: {self.left_out}.",
                *self.more,
                self.direct or _of_gateway({commit: self.counts.get(commit, 1) for commit in self.commits}),
                OLDER,
                f"{how}.",
            ]
        )


def of_results(results: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """`Evidence.commits` of raw results that have `commit` and `at` (or `date`),
    the newest first: by day, then by their place in the history.
    """
    days: dict[str, set[str]] = {}
    for result in results:
        day = str(result.get("at") or result.get("date") or "")[:10]
        days.setdefault(str(result["commit"]), set()).add(day or "day not kept")
    newest = sorted(days, key=lambda commit: (max(days[commit]), *position(commit.rstrip("+")), commit), reverse=True)
    return {commit: " to ".join(sorted({min(days[commit]), max(days[commit])})) for commit in newest}


def counted(results: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Number of results of each commit; a result with a number of tests counts as that many."""
    found: Counter[str] = Counter()
    for result in results:
        number = result.get("tests")  # an outcome of a mutation has their names
        found[str(result["commit"])] += number if isinstance(number, int) and number else 1
    return dict(found)


def _of_gateway(counts: Mapping[str, int]) -> str:
    """Say how many of the runs used a product without the gateway between pods and etcd."""
    total = sum(counts.values())
    known = {commit: has_gateway(commit.rstrip("+")) for commit in counts}
    without = sum(number for commit, number in counts.items() if known[commit] is False)
    unknown = sum(number for commit, number in counts.items() if known[commit] is None)
    if not without and not unknown:
        return f"All {total} are of a product with the gateway, through which pods reach etcd."
    more = f"; of {unknown} it cannot be told, because their commits are gone" if unknown else ""
    return f"{without} of {total} runs are of a product without the gateway, through which pods reach etcd today{more}."


@cache
def has_gateway(commit: str) -> bool | None:
    """Whether the gateway is part of a commit; None: the history does not have it, or there is
    no history.
    """
    return _includes(commit, GATEWAY)


@cache
def on_s3(commit: str) -> bool | None:
    """Whether the hudi tier's world makes its tables on S3; None as in `has_gateway`."""
    return _includes(commit, S3)


def _includes(commit: str, earlier: str) -> bool | None:
    if not has_history() or not reachable(commit):
        return None
    return _git("merge-base", "--is-ancestor", earlier, commit).returncode == 0


def of_storage(results: Mapping[str, str]) -> str:
    """Storage of the tables of results that use the hudi tier's world, as a sentence for
    `Evidence.more`. `results`: name → commit.
    """
    known = {name: on_s3(commit.rstrip("+")) for name, commit in results.items()}
    local, unknown = ([f"`{name}`" for name, is_s3 in known.items() if is_s3 is wanted] for wanted in (False, None))
    if len(local) == len(results):
        return "All tables were on local files (`file://`), not on S3."
    but = f", but on local files (`file://`) in {', '.join(local)}" if local else ""
    more = f"; of {', '.join(unknown)} it cannot be told" if unknown else ""
    return f"The tables were on S3{but}{more}."


def at_most(seen: int, number: int) -> str:
    """Number of sightings, and the highest probability that this allows: the upper end of the
    one-sided 95 % interval (Clopper and Pearson), in percent.
    """
    if not number:
        return "0 of 0: nothing is known"
    low, high = (seen / number, 1.0) if seen else (0.0, 1 - 0.05 ** (1 / number))
    while seen and high - low > 1e-9:  # the probability of so few events falls with the rate
        rate = (low + high) / 2
        few = sum(comb(number, k) * rate**k * (1 - rate) ** (number - k) for k in range(seen + 1))
        low, high = (rate, high) if few > 0.05 else (low, rate)
    return f"{seen} of {number}: " + (f"less than {100 * high:.2g} %" if seen < number else "all of them")


def none_of(number: int) -> str:
    """`at_most` of tries without an event."""
    return at_most(0, number)


def as_said(commit: str) -> str:
    """A commit as pages name it, with what a reader of it must know."""
    changed = " with changes that were not committed" if commit.endswith("+") else ""
    gone = "" if reachable(commit.rstrip("+")) else f", {GONE}"
    return f"`{commit.rstrip('+')}`{changed}{gone}"


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)


@cache
def has_history() -> bool:
    """Whether there is a history to ask: an unpacked archive and a shallow clone have none."""
    return (ROOT / ".git").exists() and _git("rev-parse", "--is-shallow-repository").stdout.strip() == "false"


@cache
def reachable(commit: str) -> bool:
    """Whether the history has the commit.

    Without a history this is unknown, and the commit counts as one that has it.
    """
    return not has_history() or _git("merge-base", "--is-ancestor", commit, "HEAD").returncode == 0


@cache
def position(commit: str) -> tuple[int, str]:
    """The place of a commit in the history: how many commits it has before it, so that what comes
    first is smaller; beside each other by name. -1 for one that is not in the history.
    """
    said = _git("rev-list", "--count", commit) if has_history() else None
    return (int(said.stdout) if said and said.returncode == 0 else -1, commit)


@cache
def commit() -> str:
    """The commit that is checked out, ten digits.

    `+` behind it when files of product or tests differ from it. Raises RuntimeError without git.
    """
    head = _git("rev-parse", "--short=10", "HEAD").stdout.strip()
    if not head:
        raise RuntimeError("which commit is run? This is no git repository, so its results could name none")
    return head + ("+" if _git("status", "--porcelain", "--", *PRODUCT, "tests").stdout.strip() else "")


def faults(text: str) -> list[str]:
    """Why a page must not stay unchanged; nothing: it may."""
    found = []
    sentences = [line for line in text.splitlines() if line.startswith(MARK)]
    if len(sentences) != 1:
        found.append(f"it has {len(sentences)} sentences of evidence ({MARK}) instead of one")
    for line in sentences:
        if line != NOTHING and OLDER not in line:
            found.append("it does not say that later code was not part of the runs")
        found += [
            f"its evidence does not tell its {what.strip(': ').lower()}"
            for what in ("Runs: ", "Repeats: ", "Left out: ")
            if line != NOTHING and what not in line
        ]
        if line != NOTHING and " gateway" not in re.sub(r"`[^`]*`", "", line):
            found.append("it does not say whether the gateway was part of the runs")
    return found + lost(text)


def lost(text: str) -> list[str]:
    """Commits that a page names, that are not in the history, and of which the page does
    not say so.
    """
    found = []
    for line in text.splitlines():
        names = {match[1] or match[2] for match in _NAMED.finditer(line)}
        gone = sorted(name for name in names if not name.isdigit() and not reachable(name))
        if line.count(GONE) < len(gone):
            found += [f"commit {name} is not in the history, and the page does not say so" for name in gone]
    return found

"""The result of an audit: one outcome per check, and one for all of them.

An outcome is ok, violated or unknown. A check that cannot read its input is unknown, and unknown is
never ok.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

#: Maximum number of findings that a check lists; the others are counted.
MAX_LISTED = 20


class Outcome(enum.Enum):
    """Outcome of a check.

    NOT_ASKED: its input was not given, or it was disabled; it does not affect the total outcome.
    """

    OK = "ok"
    VIOLATED = "violated"
    UNKNOWN = "unknown"
    NOT_ASKED = "not asked"


@dataclass(frozen=True)
class Check:
    """One check: its name, its outcome, one sentence, and findings.

    The findings (files, instants, rows) caused the outcome.

    `ask_again`: the outcome is due to an operation in progress, which ends by itself; repeat the
    check after that.
    """

    name: str
    outcome: Outcome
    sentence: str
    findings: tuple[str, ...] = ()
    ask_again: bool = False

    def to_dict(self) -> dict[str, Any]:
        """As JSON; at most MAX_LISTED findings, `findingCount` is the total."""
        found: dict[str, Any] = {
            "name": self.name,
            "title": TITLES[self.name],
            "outcome": self.outcome.value,
            "sentence": self.sentence,
        }
        return {
            **found,
            "askAgain": self.ask_again,
            "findingCount": len(self.findings),
            "findings": list(self.findings[:MAX_LISTED]),
        }


#: All checks, in the order of the report.
TITLES = {
    "rows": "acknowledged rows are readable, no others",
    "origin": "each row was written by a completed instant",
    "unique": "each key occurs once in its partition",
    "hudi-rs": "hudi-rs reads what Spark reads",
    "files": "files of completed instants exist and open",
    "stray": "no file without an instant",
    "owners": "no pending instant without a live owner",
    "metadata": "the metadata table says what the storage holds",
    "incremental": "the incremental pull yields the final row of each key",
    "late": "nothing was completed after its owner was settled",
    "overlap": "no two overlapping commits on one file group",
}


def ok(name: str, sentence: str) -> Check:
    """The rule holds."""
    return Check(name, Outcome.OK, sentence)


def violated(name: str, sentence: str, findings: Sequence[str] = ()) -> Check:
    """The rule is broken; `findings` list where."""
    return Check(name, Outcome.VIOLATED, sentence, tuple(findings))


def unknown(name: str, sentence: str, findings: Sequence[str] = ()) -> Check:
    """The check could not read its input."""
    return Check(name, Outcome.UNKNOWN, sentence, tuple(findings))


def unsettled(name: str, sentence: str, findings: Sequence[str] = ()) -> Check:
    """The outcome is not final yet: repeat the check."""
    return Check(name, Outcome.UNKNOWN, sentence, tuple(findings), ask_again=True)


def not_asked(name: str, sentence: str) -> Check:
    """The check was disabled, or its input was not given."""
    return Check(name, Outcome.NOT_ASKED, sentence)


@dataclass(frozen=True)
class Report:
    """Result of an audit of one table."""

    path: str
    checks: tuple[Check, ...]

    @property
    def outcome(self) -> Outcome:
        """VIOLATED if any check is, else UNKNOWN if any is, else OK.

        UNKNOWN when no check was run.
        """
        found = {check.outcome for check in self.checks}
        for outcome in (Outcome.VIOLATED, Outcome.UNKNOWN, Outcome.OK):
            if outcome in found:
                return outcome
        return Outcome.UNKNOWN

    @property
    def exit_code(self) -> int:
        """0 ok, 1 violated, 2 could not be checked."""
        return {Outcome.OK: 0, Outcome.VIOLATED: 1}.get(self.outcome, 2)

    def get(self, name: str) -> Check:
        """The check with that name. Raises KeyError."""
        for check in self.checks:
            if check.name == name:
                return check
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "v": 1,
            "path": self.path,
            "outcome": self.outcome.value,
            "checks": [check.to_dict() for check in self.checks],
        }

    def text(self) -> str:
        """As text: a table, then the findings of the checks that have any."""
        width = max((len(title) for title in TITLES.values()), default=0)
        lines = [f"{self.path}: {self.outcome.value}", ""]
        lines += [
            f"{check.outcome.value:<9}  {check.name:<11}  {TITLES[check.name]:<{width}}  {check.sentence}"
            for check in self.checks
        ]
        for check in self.checks:
            if check.findings:
                lines += ["", f"{check.name}:", *(f"  {finding}" for finding in check.findings[:MAX_LISTED])]
                if len(check.findings) > MAX_LISTED:
                    lines.append(f"  … {len(check.findings) - MAX_LISTED} more")
        return "\n".join(lines)

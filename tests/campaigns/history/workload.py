"""Steps of the writers of a history, and evaluation of its results.

Pure: no I/O.

All writers do the same kind of step at the same time, on the same records, so that they meet. A
partition is one file group.

    partition   records                          for
    la, lb      lists 1, 2 and 3, 4              append
    ba, bb      accounts 11, 12 and 13, 14       transfer
    wa, wb      accounts 100 + r and 200 + r     withdraw, one pair per round
    u           keys 300 + r insert, into the file group of key 300, which is there before
    n<r>        keys 400 + r insert, into a partition that nobody has written to yet
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.campaigns.history.adya import FORBIDDEN, Anomaly, History, Transaction, anomalies

Step = dict[str, Any]
Row = tuple[int, str, str, int]
LISTS = {1: "la", 2: "la", 3: "lb", 4: "lb"}
ACCOUNTS = {11: "ba", 12: "ba", 13: "bb", 14: "bb"}
BALANCE, ENOUGH, TAKEN = 100, 50, 60
TOTAL = BALANCE * len(ACCOUNTS)
SEED = "seed"


def seed(rounds: int) -> list[Row]:
    """The rows of the first commit."""
    lists = [(number, p, SEED, 1) for number, p in LISTS.items()]
    accounts = [(number, p, f"{BALANCE} {SEED}", 1) for number, p in ACCOUNTS.items()]
    pairs = [
        (base + r, p, f"{ENOUGH} {SEED}", 1) for base, p in ((100, "wa"), (200, "wb")) for r in range(1, rounds + 1)
    ]
    return [*lists, *accounts, *pairs, (300, "u", SEED, 1)]


def steps(writer: int, rounds: int, chance: random.Random) -> list[Step]:
    """The steps of a writer."""
    made: list[Step] = []
    for r in range(1, rounds + 1):
        one, other = chance.choice([1, 2]), chance.choice([3, 4])
        made.append({"kind": "append", "read": [one, other], "write": (one, other)[(writer + r) % 2]})
        take, give = chance.sample(sorted(ACCOUNTS), 2)
        made.append(
            {"kind": "transfer", "read": sorted(ACCOUNTS), "take": take, "give": give, "amount": chance.randint(1, 9)}
        )
        made.append(
            {"kind": "withdraw", "read": [100 + r, 200 + r], "take": (100, 200)[writer % 2] + r, "amount": TAKEN}
        )
        made.append({"kind": "insert", "read": [300 + r], "p": "u"})
        made.append({"kind": "append", "read": [one, other], "write": (one, other)[(writer + r + 1) % 2]})
        made.append({"kind": "insert", "read": [400 + r], "p": f"n{r}"})
    return [step | {"name": f"w{writer}.{number}"} for number, step in enumerate(made)]


@dataclass(frozen=True)
class Commit:
    """One completed commit: `rows` that it wrote, id -> v, and the file group of each."""

    instant: str
    completion: str
    rows: Mapping[int, str]
    groups: Mapping[int, str] = field(default_factory=dict)


@dataclass
class Found:
    """Result of a run. Each number counts what its name says; `of_*`: the total."""

    commits: int
    anomalies: dict[str, int]
    told: list[str]
    lost: int
    """Appended marks of completed commits that are not in the list in the end."""
    wrong_totals: int
    """Snapshots read by a transfer, and states between commits, whose balances do not add up."""
    overdrawn: int
    of_pairs: int
    twice_existing: int
    twice_new: int
    of_keys: int
    met: int = 0
    """Committed transactions that have read between the read and the commit of another one."""

    @property
    def broken(self) -> list[str]:
        """Findings that snapshot isolation with the first committer winning excludes."""
        kinds = [f"{kind}: {n}" for kind, n in self.anomalies.items() if kind in FORBIDDEN and n]
        return [
            *kinds,
            *(f"{name}: {n}" for name, n in (("lost", self.lost), ("wrong totals", self.wrong_totals)) if n),
        ]

    @property
    def inserted_twice(self) -> list[str]:
        """Findings that `concurrency.insertConflicts: Key`, the default, excludes (I13)."""
        twice = self.twice_existing + self.twice_new
        return [f"keys twice: {twice}"] if twice else []

    @property
    def not_serializable(self) -> list[str]:
        """Findings that no serial order of the writers can show."""
        more = {"G2": self.anomalies.get("G2", 0), "overdrawn": self.overdrawn}
        return [*self.broken, *(f"{name}: {n}" for name, n in more.items() if n), *self.inserted_twice]


def mark(v: str) -> str:
    """The try that wrote a row."""
    return v.split()[-1]


def parse_notes(text: str) -> list[dict[str, Any]]:
    """Notes of a writer; the last line of one that was killed may be torn, and is left out."""
    found = []
    for line in text.splitlines():
        try:
            note = json.loads(line)
        except json.JSONDecodeError:
            continue
        found.append(
            note
            | {
                "read": {int(k): v for k, v in note["read"].items()},
                "write": {int(k): v for k, v in note["write"].items()},
            }
        )
    return found


def history(notes: Iterable[Mapping[str, Any]], commits: Sequence[Commit]) -> History:
    """The list-append transactions: every try is one, committed when a completed commit has its
    rows. Versions are in order of completion.
    """
    done = {mark(v) for commit in commits for v in commit.rows.values()}
    order = {str(number): [mark(c.rows[number]) for c in commits if number in c.rows] for number in LISTS}
    made = [Transaction(SEED, {}, {str(number): [(SEED,)] for number in LISTS})]
    for note in notes:
        reads = {str(number): tuple(v.split()) for number, v in note["read"].items() if number in LISTS}
        writes = {str(number): [tuple(v.split())] for number, v in note["write"].items() if number in LISTS}
        if reads:
            made.append(Transaction(note["mark"], reads, writes, committed=note["mark"] in done))
    return History(made, order)


def judge(
    notes: Sequence[Mapping[str, Any]], commits: Sequence[Commit], final: Sequence[tuple[int, str, str]], rounds: int
) -> Found:
    """Everything that is counted; `final`: id, p and v of the rows in the end."""
    found: list[Anomaly] = anomalies(history(notes, commits))
    kinds = Counter(anomaly.kind for anomaly in found)
    lists = {number: v.split() for number, _, v in final if number in LISTS}
    appended = [(number, mark(v)) for commit in commits for number, v in commit.rows.items() if number in LISTS]
    times = Counter((number, p) for number, p, _ in final)
    balance = {number: int(v.split()[0]) for number, _, v in final if 100 < number < 300}
    done = {mark(v) for commit in commits for v in commit.rows.values()}
    totals = [_total(n["read"]) for n in notes if set(ACCOUNTS) <= set(n["read"]) and n["mark"] in done]
    state: dict[int, str] = {}
    for commit in commits:
        state.update({number: v for number, v in commit.rows.items() if number in ACCOUNTS})
        totals += [_total(state)] if set(ACCOUNTS) <= set(state) else []
    return Found(
        commits=len(commits),
        anomalies=dict(kinds),
        told=[f"{anomaly.kind}: {anomaly.told}" for anomaly in found[:20]],
        lost=sum(m not in lists.get(number, []) for number, m in appended),
        wrong_totals=sum(total != TOTAL for total in totals),
        overdrawn=sum(balance[100 + r] + balance[200 + r] < 0 for r in range(1, rounds + 1)),
        of_pairs=rounds,
        twice_existing=sum(times[300 + r, "u"] > 1 for r in range(1, rounds + 1)),
        twice_new=sum(times[400 + r, f"n{r}"] > 1 for r in range(1, rounds + 1)),
        of_keys=rounds,
        met=met(notes, commits),
    )


def met(notes: Iterable[Mapping[str, Any]], commits: Sequence[Commit]) -> int:
    """Number of committed transactions that read between the read and the commit of another
    writer's; for a note without `at` this is unknown, and it counts as one that has met nobody.
    """
    ends = {mark(v): commit.completion for commit in commits for v in commit.rows.values()}
    spans = [
        (note["mark"].partition(".")[0], float(note["at"]), ended(ends[note["mark"]]))
        for note in notes
        if "at" in note and note["mark"] in ends
    ]
    return sum(any(other != writer and begin < at < end for other, begin, end in spans) for writer, at, _ in spans)


def ended(completion: str) -> float:
    """The second of a completion time, as a timeline names it: `20260101120000123`, in UTC."""
    whole = datetime.strptime(completion[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return whole.timestamp() + int(completion[14:17] or 0) / 1000


def _total(values: Mapping[int, str]) -> int:
    return sum(int(values[number].split()[0]) for number in ACCOUNTS)

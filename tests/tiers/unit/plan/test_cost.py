"""What a look costs: it grows with what the table has, and not with products of it (F439)."""

from __future__ import annotations

from typing import Any

import pytest

from hudi_contract import naming
from hudi_operator.model import conditions
from hudi_operator.model.status import AttemptEntry
from hudi_operator.plan.table import plan_table
from tests.support.world.scene import Scene
from tests.support.world.simulated_store import CONFIG

ATTEMPTS = 5


def scene(writers: int) -> Scene:
    """A table of one writer at a time: so many writers wait, and so many dead ones are known."""
    made = Scene(concurrency={"mode": "SingleWriter"})
    assert made.table is not None
    made.table["metadata"]["finalizers"] = [naming.SETTLE_FINALIZER]
    for number in range(writers):
        name = f"w{number}"
        made.writer(name)
        entries = [
            {
                "number": n + 1,
                "pod": f"{name}-{n + 1}",
                "podUID": f"uid-{name}-{n + 1}",
                "class": "Infrastructure",
                "startTime": f"2026-01-01T00:{number:02}:{n:02}Z",
                "endTime": f"2026-01-01T00:{number:02}:{n:02}Z",
            }
            for n in range(ATTEMPTS)
        ]
        made.writers[name]["spec"]["restartNonce"] = "2"
        made.writers[name]["status"].update(attempt=ATTEMPTS, attempts=entries, executedNonce="1")
        made.put(f"settle/dead-{number}", {"phase": "Settled", "attempt": f"lake.{name}-1", "role": "writer"})
    return made


def costs(writers: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Attempts parsed, and dates parsed, in the plan of one look."""
    attempts, dates = [0], [0]
    known, date = AttemptEntry.known.__func__, conditions.from_rfc3339  # type: ignore[attr-defined]

    def counted(cls: type[AttemptEntry], value: Any) -> AttemptEntry:
        attempts[0] += 1
        found: AttemptEntry = known(cls, value)
        return found

    def counted_date(text: str) -> int | None:
        dates[0] += 1
        return date(text)

    observed = scene(writers).observe()
    with monkeypatch.context() as patch:
        patch.setattr(AttemptEntry, "known", classmethod(counted))
        patch.setattr(conditions, "from_rfc3339", counted_date)
        plan_table(observed, CONFIG)
    return attempts[0], dates[0]


def test_twice_the_writers_cost_twice_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = costs(12, monkeypatch), costs(24, monkeypatch)
    for one, other in zip(few, many, strict=True):
        assert 0 < one < other <= 2 * one + 20

"""What the Java session is told while a batch is written: which reads are the runtime's, and which
writes are tries of one batch (F424, F442).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_contract.job import Validation
from hudi_contract.words import Operation
from hudi_runtime.process.result import Tally
from hudi_runtime.read.progress import Progress
from hudi_runtime.read.sources import Batch
from hudi_runtime.writer import commit
from hudi_runtime.writer.commit import Committer
from tests.support.world.played_committer import Play

FRAME: Any = SimpleNamespace(schema=None)
BATCH = Batch(FRAME, {}, "d", Progress())


class Scopes:
    """The scopes of a session that are open."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.begun: list[str] = []

    def scope(self, name: str) -> Callable[..., AbstractContextManager[None]]:
        @contextmanager
        def between(**said: Any) -> Iterator[None]:
            self.begun.append(f"{name} {said}" if said else name)
            self.open.append(self.begun[-1])
            try:
                yield
            finally:
                self.open.pop()

        return between


def test_the_tries_of_a_batch_are_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """F442: what the program has read before counts for each of them."""
    play, scopes, seen = Play(monkeypatch, ["lost", "yielded", "done"], retries=3), Scopes(), list[list[str]]()
    play._session.batch, play._session.trying = scopes.scope("batch"), scopes.scope("try")
    write = play._write

    def noted(batch: Batch, *, base: str) -> Exception | None:
        seen.append(list(scopes.open))
        return write(batch, base=base)

    monkeypatch.setattr(play, "_write", noted)
    assert play.commit(BATCH, base="") == "later"
    assert seen == [["batch", "try"]] * 3
    assert scopes.begun == ["batch", "try", "try", "try"]
    assert not scopes.open


class Written(Committer):
    """A committer whose batch fits the table; it keeps which scopes were open as it was saved."""

    def __init__(self, operation: str, scopes: Scopes, validations: tuple[Validation, ...] = ()) -> None:
        self.scopes, self.saved = scopes, list[list[str]]()
        self._spark: Any = None
        self._table: Any = None
        self._fitted_to = None
        self._tally = Tally()
        self._job: Any = SimpleNamespace(
            operation=operation,
            source=None,
            adds=False,
            validations=validations,
            table=SimpleNamespace(record_keys=("id",), path="s3a://lake/t"),
        )
        self._session: Any = SimpleNamespace(recomputed=lambda: 0, inc="i", looking_up=scopes.scope("look-up"))

    def _rows(self, batch: Batch) -> Any:
        return batch.frame, {}

    def _transformed(self, batch: Batch, rows: Any) -> Any:
        return rows

    def _evolved(self, batch: Batch, frame: Any) -> Any:
        return SimpleNamespace(schema=None, apply=lambda frame: frame), ""

    def _computed_once(self, frame: Any, begun: int) -> dict[str, str]:
        return {}

    def _save(self, frame: Any, options: Any) -> None:
        self.saved.append(list(self.scopes.open))


VALIDATED = (Validation(name="v", sql="SELECT 1 FROM table"),)


@pytest.mark.parametrize(
    ("operation", "asked", "deletes"),
    [
        (Operation.INSERT, (), False),
        (Operation.DELETE, (), True),
        (Operation.DELETE, (Validation(name="v", min_rows=1),), True),
        (Operation.DELETE, VALIDATED, False),
    ],
)
def test_look_ups_are_the_runtimes(
    monkeypatch: pytest.MonkeyPatch, operation: str, asked: tuple[Validation, ...], deletes: bool
) -> None:
    """F424: from before the keys are looked up until the batch is written.

    A validation that reads the table is more than a look-up of versions to delete (F425).
    """
    scopes, looked, validated = Scopes(), list[list[str]](), list[bool]()
    monkeypatch.setattr(commit.sp, "interruptible", lambda _: None)
    monkeypatch.setattr(commit.partitions, "held", lambda frame, _: frame)
    monkeypatch.setattr(commit.values, "held", lambda frame, *_, **__: frame)
    for name in ("write_options", "key_options"):
        monkeypatch.setattr(commit, name, lambda *_, **__: {})
    monkeypatch.setattr(commit.duplicates, "as_upsert", lambda *_: {})

    def looks(value: Callable[[Any], Any]) -> Callable[..., AbstractContextManager[Any]]:
        @contextmanager
        def held(*given: Any, **said: Any) -> Iterator[Any]:
            looked.append(list(scopes.open))
            validated.extend(value for name, value in said.items() if name == "validated")
            yield value(next(one for one in given if one is FRAME))

        return held

    monkeypatch.setattr(commit.duplicates, "held", looks(lambda frame: frame))
    monkeypatch.setattr(commit.validations, "held", looks(lambda frame: frame))
    monkeypatch.setattr(commit.deletes, "held", looks(lambda frame: (frame, {})))
    written = Written(operation, scopes, asked)
    assert written._write(BATCH, base="") is None
    expected = [f"look-up {{'deletes': {deletes}}}"]
    assert looked == [expected, expected, expected]
    assert validated == [bool(asked)], "F487: keys are then looked up after the batch is computed"
    assert written.saved == [expected]
    assert not scopes.open

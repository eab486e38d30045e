"""A program of a user that does what the test tells it, step by step, in one Spark session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.harness.local import Table
from tests.support.harness.processes import until

APP = Path(__file__).resolve().parents[2] / "tiers" / "hudi" / "apps" / "told_app.py"


class Told:
    """An application of a HudiWriter; see `told_app.py` for the names that its pieces may use."""

    def __init__(self, table: Table, name: str, **more: Any) -> None:
        self._folder = table.world.folder / f"told-{table.spec.ref.name}-{name}"
        self._folder.mkdir()
        self._number = 0
        application = {"mainFile": str(APP), "arguments": [str(self._folder)]}
        self.process = table.writer(name, application=application, **more)

    def begin(self, piece: str) -> int:
        """Start a piece of Python; returns its number."""
        part = self._folder / f"{self._number}.part"
        part.write_text(piece)
        part.rename(part.with_suffix(".py"))
        self._number += 1
        return self._number - 1

    def said(self, number: int) -> tuple[str, Any]:
        """Outcome of that piece: the error's message or an empty text, and its `value`."""
        told = self._answer(number)
        return told["said"], told["value"]

    def kind(self, number: int) -> str:
        """The class of that piece's error, as an attempt has it that ends with it; or nothing."""
        return str(self._answer(number)["kind"])

    def _answer(self, number: int) -> dict[str, Any]:
        answer = self._folder / f"{number}.json"
        until(f"piece {number} of {self.process.name}", answer.exists, alive=self.process, every=0.02)
        told: dict[str, Any] = json.loads(answer.read_text())
        return told

    def run(self, piece: str) -> str:
        """The error's message; empty when the piece has succeeded."""
        return self.said(self.begin(piece))[0]

    def sql(self, statement: str) -> str:
        """`run`, of a statement."""
        return self.run(f"spark.sql({statement!r})")

    def ask(self, expression: str) -> Any:
        """The value of an expression, which must not fail."""
        said, value = self.said(self.begin(f"value = {expression}"))
        assert not said, said
        return value

    def reached(self, gate: str, number: int) -> bool:
        """Wait until that piece reaches `pause`; False when it ends without."""
        place, answer = self._folder / f"{gate}.reached", self._folder / f"{number}.json"
        until(f"{gate} is reached", lambda: place.exists() or answer.exists(), alive=self.process, every=0.02)
        return place.exists()

    def open(self, gate: str) -> None:
        """Let `pause` go on."""
        (self._folder / gate).touch()

    def end(self) -> None:
        """The program ends without an error."""
        (self._folder / "end").touch()
        assert self.process.wait() == 0, self.process.log()[-4000:]

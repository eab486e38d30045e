"""A program that keeps rows of its table over a refused write, has another thread read them, or reads a part of them, overwrites nobody's change."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.harness.counting_writers import counting
from tests.support.harness.local import AGENT, Process, World, rows, until

APP = Path(__file__).with_name("apps") / "reads_app.py"


@pytest.mark.extra
def test_what_was_read_before_is_not_written_over_a_change(world: World, agent: Process) -> None:
    """F88: what a statement reads for itself does not make older rows new, nor does what the writing thread has read make those of others new.

    F89, F90: Hudi's sink for streams, and reading base files alone, are refused.
    """
    table = world.table("kept-reads", type="MergeOnRead")
    world.create(table, agent=AGENT, process=agent)
    seed = table.writer("seed", python={"batches": [{"rows": rows([1, 2, 3], "a", "0", 1)}]})
    assert seed.wait() == 0, seed.log()[-4000:]
    code, results, gate = world.folder / "code-reads", world.folder / "reads.json", world.folder / "gate-reads"
    code.mkdir()
    shutil.copy(APP, code)
    program = table.writer("program", application={"mainFile": str(code / APP.name), "arguments": [str(results), str(gate)]})
    until("it has read", Path(f"{gate}.reached").exists, alive=program)
    other = counting(table, "other", "updates", [1, 2])
    assert other.wait() == 0, other.log()[-4000:]
    gate.touch()
    assert program.wait() == 0, program.log()[-8000:]
    found = json.loads(results.read_text())
    for name in ("UPDATE", "UPDATE, tried again", "rows of a pool", "rows of a pool, tried again"):
        assert "onflict" in found[name], found
    assert (found["UPDATE, read again"], found["UPDATE by itself"]) == ("done", "done"), found
    for name in ("read_optimized", "UPDATE with SET read_optimized", "writeStream"):
        assert "[HUDIOP-STATEMENT]" in found[name], found
    until("nothing is left pending", lambda: not table.pending(), alive=agent)
    table.audited([(1, "a", "2", 3), (2, "a", "1", 2), (3, "a", "1", 2)])

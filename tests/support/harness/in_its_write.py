"""A writer between its two holds of the lock, and how it must end."""

from __future__ import annotations

import signal
import time

from tests.support.harness.local import Process, Table, until


def done(writer: Process, *, commits: int = 1, conflicts: int = 0) -> None:
    """Wait for it, and assert that it has succeeded with these numbers of commits and conflicts."""
    assert writer.wait() == 0, writer.log()[-4000:]
    told = writer.termination()
    assert (told["commits"], told["conflicts"]) == (commits, conflicts), writer.log()[-4000:]


def stopped_in_its_write(table: Table, writer: Process) -> None:
    """Stop it between its two holds of the lock: it has read the table and begun its instant, and
    not committed.
    """

    def begun() -> bool:
        return any(instant.state.name == "INFLIGHT" for instant in table.timeline().pending)

    until("its instant is inflight", begun, alive=writer, every=0.005)
    while True:
        writer.signal(signal.SIGSTOP)
        lock = table.get("lock")
        if lock is None or lock["inc"] != writer.inc:
            break
        writer.signal(signal.SIGCONT)
        time.sleep(0.02)
    assert begun(), "it has not committed yet"

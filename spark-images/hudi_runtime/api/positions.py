"""The position of an incremental reader of a Hudi table, in one of three orders.

A position is a value; `ReadSnapshot.pull` returns the next one.

* `ByCompletion`: by completion time. The usual choice: the checkpoint is one time, and no late
  commit lies before it.
* `Fenced`: by requested time; waits for the oldest pending write of the table.
* `OutOfOrder`: a commit is returned as soon as it is completed; the checkpoint lists the commits
  returned ahead of the oldest pending one.

Each begins before the first commit: `positions.ByCompletion()`. `position.checkpoint()` is the form
to store (a dictionary for JSON); `positions.parse(stored)` restores the position, or raises
`PositionError`. `Position` is any of the three.
"""

from hudi_runtime.read.positions import ByCompletion, Fenced, OutOfOrder, Position, PositionError, parse

__all__ = ["ByCompletion", "Fenced", "OutOfOrder", "Position", "PositionError", "parse"]

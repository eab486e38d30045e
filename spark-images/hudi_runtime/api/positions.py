"""How far an incremental reader of a Hudi table has come, in one of three orders. A position is a value; `ReadSnapshot.pull` gives the next one.

* `ByCompletion`: by completion time. The usual choice: the checkpoint is one time, and nothing that finishes late lies before it.
* `Fenced`: by requested time; waits for the oldest pending write of the table.
* `OutOfOrder`: a commit is given as soon as it is completed; the checkpoint names those that were given ahead of the oldest pending one.

Each begins before the first commit: `positions.ByCompletion()`. `position.checkpoint()` is the form to store (a dictionary for JSON);
`positions.parse(stored)` makes the position of it again, or raises `PositionError`. `Position` is any of the three.
"""

from hudi_runtime.read.positions import ByCompletion, Fenced, OutOfOrder, Position, PositionError, parse

__all__ = ["ByCompletion", "Fenced", "OutOfOrder", "Position", "PositionError", "parse"]

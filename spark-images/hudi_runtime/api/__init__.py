"""The public interface for user code.

Functions of a `python` source and programs of an `application` (docs/use/sources.md, From Python).

    from hudi_runtime.api import Reader, Update, current_context, positions

These names are stable; everything else in `hudi_runtime` may change with any release. Times are
Hudi's instant times in UTC, text of 17 digits (`yyyyMMddHHmmssSSS`); counts are numbers of commits
unless the name indicates another unit.

* `Update`: a batch made from rows of the writer's own table, computed again at each try, so that no
  other writer's commit is lost.
* `Context`: the argument of a function of a `python` source. `current_context()`: the same object
  for an application.
* `Reader`: reads a Hudi table incrementally. `Reader.look()` returns a `ReadSnapshot`, its
  `pull` a `Pull`.
* `positions`: the position of such a reader, in one of three orders; stored as JSON.
* `RuntimeFailure`: a classified failure; `failure` is its class (docs/design/contracts.md, section
  5). Uncaught, it ends the attempt with that class. `PositionLost`: the failure for commits that
  were archived, cleaned or undone before they were read.

The package has no code: it imports these names from `read` and `process`. What they promise is kept
there: a position that is lost is an error, never an empty read (I9).
"""

from hudi_runtime.api import positions
from hudi_runtime.process.errors import PositionLost, RuntimeFailure
from hudi_runtime.read.context import Context, current_context
from hudi_runtime.read.incremental import Pull, Reader, ReadSnapshot
from hudi_runtime.read.update import Update

__all__ = [
    "Context",
    "PositionLost",
    "Pull",
    "ReadSnapshot",
    "Reader",
    "RuntimeFailure",
    "Update",
    "current_context",
    "positions",
]

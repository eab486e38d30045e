"""What user code imports: functions of a `python` source and programs of an `application` (docs/use/sources.md, From Python).

    from hudi_runtime.api import Reader, Update, current_context, positions

These names stay as they are; everything else in `hudi_runtime` may change with any release. Times are Hudi's instant times in UTC, text of 17 digits
(`yyyyMMddHHmmssSSS`); counts are commits unless a name says otherwise.

* `Update`: a batch made from rows of the writer's own table, asked anew at each try, so that no other writer's commit is lost.
* `Context`: what a function of a `python` source is given. `current_context()`: the same for an application.
* `Reader`: reads a Hudi table incrementally. `Reader.look()` gives a `ReadSnapshot`, its `pull` a `Pull`.
* `positions`: how far such a reader has come, in one of three orders; kept as JSON.
* `RuntimeFailure`: why it cannot go on; `failure` is its class (docs/design/contracts.md, section 5). Left uncaught, it ends the attempt with that class.
  `PositionLost`: the one for commits that were archived, cleaned or undone before they were read.
"""

from hudi_runtime.api import positions
from hudi_runtime.process.errors import PositionLost, RuntimeFailure
from hudi_runtime.read.context import Context, current_context
from hudi_runtime.read.incremental import Pull, Reader, ReadSnapshot
from hudi_runtime.read.update import Update

__all__ = ["Context", "PositionLost", "Pull", "ReadSnapshot", "Reader", "RuntimeFailure", "Update", "current_context", "positions"]

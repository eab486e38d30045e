"""Entry point of a writer's driver: `python -m hudi_runtime.writer`."""

from __future__ import annotations

import os
import sys

from hudi_runtime.writer.attempt import main

if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Not sys.exit: threads of py4j or of user code must not keep a finished driver alive. The JVM
    # ends with its parent's pipe.
    os._exit(code)

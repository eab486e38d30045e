"""`python -m hudi_runtime.audit PATH`: the command (see command.py)."""

from __future__ import annotations

import os
import sys

from hudi_runtime.audit.command import main

if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # the JVM's gateway threads would keep the interpreter alive for seconds

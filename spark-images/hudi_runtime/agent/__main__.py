"""Entry point of an agent: `python -m hudi_runtime.agent`."""

from __future__ import annotations

import os
import sys

from hudi_runtime.agent.agent import main

if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

"""``python -m hudi_operator``."""

from __future__ import annotations

import sys

from hudi_operator.main import main

sys.exit(main())

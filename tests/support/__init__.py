"""What tiers and campaigns share; it imports neither of them.

`harness` starts real parts, `cluster` acts on a real cluster, `world` simulates what planners see,
`model` is the executable protocol, `trace` checks logs against it, `evidence` says what a page of
results stands on.
"""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""Of the repository."""
CACHE = Path(os.environ.get("HUDI_OPERATOR_CACHE", Path.home() / ".cache" / "hudi-operator"))
"""What is built and downloaded, see hack/env.sh."""

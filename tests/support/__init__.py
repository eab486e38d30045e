"""Code shared by tiers and campaigns; it imports neither of them.

`harness` starts real parts, `cluster` acts on a real cluster, `world` simulates the planners'
input, `model` is the executable protocol, `trace` checks logs against it, `evidence` names the runs
behind a page of results.
"""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""Root of the repository."""
CACHE = Path(os.environ.get("HUDI_OPERATOR_CACHE", Path.home() / ".cache" / "hudi-operator"))
"""Folder of built and downloaded files, see hack/env.sh."""

# PySpark forks to start its JVM. gRPC's handlers of a fork, which are on in its core, sometimes end
# the child then while other threads talk to etcd: the JVM "exited before sending its port number".
# Its core reads this when the first channel is made.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

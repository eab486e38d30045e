"""Operator for Apache Hudi tables on Kubernetes: many writers, one lock in etcd that outlives its lease."""

from __future__ import annotations

import os
import sys

_PROTOBUF = "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"

# etcd3's generated stubs predate what protobuf's C++ runtime accepts; the choice is made at the first protobuf import
# of the process and cannot be changed afterwards.
if "google.protobuf" not in sys.modules:
    os.environ.setdefault(_PROTOBUF, "python")

__version__ = "0.1.0"

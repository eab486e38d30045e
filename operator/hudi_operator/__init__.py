"""Operator for Apache Hudi tables on Kubernetes.

Many writers, one lock in etcd that outlives its lease.

From the bottom up: `api` (specs as types), `model` (facts, proofs, ports), `manifests`, `plan`
(pure decisions), then side by side `control` (the loop) and `adapters` (etcd, Kubernetes), and on
top `metrics`, `observability` (logs, probes), `handlers` (kopf) and `main`, which wires them. Four
more are separate programs: `etcd_auth` (users and roles of etcd), `etcd_certificates` (identities
of the chart's etcd), `etcd_upkeep` (backups, defragmentation and members of etcd) and `checkup`
(what `helm test` runs). Below all of it is hudi_contract, which agents and drivers share. The
invariants (I1, I2, …) are those of docs/design/protocol.md; each
package names the ones that it keeps.
"""

from __future__ import annotations

import os
import sys

_PROTOBUF = "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"

# etcd3's generated stubs predate what protobuf's C++ runtime accepts; the choice is made at the
# first protobuf import of the process and cannot be changed afterwards.
if "google.protobuf" not in sys.modules:
    os.environ.setdefault(_PROTOBUF, "python")

__version__ = "0.1.0"

"""Memory sizes in Spark's and in Kubernetes' notation."""

from __future__ import annotations

import re

_SPARK_MIB = {"k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0 * 1024}
_KUBERNETES = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
_MINIMAL_OVERHEAD_MIB = 512
_OVERHEAD_FACTOR = 0.4


def spark_mib(size: str) -> int:
    """MiB of a size such as ``512m`` or ``2g``. Raises ValueError."""
    match = re.fullmatch(r"(\d+)([kmgt])", size.strip().lower())
    if match is None:
        raise ValueError(f"{size!r} is not a memory size as Spark writes it (512m, 2g)")
    return int(int(match.group(1)) * _SPARK_MIB[match.group(2)])


def kubernetes_mib(quantity: object) -> int:
    """MiB of a Kubernetes quantity such as ``768Mi`` or ``1.5Gi``. Raises ValueError."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kMGT]|[KMGT]i)?", str(quantity).strip())
    if match is None:
        raise ValueError(f"{quantity!r} is not a memory quantity (768Mi, 2Gi)")
    return int(float(match.group(1)) * _KUBERNETES[match.group(2) or ""]) // 2**20


def overhead_mib(heap_mib: int) -> int:
    """What a JVM of Spark with Python beside it needs beyond its heap (measured: 1.1 GB with 1 GB of heap after eight writes)."""
    return max(_MINIMAL_OVERHEAD_MIB, int(heap_mib * _OVERHEAD_FACTOR))

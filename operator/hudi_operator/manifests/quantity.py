"""Memory sizes in Spark's and in Kubernetes' notation."""

from __future__ import annotations

import re
from decimal import Decimal

from kubernetes.utils.quantity import parse_quantity

_SPARK_MIB = {"k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0 * 1024}
_MINIMAL_OVERHEAD_MIB = 512
_OVERHEAD_FACTOR = 0.4


def spark_mib(size: str) -> int:
    """MiB of a size such as ``512m`` or ``2g``. Raises ValueError."""
    match = re.fullmatch(r"(\d+)([kmgt])", size.strip().lower())
    if match is None:
        raise ValueError(f"{size!r} is not a memory size as Spark writes it (512m, 2g)")
    return int(int(match.group(1)) * _SPARK_MIB[match.group(2)])


def kubernetes_mib(quantity: object) -> int:
    """MiB of a Kubernetes quantity such as ``768Mi``, ``1.5Gi`` or ``2e9``, rounded down. Raises ValueError."""
    try:
        size = parse_quantity(str(quantity).strip())
    except ValueError:
        size = Decimal("NaN")
    if not size.is_finite() or size < 0:
        raise ValueError(f"{quantity!r} is not a memory quantity (768Mi, 2Gi)")
    return int(size) // 2**20


def overhead_mib(heap_mib: int) -> int:
    """What a JVM of Spark with Python beside it needs beyond its heap (measured: 1.1 GB with 1 GB of heap after eight writes)."""
    return max(_MINIMAL_OVERHEAD_MIB, int(heap_mib * _OVERHEAD_FACTOR))

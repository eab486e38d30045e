"""Memory sizes in Kubernetes notation and in Spark notation."""

from __future__ import annotations

import re
from decimal import Decimal

from kubernetes.utils.quantity import parse_quantity

from hudi_operator.api.fields import SIZE

_MINIMAL_OVERHEAD_MIB = 512
_OVERHEAD_FACTOR = 0.4


def spark_size(size: str) -> str:
    """A heap such as ``512Mi`` or ``2Gi`` in Spark notation, in which ``m`` means MiB.

    Raises ValueError.
    """
    if not re.fullmatch(SIZE, size):
        raise ValueError(f"{size!r} is not a memory size of whole MiB or GiB (512Mi, 2Gi)")
    return size.removesuffix("i").lower()


def kubernetes_mib(quantity: object) -> int:
    """MiB of a Kubernetes quantity such as ``768Mi``, ``1.5Gi`` or ``2e9``, rounded down.

    Raises ValueError.
    """
    try:
        size = parse_quantity(str(quantity).strip())
    except ValueError:
        size = Decimal("NaN")
    if not size.is_finite() or size < 0:
        raise ValueError(f"{quantity!r} is not a memory quantity (768Mi, 2Gi)")
    return int(size) // 2**20


def overhead_mib(heap_mib: int) -> int:
    """Memory beyond the heap that a Spark JVM with a Python process needs.

    Measured: 1.1 GB with 1 GB of heap after eight writes.
    """
    return max(_MINIMAL_OVERHEAD_MIB, int(heap_mib * _OVERHEAD_FACTOR))

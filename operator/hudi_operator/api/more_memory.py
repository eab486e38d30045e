"""`retryPolicy.outOfMemory` of a HudiWriter: more memory after an attempt that had too little."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_operator.api.fields import number, size


@dataclass(frozen=True)
class MoreMemory:
    """Memory of driver and executors after an attempt that had too little; one of them is set."""

    max_memory: str = size(unset="")
    """Most heap of the driver; empty: it does not grow."""
    max_executor_memory: str = size(unset="")
    """Most heap of an executor; empty: it does not grow."""
    increase_percent: int = number(50, at_least=10, at_most=100)

    def problem(self) -> str:
        """Why these are no limits; empty when they are."""
        return "" if self.max_memory or self.max_executor_memory else "needs maxMemory, maxExecutorMemory or both"

"""Asynchronous calls in tests that are not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

V = TypeVar("V")


def run(awaitable: Awaitable[V]) -> V:
    """The result of a call, in a separate event loop."""

    async def wait() -> V:
        return await awaitable

    return asyncio.run(wait())

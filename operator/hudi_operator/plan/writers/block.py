"""Why a queued writer cannot start."""

from __future__ import annotations

from typing import NamedTuple


class Block(NamedTuple):
    """Why a writer waits: a CamelCase reason and a message for its conditions.

    It also names the object that the writer waits for.
    """

    reason: str
    message: str
    blocked_by: str

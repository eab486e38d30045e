"""Timelines made of small numbers."""

from __future__ import annotations

from hudi_runtime.table import timeline as tl


def time(number: int) -> str:
    return f"20260101{number:09d}"


def pending(requested: int, action: str = "commit") -> tl.Instant:
    return tl.Instant(time(requested), action, tl.State.INFLIGHT)


def done(requested: int, completion: int, action: str = "commit") -> tl.Instant:
    return tl.Instant(time(requested), action, tl.State.COMPLETED, time(completion))


def timeline(*instants: tl.Instant) -> tl.Timeline:
    return tl.Timeline(tuple(sorted(instants)))

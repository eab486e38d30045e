"""What `spec.concurrency` of a HudiTable may say together, as in the CRD."""

from __future__ import annotations

from hudi_contract.shape import JsonDict
from hudi_contract.words import Concurrency, InsertConflicts


def problem(said: JsonDict) -> str:
    """Why the fields contradict the mode; empty when they do not.

    ``said``: the section as it is stored; each field by itself is right.
    """
    mode = said.get("mode") or Concurrency.OPTIMISTIC
    found = _single_writer_problem(said) if mode == Concurrency.SINGLE_WRITER else ""
    return found or (_no_conflicts_problem(said, mode) if mode != Concurrency.OPTIMISTIC else "")


def _single_writer_problem(said: JsonDict) -> str:
    most, admission = said.get("maxWriters"), said.get("admission")
    if most not in (None, 1):
        return (
            f"maxWriters = {most}: contradicts mode SingleWriter: leave maxWriters out, set it to 1, or use "
            "mode Optimistic"
        )
    if admission not in (None, "Always"):
        return (
            f"admission = {admission!r}: contradicts mode SingleWriter: one writer runs at a time "
            "whatever its partitions are"
        )
    return ""


def _no_conflicts_problem(said: JsonDict, mode: str) -> str:
    """A mode that detects no write conflicts has nothing to say about them."""
    if said.get("serializeAfterConflicts") is not None:
        found = f"serializeAfterConflicts = {said['serializeAfterConflicts']}"
    elif said.get("earlyConflictDetection"):
        found = "earlyConflictDetection = true"
    elif said.get("insertConflicts") not in (None, InsertConflicts.KEY):
        found = f"insertConflicts = {said['insertConflicts']!r}"
    else:
        return ""
    return (
        f"{found}: contradicts mode {mode}, which does not detect write conflicts: leave it out or use mode Optimistic"
    )

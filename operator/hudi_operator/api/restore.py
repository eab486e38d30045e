"""`spec.restore`: the savepoint that a table is to be taken back to, once for each nonce."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hudi_operator.api.fields import get


@dataclass(frozen=True)
class Restore:
    """One request. Equal nonces are the same request, whatever else they say."""

    savepoint: str
    nonce: str


def from_spec(spec: Mapping[str, Any]) -> Restore | None:
    """Read ``spec.restore``; None when it is not there. Raises SpecError."""
    raw = get(spec, "restore", dict, {}, "spec")
    if not raw:
        return None
    return Restore(get(raw, "savepoint", str, "", "spec.restore"), get(raw, "nonce", str, "", "spec.restore"))

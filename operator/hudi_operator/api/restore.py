"""`spec.restore`: the savepoint to which a table is restored, once for each nonce."""

from __future__ import annotations

from dataclasses import dataclass

from hudi_operator.api.fields import NONCE, text


@dataclass(frozen=True)
class Restore:
    """One request. Equal nonces are the same request, whatever the other fields are."""

    savepoint: str = text(required=True, at_least=1, at_most=63)
    nonce: str = text(required=True, at_least=1, at_most=64, matches=NONCE)

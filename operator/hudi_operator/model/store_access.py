"""Storage credentials of one attempt, and what is known of their revocation (mode Credentials)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

FEWEST_REFUSALS = 3


@dataclass(frozen=True)
class Credentials:
    """Keys of an S3 identity. Their values stay out of every text."""

    access_key_id: str = field(repr=False)
    secret_access_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)


class Verdict(StrEnum):
    """Answer of the store to a request with the credentials of an attempt."""

    ACCEPTED = "Accepted"
    REFUSED = "Refused"
    UNKNOWN = "Unknown"
    """No answer, or one that says nothing of the credentials."""


@dataclass(frozen=True)
class StoreAnswer:
    """One answer of the store; ``told``: in a few words, without any value."""

    verdict: Verdict
    told: str


@dataclass(frozen=True)
class Revocation:
    """Observations by this operator process of the credentials of one attempt."""

    revoked: bool = False
    """The broker has said so. No proof."""
    refusals: int = 0
    """Requests that the store has refused since it last did not."""
    refused_seconds: float = 0.0
    """From the answer to the first of them to the moment when the last one was sent."""
    told: str = ""
    """The last answer of the store."""
    problem: str = ""
    """Why the last step has failed; empty when it has not."""

    def seen(self, cache_seconds: float) -> bool:
        """True when the store has refused for longer than any of its servers may remember."""
        return self.revoked and self.refusals >= FEWEST_REFUSALS and self.refused_seconds >= cache_seconds

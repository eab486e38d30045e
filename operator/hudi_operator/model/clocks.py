"""Which host's wall clock is ahead, told by more than one clock: nobody is fenced because of the operator's own (F47).

Three clocks are compared, those of a host, of the operator and of the API server. A host that is ahead of both others is alone; where only
one of them says so, that one may be wrong itself. A clock that is behind cannot be told from a registration that was seen late; it does no
harm: acquire refuses there (HUDIOP-CLOCK-BEHIND).
"""

from __future__ import annotations


def ahead(said_ms: object, *, now_ms: int, api_now_ms: int | None, skew_seconds: int) -> bool:
    """True when a host's clock was ahead of the operator's and of the API server's by more than the skew that is allowed.

    ``said_ms`` is the wall clock in the host's registration; whatever its age, it was not later then. Unknown is not ahead.
    """
    if not isinstance(said_ms, int) or not now_ms or api_now_ms is None:
        return False
    return said_ms - max(now_ms, api_now_ms) > skew_seconds * 1000


def disagreement(*, now_ms: int, api_now_ms: int | None, skew_seconds: int) -> str:
    """In what the operator's clock differs from the API server's; empty when it does not. Without a number: equal facts, equal status."""
    if api_now_ms is None or abs(now_ms - api_now_ms) <= skew_seconds * 1000:
        return ""
    return f"the operator's clock is more than {skew_seconds} s {'ahead of' if now_ms > api_now_ms else 'behind'} the API server's"

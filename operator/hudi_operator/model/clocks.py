"""Detects a host's wall clock that is ahead, from more than one clock.

No incarnation is fenced because of the operator's own clock (F47).

The clocks of the host, of the operator and of the API server are compared. A host that is ahead of
both others is wrong; if it is ahead of only one of them, that one may be wrong itself. A clock that
is behind cannot be distinguished from a registration that was seen late; it does no harm: acquire
refuses on such a host (HUDIOP-CLOCK-BEHIND).
"""

from __future__ import annotations


def ahead(said_ms: object, *, now_ms: int, api_now_ms: int | None, skew_seconds: int) -> bool:
    """True when a host's clock was ahead of both other clocks by more than the allowed skew.

    The other clocks are the operator's and the API server's.

    ``said_ms`` is the wall clock in the host's registration; whatever the registration's age, that
    clock was not later at that time. Unknown is not ahead.
    """
    if not isinstance(said_ms, int) or not now_ms or api_now_ms is None:
        return False
    return said_ms - max(now_ms, api_now_ms) > skew_seconds * 1000


def disagreement(*, now_ms: int, api_now_ms: int | None, skew_seconds: int) -> str:
    """Difference between the operator's clock and the API server's, as text; empty: none.

    It contains no measured number: equal facts give an equal status.
    """
    if api_now_ms is None or abs(now_ms - api_now_ms) <= skew_seconds * 1000:
        return ""
    return (
        f"the operator's clock is more than {skew_seconds} s {'ahead of' if now_ms > api_now_ms else 'behind'} "
        "the API server's"
    )

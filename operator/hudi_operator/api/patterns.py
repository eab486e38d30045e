"""Validation of regular expressions that users write.

They are compiled in the operator's only thread, and used elsewhere.
"""

from __future__ import annotations

import re
from functools import lru_cache

MOST_CLASSES = 8
"""Character classes in a pattern that names characters beyond ASCII. Each may take 20 ms."""
_FLAGS = re.compile(r"\(\?([aLmsuxi]*)(?:-([msxi]+))?([:)])")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]|\\[uUN]")


@lru_cache(maxsize=1024)
def problem(pattern: str) -> str:
    """Why this is no regular expression, or one with too much in it; empty: it can be used."""
    if _BEYOND_ASCII.search(pattern) and (found := pattern.count("[")) > MOST_CLASSES:
        return f"too wide: {found} character classes, more than {MOST_CLASSES}, beside characters beyond ASCII"
    try:
        re.compile(_FLAGS.sub(_minding_case, pattern))
    except (re.error, OverflowError, RecursionError) as error:
        return f"not a regular expression: {error}"
    return ""


def _minding_case(flags: re.Match[str]) -> str:
    """Flags without ``i``: the same expressions are valid, and wide classes are cheap."""
    on, off = flags[1].replace("i", ""), (flags[2] or "").replace("i", "")
    if flags[3] == ")" and not on and not off:
        # An empty group would be an error of its own; `m` makes no expression valid or invalid.
        return "(?m)" if flags[1] or flags[2] else flags[0]
    return f"(?{on}{'-' + off if off else ''}{flags[3]}"

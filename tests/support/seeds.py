"""Seeds of random tests: a new one in each run, printed also when all is well, so that any run can
be repeated.
"""

from __future__ import annotations

import os

VARIABLE = "RANDOM_SEED"


def drawn() -> int:
    """The seed of this run: `RANDOM_SEED` when it is set, else a new one.

    Raises ValueError when that is no whole number.
    """
    given = os.environ.get(VARIABLE, "")
    if not given:
        return int.from_bytes(os.urandom(4), "big")
    if not given.isdigit():
        raise ValueError(f"{VARIABLE}={given}: must be a whole number that is not negative")
    return int(given)

"""What counts as an answer for those who wait, in the helpers of the tiers component and e2e."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.cluster import space
from tests.support.harness import servers


@pytest.mark.parametrize("wait_for", [servers.wait_for, space.wait_for])
@pytest.mark.parametrize("nothing", [None, False, {}, [], "", 0])
def test_what_is_empty_is_no_answer(wait_for: Callable[..., Any], nothing: Any) -> None:
    answers = iter([nothing, {"found": 1}])
    assert wait_for("an answer", lambda: next(answers), seconds=10.0) == {"found": 1}
    with pytest.raises(AssertionError, match="an answer"):
        wait_for("an answer", lambda: nothing, seconds=0.0)

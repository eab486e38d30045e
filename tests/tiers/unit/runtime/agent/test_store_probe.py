"""What the agent makes of the answers to its questions about the store (F61)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hudi_runtime.agent.adoption import NotAdopted
from hudi_runtime.agent.store_probe import require

LACKS = [
    "list after write: a file that was closed is not in the next listing",
    "list after delete: a file that was deleted is in the next listing",
]


def spark(*missing: str) -> Any:
    probe = SimpleNamespace(
        missing=lambda path, conf: [*missing] if (path, conf) == ("s3a://lake/t", "conf") else [str(path)]
    )
    jvm = SimpleNamespace(io=SimpleNamespace(hudioperator=SimpleNamespace(StoreProbe=probe)))
    return SimpleNamespace(
        sparkContext=SimpleNamespace(_jvm=jvm, _jsc=SimpleNamespace(hadoopConfiguration=lambda: "conf"))
    )


@pytest.mark.parametrize("exists", [True, False])
def test_what_is_missing_is_named(*, exists: bool) -> None:
    with pytest.raises(NotAdopted) as refused:
        require(spark(*LACKS), "s3a://lake/t", exists=exists)
    assert (refused.value.code, refused.value.exists) == ("StoreUnfit", exists)
    assert (
        str(refused.value) == f"the store of s3a://lake/t lacks properties that a table needs: {LACKS[0]}; {LACKS[1]}"
    )


def test_a_store_that_lacks_nothing_is_used() -> None:
    require(spark(), "s3a://lake/t", exists=False)

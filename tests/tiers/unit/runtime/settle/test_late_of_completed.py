"""What a lost executor wrote after the commit goes, and nothing that any commit names
(I4, I8, F36).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hudi_runtime.process.errors import OutcomeUnknown
from hudi_runtime.settle.sweep import sweep_unnamed
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import WriteInfo
from hudi_runtime.table.storage import Missing
from tests.support.world.fake_table import DONE, PENDING, T1, T9, FakeStorage, FakeTable

T2 = "20260101000000002"
OWN, LATE, OTHER = f"a/f_0-1-1_{T1}.parquet", f"a/g_0-1-2_{T1}.parquet", f"a/h_0-1-1_{T2}.parquet"
LOG = f"a/.f_{T1}.log.1_0-1-1"
BOTH = [*DONE, f"{T2}.commit.requested", f"{T2}.inflight", f"{T2}_{T9}.commit"]


class Storage(FakeStorage):
    def relative(self, path: str) -> str:
        return path


class Written(FakeTable):
    """A table whose commits name files; `listed`: what its metadata table lists."""

    def __init__(self, *states: list[str], named: dict[str, list[str]], listed: list[str] | None = None) -> None:
        super().__init__(*states)
        self.storage = Storage()
        self.storage.files = {OWN, LATE, OTHER, LOG}
        self.named = named
        self.listed = listed

    def written(self, instants: tuple[tl.Instant, ...]) -> Iterator[tuple[tl.Instant, WriteInfo]]:
        for instant in instants:
            if instant.requested not in self.named:
                raise Missing(f"instant {instant.requested}")
            yield (
                instant,
                WriteInfo(
                    "BULK_INSERT", tuple((("a", "f"), path) for path in self.named[instant.requested]), frozenset(), ()
                ),
            )

    def metadata_files(self) -> dict[str, int] | None:
        return None if self.listed is None else dict.fromkeys(self.listed, 1)


def swept(table: Any) -> set[str]:
    before = set(table.storage.files)
    assert sweep_unnamed(table, T1) == len(before - table.storage.files)
    return before - set(table.storage.files)


@pytest.mark.parametrize("listed", [None, [OWN, OTHER]])
def test_only_the_base_file_that_no_commit_names_goes(listed: list[str] | None) -> None:
    assert swept(Written(BOTH, named={T1: [OWN], T2: [OTHER]}, listed=listed)) == {LATE}


def test_what_another_commit_names_stays() -> None:
    assert swept(Written(BOTH, named={T1: [OWN], T2: [OTHER, LATE]})) == set()


def test_nothing_goes_while_everything_is_named() -> None:
    assert swept(Written(BOTH, named={T1: [OWN, LATE]})) == set()


@pytest.mark.parametrize("names", [PENDING, [f"{T9}_{T9}.commit"], [f"{T1}_{T9}.clean"]])
def test_of_what_is_no_completed_write_nothing_is_looked_at(names: list[str]) -> None:
    assert swept(Written(names, named={})) == set()


def test_what_the_metadata_table_lists_is_kept_and_reported() -> None:
    table: Any = Written(BOTH, named={T1: [OWN], T2: [OTHER]}, listed=[OWN, LATE, OTHER])
    with pytest.raises(OutcomeUnknown, match=f"no commit names {LATE}"):
        sweep_unnamed(table, T1)
    assert table.storage.deleted == []


@pytest.mark.parametrize("then", [PENDING, [f"{T2}_{T9}.commit"]])
def test_an_instant_that_changes_meanwhile_keeps_everything(then: list[str]) -> None:
    table: Any = Written(DONE, then, named={T1: [OWN], T2: [OTHER]})
    with pytest.raises(OutcomeUnknown, match="has changed"):
        sweep_unnamed(table, T1)
    assert table.storage.deleted == []


def test_metadata_that_cannot_be_read_keeps_everything() -> None:
    table: Any = Written(BOTH, named={T1: [OWN]})
    with pytest.raises(Missing):
        sweep_unnamed(table, T1)
    assert table.storage.deleted == []

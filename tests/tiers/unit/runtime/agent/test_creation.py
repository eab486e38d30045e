"""The beginning that a table without a metadata table gets before its first write (F630)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hudi_runtime.agent import creation
from hudi_runtime.table import timeline as tl

T1, T2 = "20260101000000001", "20260101000000002"
PENDING = f"{T1}.commit.requested"


class Fake:
    """A table whose timeline may change while the lock is waited for."""

    def __init__(self, *names: str, archive: bool = False, meanwhile: str = "") -> None:
        self.names, self.archive, self.meanwhile = list(names), archive, meanwhile
        self.begun: list[str] = []
        self.has_lock = False

    def timeline(self) -> tl.Timeline:
        return tl.parse(self.names)

    def has_archive(self) -> bool:
        return self.archive

    def write_config(self, _name: str, _options: object) -> None:
        return None

    @contextmanager
    def locked(self, _config: object) -> Iterator[None]:
        self.names += [self.meanwhile] if self.meanwhile else []
        self.has_lock = True
        yield
        self.has_lock = False

    def begin_timeline(self) -> None:
        assert self.has_lock
        self.names.append(tl.beginning(merge_on_read=False))
        self.begun.append("begun")


def begin(fake: Any) -> list[str]:
    creation.begin_timeline(fake, "flights", {})
    return list(fake.begun)


@pytest.mark.parametrize("names", [(), (PENDING,), (f"{T1}_{T2}.rollback",)])
def test_a_table_without_commits_gets_a_beginning_once(names: tuple[str, ...]) -> None:
    """Also when a write is pending: whatever began before the first commit counts as one."""
    fake = Fake(*names)
    assert begin(fake) == begin(fake) == ["begun"]


@pytest.mark.parametrize(
    "fake",
    [
        Fake(f"{T1}_{T2}.commit"),
        Fake(f"{T1}_{T2}.deltacommit"),
        Fake(archive=True),
        Fake(meanwhile=f"{T1}_{T2}.commit"),
    ],
    ids=["a commit", "a delta commit", "archived ones", "one while it waits for the lock"],
)
def test_what_was_committed_is_never_after_a_beginning(fake: Fake) -> None:
    """Files of commits that were archived would count as not committed."""
    assert begin(fake) == []

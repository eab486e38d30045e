"""The hudi tier's own look at a table: Hudi's file names, read by nothing of the product, beside
what the product says.
"""

from __future__ import annotations

import itertools

import pytest

from hudi_runtime.table import timeline as tl
from tests.support.harness import own_look
from tests.support.harness.own_look import data_files, parse_timeline

T, DONE, OTHER = "20260101000000001", "20260101000000500", "20260101000000002"
STATES = {
    "commit": (f"{T}.commit.requested", f"{T}.inflight", f"{T}_{DONE}.commit"),
    "deltacommit": (f"{T}.deltacommit.requested", f"{T}.deltacommit.inflight", f"{T}_{DONE}.deltacommit"),
    "replacecommit": (f"{T}.replacecommit.requested", f"{T}.replacecommit.inflight", f"{T}_{DONE}.replacecommit"),
    "compaction": (f"{T}.compaction.requested", f"{T}.compaction.inflight", f"{T}_{DONE}.commit"),
    "logcompaction": (f"{T}.logcompaction.requested", f"{T}.logcompaction.inflight", f"{T}_{DONE}.deltacommit"),
    "clustering": (f"{T}.clustering.requested", f"{T}.clustering.inflight", f"{T}_{DONE}.replacecommit"),
    "clean": (f"{T}.clean.requested", f"{T}.clean.inflight", f"{T}_{DONE}.clean"),
    "rollback": (f"{T}.rollback.requested", f"{T}.rollback.inflight", f"{T}_{DONE}.rollback"),
    "restore": (f"{T}.restore.requested", f"{T}.restore.inflight", f"{T}_{DONE}.restore"),
    "indexing": (f"{T}.indexing.requested", f"{T}.indexing.inflight", f"{T}_{DONE}.indexing"),
}


@pytest.mark.parametrize("action", STATES)
def test_two_parsers_say_the_same_of_each_state(action: str) -> None:
    files = STATES[action]
    beside = [f"{OTHER}.commit.requested", f"{OTHER}.inflight", "history"]
    for some in itertools.chain.from_iterable(itertools.combinations(files, number) for number in (1, 2, 3)):
        names = [*beside, *some]
        own_look.same(names, tl.parse(names))
        (mine,) = (i for i in parse_timeline(names) if i.requested == T)
        assert mine.completed == (DONE if files[2] in some else "")


def test_a_savepoint_hides_no_commit() -> None:
    names = [*STATES["commit"], f"{T}.savepoint.inflight", f"{T}_{int(DONE) + 1}.savepoint"]
    own_look.same(names, tl.parse(names))


def test_a_parser_that_reads_something_else_is_found_out() -> None:
    names = list(STATES["deltacommit"])
    for wrong in (names[:2], [], [*names, f"{OTHER}.clean.requested"]):
        with pytest.raises(AssertionError):
            own_look.same(names, tl.parse(wrong))


def test_every_kind_of_data_file_is_known() -> None:
    names = {
        f"p/g1-0_0-1-1_{T}.parquet": "g1-0",
        f"p/g1-0_0-1-1_{T}.orc": "g1-0",
        f"p/.g1-0_{T}.log.1_0-1-1": "g1-0",
        f"p/.g1-0_{T}.log.2_0-1-1.cdc": "g1-0",
        f"p=1/q=2/g2-0_0-1-1_{T}.parquet": "g2-0",
    }
    others = (
        "p/.hoodie_partition_metadata",
        f".hoodie/metadata/files/files-0_0-1-1_{T}.hfile",
        f".hoodie/.temp/{T}/p/x.marker.CREATE",
    )
    found = data_files({**dict.fromkeys(names, 1), **dict.fromkeys(others, 1)})
    assert {file.path: file.file_id for file in found} == names
    assert {file.instant for file in found} == {T}

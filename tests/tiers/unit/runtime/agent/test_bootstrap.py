"""Bootstrap as the agent does it: once, behind the closed gate, by the truth of the timeline,
whatever it dies in.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import types

from hudi_contract.outcomes import FailureClass
from hudi_operator.api.bootstrap import Bootstrap as Source
from hudi_operator.plan.requests import bootstrap as operators
from hudi_runtime.agent import adoption, dataset
from hudi_runtime.job.job import TableSpec
from hudi_runtime.process import spark as sp
from hudi_runtime.process.errors import RuntimeFailure, UserCodeError
from hudi_runtime.process.etcd import Entry
from hudi_runtime.settle.settle import Records
from hudi_runtime.table import timeline as tl
from hudi_runtime.table.hudi import Totals, totals
from tests.support.world.agent_contexts import NOTHING, look
from tests.support.world.fake_bootstrap import ME, OTHER, SPEC, T1, T2, T3, UID, Fake

REQUEST = operators.request(UID, Source("s3a://lake/plain")).to_json()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    made = Fake()

    def read(spark: Any, spec: TableSpec, path: str, format: str) -> dataset.Dataset:
        if made.source_error is not None:
            raise made.source_error
        frame: Any = SimpleNamespace(schema=types.StructType(), write=SimpleNamespace(format=lambda name: made))
        return dataset.Dataset(frame, made.rows)

    monkeypatch.setattr(dataset, "read", read)
    monkeypatch.setattr(Fake, "mode", lambda self, mode: self, raising=False)
    monkeypatch.setattr(sp, "IDLE_SECONDS", 0)
    return made


def consider(fake: Fake, *, records: Records = NOTHING, request: dict[str, Any] | None = REQUEST) -> dict[str, Any]:
    fake.made().consider(look({"bootstrap": request} if request else {}, records))
    return fake.done


def later(fake: Fake) -> None:
    """As if the time of rest were over."""
    fake.kv["done/bootstrap"]["retryAtMs"] = 0


def test_the_rows_are_the_first_commit(fake: Fake) -> None:
    done = consider(fake)
    assert (done["result"], done["instant"], done["completionTime"], done["failures"]) == ("Completed", T1, T2, 0)
    assert (done["records"], done["files"], done["bytes"]) == (5, 2, 100)
    (options,) = fake.writes
    assert options["hoodie.datasource.write.operation"] == "bulk_insert"
    assert options["hoodie.table.services.enabled"] == "false"
    assert options["hoodie.datasource.write.recordkey.field"] == "id"
    assert json.loads(options["hudioperator.bootstrap"]) == {
        "tableUID": UID,
        "mode": "FullRecord",
        "source": "s3a://lake/plain",
    }
    assert [t["result"] for t in fake.tries] == ["Running", "Completed"], "written ahead"
    consider(fake)
    assert len(fake.writes) == 1, "once"


def test_nothing_begins_unasked(fake: Fake) -> None:
    assert consider(fake, request=None) == {}
    assert fake.writes == []


@pytest.mark.parametrize("state", ["open", "frozen", ""])
def test_nothing_begins_unless_the_gate_is_closed(fake: Fake, state: str) -> None:
    """R14."""
    fake.gate = state
    consider(fake)
    assert fake.writes == []


def test_a_commit_of_an_agent_that_died_before_its_word_is_found(fake: Fake) -> None:
    """Never twice."""
    word = {"hudioperator.bootstrap": json.dumps({"tableUID": UID, "mode": "FullRecord", "source": "s3a://lake/plain"})}
    fake.names, fake.extra = [f"{T1}_{T2}.commit"], {T1: word}
    fake.kv["done/bootstrap"] = {
        "tableUID": UID,
        "result": "Running",
        "inc": OTHER,
        "failures": 1,
        "retryAtMs": 0,
        "beginMs": 7,
    }
    done = consider(fake)
    assert (done["result"], done["instant"], done["beginMs"]) == ("Completed", T1, 7)
    assert fake.writes == []


def test_what_another_agent_has_left_is_settled_before(fake: Fake) -> None:
    """I7, R15: its instant is rolled back by settling and by nobody else."""
    fake.names = [f"{T1}.commit.requested"]
    dying = Records({}, {OTHER: Entry("", {"inc": OTHER, "role": "agent", "phase": "Draining"}, 1)}, {}, {})
    assert consider(fake, records=dying) == {}
    proven = Records({}, {OTHER: Entry("", {"inc": OTHER, "role": "agent", "phase": "RollingBack"}, 1)}, {}, {})
    assert consider(fake, records=proven) == {}
    registered = Records({}, {}, {OTHER: Entry("", {"inc": OTHER, "role": "agent"}, 1)}, {})
    assert consider(fake, records=registered) == {}
    swept = Records({}, {OTHER: Entry("", {"inc": OTHER, "role": "agent", "phase": "Swept"}, 1)}, {}, {})
    assert consider(fake, records=swept)["message"] == f"instant {T1} is pending"
    assert fake.writes == []
    fake.names = []
    later(fake)
    assert consider(fake, records=swept)["result"] == "Completed"


@pytest.mark.parametrize("archive", [False, True])
def test_a_table_with_commits_is_not_begun(fake: Fake, archive: bool) -> None:
    """I8: the rows of others."""
    fake.names, fake.archive = ([] if archive else [f"{T1}_{T2}.deltacommit"]), archive
    done = consider(fake)
    assert (done["result"], done["code"]) == ("Failed", "Failed")
    assert "already has commits" in done["message"]
    assert fake.writes == []


def test_what_a_person_has_to_correct_is_told_and_looked_at_again(fake: Fake) -> None:
    fake.source_error = UserCodeError("s3a://lake/plain: no column id")
    done = consider(fake)
    assert (done["result"], done["code"], done["message"], done["failures"]) == (
        "Failed",
        "SourceInvalid",
        "s3a://lake/plain: no column id",
        1,
    )
    assert consider(fake)["failures"] == 1, "after a pause only"
    later(fake)
    assert consider(fake)["failures"] == 2
    fake.source_error = None
    later(fake)
    assert consider(fake)["result"] == "Completed"


def test_a_write_that_failed_is_given_up_and_repeated_when_it_is_rolled_back(fake: Fake) -> None:
    fake.completes, fake.write_error = False, RuntimeFailure(FailureClass.INFRASTRUCTURE, "the store has failed")
    done = consider(fake)
    assert (done["result"], done["code"], done["message"]) == ("Failed", "Failed", "the store has failed")
    assert fake.abandoned == [T1]
    assert fake.cancelled == ["bootstrap-T"]
    later(fake)
    given_up = Records({T1: Entry("", {"inc": ME, "state": "Abandoned", "action": "commit"}, 1)}, {}, {}, {})
    consider(fake, records=given_up)
    assert len(fake.writes) == 1, "not before it is rolled back"
    fake.names, fake.completes, fake.write_error = [], True, None
    assert consider(fake)["result"] == "Completed"


def test_a_write_that_failed_after_its_commit_has_succeeded(fake: Fake) -> None:
    """What Hudi raises is no evidence: the timeline decides."""
    fake.write_error = RuntimeFailure(FailureClass.INFRASTRUCTURE, "unlock refused")
    assert consider(fake)["result"] == "Failed"
    assert fake.abandoned == []
    later(fake)
    assert (consider(fake)["result"], len(fake.writes)) == ("Completed", 1)


def test_an_unknown_publication_is_left_to_the_operator(fake: Fake) -> None:
    """I3, I4."""
    fake.completes, fake.write_error = False, RuntimeFailure(FailureClass.INFRASTRUCTURE, "the store has failed")
    consider(fake)
    fake.abandoned, fake.recorded, fake.quiet = [], [T1], False
    later(fake)
    done = consider(fake)
    assert "unknown" in done["message"]
    assert fake.abandoned == []
    assert len(fake.writes) == 1


def test_nothing_is_given_up_while_tasks_of_it_run(fake: Fake) -> None:
    """F4."""
    fake.completes, fake.write_error, fake.active = (
        False,
        RuntimeFailure(FailureClass.INFRASTRUCTURE, "the store has failed"),
        1,
    )
    consider(fake)
    assert fake.abandoned == []
    assert fake.recorded == [T1]


def test_only_its_own_insert_is_given_up(fake: Fake) -> None:
    """A rollback that settling has just recorded, whose file is still to come, is none
    of this thread's.
    """
    fake.recorded = [T3]
    fake.completes, fake.write_error = False, RuntimeFailure(FailureClass.INFRASTRUCTURE, "the store has failed")
    consider(fake)
    assert (fake.abandoned, fake.recorded) == ([T1], [T3])


def test_a_try_that_is_cancelled_is_given_up_and_not_counted(fake: Fake) -> None:
    made = fake.made()
    fake.meanwhile, fake.completes = made.cancel, False
    fake.write_error = RuntimeFailure(FailureClass.INFRASTRUCTURE, "job cancelled")
    made.consider(look({"bootstrap": REQUEST}))
    assert (fake.done["result"], fake.done["failures"], fake.abandoned) == ("Running", 0, [T1])
    later(fake)
    made.consider(look({"bootstrap": REQUEST}))
    assert len(fake.writes) == 1, "this assignment begins nothing any more"


def test_a_dataset_that_changed_meanwhile_is_told(fake: Fake) -> None:
    fake.wrote = 4
    done = consider(fake)
    assert (done["result"], done["records"]) == ("Completed", 4)
    assert "had 5 rows when it was checked" in done["message"]


def test_a_mode_that_is_not_offered_is_refused(fake: Fake) -> None:
    done = consider(fake, request={**REQUEST, "mode": "MetadataOnly"})
    assert done["message"] == "mode MetadataOnly is not supported, only FullRecord"
    assert fake.writes == []


def test_the_columns_of_the_dataset_are_named() -> None:
    assert dataset.problems(SPEC, ["id", "p", "ts", "v"]) == []
    (key, hudi) = dataset.problems(SPEC, ["p", "ts", "_hoodie_record_key"])
    assert key == "recordKeyFields: no column id; there are p, ts, _hoodie_record_key"
    assert "_hoodie_record_key is reserved for Hudi" in hudi


def test_totals_of_a_commit() -> None:
    stats = [
        {"path": "a/x.parquet", "numWrites": 3, "fileSizeInBytes": 10},
        {"path": "a/y.parquet", "numWrites": 4, "fileSizeInBytes": 11},
        {"path": None},
    ]
    assert totals({"partitionToWriteStats": {"a": stats}}) == Totals(7, 2, 21)


@pytest.mark.parametrize(
    ("names", "archive", "mine", "refused"),
    [
        ([], False, False, False),
        ([f"{T1}_{T2}.rollback"], False, False, False),
        ([f"{T1}_{T2}.commit"], False, True, False),
        ([f"{T1}_{T2}.commit"], False, False, True),
        ([], True, False, True),
    ],
)
def test_a_table_of_somebody_else_with_commits_is_refused(
    names: list[str], archive: bool, mine: bool, refused: bool
) -> None:
    table: Any = SimpleNamespace(
        timeline=lambda: tl.parse(names), has_archive=lambda: archive, path="s3a://lake/flights"
    )
    if not refused:
        adoption.refuse_existing("Bootstrap", table, mine=mine)
        return
    with pytest.raises(adoption.NotAdopted, match=r"leave spec[.]bootstrap out to adopt it") as raised:
        adoption.refuse_existing("Bootstrap", table, mine=mine)
    assert raised.value.code == "TableExists"

"""The metadata table as the agent changes it: deleted and made anew under the lock, behind the
closed gate, with nothing pending (R16, I6, I12).
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_operator.api.metadata_table import MetadataTable as Wanted
from hudi_operator.plan.requests import metadata_table
from hudi_runtime.agent.metadata_table import MetadataTable
from hudi_runtime.agent.tasks import Tasks
from hudi_runtime.process.etcd import Entry, now_ms
from hudi_runtime.settle.settle import Records
from tests.support.world.agent_contexts import context, look
from tests.support.world.fake_metadata_table import ON, OTHER, T1, T2, Fake, serve

OFF = metadata_table.request(Wanted(enabled=False)).to_json()


def test_it_is_deleted_and_made_anew_under_the_lock() -> None:
    fake = Fake()
    done = serve(fake)
    assert (done["result"], done["nonce"], done["partitions"], done["failures"]) == (
        "Completed",
        "Files/1",
        ["files"],
        0,
    )
    assert fake.log == ["lock", "delete", "make true", "unlock"]
    serve(fake)
    assert len(fake.log) == 4, "once for each word"


def test_it_is_switched_off() -> None:
    fake = Fake()
    assert serve(fake, OFF)["partitions"] == []
    assert fake.log == ["lock", "delete", "unlock"]


def test_a_half_made_one_of_an_agent_that_died_is_made_anew() -> None:
    fake = Fake(
        parts=({"files"}, {"column_stats"}),
        kv={"done/metadata": {"nonce": "Files/1", "result": "Running", "failures": 1, "inc": OTHER}},
    )
    assert serve(fake)["result"] == "Completed"
    assert "delete" in fake.log


@pytest.mark.parametrize(
    ("fake", "records"),
    [
        (Fake(gate="open"), Records({}, {}, {}, {})),
        (Fake(), Records({}, {}, {OTHER: Entry(f"writer/{OTHER}", {"role": "agent"}, 1)}, {})),
        (Fake(), Records({}, {"dead": Entry("settle/dead", {"phase": "RollingBack"}, 1)}, {}, {})),
        (
            Fake(kv={"done/metadata": {"nonce": "Files/1", "result": "Failed", "retryAtMs": now_ms() + 86_400_000}}),
            Records({}, {}, {}, {}),
        ),
    ],
)
def test_nobody_else_may_be_at_work(fake: Fake, records: Records) -> None:
    before = dict(fake.kv)
    serve(fake, records=records)
    assert (fake.log, fake.kv) == ([], before)


def test_an_agent_that_has_other_options_waits_for_its_own() -> None:
    """It would make again, in its next rollback, what it has deleted."""
    fake = Fake()
    serve(fake, OFF, known="Files+ColumnStats/")
    assert (fake.log, fake.done) == ([], {})


def test_it_waits_for_what_is_pending() -> None:
    fake = Fake(names=[f"{T1}.commit.requested"])
    done = serve(fake)
    assert (done["result"], done["failures"]) == ("Running", 0)
    assert T1 in done["message"]
    assert fake.log[:1] == ["lock"], "looked at under the lock"
    assert "delete" not in fake.log


def test_the_gate_is_looked_at_under_the_lock() -> None:
    fake = Fake()
    seen = iter(["closed", "open"])
    table: Any = fake
    keeper = MetadataTable(context(table, table, gate=lambda: next(seen)), known="Files/1")
    keeper.consider(look({"metadata": ON}))
    assert "delete" not in fake.log


def test_a_failure_is_counted_and_tried_again_later() -> None:
    fake = Fake(error=OSError("the store has failed"))
    done = serve(fake)
    assert (done["result"], done["failures"]) == ("Failed", 1)
    assert done["retryAtMs"] > now_ms()
    assert "the store has failed" in done["message"]


@pytest.mark.parametrize("leaves", [({"files"}, {"column_stats"}), (set(), {"files"})])
def test_made_is_what_the_tables_configuration_says(leaves: tuple[set[str], set[str]]) -> None:
    assert serve(Fake(leaves=leaves))["result"] == "Failed"


@pytest.mark.parametrize(
    ("wanted", "parts", "names", "options"),
    [
        # on -> off: what is pending is committed to the metadata table that is still there.
        ("Off/", {"files"}, [f"{T1}_{T2}.commit"], ("true", "false")),
        ("Files+ColumnStats/", {"files"}, [f"{T1}_{T2}.commit"], ("true", "false")),
        ("Files/2", {"files", "column_stats"}, [f"{T1}_{T2}.commit"], ("true", "true")),
        # off -> on: nobody makes it while writers without it run.
        ("Files/2", set(), [f"{T1}_{T2}.commit"], ("false", "false")),
        # Its writers make it with the first commit.
        ("Off/", set(), [f"{T1}.commit.requested"], ("true", "false")),
    ],
)
def test_until_the_change_is_done_the_table_is_served_as_it_is(
    wanted: str, parts: set[str], names: list[str], options: tuple[str, str]
) -> None:
    """F434."""
    fake: Any = Fake(names=names, parts=(parts, set()))
    gate = {"state": "closed", "adopted": True}
    here = replace(
        context(fake, fake, gate=lambda: gate, **{"hoodie.metadata.enable": "spec", "hoodie.a": "b"}),
        metadata_table=wanted,
    )

    def said() -> tuple[str, str, str]:
        found = here.options()
        keys = ("hoodie.metadata.enable", "hoodie.metadata.index.column.stats.enable", "hoodie.a")
        return found[keys[0]], found.get(keys[1], ""), found[keys[2]]

    assert said() == (*options, "b")
    for record in ({"nonce": wanted, "result": "Running"}, {"nonce": "Files/1", "result": "Completed"}):
        fake.kv["done/metadata"] = record
        assert said() == (*options, "b")
    gate["adopted"] = False
    assert said() == ("spec", "", "b"), "the gate was never open: the table is made as the spec says"
    gate["adopted"] = True
    fake.kv["done/metadata"] = {"nonce": wanted, "result": "Completed"}
    assert said() == ("spec", "", "b")


def test_the_last_rollbacks_do_without_a_metadata_table_that_is_to_go() -> None:
    """It may be damaged. Until its removal is asked of the agent, attempts may be left."""
    fake: Any = Fake(names=[f"{T1}_{T2}.commit"], parts=({"files"}, set()))
    gate, asked = {"state": "closed", "adopted": True}, dict[str, Any]()
    key = "hoodie.metadata.enable"
    here = replace(
        context(fake, fake, gate=lambda: gate, requests=lambda: asked, **{key: "false"}), metadata_table="Off/"
    )
    assert (here.options()[key], here.options(alone=True)[key]) == ("true", "true")
    asked["metadata"] = {"id": "metadata", "kind": "metadata", "nonce": "Off/", "enabled": False, "options": {}}
    assert (here.options()[key], fake.kv) == ("true", {})
    assert here.options(alone=True)[key] == "false"
    # Written ahead: who takes the change back now gets a metadata table that is made anew.
    assert (fake.kv["done/metadata"]["nonce"], fake.kv["done/metadata"]["result"]) == ("Off/", "Running")
    gate["state"] = "open"
    assert here.options(alone=True)[key] == "true"
    gate["state"] = "closed"
    asked["metadata"]["nonce"] = "Files/2"
    assert here.options(alone=True)[key] == "true"


def test_a_table_that_was_never_changed_is_served_as_its_spec_says() -> None:
    fake: Any = Fake(parts=(set(), set()))
    here = context(fake, fake, gate=lambda: {"state": "open", "adopted": True}, a="b")
    assert here.metadata_table == Wanted().nonce
    assert here.options() == {"a": "b"}


def test_nothing_is_rolled_back_beside_the_change() -> None:
    """F434: the client of a rollback that began before would make again what was deleted."""
    tasks: Any = Tasks.__new__(Tasks)
    ran: list[str] = []
    tasks._settler = SimpleNamespace(run=lambda _records, *, stopping: [ran.append("settled")])
    records: Any = SimpleNamespace(work_for_the_settler=lambda: True)
    for idle, expected in ((False, []), (True, ["settled"])):
        tasks._metadata_table = SimpleNamespace(idle=idle)
        assert tasks.settle(records, stopping=lambda: False) is idle
        assert ran == expected

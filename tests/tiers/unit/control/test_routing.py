"""Events only say which table to look at again."""

from __future__ import annotations

import asyncio
from typing import Any

from hudi_contract import naming
from hudi_operator.adapters.etcd_watch import Change
from hudi_operator.control.held_locks import LONG_SECONDS, HeldLocks
from hudi_operator.control.index import TableIndex
from hudi_operator.control.memory import Memory
from hudi_operator.handlers import EtcdRouter, registry, settings, tables_of_pod

PATH = "s3a://lake/t"
T = naming.table_id(PATH)


def hudi_table(name: str, path: str = PATH) -> dict[str, Any]:
    return {"kind": "HudiTable", "metadata": {"namespace": "ns", "name": name, "uid": name}, "spec": {"path": path}}


def routed(*changes: tuple[str, bool]) -> set[tuple[str, str]]:
    index, found = TableIndex("image"), set[tuple[str, str]]()
    index.put(hudi_table("a"))
    EtcdRouter("/hudi", index, found.add).route([Change(key, deleted, 1) for key, deleted in changes])
    return found


def test_news_of_a_table_leads_to_it() -> None:
    for key in (
        f"/hudi/tables/{T}/writer/x",
        f"/hudi/tables/{T}/settle/x",
        f"/hudi/control/{T}/gate",
        f"/hudi/tables/{T}/report/attempt/ns.p-1",
    ):
        assert routed((key, False)) == {("ns", "a")}, key
    assert routed((f"/hudi/tables/{T}/alive/x", True)) == {("ns", "a")}


def test_news_of_a_trial_leads_to_its_table() -> None:
    """F617: the id is the HudiTable's own, also where others have the path."""
    index, found = TableIndex("image"), set[tuple[str, str]]()
    for name in ("a", "b"):
        index.put(hudi_table(name))
    router = EtcdRouter("/hudi", index, found.add)
    router.route([Change(f"/hudi/tables/{naming.trial_id('b')}/report/timeline", False, 1)])
    assert found == {("ns", "b")}
    index.remove(("ns", "b"))
    found.clear()
    router.route([Change(f"/hudi/tables/{naming.trial_id('b')}/report/timeline", False, 1)])
    assert not found


def test_the_traffic_of_healthy_writers_is_no_news() -> None:
    noise = [
        (f"/hudi/tables/{T}/{key}", deleted)
        for key in ("lock", "clock", "queue/x", "instant/1")
        for deleted in (True, False)
    ]
    assert (
        routed(*noise, (f"/hudi/tables/{T}/alive/x", False), ("/hudi/control/agents/x/y", False), ("/other", False))
        == set()
    )


def test_an_index_follows_changes_and_names_tables_on_one_path() -> None:
    index = TableIndex("image")
    index.put(hudi_table("a"))
    index.put(hudi_table("b", "s3://lake//t/"))
    assert index.same_path(("ns", "a"), PATH, T) == ("ns/b",)
    index.put(hudi_table("b", "s3://lake/other"))
    assert index.same_path(("ns", "a"), PATH, T) == ()
    index.remove(("ns", "a"))
    assert index.tables() == [("ns", "b")]


def test_pods_lead_to_their_tables() -> None:
    index = TableIndex("image")
    index.put(hudi_table("a"))
    driver = {"metadata": {"namespace": "ns", "labels": {naming.LABEL_TABLE: "x"}}}
    assert tables_of_pod(driver, index) == {("ns", "x")}
    (entry,) = [index._entries[key] for key in index.tables()]
    agent = {"metadata": {"namespace": "ns", "labels": {naming.LABEL_AGENT: entry.agent}}}
    assert tables_of_pod(agent, index) == {("ns", "a")}
    unused = {"metadata": {"namespace": "ns", "labels": {naming.LABEL_AGENT: "hudi-agent-unused"}}}
    assert tables_of_pod(unused, index) == {("ns", "a")}, "somebody has to end it"


def test_a_lock_that_stays_leads_to_its_table_once() -> None:
    """F262: how long it is held is measured by looks; each commit takes it and gives it back."""
    now = [0.0]
    locks = HeldLocks("/hudi", clock=lambda: now[0])
    other = naming.table_id("s3a://lake/other")

    def lock(table_id: str, revision: int, *, deleted: bool = False) -> Change:
        return Change(f"/hudi/tables/{table_id}/lock", deleted, revision)

    locks.take([lock(T, 1), lock(other, 2), Change(f"/hudi/tables/{T}/lock-like", False, 3)])
    now[0] = LONG_SECONDS - 1
    assert locks.long() == []
    locks.take([lock(other, 4, deleted=True), lock(other, 5)])
    now[0] = LONG_SECONDS
    assert (locks.long(), locks.long()) == ([T], [])
    locks.take([lock(other, 6, deleted=True)])
    now[0] = 100.0
    assert locks.long() == []


def test_defaults_lead_to_all_tables_of_their_namespace() -> None:
    """The watch asks for that one name; another ConfigMap leads nowhere."""
    index, memory, found = TableIndex("image"), Memory(), list[tuple[str, str]]()
    for name, path in (("a", PATH), ("b", "s3a://lake/b")):
        index.put(hudi_table(name, path))
    elsewhere = hudi_table("c", "s3a://lake/c")
    elsewhere["metadata"]["namespace"] = "other"
    index.put(elsewhere)
    (handler,) = [
        each.fn for each in registry(index, memory, found.append)._watching.get_all_handlers()
        if each.selector is not None and each.selector.any_name == "configmaps"
    ]  # fmt: skip

    def event(name: str, kind: str | None) -> None:
        meta = {"namespace": "ns", "name": name, "uid": "u"}
        asyncio.run(handler(body={"metadata": meta, "data": {}}, type=kind))

    event("settings", None)
    assert found == []
    for kind in (None, "MODIFIED", "DELETED"):
        found.clear()
        event("hudi-operator-defaults", kind)
        assert sorted(found) == [("ns", "a"), ("ns", "b")]
    assert list(settings().watching.field_selectors.values()) == ["metadata.name=hudi-operator-defaults"]

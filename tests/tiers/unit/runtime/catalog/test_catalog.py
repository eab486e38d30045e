"""When a catalog is synchronized, what is repeated, and what is reported; the catalog is a list of
calls here, and real in tests/tiers/hudi/test_catalog.py.
"""

from __future__ import annotations

import ipaddress
import threading
import time
from typing import Any

import pytest

from hudi_contract.assignment import AssignmentRecord, CatalogOrder
from hudi_contract.reports import CatalogReport
from hudi_runtime.catalog import hive
from hudi_runtime.catalog.catalog import REPORT, CatalogSyncer, forget
from hudi_runtime.catalog.hive import NotSynced
from hudi_runtime.table import timeline as tl
from tests.support.world.callback_parts import Store, t

WANTED = CatalogOrder(uris=("thrift://a:9083",), database="lake", table="orders", timeout_seconds=5)


class Calls:
    """A catalog that refuses as often as it is told."""

    def __init__(self) -> None:
        self.everything: list[bool] = []
        self.refusals: list[NotSynced] = []

    def sync(self, *, everything: bool) -> None:
        self.everything.append(everything)
        if self.refusals:
            raise self.refusals.pop(0)


class World:
    def __init__(self, store: Store | None = None, wanted: CatalogOrder = WANTED) -> None:
        self.now = 100.0
        self.store = store or Store()
        self.calls = Calls()
        etcd: Any = self.store
        self.syncer = CatalogSyncer(etcd, wanted, self.calls, label="lake/orders", inc="i", clock=lambda: self.now)
        self.syncer._thread = threading.current_thread()  # the test takes its steps

    def list(self, *names: str) -> None:
        self.syncer.consider(tl.parse(names))
        self.syncer.step()

    @property
    def report(self) -> CatalogReport:
        entry = self.store.get(REPORT)
        assert entry is not None
        return entry.read(CatalogReport)


def commit(number: int, action: str = "commit") -> str:
    return f"{t(number)}_{t(number + 1)}.{action}"


def test_each_new_commit_once() -> None:
    world = World()
    world.list()
    world.list(f"{t(1)}.commit.requested")
    assert (world.calls.everything, world.report.instant) == ([], ""), "without a commit there are no columns"
    world.list(commit(1))
    world.list(commit(1))
    world.list(commit(1), commit(3), commit(5, "clean"))
    assert world.calls.everything == [True, False], "the first time everything, and nothing twice"
    assert (world.report.instant, world.report.completion_time, world.report.target) == (
        t(3),
        t(4),
        "thrift://a:9083 lake.orders",
    )


def test_after_a_restore_everything_is_compared() -> None:
    world = World()
    world.list(commit(1), commit(3))
    world.list(commit(1), commit(5, "restore"))
    world.list(commit(1), commit(5, "restore"), commit(7))
    assert world.calls.everything == [True, True, False]


def test_a_failure_is_repeated_with_pauses() -> None:
    world = World()
    world.calls.refusals = [NotSynced("ConnectionFailed", "no answer")] * 3
    world.list(commit(1))
    assert (world.report.failures, world.report.reason, world.report.message) == (1, "ConnectionFailed", "no answer")
    world.list(commit(1))
    assert len(world.calls.everything) == 1, "not before its time"
    for pause, failures in ((5.1, 2), (10.1, 3), (20.1, 0)):
        world.now += pause - 0.2
        world.list(commit(1))
        assert world.report.failures != failures
        world.now += 0.2
        world.list(commit(1))
        assert world.report.failures == failures
    assert (world.report.instant, world.report.message) == (t(1), "")


def test_another_agent_goes_on_and_another_catalog_begins_anew() -> None:
    world = World()
    world.list(commit(1))
    after = World(world.store)
    after.list(commit(1))
    after.list(commit(1), commit(3))
    assert after.calls.everything == [False]
    elsewhere = World(world.store, WANTED.but(uris=("thrift://b:9083",)))
    elsewhere.list(commit(1), commit(3))
    assert elsewhere.calls.everything == [True]
    etcd: Any = world.store
    forget(etcd)
    assert world.store.get(REPORT) is None


def test_who_looks_at_the_table_never_waits_and_a_stopped_one_reports_nothing() -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Hanging:
        def sync(self, *, everything: bool) -> None:
            begun.set()
            assert go_on.wait(30)

    store = Store()
    etcd: Any = store
    syncer = CatalogSyncer(etcd, WANTED, Hanging(), label="lake/orders")
    since = time.monotonic()
    syncer.consider(tl.parse([commit(1)]))
    assert begun.wait(10)
    syncer.consider(tl.parse([commit(1), commit(3)]))
    syncer.stop()
    syncer.consider(tl.parse([commit(1), commit(3)]))
    assert time.monotonic() - since < 10
    go_on.set()
    assert syncer._thread is not None
    syncer._thread.join(10)
    assert not syncer._thread.is_alive()
    entry = store.get(REPORT)
    assert entry is not None
    assert entry.read(CatalogReport).instant == ""


def test_what_is_connected_to_are_the_addresses_that_were_checked() -> None:
    found = hive.checked(["thrift://localhost:9083"], refused=lambda address: False)
    assert found
    for uri in found:
        host = uri.removeprefix("thrift://").rpartition(":")[0].strip("[]")
        assert ipaddress.ip_address(host).is_loopback
    with pytest.raises(NotSynced, match="localhost is the address of a pod or node itself") as own:
        hive.checked(["thrift://192.0.2.7:9083", "thrift://localhost:9083"])
    assert own.value.reason == "AddressRefused"
    assert hive.checked(["thrift://no-such-name.invalid:9083", "thrift://192.0.2.7:9083"]) == [
        "thrift://192.0.2.7:9083"
    ]
    with pytest.raises(NotSynced) as unknown:
        hive.checked(["thrift://no-such-name.invalid:9083"])
    assert unknown.value.reason == "NameNotResolved"


@pytest.mark.parametrize(
    ("fields", "hive_style", "extractor"),
    [
        ((), False, "NonPartitionedExtractor"),
        (("p",), False, "SinglePartPartitionValueExtractor"),
        (("p",), True, "MultiPartKeysValueExtractor"),
        (("p", "q"), False, "MultiPartKeysValueExtractor"),
    ],
)
def test_options_of_the_tool(fields: tuple[str, ...], hive_style: bool, extractor: str) -> None:
    order = AssignmentRecord(
        id="T",
        path="s3a://lake/orders",
        table="lake/orders",
        name="orders",
        type="COPY_ON_WRITE",
        record_key_fields=("id",),
        partition_fields=fields,
        hive_style_partitioning=hive_style,
    )
    found = hive.options(order, WANTED, ["thrift://192.0.2.7:9083"], everything=True)
    assert found["hoodie.datasource.hive_sync.partition_extractor_class"] == f"org.apache.hudi.hive.{extractor}"
    assert found["hoodie.datasource.hive_sync.mode"] == "hms"
    assert found["hoodie.datasource.hive_sync.auto_create_database"] == "false"
    assert found["hoodie.meta.sync.incremental"] == "false"

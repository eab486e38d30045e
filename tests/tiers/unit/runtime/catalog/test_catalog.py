"""When a catalog is synchronized, what is repeated, and what is reported; the catalog is a list of
calls here, and real in tests/tiers/hudi/test_catalog.py.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from hudi_contract.assignment import AssignmentRecord, CatalogOrder
from hudi_contract.reports import CatalogReport
from hudi_runtime.catalog import hive, probe
from hudi_runtime.catalog.catalog import REPORT, CatalogSyncer, forget
from hudi_runtime.catalog.outcome import Busy, NotSynced
from hudi_runtime.table import timeline as tl
from tests.support.world.callback_parts import Store, t

WANTED = CatalogOrder(uris=("thrift://a:9083",), database="lake", table="orders", timeout_seconds=5, uid="u")


class Calls:
    """A catalog that refuses as often as it is told."""

    def __init__(self) -> None:
        self.everything: list[bool] = []
        self.refusals: list[BaseException] = []
        self.left_out: tuple[str, ...] = ()
        self.drops = 0
        self.stays = ""
        self.during: Callable[[], None] = lambda: None
        """What happens while it runs."""

    def sync(self, *, everything: bool) -> tuple[str, ...]:
        self.everything.append(everything)
        self.during()
        if self.refusals:
            raise self.refusals.pop(0)
        return self.left_out

    def drop(self) -> str:
        self.drops += 1
        if self.refusals:
            raise self.refusals.pop(0)
        return self.stays


class World:
    def __init__(self, store: Store | None = None, wanted: CatalogOrder = WANTED, inc: str = "i") -> None:
        self.now = 100.0
        self.store = store or Store()
        self.calls = Calls()
        etcd: Any = self.store
        self.fenced = False
        self.syncer = CatalogSyncer(
            etcd,
            wanted,
            self.calls,
            label="lake/orders",
            inc=inc,
            fenced=lambda: self.fenced,
            clock=lambda: self.now,
            chance=lambda: 1.0,
        )
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
        "thrift://a:9083 lake.orders u",
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
    again = World(world.store, elsewhere.syncer._wanted.but(uid="another"))
    again.list(commit(1), commit(3))
    assert again.calls.everything == [True], "a HudiTable that was deleted and made again"
    etcd: Any = world.store
    forget(etcd)
    assert world.store.get(REPORT) is None


class Gone(BaseException):
    """The process has ended."""


def test_a_try_that_ends_its_agent_is_repeated_with_pauses() -> None:
    store = Store()
    for before, pause in ((0, 0.0), (1, 5.0), (2, 10.0), (3, 20.0)):
        world = World(store, inc=f"agent-{before}")
        world.calls.refusals = [Gone()]
        if before:
            world.list(commit(1))
            assert world.calls.everything == [], "not at once"
            assert world.report.failures == before - 1
            world.now += pause - 0.1
            world.list(commit(1))
            assert world.calls.everything == []
            world.now += 0.2
        with pytest.raises(Gone):
            world.list(commit(1))
        assert world.report.begun == before + 1
    assert (world.report.reason, world.report.message) == (
        "Interrupted",
        "the last 3 tries did not end: their agents were stopped, or ended",
    )
    last = World(store, inc="last")
    last.list(commit(1))
    last.now += 60
    last.list(commit(1))
    assert (last.report.begun, last.report.failures, last.report.instant) == (0, 0, t(1))


def test_an_earlier_try_of_this_process_is_waited_for() -> None:
    world = World()
    world.calls.refusals = [Busy("busy", "an earlier try has not ended")]
    world.list(commit(1))
    assert (world.report.failures, world.report.begun, world.report.instant) == (0, 0, "")
    world.now += 5.1
    world.list(commit(1))
    assert (world.calls.everything, world.report.instant) == ([True, True], t(1))


def test_a_fenced_agent_does_not_begin() -> None:
    world = World()
    world.list(commit(1))
    world.fenced = True
    world.list(commit(1), commit(3))
    world.fenced = False
    world.list(commit(1), commit(3))
    assert (world.calls.everything, world.report.instant) == ([True], t(1))


def test_the_report_of_a_successor_is_not_overwritten() -> None:
    old = World(inc="old")
    old.list(commit(1))
    new = World(old.store, inc="new")
    old.calls.during = lambda: new.list(commit(1), commit(3), commit(5))
    new.now += 60
    new.list(commit(1))
    old.list(commit(1), commit(3))
    new.now += 60
    new.list(commit(1), commit(3), commit(5))
    assert (new.report.inc, new.report.instant) == ("new", t(5))
    old.calls.during = lambda: None
    old.now += 5.1
    old.list(commit(1), commit(3), commit(5))
    assert (old.calls.everything, old.report.inc) == ([True, False], "new"), "what the new one did counts"


def test_what_the_catalog_cannot_describe_is_told() -> None:
    world = World()
    world.calls.left_out = ("a/b/c",)
    world.list(commit(1))
    assert world.report.left_out == ("a/b/c",)
    world.calls.left_out = ("a/b/d",)
    world.list(commit(1), commit(3))
    assert world.report.left_out == ("a/b/c", "a/b/d")
    world.list(commit(1), commit(3), commit(5, "restore"))
    assert world.report.left_out == ("a/b/d",), "after a comparison of all of them"


def test_entries_of_a_deleted_table_are_dropped_once() -> None:
    world = World()
    world.list(commit(1))
    world.calls.refusals = [NotSynced("ConnectionFailed", "no answer")]
    deleted = World(world.store, WANTED.but(drop=True), inc="j")
    deleted.calls = deleted.syncer._catalog = world.calls
    deleted.list(commit(1), commit(3))
    assert (deleted.report.dropped, deleted.report.failures, deleted.report.reason) == (False, 1, "ConnectionFailed")
    assert deleted.report.instant == t(1), "what it still shows"
    deleted.list(commit(1), commit(3))
    assert deleted.calls.drops == 1, "not before its time"
    deleted.now += 5.1
    deleted.calls.stays = "table orders_ro stays: another HudiTable has made it"
    deleted.list(commit(1), commit(3))
    assert (deleted.report.dropped, deleted.report.failures, deleted.report.message) == (True, 0, deleted.calls.stays)
    deleted.now += 600
    deleted.list(commit(1), commit(3), commit(5))
    assert (deleted.calls.drops, deleted.calls.everything) == (2, [True]), "and nothing is made any more"


def test_a_fenced_agent_drops_nothing() -> None:
    world = World(wanted=WANTED.but(drop=True))
    world.fenced = True
    world.list(commit(1))
    assert (world.calls.drops, world.report.dropped) == (0, False)


@contextmanager
def answering(*said: bytes) -> Iterator[str]:
    """A server that answers the first call with this and then says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError), server.accept()[0] as connection:
                connection.recv(1000)
                for piece in said:
                    connection.sendall(piece)
                    time.sleep(0.05)
                connection.recv(1000)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"thrift://127.0.0.1:{server.getsockname()[1]}"
        thread.join()


REPLY = b"\x80\x01\x00\x02\x00\x00\x00\x09getStatus\x00\x00\x00\x01"


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ([REPLY + b"more"], ""),
        ([REPLY[:3], REPLY[3:9], REPLY[9:]], ""),
        ([b"\x80\x01\x00\x03" + REPLY[4:]], ""),
        ([b"HTTP/1.1 400 Bad Request\r\n\r\n"], "is no Hive Metastore"),
        ([b"\x00\x00\x00\x02"], "is no Hive Metastore"),
        ([REPLY[:12]], "does not answer as a Hive Metastore within 1 s"),
        ([], "does not answer as a Hive Metastore within 1 s"),
    ],
)
def test_hives_client_meets_only_what_has_answered_like_a_metastore(said: list[bytes], problem: str) -> None:
    """It takes the first bytes of another protocol for a length, and makes room for 1.2 GB."""
    with answering(*said) as uri:
        since = time.monotonic()
        found = probe.problem(uri, seconds=0.6)
        assert time.monotonic() - since < 5
    assert (not found) if not problem else (found.startswith(uri) and problem in found)


def test_nobody_at_the_port_and_another_that_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = f"thrift://127.0.0.1:{closed.getsockname()[1]}"
    with answering(REPLY) as uri:
        found, wrong = probe.answering([nobody, uri], seconds=10)
    assert (found, wrong) == ([uri], [f"{nobody}: Connection refused"])


def test_who_looks_at_the_table_never_waits_and_a_stopped_one_reports_nothing() -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Hanging:
        def sync(self, *, everything: bool) -> tuple[str, ...]:
            begun.set()
            assert go_on.wait(30)
            return ()

        def drop(self) -> str:
            raise AssertionError

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
    with pytest.raises(NotSynced, match="localhost is a loopback or link-local address") as own:
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
        ((), False, ""),
        (("p",), False, "Whole"),
        (("p",), True, "NamedWhole"),
        (("p", "q"), False, "Levels"),
        (("p", "q"), True, "NamedLevels"),
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
    values = f"io.hudioperator.catalog.PartitionValues${extractor}"
    assert found["hoodie.datasource.hive_sync.partition_extractor_class"] == (
        values if extractor else "org.apache.hudi.hive.NonPartitionedExtractor"
    )
    assert found["hoodie.datasource.hive_sync.mode"] == "hms"
    assert found["hoodie.datasource.hive_sync.auto_create_database"] == "false"
    assert found["hoodie.meta.sync.incremental"] == "false"
    assert found["hoodie.datasource.hive_sync.table_properties"] == "hudioperator.uid=u"

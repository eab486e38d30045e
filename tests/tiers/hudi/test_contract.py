"""One contract for etcd, the session and the store as the runtime sees them, which the real ones
and each fake of the unit tests pass (I4, I7, I12).

What a fake cannot do at all is said at its top: lost answers, stale reads, permissions, leases.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_runtime.process.etcd import Etcd
from hudi_runtime.settle.agent_session import AgentSession
from hudi_runtime.table.storage import Missing, Storage
from tests.support.harness.etcd_server import pki
from tests.support.harness.local import CLASS_PATH, World
from tests.support.world.callback_parts import Store
from tests.support.world.fake_table import FakeStorage
from tests.support.world.meeting import Meeting
from tests.support.world.memory_etcd import MemoryEtcd, MemorySession
from tests.support.world.putting_etcd import Etcd as ServiceEtcd

T1, T2 = "20260101000000001", "20260101000000002"
ME, OTHER = "agent", "somebody"


@pytest.fixture(scope="module")
def gateway() -> Iterator[Any]:
    """A JVM with the Java module, and no Spark in it."""
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    os.environ["PYSPARK_SUBMIT_ARGS"] = f"--driver-class-path {CLASS_PATH} pyspark-shell"
    gateway = launch_gateway()
    others = SparkContext._gateway, SparkContext._jvm
    # PySpark reads every Java exception through these, whichever JVM threw it
    SparkContext._gateway, SparkContext._jvm = gateway, gateway.jvm
    try:
        yield gateway
    finally:
        del os.environ["PYSPARK_SUBMIT_ARGS"]
        SparkContext._gateway, SparkContext._jvm = others
        gateway.shutdown()
        process: subprocess.Popen[bytes] = gateway.proc
        process.stdin.close()  # type: ignore[union-attr]
        process.wait(30)


@pytest.fixture(scope="module")
def jvm(gateway: Any) -> Any:
    return gateway.jvm


@dataclass
class Side:
    """etcd below the prefix of a table, and an agent's session, real or not."""

    etcd: Any
    session: Any

    def put(self, key: str, **value: Any) -> int:
        put = getattr(self.etcd, "put", None)
        if put is not None:
            return int(put(key, value))
        self.etcd.set(key, **value)
        return int(self.etcd.get(key).mod_revision)


def real(world: World, jvm: Any, name: str) -> Side:
    """A session of the Java module with the pods' certificate; the test is the operator."""
    table = world.table(name)
    table.gate("closed")
    table.admit(f"default.{name}", "agent")
    spark: Any = SimpleNamespace(sparkContext=SimpleNamespace(_jvm=jvm))
    files = {"ca": pki() / "ca.crt", "cert": pki() / "gateway.crt", "key": pki() / "gateway.key"}
    who = {
        "tableId": table.id,
        "basePath": table.path,
        "attempt": f"default.{name}",
        "role": "agent",
        "podName": name,
        "namespace": "default",
    }
    settings = {
        **who,
        "podUID": f"uid-{name}",
        "node": "node",
        "bootId": "boot",
        "endpoints": world.etcd.url,
        **{k: str(v) for k, v in files.items()},
    }
    session = AgentSession.open(spark, settings)
    return Side(session.etcd, session)


def memory() -> Side:
    etcd = MemoryEtcd()
    return Side(etcd, MemorySession(etcd))


KEYS = {
    "settler's": MemoryEtcd,
    "services'": ServiceEtcd,
    "callback's": Store,
    "meeting's": lambda: Meeting().etcd,
}
"""Every fake of `hudi_runtime.process.etcd.Etcd`."""


@pytest.fixture(params=["real", *KEYS])
def keys(request: pytest.FixtureRequest, world: World, jvm: Any) -> Iterator[Side]:
    if request.param != "real":
        yield Side(KEYS[request.param](), None)
        return
    side = real(
        world, jvm, f"contract-keys-{request.node.name.partition('[')[0].removeprefix('test_').replace('_', '-')}"
    )
    yield side
    assert side.session.close()


@pytest.fixture(params=["real", "memory"])
def side(request: pytest.FixtureRequest, world: World, jvm: Any) -> Iterator[Side]:
    if request.param == "memory":
        yield memory()
        return
    name = request.node.name.partition("[")[2].rstrip("]").replace("-", "") + str(abs(hash(request.node.name)) % 10**6)
    made = real(world, jvm, f"contract-{name}")
    yield made
    for entry in made.etcd.range("instant/"):
        assert made.etcd.delete(entry.key, entry.mod_revision)
    made.session.close()


def test_what_is_not_there(keys: Side) -> None:
    assert keys.etcd.get("done/x") is None
    assert keys.etcd.range("done/") == []


def test_a_value_comes_back_with_its_revision(keys: Side) -> None:
    value = {"text": "ü", "number": 2**40, "none": None, "list": [1, {"a": True}]}
    revision = keys.etcd.cas("done/x", value, 0)
    found = keys.etcd.get("done/x")
    assert revision is not None
    assert (found.value, found.mod_revision, found.name) == (value, revision, "x")


def test_compare_and_set(keys: Side) -> None:
    """0 means absent; a wrong revision changes nothing; each write has a higher revision."""
    first = keys.etcd.cas("done/x", {"n": 1}, 0)
    assert first is not None
    assert keys.etcd.cas("done/x", {"n": 9}, 0) is None
    assert keys.etcd.cas("done/x", {"n": 9}, first + 1) is None
    assert keys.etcd.get("done/x").value == {"n": 1}
    second = keys.etcd.cas("done/x", {"n": 2}, first)
    assert second is not None
    assert second > first
    assert keys.etcd.cas("done/x", {"n": 9}, first) is None
    assert keys.etcd.cas("done/absent", {"n": 9}, first) is None
    assert keys.etcd.get("done/absent") is None


def test_a_range_is_what_begins_with_the_prefix_in_order(keys: Side) -> None:
    for name in ("done/b", "done/a", "done/ab", "report/a"):
        assert keys.etcd.cas(name, {"n": name}, 0) is not None
    assert [entry.name for entry in keys.etcd.range("done/")] == ["a", "ab", "b"]
    assert [entry.value["n"] for entry in keys.etcd.range("done/a")] == ["done/a", "done/ab"]


def test_several_ranges_are_read_at_once(keys: Side) -> None:
    for name in ("done/b", "done/a", "report/a"):
        assert keys.etcd.cas(name, {"n": name}, 0) is not None
    found = keys.etcd.ranges("report/", "done/x", "done/")
    assert [[entry.value["n"] for entry in each] for each in found] == [["report/a"], [], ["done/a", "done/b"]]


def test_deleting_compares_the_revision(keys: Side) -> None:
    first = keys.etcd.cas("done/x", {"n": 1}, 0)
    second = keys.etcd.cas("done/x", {"n": 2}, first)
    assert not keys.etcd.delete("done/x", first)
    assert keys.etcd.get("done/x") is not None
    assert keys.etcd.delete("done/x", second)
    assert keys.etcd.get("done/x") is None
    assert not keys.etcd.delete("done/x", second)


# ---- claims


def instant(side: Side, t: str = T1, **more: Any) -> None:
    side.put(f"instant/{t}", **{"inc": OTHER, "action": "clean", "state": "Pending", "atMs": 0, **more})


def settle(side: Side, phase: str, inc: str = OTHER) -> None:
    side.put(f"settle/{inc}", inc=inc, phase=phase, role="agent", proofs={}, instants={}, times={})


def executor(side: Side, t: str = T1) -> str:
    value = side.etcd.get(f"instant/{t}").value
    return str(value.get("claimedBy") or value["inc"])


@pytest.mark.parametrize("phase", ["RollingBack", "Swept", "Settled"])
def test_taken_over_from_one_that_is_proven_dead(side: Side, phase: str) -> None:
    instant(side)
    settle(side, phase)
    assert side.session.claim(T1, OTHER)
    found = side.etcd.get(f"instant/{T1}").value
    assert (found["claimedBy"], found["inc"], found["action"], found["state"]) == (
        side.session.inc,
        OTHER,
        "clean",
        "Pending",
    ), "the owner stays"


@pytest.mark.parametrize("phase", ["", "Fenced", "Terminating", "Draining", "Unlocked"])
def test_not_taken_from_one_that_may_live(side: Side, phase: str) -> None:
    """I12."""
    instant(side)
    if phase:
        settle(side, phase)
    assert not side.session.claim(T1, OTHER)
    assert executor(side) == OTHER


def test_not_taken_from_one_that_is_not_its_executor(side: Side) -> None:
    instant(side, claimedBy="third")
    settle(side, "Settled")
    assert not side.session.claim(T1, OTHER)
    settle(side, "RollingBack", "third")
    assert side.session.claim(T1, "third")
    assert executor(side) == side.session.inc


def test_nothing_to_claim(side: Side) -> None:
    settle(side, "Settled")
    assert not side.session.claim(T2, OTHER)
    assert side.etcd.get(f"instant/{T2}") is None


# ---- the store

MINE = [f"a/f_0-1-2_{T1}.parquet", f"a/.f_{T1}.log.1_0-1-2"]
OTHERS = [
    f"a/f_0-1-2_{T2}.parquet",
    f"b/g_0-1-2_{T1}.parquet",
    f".hoodie/metadata/files/.x_{T1}.log.1_0-1-2",
    "a/.hoodie_partition_metadata",
]
STRANGE = "p=x; isDirectory=true; length=7; y"
"""A partition whose value looks like a part of a listing."""
OTHERS.append(f"{STRANGE}/h_0-1-2_{T1}.parquet")


@pytest.fixture(params=["file", "s3a", "memory"])
def store(request: pytest.FixtureRequest, world: World, gateway: Any) -> Any:
    """A table with these files; the real one on S3, and on a local disk, which knows folders."""
    if request.param == "memory":
        fake = FakeStorage()
        fake.files = {*MINE, *OTHERS}
        return fake
    configuration = gateway.jvm.org.apache.hadoop.conf.Configuration()
    for key, value in {**world.s3_settings(), "fs.s3a.retry.limit": "2"}.items():
        configuration.set(key, value)
    context = SimpleNamespace(
        _jvm=gateway.jvm, _gateway=gateway, _jsc=SimpleNamespace(hadoopConfiguration=lambda: configuration)
    )
    spark: Any = SimpleNamespace(sparkContext=context)
    name = f"contract-{abs(hash(request.node.name)) % 10**8}"
    # local files: the store's contract is one for S3 and for a file system
    made = Storage(spark, world.url(world.lake / name) if request.param == "s3a" else f"file://{world.folder}/{name}")
    for path in (*MINE, *OTHERS):
        made.write(path, "content")
    return made


def names_of(found: list[str]) -> list[str]:
    return sorted(path.rpartition("/")[2] for path in found)


def test_a_folder_that_is_not_there_is_no_empty_one(store: Any) -> None:
    """I4, I11: an empty answer always means that there is nothing."""
    with pytest.raises(Missing):
        store.names("c")


def test_a_text_is_what_was_written_last(store: Any) -> None:
    store.write("texts/a.json", "first")
    store.write("texts/a.json", "ü\n")
    assert store.read("texts/a.json") == "ü\n"
    assert store.names("texts") == ["a.json"]
    with pytest.raises(Missing):
        store.read("texts/b.json")


def test_the_names_in_a_folder_are_its_own(store: Any) -> None:
    assert sorted(store.names("a")) == names_of([path for path in (*MINE, *OTHERS) if path.startswith("a/")])
    assert store.names("b") == [f"g_0-1-2_{T1}.parquet"]


def test_a_folder_may_be_called_like_a_part_of_a_listing(store: Any) -> None:
    assert store.names(STRANGE) == [f"h_0-1-2_{T1}.parquet"]
    assert names_of(store.glob(f"p=*/*_{T1}.*")) == [f"h_0-1-2_{T1}.parquet"]


@pytest.mark.parametrize("store", ["file", "s3a"], indirect=True)
def test_a_walk_finds_every_file_with_its_size(store: Any) -> None:
    assert store.walk() == dict.fromkeys((*MINE, *OTHERS), len("content"))


def test_a_pattern_finds_one_instants_files_in_one_folder(store: Any) -> None:
    """Log files begin with a dot.

    What bears another instant, or lies in another folder, is not this one's to sweep.
    """
    assert names_of(store.glob(f"a/*_{T1}.*")) == names_of(MINE)
    assert names_of(store.glob(f".hoodie/metadata/*/*_{T1}.*")) == [f".x_{T1}.log.1_0-1-2"]
    assert names_of(store.glob(f"a/*_{{{T1},20270101000000000}}.*")) == names_of(MINE)
    assert store.glob(f"c/*_{T1}.*") == []
    assert store.glob("a/*_20270101000000000.*") == []


def test_deleting_says_whether_it_was_there(store: Any) -> None:
    assert store.delete(MINE[0])
    assert not store.delete(MINE[0])
    assert names_of(store.glob(f"a/*_{T1}.*")) == names_of(MINE[1:])


def test_the_real_ones_are_what_the_runtime_uses() -> None:
    """So that a method that the runtime calls and a fake lacks shows here, not in a pod."""
    wanted = {name for name in vars(Etcd) if not name.startswith("_")} - {"prefix"}
    missing = {name: sorted(wanted - set(dir(make()))) for name, make in KEYS.items()}
    assert missing == {"settler's": ["put"], "services'": [], "callback's": [], "meeting's": []}, (
        "settling puts nothing without a compare"
    )

"""Stores other than S3: what docs/operate/stores.md says was shown on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from hudi_operator.api.services import ALWAYS
from hudi_runtime.agent import bucket
from tests.support.harness.gcs_server import GcsServer
from tests.support.harness.hdfs_server import HdfsServer
from tests.support.harness.local import NOTHING, OTHER_CLIENT, Process, Table, World, rows, until
from tests.support.oracle import Unasked

pytestmark = pytest.mark.extra


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsServer]:
    server = HdfsServer(tmp_path_factory.mktemp("hdfs") / "hdfs")
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def gcs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GcsServer]:
    server = GcsServer(tmp_path_factory.mktemp("gcs") / "gcs")
    server.start()
    yield server
    server.stop()


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_hdfs(world: World, hdfs: HdfsServer, kind: str) -> None:
    name = f"hdfs-{kind.lower()}"
    two_writers_one_killed(
        world,
        world.table(name, type=kind, path=f"{hdfs.url}/lake/{name}", services=services(kind)),
        without={"hudi-rs": Unasked("hudi-rs has no client of HDFS")},
    )


@pytest.mark.parametrize("kind", ["CopyOnWrite", "MergeOnRead"])
def test_gs(world: World, gcs: GcsServer, kind: str) -> None:
    name = f"gs-{kind.lower()}"
    table = world.table(
        name, type=kind, path=f"gs://{gcs.bucket}/{name}", storage={"options": gcs.options}, services=services(kind)
    )
    two_writers_one_killed(world, table, without=OTHER_CLIENT)


def test_settings_of_a_bucket(world: World) -> None:
    """Asked of a real S3 server, and read from the SDK's own classes.

    What versitygw does not implement (lifecycle rules, replication) is not known.
    """
    spark = world.spark()
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    model: Any = spark.sparkContext._jvm.com.amazonaws.services.s3.model
    assert bucket.ask(spark, "s3a://lake/settings") == bucket.Settings(
        rules=None, retention="", replicas=None, versioned=False
    )
    client = (
        spark.sparkContext._jvm.org.apache.hadoop.fs.Path("s3a://lake/")
        .getFileSystem(hadoop)
        .getAmazonS3ClientForTesting("a test")
    )
    client.createBucket(model.CreateBucketRequest("locked").withObjectLockEnabledForBucket(True))
    retained = model.ObjectLockRule().withDefaultRetention(model.DefaultRetention().withMode("GOVERNANCE").withDays(3))
    locked = model.ObjectLockConfiguration().withObjectLockEnabled("Enabled").withRule(retained)
    client.setObjectLockConfiguration(
        model.SetObjectLockConfigurationRequest().withBucketName("locked").withObjectLockConfiguration(locked)
    )
    found = bucket.Bucket(spark, "s3a://locked/settings").look()
    assert found is not None
    assert found.unknown == ("lifecycle rules", "replication")
    (sentence,) = found.harmful
    assert sentence.startswith("Object Lock keeps every new object (GOVERNANCE, 3 days)")
    lifecycle = spark.sparkContext._jvm.com.amazonaws.services.s3.model.lifecycle
    made_rule = model.BucketLifecycleConfiguration.Rule
    prefix = lifecycle.LifecycleFilter(lifecycle.LifecyclePrefixPredicate("settings/"))
    tagged = lifecycle.LifecycleFilter(lifecycle.LifecycleTagPredicate(model.Tag("a", "b")))
    uploads = model.AbortIncompleteMultipartUpload().withDaysAfterInitiation(7)
    made = [
        made_rule().withId("expires").withStatus("Enabled").withFilter(prefix).withExpirationInDays(30),
        made_rule()
        .withId("archives")
        .withStatus("Enabled")
        .withPrefix("")
        .addTransition(model.BucketLifecycleConfiguration.Transition().withDays(9).withStorageClass("GLACIER")),
        made_rule()
        .withId("uploads")
        .withStatus("Enabled")
        .withFilter(prefix)
        .withAbortIncompleteMultipartUpload(uploads),
        made_rule().withId("versions").withStatus("Enabled").withPrefix("").withNoncurrentVersionExpirationInDays(5),
        made_rule().withId("tagged").withStatus("Enabled").withFilter(tagged).withExpirationInDays(1),
        made_rule().withId("off").withStatus("Disabled").withFilter(prefix).withExpirationInDays(1),
    ]
    # local files: what is no bucket has no settings
    assert bucket.ask(spark, f"file://{world.folder}") is None
    assert bucket.rules(model.BucketLifecycleConfiguration(made)) == (
        bucket.Rule("expires", "settings/", 30),
        bucket.Rule("archives", "", 9),
        bucket.Rule("uploads", "settings/", None, ends_uploads=True),
        bucket.Rule("versions", "", None, ends_versions=True),
    )


def services(kind: str) -> dict[str, object]:
    """None but, in a MergeOnRead table, a compaction after a few commits."""
    off: dict[str, object] = {name: {"enabled": False} for name in ALWAYS}
    return off if kind == "CopyOnWrite" else off | {"compaction": {"afterCommits": 3}}


def two_writers_one_killed(world: World, table: Table, *, without: Mapping[str, str] = NOTHING) -> None:
    """The agent asks the store and makes the table.

    Of two writers of one file group one is killed in its write and settled, while the other
    commits; the next attempt loses a race and is repeated. No row is lost, by the audit.
    """
    name = table.spec.ref.name
    agent = world.agent(f"agent-{name}", storage=table)
    world.create(table, agent=f"agent-{name}", process=agent)
    seed = table.writer(
        "seed",
        python={"batches": [{"rows": rows(range(20), "a", "seed", 1)}, {"rows": rows(range(20, 40), "b", "seed", 1)}]},
    )
    assert seed.wait() == 0, seed.log()[-4000:]
    killed = world.folder / f"gate-{name}-killed"
    victim = table.writer(
        "victim",
        python={
            "batches": [
                {"rows": rows(range(5), "a", "first", 2)},
                {"rows": rows(range(5, 10), "a", "victim", 3), "gate": str(killed)},
            ]
        },
    )
    instant = in_its_write(table, victim, killed)
    victim.kill()
    other = table.writer("other", python={"batches": [{"rows": rows(range(10, 15), "a", "other", 2)}]})
    assert other.wait() == 0, other.log()[-4000:]
    inc = table.fence(victim)
    assert until("swept", lambda: table.outcomes(inc), alive=agent) == {instant: "RolledBack"}
    table.settled(inc)
    raced = world.folder / f"gate-{name}-raced"
    batches = [
        {"rows": rows(range(5), "a", "first", 2)},
        {"rows": rows(range(5, 10), "a", "second", 4), "gate": str(raced)},
    ]
    again = table.writer("victim", python={"batches": batches})
    in_its_write(table, again, raced)
    rival = table.writer("rival", python={"batches": [{"rows": rows(range(15, 20), "a", "rival", 2)}]})
    assert rival.wait() == 0, rival.log()[-4000:]
    raced.touch()
    assert again.wait() == 0, again.log()[-4000:]
    assert again.termination()["conflicts"] >= 1, "both have written the same file group"
    if table.spec.type == "MergeOnRead":
        compacted = lambda: [one for one in table.report().get("commits", ()) if one["action"] == "commit"]  # noqa: E731
        until("it is compacted", compacted, alive=agent)
    until("nothing is pending", lambda: table.report().get("pending") == [], alive=agent)
    mine = [*rows(range(5), "a", "first", 2), *rows(range(5, 10), "a", "second", 4)]
    theirs = [
        *rows(range(10, 15), "a", "other", 2),
        *rows(range(15, 20), "a", "rival", 2),
        *rows(range(20, 40), "b", "seed", 1),
    ]
    table.audited([*mine, *theirs], without=without)
    agent.terminate()
    assert agent.wait() == 0, agent.log()[-3000:]


def in_its_write(table: Table, writer: Process, gate: Path) -> str:
    """The instant of a writer that waits at the gate, with a task under way."""
    until("it is in its write", Path(f"{gate}.reached").exists, alive=writer)
    return until(
        "its instant is recorded",
        lambda: [one.key.rsplit("/", 1)[-1] for one in table.keys("instant/") if one.value["inc"] == writer.inc],
        alive=writer,
    )[0]

"""What a HudiTable asks of its agent and its writers, with both halves real: operator, API server,
drivers and agents as processes, etcd with roles, S3.

Each test ends with the audit, the rows that are due, and the protocol logs of everybody.
"""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pyarrow as pa
import pytest
from pyarrow import parquet

from hudi_runtime.table import timeline as tl
from tests.support.harness import s3proxy
from tests.support.harness.kubelet_words import unlike
from tests.support.harness.local import NOTHING, SIDE_BY_SIDE, Row, rows
from tests.support.harness.receiver import receiver
from tests.support.harness.servers import Cluster, Etcd, wait_for
from tests.support.harness.together import LONG, Together
from tests.support.oracle import not_seen
from tests.support.ports import own_address

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def whole(cluster: Cluster, etcd: Etcd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Together]:
    """A namespace with its operator; tables of a test are its own, the agent is everybody's."""
    made = Together(cluster, etcd, tmp_path_factory.mktemp("together"), f"together-{os.urandom(2).hex()}")
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture(autouse=True)
def shown(whole: Together, request: pytest.FixtureRequest) -> Iterator[None]:
    """What pytest shows when a test has failed."""
    failed = request.session.testsfailed
    yield
    if request.session.testsfailed > failed:
        print(whole.told())


def writes(whole: Together, table: str) -> list[tl.Instant]:
    return [i for i in whole.files(table).timeline().completed if i.action in tl.WRITE_ACTIONS]


def test_a_savepoint_a_restore_and_the_metadata_table(whole: Together) -> None:
    """A savepoint, commits after it, a restore that undoes these alone.

    Then the metadata table off, on and made anew; writers between.
    """
    whole.table("kept", type="MergeOnRead")
    whole.ready("kept")
    before, after, later = (
        rows(range(10), "a", "before", 1),
        rows(range(5, 15), "a", "after", 2),
        rows(range(20, 25), "b", "later", 3),
    )
    first = whole.wrote("kept-before", "kept", before)
    whole.patch("kept", savepoints=[{"name": "here"}])
    taken = whole.outcome("kept", "savepoints", "Completed", "Failed")
    (commit,) = writes(whole, "kept")
    assert (taken["outcome"], taken["name"], taken["instant"]) == ("Completed", "here", commit.requested), taken
    assert taken["boundaryCompletionTime"] == commit.completion
    assert first["lastCommit"]["instant"] == commit.requested
    whole.wrote("kept-after", "kept", after)
    whole.audited("kept", [row for row in before if row[0] < 5] + after)
    undone = [i.requested for i in writes(whole, "kept") if i.completion > commit.completion]

    whole.patch("kept", restore={"savepoint": "here", "nonce": "one"})
    restored = whole.outcome("kept", "restore", "Completed", "Failed")
    assert (restored["outcome"], restored["nonce"], restored["savepoint"]) == ("Completed", "one", "here"), restored
    assert (restored["undone"], restored["undoneInstants"]) == (len(undone), undone)
    assert restored["boundaryCompletionTime"] == commit.completion
    (instant,) = [i for i in whole.files("kept").timeline().completed if i.action == "restore"]
    assert (restored["instant"], restored["completionTime"]) == (instant.requested, instant.completion)
    whole.audited("kept", before)

    due = list(before)
    for change, wanted in (({"enabled": False}, "Off/"), ({"enabled": True, "rebuild": "again"}, "again")):
        whole.patch("kept", metadataTable=change)

        def done(wanted: str = wanted) -> dict[str, Any] | None:
            found = whole.status("huditables", "kept").get("metadataTable") or {}
            return found if found.get("outcome") == "Completed" and wanted in str(found.get("wanted")) else None

        found = wait_for(f"the metadata table is {wanted}", done, seconds=LONG)
        there = (whole.files("kept").folder / ".hoodie/metadata/.hoodie").exists()
        assert there == change["enabled"], found
        assert ("files" in (found.get("partitions") or [])) == change["enabled"], found
        if not change["enabled"]:
            due += later
            whole.wrote("kept-off", "kept", later)
    more = rows(range(30, 33), "b", "on", 4)
    whole.wrote("kept-on", "kept", more)
    whole.audited("kept", [*due, *more])
    whole.conform("kept")


def test_a_killed_writer_is_proven_dead_and_followed(whole: Together) -> None:
    """Driver SIGKILLed in its second commit, the agent while it rolls back: every phase by the
    operator, every proof by the pods' status, every row once.
    """
    whole.table("hurt")
    whole.ready("hurt")
    gate = whole.directory / "gate-hurt"
    first, second = rows(range(10), "a", "one", 1), rows(range(5, 20), "a", "two", 2)
    whole.writer("hurt", "hurt", {"rows": first}, {"rows": second, "gate": str(gate)})
    driver = whole.pod("driver", writer="hurt", number=1)
    wait_for("the second commit is under way", Path(f"{gate}.reached").exists, seconds=LONG)
    (victim,) = whole.files("hurt").pending()
    inc = whole.process(driver).inc
    whole.kill(driver)
    key, uid = f"settle/{inc}", driver["metadata"]["uid"]

    def proof() -> dict[str, Any] | None:
        return ((whole.keys("hurt", key).get(key) or {}).get("proofs") or {}).get(uid)

    assert wait_for("it is proven dead", proof, seconds=LONG)["kind"] == "PodTerminated"
    assert not any(
        unlike(pod)
        for pod in whole.world.pods("driver", writer="hurt")
        if (pod.get("status") or {}).get("containerStatuses")
    )
    gate.touch()
    status = whole.finished("hurt")
    assert [attempt["class"] for attempt in status["attempts"]] == ["Infrastructure", "Succeeded"], status["attempts"]
    record = wait_for(
        "it is settled", lambda: (r := whole.keys("hurt", key)[key])["phase"] == "Settled" and r, seconds=LONG
    )
    assert {instant: item["outcome"] for instant, item in record["instants"].items()} == {victim: "RolledBack"}
    phases = ["Fenced", "Terminating", "Draining", "Unlocked", "RollingBack", "Swept", "Settled"]
    assert set(record["times"]) == set(phases)
    assert [record["times"][phase] for phase in phases] == sorted(record["times"].values())
    assert record["times"]["Unlocked"] - record["times"]["Draining"] >= 1000, "fencing.drainSeconds is 1"
    whole.audited("hurt", [row for row in first if row[0] < 5] + second)
    whole.conform("hurt")


@pytest.mark.extra
def test_changes_of_the_gate_end_a_writer_between_commits(whole: Together) -> None:
    """concurrency.mode, insertConflicts, durations: each ends the run once, at a commit boundary.

    Then a release of Hudi that the image does not have.
    """
    whole.table("moving", concurrency={"mode": "Optimistic"})
    whole.ready("moving")
    gate = whole.directory / "gate-moving-"
    batches = [rows(range(10 * n, 10 * n + 5), "a", f"batch {n}", n + 1) for n in range(5)]
    whole.writer("mover", "moving", *({"rows": batch, "after": f"{gate}{n}"} for n, batch in enumerate(batches)))
    changes: list[tuple[dict[str, Any], str, Any]] = [
        ({"concurrency": {"mode": "SingleWriter"}}, "concurrency", "SingleWriter"),
        ({"concurrency": {"mode": "Optimistic", "insertConflicts": "Partition"}}, "insertConflicts", "Partition"),
        ({"lock": {"leaseSeconds": 25}}, "lock", None),
    ]
    for number, (change, field, value) in enumerate(changes):
        Path(f"{gate}{number}").touch()
        wait_for(
            f"batch {number} is committed and the next is asked for",
            Path(f"{gate}{number + 1}.reached").exists,
            seconds=LONG,
        )
        whole.patch("moving", **change)
        wait_for(
            "the gate says what it is closed for",
            lambda: whole.keys("moving", "gate")["gate"].get("closedFor"),
            seconds=LONG,
        )
        Path(f"{gate}{number + 1}").touch()  # one more is committed or none; the run ends at that boundary

        def opened(field: str = field, value: Any = value) -> bool:
            found = whole.keys("moving", "gate")["gate"]
            return found["state"] == "open" and (
                found[field] == value if value is not None else found[field]["leaseSeconds"] == 25
            )

        wait_for(f"the gate is open with another {field}", opened, seconds=LONG)
    for number in range(5):
        Path(f"{gate}{number}").touch()
    status = whole.finished("mover")
    ended = [attempt for attempt in status["attempts"] if attempt.get("class") == "EndedForChange"]
    assert len(ended) == len(changes), status["attempts"]

    whole.patch("moving", hudiVersion="1.2.9")
    wait_for(
        "the gate has the other release",
        lambda: whole.keys("moving", "gate")["gate"]["hudiVersion"] == "1.2.9",
        seconds=LONG,
    )
    more = rows(range(90, 95), "a", "more", 9)
    whole.writer(
        "late", "moving", {"rows": more}, retryPolicy={"limit": 20, "backoffSeconds": 1, "maxBackoffSeconds": 1}
    )

    def refused() -> str:
        attempts = whole.status("hudiwriters", "late").get("attempts") or []
        return next((str(a.get("message")) for a in attempts if "1.2.9" in str(a.get("message"))), "")

    assert "1.2.0" in wait_for("the image's release is refused", lambda: refused() or None, seconds=LONG)
    assert len(writes(whole, "moving")) == 5, "nothing was written under a release that nobody has"
    whole.patch("moving", hudiVersion="1.2.0")
    whole.ready("moving")
    whole.world.cluster.request(
        "PATCH",
        whole.world.path("hudiwriters", "late"),
        {"spec": {"restartNonce": "again"}},
        "application/merge-patch+json",
    )
    wait_for(
        "the writer succeeds with the right release",
        lambda: whole.true("hudiwriters", "late", "Succeeded"),
        seconds=LONG,
    )
    whole.audited("moving", [*(row for batch in batches for row in batch), *more])
    whole.conform("moving")


PROGRAM = """
import sys, time
from pathlib import Path
from hudi_runtime.api import current_context

folder, current = Path(sys.argv[1]), current_context()
begun = len(list(folder.glob("begun-*")))
(folder / f"begun-{begun}").touch()
rows = current.spark.sql("SELECT 50 AS id, 'b' AS p, 'program' AS v, 7L AS ts")
rows.write.format("hudi").options(**current.table_options()).option(
    "hoodie.datasource.write.operation", "upsert"
).mode("append").save(current.table_path)
(folder / f"saved-{begun}").touch()
while not (folder / "end").exists():
    time.sleep(0.05)
"""
"""Writes one row, then does not end before it is told to."""


@pytest.mark.extra
def test_a_change_ends_a_run_that_hangs_and_a_program(whole: Together) -> None:
    """A run whose code hangs between two commits is ended after `changeTimeoutSeconds`, a program
    at once. The change is made, another writer commits, and both start again (F44).
    """
    seconds = 25
    whole.table("stuck", concurrency={"mode": "Optimistic", "changeTimeoutSeconds": seconds})
    whole.ready("stuck")
    folder = whole.directory / "stuck"
    folder.mkdir()
    hang = folder / "hang"
    one, two = rows(range(5), "a", "one", 1), rows(range(5, 10), "a", "two", 2)
    whole.writer("hangs", "stuck", {"rows": one}, {"rows": two, "after": str(hang)}, stop={"graceSeconds": 1})
    wait_for("its code hangs behind a commit", Path(f"{hang}.reached").exists, seconds=LONG)
    whole.program("program", "stuck", PROGRAM, str(folder), stop={"graceSeconds": 1})
    wait_for("the program has written", (folder / "saved-0").exists, seconds=LONG)

    began = time.monotonic()
    whole.patch("stuck", concurrency={"insertConflicts": "Partition"})
    wait_for(
        "the gate is closed for it",
        lambda: whole.keys("stuck", "gate")["gate"].get("closedFor"),
        seconds=LONG,
    )
    late = rows(range(20, 25), "c", "late", 3)
    whole.writer("late", "stuck", {"rows": late}, priority=10)

    def opened() -> bool:
        found = whole.keys("stuck", "gate")["gate"]
        return found["state"] == "open" and found["insertConflicts"] == "Partition"

    wait_for("the change is made", opened, seconds=LONG)
    took = time.monotonic() - began
    print(f"BESIDE A RUN THAT HANGS: {took:.1f} s, of which {seconds} s are its time to a boundary")
    assert took > seconds - 5, "the run that hangs has its time to reach a boundary"
    assert took < seconds + 2 * 30, "the rest takes 30 s; twice that, because the machine is shared"
    hang.touch()
    (folder / "end").touch()
    whole.finished("late")
    for name in ("hangs", "program"):
        attempts = whole.finished(name)["attempts"]
        assert [attempt["class"] for attempt in attempts] == ["EndedForChange", "Succeeded"], (name, attempts)
    assert (folder / "begun-1").exists(), "a program starts from its beginning"
    whole.audited("stuck", [*one, *two, (50, "b", "program", 7), *late])
    whole.conform("stuck")


def plain(content: list[Row]) -> bytes:
    """A Parquet file of rows."""
    schema = pa.schema([("id", pa.int32()), ("p", pa.string()), ("v", pa.string()), ("ts", pa.int64())])
    out = io.BytesIO()
    parquet.write_table(pa.table([list(column) for column in zip(*content, strict=True)], schema=schema), out)
    return out.getvalue()


@pytest.mark.extra
def test_bootstrap_release_and_adoption(whole: Together) -> None:
    """A table begins with a dataset, is given back, and is adopted again.

    A spec that does not fit is refused meanwhile.
    """
    first, second, third = (
        rows(range(30), "a", "plain", 1),
        rows(range(100, 105), "a", "more", 2),
        rows(range(200, 205), "b", "again", 3),
    )
    dataset = whole.lake.folder_of(whole.path("dataset"))
    dataset.mkdir(parents=True)
    (dataset / "part-0.parquet").write_bytes(plain(first))
    whole.table(
        "begun", bootstrap={"mode": "FullRecord", "source": {"path": whole.path("dataset"), "format": "Parquet"}}
    )
    done = whole.outcome("begun", "bootstrap", "Completed", "Failed")
    (commit,) = writes(whole, "begun")
    assert (done["outcome"], done["records"], done["instant"]) == ("Completed", 30, commit.requested), done
    assert (done["files"], done["completionTime"]) == (len(whole.files("begun").data_files()), commit.completion)
    whole.ready("begun")
    whole.wrote("begun-more", "begun", second)
    whole.audited("begun", [*first, *second])
    whole.conform("begun")

    path = whole.path("begun")
    whole.delete("hudiwriters", "begun-more")
    whole.delete("huditables", "begun")
    assert (whole.files("begun").folder / ".hoodie/hoodie.properties").exists(), "the data of a released table stays"
    assert whole.keys("begun", "gate")["gate"]["state"] == "frozen"
    whole.table("refused", path=path, adoption={"policy": "Adopt"}, tableName="begun", recordKeyFields=["v"])
    stalled = wait_for(
        "other record keys are refused",
        lambda: (c := whole.world.condition("huditables", "refused", "Stalled")) and c["status"] == "True" and c,
        seconds=LONG,
    )
    assert stalled["reason"] == "TableMismatch"
    assert "recordKeyFields" in stalled["message"]
    whole.delete("huditables", "refused")
    whole.table("again", path=path, adoption={"policy": "Adopt"}, tableName="begun")
    whole.ready("again")
    whole.wrote("again-more", "again", third)
    whole.audited("begun", [*first, *second, *third])
    whole.conform("again")


@pytest.mark.extra
def test_commits_are_told_and_services_run(whole: Together) -> None:
    """Commits are told to a receiver once and in order.

    Services run by number of commits and by schedule, and say so in status.
    """
    services = {
        "compaction": {"afterCommits": 2},
        "clean": {"schedule": {"cron": "* * * * *"}, "retainCommits": 2},
        "archive": {"enabled": False},
    }
    # Later batches bring no new key: an insert that is packed into the small base file would be
    # rewritten with it, and leave no log file to compact.
    batches = [rows(range(12), "a", "batch 0", 1), *(rows(range(n, n + 10), "a", f"batch {n}", n + 1) for n in (1, 2))]
    address = own_address()
    with receiver(address) as (port, told):
        url = f"http://{whole.kubelet.service('receiver', address)}:{port}/commits"
        whole.table("tended", type="MergeOnRead", commitCallback={"url": url}, services=services)
        whole.ready("tended")
        wait_for(
            "the callback's first event",
            lambda: any(event["type"].endswith("started.v1") for event in told),
            seconds=LONG,
        )
        whole.wrote("tended", "tended", *batches, operation="Upsert")
        due = [
            i.requested
            for i in sorted(writes(whole, "tended"), key=lambda i: i.completion)
            if i.action == "deltacommit"
        ]

        def heard() -> list[str]:
            return [event["subject"] for event in told if event["type"].endswith("committed.v1")]

        wait_for("all commits are told", lambda: len(heard()) >= len(due), seconds=LONG)
        assert (heard(), len(due)) == (due, 3)

        def delivered() -> bool:
            found = whole.status("huditables", "tended").get("commitCallback") or {}
            return found.get("undelivered") == 0 and found.get("lastInstant") == due[-1]

        wait_for("status says that all is delivered", delivered, seconds=LONG)
        assert whole.true("huditables", "tended", "CallbackDelivered")

    def ran() -> dict[str, Any] | None:
        found = whole.status("huditables", "tended").get("services") or {}
        outcomes = {name: (found.get(name) or {}).get("outcome") for name in ("compaction", "clean")}
        return (
            found
            if outcomes["compaction"] == "Completed" and outcomes["clean"] in ("Completed", "NothingToDo")
            else None
        )

    found = wait_for("compaction and clean in status.services", ran, seconds=LONG)
    compactions = [i.requested for i in writes(whole, "tended") if i.action == "commit"]
    assert found["compaction"]["lastInstant"] in compactions
    assert found["clean"]["nextTime"] > found["clean"]["lastTime"]
    newest = {row[0]: row for batch in batches for row in batch}
    whole.audited("tended", [newest[id] for id in sorted(newest)])
    whole.conform("tended")


@pytest.mark.extra
@pytest.mark.parametrize(
    ("name", "spec"),
    [
        (
            "aside",
            {"type": "MergeOnRead", "concurrency": {"mode": "NonBlocking"}, "index": {"type": "Bucket", "buckets": 2}},
        ),
        ("turns", {"type": "CopyOnWrite", "concurrency": {"serializeAfterConflicts": 1}}),
    ],
)
def test_two_writers_of_the_same_keys(whole: Together, name: str, spec: dict[str, Any]) -> None:
    """NonBlocking: both commit, whatever the other does.

    With turns the one that loses asks for its turn, and repeats. The newest version stays.
    """
    whole.table(name, **spec)
    whole.ready(name)
    gate = whole.directory / f"gate-{name}"
    slow, quick = rows(range(10), "a", "slow", 5), rows(range(5, 15), "a", "quick", 3)
    whole.wrote(f"{name}-seed", name, rows(range(15), "a", "seed", 1))
    whole.writer(f"{name}-slow", name, {"rows": slow, "gate": str(gate)})
    wait_for("the slow one writes", Path(f"{gate}.reached").exists, seconds=LONG)
    assert whole.wrote(f"{name}-quick", name, quick).get("conflicts", 0) == 0
    driver = whole.process(whole.pod("driver", writer=f"{name}-slow"))
    gate.touch()
    if name == "turns":

        def asked() -> str:
            reports = whole.keys(name, "report/attempt/").values()
            return next((turn["against"] for report in reports if (turn := report.get("turn"))), "")

        against = wait_for("the slow one asks for its turn", lambda: asked() or None, seconds=LONG)
        assert against.startswith(f"{whole.namespace}.turns-quick-"), against
    status = whole.finished(f"{name}-slow")
    if name == "aside":
        assert status.get("conflicts", 0) == 0, status
    else:
        assert status["conflicts"] == 1, status
        assert status["recentConflicts"][0]["fileGroups"], status
        assert '"conflicts": 1' in json.dumps(driver.termination())
    newest = {row[0]: row for batch in (quick, slow) for row in batch}
    due = [newest[id] for id in sorted(newest)]
    whole.audited(name, due, without=SIDE_BY_SIDE | not_seen("incremental") if name == "aside" else NOTHING)
    whole.conform(name)


@pytest.mark.extra
def test_early_detection_reaches_the_writers(whole: Together) -> None:
    """`earlyConflictDetection` of the HudiTable: the second write stops at the first one's marker,
    says so in status, and is repeated.
    """
    server = urlparse(whole.endpoint)
    proxy = s3proxy.Proxy("127.0.0.1", (str(server.hostname), int(server.port or 80)))
    try:
        whole.table("early", concurrency={"earlyConflictDetection": True}, endpoint=proxy.url)
        whole.ready("early")
        whole.wrote("early-seed", "early", rows(range(10), "a", "seed", 1))
        held = proxy.hold_next(s3proxy.data_file)
        whole.writer("early-first", "early", {"rows": rows(range(10), "a", "first", 2)})
        wait_for("the first one writes its data file", lambda: held.arrived.is_set() or None, seconds=LONG)
        (inflight,) = whole.files("early").pending()
        again = [proxy.hold_next(lambda line: s3proxy.data_file(line) and inflight in line) for _ in range(20)]
        whole.writer("early-second", "early", {"rows": rows(range(5), "a", "second", 3)})

        def stopped() -> list[dict[str, Any]] | None:
            return whole.status("hudiwriters", "early-second").get("recentConflicts") or None

        (conflict,) = wait_for("status tells of the other's marker", stopped, seconds=LONG)
        assert conflict["with"] == inflight, conflict
        assert not whole.files("early").data_files(conflict["instant"]), "it stopped before it wrote"
        for request in (held, *again):
            request.deliver.set()
        whole.finished("early-first")
        assert whole.finished("early-second")["conflicts"] == 1
        whole.audited("early", [*rows(range(5), "a", "second", 3), *rows(range(5, 10), "a", "first", 2)])
        whole.conform("early")
    finally:
        proxy.stop()

"""What a HudiTable asks of its agent, on real pods: operator, API server, driver and agent with the
chart's etcd (TLS, users, roles) between them.

Each test ends with the audit and the rows that are due. The halves of each feature have tests of
their own; these are about what one half writes and the other one reads.
"""

from __future__ import annotations

import base64
import functools
import json
import re
import socket
import time
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from demo import cluster
from demo.cluster import kubectl

from hudi_runtime.table.timeline import milliseconds
from tests.support.cluster.node import HOST
from tests.support.cluster.space import Space, wait_for, written
from tests.support.harness.receiver import receiver

pytestmark = [pytest.mark.extra, pytest.mark.timeout(1200)]


def _patch(space: Space, table: str, spec: dict[str, Any]) -> None:
    kubectl("patch", "huditable", table, "-n", space.namespace, "--type=merge", "-p", json.dumps({"spec": spec}))


def _status(space: Space, table: str, field: str) -> Any:
    return (space.get("huditable", table).get("status") or {}).get(field)


def _outcome(space: Space, table: str, field: str, *wanted: str, seconds: float = 300) -> dict[str, Any]:
    """`status.<field>` as soon as its outcome is one of those wanted; of a list the last entry."""

    def probe() -> dict[str, Any] | None:
        found = _status(space, table, field)
        last = found[-1] if isinstance(found, list) and found else found
        return last if last and last.get("outcome") in wanted else None

    return wait_for(f"status.{field} of {table} to be {' or '.join(wanted)}", probe, seconds=seconds, every=1)


def _gate(space: Space, table: str) -> dict[str, Any]:
    """The table's gate as it stands in etcd."""
    for pair in json.loads(space.watch.keys())["kvs"]:
        value = base64.b64decode(pair["value"])
        if (
            base64.b64decode(pair["key"]).endswith(b"/gate")
            and json.loads(value)["table"] == f"{space.namespace}/{table}"
        ):
            return dict(json.loads(value))
    raise AssertionError(f"no gate of {table}")


def _once(space: Space, name: str, table: str, *, first: int, rows: int = 10, **changes: Any) -> None:
    """A writer of one batch, to its end."""
    space.writer(name, table, rows=rows, first=first, **changes)
    space.wait(f"hudiwriter/{name}", "Finished", seconds=400)
    assert cluster.is_true(space.get("hudiwriter", name), "Succeeded"), space.get("hudiwriter", name)["status"]


def _rows(*firsts: int, rows: int = 10) -> pd.DataFrame:
    """What writers of one batch from these numbers on have written."""
    return pd.concat([written(batches=1, rows=rows, first=first) for first in firsts], ignore_index=True)


def test_savepoint_restore_and_metadata_table(space: Space) -> None:
    """A savepoint, commits after it, a restore that undoes these alone.

    Then the metadata table off, on and made anew.
    """
    space.table("kept")
    space.wait("huditable/kept", "Ready", seconds=300)
    _once(space, "kept-before", "kept", first=0)
    _patch(space, "kept", {"savepoints": [{"name": "here"}]})
    taken = _outcome(space, "kept", "savepoints", "Completed", "Failed")
    assert taken["outcome"] == "Completed", taken
    _once(space, "kept-after", "kept", first=100)
    space.audited("kept", _rows(0, 100))

    _patch(space, "kept", {"restore": {"savepoint": "here", "nonce": "one"}})
    restored = _outcome(space, "kept", "restore", "Completed", "Failed")
    assert (restored["outcome"], restored["nonce"], restored["undone"]) == ("Completed", "one", 1), restored
    assert restored["boundaryCompletionTime"] == taken["boundaryCompletionTime"]
    space.audited("kept", _rows(0))

    for change, parts in (({"enabled": False}, []), ({"enabled": True, "rebuild": "again"}, ["files"])):
        _patch(space, "kept", {"metadataTable": change})
        wanted = "Off" if not parts else "again"

        def made(wanted: str = wanted) -> dict[str, Any] | None:
            found = _status(space, "kept", "metadataTable") or {}
            return found if found.get("outcome") == "Completed" and wanted in str(found.get("wanted")) else None

        found = wait_for(f"the metadata table to be {wanted}", made, seconds=300, every=1)
        assert set(parts) <= set(found.get("partitions") or []), found
        assert space.lake.exists(f"{space.path('kept')}/.hoodie/metadata/.hoodie") == bool(parts)
        number = 200 + 100 * len(parts)
        _once(space, f"kept-{wanted.lower()}", "kept", first=number)
    space.audited("kept", _rows(0, 200, 300))


def test_changes_of_the_gate_end_a_writer_between_commits_and_it_goes_on(space: Space) -> None:
    """concurrency.mode, insertConflicts and durations of a living table: the gate in etcd has them,
    no batch is lost or written twice.
    """
    space.table("moving", concurrency={"mode": "Optimistic"})
    space.wait("huditable/moving", "Ready", seconds=300)
    space.writer(
        "mover",
        "moving",
        batches=25,
        rows=5,
        delay=0.05,
        retryPolicy={"limit": 1, "backoffSeconds": 1, "maxBackoffSeconds": 2},
    )
    changes: list[tuple[dict[str, Any], Any]] = [
        ({"concurrency": {"mode": "SingleWriter"}}, lambda gate: gate["concurrency"] == "SingleWriter"),
        (
            {"concurrency": {"mode": "Optimistic", "insertConflicts": "Partition"}},
            lambda gate: gate["insertConflicts"] == "Partition",
        ),
        ({"lock": {"leaseSeconds": 12}}, lambda gate: gate["lock"]["leaseSeconds"] == 12),
    ]
    for number, (change, seen) in enumerate(changes):
        done = len([i for i in space.lake.timeline(space.path("moving")) if i.completed])
        wait_for(
            "a commit before the change",
            lambda done=done: len([i for i in space.lake.timeline(space.path("moving")) if i.completed]) > done,
            seconds=200,
        )
        _patch(space, "moving", change)

        def opened(seen: Any = seen) -> bool:
            gate = _gate(space, "moving")
            return gate["state"] == "open" and bool(seen(gate))

        wait_for(f"change {number} in the gate", opened, seconds=240)
    space.wait("hudiwriter/mover", "Finished", seconds=600)
    writer = space.get("hudiwriter", "mover")
    assert cluster.is_true(writer, "Succeeded"), writer["status"]
    ended = [attempt for attempt in writer["status"]["attempts"] if attempt.get("class") == "EndedForChange"]
    assert len(ended) == len(changes), writer["status"]["attempts"]
    space.audited("moving", written(batches=25, rows=5))


def _longest_batch(space: Space, table: str) -> float:
    """Seconds of the longest write on the active timeline."""
    done = [i for i in space.lake.timeline(space.path(table)) if i.completed and "commit" in i.action]
    return max(milliseconds(i.completed) - milliseconds(i.requested) for i in done) / 1000


def _newest(space: Space, table: str) -> str:
    """Requested time of the newest completed commit."""
    done = [i.requested for i in space.lake.timeline(space.path(table)) if i.completed and "commit" in i.action]
    return max(done, default="")


def _is_open(space: Space, table: str, field: str, value: Any) -> bool:
    """Whether the gate is open with this value; `lock.NAME` is a duration."""
    gate = _gate(space, table)
    found = functools.reduce(lambda part, name: part.get(name) or {}, field.split("."), gate)
    return bool(gate["state"] == "open" and found == value)


def _is_made(space: Space, table: str, field: str, wanted: str = "") -> bool:
    """Whether `status.<field>` says so, of what is wanted there."""
    found = _status(space, table, field)
    last = found[-1] if isinstance(found, list) and found else found or {}
    assert last.get("outcome") != "Failed", last
    return last.get("outcome") == "Completed" and wanted in str(last.get("wanted", ""))


def test_each_change_is_made_beside_a_writer_without_an_end(space: Space) -> None:
    """A savepoint, the gate's settings, the metadata table, another release of Hudi and a restore:
    each is made although a writer commits without a pause, and the writer goes on after each.
    """
    space.table("ever", concurrency={"mode": "Optimistic"})
    space.wait("huditable/ever", "Ready", seconds=300)
    space.writer(
        "ever",
        "ever",
        batches=100_000,
        rows=5,
        delay=0.05,
        retryPolicy={"limit": 20, "backoffSeconds": 1, "maxBackoffSeconds": 1},
    )

    changes: list[tuple[str, dict[str, Any], Callable[..., bool], tuple[Any, ...]]] = [
        ("savepoint", {"savepoints": [{"name": "here"}]}, _is_made, ("savepoints",)),
        ("mode", {"concurrency": {"mode": "SingleWriter"}}, _is_open, ("concurrency", "SingleWriter")),
        (
            "insert conflicts",
            {"concurrency": {"mode": "Optimistic", "insertConflicts": "Partition"}},
            _is_open,
            ("insertConflicts", "Partition"),
        ),
        ("durations", {"lock": {"leaseSeconds": 12}}, _is_open, ("lock.leaseSeconds", 12)),
        ("drain", {"fencing": {"drainSeconds": 20}}, _is_open, ("lock.drainSeconds", 20)),
        ("fencing by the lease alone", {"fencing": {"mode": "LeaseOnly"}}, _is_open, ("mode", "LeaseOnly")),
        ("fencing by proof", {"fencing": {"mode": "PodTermination"}}, _is_open, ("mode", "PodTermination")),
        ("metadata table off", {"metadataTable": {"enabled": False}}, _is_made, ("metadataTable", "Off")),
        (
            "metadata table on",
            {"metadataTable": {"enabled": True, "rebuild": "again"}},
            _is_made,
            ("metadataTable", "again"),
        ),
        ("release of Hudi", {"hudiVersion": "1.2.9"}, _is_open, ("hudiVersion", "1.2.9")),
        ("release of Hudi, back", {"hudiVersion": "1.2.0"}, _is_open, ("hudiVersion", "1.2.0")),
        ("restore", {"restore": {"savepoint": "here", "nonce": "one"}}, _is_made, ("restore",)),
    ]

    def another_commit(when: str) -> None:
        before = _newest(space, "ever")
        wait_for(f"a commit {when}", lambda: _newest(space, "ever") > before, seconds=240)

    for name, change, probe, wanted in changes:
        if name != "release of Hudi, back":  # no image has the release between: nobody writes
            another_commit(f"before: {name}")
        began = time.monotonic()
        _patch(space, "ever", change)
        wait_for(name, functools.partial(probe, space, "ever", *wanted), seconds=240)
        took, longest = time.monotonic() - began, _longest_batch(space, "ever")
        print(f"BESIDE A WRITER {name}: {took:.1f} s, the longest batch {longest:.1f} s", flush=True)
        # Nobody waits longer than the longest batch and 30 s; twice that on a shared machine.
        assert took <= 2 * (longest + 30), f"{name} took {took:.1f} s"
    another_commit("after the restore")
    writer = space.get("hudiwriter", "ever")
    ended = [attempt for attempt in writer["status"]["attempts"] if attempt.get("class") == "EndedForChange"]
    assert len(ended) >= len(changes) - 1, writer["status"]["attempts"]
    kubectl("patch", "hudiwriter", "ever", "-n", space.namespace, "--type=merge", "-p", '{"spec": {"suspend": true}}')
    space.wait("hudiwriter/ever", "Suspended", seconds=200)
    # Each batch once, up to the last one: what the restore has undone was written again. The last
    # attempt has asked for a batch, which acknowledges those before it; it may have been committed.
    driver = space.drivers("ever")[-1]["metadata"]["name"]
    asked = re.findall(r"ASKED FOR BATCH (\d+)", (space.logs.directory / f"{driver}.log").read_text(encoding="utf-8"))
    acknowledged = max(map(int, asked))
    found = space.audit("ever")
    batches = {one["instant"] for one in (*found.archived, *found.commits) if one["operation"] == "BULK_INSERT"}
    assert len(batches) in (acknowledged, acknowledged + 1), (len(batches), asked[-3:])
    assert acknowledged > 1
    space.audited("ever", written(batches=len(batches), rows=5))


def test_bootstrap_release_and_adoption(space: Space) -> None:
    """A table that begins with a Parquet dataset, is given back, and is adopted again.

    A spec that does not fit is refused meanwhile.
    """
    source = f"e2e/{space.namespace}-dataset"
    first = written(batches=1, rows=30)
    space.lake.upload_parquet(f"{source}/part-0.parquet", first)
    space.table("begun", bootstrap={"mode": "FullRecord", "source": {"path": f"s3a://{source}", "format": "Parquet"}})
    space.wait("huditable/begun", "Bootstrapped", seconds=400)
    assert _status(space, "begun", "bootstrap")["records"] == 30
    space.wait("huditable/begun", "Ready", seconds=60)
    _once(space, "begun-more", "begun", first=100)
    due = pd.concat([first, _rows(100)], ignore_index=True)
    space.audited("begun", due)
    path = space.path("begun")

    kubectl("delete", "hudiwriter", "begun-more", "-n", space.namespace, "--timeout=60s")
    kubectl("delete", "huditable", "begun", "-n", space.namespace, "--timeout=120s")
    assert space.lake.exists(f"{path}/.hoodie/hoodie.properties"), "the data of a released table stays"
    space.table(
        "refused", path=f"s3a://{path}", adoption={"policy": "Adopt"}, tableName="begun", recordKeyFields=["value"]
    )

    def stalled() -> dict[str, str] | None:
        condition = space.condition("huditable", "refused", "Stalled")
        return condition if condition.get("status") == "True" else None

    condition = wait_for("the refusal of other record keys", stalled, seconds=200)
    assert condition["reason"] == "TableMismatch"
    assert "recordKeyFields" in condition["message"], condition
    kubectl("delete", "huditable", "refused", "-n", space.namespace, "--timeout=120s")
    space.table("again", path=f"s3a://{path}", adoption={"policy": "Adopt"}, tableName="begun")
    space.wait("huditable/again", "Ready", seconds=300)
    _once(space, "again-more", "again", first=200)
    space.audited("again", pd.concat([due, _rows(200)], ignore_index=True))


def _service(space: Space, name: str, port: int) -> str:
    """URL of a Service of the cluster behind which this machine listens."""
    meta = {"name": name, "namespace": space.namespace}
    ports = [{"name": "http", "port": 80, "targetPort": port, "protocol": "TCP"}]
    cluster.apply(json.dumps({"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": {"ports": ports}}))
    labels = {"kubernetes.io/service-name": name}
    cluster.apply(
        json.dumps({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": meta | {"labels": labels},
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": port, "protocol": "TCP"}],
            "endpoints": [{"addresses": [socket.gethostbyname(HOST)], "conditions": {"ready": True}}],
        })
    )  # fmt: skip
    return f"http://{name}.{space.namespace}.svc/commits"


def test_callback_and_services(space: Space) -> None:
    """Commits are told to a receiver once and in order.

    Services run by number of commits and by schedule, and say so in status.
    """
    with receiver(HOST) as (port, told):
        services = {
            "compaction": {"afterCommits": 2},
            "clean": {"schedule": {"cron": "* * * * *"}, "retainCommits": 2},
            "archive": {"enabled": False},
        }
        space.table("tended", commitCallback={"url": _service(space, "commits", port)}, services=services)
        space.wait("huditable/tended", "Ready", seconds=300)
        wait_for(
            "the callback's first event",
            lambda: any(event["type"].endswith("started.v1") for event in told),
            seconds=120,
        )
        for number in range(3):
            _once(space, f"tended-{number}", "tended", first=0, rows=10, operation="Upsert")

        def completed() -> list[str]:
            done = [i for i in space.lake.timeline(space.path("tended")) if i.completed and i.action == "deltacommit"]
            return [i.requested for i in sorted(done, key=lambda i: i.completed)]

        def heard() -> list[str]:
            return [event["subject"] for event in told if event["type"].endswith("committed.v1")]

        wait_for("all commits to be told", lambda: len(heard()) >= 3, seconds=120)
        assert heard() == completed()
        assert (_status(space, "tended", "commitCallback") or {}).get("undelivered", 0) == 0

    def ran() -> dict[str, Any] | None:
        found = _status(space, "tended", "services") or {}
        outcomes = {name: (found.get(name) or {}).get("outcome") for name in ("compaction", "clean")}
        return (
            found
            if outcomes["compaction"] == "Completed" and outcomes["clean"] in ("Completed", "NothingToDo")
            else None
        )

    wait_for("compaction and clean in status.services", ran, seconds=300, every=2)
    assert any(i.completed and i.action == "commit" for i in space.lake.timeline(space.path("tended"))), (
        "a compaction completes as a commit"
    )
    space.audited("tended", written(batches=1, rows=10))


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("together", {"concurrency": {"mode": "NonBlocking"}, "index": {"type": "Bucket", "buckets": 2}}),
        (
            "in-turns",
            {"type": "CopyOnWrite", "concurrency": {"serializeAfterConflicts": 2, "earlyConflictDetection": True}},
        ),
    ],
)
def test_two_writers_of_the_same_keys(space: Space, name: str, table: dict[str, Any]) -> None:
    """NonBlocking; and optimistic control with turns and early detection: both writers succeed, and
    every row is there once, the newest one.

    Whether they meet is chance, and nothing here says that a turn was asked for or a marker seen:
    `test_together.py` does.
    """
    space.table(name, **table)
    space.wait(f"huditable/{name}", "Ready", seconds=300)
    retry = {"limit": 10, "backoffSeconds": 1, "maxBackoffSeconds": 2}
    for number in range(2):
        space.writer(
            f"{name}-{number}",
            name,
            batches=4,
            rows=20,
            delay=0.02,
            first=10 * number,
            operation="Upsert",
            retryPolicy=retry,
        )
    for number in range(2):
        space.wait(f"hudiwriter/{name}-{number}", "Finished", seconds=500)
        assert cluster.is_true(space.get("hudiwriter", f"{name}-{number}"), "Succeeded")
    every = pd.concat([written(batches=4, rows=20, first=10 * number) for number in range(2)])
    # NonBlocking lets commits of one file group stand side by side
    free = {"overlap": "not asked"} if name == "together" else {}
    space.audited(name, every.sort_values("ts").drop_duplicates("id", keep="last"), **free)

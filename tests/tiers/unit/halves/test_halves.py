"""Each request of the operator is served by the agent's own code, and each of its answers is read
by the operator: a field that is renamed shows.
"""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_contract.assignment import AssignmentRecord
from hudi_contract.job import Validation
from hudi_contract.outcomes import FailureClass
from hudi_contract.reports import ReportedCommit
from hudi_contract.requests import ServiceDone, ServiceRequest
from hudi_contract.words import Result, Service, Stage
from hudi_operator.api.spec import TableSpec as OperatorTable
from hudi_operator.api.spec import WriterSpec
from hudi_operator.manifests import configmaps
from hudi_operator.model import conditions
from hudi_runtime.agent import adoption, facts, read_cost
from hudi_runtime.callback import callback
from hudi_runtime.callback.callback_http import Sender
from hudi_runtime.callback.callback_plan import Source
from hudi_runtime.job.job import FilesSource, HudiSource, KafkaSource, PythonSource, SqlSource, TableSpec
from hudi_runtime.process.errors import Failure, RuntimeFailure
from hudi_runtime.process.result import Reporter, Tally, termination_message
from hudi_runtime.process.session import Conflict
from hudi_runtime.services import triggers
from hudi_runtime.settle import settle as settling
from hudi_runtime.settle.rollback import Outcome
from hudi_runtime.settle.settle import Settler
from hudi_runtime.table import timeline as tl
from hudi_runtime.writer import gate
from tests.support.world.callback_parts import Commits, receiver, t
from tests.support.world.fake_bootstrap import T1 as BOOTSTRAP_INSTANT
from tests.support.world.fake_bootstrap import T2 as BOOTSTRAP_COMPLETION
from tests.support.world.fake_bootstrap import Fake as BootstrapFake
from tests.support.world.fake_holds import Fake as HoldFake
from tests.support.world.fake_metadata_table import Fake as MetadataFake
from tests.support.world.fake_restores import KEPT, UNDONE, T
from tests.support.world.fake_restores import Fake as RestoreFake
from tests.support.world.fake_savepoints import COMMITS as SAVEPOINT_COMMITS
from tests.support.world.fake_savepoints import T2, T4, T5
from tests.support.world.fake_savepoints import Fake as SavepointFake
from tests.support.world.job_across import parsed
from tests.support.world.meeting import Meeting
from tests.support.world.served import (
    Claims,
    dataset_in_memory,
    in_its_time,
    with_bootstrap,
    with_holds,
    with_metadata,
    with_restores,
    with_savepoints,
)

UNTIL = 120


def ready(world: Meeting, **table: Any) -> Meeting:
    world.make_table(**table)
    world.run(lambda w: w.is_true(w.table, "Ready"))
    return world


# ---- requests


def test_a_savepoint() -> None:
    world = Meeting()
    fake = SavepointFake([*SAVEPOINT_COMMITS])
    with_savepoints(world, fake)
    ready(world)
    world.change(savepoints=[{"name": "a"}])
    world.run(lambda w: (w.status("savepoints") or [{}])[0].get("outcome") == "Completed", seconds=UNTIL)
    (shown,) = world.status("savepoints")
    wanted = {"name": "a", "instant": T2, "completionTime": T5, "boundaryCompletionTime": T4}
    assert shown.items() >= wanted.items()
    assert shown["time"]
    assert fake.comments == {T2: "lake/flights: a"}, "the table as the operator names it"
    world.run(lambda w: w.is_true(w.table, "Ready"), seconds=UNTIL)
    assert world.names("request") == {}


def test_a_savepoint_that_cannot_be_taken() -> None:
    world = Meeting()
    with_savepoints(world, SavepointFake([]))
    ready(world)
    world.change(savepoints=[{"name": "a"}])
    world.run(lambda w: (w.status("savepoints") or [{}])[0].get("outcome") == "Failed", seconds=UNTIL)
    assert "no commit" in world.status("savepoints")[0]["message"]


def test_a_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for beside an open gate; what status says of it is what the agent has written."""
    world = Meeting()
    with_holds(world, HoldFake([*SAVEPOINT_COMMITS, f"{T5}.clean.requested"]))
    in_its_time(world, monkeypatch)
    ready(world)
    world.change(holds=[{"name": "a", "durationSeconds": 600, "reader": "export"}])
    world.run(lambda w: (w.status("holds") or [{}])[0].get("message"), seconds=UNTIL)
    (shown,) = world.status("holds")
    assert shown.items() >= {"name": "a", "outcome": "Pending", "instant": T2, "reader": "export"}.items()
    assert shown["message"] == f"clean {T5} began before the hold, and is not over"
    assert world.kv["gate"].value["state"] == "open"
    with_holds(world, HoldFake([*SAVEPOINT_COMMITS]))
    world.run(lambda w: w.status("holds")[0]["outcome"] == "Granted", seconds=UNTIL)
    (shown,) = world.status("holds")
    assert (shown["instant"], shown["boundaryCompletionTime"]) == (T2, T4)
    world.change(holds=[])
    world.run(lambda w: "done/hold-a" not in w.kv and w.status("holds") is None, seconds=UNTIL)


def test_a_restore(monkeypatch: pytest.MonkeyPatch) -> None:
    """The word in the closed gate, the request, what is undone, and everything that status
    says of it.
    """
    world = Meeting()
    with_restores(world, RestoreFake([*KEPT, *UNDONE]), monkeypatch)
    ready(world)
    # The savepoint is this HudiTable's: taken before by its name.
    kept = {"instant": T[2], "completionTime": T[5], "boundary": T[4]}
    world.etcd.put("done/savepoint-good", {"name": "good", "result": "Completed", "message": "", "atMs": 0, **kept})
    world.change(savepoints=[{"name": "good"}], restore={"savepoint": "good", "nonce": "n1"})
    world.run(lambda w: (w.status("restore") or {}).get("outcome") in ("Completed", "Failed"), seconds=UNTIL)
    shown = world.status("restore")
    wanted = {"outcome": "Completed", "nonce": "n1", "savepoint": "good", "boundaryCompletionTime": T[4], "undone": 2}
    wanted |= {"undoneInstants": [T[6], T[7]], "instant": T[20], "completionTime": T[25]}
    assert shown.items() >= wanted.items(), shown
    assert shown["endTime"] >= shown["beginTime"]


def test_a_restore_that_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Meeting()
    with_restores(world, RestoreFake([*KEPT, *UNDONE]), monkeypatch)
    ready(world)
    world.change(restore={"savepoint": "never", "nonce": "n1"})
    world.run(lambda w: (w.status("restore") or {}).get("outcome") == "Failed", seconds=UNTIL)
    assert world.status("restore")["message"] == "this HudiTable has taken no savepoint never"
    world.run(lambda w: w.is_true(w.table, "Ready"), seconds=UNTIL)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> BootstrapFake:
    made = BootstrapFake()
    dataset_in_memory(made, monkeypatch)
    return made


def test_a_bootstrap(begun: BootstrapFake, monkeypatch: pytest.MonkeyPatch) -> None:
    world = Meeting()
    with_bootstrap(world, begun, monkeypatch)
    ready(world, bootstrap={"source": {"path": "s3a://lake/plain", "format": "Parquet"}})
    shown = world.status("bootstrap")
    wanted = {
        "outcome": "Completed",
        "mode": "FullRecord",
        "source": "s3a://lake/plain",
        "records": 5,
        "files": 2,
        "bytes": 100,
    }
    assert shown.items() >= (wanted | {"instant": BOOTSTRAP_INSTANT, "completionTime": BOOTSTRAP_COMPLETION}).items(), (
        shown
    )
    assert world.is_true(world.table, "Bootstrapped")
    assert world.assignment()["adoption"] == "Bootstrap"


def test_a_bootstrap_whose_source_cannot_be_read(begun: BootstrapFake, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent's code of the error is the reason of the condition."""
    begun.source_error = RuntimeFailure(FailureClass.USER_ERROR, "column x is missing")
    world = Meeting()
    with_bootstrap(world, begun, monkeypatch)
    world.make_table(bootstrap={"source": {"path": "s3a://lake/plain", "format": "Parquet"}})
    world.run(lambda w: (w.status("bootstrap") or {}).get("outcome") == "Failed", seconds=UNTIL)
    shown = world.status("bootstrap")
    assert "column x is missing" in shown["message"]
    assert shown["failures"] == 1
    code = world.kv["done/bootstrap"].value["code"]
    assert world.condition(world.table, "Bootstrapped")["reason"] == code, world.condition(world.table, "Bootstrapped")


@pytest.mark.parametrize(
    ("asked", "word", "option"),
    [({"enabled": False}, "Off/", "false"), ({"indexes": [], "rebuild": "again"}, "Files/again", "true")],
    ids=["off", "again without statistics"],
)
def test_the_metadata_table(asked: dict[str, Any], word: str, option: str) -> None:
    """The agent serves it when its own assignment names the same change: both words
    are the operator's.
    """
    world = Meeting()
    fake = MetadataFake()
    with_metadata(world, fake)
    ready(world)
    world.change(metadataTable=asked)
    world.run(lambda w: (w.status("metadataTable") or {}).get("outcome") == "Completed", seconds=UNTIL)
    shown = world.status("metadataTable")
    assert (shown["wanted"], shown["outcome"]) == (word, "Completed")
    assert shown["partitions"] == ([] if option == "false" else ["files"])
    assert ("make true" in fake.log) == (option == "true"), fake.log
    world.run(lambda w: w.is_true(w.table, "Ready"), seconds=UNTIL)


def test_scheduled_services() -> None:
    """The tick of a schedule, the options, and what status says of the run."""
    world = Meeting()
    ready(
        world,
        services={
            "clean": {"schedule": {"cron": "*/5 * * * *"}, "retainCommits": 7},
            "archive": {"enabled": False},
            "compaction": {"enabled": False},
        },
    )
    found = triggers.orders(AssignmentRecord.from_json(world.assignment()).services)
    assert set(found) == {Service.CLEAN}
    service = found[Service.CLEAN]
    assert (service.scheduled, service.after_commits, service.options["hoodie.clean.commits.retained"]) == (
        True,
        None,
        "7",
    )
    request = ServiceRequest.from_json(world.kv["request/service-clean"].value)
    assert not triggers.due(service, ServiceDone(), commits=0, request=request, now_ms=world.now_ms), (
        "what had passed before is the baseline"
    )
    world.run(lambda w: not w.kv["request/service-clean"].value["baseline"], seconds=400)
    request = ServiceRequest.from_json(json.loads(json.dumps(world.kv["request/service-clean"].value)))
    why = triggers.due(service, ServiceDone(), commits=0, request=request, now_ms=world.now_ms)
    assert why.startswith("schedule ")
    assert world.table is not None
    section = {"schedule": {"cron": "*/5 * * * *"}, "retainCommits": 7, "runNonce": "by-hand"}
    world.edit(world.table, services={**world.table["spec"]["services"], "clean": section})
    world.run(lambda w: w.kv["request/service-clean"].value.get("run") == "by-hand")
    asked = ServiceRequest.from_json(json.loads(json.dumps(world.kv["request/service-clean"].value)))
    why = triggers.due(service, ServiceDone(nonce=asked.nonce), commits=0, request=asked, now_ms=world.now_ms)
    assert "by-hand" in why
    served = ServiceDone(
        result=Result.COMPLETED,
        instant=t(7),
        message="12 files",
        at_ms=world.now_ms,
        nonce=request.nonce,
        runs=(asked.run,),
        inc="agent",
    )
    world.etcd.put(triggers.record_key(Service.CLEAN), served.to_json())
    world.reconcile()
    world.reconcile()
    shown = world.status("services")["clean"]
    assert (shown["outcome"], shown["lastInstant"], shown["message"]) == ("Completed", t(7), "12 files")
    assert shown["lastTime"] == conditions.rfc3339(served.at_ms)
    assert shown["executedNonce"] == "by-hand"
    again = ServiceDone.from_json(world.kv["done/service-clean"].value)
    assert not triggers.due(service, again, commits=0, request=request, now_ms=world.now_ms), "each tick once"
    failed = ServiceDone(result=Result.FAILED, message="no room", failures=2, at_ms=world.now_ms, inc="agent")
    world.etcd.put(triggers.record_key(Service.CLEAN), failed.to_json())
    world.reconcile()
    world.reconcile()
    condition = world.condition(world.table, "ServicesHealthy")
    assert (condition["reason"], "2 failures" in condition["message"], "no room" in condition["message"]) == (
        "CleanFailed",
        True,
        True,
    )


def test_commits_since_the_last_run() -> None:
    world = Meeting()
    ready(world, services={"clean": {"afterCommits": 10}})
    timeline = tl.parse([f"{t(1)}_{t(2)}.commit"])
    agent = world.agent_process()
    assert agent is not None
    report = facts.report(timeline, inc=agent.inc, foreigners=(), commits_since={"clean": 3})
    world._agent = lambda process: None  # type: ignore[method-assign]
    world.etcd.put("report/timeline", {**report.to_json(), "atMs": world.now_ms})
    world.reconcile()
    world.reconcile()
    assert world.status("services")["clean"]["commitsUntilNext"] == 7
    assert world.status("timeline")["lastInstant"] == t(1)


def test_the_commit_callback() -> None:
    """URL, time-out and whether there is a Secret; and what status says of the agent's word."""
    world = Meeting()
    ready(world, commitCallback={"url": "https://receiver.example/commits", "timeoutSeconds": 7, "tableServices": True})
    table: Any = Commits()
    etcd: Any = world.etcd
    source = Source("lake", "flights", "T", "s3a://lake/flights")
    agent = world.agent_process()
    assert agent is not None
    made = callback.from_order(
        AssignmentRecord.from_json(world.assignment()).callback, source, table, etcd, inc=agent.inc
    )
    assert made is not None
    assert (made._table_services, made._sender._timeout, made._sender._host, made._sender._folder) == (
        True,
        7,
        "receiver.example",
        None,
    )
    with receiver() as server:
        made._sender = Sender(server.url, timeout=7, folder=None, refused=lambda address: False)
        made._thread = threading.current_thread()  # the test takes its steps
        made.consider(table.listing(), t(999))
        made.step()
        table.add(1, 2)
        made.consider(table.listing(), t(999))
        made.step()
        made._clock = lambda: time.monotonic() + callback.REPORT_SECONDS
        made.step()
        assert server.told() == [t(1)]
    world.reconcile()
    world.reconcile()
    shown = world.status("commitCallback")
    position = world.kv["done/callback"].value
    assert (shown["delivered"], position["delivered"], shown["undelivered"]) == (2, 2, 0), "the beginning, too"
    assert (shown["lastInstant"], shown["lastCompletionTime"]) == (t(1), t(2))
    assert world.is_true(world.table, "CallbackDelivered")
    world.change(commitCallback=None)
    world.run(lambda w: "callback" not in w.assignment(), seconds=UNTIL)
    assert (
        callback.from_order(AssignmentRecord.from_json(world.assignment()).callback, source, table, etcd, inc=agent.inc)
        is None
    )


# ---- the gate, jobs and words of writers


def test_a_run_reads_what_the_gate_is_closed_for() -> None:
    world = Meeting()
    ready(world, fencing={"drainSeconds": 1})
    world.writer_hang_at = 1
    world.make_writer("slow")
    world.run(lambda w: w.writer_process("slow") is not None and w.writer_process("slow").registered, seconds=UNTIL)  # type: ignore[union-attr]

    class Reads:
        prefix = ""

        def get(self, key: str) -> Any:
            return world.etcd.get(key.rpartition("/")[2])

    session: Any = SimpleNamespace(etcd=Reads(), table_id="T")
    assert gate.closed_for(session) == ""
    world.change(lock={"leaseSeconds": 20})
    world.run(lambda w: w.gate()["state"] == "closed", seconds=UNTIL)
    assert gate.closed_for(session) == "a change of lock"


def operator_table(**spec: Any) -> OperatorTable:
    meta = {"namespace": "lake", "name": "flights", "uid": "uid-1", "generation": 1, "resourceVersion": "1"}
    return OperatorTable.from_object(
        {
            "kind": "HudiTable",
            "metadata": meta,
            "spec": {"path": "s3a://lake/flights", "recordKeyFields": ["id"], **spec},
        }
    )


def writer(**spec: Any) -> WriterSpec:
    meta = {"namespace": "lake", "name": "load", "uid": "0a1b2c3d-uid", "generation": 1, "resourceVersion": "1"}
    return WriterSpec.from_object(
        {"kind": "HudiWriter", "metadata": meta, "spec": {"tableRef": {"name": "flights"}, **spec}}
    )


FILES = {
    "files": {"format": "csv", "paths": ["s3a://landing/x"], "options": {"header": "true"}, "maxFilesPerCommit": 3}
}


def test_a_job() -> None:
    table = operator_table(
        type="MergeOnRead",
        partitionFields=["day", "hour"],
        orderingFields=["ts"],
        schema={"missingColumns": "Refuse"},
        concurrency={"serializeAfterConflicts": 4, "earlyConflictDetection": True},
    )
    of = writer(
        source=FILES,
        transform={"sql": "SELECT * FROM source"},
        operation="Insert",
        duplicates="Drop",
        validations=[
            {"name": "a", "sql": "SELECT 1 FROM batch", "expect": "Empty"},
            {"name": "b", "sql": "SELECT count(*) FROM table", "equals": "0"},
            {"name": "c", "minRows": 1, "maxRows": 2},
            {"name": "d", "notNull": ["id"]},
        ],
        partitions=["day=2026-*"],
        streaming={"intervalSeconds": 9},
        hudiOptions={"hoodie.parquet.max.file.size": "1000"},
        retryPolicy={"writeConflict": {"inProcess": 6}},
    )
    job = parsed(table, of)
    assert (job.writer, job.attempt, job.number, job.run) == ("lake/load", of.attempt_id(2), 2, f"{of.ref.uid}/5")
    assert job.source == FilesSource("csv", ("s3a://landing/x",), {"header": "true"}, 3)
    assert (job.transform, job.operation, job.duplicates, job.interval) == ("SELECT * FROM source", "insert", "Drop", 9)
    assert (job.serialize_after, job.early_detection, job.in_process_retries) == (4, True, 6)
    assert job.options == {"hoodie.parquet.max.file.size": "1000"}
    assert job.validations == (
        Validation(name="a", sql="SELECT 1 FROM batch"),
        Validation(name="b", sql="SELECT count(*) FROM table", equals="0"),
        Validation(name="c", min_rows=1, max_rows=2),
        Validation(name="d", not_null=("id",)),
    )
    assert job.partitions == tuple(configmaps.job(table, of, 2, run=5).to_json()["partitions"]) != ()
    told = job.table
    assert (told.id, told.table, told.name, told.path, told.type) == (
        table.table_id,
        "lake/flights",
        table.table_name,
        "s3a://lake/flights",
        "MERGE_ON_READ",
    )
    assert (told.record_keys, told.partitions, told.ordering, told.hive_style) == (
        ("id",),
        ("day", "hour"),
        ("ts",),
        table.hive_style_partitioning,
    )
    assert told.missing_columns == "Refuse"


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        (
            {"python": {"configMapKeyRef": {"name": "c", "key": "a.py"}, "function": "f", "arguments": {"n": "1"}}},
            PythonSource("/etc/hudi/code/a.py", "f", {"n": "1"}),
        ),
        (
            {
                "kafka": {
                    "bootstrapServers": ["kafka:9093"],
                    "topics": ["orders"],
                    "startFrom": "Latest",
                    "maxOffsetsPerCommit": 10,
                    "value": {"format": "Json", "schema": "id INT"},
                    "security": {"protocol": "SASL_SSL", "mechanism": "PLAIN", "secretRef": {"name": "reader"}},
                }
            },
            ("kafka:9093", "orders", "Latest", 10, "Json", "id INT", "SASL_SSL", "PLAIN", "/etc/hudi/kafka"),
        ),
        (
            {
                "sql": {
                    "query": "SELECT 1",
                    "views": [{"name": "f", "files": {"format": "csv", "paths": ["s3a://landing/f"]}}],
                }
            },
            ("SELECT 1", "f", "csv"),
        ),
    ],
    ids=["python", "kafka", "sql"],
)
def test_sources(source: dict[str, Any], wanted: Any) -> None:
    found = parsed(operator_table(), writer(source=source)).source
    if isinstance(found, KafkaSource):
        security = found.security
        assert not found.pattern
        said = (found.servers[0], found.topics[0], found.start_from, found.max_offsets, found.format, found.schema)
        assert (*said, security.protocol, security.mechanism, security.folder) == wanted
    elif isinstance(found, SqlSource):
        (view,) = found.views
        assert view.files is not None
        assert (found.query, view.name, view.files.format) == wanted
    else:
        assert found == wanted


def test_a_chained_source() -> None:
    of = writer(
        source={
            "hudi": {
                "tableRef": {"name": "bronze"},
                "maxCommitsPerBatch": 3,
                "order": "Fenced",
                "ifPositionLost": "Snapshot",
                "deletes": "Carry",
            }
        }
    )
    assert of.hudi is not None
    known = dataclasses.replace(
        of, hudi=dataclasses.replace(of.hudi, path="s3a://lake/bronze", merger="org.example.Mine")
    )
    assert parsed(operator_table(), known).source == HudiSource(
        "s3a://lake/bronze", "Earliest", "Fenced", 3, "Snapshot", deletes=True, merger="org.example.Mine"
    )


def test_an_application() -> None:
    of = writer(application={"mainFile": "local:///opt/app/main.py", "arguments": ["a", "b"]})
    job = parsed(operator_table(), of)
    assert job.source is None
    assert job.application is not None
    assert (job.application.main_file, job.application.arguments) == ("/opt/app/main.py", ("a", "b"))


@pytest.mark.parametrize(
    "merge",
    [
        {"mode": "EventTime"},
        {"mode": "CommitTime"},
        {"mode": "Custom", "custom": {"strategyId": "8d7e2b6a-1b1b-4b1b-8b1b-0123456789ab", "className": "a.B"}},
    ],
    ids=lambda merge: str(merge["mode"]),
)
def test_an_assignment(merge: dict[str, Any]) -> None:
    """The agent's spec of the table is the one of a writer's job."""
    world = Meeting()
    image = {"image": "example/mine:1"} if merge["mode"] == "Custom" else {}
    world.make_table(orderingFields=["ts"], partitionFields=["day"], merge=merge, **image)
    world.run(lambda w: "assignment" in w.kv, seconds=UNTIL)
    spec = OperatorTable.from_object(world.table or {})
    assert TableSpec.of(AssignmentRecord.from_json(world.assignment())) == parsed(spec, writer(source=FILES)).table
    assert TableSpec.of(AssignmentRecord.from_json(world.assignment())).merge.mode == merge["mode"]


def at_work(world: Meeting) -> Any:
    """A writer whose first attempt has registered and waits; its process."""
    world.writer_hang_at = 1
    world.make_writer("load", retryPolicy={"limit": 1, "backoffSeconds": 1})
    world.run(lambda w: (p := w.writer_process("load")) is not None and p.registered, seconds=UNTIL)
    return world.writer_process("load")


def test_the_report_of_an_attempt() -> None:
    """Stage, counters, conflicts: in status of the HudiWriter."""
    world = ready(Meeting())
    process = at_work(world)
    tally = Tally()
    tally.conflict(Conflict(t(1), t(2), ("day=1/fg-1", "day=1/fg-2"), yielded=True))
    tally.committed(t(3), t(4), 12, since=0)
    session: Any = SimpleNamespace(attempt=process.attempt, inc=process.inc, etcd=world.etcd)
    Reporter(session, tally).stage(Stage.COMMITTED)
    world.reconcile()
    world.reconcile()
    status = world.writers["load"]["status"]
    assert (status["records"], status["conflicts"]) == (12, 1)
    assert (status["lastCommit"]["instant"], status["lastCommit"]["completionTime"]) == (t(3), t(4))
    (conflict,) = status["recentConflicts"]
    assert (
        conflict.items()
        >= {
            "instant": t(1),
            "retriedAs": t(3),
            "with": t(2),
            "fileGroups": ["day=1/fg-1", "day=1/fg-2"],
            "yielded": True,
        }.items()
    )
    assert status["attempts"][-1]["incarnation"] == process.inc


def test_more_conflicts_are_counted_than_are_listed() -> None:
    """F647, while the attempt runs and when it has ended."""
    world = ready(Meeting())
    process = at_work(world)
    tally = Tally()
    session: Any = SimpleNamespace(attempt=process.attempt, inc=process.inc, etcd=world.etcd)
    reporter = Reporter(session, tally)
    for number in range(25):
        tally.conflict(Conflict(t(number + 1), t(number + 2), ()))
    reporter.stage(Stage.WRITING)
    world.reconcile()
    world.reconcile()
    status = world.writers["load"]["status"]
    assert (status["conflicts"], status["recentConflicts"][-1]["instant"]) == (25, t(25))
    tally.conflict(Conflict(t(26), t(27), ()))
    world.pods[process.pod].message = termination_message(tally, Failure(FailureClass.USER_ERROR, "no"))
    world._clean_exit(process)
    world.kill(process, 1)
    world.run(lambda w: bool(w.writers["load"]["status"]["attempts"][0].get("class")), seconds=UNTIL)
    assert world.writers["load"]["status"]["conflicts"] == 26


@pytest.mark.parametrize(
    "kind",
    [kind for kind in FailureClass if kind is not FailureClass.STORAGE_UNREACHABLE],
    ids=lambda kind: str(kind.value),
)
def test_the_last_word_of_an_attempt(kind: FailureClass) -> None:
    """Every class that the runtime ends with is one that the operator knows, with its message.

    The counters are the final ones.
    """
    world = ready(Meeting())
    process = at_work(world)
    tally = Tally(commits=2, records=30, last_instant=t(5), last_completion=t(6), conflict_count=4)
    failure = Failure(kind, "said in words")
    pod = world.pods[process.pod]
    pod.message = termination_message(tally, failure)
    world._clean_exit(process)
    world.kill(process, failure.exit_code)
    world.run(lambda w: bool(w.writers["load"]["status"]["attempts"][0].get("class")), seconds=UNTIL)
    (entry, *_) = world.writers["load"]["status"]["attempts"]
    assert (entry["class"], "said in words" in entry["message"]) == (kind.value, True), entry
    assert (entry["records"], entry["conflicts"]) == (30, 4)


# ---- the agent's word on the timeline, and settling


def test_the_report_on_the_timeline() -> None:
    world = ready(Meeting())
    agent = world.agent_process()
    assert agent is not None
    timeline = tl.parse([f"{t(1)}_{t(2)}.commit", f"{t(3)}.commit.requested", f"{t(3)}.inflight"])
    (pending,) = timeline.pending
    commit = ReportedCommit(
        instant=t(1), action="commit", completion_time=t(2), records=5, writer="lake/load", attempt="lake.load-1"
    )
    files = {f"p/f-0_0-1-2_{t(1)}.parquet": 400, f"p/.f-0_{t(2)}.log.1_0-1-2": 90, f"p/f-1_0-1-2_{t(1)}.parquet": 100}
    report = facts.report(timeline, inc=agent.inc, foreigners=(pending,), commits_since={}, newest=(commit,))
    world._agent = lambda process: None  # type: ignore[method-assign]
    world.etcd.put(
        "report/timeline",
        {**report.but(read_cost=read_cost.count(files, timeline)).to_json(), "atMs": world.now_ms},
    )
    world.reconcile()
    world.reconcile()
    shown = world.status("timeline")
    assert (shown["lastInstant"], shown["lastCompletionTime"], shown["pendingCount"]) == (t(1), t(2), 1)
    assert [commit["instant"] for commit in shown["commits"]] == [t(1)]
    assert [item["instant"] for item in shown["foreign"]] == [t(3)]
    assert t(3) in world.condition(world.table, "ForeignWriters")["message"]
    assert world.status("readCost") == {
        "baseBytes": 500,
        "logBytes": 90,
        "fileGroups": 2,
        "fileGroupsWithLogs": 1,
        "logToBasePercent": 18,
    }


@pytest.mark.parametrize(
    "code", ["StorageUnreachable", "TableMismatch", "OtherLockAuthority", "TableNotFound", "MergerMissing"]
)
def test_an_agent_that_cannot_serve(code: str) -> None:
    world = Meeting()
    world.make_table()
    world.run(lambda w: w.agent_process() is not None and w.agent_process().registered, seconds=UNTIL)  # type: ignore[union-attr]
    agent = world.agent_process()
    assert agent is not None
    world._agent = lambda process: None  # type: ignore[method-assign]
    world.etcd.put(
        "report/timeline", facts.error_report(inc=agent.inc, exists=False, code=code, message="why not").to_json()
    )
    world.run(lambda w: "why not" in json.dumps((w.table or {}).get("status")), seconds=UNTIL)
    conditions_ = [c for c in (world.table or {})["status"]["conditions"] if "why not" in c["message"]]
    assert any(c["reason"] == code for c in conditions_), conditions_


def test_adoption_of_pending_instants() -> None:
    """The agent's refusal names them, the operator asks a person, and settles what that
    one has named.
    """
    world = Meeting()
    timeline = tl.parse([f"{t(1)}_{t(2)}.commit", f"{t(3)}.commit.requested", f"{t(3)}.inflight"])
    waiting = adoption.PendingInstants(timeline, timeline.pending, frozenset())
    world.make_table(adoption={"policy": "Adopt"})
    world.run(lambda w: w.agent_process() is not None and w.agent_process().registered, seconds=UNTIL)  # type: ignore[union-attr]
    agent = world.agent_process()
    assert agent is not None
    world._agent = lambda process: None  # type: ignore[method-assign]
    report = adoption.report(
        facts.report(timeline, inc=agent.inc, foreigners=timeline.pending, commits_since={}), waiting
    )
    world.etcd.put("report/timeline", {**report.to_json(), "atMs": 0})
    world.run(
        lambda w: t(3) in w.condition(w.table, "Ready")["message"] + w.condition(w.table, "Stalled")["message"],
        seconds=UNTIL,
    )
    world.change(adoption={"policy": "Adopt", "rollbackInstants": [t(3)]})
    world.run(lambda w: f"instant/{t(3)}" in w.kv, seconds=UNTIL)
    (record,) = [key.value for key in world.names("settle").values()]
    assert (record["reason"], set(record["instants"])) == ("Adopted", {t(3)})
    assert world.etcd.records().adopting(), "the agent waits for what the operator calls adopted"


@pytest.mark.parametrize("outcome", list(Outcome), ids=lambda outcome: str(outcome.value))
def test_a_killed_writer_is_settled_by_both(outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of the operator are swept by the settler, and its outcomes let the operator forget
    the incarnation.
    """
    world = Meeting()
    looked: list[str] = []

    def look(_table: object, instant: str, *, claim: Any, **_: object) -> tuple[Outcome, str]:
        looked.append(instant)
        if outcome not in (Outcome.COMPLETED, Outcome.GONE):
            claim(instant)
        return outcome, instant

    monkeypatch.setattr(settling, "look_and_roll_back", look)
    monkeypatch.setattr(settling.Listing, "of", lambda *_, **__: None)
    monkeypatch.setattr(settling, "sweep", lambda *_: None)
    monkeypatch.setattr(settling, "sweep_unnamed", lambda *_: None)
    settlers: dict[str, Settler] = {}

    def settle_all(process: Any) -> None:
        table: Any = object()
        session: Any = Claims(world, process.inc)
        settler = settlers.setdefault(process.inc, Settler(table, session, "flights", dict, drain=0.0))
        settler.run(world.etcd.records(), stopping=lambda: False)
        for instant in looked:
            world.rolled_back.add(instant)

    world._settle_all = settle_all  # type: ignore[method-assign]
    ready(world, fencing={"drainSeconds": 1})
    world.writer_hang_at = 3
    world.make_writer("load", retryPolicy={"limit": 2, "backoffSeconds": 1})
    world.run(lambda w: (p := w.writer_process("load")) is not None and p.step >= 3, seconds=UNTIL)
    victim = world.writer_process("load")
    assert victim is not None
    world.writer_hang_at = None
    world.kill(victim)
    world.run(
        lambda w: bool(w.names("settle")) and all(k.value["phase"] == "Settled" for k in w.names("settle").values()),
        seconds=UNTIL,
    )
    record = world.kv[f"settle/{victim.inc}"].value
    assert {instant: item["outcome"] for instant, item in record["instants"].items()} == {victim.instant: outcome.value}
    assert looked[0] == victim.instant
    world.run(lambda w: w.is_true(w.writers["load"], "Succeeded"), seconds=UNTIL)

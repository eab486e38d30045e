"""Commits are told to a receiver (R20): real commits, the agent's own HTTP, the receiver of
examples/callback; and agents that are killed.
"""

from __future__ import annotations

import importlib.util
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hudi_contract.requests import CallbackPosition
from hudi_runtime.callback.callback import KEY, CallbackSender
from hudi_runtime.callback.callback_http import Sender
from hudi_runtime.callback.callback_plan import Source
from hudi_runtime.table.hudi import Table as Hudi
from tests.support import ROOT
from tests.support.harness.archived_table import OPTIONS
from tests.support.harness.local import AGENT, Process, Table, World, rows, until
from tests.support.harness.restore_requests import ask, ended, keep, load, write_file
from tests.support.ports import free_ports
from tests.support.world.callback_parts import Store, receiver

pytestmark = pytest.mark.extra


def _address() -> str:
    """An address of this machine that is not its loopback, which an agent never sends to."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent
        except OSError:
            pytest.skip("this machine has no address but its loopback")
        return str(probe.getsockname()[0])


@contextmanager
def _receiver(folder: Path, host: str, port: int) -> Iterator[Any]:
    spec = importlib.util.spec_from_file_location("receiver", ROOT / "examples" / "callback" / "receiver.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    server = module.Receiver(folder, port=port, token="", host=host)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def _events(folder: Path) -> list[dict[str, Any]]:
    file = folder / "events.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _commits(table: Table) -> list[str]:
    return [
        instant.requested
        for instant in table.timeline().completed
        if instant.action in ("commit", "deltacommit", "replacecommit")
    ]


def test_every_commit_is_told_once_over_dead_receivers_and_dead_agents(world: World, tmp_path: Path) -> None:
    host = _address()
    (port,) = free_ports(1, host)
    table = world.table(
        "told", type="MergeOnRead", commitCallback={"url": f"http://{host}:{port}/hook", "timeoutSeconds": 5}
    )
    first = world.agent("agent-told", pod="agent-told-1")
    world.create(table, agent="agent-told", process=first, pod="agent-told-1")
    assert (table.get("done/callback") or {})["completionTime"] == "0"
    gate = world.folder / "gate-told"
    batches = [
        {"rows": rows(range(5), "a", "one", 1)},
        {"rows": rows(range(3, 9), "a", "two", 2)},
        {"rows": rows(range(5), "a", "dead", 9), "gate": str(gate)},
    ]
    writer = table.writer("writer", python={"batches": batches})
    until("the third write is under way", Path(f"{gate}.reached").exists, alive=writer)
    (victim,) = table.pending()
    waiting = until(
        "the agent says what waits",
        lambda: (r := table.get("report/callback") or {}).get("undelivered") == 2 and r,
        alive=first,
    )
    assert (waiting["reason"], waiting["delivered"]) == ("ConnectionFailed", 0)
    first.kill()
    writer.kill()
    incs = [table.fence(process) for process in (first, writer)]
    second = world.agent("agent-told", pod="agent-told-2")
    world.admit_agent(table, "agent-told", pod="agent-told-2")
    until("swept", lambda: all(table.outcomes(inc) is not None for inc in incs), alive=second)
    assert table.pending() == set()
    with _receiver(tmp_path, host, port):
        until("both commits are told", lambda: len(_events(tmp_path)) == 3, alive=second)
        next_writer = table.writer("writer", python={"batches": batches[:2]}, run=2)
        assert next_writer.wait() == 0, next_writer.log()[-4000:]
        until("the new commits are told", lambda: len(_events(tmp_path)) == 5, alive=second)
    begun, *events = _events(tmp_path)
    assert (begun["type"], begun["data"]["afterCompletionTime"]) == ("io.hudioperator.table.started.v1", "0")
    assert [event["subject"] for event in events] == _commits(table)
    assert victim not in {event["subject"] for event in events}
    assert [event["sequence"] for event in events] == sorted(event["sequence"] for event in events)
    completions = {instant.requested: instant.completion for instant in table.timeline().completed}
    for event in events:
        data = event["data"]
        assert data["completionTime"] == event["sequence"] == completions[event["subject"]]
        assert (data["table"], data["writer"], data["action"], data["operation"]) == (
            "told",
            "default/writer",
            "deltacommit",
            "UPSERT",
        )
    assert events[0]["data"]["attempt"] == writer.name
    assert events[-1]["data"]["attempt"] == next_writer.name
    assert [event["data"]["records"] for event in events[:2]] == [
        {"inserted": 5, "updated": 0, "deleted": 0},
        {"inserted": 4, "updated": 2, "deleted": 0},
    ]
    done = until(
        "all is delivered", lambda: (r := table.get("report/callback") or {}).get("delivered") == 5 and r, alive=second
    )
    assert (done["undelivered"], done["failures"], done["message"]) == (0, 0, "")
    second.terminate()
    assert second.wait() == 0, second.log()[-3000:]


def test_a_restore_is_told(world: World, agent: Process, tmp_path: Path) -> None:
    host = _address()
    (port,) = free_ports(1, host)
    table = world.table("told-back", commitCallback={"url": f"http://{host}:{port}/"})
    world.create(table, agent=AGENT, process=agent)
    landing = world.lake / "landing-told-back"
    write_file(landing, 1, rows(range(3), "a", "kept", 1))
    load(table, landing, run=1)
    keep(table, "before", agent)
    write_file(landing, 2, rows(range(3, 6), "a", "undone", 1))
    load(table, landing, run=2)
    kept, undone = _commits(table)
    with _receiver(tmp_path, host, port):
        until("both commits are told", lambda: len(_events(tmp_path)) == 3, alive=agent)
        ask(table, "n1", "before", names=("before",))
        done = ended(table, "n1", agent)
        assert done["result"] == "Completed"
        until("the restore is told", lambda: len(_events(tmp_path)) == 4, alive=agent)
    event = _events(tmp_path)[-1]
    assert [e["subject"] for e in _events(tmp_path)[1:]] == [kept, undone, done["instant"]]
    assert event["type"] == "io.hudioperator.table.restored.v1"
    told = {key: event["data"][key] for key in ("boundaryCompletionTime", "undone", "undoneInstants", "savepoint")}
    assert told == {
        "boundaryCompletionTime": done["boundary"],
        "undone": 1,
        "undoneInstants": [undone],
        "savepoint": "before",
    }


def test_what_hudi_has_archived_is_told_as_a_gap(world: World) -> None:
    """Hudi's own archive, and the numbers of its commits."""
    spark, path = world.spark(), world.url(world.lake / "gap")
    for number in range(5):
        frame = spark.createDataFrame(
            [(number, "a", "v", number), (100, "a", "v", number)], "id int, p string, v string, ts long"
        )
        frame.write.format("hudi").options(
            **{**OPTIONS, "hoodie.table.name": "gap", "hudioperator.writer": "lake/live"}
        ).mode("append").save(path)
    table = Hudi(spark, path)
    timeline, lost = table.timeline(), table.archived_instants()
    assert lost
    store = Store()
    store.put(KEY, CallbackPosition(delivered=1).to_json())
    etcd: Any = store
    with receiver() as server:
        sender = Sender(server.url, timeout=10, folder=None, refused=lambda address: False)
        callback_sender = CallbackSender(
            table, etcd, Source("lake", "gap", "0" * 16, path), sender, table_services=False
        )
        callback_sender._thread = threading.current_thread()
        callback_sender.consider(timeline, "9" * 17)
        callback_sender.step()
        gap, *events = server.events
    assert gap["type"] == "io.hudioperator.table.archived.v1"
    assert gap["data"]["commits"] == len(lost)
    assert (gap["data"]["firstCompletionTime"], gap["data"]["lastCompletionTime"]) == (
        min(i.completion for i in lost),
        max(i.completion for i in lost),
    )
    assert [event["subject"] for event in events] == [i.requested for i in timeline.completed if i.action == "commit"]
    assert len(events) + len(lost) == 5
    assert events[-1]["data"]["writer"] == "lake/live"
    assert events[-1]["data"]["records"] == {"inserted": 1, "updated": 1, "deleted": 0}

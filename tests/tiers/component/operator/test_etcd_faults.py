"""An etcd that was set back or is full, and a clock that is ahead, with the operator's planner and
etcd adapter, and real sessions (protocol.md, Assumptions; I1, I2, I10).

No API server is needed for what the operator decides here: the test keeps the HudiTable, and
performs what concerns the gate and its status. The gateway asks a real one what time it is.
"""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_operator.model.ports import Fatal, Retryable
from hudi_operator.plan.gate.trust import UNFREEZE_ANNOTATION
from tests.support.awaited import run
from tests.support.harness.gateway import CLOCK_LEEWAY, Gateway, Pod, api_server
from tests.support.harness.other_clock import VARIABLE, library
from tests.support.harness.replica import NAMESPACE, Replica, T, agent_reports, huditable, stalled
from tests.support.harness.servers import Cluster, Etcd, wait_for
from tests.support.harness.writer_process import WriterProcess

JsonDict = dict[str, Any]

HEARTBEAT_LOST = 16
QUOTA = 16 * 2**20


@pytest.fixture
def own_etcd(tmp_path: Path) -> Iterator[Etcd]:
    """An etcd that the test may break."""
    (tmp_path / "etcd").mkdir()
    server = Etcd(tmp_path / "etcd", f"--quota-backend-bytes={QUOTA}")
    server.start()
    try:
        server.set_up_users()
        yield server
    finally:
        server.stop()


def test_nobody_writes_to_an_etcd_that_was_set_back_until_a_person_has_looked(own_etcd: Etcd, tmp_path: Path) -> None:
    table, data, backup = huditable(), own_etcd.directory / "data", own_etcd.directory / "backup"
    first = Replica(own_etcd, table, {})
    first.until("closed")
    agent_reports(own_etcd)
    first.until("open")
    writers = WriterProcess(own_etcd, tmp_path, T, {name: first.admit(name) for name in ("one", "two")})
    writers.commit_on(3)
    own_etcd.stop()
    shutil.copytree(data, backup)
    own_etcd.start()
    writers.commit_on(5)
    wait_for("an answer", lambda: answers(first))
    notes = first.notes.write()
    first.close()
    # No operator runs while it is restored, and none has seen it.
    own_etcd.stop()
    shutil.rmtree(data)
    shutil.copytree(backup, data)
    committed = writers.committed()
    own_etcd.start()
    wait_for(
        "the writers have ended", lambda: all(w.get("halted") == HEARTBEAT_LOST for w in writers.writers().values())
    )
    reasons = [w["haltedFor"] for w in writers.writers().values()]
    assert all("went back from" in reason for reason in reasons), reasons
    assert writers.committed() == committed
    writers.kill()

    second = Replica(own_etcd, table, notes)
    assert second.look() == "frozen"
    second.look()
    found = stalled(table)
    assert (found["status"], found["reason"]) == ("True", "Frozen")
    assert "went back from" in found["message"]
    second.unlock_dead()
    third = WriterProcess(own_etcd, tmp_path, T, {"three": second.admit("three")})
    wait_for("it is refused", lambda: "HUDIOP-NOT-ADMITTED" in third.writers()["three"]["error"])
    word = re.search(rf"{UNFREEZE_ANNOTATION}=([\d-]+)", found["message"])
    assert word is not None
    table["metadata"]["annotations"] = {UNFREEZE_ANNOTATION: f"1{word[1]}"}
    assert second.look() == "frozen", "a word about another gate"
    assert third.writers()["three"]["commits"] == 0
    # A person has looked.
    table["metadata"]["annotations"] = {UNFREEZE_ANNOTATION: word[1]}
    second.until("open")
    third.commit_on(3)
    second.look()
    assert stalled(table)["status"] == "False"
    assert second.look() == "open"
    third.kill()
    second.close()


def test_an_etcd_set_back_below_a_higher_revision_freezes_and_forgets_no_fence(own_etcd: Etcd) -> None:
    """F620: the files of a backup come back, and others write until the revision that the operator
    has seen last is passed. A fence is lost, and nothing tells of it but the pulse.
    """
    table, data, backup = huditable(), own_etcd.directory / "data", own_etcd.directory / "backup"
    first = Replica(own_etcd, table, {})
    first.until("closed")
    agent_reports(own_etcd)
    first.until("open")
    run(first.pulse.beat())
    own_etcd.stop()
    shutil.copytree(data, backup)
    for times in (1, 2):
        own_etcd.start()
        wait_for("a pulse after the backup", lambda each=first: beats(each))
        settle = {"phase": "Fenced", "reason": "PodTerminated", "times": {}}
        assert run(first.store.fence(T, inc=f"dead-{times}", attempt="", settle=settle, if_not_alive=False))
        notes, seen = first.notes.write(), max(first.store.floors().values())
        first.close()
        own_etcd.stop()
        shutil.rmtree(data)
        shutil.copytree(backup, data)
        own_etcd.start()
        wait_for("it answers", lambda: serves(own_etcd))
        while own_etcd.revision() <= seen + 10:
            own_etcd.put("/hudi/tables/filler", {"n": 1})
        second = Replica(own_etcd, table, notes)
        assert not own_etcd.read(f"/hudi/control/{T}/fence/"), "the fence is lost"
        if times == 1:  # the pulse finds it before a table is looked at, and is written again
            for _ in range(3):
                run(second.pulse.beat())
        assert second.look() == "frozen"
        assert second.told == ["set back"]
        # Its successor knows it, too: from the Lease, or, if that was not written, from the pulse.
        second.close()
        first = Replica(own_etcd, table, second.notes.write() if times == 2 else notes)
        assert first.look() == "frozen"
        first.look()
        found = stalled(table)
        assert (found["status"], found["reason"]) == ("True", "Frozen")
        assert "knows nothing any more of its revision" in found["message"]
        word = re.search(rf"{UNFREEZE_ANNOTATION}=([\d-]+)", found["message"])
        assert word is not None
        table["metadata"]["annotations"] = {UNFREEZE_ANNOTATION: word[1]}
        first.until("open")
        run(first.pulse.beat())
        assert first.look() == "open"
        own_etcd.stop()
    first.close()


def test_the_operator_is_told_that_etcd_is_full_and_goes_on_when_there_is_room(own_etcd: Etcd) -> None:
    replica = Replica(own_etcd, huditable(), {})
    assert replica.look() == "closed"
    for n in range(30):
        done = own_etcd.ctl("root", "put", f"/filler/{n}", stdin="x" * 900_000)
        if done.returncode:
            break
    assert "space exceeded" in done.stderr, done.stderr
    with pytest.raises(Fatal, match="space exceeded: make room in etcd"):
        replica.admit("one")
    assert replica.look() == "closed", "it can still be read"
    # As docs/operate/operations.md says.
    assert own_etcd.ctl("root", "del", "--prefix", "/filler/").returncode == 0
    revision = json.loads(own_etcd.ctl("root", "endpoint", "status", "-w", "json").stdout)[0]["Status"]["header"][
        "revision"
    ]
    for command in (("compaction", str(revision), "--physical"), ("defrag",), ("alarm", "disarm")):
        done = own_etcd.ctl("root", *command)
        assert done.returncode == 0, done.stderr
    replica.admit("one")
    replica.close()


def serves(etcd: Etcd) -> bool:
    try:
        return etcd.revision() > 0
    except Retryable:
        return False


def beats(replica: Replica) -> bool:
    try:
        run(replica.pulse.beat())
    except Retryable:
        return False
    return True


def answers(replica: Replica) -> bool:
    try:
        replica.look()
    except Retryable:
        return False
    return True


def test_writers_outlive_a_gateway_and_their_tokens(own_etcd: Etcd, tmp_path: Path) -> None:
    """Two real sessions behind two gateways: one of these dies, then the tokens expire that they
    have begun with. Neither is noticed but for a moment.
    """
    first, gateways = Replica(own_etcd, huditable(), {}), []
    first.until("closed")
    agent_reports(own_etcd)
    first.until("open")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        gateways.append(Gateway(own_etcd, tmp_path / name))
    issuer = gateways[0].issuer
    pods = {name: first.admit(name) for name in ("one", "two")}
    files = {name: tmp_path / f"token-{name}" for name in pods}

    def give(seconds: float) -> float:
        """Tokens that are good for so long; returns when they are good no more."""
        until = int(time.time() + seconds)
        for name, file in files.items():
            file.write_text(issuer.token(Pod(NAMESPACE, name, f"uid-{name}"), exp=until))
        return until + CLOCK_LEEWAY

    try:
        for gateway in gateways:
            gateway.tell_keys(issuer)
            gateway.start()
        endpoints = ",".join(gateway.endpoint for gateway in gateways)
        over = give(60)
        way = {
            name: {"endpoints": endpoints, "cert": "", "key": "", "token": str(file)} for name, file in files.items()
        }
        writers = WriterProcess(own_etcd, tmp_path, T, pods, way=way)
        give(3600)
        writers.commit_on(3)
        gateways[0].stop()
        writers.commit_on(3)
        wait_for("the first tokens have expired", lambda: time.time() > over, seconds=90)
        writers.commit_on(3)
        assert {writer["state"] for writer in writers.writers().values()} == {"LIVE"}
        assert writers.together == 0
        writers.kill()
    finally:
        for gateway in gateways:
            gateway.stop()
        first.close()


def test_a_host_whose_clock_is_ahead_moves_no_clock(cluster: Cluster, own_etcd: Etcd, tmp_path: Path) -> None:
    """It is told so, leaves nothing behind, and nobody waits for it (F382, I10)."""
    replica = Replica(own_etcd, huditable(), {})
    replica.until("closed")
    agent_reports(own_etcd)
    replica.until("open")
    gateway = Gateway(own_etcd, tmp_path, *api_server(cluster, tmp_path))
    gateway.start()
    writers = []

    def writer(name: str, **environment: str) -> WriterProcess:
        (tmp_path / name).mkdir()
        token = tmp_path / f"token-{name}"
        token.write_text(gateway.issuer.token(Pod(NAMESPACE, name, f"uid-{name}")))
        way = {name: {"endpoints": gateway.endpoint, "cert": "", "key": "", "token": str(token)}}
        made = WriterProcess(
            own_etcd, tmp_path / name, T, {name: replica.admit(name)}, way=way, environment=environment
        )
        writers.append(made)
        return made

    try:
        right = writer("right")
        right.commit_on(2)
        wrong = writer("wrong", LD_PRELOAD=str(library(tmp_path / "clock")), **{VARIABLE: "60"})
        error = str(wait_for("it is refused", lambda: wrong.writers()["wrong"]["error"] or None))
        for word in ("[HUDIOP-CLOCK-AHEAD] the wall clock of host ", "more than 5 s", "(rule clock)", "set the clock"):
            assert word in error, error
        wait_for("its next turn", lambda: wrong.writers()["wrong"]["acquired"] >= 2)
        assert not list((wrong.folder / ".hoodie/timeline").iterdir()), "a file without a record"
        incs = {value["inc"] for value in own_etcd.read(f"/hudi/tables/{T}/instant/").values()}
        assert wrong.writers()["wrong"]["inc"] not in incs, "a record without a file"
        assert wrong.writers()["wrong"]["state"] == "LIVE"
        right.commit_on(3, seconds=20)
        assert not right.writers()["right"]["error"]
    finally:
        for each in writers:
            each.kill()
        gateway.stop()
        replica.close()

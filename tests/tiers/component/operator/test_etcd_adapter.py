"""The operator's transactions and watch against a real etcd: every compare that the protocol asks
for is one that can fail.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hudi_operator.adapters.etcd import EtcdStore, Revisions
from hudi_operator.adapters.etcd_watch import Change, PrefixWatch
from hudi_operator.model import doubts
from hudi_operator.model.ports import Fatal, OutcomeUnknown
from tests.support.awaited import run
from tests.support.harness.etcd_connections import connect
from tests.support.harness.servers import Etcd, wait_for
from tests.support.ports import free_ports

T = "00000000000000aa00000000000000aa"
SETTLE = {"phase": "Fenced", "reason": "LeaseGone", "times": {}}


@pytest.fixture
def store(etcd: Etcd) -> Iterator[EtcdStore]:
    connection = connect(etcd)
    yield EtcdStore(connection, "/hudi", revisions=Revisions())
    connection.close()
    etcd.ctl("root", "del", "--prefix", f"/hudi/control/{T}")
    etcd.ctl("root", "del", "--prefix", f"/hudi/tables/{T}")


def table(key: str) -> str:
    return f"/hudi/tables/{T}/{key}"


def fence(store: EtcdStore, inc: str = "i", *, if_not_alive: bool = False) -> bool:
    return run(store.fence(T, inc=inc, attempt="ns.p-1", settle=SETTLE, if_not_alive=if_not_alive))


def read(store: EtcdStore) -> Any:
    return run(store.read_table(T, "agent-x"))


def test_a_request_is_put_replaced_and_taken_back(store: EtcdStore) -> None:
    for nonce in ("1", "2"):
        assert run(store.put_request(T, id="service-clean", value={"nonce": nonce}))
        assert read(store).requests["service-clean"].value == {"nonce": nonce}
    assert run(store.put_request(T, id="service-clean", value=None))
    assert read(store).requests == {}


def test_a_sighting_is_noted_and_forgotten(store: EtcdStore) -> None:
    for node in ("n1", "n2"):
        assert run(store.put_seen(T, inc="i", value={"inc": "i", "node": node}))
        assert read(store).seen["i"].value["node"] == node
    assert run(store.put_seen(T, inc="i", value=None))
    assert read(store).seen == {}


def test_a_read_tells_which_other_agents_have_the_table(store: EtcdStore) -> None:
    assert run(store.put_assignment(T, agent="agent-b", value={"T": T}))
    others = [f"agent-{n}" for n in "abc"] + [f"agent-{n}" for n in range(60)]
    facts = run(store.read_table(T, "agent-x", others))
    assert (facts.assignment, facts.elsewhere) == (None, ("agent-b",))
    assert run(store.put_assignment(T, agent="agent-b", value=None))
    assert run(store.read_table(T, "agent-x", others)).elsewhere == ()


def test_a_trial_ends_with_all_that_was_put_there(store: EtcdStore, etcd: Etcd) -> None:
    """Whatever the agent has put, and only of this trial (F617)."""
    other = "00000000000000ff00000000000000ff"
    for id in (T, other):
        assert run(store.put_admit(id, attempt="ns.hudi-agent-x-1", role="agent"))
        assert run(store.put_assignment(id, agent="agent-x", value={"T": id}))
        for key in ("report/timeline", "lock", "unknown/x"):
            etcd.put(f"/hudi/tables/{id}/{key}", {"inc": "i"})
    assert run(store.end_trial(T, agents=("agent-x", "agent-b")))
    assert not etcd.read(f"/hudi/control/{T}/") | etcd.read(f"/hudi/tables/{T}/")
    assert list(etcd.read("/hudi/control/agents/agent-x/")) == [f"/hudi/control/agents/agent-x/{other}"]
    assert len(etcd.read(f"/hudi/tables/{other}/")) == 3
    assert run(store.end_trial(other, agents=("agent-x",)))


def test_one_read_shows_all_keys_of_a_table(store: EtcdStore, etcd: Etcd) -> None:
    assert run(store.put_gate(T, {"state": "open"}, expected_mod=0))
    assert run(store.put_admit(T, attempt="ns.p-1", role="writer"))
    assert run(store.put_assignment(T, agent="agent-x", value={"T": T}))
    for key in (
        "writer/i",
        "lock",
        "clock",
        "queue/i-n",
        "instant/1",
        "report/timeline",
        "report/attempt/ns.p-1",
        "done/x",
        "unknown/x",
    ):
        etcd.put(table(key), {"inc": "i"})
    facts = read(store)
    assert facts.gate.value == {"state": "open"}
    assert facts.assignment.value == {"T": T}
    assert list(facts.admits) == ["ns.p-1"]
    assert sorted(facts.reports) == ["attempt/ns.p-1", "timeline"]
    assert (list(facts.writers), list(facts.queue), list(facts.instants), list(facts.done)) == (
        ["i"],
        ["i-n"],
        ["1"],
        ["x"],
    )
    assert facts.lock.create_revision == facts.lock.mod_revision > 0
    assert facts.revision >= facts.lock.mod_revision
    assert store.floors() == {facts.cluster_id: facts.revision}


def test_gates_of_many_tables_are_read_in_few_requests(store: EtcdStore, etcd: Etcd) -> None:
    """F652: and they are what a read of each table shows. Anybody makes HudiTables of any path."""
    ids = [f"{n:032x}" for n in range(120)]
    there = (ids[0], ids[48], ids[49], ids[119])
    for id in there:
        assert run(store.put_gate(id, {"state": "closed", "tableUID": id}, expected_mod=0))
        etcd.put(f"/hudi/tables/{id}/report/timeline", {"exists": True})
        etcd.put(f"/hudi/tables/{id}/report/catalog", {})
    asked = list[str]()
    counting = EtcdStore(store._connection, "/hudi", revisions=Revisions(), observe=lambda name, _: asked.append(name))
    found = run(counting.read_gates([*ids, ids[0]]))
    assert asked == ["read-gates"] * 3
    assert set(found) == set(ids)
    for id in ids:
        whole = run(store.read_table(id, ""))
        assert found[id].gate == whole.gate
        assert dict(found[id].reports) == {k: v for k, v in whole.reports.items() if k == "timeline"}
        assert (found[id].gate is not None) is (id in there)
    for id in there:
        etcd.ctl("root", "del", "--prefix", f"/hudi/control/{id}")
        etcd.ctl("root", "del", "--prefix", f"/hudi/tables/{id}")


def test_what_cannot_be_read_is_told_apart_from_the_rest(store: EtcdStore, etcd: Etcd) -> None:
    """F46: one value that is not JSON, or not what it should be, once made the
    whole table unreadable.
    """
    values = {
        "lock": "{not JSON",
        "settle/i": '{"phase":"Quarantined"}',
        "writer/i": "[1]",
        "report/timeline": '{"exists":true,"pendingCount":"many"}',
    }
    for key, value in values.items():
        etcd.ctl("root", "put", table(key), value)
    found = read(store)
    assert {each.key for each in doubts.unreadable(found)} == set(values)
    assert (found.writers["i"].value, found.reports["timeline"].value) == ({"inc": "i"}, {"exists": True})
    assert found.lock.unreadable
    assert not run(store.unlock(T, inc="i", create_revision=found.lock.create_revision))
    assert read(store).lock is not None


def test_a_gate_is_changed_only_as_it_was_read(store: EtcdStore) -> None:
    assert run(store.put_gate(T, {"state": "closed"}, expected_mod=0))
    assert not run(store.put_gate(T, {"state": "open"}, expected_mod=0)), "exists already"
    mod = read(store).gate.mod_revision
    assert run(store.put_gate(T, {"state": "open"}, expected_mod=mod))
    assert not run(store.put_gate(T, {"state": "frozen"}, expected_mod=mod))
    mod, other = run(store.read_table(T, "")).gate.mod_revision, "00000000000000cc00000000000000cc"
    assert not run(store.put_gate(T, {"state": "open"}, expected_mod=mod, others={other: 5})), "F277: it is not there"
    assert run(store.put_gate(other, {"state": "closed"}, expected_mod=0, others={T: mod}))
    assert not run(store.put_gate(T, {"state": "open"}, expected_mod=mod, others={other: 0})), "it came meanwhile"
    seen = run(store.read_table(other, "")).gate.mod_revision
    assert run(store.put_gate(T, {"state": "open"}, expected_mod=mod, others={other: seen}))


def test_a_gate_is_put_only_while_nobody_holds_the_lock(store: EtcdStore, etcd: Etcd) -> None:
    """F436: with another mode."""
    assert run(store.put_gate(T, {"state": "closed"}, expected_mod=0))
    mod = run(store.read_table(T, "")).gate.mod_revision
    etcd.put(table("lock"), {"inc": "i"})
    assert not run(store.put_gate(T, {"state": "closed"}, expected_mod=mod, unlocked=True))
    assert run(store.put_gate(T, {"state": "closed"}, expected_mod=mod))
    etcd.delete(table("lock"))
    mod = run(store.read_table(T, "")).gate.mod_revision
    assert run(store.put_gate(T, {"state": "closed"}, expected_mod=mod, unlocked=True))


def test_a_fence_is_permanent_and_takes_heartbeat_and_admission_with_it(store: EtcdStore, etcd: Etcd) -> None:
    run(store.put_admit(T, attempt="ns.p-1", role="writer"))
    etcd.put(table("alive/i"), {"inc": "i", "n": 1})
    assert not fence(store, if_not_alive=True), "it came back (F29)"
    assert read(store).settles == {}
    assert fence(store)
    facts = read(store)
    assert facts.fences["i"].value["reason"] == "LeaseGone"
    assert facts.settles["i"].mod_revision == facts.fences["i"].mod_revision, "one transaction"
    assert facts.alive == {}
    assert facts.admits == {}
    assert not fence(store), "a record that moved on is not set back"


def test_instants_are_adopted_in_one_transaction_behind_the_gate_that_was_read(store: EtcdStore, etcd: Etcd) -> None:
    """I7: record, fence and ownership at once, or nothing."""
    old, other = "20260101000000000", "20260101000001000"
    settle = {
        **SETTLE,
        "reason": "Adopted",
        "instants": {t: {"action": "commit", "outcome": None, "failures": 0} for t in (old, other)},
    }

    def adopt(inc: str, gate_mod: int) -> bool:
        return bool(run(store.adopt(T, inc=inc, settle=settle, gate_mod=gate_mod)))

    assert run(store.put_gate(T, {"state": "closed"}, expected_mod=0))
    mod = read(store).gate.mod_revision
    assert not adopt("former", mod + 1), "another gate"
    etcd.put(table(f"instant/{other}"), {"inc": "i"})
    assert not adopt("former", mod), "one has an owner by now"
    assert (read(store).settles, read(store).fences, list(read(store).instants)) == ({}, {}, [other])
    etcd.ctl("root", "del", table(f"instant/{other}"))
    assert adopt("former", mod)
    facts = read(store)
    assert {name: item.value["inc"] for name, item in facts.instants.items()} == {old: "former", other: "former"}
    assert facts.instants[old].value["state"] == "Pending"
    assert (
        facts.settles["former"].mod_revision == facts.fences["former"].mod_revision == facts.instants[old].mod_revision
    )
    assert not adopt("former", mod), "twice"


def test_only_the_lock_of_a_fenced_incarnation_is_deleted(store: EtcdStore, etcd: Etcd) -> None:
    etcd.put(table("lock"), {"inc": "i"})
    token = read(store).lock.create_revision
    assert not run(store.unlock(T, inc="i", create_revision=token)), "not fenced"
    assert fence(store)
    assert fence(store, "other")
    assert not run(store.unlock(T, inc="other", create_revision=token)), "another one's"
    assert not run(store.unlock(T, inc="i", create_revision=token - 1)), "an earlier acquisition"
    assert run(store.unlock(T, inc="i", create_revision=token))
    etcd.put(table("lock"), {"inc": "j"})
    assert not run(store.unlock(T, inc="i", create_revision=token)), "the successor's lock"
    assert read(store).lock.value == {"inc": "j"}


def test_a_lock_that_changes_hands_after_it_was_read_is_not_deleted(
    store: EtcdStore, etcd: Etcd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I1: between the operator's read and its transaction the owner released, and somebody else got
    the lock.
    """
    assert fence(store)
    etcd.put(table("lock"), {"inc": "i"})
    token = read(store).lock.create_revision
    send = store._send

    async def changed_hands(action: str, request: Any, *, writes: bool) -> Any:
        answer = await send(action, request, writes=writes)
        if action == "read-lock":
            etcd.delete(table("lock"))
            etcd.put(table("lock"), {"inc": "j"})
        return answer

    monkeypatch.setattr(store, "_send", changed_hands)
    assert not run(store.unlock(T, inc="i", create_revision=token))
    assert read(store).lock.value == {"inc": "j"}


def test_a_record_is_changed_only_as_it_was_read(store: EtcdStore) -> None:
    fence(store)
    mod = read(store).settles["i"].mod_revision
    assert run(store.update_settle(T, inc="i", value={**SETTLE, "phase": "Terminating"}, expected_mod=mod))
    assert not run(store.update_settle(T, inc="i", value={**SETTLE, "phase": "Draining"}, expected_mod=mod))


def test_settled_removes_what_belonged_to_it_however_much_it_is(store: EtcdStore, etcd: Etcd) -> None:
    fence(store)
    etcd.put(table("writer/i"), {"inc": "i"})
    command = "\n".join(f'put {table(f"instant/{n:03}")} "{{}}"' for n in range(120)) + "\n"
    etcd.ctl("root", "txn", stdin="\n" + command[: command.index(f"put {table('instant/100')}")] + "\n\n")
    etcd.ctl("root", "txn", stdin="\n" + command[command.index(f"put {table('instant/100')}") :] + "\n\n")
    facts = read(store)
    assert len(facts.instants) == 120
    instants = [(name, stored.mod_revision) for name, stored in facts.instants.items()]
    mod = facts.settles["i"].mod_revision
    changed = [*instants[:-1], (instants[-1][0], 1)]
    settled = {**SETTLE, "phase": "Settled"}
    assert not run(store.finish_settle(T, inc="i", value=settled, expected_mod=mod, instants=changed)), (
        "an instant changed"
    )
    left = [(name, stored.mod_revision) for name, stored in read(store).instants.items()]
    assert run(store.finish_settle(T, inc="i", value=settled, expected_mod=mod, instants=left))
    facts = read(store)
    assert (facts.instants, facts.writers, facts.settles["i"].value["phase"]) == ({}, {}, "Settled")


def test_a_record_is_collected_with_its_fence_and_only_as_it_was_read(store: EtcdStore, etcd: Etcd) -> None:
    fence(store)
    fence(store, "other")
    mod = read(store).settles["i"].mod_revision
    assert not run(store.collect(T, inc="i", expected_mod=mod - 1)), "another state of the record"
    etcd.put(table("writer/i"), {"inc": "i"})
    assert not run(store.collect(T, inc="i", expected_mod=mod)), "it is registered"
    etcd.delete(table("writer/i"))
    assert run(store.collect(T, inc="i", expected_mod=mod))
    facts = read(store)
    assert (set(facts.settles), set(facts.fences)) == ({"other"}, {"other"})


def test_without_an_answer_a_write_is_unknown_and_a_refusal_is_final(etcd: Etcd) -> None:
    connection = connect(etcd, timeout=0.5)
    store = EtcdStore(connection, "/hudi", revisions=Revisions())
    read(store)
    etcd.pause()
    try:
        with pytest.raises(OutcomeUnknown):
            run(store.put_gate(T, {"state": "open"}, expected_mod=0))
    finally:
        etcd.resume()
        connection.close()
    connection = connect(etcd, identity="gateway")
    with pytest.raises(Fatal, match="permission denied"):
        run(EtcdStore(connection, "/hudi", revisions=Revisions()).put_gate(T, {"state": "open"}, expected_mod=0))
    connection.close()
    etcd.ctl("root", "del", "--prefix", f"/hudi/control/{T}")


def test_a_member_that_is_not_there_is_left_for_the_next(etcd: Etcd) -> None:
    dead = f"https://127.0.0.1:{free_ports(1)[0]}"
    connection = connect(etcd, endpoints=(dead, etcd.endpoint))
    store = EtcdStore(connection, "/hudi", revisions=Revisions())
    wait_for("an answer", lambda: _answers(lambda: read(store)), seconds=10)
    assert connection.endpoint == etcd.endpoint
    connection.close()


def _answers(call: Callable[[], object]) -> bool:
    try:
        call()
    except OSError:
        raise
    except Exception:
        return False
    return True


def test_a_watch_that_works_again_is_repeated_soon_when_it_breaks_once_more(etcd: Etcd) -> None:
    """F50: the back-off is for a server that does not answer.

    After hours of service the old failures do not count any more.
    """
    connection = connect(etcd)
    seen: list[Change] = []
    lost = threading.Semaphore(0)
    watch = PrefixWatch(connection, f"/hudi/tables/{T}/", on_changes=seen.extend, on_lost=lost.release)
    watch.start()
    assert lost.acquire(timeout=10)
    for number in range(8):
        etcd.put(table(f"report/{number}"), {})
        wait_for(f"event {number}", lambda: len(seen) > number, seconds=20)  # noqa: B023 - called at once
        started = time.monotonic()
        watch._call.cancel()
    etcd.put(table("report/last"), {})
    wait_for("the last event", lambda: len(seen) == 9, seconds=20)
    assert time.monotonic() - started < 2
    watch.close()
    connection.close()
    etcd.ctl("root", "del", "--prefix", f"/hudi/tables/{T}")


def test_a_watch_goes_on_where_it_was_over_a_restart_and_looks_at_everything_after_a_compaction(etcd: Etcd) -> None:
    connection = connect(etcd)
    seen: list[Change] = []
    lost = threading.Semaphore(0)
    watch = PrefixWatch(connection, f"/hudi/tables/{T}/", on_changes=seen.extend, on_lost=lost.release)
    watch.start()
    assert lost.acquire(timeout=10), "once at the start"
    etcd.put(table("report/a"), {})
    wait_for("event", lambda: len(seen) == 1)
    etcd.stop()
    etcd.start()
    wait_for("etcd", lambda: etcd.ctl("root", "put", table("report/b"), "{}").returncode == 0)
    wait_for("event after the restart", lambda: len(seen) == 2, seconds=40)
    assert [change.key for change in seen] == [table("report/a"), table("report/b")]
    assert not lost.acquire(blocking=False), "nothing was missed"
    # Behind a compaction: what was missed cannot be told one by one.
    watch.close()
    late = PrefixWatch(connection, f"/hudi/tables/{T}/", on_changes=seen.extend, on_lost=lost.release)
    late._next_revision = seen[0].revision
    revision = seen[-1].revision
    assert etcd.ctl("root", "compaction", str(revision)).returncode == 0
    late.start()
    assert lost.acquire(timeout=10)
    late.close()
    connection.close()
    etcd.ctl("root", "del", "--prefix", f"/hudi/tables/{T}")

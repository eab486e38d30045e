"""Each commit is delivered at least once, in order, whatever happens to the receiver and to the
agent; against a real HTTP server (R20).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from hudi_contract.assignment import CallbackOrder
from hudi_runtime.callback import callback
from hudi_runtime.callback import callback_plan as plan
from hudi_runtime.callback.callback import KEY, REPORT, CallbackSender
from hudi_runtime.callback.callback_http import Sender
from tests.support.world.callback_parts import Commits, Receiver, Store, receiver, t

SOURCE = plan.Source("lake", "orders", "0123456789abcdef0123456789abcdef", "s3a://lake/orders")


@dataclass
class World:
    """One table with a callback, and one agent after the other."""

    server: Receiver
    table: Commits = field(default_factory=Commits)
    etcd: Store = field(default_factory=Store)
    now: float = 1000.0

    def callback_sender(self, *, timeout: float = 10, url: str = "", services: bool = False) -> CallbackSender:
        sender = Sender(url or self.server.url, timeout=timeout, folder=None, refused=lambda address: False)
        made: Any = CallbackSender
        callback_sender: CallbackSender = made(
            self.table,
            self.etcd,
            SOURCE,
            sender,
            table_services=services,
            inc="agent",
            clock=lambda: self.now,
            chance=lambda: 0.0,
        )
        callback_sender._thread = threading.current_thread()  # the test takes its steps
        return callback_sender

    def look(self, callback_sender: CallbackSender) -> None:
        """The agent lists the timeline, with the clock that is past everything.

        Then the sender works.
        """
        callback_sender.consider(self.table.listing(), t(999))
        callback_sender.step()

    def later(self, callback_sender: CallbackSender, seconds: float = 400) -> None:
        self.now += seconds
        callback_sender.step()

    def position(self) -> dict[str, Any]:
        found = self.etcd.get(KEY)
        assert found is not None
        return dict(found.value)

    def report(self) -> dict[str, Any]:
        found = self.etcd.get(REPORT)
        return dict(found.value) if found is not None else {}


@pytest.fixture
def world() -> Iterator[World]:
    with receiver() as server:
        yield World(server)


def test_commits_are_delivered_once_each_in_order_over_restarts(world: World) -> None:
    first = world.callback_sender()
    world.look(first)
    world.table.add(1, 2)
    world.look(first)
    first.stop()
    world.table.add(3, 8)
    world.table.add(4, 5)
    second = world.callback_sender()
    world.look(second)
    world.look(second)
    assert world.server.told() == [t(1), t(4), t(3)]
    world.look(world.callback_sender())
    assert world.server.told() == [t(1), t(4), t(3)], "an agent that starts again repeats nothing that was answered"
    assert (world.position()["completionTime"], world.position()["delivered"]) == (t(8), 4)
    assert world.server.begun == ["0"]


def test_what_was_there_before_the_callback_is_not_told(world: World) -> None:
    world.table.add(1, 2)
    callback_sender = world.callback_sender()
    world.look(callback_sender)
    world.table.add(3, 4)
    world.look(callback_sender)
    assert world.server.told() == [t(3)]
    assert world.server.begun == [t(2)]


def test_a_pending_commit_is_never_told_and_one_that_was_rolled_back_neither(world: World) -> None:
    world.server.answers = [204] * 3 + [500] * 3  # a sender that tells of a pending instant tells of it for ever
    callback_sender = world.callback_sender()
    world.look(callback_sender)
    world.table.names.append(f"{t(1)}.commit.requested")
    world.table.names.append(f"{t(1)}.inflight")
    world.table.add(3, 4)
    world.look(callback_sender)
    world.table.undo(1)
    world.table.add(5, 6, "rollback")
    world.look(callback_sender)
    assert world.server.told() == [t(3)]


@pytest.mark.parametrize("failure", [500, 404, 302, "hang"])
def test_the_position_moves_only_when_the_receiver_has_answered(world: World, failure: int | str) -> None:
    # Long enough for an answer on a machine with much else to do.
    callback_sender = world.callback_sender(timeout=2 if failure == "hang" else 10)
    world.look(callback_sender)
    world.table.add(1, 2)
    world.table.add(3, 4)
    world.server.answers = [failure, failure, 204, failure]
    world.look(callback_sender)
    assert world.position()["completionTime"] == "0"
    assert world.server.told() == [t(1)], "nothing behind it is sent before it"
    world.look(callback_sender)
    assert world.server.told() == [t(1)], "not before its time"
    world.later(callback_sender)
    assert (world.server.told(), world.position()["completionTime"]) == ([t(1)] * 2, "0")
    world.later(callback_sender)
    assert (world.server.told(), world.position()["completionTime"]) == ([t(1)] * 3 + [t(3)], t(2))
    world.later(world.callback_sender())
    fresh = world.callback_sender()
    world.look(fresh)
    assert (world.server.told()[-1], world.position()["completionTime"]) == (t(3), t(4))
    ids = [event["id"] for event in world.server.events]
    assert len(set(ids)) == 2, "a repeat has the id of the first one"


def test_a_receiver_that_was_down_while_others_committed(world: World) -> None:
    callback_sender = world.callback_sender(url="http://127.0.0.1:1/")
    world.look(callback_sender)
    for number in range(1, 41, 2):
        world.table.add(number, number + 1)
        world.look(callback_sender)
        world.now += 60
    report = world.report()
    assert (report["undelivered"], report["oldest"], report["reason"]) == (20, t(2), "ConnectionFailed")
    assert report["failures"] > 3
    back = world.callback_sender()
    world.look(back)
    assert world.server.told() == [t(number) for number in range(1, 41, 2)]
    world.later(back)
    report = world.report()
    assert (report["undelivered"], report["oldest"], report["failures"], report["message"]) == (0, "", 0, "")
    assert (report["delivered"], report["completionTime"]) == (21, t(40))


def test_what_was_archived_meanwhile_is_told_as_a_gap_also_by_the_next_agent(world: World) -> None:
    callback_sender = world.callback_sender(url="http://127.0.0.1:1/")
    world.look(callback_sender)
    for number in (1, 3, 5, 7):
        world.table.add(number, number + 1)
    world.look(callback_sender)
    world.table.archived(1, 3)
    world.look(world.callback_sender())
    types = [event["type"].rsplit(".", 2)[-2] for event in world.server.events]
    assert types == ["archived", "committed", "committed"]
    gap = world.server.events[0]["data"]
    assert (gap["commits"], gap["firstCompletionTime"], gap["lastCompletionTime"]) == (2, t(2), t(4))
    assert world.server.told()[1:] == [t(5), t(7)]
    assert world.position()["lost"] == 2
    reads = world.table.archive_reads
    following = world.callback_sender()
    world.look(following)
    world.table.add(9, 10)
    world.look(following)
    world.table.archived(5)
    world.look(following)
    assert world.server.told()[3:] == [t(9)], "no gap when what is archived was delivered"
    assert world.table.archive_reads == reads + 1, "the archive is read once at the start, and not again"


def test_the_same_agent_sees_the_gap_too(world: World) -> None:
    callback_sender = world.callback_sender()
    world.look(callback_sender)
    world.table.add(1, 2)
    world.table.add(3, 4)
    world.server.answers = [503]
    world.look(callback_sender)
    world.table.archived(1)
    world.look(callback_sender)
    world.later(callback_sender)
    assert [event["type"].rsplit(".", 2)[-2] for event in world.server.events] == ["committed", "archived", "committed"]


def test_a_restore_is_told_and_what_it_undid_is_not_told_any_more(world: World) -> None:
    callback_sender = world.callback_sender()
    world.look(callback_sender)
    world.table.add(1, 2)
    world.look(callback_sender)
    world.server.answers = [500]
    world.table.add(3, 4)
    world.look(callback_sender)
    world.table.undo(3)
    world.table.add(5, 6, "restore")
    record = {
        "result": "Completed",
        "instant": t(5),
        "completionTime": t(6),
        "boundary": t(2),
        "undone": 1,
        "undoneInstants": [t(3)],
        "savepoint": "s",
    }
    world.etcd.put("done/restore-1", record)
    world.table.add(7, 8)
    world.look(callback_sender)
    world.later(callback_sender)
    assert [(e["subject"], e["type"].rsplit(".", 2)[-2]) for e in world.server.events[2:]] == [
        (t(5), "restored"),
        (t(7), "committed"),
    ]


def test_one_that_is_gone_between_listing_and_reading_waits_for_the_next_listing(world: World) -> None:
    callback_sender = world.callback_sender()
    world.look(callback_sender)
    world.table.add(1, 2)
    world.table.add(3, 4)
    listing = world.table.listing()
    world.table.undo(1)
    callback_sender.consider(listing, t(999))
    callback_sender.step()
    assert world.server.events == []
    world.look(callback_sender)
    assert world.server.told() == [t(3)]


def test_two_agents_at_once_leave_nothing_out_and_never_take_the_position_back(world: World) -> None:
    old, new = world.callback_sender(), world.callback_sender()
    world.look(old)
    world.look(new)
    world.table.add(1, 2)
    world.look(new)
    overtaken = world.table.listing()
    world.table.add(3, 4)
    world.look(new)
    assert world.position()["completionTime"] == t(4)
    old.consider(overtaken, t(999))
    old.step()
    assert world.server.told() == [t(1), t(3), t(1)]
    assert world.position()["completionTime"] == t(4)
    assert set(world.server.told()) == {t(1), t(3)}
    world.table.add(5, 6)
    world.look(old)
    assert world.server.told()[-1] == t(5)
    assert world.position()["completionTime"] == t(6)


def test_the_clock_is_read_before_the_listing(world: World) -> None:
    """What completed while it was listed may stand before something that the listing
    does not show.
    """
    callback_sender = world.callback_sender()
    world.etcd.put("clock", {"value": t(0)})
    callback_sender.look(world.table.listing)
    callback_sender.step()

    def listed() -> Any:
        world.table.add(3, 4)
        world.etcd.put("clock", {"value": t(4)})
        return world.table.listing()

    assert callback_sender.look(listed) == world.table.listing()
    callback_sender.step()
    assert world.server.events == []
    world.table.add(1, 2)
    callback_sender.look(world.table.listing)
    callback_sender.step()
    assert world.server.told() == [t(1), t(3)]


def test_a_withdrawn_callback_is_forgotten_and_begins_anew(world: World) -> None:
    callback_sender = world.callback_sender()
    world.look(callback_sender)
    store: Any = world.etcd
    callback.forget(store)
    assert world.etcd.keys == {}
    world.table.add(1, 2)
    again = world.callback_sender()
    world.look(again)
    world.table.add(3, 4)
    world.look(again)
    assert world.server.told() == [t(3)]
    assert world.server.begun == ["0", t(2)]
    callback.forget(store)
    world.table.add(5, 6)
    world.look(again)
    world.table.add(7, 8)
    again.step()
    assert world.server.told() == [t(3), t(5)], "one that was not stopped in time sends one event at most"
    assert world.etcd.get(KEY) is None


def test_silence_of_etcd_says_nothing_of_the_receiver(world: World) -> None:
    callback_sender = world.callback_sender()
    world.look(callback_sender)
    world.table.add(1, 2)
    callback_sender.consider(world.table.listing(), t(999))
    world.etcd.silent = True
    with pytest.raises(ConnectionError):
        callback_sender.step()
    assert world.server.events == []
    world.etcd.silent = False
    world.later(callback_sender)
    assert world.server.told()[-1] == t(1)
    assert world.position()["completionTime"] == t(2)
    assert world.report()["failures"] == 0


def test_a_table_that_cannot_be_read_is_said_and_forgotten(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    callback_sender = world.callback_sender()
    world.look(callback_sender)
    world.now += 10
    world.table.add(1, 2)
    callback_sender.consider(world.table.listing(), t(999))

    def broken(_: object) -> None:
        raise OSError("the store is away")

    with monkeypatch.context() as patch:
        patch.setattr(world.table, "metadata", broken)
        with pytest.raises(OSError, match="away") as caught:
            callback_sender.step()
        callback_sender._trouble(caught.value)
        world.now += 1
        callback_sender.step()
        assert (world.report()["reason"], world.report()["failures"], world.report()["undelivered"]) == (
            "TableNotRead",
            0,
            1,
        )
        assert "the store is away" in world.report()["message"]
    world.later(callback_sender)
    world.later(callback_sender, 10)
    assert world.server.told() == [t(1)]
    assert (world.report()["reason"], world.report()["message"], world.report()["undelivered"]) == ("", "", 0)


def test_the_agent_never_waits_for_a_hanging_receiver(world: World) -> None:
    """With its own thread: listings are taken at once, and the end of the assignment cuts the
    request off.
    """
    world.server.answers = ["hang"]
    sender = Sender(world.server.url, timeout=60, folder=None, refused=lambda address: False)
    made: Any = CallbackSender
    callback_sender: CallbackSender = made(world.table, world.etcd, SOURCE, sender, table_services=False)
    callback_sender.consider(world.table.listing(), "0")
    thread = callback_sender._thread
    assert thread is not None
    for number in range(1, 101, 2):
        world.table.add(number, number + 1)
        callback_sender.consider(world.table.listing(), t(999))
    assert thread.is_alive()
    callback_sender.stop()
    thread.join(10)
    assert not thread.is_alive()
    assert len(world.server.events) <= 1
    assert world.position()["completionTime"] == "0"


def test_the_report_is_kept_small_and_rare(world: World) -> None:
    callback_sender = world.callback_sender()
    world.look(callback_sender)
    puts = world.etcd.revision
    for number in range(1, 41, 2):
        world.table.add(number, number + 1)
        world.look(callback_sender)
    assert world.etcd.revision - puts == 20, "the position alone"
    world.later(callback_sender, 5)
    assert world.etcd.revision - puts == 21
    world.later(callback_sender, 5)
    assert world.etcd.revision - puts == 21
    assert set(world.report()) == {
        *("inc", "completionTime", "instant", "delivered", "archivedTo", "lost", "atMs"),
        *("undelivered", "oldest", "failures", "reason", "message"),
    }


def test_an_assignment_without_a_callback_has_no_callback_sender() -> None:
    anything: Any = None
    assert callback.from_order(None, SOURCE, anything, anything, inc="x") is None
    wanted = {"url": "https://example.com/", "timeoutSeconds": 5, "secret": True, "tableServices": True}
    assert callback.from_order(CallbackOrder.from_json(wanted), SOURCE, anything, anything, inc="x") is not None

"""Defragmentation: gives the space of deleted keys and of old history back to the disk.

A member answers nobody while it does that: no commit, no heartbeat. So one at a time, the leader
last and only after it has handed its leadership over; and only where enough is given back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hudi_operator.adapters import etcd_rpc as rpc
from hudi_operator.adapters.etcd_rpc import Connection
from hudi_operator.etcd_upkeep import members as of
from hudi_operator.etcd_upkeep.members import Member
from hudi_operator.model.config import EtcdConfig
from hudi_operator.model.ports import Fatal, OutcomeUnknown, Retryable

JsonDict = dict[str, Any]

TIMEOUT_SECONDS = 600.0
CAUGHT_UP_SECONDS = 120.0
"""Seconds in which a member that was defragmented must answer at the others' revision."""


@dataclass(frozen=True)
class Wishes:
    """Options of a defragmentation."""

    least: float = 0.2
    """A member with a smaller unused part (0 to 1) is left alone."""
    interrupt: bool = False
    """A member that is alone is defragmented, too: meanwhile nobody answers anybody."""


def run(config: EtcdConfig, wishes: Wishes, say: Callable[[str], None]) -> list[JsonDict]:
    """Defragment the members that need it; returns a report of each.

    ``say`` is called with messages about the progress. Raises Retryable or Fatal at the first
    member that is not well: the others are left alone.
    """
    members = of.look(config)
    of.all_well(members)
    reports = []
    for member in sorted(members, key=lambda one: (one.leader, one.name)):
        if member.unused < wishes.least:
            say(f"{member.name}: {member.unused:.0%} of {member.size} bytes are unused: left alone")
            reports.append(
                {"member": member.name, "outcome": "LeftAlone", "size": member.size, "in_use": member.in_use}
            )
            continue
        if len(members) == 1 and not wishes.interrupt:
            raise Fatal(
                f"{member.name} is the only member: until its {member.in_use} bytes are written anew nothing commits, "
                "and leases run out if that takes longer than they last (docs/operate/operations.md, Defragment etcd). "
                "--interrupt does it nevertheless"
            )
        reports.append(_one(config, member, say))
    return reports


def _one(config: EtcdConfig, member: Member, say: Callable[[str], None]) -> JsonDict:
    present = of.look(config)
    of.all_well(present)
    if any(one.leader and one.id == member.id for one in present) and len(present) > 1:
        _hand_over(config, present, member)
        say(f"{member.name}: it leads no longer")
    say(
        f"{member.name}: {member.size} bytes, of which {member.in_use} are in use; it answers nobody until this is done"
    )
    with of.connected(config, member.endpoint, timeout=TIMEOUT_SECONDS) as connection:
        gap = _Gap(config, member.endpoint)
        began = time.monotonic()
        try:
            connection.call_now(rpc.maintenance, "Defragment", rpc.messages.DefragmentRequest(), writes=True)
        except OutcomeUnknown as error:
            raise Retryable(
                f"{member.name}: whether it was defragmented is not known, look at it again: {error}"
            ) from error
        finally:
            silent = gap.end()
        seconds = time.monotonic() - began
        _caught_up(config, connection, member)
    after = next(one for one in of.look(config) if one.id == member.id)
    say(f"{member.name}: {after.size} bytes after {seconds:.1f} s, in which it answered nobody for {silent:.1f} s")
    return {
        "member": member.name,
        "outcome": "Defragmented",
        "size_before": member.size,
        "size": after.size,
        "in_use": after.in_use,
        "seconds": round(seconds, 3),
        "silent_seconds": round(silent, 3),
    }


def _hand_over(config: EtcdConfig, members: list[Member], leader: Member) -> None:
    """Make the member leader that has come furthest."""
    heir = max((one for one in members if one.id != leader.id), key=lambda one: one.revision)
    request = rpc.messages.MoveLeaderRequest(targetID=heir.id)
    with of.connected(config, leader.endpoint) as connection:
        connection.call_now(rpc.maintenance, "MoveLeader", request, writes=True)
    present = of.look(config)
    of.all_well(present)
    if any(one.leader and one.id == leader.id for one in present):
        raise Retryable(f"{leader.name} still leads")


def _caught_up(config: EtcdConfig, connection: Connection, member: Member) -> None:
    """Wait until it answers at what the others have acknowledged."""
    deadline = time.monotonic() + CAUGHT_UP_SECONDS
    while True:
        try:
            of.answers(connection, config.prefix)  # linearizable: not before it knows what they know
            of.all_well(of.look(config))
        except (Retryable, Fatal) as error:
            if isinstance(error, Fatal) or time.monotonic() > deadline:
                raise Retryable(f"{member.name} is not well after its defragmentation: {error}") from error
        else:
            return
        time.sleep(0.5)


class _Gap:
    """The longest time for which a member gives no answer, seen by a separate client."""

    def __init__(self, config: EtcdConfig, endpoint: str) -> None:
        self._stop, self._longest, self._answered = threading.Event(), 0.0, time.monotonic()
        self._thread = threading.Thread(target=self._look, args=(config, endpoint), daemon=True)
        self._thread.start()

    def _look(self, config: EtcdConfig, endpoint: str) -> None:
        with of.connected(config, endpoint, timeout=TIMEOUT_SECONDS) as connection:
            while not self._stop.wait(0.05):
                try:
                    of.answers(connection, config.prefix)
                except (Retryable, Fatal):
                    continue  # no answer
                self._note()

    def _note(self) -> None:
        now = time.monotonic()
        self._longest, self._answered = max(self._longest, now - self._answered), now

    def end(self) -> float:
        """Seconds."""
        self._stop.set()
        self._thread.join(timeout=TIMEOUT_SECONDS)
        self._note()
        return self._longest

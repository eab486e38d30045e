"""The leader's Lease, whatever somebody else has written into it."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from hudi_operator.adapters.etcd import RevisionNotes, Revisions
from hudi_operator.adapters.kubernetes import ApiServer
from hudi_operator.adapters.leader import Leader, LeaseNotes
from hudi_operator.model.config import LeaderElectionConfig

JsonDict = dict[str, Any]


class Server:
    """Has one Lease, which this replica holds. ``answer``: what it answers instead."""

    def __init__(self, annotations: JsonDict, answer: Exception | None = None) -> None:
        meta = {"name": "l", "resourceVersion": "1", "annotations": annotations}
        self.lease: JsonDict = {"metadata": meta, "spec": {"holderIdentity": "me"}}
        self.answer = answer
        self.written: list[JsonDict] = []

    async def request(self, method: str, path: str, *, body: JsonDict | None = None) -> JsonDict:
        if self.answer is not None:
            raise self.answer
        if method == "PUT" and body is not None:
            self.written.append(body)
        return self.lease


def held_until(server: Server, notes: LeaseNotes) -> float:
    """One round of the election."""
    leader = Leader(
        LeaderElectionConfig(),
        configuration=cast(Any, None),
        namespace="hudi",
        identity="me",
        on_started=lambda: None,
        notes=notes,
    )
    return asyncio.run(leader._round(cast(ApiServer, server)))


@pytest.mark.parametrize("value", ["\u00b2", "9" * 5000, "9" * 20, "-1", "", "\u0661"])
def test_an_annotation_that_is_no_revision_does_not_count(value: str) -> None:
    """F514: ``isdigit`` is true of digits that ``int`` refuses."""
    revisions = Revisions()
    server = Server({f"{RevisionNotes.PREFIX}a": value, f"{RevisionNotes.PREFIX}b": "7"})
    assert held_until(server, RevisionNotes(revisions)) > 0
    assert revisions.floors() == {"b": 7}
    assert len(server.written) == 1


@pytest.mark.parametrize("answer", [ValueError("no JSON"), KeyError("metadata"), TypeError("no text")])
def test_a_round_that_fails_is_followed_by_another(answer: Exception) -> None:
    """F514: a thread that has ended never leads again, and nothing says so."""
    notes = RevisionNotes(Revisions())
    assert held_until(Server({}, answer), notes) == 0
    assert held_until(Server({}), notes) > 0

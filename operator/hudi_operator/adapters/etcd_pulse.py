"""The operator's pulse: a separate key in etcd that the leader writes repeatedly.

An etcd that was restored from a backup has an older pulse than the one that was written last, also
when its revision did not go back (``etcdutl snapshot restore --bump-revision``, or others have
written meanwhile). The last pulse is noted in the leader's Lease, which is not in etcd, so the next
leader knows it, too. The pulse also says how often this etcd was found set back
(:class:`hudi_operator.adapters.etcd.Seen`), for a leader that dies before it has noted that.

Not noticed is the loss of what was written after the last pulse of all: by processes that went on
while no operator led.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable

from hudi_contract import table_keys as told_as
from hudi_contract.keys import pulse_key
from hudi_operator.adapters import etcd_rpc as rpc
from hudi_operator.adapters.etcd import Revisions, Seen, knows
from hudi_operator.adapters.etcd_rpc import Connection, Message
from hudi_operator.model.facts import EtcdFitness
from hudi_operator.model.ports import Fatal, Retryable

LOG = logging.getLogger(__name__)

SECONDS = 10.0
"""Between two pulses: so much may be lost at most without being noticed."""


class Pulse:
    """The pulse of one operator."""

    def __init__(self, connection: Connection, prefix: str, *, revisions: Revisions) -> None:
        self._connection, self._key, self._revisions = connection, pulse_key(prefix), revisions

    async def run(self, *, leading: Callable[[], bool], fitness: Callable[[], Awaitable[EtcdFitness]]) -> None:
        """Beat until cancelled, while this replica leads and tables may stand in this etcd."""
        problem = ""
        while True:
            found = ""
            try:
                if leading() and not (await fitness()).refused:
                    await self.beat()
            except (Retryable, Fatal) as error:
                found = str(error)
            if found and found != problem:
                LOG.warning("the pulse is not written: %s", found)
            problem = found
            await asyncio.sleep(SECONDS)

    async def beat(self) -> None:
        """Read the pulse, and write the next one if nobody has written another meanwhile.

        Raises Retryable or Fatal when etcd does not do it; unknown outcomes are seen in the next
        beat.
        """
        before = self._revisions.known()
        answer = await self._txn([], [rpc.get(self._key)], writes=False)
        cluster_id, found = f"{answer.header.cluster_id:x}", knows(answer, at=0)
        forgotten = self._revisions.judge(cluster_id, before, found)
        told = told_as.Pulse(forgotten=forgotten, at_ms=int(time.time() * 1000)).to_json()
        value = json.dumps(told, separators=(",", ":")).encode()
        written = await self._txn([rpc.mod_is(self._key, found.pulse)], [rpc.put(self._key, value)], writes=True)
        if written.succeeded:
            revision = written.header.revision
            self._revisions.learn(cluster_id, Seen(revision, revision, forgotten))

    async def _txn(self, compare: list[Message], success: list[Message], *, writes: bool) -> Message:
        return await self._connection.call(rpc.kv, "Txn", rpc.txn_request(compare, success), writes=writes)

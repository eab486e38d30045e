"""Interfaces of the external systems that reconciling needs, and their failures.

The adapters implement these Protocols.

A call either returns its result or raises one of the exceptions below; nothing else
crosses the layer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from hudi_operator.model.facts import EtcdFacts, NodeFacts, PodFacts
from hudi_operator.model.store_access import Credentials, StoreAnswer

JsonDict = dict[str, Any]


class Retryable(Exception):
    """Definitely not done, and can be retried after ``delay`` seconds.

    ``delay`` None: the queue's own back-off. ``done``: the actions before it that changed
    something.
    """

    done: Sequence[Any] = ()

    def __init__(self, message: str, *, delay: float | None = None) -> None:
        super().__init__(message)
        self.delay = delay


class Conflict(Retryable):
    """Another process changed the object or key first: this is normal, look again at once."""

    def __init__(self, message: str) -> None:
        super().__init__(message, delay=0.2)


class OutcomeUnknown(Retryable):
    """Sent, but not answered: it may have happened, may still happen, or may not happen.

    The next reconcile reads the actual state.
    """


class Fatal(Exception):
    """Refused for a reason that does not resolve itself; a person has to act.

    ``delay``: the next look is not later than that, in seconds; None: the queue's own back-off.
    ``done``: the actions that changed something all the same.
    """

    delay: float | None = None
    done: Sequence[Any] = ()


class Refused(Fatal):
    """The API server does not make or change an object.

    ``reason``: why, as in a condition (``QuotaExceeded``, for example). It may resolve itself.
    """

    def __init__(self, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.reason = reason


class LeaseLost(Exception):
    """This replica is not the leader any more and must not act."""


class EtcdPort(Protocol):
    """etcd, by the names of docs/design/contracts.md §2.

    Each method is one transaction; False means that a compare did not hold.
    """

    def floors(self) -> Mapping[str, int]:
        """Highest revision seen so far of each etcd cluster, by cluster id.

        A later answer must not be below it.
        """

    async def read_table(self, table_id: str, agent: str, others: Sequence[str] = ()) -> EtcdFacts:
        """All keys of a table in one linearizable transaction.

        ``agent`` is the agent whose assignment is read as well; may be empty. ``others`` are agents
        that might have an assignment of the table, and should not.
        """

    async def read_gates(self, table_ids: Collection[str]) -> Mapping[str, EtcdFacts]:
        """Gates of tables and what their agents said about timelines, by table id.

        Nothing else of their keys is read. Many tables are read in one transaction, each of which
        is linearizable; tables of different transactions may be read at different revisions.
        """

    async def put_gate(
        self,
        table_id: str,
        value: JsonDict,
        *,
        expected_mod: int,
        others: Mapping[str, int] = ...,
        unlocked: bool = False,
    ) -> bool:
        """gate-put. ``unlocked``: only while nobody holds the table's lock."""

    async def put_admit(self, table_id: str, *, attempt: str, role: str) -> bool:
        """admit; also True when the attempt is already admitted."""

    async def delete_admit(self, table_id: str, *, attempt: str) -> bool:
        """Withdraw the admission of an attempt that ended."""

    async def put_assignment(self, table_id: str, *, agent: str, value: JsonDict | None) -> bool:
        """Assign a table to an agent, or withdraw the assignment (None)."""

    async def fence(self, table_id: str, *, inc: str, attempt: str, settle: JsonDict, if_not_alive: bool) -> bool:
        """fence."""

    async def adopt(self, table_id: str, *, inc: str, settle: JsonDict, gate_mod: int) -> bool:
        """adopt."""

    async def revoke_lease(self, lease: int) -> None:
        """Revoke a lease; a lease that no longer exists is success."""

    async def update_settle(self, table_id: str, *, inc: str, value: JsonDict, expected_mod: int) -> bool:
        """settle-update."""

    async def unlock(self, table_id: str, *, inc: str, create_revision: int) -> bool:
        """unlock."""

    async def finish_settle(
        self, table_id: str, *, inc: str, value: JsonDict, expected_mod: int, instants: Sequence[tuple[str, int]]
    ) -> bool:
        """settled."""

    async def collect(self, table_id: str, *, inc: str, expected_mod: int) -> bool:
        """collect."""

    async def delete_report(self, table_id: str, *, kind: str) -> bool:
        """Delete a report."""

    async def delete_done(self, table_id: str, *, name: str, expected_mod: int) -> bool:
        """Delete a record of an agent's work; False: it is another one by now."""

    async def end_trial(self, trial_id: str, *, agents: Sequence[str]) -> bool:
        """Delete every key of a trial, and its assignments at these agents."""

    async def put_request(self, table_id: str, *, id: str, value: JsonDict | None) -> bool:
        """Put a request for the agent, or withdraw it (None)."""

    async def put_seen(self, table_id: str, *, inc: str, value: JsonDict | None) -> bool:
        """see: put the sighting of an incarnation, or delete it (None)."""


class CredentialsPort(Protocol):
    """The broker of storage credentials, and the store that checks them."""

    async def issue(self, id: str, *, table: str, attempt: str, path: str) -> Credentials:
        """Credentials of an attempt, the same ones each time. Fatal when they were revoked."""

    async def revoke(self, id: str) -> None:
        """Revoke them permanently; also those that were never issued."""

    async def ask_store(self, credentials: Credentials, path: str) -> StoreAnswer:
        """One request with these credentials, which changes nothing below ``path``."""


class KubernetesPort(Protocol):
    """The API server. Every read is live: no cache, resourceVersion unset (I11)."""

    def clock_offset_ms(self, since: float = 0.0) -> int | None:
        """Milliseconds by which the API server's wall clock is ahead of this process's.

        The value is exact to about a second. None: no answer since then (`time.monotonic`) was
        prompt enough to tell.
        """

    async def get(self, kind: str, namespace: str, name: str) -> JsonDict | None:
        """One object; None when it does not exist."""

    async def list_objects(self, kind: str, namespace: str, *, labels: str = "", fields: str = "") -> list[JsonDict]:
        """Objects of one namespace (empty: of all), optionally by label and field selector."""

    async def writers(self, namespace: str, table: str) -> list[JsonDict]:
        """HudiWriters of a namespace that reference this HudiTable."""

    async def list_metadata(self, kind: str, namespace: str, *, labels: str) -> list[JsonDict]:
        """Metadata of objects by label selector, without their content."""

    async def pods(self, namespace: str, *, labels: str) -> list[PodFacts]:
        """Pods by label selector."""

    async def pod(self, namespace: str, name: str) -> PodFacts | None:
        """One pod; None when it does not exist."""

    async def nodes(self, names: Sequence[str]) -> Mapping[str, NodeFacts]:
        """Named nodes that exist."""

    async def annotations(self, kind: str, namespace: str, name: str) -> Mapping[str, str] | None:
        """Annotations of one object, without its content; None when it does not exist."""

    async def owners(self, kind: str, namespace: str, name: str) -> tuple[str, ...] | None:
        """Uids of an object's owners, without its content; None when it does not exist."""

    async def create(self, manifest: JsonDict) -> str:
        """Create; returns its uid, empty when an object of that name exists."""

    async def would_create(self, manifest: JsonDict) -> None:
        """Ask whether an object would be created; nothing is stored (a server-side dry run).

        Raises Refused when it would not, Fatal when it cannot be asked.
        """

    async def apply(self, manifest: JsonDict) -> None:
        """Server-side apply under this operator's field manager."""

    async def delete(
        self, kind: str, namespace: str, name: str, *, uid: str = "", grace_seconds: int | None = None
    ) -> None:
        """Delete with the uid as precondition.

        Not found or another uid is success: that object is gone.
        """

    async def patch_finalizers(
        self, kind: str, namespace: str, name: str, *, add: str = "", remove: str = "", uid: str = ""
    ) -> None:
        """Add or remove one finalizer, guarded by resourceVersion.

        An object that is gone (or has another uid) needs no patch.
        """

    async def replace_status(
        self, kind: str, namespace: str, name: str, *, resource_version: str, status: JsonDict
    ) -> None:
        """Replace ``status``; Retryable when the object has changed since ``resource_version``."""

    async def event(self, *, regarding: JsonDict, type_: str, reason: str, message: str, key: str = "") -> None:
        """Emit an event once per (object, reason, ``key``); a failure is not an error."""

"""The actions of planners.

Each action is one effect with its precondition; the executor performs them in order.

The executor stops at the first action that fails or whose precondition does not hold, and requeues
the table: the next reconcile reads again and decides again (level-triggered, I6). A write that the
API server refuses stops what depends on its object, and nothing else (F430).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from hudi_contract.backoff import LONGEST_PAUSE_SECONDS
from hudi_operator.model.status_bounds import fitted

JsonDict = dict[str, Any]
EVENT_LIMIT = 1000
"""Characters of an event's message: the API server refuses more than 1024."""


@dataclass(frozen=True)
class Action:
    """Base of all actions."""


# ---- Kubernetes objects


@dataclass(frozen=True)
class PatchFinalizers(Action):
    """Set or drop one finalizer on a HudiTable or HudiWriter (``kind``).

    The write is guarded by resourceVersion.
    """

    kind: str
    namespace: str
    name: str
    add: str = ""
    remove: str = ""


@dataclass(frozen=True)
class UpdateStatus(Action):
    """Replace the status of a HudiTable or HudiWriter.

    The write is guarded by the resourceVersion that was read. Not sent when equal.
    """

    kind: str
    namespace: str
    name: str
    resource_version: str
    status: JsonDict
    waits: bool = False
    """Whether it may be written together with the next one, some seconds later."""

    @classmethod
    def of(cls, kind: str, obj: JsonDict, status: JsonDict) -> Self | None:
        """The write of a status, as far as the CRD holds it; None when nothing would change."""
        old = obj.get("status") or {}
        if status == old or (held := fitted(kind, status)) == old:
            return None
        meta = obj["metadata"]
        return cls(kind, meta.get("namespace", ""), meta["name"], str(meta.get("resourceVersion", "")), held)


@dataclass(frozen=True)
class Apply(Action):
    """Server-side apply of a manifest that this operator owns.

    It is a ConfigMap, Secret, ServiceAccount or RoleBinding.
    """

    manifest: JsonDict
    attempt: str = ""
    """Attempt that needs it; empty: no single one. A refusal stops this attempt only (F245)."""


@dataclass(frozen=True)
class Ensure(Apply):
    """Apply an object that all pods of a namespace share.

    Not sent when the executor has applied the very same a short while ago.
    """


@dataclass(frozen=True)
class CreatePod(Action):
    """Create a pod.

    AlreadyExists is success: names are deterministic, so the next look adopts the existing pod.
    """

    manifest: JsonDict


@dataclass(frozen=True)
class CreateKey(Action):
    """Create a Secret with a new random key, which nobody but its pods ever sees.

    AlreadyExists is success: the key that exists is the one that the pods have mounted.
    """

    manifest: JsonDict
    """Without ``data``."""
    entry: str
    """Name of the key's entry in ``data``."""


@dataclass(frozen=True)
class GiveCredentials(Action):
    """Have the broker issue storage credentials, and create the Secret of an attempt's pod.

    The store must accept them first. A Secret that exists is success.
    """

    manifest: JsonDict
    """Without ``data``."""
    id: str
    attempt: str
    path: str
    """Path of the table."""


@dataclass(frozen=True)
class RevokeCredentials(Action):
    """Have the broker revoke the storage credentials of an attempt.

    It fails without stopping the plan: the next look sees that it is not done.
    """

    id: str
    attempt: str


@dataclass(frozen=True)
class AskStore(Action):
    """One request to the store with the credentials of a fenced attempt, to see the refusal."""

    attempt: str
    namespace: str
    name: str
    """Secret that its pod has mounted."""
    pod_uid: str
    path: str


@dataclass(frozen=True)
class AskExecutors(Action):
    """Ask the API server whether it would make one more executor of a driver (a dry run; F301).

    It changes nothing, is not sent before it is due, and never fails: the next look has the answer.
    """

    attempt: str
    namespace: str
    driver: str
    """Pod of the driver; its ConfigMap, which has the same name, has the template."""
    uid: str


@dataclass(frozen=True)
class DeletePod(Action):
    """Delete a pod with a grace period > 0 and its uid as precondition; never force.

    Not found is success.
    """

    namespace: str
    name: str
    uid: str
    grace_seconds: int


@dataclass(frozen=True)
class DropEvidence(Action):
    """Remove our finalizer from a pod whose proof of death has been written (F14), by uid."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True)
class HoldConfigMap(Action):
    """Put our finalizer on the ConfigMap of an attempt or agent, by uid (F271)."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True)
class ReleaseConfigMap(Action):
    """Remove our finalizer from the ConfigMap of an attempt or agent, by uid (F200)."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True)
class DeleteObject(Action):
    """Delete an owned object that is no longer needed.

    It is the ConfigMap of an old attempt, or a finished pod.
    """

    kind: str
    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True)
class Unbind(Action):
    """Delete the RoleBindings of accounts of tables that nothing in the look's namespace uses.

    The objects that use an account are read when this is performed. If the API server does not let
    the operator read them, or delete a RoleBinding, that RoleBinding stays, and nothing waits for
    it.
    """

    role: str
    """The ClusterRole of drivers."""
    going: str = ""
    """Uid of a HudiTable that goes next and uses no account any more; empty: none."""


@dataclass(frozen=True)
class EmitEvent(Action):
    """One Kubernetes event on a HudiTable or HudiWriter.

    It is sent once for each (reason, object, attempt or text), and a table has a limited number of
    them (:mod:`hudi_operator.control.event_limit`): what must not be missed is in status.
    """

    kind: str
    namespace: str
    name: str
    uid: str
    type: str
    """``Normal`` or ``Warning``."""
    reason: str
    message: str
    attempt: int = 0


# ---- etcd


@dataclass(frozen=True)
class PutGate(Action):
    """gate-put: compare mod(gate) = ``expected_mod`` (0 = absent).

    ``others``: the same of gates of other tables, by id: what this gate may be depends on them.
    ``unlocked``: compare version(lock) = 0, too: the mode changes (F436).
    """

    table_id: str
    value: JsonDict
    expected_mod: int
    others: Mapping[str, int] = field(default_factory=dict)
    unlocked: bool = False


@dataclass(frozen=True)
class PutAdmit(Action):
    """admit: create ``admit/<attempt>`` when it is absent and the attempt is not fenced."""

    table_id: str
    attempt: str
    role: str


@dataclass(frozen=True)
class DeleteAdmit(Action):
    """Delete ``admit/<attempt>`` of an attempt that ended."""

    table_id: str
    attempt: str


@dataclass(frozen=True)
class PutAssignment(Action):
    """Assign a table to an agent (``P/control/agents/<agent>/<T>``).

    With ``value`` None, withdraw the assignment.
    """

    agent: str
    table_id: str
    value: JsonDict | None


@dataclass(frozen=True)
class Fence(Action):
    """fence: one transaction that puts settle and fence and deletes alive and admit (I2).

    ``if_not_alive``: also compare version(alive/<inc>) = 0 (reason LeaseGone, F29).
    """

    table_id: str
    inc: str
    attempt: str
    settle: JsonDict
    if_not_alive: bool
    lease: int = 0
    """Lease of ``alive/<inc>`` to revoke afterwards; 0 = none known."""


@dataclass(frozen=True)
class Adopt(Action):
    """adopt: one transaction that puts settle and fence of a synthetic incarnation.

    It also puts a record that makes it the owner of each instant (I7).

    Compares mod(gate) = ``gate_mod`` (the closed gate that was read), and that neither the settle
    record nor any instant record exists.
    """

    table_id: str
    inc: str
    settle: JsonDict
    gate_mod: int


@dataclass(frozen=True)
class UpdateSettle(Action):
    """settle-update: compare mod(settle/<inc>) = ``expected_mod``, then put."""

    table_id: str
    inc: str
    value: JsonDict
    expected_mod: int


@dataclass(frozen=True)
class Unlock(Action):
    """unlock: delete ``lock`` iff its create_revision is the given one and fence/<inc> exists.

    This happens only after proof and drain (I1).
    """

    table_id: str
    inc: str
    create_revision: int


@dataclass(frozen=True)
class FinishSettle(Action):
    """settled: compare mod(settle) = ``expected_mod``.

    Put settle Settled, delete the listed ``instant/*`` (each by mod revision) and writer/<inc>.
    """

    table_id: str
    inc: str
    value: JsonDict
    expected_mod: int
    instants: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Collect(Action):
    """collect: compare mod(settle) = ``expected_mod`` and version(writer/<inc>) = 0.

    Delete settle/<inc> and fence/<inc> (I2: only when settled).
    """

    table_id: str
    inc: str
    expected_mod: int


@dataclass(frozen=True)
class DeleteReport(Action):
    """Delete ``report/<kind>`` that nobody needs any more."""

    table_id: str
    kind: str


@dataclass(frozen=True)
class DeleteDone(Action):
    """Delete ``done/<name>`` that nobody needs any more, unless it was put once more."""

    table_id: str
    name: str
    expected_mod: int


@dataclass(frozen=True)
class EndTrial(Action):
    """Delete every key of the trial of a HudiTable, admissions and assignments with the rest.

    One transaction: without its admission an agent writes nothing there afterwards.
    """

    trial_id: str
    agents: tuple[str, ...]
    """Agents that have, or may have, the assignment."""


@dataclass(frozen=True)
class PutRequest(Action):
    """Put ``request/<id>`` for the agent; with ``value`` None, withdraw the request."""

    table_id: str
    id: str
    value: JsonDict | None


@dataclass(frozen=True)
class PutSeen(Action):
    """see: put ``seen/<inc>``, the node on which an incarnation was seen alive.

    With ``value`` None, delete it.
    """

    table_id: str
    inc: str
    value: JsonDict | None


# ---- time


@dataclass(frozen=True)
class StartTimer(Action):
    """Start a monotonic timer if it is not running; its age appears in ``Observed.timers``."""

    name: str


@dataclass(frozen=True)
class StopTimer(Action):
    """Forget a timer."""

    name: str


@dataclass(frozen=True)
class Plan:
    """Result of a planner: actions, and one sentence for log and status.

    It also has the latest time of the next look.
    """

    sentence: str
    actions: tuple[Action, ...] = ()
    requeue_seconds: float = field(default=LONGEST_PAUSE_SECONDS)
    failed: tuple[str, ...] = ()
    """Parts of the plan that have a defect; the other parts are still executed."""

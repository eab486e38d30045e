"""Storage credentials of attempts: when they are given, revoked, and proof (mode Credentials).

Revoked credentials prove nothing by themselves: the store must have refused them, for as long as
any of its servers may remember them. An unknown answer is asked for again (I11).
"""

from __future__ import annotations

from hudi_contract import naming
from hudi_contract.naming import EVIDENCE_FINALIZER
from hudi_contract.settle import SettleRecord
from hudi_contract.words import FencingMode, ProofKind
from hudi_operator.manifests import pod_secrets
from hudi_operator.model.facts import PodFacts
from hudi_operator.model.proof import Proof, Subject
from hudi_operator.model.store_access import Revocation
from hudi_operator.plan.core.actions import Action, AskStore, DropEvidence, GiveCredentials, RevokeCredentials
from hudi_operator.plan.core.view import Incarnation, View

NOT_SEEN = Revocation()


def give(view: View, attempt: str, pod: PodFacts) -> tuple[Action, ...]:
    """Give a pod its credentials: it mounts them, and waits for them before it starts."""
    if pod.phase != "Pending" or pod.deleting or not _mounts(pod, pod.name) or not view.config.credentials_broker.given:
        return ()
    manifest = pod_secrets.storage_key(pod)
    return (GiveCredentials(manifest, _id(view, attempt), attempt, view.table.canonical_path),)


def released(view: View, pod: PodFacts) -> tuple[Action, ...]:
    """Drop the finalizer of a pod that is proven dead, after its credentials have been revoked.

    Without the broker's word for that the finalizer stays, and the broker is asked again.
    """
    if EVIDENCE_FINALIZER not in pod.finalizers:
        return ()
    attempt = naming.attempt_id(pod.namespace, pod.name)
    own = pod.labels.get(naming.LABEL_ROLE) == naming.ROLE_DRIVER and _mounts(pod, pod.name)
    if own and view.config.credentials_broker.given and not _seen(view, attempt).revoked:
        return (RevokeCredentials(_id(view, attempt), attempt),)
    return (DropEvidence(pod.namespace, pod.name, pod.uid),)


def steps(view: View, inc: Incarnation) -> tuple[Action, ...]:
    """The next step to see the credentials of a fenced incarnation refused; empty when done."""
    pod = _pod(view, inc)
    if pod is None:
        return ()
    found = _seen(view, inc.attempt)
    if not found.revoked:
        return (RevokeCredentials(_id(view, inc.attempt), inc.attempt),)
    if found.seen(view.config.credentials_broker.identity_cache_seconds):
        return ()
    secret = naming.storage_key_name(pod.name)
    return (AskStore(inc.attempt, pod.namespace, secret, pod.uid, view.table.canonical_path),)


def proof(view: View, inc: Incarnation, subject: Subject, pod: PodFacts | None) -> Proof | None:
    """Proof that the store accepts nothing of a pod of this incarnation; None: not proven.

    The object of the pod must show which credentials it has: one that is gone, or was ever seen
    without our finalizer, shows nothing.
    """
    own = _pod(view, inc)
    if own is None or pod is None or not subject.evidence or EVIDENCE_FINALIZER not in pod.finalizers:
        return None
    found, cache = _seen(view, inc.attempt), view.config.credentials_broker.identity_cache_seconds
    if not _mounts(pod, own.name) or not found.seen(cache):
        return None
    return Proof(
        ProofKind.CREDENTIALS_REVOKED,
        f"the storage credentials of pod {pod.name} are revoked: the store has refused {found.refusals} requests with "
        f"them in {found.refused_seconds:.0f} s ({found.told})",
    )


def drain_seconds(view: View, record: SettleRecord) -> float:
    """Drain after these proofs.

    A process that may live on may have a request at the store that was begun before the refusal.
    """
    alive = any(p.kind == ProofKind.CREDENTIALS_REVOKED for p in record.proofs.values())
    return max(view.drain_seconds, float(view.config.credentials_broker.request_seconds) if alive else 0.0)


def waits_for(view: View, inc: Incarnation) -> str:
    """Steps that the proof by credentials still needs, as a message for people.

    Empty when no such proof is possible.
    """
    if _pod(view, inc) is None:
        return ""
    found, cache = _seen(view, inc.attempt), view.config.credentials_broker.identity_cache_seconds
    if not found.revoked:
        return f"its storage credentials are not revoked yet ({found.problem or 'the broker is being asked'})"
    if found.problem:
        return f"its storage credentials are revoked, but {found.problem}{f' ({found.told})' if found.told else ''}"
    return (
        f"its storage credentials are revoked and were refused for {found.refused_seconds:.0f} of {cache} s: no action "
        "is needed"
    )


def problems(view: View) -> list[str]:
    """Problems with the credentials of attempts that are running or being settled."""
    if view.mode != FencingMode.CREDENTIALS and view.table.fencing.mode != FencingMode.CREDENTIALS:
        return []
    current = {a.id for w in view.writers for a in w.attempts if not a.ended}
    current |= {i.attempt for i in view.incs if i.record is not None and not i.settled}
    current |= {
        naming.attempt_id(p.namespace, p.name)
        for p in view.observed.pods
        if EVIDENCE_FINALIZER in p.finalizers and _mounts(p, p.name)
    }
    return [f"{attempt}: {found.problem}" for attempt in sorted(current) if (found := _seen(view, attempt)).problem]


def _pod(view: View, inc: Incarnation) -> PodFacts | None:
    """The pod of an incarnation whose credentials can be revoked; None when there is none."""
    pod = view.pods_by_uid.get(inc.pod_uid)
    usable = view.mode == FencingMode.CREDENTIALS and view.config.credentials_broker.given and not inc.is_agent
    if not usable or pod is None or pod.labels.get(naming.LABEL_ROLE) != naming.ROLE_DRIVER:
        return None
    mine = inc.attempt == naming.attempt_id(pod.namespace, pod.name)
    return pod if mine and _mounts(pod, pod.name) else None


def _mounts(pod: PodFacts, driver: str) -> bool:
    """Whether a pod mounts the credentials of this driver."""
    return naming.storage_key_name(driver) in pod.secrets


def _seen(view: View, attempt: str) -> Revocation:
    return view.observed.revocations.get(attempt, NOT_SEEN)


def _id(view: View, attempt: str) -> str:
    return naming.credential_id(view.table.table_id, attempt)

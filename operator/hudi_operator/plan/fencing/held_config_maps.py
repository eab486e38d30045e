"""Conditions for deleting the ConfigMap with which a driver's executors are compared (F200).

Admission compares each executor with the ConfigMap of its driver's pod. So it stays as long as that
pod's object, whose token may start executors, and as long as such a pod may still be made. Our
finalizer keeps it, because the garbage collector deletes it whenever its owner is deleted. One that
an operator without this rule has made gets the finalizer while its pod is there (F271).
"""

from __future__ import annotations

from collections.abc import Iterable

from hudi_contract import naming
from hudi_contract.naming import EVIDENCE_FINALIZER
from hudi_operator.model.facts import HeldConfigMap, Observed, PodFacts
from hudi_operator.plan.core.actions import Action, HoldConfigMap, ReleaseConfigMap
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import View


def plan_held(view: View) -> PartialPlan:
    """Keep those of pods that may start executors; release those that no pod needs any more."""
    held = (HoldConfigMap(c.namespace, c.name, c.uid) for c in view.observed.unheld_config_maps if _compared(view, c))
    return PartialPlan((*held, *_released(c for c in view.observed.held_config_maps if not _needed(view, c))))


def last(observed: Observed) -> tuple[Action, ...]:
    """Release every ConfigMap whose pod has no evidence, in the last look at this table."""
    return _released(c for c in observed.held_config_maps if not _evidence(_pod(observed, c)))


def _released(found: Iterable[HeldConfigMap]) -> tuple[Action, ...]:
    return tuple(ReleaseConfigMap(c.namespace, c.name, c.uid) for c in found)


def _compared(view: View, unheld: HeldConfigMap) -> bool:
    """Whether its pod may start executors: it shares a key of their connections with them."""
    pod = _pod(view.observed, unheld)
    return pod is not None and naming.spark_key_name(unheld.name) in pod.secrets


def _needed(view: View, held: HeldConfigMap) -> bool:
    if _pod(view.observed, held) is not None or naming.attempt_id(held.namespace, held.name) in view.etcd.admits:
        return True
    writer = next((w for w in view.writers if held.writer == naming.label_value(w.name)), None)
    if writer is None:
        return False
    # An attempt is in status before anything is made for it.
    active = writer.active
    return writer.spec is None or (active is not None and active.writer.driver_pod(active.number) == held.name)


def _pod(observed: Observed, held: HeldConfigMap) -> PodFacts | None:
    return next((p for p in observed.pods if (p.namespace, p.name) == (held.namespace, held.name)), None)


def _evidence(pod: PodFacts | None) -> bool:
    return pod is not None and EVIDENCE_FINALIZER in pod.finalizers

"""The container of a pod that runs our JVM.

The pod may have other containers that were injected into it (F45).

An attempt ends with that container. A proof of death, in contrast, requires the end of every
container (:mod:`hudi_operator.model.proof`).
"""

from __future__ import annotations

from hudi_contract import naming
from hudi_operator.model.facts import ContainerFacts, PodFacts

TERMINAL = ("Succeeded", "Failed")
_NAMES = (naming.ROLE_DRIVER, naming.ROLE_AGENT, naming.ROLE_EXECUTOR)


def host(pod: PodFacts) -> ContainerFacts | None:
    """The JVM's container, which has the name of the pod's role.

    None while the kubelet has not reported it.
    """
    role = pod.labels.get(naming.LABEL_ROLE)
    names = (role,) if role in _NAMES else _NAMES
    return next((c for c in pod.containers if c.kind == "container" and c.name in names), None)


def ended(pod: PodFacts) -> bool:
    """True when the JVM's container has terminated, or the phase of the whole pod is terminal."""
    jvm = host(pod)
    return pod.phase in TERMINAL or (jvm is not None and jvm.terminated)


def held(pod: PodFacts) -> bool:
    """True when only other containers keep the pod running, and the kubelet will not end them.

    The pod must be deleted.

    The kubelet itself ends native sidecars (init containers that are restarted) and ephemeral
    containers, after the last ordinary container.
    """
    jvm = host(pod)
    others = [c for c in pod.containers if c.kind == "container" and c is not jvm]
    return pod.phase not in TERMINAL and jvm is not None and jvm.terminated and not all(c.terminated for c in others)


def winding_down(pod: PodFacts) -> bool:
    """True when the JVM has ended, and the kubelet ends the rest of the pod by itself."""
    return pod.phase not in TERMINAL and ended(pod) and not held(pod)

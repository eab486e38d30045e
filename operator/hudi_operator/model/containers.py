"""The container of a pod that runs our JVM, beside whatever others were put into the pod (F45).

An attempt ends with that container. A death is another matter: its proof asks for every container (:mod:`hudi_operator.model.proof`).
"""

from __future__ import annotations

from hudi_contract import naming
from hudi_operator.model.facts import ContainerFacts, PodFacts

TERMINAL = ("Succeeded", "Failed")
_NAMES = (naming.ROLE_DRIVER, naming.ROLE_AGENT, naming.ROLE_EXECUTOR)


def host(pod: PodFacts) -> ContainerFacts | None:
    """The JVM's container: it is called like the pod's role. None while the kubelet has said nothing about it."""
    role = pod.labels.get(naming.LABEL_ROLE)
    names = (role,) if role in _NAMES else _NAMES
    return next((c for c in pod.containers if c.kind == "container" and c.name in names), None)


def ended(pod: PodFacts) -> bool:
    """The JVM's container has terminated, or the whole pod is said to be over."""
    jvm = host(pod)
    return pod.phase in TERMINAL or (jvm is not None and jvm.terminated)


def held(pod: PodFacts) -> bool:
    """Only other containers keep the pod from ending, and the kubelet will not end them: it has to be deleted.

    What the kubelet ends by itself, with the last ordinary container: native sidecars (init containers that are restarted) and ephemeral ones.
    """
    jvm = host(pod)
    others = [c for c in pod.containers if c.kind == "container" and c is not jvm]
    return pod.phase not in TERMINAL and jvm is not None and jvm.terminated and not all(c.terminated for c in others)


def winding_down(pod: PodFacts) -> bool:
    """The JVM has ended, and the kubelet ends the rest of the pod without being asked."""
    return pod.phase not in TERMINAL and ended(pod) and not held(pod)

"""The agent of a table: one pod per agent name, numbered by generation.

Assignment keys name the tables that it serves.

An agent that is suspect for a table gets a successor at once (F22): the next generation may touch
everything except what belongs to the unproven one. Settling and :mod:`agent_pods` end old
generations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hudi_contract import naming
from hudi_contract.assignment import AssignmentRecord, TrialRecord
from hudi_contract.backoff import LONGEST_PAUSE_SECONDS, exponential
from hudi_contract.table_keys import Admit, Durations
from hudi_contract.words import Adoption, Role
from hudi_operator.api import services
from hudi_operator.api.metadata_table import MetadataTable
from hudi_operator.api.spec import TableSpec
from hudi_operator.manifests import configmaps, hudi_conf, namespace, pods
from hudi_operator.model import classify, conditions, containers
from hudi_operator.model.facts import EtcdFacts, PodFacts
from hudi_operator.plan.core import launch, spark_keys
from hudi_operator.plan.core.actions import (
    Action,
    Apply,
    CreatePod,
    DeleteAdmit,
    Ensure,
    PutAdmit,
    PutAssignment,
    StartTimer,
    StopTimer,
)
from hudi_operator.plan.core.partial_plan import PartialPlan
from hudi_operator.plan.core.view import View

JsonDict = dict[str, Any]

FIRST_BACKOFF_SECONDS = 2.0
MAX_BACKOFF_SECONDS = 60.0
CRASH_WINDOW_SECONDS = 600.0
_BACKOFF_TIMER = "agent/"
TRIAL_SECONDS = 5.0
"""Between two looks at a HudiTable that tries whether it reaches its path."""


def assignment(table: TableSpec, now_ms: int, lock: Durations | None = None) -> JsonDict:
    """The assignment of a table to an agent, as JSON. ``lock``: durations; None: the spec's."""
    # Nothing but its entries in a catalog is left to care for.
    going = table.ref.deleting and table.catalog is not None and table.catalog.drops
    return AssignmentRecord(
        id=table.table_id,
        path=table.canonical_path,
        table=table.ref.key,
        name=table.table_name,
        type=table.hudi_type,
        record_key_fields=tuple(table.record_key_fields),
        partition_fields=tuple(table.partition_fields),
        ordering_fields=tuple(table.ordering_fields),
        hive_style_partitioning=table.hive_style_partitioning,
        merge=table.merge.of_job,
        hudi_props=hudi_conf.hudi_defaults(table),
        adoption=Adoption.BOOTSTRAP if table.bootstrap is not None else table.adoption.policy,
        metadata_table=(table.metadata_table or MetadataTable()).nonce,
        callback=table.callback.order() if table.callback is not None else None,
        catalog=table.catalog.order(table.table_name, table.ref.uid, deleting=table.ref.deleting)
        if table.catalog is not None
        else None,
        # A suspended table is left unchanged, except that dead writers are settled.
        services={} if table.suspend or going else services.orders(table.services, now_ms),
        lock=lock or Durations.from_json(table.durations),
    ).to_json()


def durations(view: View) -> Durations:
    """The durations of an agent: the gate's, under which writers run (F437).

    The drain is the longer one of gate and spec, as the operator's own. Without a gate: the spec's.
    """
    stored = view.gate.lock or Durations.from_json(view.table.durations)
    return stored.but(drain_seconds=int(view.drain_seconds))


def generation_of(pod: PodFacts) -> int:
    """Generation of an agent pod; 0 when its label cannot be read."""
    label = pod.labels.get(naming.LABEL_ATTEMPT, "")
    return int(label) if label.isdigit() else 0


def current_pod(view: View) -> PodFacts | None:
    """The newest agent pod that is neither dead nor dying nor a suspect for this table.

    None when a new one is needed.
    """
    suspects = {i.pod_uid for i in view.incs if i.is_agent and (i.fenced or i.record is not None)}
    live = [
        p
        for p in view.agent_pods
        if not containers.ended(p) and not p.deleting and p.uid not in suspects and not _on_lost_node(view, p)
    ]
    return max(live, key=generation_of, default=None)


def _on_lost_node(view: View, pod: PodFacts) -> bool:
    """True when its node does not answer and it has no heartbeat in etcd.

    Another agent starts (F22).
    """
    node = view.nodes.get(pod.node)
    heard = any(i.pod_uid == pod.uid and i.alive is not None for i in view.incs)
    return node is not None and not node.ready and not heard


def serving(view: View) -> bool:
    """True when the current agent is registered for this table and alive."""
    pod = current_pod(view)
    return pod is not None and any(
        i.is_agent and i.pod_uid == pod.uid and i.registration is not None and i.alive is not None and i.record is None
        for i in view.incs
    )


def last_failure(view: View) -> str:
    """Error message of the newest agent that ended; empty when none failed."""
    newest = max((p for p in view.agent_pods if p.phase == "Failed"), key=generation_of, default=None)
    return f"{newest.name} failed: {classify.classify(newest).message}" if newest is not None else ""


def refusal(view: View) -> str:
    """Reason and message with which the API server has refused an object of the agent.

    Without a pod of the agent, an object of the next one. Empty: it has refused none.
    """
    pod = current_pod(view)
    name = pod.name if pod is not None else naming.agent_pod_name(view.agent, _next_generation(view))
    found = view.observed.refusals.get(naming.attempt_id(view.table.ref.namespace, name))
    return f"{found.reason}: {found.message}" if found is not None else ""


def executor_waits(view: View) -> str:
    """Why an executor of the table's own agent has no node.

    Empty when none waits, or at least one works: the agent's work needs one.
    """
    pod = current_pod(view)
    executors = view.executors(pod.name) if pod is not None else ()
    if any(p.phase == "Running" for p in executors):
        return ""
    return next((f"{p.name} has no node: {p.unschedulable}" for p in executors if p.unschedulable), "")


def withdrawn_agents(view: View, etcd: EtcdFacts) -> tuple[str, ...]:
    """Agents that have, or may have, the table although another one is to serve it (F585)."""
    before = str(view.status.get("agent") or "")
    stated = (before,) if before and before != view.agent else ()
    return tuple(dict.fromkeys((*stated, *etcd.elsewhere)))


@dataclass(frozen=True)
class _Work:
    """What the agent is to do: serve the table, or try whether it reaches the path."""

    id: str
    """Of the table, or of the trial."""
    etcd: EtcdFacts
    """The keys of that id."""
    order: JsonDict


def plan_agent(view: View) -> PartialPlan:
    """Assignment, admission and pod of the table's agent.

    Not called for a duplicate or deleted table.
    """
    order = assignment(view.table, view.now_ms, durations(view))
    return _plan(view, _Work(view.table.table_id, view.etcd, order))


def plan_trial(view: View) -> PartialPlan:
    """The same for the trial of the path: the agent gets no right at the table's keys (F617)."""
    found = view.observed.trial
    if found is None:
        return PartialPlan.of(summary="the trial of the path was not read", requeue=0.5)
    tried = naming.trial_id(view.table.ref.uid)
    order = TrialRecord(id=tried, path=view.table.canonical_path, table=view.table.ref.key, trial=True)
    step = _plan(view, _Work(tried, found, order.to_json()))
    waits = "other namespaces may use the path: no gate before the agent has created a file there, and deleted it"
    return replace(step, summary=(*step.summary, waits), requeue=min(step.requeue, TRIAL_SECONDS))


def _plan(view: View, work: _Work) -> PartialPlan:
    actions: list[Action] = []
    late: list[Action] = []
    before = str(view.status.get("agent") or "")
    actions.extend(PutAssignment(name, work.id, None) for name in withdrawn_agents(view, work.etcd))
    if work.etcd.assignment is None or work.etcd.assignment.value != work.order:
        # The agent of a table depends on the agents of others. It is in status before any agent
        # knows the table, so no later look chooses another one.
        (actions if before == view.agent else late).append(PutAssignment(view.agent, work.id, work.order))
    pod = current_pod(view)
    current = naming.attempt_id(view.table.ref.namespace, pod.name) if pod is not None else ""
    actions.extend(
        DeleteAdmit(work.id, attempt)
        for attempt, stored in work.etcd.admits.items()
        if stored.read(Admit).role == Role.AGENT and attempt != current
    )
    if pod is not None:
        actions.extend(StopTimer(name) for name in view.observed.timers if name.startswith(_BACKOFF_TIMER))
        if current not in work.etcd.admits:
            (actions if before == view.agent else late).append(PutAdmit(work.id, current, Role.AGENT))
        actions.extend(_copy_authority(view))
        waiting = ("waiting for the agent",) if not serving(view) else ()
        return PartialPlan(tuple(actions), waiting, late=(*late, *spark_keys.create(pod)))
    wait, timer = _backoff(view)
    if wait > 0:
        actions.extend([StartTimer(timer)] if view.timer(timer) is None else [])
        summary = (f"next agent in {wait:.0f} s",)
        return PartialPlan(tuple(actions), summary, min(wait, LONGEST_PAUSE_SECONDS), late=tuple(late))
    if view.observed.namespace_terminating:
        return PartialPlan(tuple(actions), late=tuple(late))
    if refused := launch.problem(view):
        return PartialPlan(tuple(actions), (f"no agent is started: {refused}",), late=tuple(late))
    generation = _next_generation(view)
    name = naming.agent_pod_name(view.agent, generation)
    again = launch.next_look(view, naming.attempt_id(view.table.ref.namespace, name))
    return PartialPlan(
        tuple(actions), (f"starting agent {name}",), again, late=(*late, *_create(view, generation, work.id))
    )


def _create(view: View, generation: int, admitted_at: str) -> list[Action]:
    attempt = naming.attempt_id(view.table.ref.namespace, naming.agent_pod_name(view.agent, generation))
    return [
        *ensure_namespace(view, view.table, attempt),
        Apply(configmaps.agent_config(view.table, view.agent, generation, view.config), attempt),
        PutAdmit(admitted_at, attempt, Role.AGENT),
        CreatePod(pods.agent_pod(view.table, view.agent, generation, view.config)),
    ]


def ensure_namespace(view: View, table: TableSpec, attempt: str) -> list[Action]:
    """Objects that pods of ``table`` require, applied before ``attempt`` has one."""
    accounts = [table.storage.service_account_name] if table.storage.service_account_name else []
    made = namespace.namespace_objects(table.ref.namespace, view.config, view.observed.etcd_authority, accounts)
    return [Ensure(manifest, attempt) for manifest in made]


def _copy_authority(view: View) -> list[Action]:
    """Copy a certificate authority of the gateway that was replaced into the namespace.

    Pods that run read it before the gateway's certificates are of the new one (F274).
    """
    authority = view.observed.etcd_authority
    if authority == view.observed.copied_authority or view.observed.namespace_terminating:
        return []
    return [Apply(namespace.authority_config_map(view.table.ref.namespace, authority))]


def _next_generation(view: View) -> int:
    """One more than the highest generation named by a pod, a registration or a settle record.

    Attempts are never reused.

    An admission alone does not use up a number: its pod was refused (quota, missing service
    account), and the same number is tried again.
    """
    prefix = naming.attempt_id(view.table.ref.namespace, view.agent) + "-"
    named = {i.attempt for i in view.incs}
    numbers = [int(a.removeprefix(prefix)) for a in named if a.startswith(prefix) and a.removeprefix(prefix).isdigit()]
    return max([0, *numbers, *(generation_of(p) for p in view.agent_pods)]) + 1


def _backoff(view: View) -> tuple[float, str]:
    """Seconds to wait before the next generation (0: it is due) and the timer that measures them.

    Exponential in the number of recently ended generations.

    The kubelet's clock may be ahead. The wait therefore ends at the latest when the operator itself
    has waited this long (F57).
    """
    pods = [p for p in view.agent_pods if p.containers and containers.ended(p)]
    ends = [(conditions.from_rfc3339(max(c.finished_at for c in p.containers)), p.uid) for p in pods]
    recent = sorted((e, uid) for e, uid in ends if e is not None and view.now_ms - e < CRASH_WINDOW_SECONDS * 1000)
    if not recent:
        return 0.0, ""
    delay = exponential(len(recent), first=FIRST_BACKOFF_SECONDS, longest=MAX_BACKOFF_SECONDS)
    ended_ms, uid = recent[-1]
    timer = _BACKOFF_TIMER + uid
    return max(0.0, min((ended_ms - view.now_ms) / 1000 + delay, delay - (view.timer(timer) or 0.0))), timer

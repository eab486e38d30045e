"""``plan_table``: turns everything observed about one HudiTable into the next actions.

Its steps are read, decide and act; the result has one sentence, too.

Order of a plan: first the actions that make the table safer (gate, fences, settling), then every
status (write-ahead of new attempts), then the actions that a status has announced and that create
something. The executor stops at the first action that fails; the next look decides again (I6).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from hudi_contract import naming
from hudi_contract.backoff import LONGEST_PAUSE_SECONDS
from hudi_contract.naming import EVIDENCE_FINALIZER, TABLE_KIND, WRITER_KIND
from hudi_contract.words import WriterState
from hudi_operator.api.spec import ObjectRef
from hudi_operator.manifests import namespace
from hudi_operator.model import conditions, doubts
from hudi_operator.model.config import OperatorConfig
from hudi_operator.model.facts import Observed
from hudi_operator.model.status import PlanStatus, attempt_entries
from hudi_operator.plan import deletion, table_events, table_status
from hudi_operator.plan.agent import agent_pods, agents, table_services
from hudi_operator.plan.core import trial
from hudi_operator.plan.core.actions import Action, Apply, PatchFinalizers, Plan, StopTimer, Unbind, UpdateStatus
from hudi_operator.plan.core.ownership import has_role
from hudi_operator.plan.core.partial_plan import PartialPlan, guarded, together
from hudi_operator.plan.core.view import View, WriterView, build_view
from hudi_operator.plan.fencing import collection, evidence, held_config_maps, settling, sightings, suspects
from hudi_operator.plan.gate import adoption, asked, gate, stalled, taking_over, turns
from hudi_operator.plan.requests import bootstrap, catalogs, holds, metadata_table, restores, savepoints
from hudi_operator.plan.writers import admission, attempts, deadlines, executors_missing, writer_status
from hudi_operator.plan.writers.admission import Decision, Kind
from hudi_operator.plan.writers.next_step import Verdict
from hudi_operator.plan.writers.runs import Progress

JsonDict = dict[str, Any]
RIGHTS_SECONDS = 2.0
"""Until the next look at a table whose operator has just bound a role to itself."""
_CONDITIONS_OF_WAITING = (
    "Ready",
    "Admitted",
    "Running",
    "Finished",
    "Succeeded",
    "Suspended",
    "Reconciling",
    "Stalled",
)


def plan_table(observed: Observed, config: OperatorConfig) -> Plan:
    """The next step for one table and its writers. Pure; never raises for a bad object."""
    if observed.table is None:
        return _plan_without_table(observed, config)
    known, unreadable = observed.objects.table_spec
    if known is None:
        return _plan_status_only(observed, "InvalidSpec", unreadable, stalled=True)
    if observed.etcd_fitness.refused:
        reason, message = observed.etcd_fitness.reason, observed.etcd_fitness.message
        return _plan_status_only(observed, reason, message, stalled=True, etcd=False)
    if observed.etcd is None:
        reason = "etcd cannot be read: " + (observed.etcd_error or "unknown")
        # I11: unknown is not empty. Nothing is decided; running writers continue.
        return _plan_status_only(observed, "EtcdUnavailable", reason, stalled=False, etcd=False)
    view = build_view(observed, config)
    return _finish(view, *_plan(view))


def _unchanged(view: View) -> dict[str, Progress]:
    """The attempts of each writer as they are."""
    return {writer.name: Progress(tuple(attempt.entry for attempt in writer.attempts)) for writer in view.writers}


def _plan(view: View) -> tuple[PartialPlan, dict[str, Progress]]:
    """Everything but status: one step, and the writers' progress."""
    ref = view.table.ref
    if gate.owned_by_other(view):
        return together(_of_another(view)), _unchanged(view)
    if turns.waits(view) and not ref.deleting:
        return turns.plan_waiting(view), _unchanged(view)
    if gate.too_new(view):
        return PartialPlan.of(summary=gate.too_new(view)), _unchanged(view)
    if not ref.deleting and not deletion.has_finalizer(ref) and not view.observed.namespace_terminating:
        return PartialPlan.of(
            deletion.add_finalizer(TABLE_KIND, ref), summary="taking charge of the table", requeue=0.5
        ), {}
    progress, lost = _follow(view)
    if doubts.gate_unreadable(view.etcd) and view.observed.tables_on_path:
        return PartialPlan.of(
            summary="the gate cannot be read, and another HudiTable has this path: nothing is touched"
        ), progress
    if _not_taken_over(view):
        return together([PartialPlan.of(summary="the table cannot be used as specified"), trial.end(view)]), progress
    if gate.tries(view) and not view.unreadable:
        pods = _part(view, "agent pods", agent_pods.plan_agent_pods)
        return together([pods, _part(view, "the trial of the path", agents.plan_trial)]), progress
    fencing = [
        _part(view, *each)
        for each in (
            ("fences", _suspects),
            ("settling", settling.plan_settling),
            ("sightings", sightings.plan_sightings),
        )
    ]
    safe = [
        *fencing,
        lost,
        _part(view, "evidence", evidence.plan_evidence),
        _part(view, "what executors are compared with", held_config_maps.plan_held),
    ]
    if not ref.deleting:
        safe.append(_part(view, "the turn of a HudiTable", turns.plan_time))
        if turns.is_over(view):
            pods = _part(view, "agent pods", agent_pods.plan_agent_pods)
            return together([*safe, pods, _part(view, "giving way", deletion.plan_giving_way)]), progress
    if view.unreadable and not ref.deleting:
        # Gate, agent and requests follow from the spec (F69). Dead incarnations are still fenced
        # and settled.
        return together(
            [PartialPlan.of(summary=f"the HudiTable is not fully readable: {view.unreadable}"), *safe]
        ), progress
    safe.append(_part(view, "agent pods", agent_pods.plan_agent_pods))
    if ref.deleting:
        # The gate is released before the agent leaves, and both happen before the
        # finalizer is removed.
        return together(
            [
                *safe,
                _part(view, "the agent of a deleted table", _kept_agent),
                _part(view, "deletion", deletion.plan_table),
            ]
        ), progress
    mine = [
        _part(view, "the agent", agents.plan_agent),
        _part(view, "requests", _requests),
        _part(view, "collection", collection.plan_collection),
        _part(view, "the end of the trial", trial.end),
    ]
    return together([_part(view, "the gate", gate.plan_gate), *safe, *(mine if gate.is_mine(view) else [])]), progress


def _of_another(view: View) -> list[PartialPlan]:
    """Every key of this table id belongs to the HudiTable that the gate names: none is changed."""
    if not view.table.ref.deleting:
        return [taking_over.plan(view), trial.end(view)]
    pods = _part(view, "agent pods", agent_pods.plan_agent_pods)
    return [pods, _part(view, "deletion", deletion.plan_table)]


def _not_taken_over(view: View) -> bool:
    """True for a table that may not be used.

    It is not taken over, and nothing that exists at its path is touched.

    When neither the spec nor the gate is readable, only the path determines the owner.
    """
    if (
        gate.is_mine(view)
        or view.table.ref.deleting
        or (view.unreadable and view.table.path and doubts.gate_unreadable(view.etcd))
    ):
        return False
    return stalled.unusable(view) is not None


def _part(view: View, what: str, plan: Callable[[View], PartialPlan]) -> PartialPlan:
    return guarded(what, partial(plan, view))


def _follow(view: View) -> tuple[dict[str, Progress], PartialPlan]:
    """The writers' progress. A writer with a defect keeps its entries, and a step reports it."""
    found: dict[str, Progress] = {}
    steps = []
    for writer in view.writers:
        found[writer.name] = Progress(tuple(a.entry for a in writer.attempts))

        def follow(writer: WriterView = writer) -> PartialPlan:
            found[writer.name] = attempts.follow(view, writer)
            return PartialPlan()

        steps.append(guarded(f"the attempts of {writer.name}", follow))
    return found, together(steps)


def _kept_agent(view: View) -> PartialPlan:
    begun = gate.is_mine(view) and restores.begun(view) is not None and not view.unreadable
    needed = begun or catalogs.dropping(view)
    return agents.plan_agent(view) if needed and not view.observed.namespace_terminating else PartialPlan()


def _suspects(view: View) -> PartialPlan:
    """Dead incarnations are fenced even when the purpose of the closed gate is unreadable (F46)."""
    changes: list[str] = []
    agent = [True]  # as long as it is not known

    def ask() -> PartialPlan:
        changes.append(gate.ends_runs(view))
        agent[0] = asked.asks_the_agent(view)
        return PartialPlan()

    purpose = guarded("the change for which the gate is closed", ask)
    return together([purpose, suspects.plan_suspects(view, changing=any(changes), asked=agent[0])])


def _requests(view: View) -> PartialPlan:
    """Requests to the agent.

    No request is put or withdrawn while the outcome of an earlier one is unknown.
    """
    if doubts.undecided(view.etcd):
        return PartialPlan()
    restoring = bool(gate.closed_for_restore(view))
    held = savepoints.plan_requests(
        view, drained=gate.drained(view) and bool(gate.closed_for_savepoint(view)) and not restoring
    )
    dropped = savepoints.plan_deletions(view, ready=gate.adopted(view) and not restoring)
    back = restores.plan_requests(view, adopted=gate.adopted(view), ready=gate.ready_to_restore(view))
    listing = metadata_table.plan_request(view, drained=gate.drained(view) and bool(gate.closed_for_metadata(view)))
    services = table_services.plan_requests(view)
    kept = holds.plan_requests(view, adopted=gate.adopted(view))
    first = bootstrap.plan_request(view, adopted=gate.adopted(view), ready=gate.alone(view))
    return together([adoption.plan_adoption(view), first, held, dropped, back, listing, services, kept])


def _finish(view: View, step: PartialPlan, progress: dict[str, Progress]) -> Plan:
    """Add the writers' actions and all statuses to a step."""
    if not progress and view.writers:
        progress = _unchanged(view)
    rights = guarded("the right to read Secrets", partial(_rights, view))
    if any(isinstance(a, PatchFinalizers) and a.add for a in step.actions):
        return Plan(
            "; ".join(step.summary), (*step.actions, *rights.late), step.requeue, (*step.failed, *rights.failed)
        )
    decisions: dict[str, Decision] = {}
    starts: dict[str, PartialPlan] = {}
    statuses = guarded("who may start", lambda: _decide(view, progress, decisions, starts))
    # New attempts before repeated ones: a pod that is refused repeatedly does not make other
    # writers wait.
    order = sorted(
        (w for w in view.writers if w.name in decisions), key=lambda w: decisions[w.name].kind is not Kind.START
    )
    each = [starts.get(w.name) or _writer(view, w, progress[w.name], decisions[w.name]) for w in order]
    writers = together([statuses, *each, rights])
    summary, failed = (*step.summary, *writers.summary), (*step.failed, *writers.failed)
    sentence = "; ".join((*summary, *failed)) or _idle_sentence(view, decisions)
    finalizers = tuple(a for a in step.actions if isinstance(a, PatchFinalizers))
    rest = tuple(a for a in step.actions if not isinstance(a, PatchFinalizers))
    if finalizers:
        return Plan(sentence, (*rest, *writers.actions, *finalizers), min(step.requeue, writers.requeue), failed)
    own = guarded("the table's status", partial(_own_status, view, decisions, sentence, failed))
    # No agent gets a table whose status does not name it (F585).
    late = () if own.failed and view.status.get("agent") != view.agent else step.late
    plan = (*rest, *own.actions, *writers.actions, *late, *writers.late)
    return Plan(sentence, plan, min(step.requeue, writers.requeue), (*failed, *own.failed))


def _decide(
    view: View, progress: dict[str, Progress], decisions: dict[str, Decision], starts: dict[str, PartialPlan]
) -> PartialPlan:
    """``starts``: the steps of writers that start now, by name."""

    def planned(writer: WriterView, decision: Decision) -> str:
        step = guarded(
            f"the start of {writer.name}", partial(_writer_step, view, writer, progress[writer.name], decision)
        )
        if not step.failed:
            starts[writer.name] = step
        return "; ".join(step.failed)

    decisions.update(admission.decide(view, progress, planned=planned))
    return PartialPlan(failed=tuple(d.message for d in decisions.values() if d.reason == admission.PLANNING_FAILED))


def _writer(view: View, writer: WriterView, progress: Progress, decision: Decision) -> PartialPlan:
    """One writer. If nothing else can be planned for it, its status says so (F515)."""
    step = guarded(f"the status of {writer.name}", partial(_writer_step, view, writer, progress, decision))
    if not step.failed:
        return step

    def told() -> PartialPlan:
        why = decision.message if decision.reason == admission.PLANNING_FAILED else step.failed[0]
        update = writer_status.update(writer, writer_status.undecided(view, writer, why))
        return PartialPlan(() if update is None else (update,))

    return together([step, guarded(f"what stops {writer.name}", told)])


def _own_status(view: View, decisions: dict[str, Decision], sentence: str, failed: tuple[str, ...]) -> PartialPlan:
    status = table_status.table_status(view, decisions, sentence, failed=failed)
    obj = view.observed.table or {}
    update = table_status.update(obj, status)
    if update is None:
        return PartialPlan()
    return PartialPlan((update, *(() if view.observed.namespace_terminating else table_events.events(obj, status))))


def _rights(view: View) -> PartialPlan:
    """The operator's right to read Secrets of the namespace, where it does not have it.

    It comes last: only the launch of pods waits for it, which the next look decides.
    """
    binding = view.config.consent_binding
    if not view.observed.secrets_unreadable or view.observed.namespace_terminating or _not_taken_over(view):
        return PartialPlan()
    if not binding.given:  # the chart gives it
        return PartialPlan((), ("waiting for the right to read Secrets",), RIGHTS_SECONDS)
    made = Apply(namespace.consent_binding(view.table.ref.namespace, binding))
    return PartialPlan((), (f"binding the role {binding.role} to itself",), RIGHTS_SECONDS, late=(made,))


def _idle_sentence(view: View, decisions: dict[str, Decision]) -> str:
    kinds = [d.kind for d in decisions.values()]
    return (
        f"{kinds.count(Kind.ACTIVE)} running, {kinds.count(Kind.WAIT)} queued; gate "
        f"{view.gate.state or 'missing'}, nothing to do"
    )


def _writer_step(view: View, writer: WriterView, progress: Progress, decision: Decision) -> PartialPlan:
    """One writer: actions before the status, the status, and the actions that it announces.

    The status has a new attempt's number.
    """
    ref = ObjectRef.from_object(writer.obj)
    if ref.deleting and not deletion.has_finalizer(ref):
        return PartialPlan(progress.before, progress.summary, progress.requeue)
    if not ref.deleting and not deletion.has_finalizer(ref) and not view.observed.namespace_terminating:
        return PartialPlan.of(
            deletion.add_finalizer(WRITER_KIND, ref), summary=f"taking charge of {ref.name}", requeue=0.5
        )
    leave = deletion.plan_writer(view, writer, progress)
    missing = executors_missing.plan(view, writer)
    if leave.actions:
        before = (*progress.before, *missing.actions)
        return PartialPlan((*before, *leave.actions), (*progress.summary, *leave.summary))
    status = writer_status.writer_status(view, writer, progress, decision)
    update = writer_status.update(writer, status)
    actions: list[Action] = [*progress.before, *([update] if update is not None else [])]
    late = [*progress.after, *missing.late]
    summary = [*progress.summary, *leave.summary, *missing.summary]
    if decision.kind is Kind.START and writer.spec is not None:
        entries = attempt_entries(status)
        late.extend(attempts.start_actions(view, writer.spec, entries[-1], entries))
        summary.append(f"starting attempt {decision.number} of {ref.name}")
    if not view.observed.namespace_terminating and update is not None:
        actions.extend(writer_status.events(view, writer, progress, decision, status))
    ended = [StopTimer(f"stop/{a.id}") for a in writer.attempts if a.ended and view.timer(f"stop/{a.id}") is not None]
    requeue = min(
        progress.requeue,
        leave.requeue,
        missing.requeue,
        _until(view, decision.retry_ms),
        _until(view, writer_status.next_tick_ms(status)),
    )
    return PartialPlan((*actions, *missing.actions, *ended), tuple(summary), requeue, late=tuple(late))


def _until(view: View, at_ms: int) -> float:
    return max(0.5, min(LONGEST_PAUSE_SECONDS, (at_ms - view.now_ms) / 1000)) if at_ms else LONGEST_PAUSE_SECONDS


# ---- when there is no table, or it is unreadable


def _plan_without_table(observed: Observed, config: OperatorConfig) -> Plan:
    """Writers without a HudiTable wait, with a condition.

    Deleted ones are removed when none of their pods is evidence. Last of all go the rights of
    accounts that a HudiTable which is gone has used, and no other one uses.
    """
    actions: list[Action] = list(held_config_maps.last(observed))
    for obj in observed.writers:
        ref = ObjectRef.from_object(obj)
        if ref.deleting:
            evidence_left = any(
                p.labels.get(naming.LABEL_WRITER) == naming.label_value(ref.name)
                and has_role(p)
                and EVIDENCE_FINALIZER in p.finalizers
                for p in observed.pods
            )
            if deletion.has_finalizer(ref) and not evidence_left:
                actions.append(deletion.drop_finalizer(WRITER_KIND, ref))
            continue
        name = ((obj.get("spec") or {}).get("tableRef") or {}).get("name", "?")
        update = _waiting_writer(
            obj,
            reason="TableNotFound",
            message=f"HudiTable {name} does not exist in this namespace",
            now_ms=observed.now_ms,
        )
        if update is not None:
            actions.append(update)
    if not observed.namespace_terminating:
        actions.append(Unbind(config.driver_role))
    return Plan("the HudiTable does not exist: its writers wait", tuple(actions))


def _waiting_writer(obj: JsonDict, *, reason: str, message: str, now_ms: int) -> UpdateStatus | None:
    """Status of a writer about which only ``reason`` is known; other fields keep their values."""
    old = obj.get("status") or {}
    meta = obj["metadata"]
    generation = int(meta.get("generation") or 0)
    stored = {c["type"]: c for c in old.get("conditions") or []}
    wanted, over = [], conditions.is_true(old, "Finished")
    for kind in _CONDITIONS_OF_WAITING:
        known = stored.get(kind)
        if kind in ("Admitted", "Reconciling") or (kind == "Ready" and not over):
            wanted.append(conditions.condition(kind, kind == "Reconciling", reason, message))
        elif known is not None:
            wanted.append(conditions.Condition(kind, known["status"], known["reason"], known.get("message", "")))
        else:
            wanted.append(conditions.condition(kind, False, reason, message))
    status = {
        **old,
        "observedGeneration": generation,
        "executedNonce": old.get("executedNonce", str((obj.get("spec") or {}).get("restartNonce") or "")),
        "plan": PlanStatus(verdict=Verdict.WAITS.value, reason=reason, message=message).to_json(),
        "state": old.get("state", WriterState.WAITING.value) if over else WriterState.WAITING.value,
        "conditions": conditions.merge(old.get("conditions") or [], wanted, generation=generation, now_ms=now_ms),
    }
    return None if over else UpdateStatus.of(naming.WRITER_KIND, obj, status)


def _plan_status_only(observed: Observed, reason: str, message: str, *, stalled: bool, etcd: bool = True) -> Plan:
    """``etcd``: it can be read."""
    obj = observed.table or {}
    status = table_status.without_etcd(
        obj, reason=reason, message=message, stalled=stalled, now_ms=observed.now_ms, fitness=observed.etcd_fitness
    )
    update = table_status.update(obj, status)
    waits = () if etcd else deadlines.without_etcd(observed, reason)
    return Plan(message, ((update,) if update is not None else ()) + waits, 5.0)

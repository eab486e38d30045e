"""Performs the actions of a plan in order and stops at the first failure.

The next reconcile reads and decides again (I6). A refusal of the API server for one object stops
only actions that depend on that object (F245, F430).
"""

from __future__ import annotations

import asyncio
import base64
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_contract import naming
from hudi_operator.control.applied_objects import AppliedObjects
from hudi_operator.control.attempt_credentials import AttemptCredentials
from hudi_operator.control.begun import Begun, attempt_of, begun, made_of_attempts, secrets_of_pod
from hudi_operator.control.driver_bindings import DriverBindings
from hudi_operator.control.event_limit import EventLimit, event_key, regarding
from hudi_operator.control.executor_questions import ExecutorQuestions
from hudi_operator.control.late_statuses import LateStatuses
from hudi_operator.control.own_objects import foreign, in_own_namespace, is_own
from hudi_operator.control.queue import Key
from hudi_operator.control.refusals import Refusals
from hudi_operator.control.refused_writes import RefusedWrites, found_in, held, object_of
from hudi_operator.control.repeated import Repeated
from hudi_operator.control.status_writes import StatusWrites
from hudi_operator.control.timers import Timers
from hudi_operator.manifests import pod_secrets, spark_conf
from hudi_operator.model.facts import Observed, PodName
from hudi_operator.model.ports import EtcdPort, Fatal, KubernetesPort, Refused, Retryable
from hudi_operator.plan.core import actions as act

JsonDict = dict[str, Any]
LOG = logging.getLogger("hudi_operator.control")
EVENTS_SECONDS = 3.0
"""Maximum time for the events of one look."""
KEY_BYTES = 32
"""Length of a key that the operator makes."""
NOTHING = Begun("")
"""Value for an attempt for which the plan makes nothing, or that cannot be read."""
FOREIGN_KEY_GRACE_SECONDS = 5
"""Grace period of a pod whose key somebody else has made; never 0."""


@dataclass
class Context:
    """One run of the executor."""

    key: Key
    observed: Observed
    done: list[act.Action] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Actions that could not be performed, in words; the rest of the plan was performed."""
    waiting: set[str] = field(default_factory=set)
    """Attempts for which the API server does not make something: nothing of them is done."""
    admitting: dict[str, str] = field(default_factory=dict)
    """Table ids of the attempts that the plan admits."""
    foreign_files: set[str] = field(default_factory=set)
    """ConfigMaps of others under names of the operator's: no pod is created that mounts one."""
    writes: RefusedWrites = field(default_factory=RefusedWrites)
    """Writes that were refused of objects that are not for one attempt alone."""


class Executor:
    """Performs plans. Raises the exceptions of the ports, and LeaseLost from ``check_leader``."""

    def __init__(
        self,
        *,
        kubernetes: KubernetesPort,
        etcd: EtcdPort,
        timers: Timers,
        check_leader: Callable[[], None],
        credentials: AttemptCredentials | None = None,
        applied: AppliedObjects | None = None,
        refusals: Refusals | None = None,
        questions: ExecutorQuestions | None = None,
        logged: Repeated | None = None,
        late: LateStatuses | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``credentials`` None: there is no broker.

        ``applied``, ``refusals``, ``questions`` and ``late`` are shared with the observer;
        ``logged``: recently logged lines. ``clock``: monotonic, in seconds.
        """
        self._kubernetes = kubernetes
        self._etcd = etcd
        self._timers = timers
        self._check_leader = check_leader
        self._credentials = credentials
        self._applied = applied or AppliedObjects()
        self._refusals = refusals or Refusals()
        self._questions = questions or ExecutorQuestions(kubernetes)
        self._events = EventLimit()
        self.statuses = StatusWrites(kubernetes, late, clock)
        self._logged = logged or Repeated()
        self._bindings = DriverBindings(
            kubernetes, applied=self._applied, check_leader=check_leader, logged=self._logged
        )
        self._perform: Mapping[type[act.Action], Callable[[Context, Any], Awaitable[object]]] = {
            act.PatchFinalizers: self._patch_finalizers,
            act.UpdateStatus: self._update_status,
            act.Apply: self._apply,
            act.Ensure: self._ensure,
            act.CreatePod: self._create_pod,
            act.CreateKey: self._create_key,
            act.GiveCredentials: self._give_credentials,
            act.RevokeCredentials: self._revoke_credentials,
            act.AskStore: self._ask_store,
            act.AskExecutors: self._ask_executors,
            act.DeletePod: self._delete_pod,
            act.DropEvidence: self._drop_evidence,
            act.HoldConfigMap: self._hold_config_map,
            act.ReleaseConfigMap: self._release_config_map,
            act.DeleteObject: self._delete_object,
            act.Unbind: self._unbind,
            act.PutGate: self._put_gate,
            act.PutAdmit: self._put_admit,
            act.DeleteAdmit: self._delete_admit,
            act.PutAssignment: self._put_assignment,
            act.Fence: self._fence,
            act.Adopt: self._adopt,
            act.UpdateSettle: self._update_settle,
            act.Unlock: self._unlock,
            act.FinishSettle: self._finish_settle,
            act.Collect: self._collect,
            act.DeleteReport: self._delete_report,
            act.DeleteDone: self._delete_done,
            act.EndTrial: self._end_trial,
            act.PutRequest: self._put_request,
            act.PutSeen: self._put_seen,
            act.StartTimer: self._start_timer,
            act.StopTimer: self._stop_timer,
        }

    async def perform(self, key: Key, observed: Observed, plan: act.Plan) -> list[act.Action]:
        """Perform all actions of ``plan``; returns those that changed something.

        Leadership is checked before each action: a process that was frozen in between stops here
        when it wakes up. Events are for people: they come after everything else, and together delay
        the table by at most :data:`EVENTS_SECONDS` (F55).
        """
        context, events = Context(key, observed), list[act.EmitEvent]()
        try:
            made, taken = await self._begun(context, plan)
            self._questions.keep(key, observed)
            context.waiting.update(a for a, one in made.items() if self._refusals.wait(key, a, one.digest))
            await self._withdraw_unmade(context, plan, {*taken, *context.waiting})
            for action in plan.actions:
                self._check_leader()
                attempt = attempt_of(action)
                if isinstance(action, act.EmitEvent):
                    events.append(action)
                elif (
                    not context.writes.withhold(action, last=context.observed.table is None)
                    and attempt not in taken
                    and attempt not in context.waiting
                    and not context.foreign_files & made.get(attempt, NOTHING).files
                ):
                    await self._attempted(context, action, attempt, made.get(attempt, NOTHING).digest)
            await self._write_late(context)
            for attempt in made.keys() - context.waiting:
                self._refusals.passed(key, attempt)
            if context.refused:
                raise Fatal("; ".join(context.refused))
        except (Retryable, Fatal) as error:
            error.done = context.done
            if isinstance(error, Retryable):  # it may fail for hours, and these have waited for long enough
                await self._write_late(context)
            raise
        finally:
            await self._tell(context, events)
        return context.done

    async def _write_late(self, context: Context) -> None:
        """Write the statuses that no action of the plan has replaced, and that are due."""
        for late in self.statuses.due(context.key):
            self._check_leader()
            await self._attempted(context, late, "", "")

    async def _attempted(self, context: Context, action: act.Action, attempt: str, digest: str) -> None:
        """Perform one action.

        A refusal of an object of one attempt stops this attempt, and a refusal of another object
        stops the actions that depend on it: everything else in the plan goes on (F245, F430).
        """
        try:
            await self._perform[type(action)](context, action)
        except Refused as error:
            if not attempt:
                if self._logged.due((context.key, object_of(action) or type(action).__name__, error.reason)):
                    LOG.warning("%s: refused: %s", "/".join(context.key), error)
                context.refused.append(str(error))
                context.waiting |= context.writes.refuse(action, context.observed)
                return
            delay = self._refusals.refused(context.key, attempt, digest, error)
            context.waiting.add(attempt)
            LOG.warning("%s: attempt %s waits: %s; again in %.0f s", "/".join(context.key), attempt, error, delay)
            if isinstance(action, act.CreatePod):
                await self._withdraw_refused(context, action, attempt)

    async def _withdraw_unmade(self, context: Context, plan: act.Plan, attempts: set[str]) -> None:
        """Withdraw the admissions of attempts that get no pod now (F291)."""
        unmade = attempts & {attempt_of(action) for action in plan.actions if isinstance(action, act.CreatePod)}
        for action in plan.actions:
            if isinstance(action, act.PutAdmit):
                context.admitting[action.attempt] = action.table_id
        etcd = context.observed.etcd
        for attempt in sorted(unmade & context.admitting.keys() & (etcd.admits.keys() if etcd is not None else set())):
            self._check_leader()
            await self._etcd.delete_admit(context.admitting[attempt], attempt=attempt)

    async def _withdraw_refused(self, context: Context, action: act.CreatePod, attempt: str) -> None:
        """Withdraw the admission of an attempt whose pod was not made (F291).

        The gateway knows a pod by its name, and another one of that name may come. The API server
        may refuse a pod that is there already.
        """
        meta = action.manifest["metadata"]
        found = await self._kubernetes.get("Pod", meta["namespace"], meta["name"])
        if attempt in context.admitting and (found is None or not is_own(found, action.manifest)):
            self._check_leader()
            await self._etcd.delete_admit(context.admitting[attempt], attempt=attempt)

    def forget(self, key: Key) -> None:
        """Forget a table at which no look is made any more."""
        if self._credentials is not None:
            self._credentials.forget(key)

    def has_news(self, key: Key, observed: Observed) -> bool:
        """Whether something was refused, or is no more, or was answered, since a table was seen."""
        return self._refusals.facts(key) != observed.refusals or self._questions.facts(key) != observed.executor_answers

    async def _begun(self, context: Context, plan: act.Plan) -> tuple[dict[str, Begun], set[str]]:
        """Objects that the plan makes for each attempt, and attempts whose names are taken.

        A name is taken when an object that is not the operator's has it.

        This is checked before the attempts are admitted, because the gateway knows a pod by its
        name. An attempt for which it cannot be checked waits like one that is refused; everything
        else goes on (F516).
        """
        found: dict[str, Begun] = {}
        taken: set[str] = set()
        unread: dict[str, Exception] = {}
        for attempt, made in made_of_attempts(plan).items():
            try:
                for action in made:
                    if isinstance(action, act.CreatePod) and (problem := await self._taken_name(action.manifest)):
                        taken.add(attempt)
                        context.refused.append(problem)
                found[attempt] = begun(made)
            except (Retryable, Fatal):
                raise
            except Exception as error:
                found[attempt], unread[attempt] = NOTHING, error
        self._refusals.keep(context.key, {attempt: one.digest for attempt, one in found.items()})
        for attempt, why in unread.items():
            if not self._refusals.wait(context.key, attempt, NOTHING.digest):
                text = f"what is made for attempt {attempt} cannot be read: {type(why).__name__}: {why}"[:500]
                LOG.error("%s: %s", "/".join(context.key), text, exc_info=why)
                context.refused.append(text)
                self._refusals.refused(context.key, attempt, NOTHING.digest, Refused(text, reason="Invalid"))
        return found, taken

    async def _tell(self, context: Context, events: list[act.EmitEvent]) -> None:
        try:
            async with asyncio.timeout(EVENTS_SECONDS):
                for event in events:
                    await self._emit_event(context, event)
        except TimeoutError:
            LOG.info("%s: not every event was emitted", "/".join(context.key))

    async def report(self, observed: Observed, problem: str) -> None:
        """Report on the HudiTable why the operator cannot act. A plan cannot know this."""
        if observed.table is None:
            return
        meta = observed.table["metadata"]
        event = act.EmitEvent(
            naming.TABLE_KIND, meta["namespace"], meta["name"], meta["uid"], "Warning", "ActionRefused", problem
        )
        await self._emit_event(Context((meta["namespace"], meta["name"]), observed), event)

    # ---- Kubernetes

    async def _patch_finalizers(self, context: Context, action: act.PatchFinalizers) -> None:
        await self._kubernetes.patch_finalizers(
            action.kind, action.namespace, action.name, add=action.add, remove=action.remove
        )
        context.done.append(action)

    async def _update_status(self, context: Context, action: act.UpdateStatus) -> None:
        if await self.statuses.write(context.key, action, found_in(context.observed, action.kind, action.name)):
            context.done.append(action)

    async def _apply(self, context: Context, action: act.Apply) -> bool:
        """Whether it was applied; else somebody else's ConfigMap has the name."""
        try:
            await self._bindings.apply(action.manifest)
        except Fatal:
            if not await self._foreign_file(context, action.manifest):
                raise
            return False
        self._applied.applied(action.manifest)
        context.done.append(action)
        return True

    async def _ensure(self, context: Context, action: act.Ensure) -> None:
        """Apply what all pods of a namespace share, unless it is known to be there."""
        manifest, uid = action.manifest, context.observed.namespace_uid
        if self._applied.is_ensured(manifest, namespace_uid=uid) and await self._is_there(manifest):
            return
        if await self._apply(context, action):
            self._applied.ensured(manifest, namespace_uid=uid)

    async def _is_there(self, manifest: JsonDict) -> bool:
        """Whether the gateway's authority is there for pods: without it they never finish starting.

        A missing object of another kind is reported when the pod is created, or is not needed at
        once.
        """
        if manifest["kind"] != "ConfigMap":
            return True
        meta = manifest["metadata"]
        found = await self._kubernetes.get("ConfigMap", meta["namespace"], meta["name"])
        if found is None or found.get("data") != manifest["data"]:
            return False
        return set(meta["labels"].items()) <= set((found["metadata"].get("labels") or {}).items())

    async def _foreign_file(self, context: Context, manifest: JsonDict) -> bool:
        """Whether somebody else has made the ConfigMap of an attempt or agent, which then waits.

        The policy `own-objects` keeps it from the operator. Everything else goes on (F272).
        """
        meta = manifest["metadata"]
        if manifest["kind"] != "ConfigMap":
            return False
        found = await self._kubernetes.get("ConfigMap", meta["namespace"], meta["name"])
        if found is None or naming.MANAGED.items() <= (found["metadata"].get("labels") or {}).items():
            return False
        context.foreign_files.add(meta["name"])
        context.refused.append(foreign("ConfigMap", meta["namespace"], meta["name"]))
        return True

    async def _taken_name(self, pod: JsonDict) -> str:
        """Why the names of a pod and of its key are not free.

        Empty: they are, or the pod is the operator's own.
        """
        meta = pod["metadata"]
        found = await self._kubernetes.get("Pod", meta["namespace"], meta["name"])
        if found is not None:
            return "" if is_own(found, pod) else foreign("Pod", meta["namespace"], meta["name"])
        mounted = secrets_of_pod(pod)
        for name in (naming.spark_key_name(meta["name"]), naming.storage_key_name(meta["name"])):
            if name in mounted and (problem := await self._foreign_key(meta["namespace"], name, "")):
                return problem
        return ""

    async def _foreign_key(self, namespace: str, name: str, pod_uid: str) -> str:
        """Why a Secret is not to be used as the key of a pod.

        Empty: it does not exist, or belongs to this pod, whose uid nobody knew before it was there.
        """
        try:
            owners = await self._kubernetes.owners("Secret", namespace, name)
        except Fatal:
            # The operator may read no Secrets (config.consent.secrets: Off, or its RoleBinding was
            # deleted since it was last asked): then the policy `keys` alone keeps others from
            # making one of that name.
            self._applied.forget(namespace)
            return ""
        return "" if owners is None or pod_uid in owners else foreign("Secret", namespace, name)

    async def _create_pod(self, context: Context, action: act.CreatePod) -> None:
        meta = action.manifest["metadata"]
        try:
            uid = await self._kubernetes.create(action.manifest)
        except (Fatal, Retryable):
            # Its ServiceAccount may be gone.
            self._applied.forget(meta["namespace"])
            raise
        if uid:
            context.done.append(action)
            await self._create_its_key(context, action.manifest, uid)
            return
        found = await self._kubernetes.get("Pod", meta["namespace"], meta["name"])
        if found is not None and not is_own(found, action.manifest):
            table, _ = context.observed.objects.table_spec
            if table is not None:
                attempt = naming.attempt_id(meta["namespace"], meta["name"])
                await self._etcd.delete_admit(table.table_id, attempt=attempt)
            context.refused.append(foreign("Pod", meta["namespace"], meta["name"]))

    async def _create_its_key(self, context: Context, pod: JsonDict, uid: str) -> None:
        """The key of a new pod, for which its kubelet waits; if it fails, a later look makes it."""
        meta = pod["metadata"]
        if naming.spark_key_name(meta["name"]) in secrets_of_pod(pod):
            self._check_leader()
            manifest = pod_secrets.spark_key(meta["namespace"], PodName(meta["name"], uid))
            await self._create_key(context, act.CreateKey(manifest, spark_conf.SPARK_KEY))

    async def _create_key(self, context: Context, action: act.CreateKey) -> None:
        meta = action.manifest["metadata"]
        (pod,) = meta["ownerReferences"]
        if self._applied.has_key(pod["uid"]):
            return
        key = base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()
        if await self._kubernetes.create({**action.manifest, "data": {action.entry: key}}):
            context.done.append(action)
            self._applied.made_key(pod["uid"])
            return
        if not await self._foreign_to_its_pod(context, meta):
            self._applied.made_key(pod["uid"])

    async def _foreign_to_its_pod(self, context: Context, meta: JsonDict) -> bool:
        """Whether somebody else has made the Secret of a pod, which then does not go on.

        Its pods may have mounted a key that somebody else knows.
        """
        (pod,) = meta["ownerReferences"]
        if problem := await self._foreign_key(meta["namespace"], meta["name"], pod["uid"]):
            await self._kubernetes.delete(
                "Pod", meta["namespace"], pod["name"], uid=pod["uid"], grace_seconds=FOREIGN_KEY_GRACE_SECONDS
            )
            context.refused.append(problem)
        return bool(problem)

    async def _give_credentials(self, context: Context, action: act.GiveCredentials) -> None:
        if self._credentials is None or await self._foreign_to_its_pod(context, action.manifest["metadata"]):
            return
        if await self._credentials.issue(
            context.key, action.manifest, id=action.id, attempt=action.attempt, path=action.path
        ):
            context.done.append(action)

    async def _revoke_credentials(self, context: Context, action: act.RevokeCredentials) -> None:
        if self._credentials is not None and await self._credentials.revoke(
            context.key, id=action.id, attempt=action.attempt
        ):
            context.done.append(action)

    async def _ask_store(self, context: Context, action: act.AskStore) -> None:
        if self._credentials is not None:
            await self._credentials.ask(
                context.key,
                attempt=action.attempt,
                namespace=action.namespace,
                name=action.name,
                pod_uid=action.pod_uid,
                path=action.path,
            )

    async def _ask_executors(self, context: Context, action: act.AskExecutors) -> None:
        if await self._questions.ask(context.key, action):
            context.done.append(action)

    async def _delete_pod(self, context: Context, action: act.DeletePod) -> None:
        in_own_namespace(context.key[0], action)
        await self._kubernetes.delete(
            "Pod", action.namespace, action.name, uid=action.uid, grace_seconds=max(1, action.grace_seconds)
        )
        context.done.append(action)

    async def _drop_evidence(self, context: Context, action: act.DropEvidence) -> None:
        in_own_namespace(context.key[0], action)
        await self._kubernetes.patch_finalizers(
            "Pod", action.namespace, action.name, remove=naming.EVIDENCE_FINALIZER, uid=action.uid
        )
        context.done.append(action)

    async def _hold_config_map(self, context: Context, action: act.HoldConfigMap) -> None:
        await self._kubernetes.patch_finalizers(
            "ConfigMap", action.namespace, action.name, add=naming.EVIDENCE_FINALIZER, uid=action.uid
        )
        context.done.append(action)

    async def _release_config_map(self, context: Context, action: act.ReleaseConfigMap) -> None:
        await self._kubernetes.patch_finalizers(
            "ConfigMap", action.namespace, action.name, remove=naming.EVIDENCE_FINALIZER, uid=action.uid
        )
        context.done.append(action)

    async def _delete_object(self, context: Context, action: act.DeleteObject) -> None:
        await self._kubernetes.delete(action.kind, action.namespace, action.name, uid=action.uid)
        context.done.append(action)

    async def _unbind(self, context: Context, action: act.Unbind) -> None:
        if await self._bindings.delete_unused(context.key, action.role, going=action.going):
            context.done.append(action)

    async def _emit_event(self, context: Context, action: act.EmitEvent) -> None:
        key = event_key(action)
        text = self._events.text(context.key, action, key)
        if text is None:
            return
        await self._kubernetes.event(
            regarding=regarding(action), type_=action.type, reason=action.reason, message=text, key=key
        )

    # ---- etcd

    async def _put_gate(self, context: Context, action: act.PutGate) -> None:
        put = await self._etcd.put_gate(
            action.table_id,
            action.value,
            expected_mod=action.expected_mod,
            others=action.others,
            unlocked=action.unlocked,
        )
        held(put, action)
        context.done.append(action)

    async def _put_admit(self, context: Context, action: act.PutAdmit) -> None:
        held(await self._etcd.put_admit(action.table_id, attempt=action.attempt, role=action.role), action)
        context.done.append(action)

    async def _delete_admit(self, context: Context, action: act.DeleteAdmit) -> None:
        await self._etcd.delete_admit(action.table_id, attempt=action.attempt)
        context.done.append(action)

    async def _put_assignment(self, context: Context, action: act.PutAssignment) -> None:
        await self._etcd.put_assignment(action.table_id, agent=action.agent, value=action.value)
        context.done.append(action)

    async def _fence(self, context: Context, action: act.Fence) -> None:
        fenced = await self._etcd.fence(
            action.table_id,
            inc=action.inc,
            attempt=action.attempt,
            settle=action.settle,
            if_not_alive=action.if_not_alive,
        )
        held(fenced, action)
        context.done.append(action)
        if action.lease:
            await self._etcd.revoke_lease(action.lease)

    async def _adopt(self, context: Context, action: act.Adopt) -> None:
        put = await self._etcd.adopt(action.table_id, inc=action.inc, settle=action.settle, gate_mod=action.gate_mod)
        held(put, action)
        context.done.append(action)

    async def _update_settle(self, context: Context, action: act.UpdateSettle) -> None:
        value, mod = action.value, action.expected_mod
        held(await self._etcd.update_settle(action.table_id, inc=action.inc, value=value, expected_mod=mod), action)
        context.done.append(action)

    async def _unlock(self, context: Context, action: act.Unlock) -> None:
        held(await self._etcd.unlock(action.table_id, inc=action.inc, create_revision=action.create_revision), action)
        context.done.append(action)

    async def _finish_settle(self, context: Context, action: act.FinishSettle) -> None:
        finished = await self._etcd.finish_settle(
            action.table_id,
            inc=action.inc,
            value=action.value,
            expected_mod=action.expected_mod,
            instants=action.instants,
        )
        held(finished, action)
        context.done.append(action)

    async def _collect(self, context: Context, action: act.Collect) -> None:
        held(await self._etcd.collect(action.table_id, inc=action.inc, expected_mod=action.expected_mod), action)
        context.done.append(action)

    async def _delete_report(self, context: Context, action: act.DeleteReport) -> None:
        await self._etcd.delete_report(action.table_id, kind=action.kind)
        context.done.append(action)

    async def _delete_done(self, context: Context, action: act.DeleteDone) -> None:
        held(await self._etcd.delete_done(action.table_id, name=action.name, expected_mod=action.expected_mod), action)
        context.done.append(action)

    async def _end_trial(self, context: Context, action: act.EndTrial) -> None:
        await self._etcd.end_trial(action.trial_id, agents=action.agents)
        context.done.append(action)

    async def _put_request(self, context: Context, action: act.PutRequest) -> None:
        await self._etcd.put_request(action.table_id, id=action.id, value=action.value)
        context.done.append(action)

    async def _put_seen(self, context: Context, action: act.PutSeen) -> None:
        await self._etcd.put_seen(action.table_id, inc=action.inc, value=action.value)
        context.done.append(action)

    # ---- time

    async def _start_timer(self, context: Context, action: act.StartTimer) -> None:
        self._timers.start(context.key, action.name)

    async def _stop_timer(self, context: Context, action: act.StopTimer) -> None:
        self._timers.stop(context.key, action.name)

"""A world in memory for the planner: API server, kubelet, etcd, JVMs and agents, with the truth
beside what the operator may see.

The operator sees only what `World.observe` returns. `World.perform` executes actions with their
preconditions and checks each one against the truth: a lock is deleted only when its owner's
processes are dead and drained (I1), nothing fenced acquires (I2), an instant is forgotten only with
an outcome (I4, I7), no pod of an attempt is made twice, evidence goes only when it is needed no
more (F14).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hudi_operator.control.late_statuses import LateStatuses
from hudi_operator.model.config import OperatorConfig
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.table import plan_table
from tests.support.world.simulated_agent import Agents
from tests.support.world.simulated_effects import Effects
from tests.support.world.simulated_store import (
    CONFIG,
    NAMESPACE,
    START_MS,
    ConflictError,
    Node,
    OperatorCrashError,
    Pod,
    Process,
)

TABLE = (NAMESPACE, "flights")
_AT_REST = (act.StartTimer, act.StopTimer, act.Unbind)
"""Actions that change nothing where there is nothing to do."""
_RESTS, _LOOKS = 10, 5
"""After this number of looks in a row that changed nothing, there is one look in this number of
seconds, until one acts. The operator's own looks are much rarer then (`loop.QUIET_SECONDS`).
"""


def _rests(plan: act.Plan) -> bool:
    """Nothing that changes anything is planned."""
    return all(isinstance(action, _AT_REST) for action in plan.actions)


class World(Effects, Agents):
    """The whole of it, and how a test drives it."""

    config: OperatorConfig | None = None
    """None: CONFIG."""
    deaths = 0
    """Number of times that the operator has died so far with actions left to do."""
    late: LateStatuses | None = None
    """Statuses that the operator has not written yet; None: none of its statuses wait."""

    def statuses_wait(self) -> None:
        """From now on they do, as in `control/executor.py`."""
        self.late = LateStatuses(lambda: self.now)

    def reconcile(self, crash_after: int | Callable[[int], int] | None = None) -> act.Plan:
        """One look; `crash_after`: die after that many actions, and lose all timers.

        A function is asked with the number of actions. An operator that has no action left does not
        die.
        """
        observed = self.observe()
        if self.late is not None:
            known = tuple(self.late.known(TABLE, observed.writers))
            observed = replace(observed, objects=replace(observed.objects, writers=known))
        plan = plan_table(observed, self.config or CONFIG)
        self.sentences.append(plan.sentence)
        if callable(crash_after):
            crash_after = crash_after(len(plan.actions))
        try:
            for number, action in enumerate(plan.actions):
                if crash_after is not None and number >= crash_after:
                    raise OperatorCrashError
                if not self._waits(action):
                    self.perform(action)
            for late in self.late.due(TABLE) if self.late is not None else ():
                if not self._waits(late):
                    self.perform(late)
        except ConflictError:
            pass
        except OperatorCrashError:
            self.deaths += 1
            self.forgets()
            self.executor_answers.clear()
        return plan

    def _waits(self, action: act.Action) -> bool:
        return self.late is not None and isinstance(action, act.UpdateStatus) and self.late.may_wait(TABLE, action)

    def forgets(self) -> None:
        """Another operator begins."""
        self.timers.clear()
        if self.late is not None:
            self.statuses_wait()

    def run(self, until: Any, seconds: int = 400, crash_every: int = 0, crash_from: int = 0) -> None:
        """Reconcile and tick until a condition holds; fails when it does not come to pass.

        `crash_every`: in every n-th look the operator dies after some of its actions, each time
        after another number of them, or after all. `crash_from` shifts these numbers.
        """
        if not self.passes(until, seconds, crash_every, crash_from):
            raise AssertionError(
                "did not come to pass; last: " + " | ".join(self.sentences[-5:]) + f"\n{self.summary()}"
            )

    def passes(self, until: Any, seconds: int, crash_every: int = 0, crash_from: int = 0) -> bool:
        """The same; whether the condition has held."""
        quiet = 0
        for number in range(seconds):
            if until(self):
                return True
            if crash_every or quiet < _RESTS or not number % _LOOKS:
                dies = bool(crash_every) and not number % crash_every
                crash = (lambda actions, n=number + crash_from: n % (actions + 1)) if dies else None
                quiet = quiet + 1 if _rests(self.reconcile(crash_after=crash)) else 0
                if until(self):
                    return True
            self.tick()
        return False

    def pass_time(self, seconds: int) -> None:
        """Reconcile and tick, whatever happens."""
        self.passes(lambda _: False, seconds)

    def settle_down(self, seconds: int = 200) -> None:
        """Run until nothing that changes anything is planned for 20 looks in a row: no livelock."""
        quiet = 0
        for _ in range(seconds):
            quiet = quiet + 1 if _rests(self.reconcile()) else 0
            if quiet >= 20:
                return
            self.tick()
        raise AssertionError("never comes to rest: " + " | ".join(self.sentences[-5:]))

    def summary(self) -> str:
        keys = {k: v.value.get("phase") or v.value.get("state") or "" for k, v in self.kv.items()}
        pods = {
            p.name: (p.phase, p.node, "deleting" if p.deleting_since is not None else "", p.finalizers)
            for p in self.pods.values()
        }
        return f"{keys}\n{pods}"

    def condition(self, obj: dict[str, Any] | None, kind: str) -> dict[str, Any]:
        for item in ((obj or {}).get("status") or {}).get("conditions") or []:
            if item["type"] == kind:
                return dict(item)
        return {"status": "Missing", "reason": "", "message": ""}

    def is_true(self, obj: dict[str, Any] | None, kind: str) -> bool:
        return bool(self.condition(obj, kind)["status"] == "True")

    def status(self, field: str) -> Any:
        """A field of the HudiTable's status."""
        return ((self.table or {}).get("status") or {}).get(field)

    def change(self, **spec: Any) -> None:
        """A person edits the HudiTable."""
        assert self.table is not None
        self.edit(self.table, **spec)

    def writer_process(self, name: str) -> Process | None:
        mine = [p for p in self.processes if p.role == "writer" and p.pod.startswith(name + "-")]
        return mine[-1] if mine else None

    def agent_process(self) -> Process | None:
        mine = [p for p in self.processes if p.role == "agent" and p.alive]
        return mine[-1] if mine else None

    def fail_node(self, name: str, *, processes_die: bool) -> None:
        self.nodes[name].ready = False
        for process in self.processes:
            if process.node == name and processes_die:
                self.kill(process)

    def reboot_node(self, name: str) -> None:
        for process in self.processes:
            if process.node == name:
                self.kill(process)
        node = self.nodes[name]
        node.ready, node.boot_id = True, node.boot_id + "+"

    def force_delete(self, pod: Pod) -> None:
        """A person force-deletes the pod and strips finalizers; the process lives on."""
        pod.finalizers.clear()
        del self.pods[pod.name]


def finished(name: str) -> Any:
    return lambda w: w.is_true(w.writers[name], "Finished")


def at_step(name: str, step: int) -> Any:
    def reached(world: World) -> bool:
        process = world.writer_process(name)
        return process is not None and process.alive and process.step >= step

    return reached


def ready_world(**table: object) -> World:
    """A table whose agent works and whose gate is open."""
    world = World()
    world.make_table(**table)
    world.run(lambda w: w.is_true(w.table, "Ready"))
    return world


def all_settled(world: World) -> bool:
    """Whether somebody was settled, and nobody is still being settled."""
    records = world.names("settle").values()
    return bool(records) and all(k.value["phase"] == "Settled" for k in records)


def in_phase(phase: str) -> Callable[[World], bool]:
    """Whether somebody is in this phase of settling."""
    return lambda w: any(k.value["phase"] == phase for k in w.names("settle").values())


def no_evidence_left(world: World, writer: str) -> bool:
    """Whether no pod of the writer has a finalizer any more."""
    return not any(p.finalizers for n, p in world.pods.items() if n.startswith(writer + "-"))


__all__ = [
    "CONFIG",
    "NAMESPACE",
    "START_MS",
    "Node",
    "Process",
    "World",
    "all_settled",
    "at_step",
    "finished",
    "in_phase",
    "no_evidence_left",
    "ready_world",
]

"""A simulated world whose operator is the loop itself, with a memory that hears what a test lets
through: everything, nothing, no deletions, or everything late.

A live look reads the world; a glance reads etcd, and asks the API server for nothing.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hudi_contract import naming
from hudi_contract.defaults import CONFIG_MAP
from hudi_operator.control.index import TableIndex
from hudi_operator.control.late_statuses import LateStatuses
from hudi_operator.control.loop import Reconciler
from hudi_operator.control.memory import Memory
from hudi_operator.control.observe import Observer
from hudi_operator.control.queue import Key, WorkQueue
from hudi_operator.control.refused_writes import found_in
from hudi_operator.control.status_writes import StatusWrites
from hudi_operator.handlers import _is_news
from hudi_operator.model.facts import EtcdFacts, Observed, PodFacts
from hudi_operator.model.objects import Objects
from hudi_operator.model.ports import Conflict
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.table import plan_table
from tests.support.world.simulated_store import CONFIG, NAMESPACE, ConflictError
from tests.support.world.simulated_world import World

JsonDict = dict[str, Any]
TABLE: Key = (NAMESPACE, "flights")


@dataclass(frozen=True)
class Event:
    """Event of a watch."""

    kind: str
    name: str
    value: Any
    deleted: bool


Hears = Callable[[Event], float | None]
"""After how many seconds an event arrives; None: never."""


def at_once(_: Event) -> float | None:
    return 0.0


def never(_: Event) -> float | None:
    return None


def no_deletions(event: Event) -> float | None:
    return None if event.deleted else 0.0


def late(_: Event) -> float | None:
    return 60.0


class _Ports:
    """etcd as it is; an API server that a glance must not ask."""

    def __init__(self, world: World) -> None:
        self._world = world

    def floors(self) -> dict[str, int]:
        return {}

    def clock_offset_ms(self, since: float = 0.0) -> int:
        return self._world.api_clock_ms

    async def read_table(self, table_id: str, agent: str, *_others: Any) -> EtcdFacts:
        return copy.deepcopy(self._world.etcd_facts())

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a glance asks the API server: {name}")


class _Timers:
    """The world's own."""

    def __init__(self, world: World) -> None:
        self._world = world

    def ages(self, key: Key) -> Mapping[str, float]:
        return {name: self._world.now - since for name, since in self._world.timers.items()}

    def forget(self, key: Key) -> None:
        self._world.timers.clear()


class _Observer(Observer):
    def __init__(self, world: World, memory: Memory, late: LateStatuses) -> None:
        ports: Any = _Ports(world)
        timers: Any = _Timers(world)
        super().__init__(
            kubernetes=ports,
            etcd=ports,
            index=TableIndex(CONFIG.spark_image),
            timers=timers,
            config=CONFIG,
            authority=str,
            memory=memory,
            late=late,
        )
        self.world, self.live, self.glances = world, 0, 0

    async def observe(self, key: Key) -> Observed:
        self.live += 1
        found = copy.deepcopy(self.world.observe())
        writers = tuple(self._late.known(key, found.writers))
        found = replace(found, objects=replace(found.objects, writers=writers))
        self._memory.learn(key, found, began=self._memory.clock())
        self._wide.taken(key, shown_more=self.world.wide_at is None)
        return found

    async def glance(self, key: Key) -> Observed | None:
        self.glances += 1
        found = await super().glance(key)
        # The world has its own wall clocks.
        return found and replace(
            found,
            now_ms=self.world.now_ms + self.world.operator_clock_ms,
            api_now_ms=self.world.now_ms + self.world.api_clock_ms,
        )


class _Statuses:
    """The API server as it takes statuses."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def replace_status(self, *names: str, resource_version: str, status: JsonDict) -> None:
        self._world.perform(act.UpdateStatus(*names, resource_version, status))


class _Executor:
    def __init__(self, world: World, late: LateStatuses) -> None:
        self._world, self.done = world, list[act.Action]()
        port: Any = _Statuses(world)
        self.statuses = StatusWrites(port, late, clock=lambda: world.now)

    async def perform(self, key: Key, observed: Observed, plan: act.Plan) -> list[act.Action]:
        self._world.sentences.append(plan.sentence)
        done: list[act.Action] = []
        try:
            for action in plan.actions:
                if not isinstance(action, act.UpdateStatus):
                    self._world.perform(action)
                elif not await self._written(key, observed, action):
                    continue
                done.append(action)
            done += [late for late in self.statuses.due(key) if await self._written(key, observed, late)]
        except ConflictError as error:
            raise Conflict(str(error)) from error
        finally:
            self.done += done
        return done

    async def _written(self, key: Key, observed: Observed, action: act.UpdateStatus) -> bool:
        return await self.statuses.write(key, action, found_in(observed, action.kind, action.name))

    def has_news(self, key: Key, observed: Observed) -> bool:
        """This world's API server refuses nothing."""
        return False


class _Meter:
    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


class Watched:
    """An operator that looks when it hears something, when etcd does, or when a look is due."""

    def __init__(self, world: World, hears: Hears) -> None:
        self.world, self._hears = world, hears
        self.memory = Memory(clock=lambda: world.now)
        late = LateStatuses(clock=lambda: world.now)
        self.observer, self.executor = _Observer(world, self.memory, late), _Executor(world, late)
        executor: Any = self.executor
        timers: Any = _Timers(world)
        self._loop = Reconciler(
            queue=WorkQueue(),
            observer=self.observer,
            executor=executor,
            planner=plan_table,
            timers=timers,
            config=CONFIG,
            meter=_Meter(),
            clock=lambda: world.now,
        )
        self._known: dict[tuple[str, str], Any] = {}
        self._under_way: list[tuple[float, Event]] = []
        self._keys: dict[str, int] = {}
        self._due = 0.0

    def second(self) -> None:
        """One second: events arrive, a look is made if one is due, and the world goes on."""
        heard = self._deliver()
        news = self._etcd()
        if heard or news or self.world.now >= self._due:
            try:
                _, again = asyncio.run(self._loop._reconcile(TABLE))
                self._due = self.world.now + (again if again is not None else 1e9)
            except Conflict:
                self._due = self.world.now + 0.5
        self.world.tick()

    def run(self, until: Callable[[World], bool], seconds: int = 900) -> float:
        """Seconds until it holds; fails when it does not come to pass."""
        began = self.world.now
        for _ in range(seconds):
            if until(self.world):
                return self.world.now - began
            self.second()
        raise AssertionError(
            "did not come to pass; last: " + " | ".join(self.world.sentences[-5:]) + f"\n{self.world.summary()}"
        )

    def at_rest(self) -> None:
        """Until nothing was done for long enough that looks have become rare."""
        for _ in range(900):
            before = self.observer.live
            for _ in range(100):
                self.second()
            if self.observer.live - before <= 1:
                return
        raise AssertionError("never comes to rest: " + " | ".join(self.world.sentences[-5:]))

    def _deliver(self) -> bool:
        now = self.world.now
        state = self._state()
        for (kind, name), value in state.items():
            if self._known.get((kind, name)) != value:
                self._send(Event(kind, name, value, deleted=False))
        for (kind, name), value in self._known.items():
            if (kind, name) not in state:
                self._send(Event(kind, name, value, deleted=True))
        self._known = state
        arrived = [event for at, event in self._under_way if at <= now]
        self._under_way = [(at, event) for at, event in self._under_way if at > now]
        for event in arrived:
            self.hear(event)
        return bool(arrived)

    def _send(self, event: Event) -> None:
        delay = self._hears(event)
        if delay is not None:
            self._under_way.append((self.world.now + delay, event))

    def hear(self, event: Event) -> None:
        """An event arrives."""
        memory = self.memory
        take = {"pod": memory.pod, "table": memory.table, "writer": memory.writer, "defaults": memory.defaults}[
            event.kind
        ]
        take(copy.deepcopy(event.value), deleted=event.deleted)

    def _state(self) -> dict[tuple[str, str], Any]:
        world = self.world
        found: dict[tuple[str, str], Any] = {("pod", p.name): world.pod_facts(p) for p in world.pods.values()}
        found |= {("writer", name): copy.deepcopy(obj) for name, obj in world.writers.items()}
        if world.table is not None:
            found["table", TABLE[1]] = copy.deepcopy(world.table)
        if world.defaults is not None:
            found["defaults", CONFIG_MAP] = copy.deepcopy(world.defaults)
        return found

    def _etcd(self) -> bool:
        keys = {name: key.mod for name, key in self.world.kv.items()}
        changed = {name for name, mod in keys.items() if self._keys.get(name) != mod}
        gone = self._keys.keys() - keys.keys()
        self._keys = keys
        return any(_is_news(name.partition("/")[0], deleted=False) for name in changed) or any(
            _is_news(name.partition("/")[0], deleted=True) for name in gone
        )


def pod(name: str, uid: str, **labels: str) -> PodFacts:
    """A running pod of the operator's."""
    return PodFacts(
        NAMESPACE, name, uid, {**naming.MANAGED, **labels}, "Running", "n1", False, (naming.EVIDENCE_FINALIZER,), ()
    )


def objects(*writers: JsonDict, table: JsonDict | None = None) -> Observed:
    """A look that has read these."""
    return Observed(Objects(table, writers), (), {}, None)

"""Random histories of a simulated world: drawn from a seed, played as a list of steps, made short
when they fail, kept as JSON.

A history is `{"kind": ..., "begin": {...}, "steps": [[name, {...}], ...]}`. It says everything that
happens, so it means the same when the generator changes. At its end the world is healed, and
everything must end (I6) and a table of this path must be usable again.
"""

from __future__ import annotations

import copy
import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from hudi_contract import naming
from hudi_operator.plan.core.actions import Plan
from hudi_operator.plan.table import plan_table
from tests.support.world.judged_world import JudgedWorld
from tests.support.world.simulated_store import CONFIG, ConflictError, Node, Pod, Process

JsonDict = dict[str, Any]
Step = tuple[str, JsonDict]
WRITERS = ("a", "b", "c")
TABLE = {"fencing": {"drainSeconds": 3}, "lock": {"suspectSeconds": 2, "maxHoldSeconds": 40}}
ATTESTATIONS = 32
"""As many as the CRD has room for; those that are asked for come first."""
RETRIES = {"limit": 20, "backoffSeconds": 1, "maxBackoffSeconds": 2}
PATTERNS = {"a": ["x*"], "b": ["*y", "day=z"], "c": ["xy", "?"]}
"""Partitions that writers declare; whichever two of them, they have one in common."""
SHORTEN_SECONDS = 10.0
"""CPU that is spent on making a failed history shorter."""


@dataclass(frozen=True)
class History:
    """One history. ``kind``: plain, bootstrap, or overlaps."""

    kind: str
    begin: JsonDict
    steps: tuple[Step, ...]

    def text(self) -> str:
        """As it is kept in a file."""
        return json.dumps({"kind": self.kind, "begin": self.begin, "steps": self.steps})

    @classmethod
    def read(cls, text: str) -> History:
        """Read a history that `text` has written."""
        said = json.loads(text)
        return cls(said["kind"], said["begin"], tuple((name, arguments) for name, arguments in said["steps"]))


class Player:
    """Plays a history step by step. An AssertionError says what is wrong."""

    def __init__(self, history: History) -> None:
        self.history, self.kind, begin = history, history.kind, history.begin
        self.world = JudgedWorld(
            executors_per_driver=begin["executors"],
            bootstrap_hang_at=begin.get("hang") if self.kind == "bootstrap" else None,
        )
        self.world.bare_executors, self.world.beside, self.world.kernels = (
            begin["bare"],
            begin["beside"],
            begin["kernels"],
        )
        self.table: JsonDict = {**TABLE, "concurrency": {"mode": begin["mode"]}}
        if self.kind == "overlaps":
            self.table |= {
                "partitionFields": ["day"],
                "concurrency": {"mode": "Optimistic", "admission": "DisjointPartitions"},
            }
        more = (
            {"bootstrap": {"source": {"path": "s3a://lake/plain", "format": "Parquet"}}}
            if self.kind == "bootstrap"
            else {}
        )
        self.world.make_table(**copy.deepcopy({**self.table, **more}))
        self.world.nodes["n2"] = Node("n2", "node-uid-2", "boot-2")
        self.deleted_table = False
        if begin.get("late"):
            self.world.statuses_wait()
        if self.kind != "bootstrap":
            self.world.run(lambda w: w.is_true(w.table, "Ready"))
        if self.kind == "overlaps":
            self.world.writer_hang_at = begin.get("hang")
            for name in WRITERS:
                self._make(name)

    def play(self) -> None:
        """The whole history, and its end."""
        for name, arguments in self.history.steps:
            getattr(self, f"_{name}")(**arguments)
        self._end()

    # ---- looks

    def _look(self, crash_after: int | None = None) -> None:
        self._whole(self.world.reconcile(crash_after))
        if self.kind == "overlaps":
            assert len(self._running()) <= 1, (
                f"{self._running()} run beside each other, and may write the same partition"
            )

    @staticmethod
    def _whole(plan: Plan) -> Plan:
        assert not plan.failed, f"a part of the plan has a defect: {plan.failed[0]}"
        return plan

    def _running(self) -> list[str]:
        driving = [p for p in self.world.processes if p.role == "writer" and p.alive and p.inc not in self.world.fenced]
        return [p.pod for p in driving if p.pod in self.world.pods]

    def _live_on(self, seconds: int) -> None:
        self._twice_the_same()
        for _ in range(seconds):
            self._look()
            self.world.tick()

    def _twice_the_same(self) -> None:
        observed = self.world.observe()
        before = copy.deepcopy(observed.table)
        assert plan_table(observed, CONFIG) == plan_table(observed, CONFIG), "a planner is a function of what it sees"
        assert observed.table == before, "a planner changes nothing that it was given"

    def _operator_is_down(self, seconds: int) -> None:
        for _ in range(seconds):
            self.world.tick()
        self.world.forgets()

    def _operator_dies(self, after: int) -> None:
        self._look(crash_after=after)

    def _late_look(self, seconds: int) -> None:
        """The operator looks, and acts some seconds later: another one may have acted, and the
        world has gone on.
        """
        plan = self._whole(plan_table(self.world.observe(), CONFIG))
        self._live_on(seconds)
        self._perform(plan.actions)

    def _blind_look(self, what: str) -> None:
        """A look for which something could not be read: unknown, not empty (I11)."""
        observed = self.world.observe()
        changes: dict[str, JsonDict] = {
            "etcd": {"etcd": None, "etcd_error": "unavailable"},
            "agents": {"agents_in_use": None},
            "evidence": {"evidence_needed": None},
            "clock": {"api_now_ms": None},
        }
        self._perform(self._whole(plan_table(replace(observed, **changes[what]), CONFIG)).actions)

    def _perform(self, actions: tuple[Any, ...]) -> None:
        try:
            for action in actions:
                self.world.perform(action)
        except ConflictError:
            pass

    # ---- what people do

    def _make(self, name: str, **more: Any) -> None:
        partitions = {"partitions": PATTERNS[name]} if self.kind == "overlaps" else {}
        self.world.make_writer(name, retryPolicy=dict(RETRIES), stop={"graceSeconds": 3}, **partitions, **more)

    def _writer_is_made(self, name: str, hang: int | None, code: int | None, endless: bool) -> None:
        if name not in self.world.writers:
            self.world.writer_hang_at = hang
            self.world.exit_codes = [] if code is None else [code]
            self._make(name, **({"streaming": {"intervalSeconds": 1}} if endless and self.kind == "plain" else {}))

    def _writer_is_deleted(self, name: str) -> None:
        if name in self.world.writers:
            self.world.delete(self.world.writers[name])

    def _writer_is_suspended(self, name: str, on: bool) -> None:
        if name in self.world.writers:
            self.world.edit(self.world.writers[name], suspend=on)

    def _table_is_deleted(self) -> None:
        if self.world.table is not None and not self.deleted_table:
            self.deleted_table = True
            self.world.delete(self.world.table)

    def _durations_change(self, lease: int) -> None:
        if self.world.table is not None:
            self.table["lock"] = {**TABLE["lock"], "leaseSeconds": lease}
            self.world.edit(self.world.table, lock=dict(self.table["lock"]))

    def _pod_is_force_deleted(self, number: int) -> None:
        pods = [pod for pod in self.world.pods.values() if self._known(pod)]
        if pods:
            self.world.force_delete(pods[number % len(pods)])

    def _known(self, pod: Pod) -> bool:
        """Whether the operator has written down that there was such a pod.

        A user who strips the finalizer off another one leaves no trace of it.

        That is a driver in the first seconds of its life, which another operator makes again under
        its number, and an executor whose driver lives, which nobody waits for then
        (docs/operate/operations.md).
        """
        written = {
            entry.get("podUID")
            for writer in self.world.writers.values()
            for entry in writer.get("status", {}).get("attempts", [])
        }
        registered = {key.value["podUID"] for key in self.world.names("writer").values()}
        settling = {uid for key in self.world.names("settle").values() for uid in key.value["pods"]}
        return pod.labels.get(naming.LABEL_ROLE) == naming.ROLE_AGENT or pod.uid in written | registered | settling

    def _frozen_and_forced(self, number: int) -> None:
        """A process freezes, and a person forces its pod's object away."""
        frozen = [
            p
            for p in self.world.processes
            if p.alive and p.pod in self.world.pods and self._known(self.world.pods[p.pod])
        ]
        if frozen:
            process = frozen[number % len(frozen)]
            process.paused = True
            self.world.force_delete(self.world.pods[process.pod])

    # ---- what machines do

    def _process_fails(self, number: int, how: str, wire: float | None) -> None:
        living = [p for p in self.world.processes if p.alive]
        if not living:
            return
        process: Process = living[number % len(living)]
        if how == "kill":
            self.world.wire_seconds = wire
            self.world.kill(process)
        elif how == "stubborn":
            process.ignores_sigterm = True
        else:
            process.paused = how == "pause"

    def _publisher_dies(self, wire: float) -> None:
        """A process that is about to publish dies with its request on the wire."""
        for process in [p for p in self.world.processes if p.alive and p.role == "writer" and p.step == 4]:
            self.world.wire_seconds = wire
            self.world.kill(process)

    def _node_is_lost(self, how: str, node: str, collected: bool) -> None:
        """Its processes die, freeze until it is back, or live on.

        ``collected``: the garbage collector calls its pods Failed.
        """
        self.world.fail_node(node, processes_die=how == "dies")
        for process in self.world.processes:
            process.paused = process.paused or (how == "freezes" and process.node == node)
        for pod in list(self.world.pods.values()):
            if collected and pod.node == node and pod.phase == "Running" and pod.process is not None:
                self.world.collect(pod)

    def _node_is_back(self, node: str) -> None:
        self.world.nodes[node].ready = True
        for process in self.world.processes:
            process.paused = process.paused and process.node != node

    def _node_reboots(self, node: str) -> None:
        self.world.reboot_node(node)

    def _pod_is_refused(self, number: int) -> None:
        pods = [pod for pod in self.world.pods.values() if pod.node and pod.phase in ("Pending", "Running")]
        if pods:
            self.world.refuse(pods[number % len(pods)])

    def _operators_clock(self, ms: int) -> None:
        self.world.operator_clock_ms = ms

    def _agent_goes_on(self) -> None:
        self.world.bootstrap_hang_at = None

    # ---- the end

    def _end(self) -> None:
        world = self.world
        world.operator_clock_ms, world.bootstrap_hang_at = 0, None
        for name in list(world.nodes):
            world.reboot_node(name)
        for process in world.processes:
            process.paused, process.hang_at = False, None
            if process.pod not in world.pods or world.pods[process.pod].uid != process.pod_uid:
                world.kill(process)
        world.writer_hang_at, world.exit_codes = None, []
        for writer in list(world.writers.values()):
            if writer["spec"].get("suspend"):
                world.edit(writer, suspend=False)
            if "streaming" in writer["spec"]:
                world.delete(writer)
        if self.deleted_table:
            self._attest()
            if not world.passes(lambda w: w.table is None, 400, 0, 0):
                self._attest_what_is_named()
                world.run(lambda w: w.table is None)
        if world.table is None:
            world.make_table(**copy.deepcopy(self.table))
        self._attest()
        self._come_to_an_end()
        world.settle_down()
        assert "lock" not in world.kv, "the lock is left (I6)"
        left = [key for key in world.kv if "instant/" in key]
        assert not left, f"{left} are left (I6)"
        if self.kind == "bootstrap" and not self.deleted_table:
            assert len(world.bootstrapped) == 1, f"the table was bootstrapped {len(world.bootstrapped)} times"

    def _come_to_an_end(self) -> None:
        seconds = 400 + self._pause()
        if self.world.passes(self._over, seconds):
            return
        if any(w["metadata"].get("deletionTimestamp") for w in self.world.writers.values()):
            self._attest_what_is_named()
        self.world.run(self._over, seconds=seconds)

    def _pause(self) -> int:
        """Seconds until the agent repeats a bootstrap after this number of failures."""
        done = self.world.kv.get("done/bootstrap")
        return max(0, int(done.value["retryAtMs"]) - self.world.now_ms) // 1000 if done is not None else 0

    def _attest(self) -> None:
        """A person's word for every pod whose object was forced away."""
        world = self.world
        there = {pod.uid for pod in world.pods.values()}
        asked = json.dumps([key.value for key in world.kv.values()], default=str)
        gone = sorted((p for p in world.processes if p.pod_uid not in there), key=lambda p: p.pod_uid not in asked)
        words = [
            {
                "podUID": p.pod_uid,
                "node": p.node,
                "statement": "it is gone",
                "attestedBy": "ann",
                "at": "2026-01-01T00:00:00Z",
            }
            for p in gone[:ATTESTATIONS]
        ]
        if world.table is not None:
            world.edit(world.table, fencing={**TABLE["fencing"], "attestations": words})

    def _attest_what_is_named(self) -> None:
        """A person's word for a pod that is there, never ran, and cannot be proven to have not.

        Its node was away when it was deleted, and its kubelet reports no container (F614). The
        condition from which a person copies the uid has to name it, whatever the pod is (F649).
        """
        world = self.world
        assert world.table is not None
        named = world.condition(world.table, "AwaitingProofOfDeath")["message"]
        fencing = world.table["spec"]["fencing"]
        words = [
            {"podUID": pod.uid, "node": pod.node, "statement": "it never ran", "attestedBy": "ann"}
            | {"at": "2026-01-01T00:00:00Z"}
            for pod in world.pods.values()
            if f"pod uid {pod.uid} is dead" in named and not (pod.process and pod.process.alive)
        ]
        assert words, f"a deletion waits, and nobody is told for which pod: {named}"
        known = fencing.get("attestations") or []
        world.edit(world.table, fencing={**fencing, "attestations": [*known, *words][:ATTESTATIONS]})

    @staticmethod
    def _over(world: Any) -> bool:
        writers = all(
            world.is_true(w, "Finished") for w in world.writers.values() if not w["metadata"].get("deletionTimestamp")
        )
        gone = not any(w["metadata"].get("deletionTimestamp") for w in world.writers.values())
        settled = all(k.value["phase"] == "Settled" for k in world.names("settle").values())
        return writers and gone and settled and world.is_true(world.table, "Ready")


# ---- drawing


KINDS = ("plain", "bootstrap", "overlaps")


def drawn(seed: int) -> History:
    """The history of a seed."""
    chance = random.Random(seed)
    kind = chance.choice(("plain", "plain", "bootstrap", "overlaps"))
    begin: JsonDict = {
        "executors": 0 if kind == "bootstrap" else chance.choice((0, 0, 1, 2)),
        "mode": chance.choice(("Optimistic", "Optimistic", "SingleWriter")),
        "bare": chance.random() < 0.1,
        "beside": chance.choice(("", "", "", "", "container", "sidecar", "ephemeral")),
        "kernels": chance.random() < 0.1,
        "hang": chance.choice((None, 1, 2, 3, 4, 5)) if kind == "bootstrap" else chance.choice((None, 1, 3)),
    }
    # Not everything goes wrong in every world: where less does, what does goes further.
    tempers = {name: chance.choice((0.0, 1.0, 1.0, 3.0)) for name in STEPS}
    tempers["live_on"] = max(1.0, tempers["live_on"])
    names = [name for name in STEPS if kind == "bootstrap" or name != "agent_goes_on"]
    weights = [STEPS[name][0] * tempers[name] for name in names]
    steps = []
    for _ in range(chance.randint(5, 45)):
        name = chance.choices(names, weights)[0]
        steps.append((name, STEPS[name][1](chance)))
    begin["late"] = chance.random() < 0.5  # drawn last: the rest stays what it was of this seed
    return History(kind, begin, tuple(steps))


def _failure(c: random.Random) -> JsonDict:
    return {
        "number": c.randrange(10),
        "how": c.choice(("kill", "kill", "pause", "resume", "stubborn")),
        "wire": c.choice((None, 0, 1, 2)),
    }


def _writer(c: random.Random) -> JsonDict:
    return {
        "name": c.choice(WRITERS),
        "hang": c.choice((None, None, 1, 3, 4, 5)),
        "code": c.choice((None, None, None, 11, 13)),
        "endless": c.random() < 0.2,
    }


def _loss(c: random.Random) -> JsonDict:
    return {
        "how": c.choice(("dies", "freezes", "lives")),
        "node": c.choice(("n1", "n1", "n2")),
        "collected": c.random() < 0.4,
    }


STEPS: dict[str, tuple[float, Callable[[random.Random], JsonDict]]] = {
    "live_on": (12, lambda c: {"seconds": c.randint(1, 6)}),
    "operator_is_down": (1, lambda c: {"seconds": c.randint(1, 15)}),
    "operator_dies": (2, lambda c: {"after": c.randint(0, 8)}),
    "late_look": (1, lambda c: {"seconds": c.randint(1, 5)}),
    "blind_look": (1, lambda c: {"what": c.choice(("etcd", "agents", "evidence", "clock"))}),
    "writer_is_made": (4, _writer),
    "writer_is_deleted": (1, lambda c: {"name": c.choice(WRITERS)}),
    "writer_is_suspended": (1, lambda c: {"name": c.choice(WRITERS), "on": c.random() < 0.5}),
    "process_fails": (3, _failure),
    "publisher_dies": (2, lambda c: {"wire": c.choice((0, 1, 2))}),
    "node_is_lost": (1.5, _loss),
    "node_is_back": (1, lambda c: {"node": c.choice(("n1", "n2"))}),
    "node_reboots": (1, lambda c: {"node": c.choice(("n1", "n2"))}),
    "pod_is_force_deleted": (0.5, lambda c: {"number": c.randrange(10)}),
    "frozen_and_forced": (0.7, lambda c: {"number": c.randrange(10)}),
    "pod_is_refused": (0.5, lambda c: {"number": c.randrange(10)}),
    "durations_change": (0.5, lambda c: {"lease": c.choice((10, 12, 20))}),
    "operators_clock": (0.5, lambda c: {"ms": c.choice((0, -20_000, 20_000))}),
    "table_is_deleted": (0.2, lambda c: {}),
    "agent_goes_on": (1, lambda c: {}),
}
"""Weight and arguments of each step that may be drawn."""


# ---- failing


def wrong(history: History) -> str:
    """Play a history and return the error; empty: none."""
    try:
        Player(history).play()
    except AssertionError as error:
        return str(error) or "AssertionError"
    except Exception as error:
        return f"{type(error).__name__}: {error}"  # whatever it is, the history that leads to it is what is wanted
    return ""


def shortened(history: History, seconds: float = SHORTEN_SECONDS) -> History:
    """A history that fails as well, with fewer steps; which rule it breaks may be another."""
    end = time.process_time() + seconds
    size = max(1, len(history.steps) // 2)
    while size and time.process_time() < end:
        for shorter in list(_without(history, size)):
            if time.process_time() > end:
                break
            if wrong(shorter):
                history = shorter
                break
        else:
            size //= 2
    return history


def _without(history: History, size: int) -> Iterator[History]:
    for at in range(0, len(history.steps), size):
        yield replace(history, steps=history.steps[:at] + history.steps[at + size :])


def walk(seed: int, *, seconds: float = float("inf"), worlds: int = 1_000_000) -> int:
    """Play the histories of seed, seed + 1, and so on, until the CPU time or the number is used up.

    Returns how many.

    Raises AssertionError with the seed and the shortened history of the first that fails.
    """
    end, number = time.process_time() + seconds, 0
    while number < worlds and (not number or time.process_time() < end):
        history = drawn(seed + number)
        if said := wrong(history):
            short = shortened(history)
            raise AssertionError(
                f"world {number + 1}, seed {seed + number}: {said}\nshortened: {wrong(short)}\n"
                f"It becomes a case as a file of tests/tiers/unit/plan/histories:\n{short.text()}"
            )
        number += 1
    return number

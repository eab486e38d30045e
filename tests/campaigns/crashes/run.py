"""One run: a namespace, two proxies, the operator, a scenario, at most one fault, and everything
that was seen.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc

from hudi_contract import naming
from tests.campaigns.crashes.agent_proxy import PREFIX, AgentProxy
from tests.campaigns.crashes.agents import RealAgent, Storage
from tests.campaigns.crashes.api_proxy import ApiProxy, LoopThread, Objects
from tests.campaigns.crashes.etcd_proxy import EtcdProxy
from tests.campaigns.crashes.faults import Fault, Injector, Target
from tests.campaigns.crashes.interruptions import EFFECTS, INTERRUPTIONS
from tests.campaigns.crashes.monitor import Monitor
from tests.campaigns.crashes.naming import Names
from tests.campaigns.crashes.nursery import Nursery
from tests.campaigns.crashes.play import SCENARIOS, Keys, Play
from tests.support.harness.operator_world import World
from tests.support.harness.servers import Cluster, Etcd, wait_for
from tests.support.trace.conform import assert_conform
from tests.support.trace.events import Event, read_files

JsonDict = dict[str, Any]
QUIET_SECONDS = 1.0
SAME_SECONDS = 120.0
DRAIN_SECONDS = 1.0
_AGENT_NUMBER = re.compile(r"\b(hudi-agent-A|inc-agent)-\d+\b")


@dataclass
class Parts:
    """Shared parts of the runs: API server, etcd, a loop for the proxies."""

    cluster: Cluster
    cluster_directory: Path
    etcd: Etcd
    loop: LoopThread
    nursery: Nursery
    storage: Storage | None = None
    """For real agents; None: they are played."""


@dataclass(frozen=True)
class Reference:
    """Result of a run without fault."""

    state: JsonDict
    counts: dict[str, list[int]]


@dataclass
class Outcome:
    """Result of one run.

    ``deviations``: one sentence each; empty when the run was as it should be.
    """

    deviations: list[str]
    hit: bool
    """Its fault or interruption has taken effect."""
    writes: list[Target]
    state: JsonDict = field(default_factory=dict)
    counts: dict[str, list[int]] = field(default_factory=dict)
    seconds: float = 0.0
    settle_ms: dict[str, int] = field(default_factory=dict)
    restarts: int = 0
    agents_killed: int = 0
    disturbed: str = ""
    """Problem of the play itself (the machine was too busy for it): such a run shows nothing.
    Empty: none.
    """
    effects: dict[str, int] = field(default_factory=dict)
    """Signs that an interruption has taken effect, and how often each was seen."""
    cpu: list[float] = field(default_factory=list)
    """Seconds of CPU of the operators, and of this process."""


class WatchedWorld(World):
    """A world whose play reads the objects that watches have brought: polling would cost more CPU
    than the operator.
    """

    objects: Objects
    nursery: Nursery
    replacing = False
    """True while a killed operator's successor is being started."""

    def spawn(self, variables: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
        """A fork of the nursery."""
        return self.nursery.start(variables, log, self.directory)  # type: ignore[return-value]

    @staticmethod
    def ports(count: int) -> list[int]:
        """Any port that is free when the operator starts: nobody scrapes its metrics here."""
        return [0] * count

    def pods(self, role: str, *, writer: str = "") -> list[JsonDict]:
        """Pods by role.

        Fails at once when the operator has ended by itself: nothing would ever come.
        """
        if not self.replacing and self.operators[-1].process.poll() is not None:
            raise AssertionError(f"the operator has ended: {self.operators[-1].log.read_text()[-1000:]}")
        found = []
        for pod in list(self.objects.latest.get("pods", {}).values()):
            labels = pod["metadata"].get("labels") or {}
            if labels.get(naming.LABEL_ROLE) == role and (not writer or labels.get(naming.LABEL_WRITER) == writer):
                found.append(pod)
        return found

    def get(self, plural: str, name: str) -> JsonDict | None:
        """One object; None when it does not exist."""
        return self.objects.latest.get(plural, {}).get(name)


class Run:
    """Sets up, plays and judges one run."""

    def __init__(
        self,
        parts: Parts,
        directory: Path,
        scenario: str,
        *,
        target: Target | None = None,
        fault: Fault | None = None,
        interruption: str = "",
        played: bool = False,
    ) -> None:
        """``interruption``: a name of :data:`tests.campaigns.crashes.interruptions.INTERRUPTIONS`,
        or none. ``played``: so is the agent.
        """
        directory.mkdir(parents=True)
        self.parts, self.directory, self.scenario = parts, directory, scenario
        namespace = f"c-{os.urandom(4).hex()}"
        self.world = WatchedWorld(parts.cluster, parts.etcd, directory, namespace)
        self.world.nursery = parts.nursery
        table_id = naming.table_id(f"s3a://lake/{namespace}/flights")
        self.names = Names(namespace, table_id)
        self.monitor = Monitor(table_id, DRAIN_SECONDS)
        self.injector = Injector(self._kill, target, fault)
        self.api = ApiProxy(
            parts.loop,
            pki=parts.etcd.pki,
            cluster=parts.cluster_directory,
            injector=self.injector,
            monitor=self.monitor,
            names=self.names,
        )
        self.etcd = EtcdProxy(
            parts.etcd.pki, parts.etcd.endpoint, injector=self.injector, monitor=self.monitor, names=self.names
        )
        self.objects = self.world.objects = Objects(self.api, namespace, self.names)
        self.world.operator_kubeconfig = self.api.kubeconfig(directory / "kubeconfig")
        self.keys = Keys(parts.etcd, table_id)
        self.agent = self._real_agent(parts.storage) if parts.storage is not None and not played else None
        interrupt = INTERRUPTIONS.get(interruption, _nothing)
        self._effects = EFFECTS.get(interruption, lambda run: {})
        self.servers_disturbed = 0
        """Number of times that a server was restarted or frozen."""
        self.play = Play(
            self.world,
            at=lambda point: interrupt(self, point),
            keys=self.keys,
            names=self.names,
            monitor=self.monitor,
            log=directory / "play.log",
            real=self.agent,
        )
        self._spent = 0.0
        self._killed_lines: dict[int, list[Event]] = {}

    def _real_agent(self, storage: Storage) -> RealAgent:
        etcd = self.parts.etcd
        self.agent_proxy = AgentProxy(
            etcd.pki,
            etcd.endpoint,
            injector=self.injector,
            monitor=self.monitor,
            names=self.names,
            kill=lambda: self.agent and self.agent.kill(),
        )
        return RealAgent(storage, self.world, self.agent_proxy, etcd.pki)

    def start(self) -> None:
        """Start an operator."""
        self.world.start_operator(leader_election=False, wait=False, endpoints=[self.etcd.endpoint])

    def kill(self) -> None:
        """Kill the operator now; its successor starts."""
        self._kill()
        self.monitor.killed()

    def _kill(self) -> None:
        """Kill the running operator and start its successor."""
        self.world.replacing = True
        number = len(self.world.operators) - 1
        self._spent += spent(self.world.operators[-1].process.pid)
        self.world.operators[-1].kill()
        self._killed_lines[number] = list(self.monitor.lost_events)
        self.monitor.lost_events.clear()
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        self.start()
        self.world.replacing = False

    def execute(self, reference: Reference | None) -> Outcome:
        """Play the scenario; compare with the reference (None: this run is to become one)."""
        started, before = time.monotonic(), time.process_time()
        deviations: list[str] = []
        disturbed = ""
        try:
            wait_for("watches of the namespace", lambda: self.objects.ready)
            self.start()
            SCENARIOS[self.scenario](self.play)
            self._end(reference)
        except AssertionError as error:
            if self.injector.target is not None and not self.injector.hit:
                disturbed = f"it stood still before the fault: {str(error)[:300]}"
            deviations.append(f"the scenario did not go on: {str(error)[:1500]}")
        except (grpc.RpcError, OSError) as error:
            disturbed = f"{type(error).__name__}: {str(error)[:300]}"
        starved, alive = self._fenced_agents()
        disturbed = disturbed or starved
        deviations += alive
        for operator in self.world.operators:
            if operator.process.poll() is None:
                self._spent += spent(operator.process.pid)
                operator.kill()
        state, counts = self.state(), self.objects.counts()
        if reference is not None:
            deviations += differences(self._comparable(reference.state), self._comparable(state), "end state")
            deviations += differences(
                self._comparable(reference.counts), self._comparable(counts), "objects created and deleted"
            )
        if self.agent is not None:
            deviations += self.agent.wrong() + self._outcomes()
        deviations += [f"event twice: {name}" for name in self.objects.repeated_events()]
        deviations += (
            self.monitor.wrong
            + drivers(counts, [*self.monitor.events, *read_files([self.play.log])])
            + self._traces()
            + self._defects()
        )
        injector, effects = self.injector, self._effects(self)
        cpu = [round(self._spent, 2), round(time.process_time() - before, 2)]
        return Outcome(
            deviations,
            injector.hit or taken(effects),
            list(injector.writes),
            state,
            counts,
            time.monotonic() - started,
            settle_ms=self._settle_times(),
            restarts=len(self.world.operators) - 1,
            agents_killed=self.agent.kills if self.agent is not None else 0,
            disturbed=disturbed,
            effects=effects,
            cpu=cpu,
        )

    def close(self) -> None:
        """End everything of this run and delete its namespace."""
        if self.agent is not None:
            self.agent.close()
            self.agent_proxy.close()
        self.world.close()
        self.objects.close()
        self.api.close()
        self.etcd.close()
        self.keys.close()

    # ---- the end

    def _end(self, reference: Reference | None) -> None:
        """Wait until the operator has written nothing for a while and, unless this is to become a
        reference, the state is the reference's.
        """
        deadline = time.monotonic() + SAME_SECONDS
        seen, since = len(self.injector.writes), time.monotonic()
        while time.monotonic() < deadline:
            if len(self.injector.writes) != seen:
                seen, since = len(self.injector.writes), time.monotonic()
            if time.monotonic() - since > QUIET_SECONDS:
                if reference is None or self._comparable(self.state()) == self._comparable(reference.state):
                    return
                since = time.monotonic()
            time.sleep(0.1)

    def state(self) -> JsonDict:
        """Every object and key, without what differs from run to run."""
        found: JsonDict = {}
        for kind in Objects.KINDS:
            plural = kind.rpartition("/")[2]
            if plural != "events":
                items = (self.world.cluster.request("GET", self.objects.path(kind)) or {"items": []})["items"]
                found.update({f"{plural}/{item['metadata']['name']}": item for item in items})
        found.update({f"etcd {key}": self._key(key, value) for key, value in self.keys.all().items()})
        return dict(sorted(self.names.value(found).items()))

    def _key(self, key: str, value: JsonDict) -> JsonDict:
        """A real agent may forget a defeated writer's instants before or after it is fenced:
        :meth:`_outcomes` looks at them.
        """
        real = self.agent is not None and key.startswith("settle/")
        return {name: item for name, item in value.items() if name != "instants"} if real else value

    def _comparable(self, values: JsonDict) -> JsonDict:
        """Without what differs when the agent itself was killed: its pods, its incarnations and
        what it has reported as whom.
        """
        if self.injector.target is None or not self.injector.target.name.startswith(PREFIX):
            return values
        kept = {key: value for key, value in values.items() if "hudi-agent-A" not in key and "inc-agent" not in key}
        return dict(json.loads(_AGENT_NUMBER.sub(r"\1-N", json.dumps(kept))))

    # ---- judgement

    def _fenced_agents(self) -> tuple[str, list[str]]:
        """Result of checking the fences of agents that nobody has killed: see `fenced_agents`."""
        mine = self.agent_proxy.incarnations if self.agent is not None else []
        return fenced_agents(
            self.monitor.events, mine, lambda inc, revision: self.keys.was_there(f"alive/{inc}", revision)
        )

    def _outcomes(self) -> list[str]:
        """Every dead instant that was settled has an outcome, and none was taken for completed."""
        wrong = []
        for key, record in self.keys.all().items():
            for instant, item in (record.get("instants") or {}).items() if key.startswith("settle/") else ():
                if instant in self.agent.dead and item.get("outcome") not in ("RolledBack", "Gone"):  # type: ignore[union-attr]
                    wrong.append(f"I4: {key} says of {instant}: {item}")
        return wrong

    def _traces(self) -> list[str]:
        """The true trace (as the proxy saw it), and the operator's own log with what it
        cannot know of.
        """
        truth = self.directory / "truth.log"
        truth.write_text("".join(f"{event.line()}\n" for event in self.monitor.events if event.action != "unknown"))
        lines = []
        for number, operator in enumerate(self.world.operators):
            text = operator.log.read_text(errors="replace")
            lines += [
                text if text.endswith("\n") or not text else text + "\n",
                *(e.line() + "\n" for e in self._killed_lines.get(number, [])),
            ]
        own = self.directory / "operator-all.log"
        own.write_text("".join(lines))
        logs = [self.play.log]
        if self.agent is not None:
            logs.append(self.agent.log(self.directory / "agent.log", self.monitor.table_id))
        wrong = []
        for what, log in (("true trace", truth), ("operator's log", own)):
            try:
                assert_conform([*logs, log], complete=True)
            except (AssertionError, OSError, ValueError) as error:
                wrong.append(f"{what}: {error}")
        return wrong

    def _defects(self) -> list[str]:
        """Errors that no fault explains: a planner that fell, an operator that ended by itself."""
        text = (self.directory / "operator-all.log").read_text()
        found = [line for line in text.splitlines() if "unexpected error" in line or "Task exception" in line]
        return [f"operator's log: {line[:300]}" for line in found]

    def _settle_times(self) -> dict[str, int]:
        """Milliseconds from the fence to each phase, of the record that was settled."""
        for record in self.monitor.settles.values():
            times = record.get("times") or {}
            if "Settled" in times:
                return {phase: at - times["Fenced"] for phase, at in times.items()}
        return {}


def drivers(counts: JsonDict, events: list[Event]) -> list[str]:
    """No second driver for an attempt, and no attempt beside its predecessor."""
    wrong = [
        f"{key}: {made} pods were created" for key, (made, _) in counts.items() if key.startswith("pods/") and made > 1
    ]
    admits = {e.key: e.rev for e in events if e.action == "admit" and e.ok}
    second = next((rev for key, rev in admits.items() if key.endswith("-2") and "load" in key), 0)
    ends = [
        e.rev for e in events if e.ok and (e.action == "fence" or (e.action == "clean-exit" and e.role == "writer"))
    ]
    if second and (not ends or min(ends) > second):
        wrong.append("F5: the second attempt was admitted before the first was fenced or had left")
    return wrong


def taken(effects: dict[str, int]) -> bool:
    """Whether an interruption has taken effect: everything that shows it was seen."""
    return bool(effects) and all(effects.values())


def _nothing(run: Run, point: str) -> None:
    """No interruption."""


def spent(pid: int) -> float:
    """Seconds of CPU of a process that is still there; 0 when it is gone."""
    try:
        user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[11:13]
    except OSError:
        return 0.0
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def fenced_agents(
    events: Iterable[Event], mine: Collection[str], alive_at: Callable[[str, int], bool]
) -> tuple[str, list[str]]:
    """Why a run proves nothing, and what is wrong, when an agent that nobody has killed was fenced.

    An agent whose heartbeat was gone was too slow for its lease: that is the machine, and the
    operator is right. One whose heartbeat was there must not be fenced for want of it, whatever the
    machine does.

    `mine`: incarnations of such agents.

    `alive_at`: whether the heartbeat of an incarnation was there at a revision.
    """
    fences = [e for e in events if e.action == "fence" and e.ok and e.detail == "LeaseGone" and e.subject in mine]
    wrong = [
        f"I11: the agent {e.subject} was fenced while it was alive" for e in fences if alive_at(e.subject, e.rev - 1)
    ]
    return "the agent had not enough CPU to keep its lease" if fences and not wrong else "", wrong


def differences(wanted: Any, found: Any, where: str) -> list[str]:
    """Paths at which two JSON values differ, at most ten."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        result = []
        for key in sorted({*wanted, *found}):
            if wanted.get(key) != found.get(key):
                result += differences(wanted.get(key), found.get(key), f"{where}: {key}")
        return result[:10]
    return [] if wanted == found else [f"{where}: should be {json.dumps(wanted)[:300]}, is {json.dumps(found)[:300]}"]

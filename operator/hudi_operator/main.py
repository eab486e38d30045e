"""Start and wiring of the operator: ``python -m hudi_operator``."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import socket
import sys
import time
import uuid
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import kopf
import yaml

from hudi_contract import environment, keys, naming
from hudi_operator import handlers, observability
from hudi_operator.adapters.credentials_broker import CredentialsBroker
from hudi_operator.adapters.etcd import EtcdStore, RevisionNotes, Revisions
from hudi_operator.adapters.etcd_fitness import FitnessCheck
from hudi_operator.adapters.etcd_pulse import Pulse
from hudi_operator.adapters.etcd_rpc import Connection
from hudi_operator.adapters.etcd_watch import Change, PrefixWatch
from hudi_operator.adapters.identity import pods_authority
from hudi_operator.adapters.kubernetes import ApiError, ApiServer, KubernetesStore, load_configuration, own_namespace
from hudi_operator.adapters.leader import Leader
from hudi_operator.control.applied_objects import AppliedObjects
from hudi_operator.control.attempt_credentials import AttemptCredentials
from hudi_operator.control.executor import Executor
from hudi_operator.control.executor_questions import ExecutorQuestions
from hudi_operator.control.held_locks import HeldLocks
from hudi_operator.control.index import TableIndex
from hudi_operator.control.late_statuses import LateStatuses
from hudi_operator.control.loop import Reconciler
from hudi_operator.control.memory import Memory
from hudi_operator.control.observe import Observer
from hudi_operator.control.queue import Key, WorkQueue
from hudi_operator.control.refusals import Refusals
from hudi_operator.control.timers import Timers
from hudi_operator.metrics import certificates
from hudi_operator.metrics.lock_times import LockTimes
from hudi_operator.metrics.meter import Metrics
from hudi_operator.model.config import RELOADED, ConfigError, OperatorConfig, reloaded
from hudi_operator.model.ports import Fatal, Retryable
from hudi_operator.plan.table import plan_table

LOG = logging.getLogger("hudi_operator.main")

DEFAULT_CONFIG = "/etc/hudi-operator/config/config.yaml"
OLDEST_KUBERNETES = (1, 30)
EXIT_USAGE = 2
LEVELS = 20_000
"""Python's limit for calls within calls. The API server stores what is nested 10,000 levels deep,
and an object that cannot be parsed would end every list and every watch (F628).
"""
_WORKERS = 16
_RETRY_SECONDS = 5.0
_CONFIG_SECONDS = 5.0
"""Time between two looks at the configuration file."""


def read_config(path: str) -> OperatorConfig:
    """Read the configuration file. Raises ConfigError."""
    try:
        raw = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: {error}") from error
    return OperatorConfig.from_dict(raw)


class Operator:
    """All parts of one replica, in one event loop."""

    def __init__(self, config: OperatorConfig, path: str = "") -> None:
        """``path``: the file of the configuration, which is read again; empty: it is not."""
        self.config, self._path = config, path
        self.identity = f"{os.environ.get(environment.POD_NAME) or socket.gethostname()}-{uuid.uuid4().hex[:8]}"
        self.metrics = Metrics()
        self.metrics.certificates(certificates.files(config))
        self.probes = observability.Probes()
        self.index = TableIndex(config.spark_image, max_tables=config.agent.max_tables)
        self.memory = Memory()
        self.queue = WorkQueue()
        self.held_locks = HeldLocks(config.etcd.prefix)
        self.revisions = Revisions()
        self._leading = asyncio.Event()

    async def run(self) -> int:
        """Run until SIGTERM; returns the exit code."""
        loop = asyncio.get_running_loop()
        configuration = await load_configuration()
        api = ApiServer(configuration, waited=self.metrics.api_waited, requested=self.metrics.api_request)
        connection = Connection(self.config.etcd)
        leader = Leader(
            self.config.leader_election,
            configuration=configuration,
            namespace=own_namespace(),
            identity=self.identity,
            on_started=lambda: _hand_over(loop, self._leading.set),
            notes=RevisionNotes(self.revisions),
        )
        self.metrics.leader.set_function(lambda: float(leader.leading))
        self.metrics.queue_length.set_function(lambda: float(len(self.queue)))
        self.metrics.tables.set_function(lambda: float(len(self.index)))
        servers = self.probes.serve(self.config.probe_port)
        observability.serve_metrics(self.metrics.registry, self.config.metrics_port, self.config.metrics)
        tasks = [loop.create_task(self._beat(), name="beat")]
        watches: list[PrefixWatch] = []
        try:
            await wait_for_api(api, self.probes)
            fitness = self._fitness(connection)
            reconciler = self._reconciler(api, connection, leader, fitness)
            leader.start()
            if self._path:
                tasks.append(loop.create_task(self._reload(reconciler), name="configuration"))
            tasks.append(loop.create_task(self._lead(reconciler, connection, watches, leader, fitness), name="lead"))
            await self._until_first_failure(tasks, self._events())
        finally:
            await self._stop(tasks, watches)
            leader.stop()
            connection.close()
            await api.close()
            servers.shutdown()
        return 0

    def _fitness(self, connection: Connection) -> FitnessCheck:
        return FitnessCheck(
            connection,
            allow_unauthenticated=self.config.etcd.allow_unauthenticated,
            sizes=lambda sizes: self.metrics.etcd_sizes(total=sizes.total, in_use=sizes.in_use, quota=sizes.quota),
            shown=lambda expires: self.metrics.certificate_shown("etcd-server", expires),
        )

    def _reconciler(self, api: ApiServer, connection: Connection, leader: Leader, fitness: FitnessCheck) -> Reconciler:
        kubernetes = KubernetesStore(api, instance=self.identity)
        etcd = EtcdStore(connection, self.config.etcd.prefix, revisions=self.revisions, observe=self.metrics.etcd_call)
        timers, applied, refusals = Timers(), AppliedObjects(), Refusals()
        questions, late = ExecutorQuestions(kubernetes), LateStatuses()
        broker = self.config.credentials_broker
        credentials = AttemptCredentials(CredentialsBroker(broker), kubernetes) if broker.given else None
        return Reconciler(
            queue=self.queue,
            observer=Observer(
                kubernetes=kubernetes,
                etcd=etcd,
                index=self.index,
                timers=timers,
                memory=self.memory,
                config=self.config,
                authority=lambda: pods_authority(self.config.pod_etcd),
                applied=applied,
                refusals=refusals.facts,
                executor_answers=questions.facts,
                late=late,
                fitness=fitness,
                **({"revocations": credentials.facts} if credentials is not None else {}),
            ),
            executor=Executor(
                kubernetes=kubernetes,
                etcd=etcd,
                timers=timers,
                check_leader=leader.check,
                credentials=credentials,
                applied=applied,
                refusals=refusals,
                questions=questions,
                late=late,
            ),
            planner=plan_table,
            timers=timers,
            config=self.config,
            meter=self.metrics,
        )

    async def _lead(
        self,
        reconciler: Reconciler,
        connection: Connection,
        watches: list[PrefixWatch],
        leader: Leader,
        fitness: FitnessCheck,
    ) -> None:
        """Reconcile once this replica is the leader; followers only keep their index up to date."""
        await self._leading.wait()
        loop, prefix = asyncio.get_running_loop(), self.config.etcd.prefix
        router = handlers.EtcdRouter(prefix, self.index, self.queue.add)
        times = LockTimes(
            prefix, waited=self._of_table(self.metrics.lock_waited), held=self._of_table(self.metrics.lock_held)
        )

        def changed(changes: list[Change]) -> None:
            times.take(changes)
            _hand_over(loop, lambda: router.route(changes))
            _hand_over(loop, lambda: self.held_locks.take(changes))

        def lost() -> None:
            times.lost()
            _hand_over(loop, router.everything)

        for part in keys.RANGES:
            watch = PrefixWatch(
                connection, f"{prefix}/{part}/", on_changes=changed, on_lost=lost, on_resumed=times.resumed
            )
            watches.append(watch)
            watch.start()
        router.everything()
        self.revisions.set_back = router.everything
        pulse = Pulse(connection, prefix, revisions=self.revisions)
        async with asyncio.TaskGroup() as group:
            if self.config.leader_election.enabled:  # without a Lease nothing of it outlives the process
                group.create_task(pulse.run(leading=lambda: leader.leading, fitness=fitness), name="pulse")
            for number in range(_WORKERS):
                group.create_task(reconciler.work(), name=f"worker-{number}")

    async def _events(self) -> None:
        """kopf, until SIGTERM or SIGINT, which it handles."""
        namespaces = self.config.watch_namespaces
        ready = asyncio.Event()
        waiter = asyncio.get_running_loop().create_task(self._when(ready))
        try:
            await kopf.operator(
                registry=handlers.registry(self.index, self.memory, self.queue.add),
                settings=handlers.settings(),
                standalone=True,
                # kopf's own has the user's name, and a user of the platform has none (F339). The
                # type is a NewType of str that kopf does not export.
                identity=self.identity,  # type: ignore[arg-type]
                clusterwide=not namespaces,
                namespaces=namespaces,
                ready_flag=ready,
            )
        finally:
            waiter.cancel()

    async def _when(self, ready: asyncio.Event) -> None:
        await ready.wait()
        self.probes.not_ready = ""
        LOG.info("%s watches %s", self.identity, ", ".join(self.config.watch_namespaces) or "all namespaces")

    def _of_table(self, observe: Callable[[Key, float], None]) -> Callable[[str, float], None]:
        """Observe by table id: that of its HudiTables, of which doubled paths have several."""

        def observed(table_id: str, seconds: float) -> None:
            for key in self.index.of_id(table_id):
                observe(key, seconds)

        return observed

    async def _beat(self) -> None:
        while True:
            self.probes.beat()
            began = time.monotonic()
            for table_id in self.held_locks.long():
                for key in self.index.of_id(table_id):
                    self.queue.add(key)
            await asyncio.sleep(1.0)
            self.metrics.lagged(time.monotonic() - began - 1.0)

    async def _reload(self, reconciler: Reconciler) -> None:
        """Read the configuration again and again, and take what may change while this process runs.

        A file that cannot be used changes nothing.
        """
        told = ""
        self.metrics.config_in_force.set(1)
        while True:
            await asyncio.sleep(_CONFIG_SECONDS)
            now, problem = self.config, ""
            try:
                now, waiting = reloaded(self.config, await asyncio.to_thread(read_config, self._path))
                if waiting:
                    problem = f"a change of {', '.join(waiting)} counts after a restart"
            except ConfigError as error:
                problem = f"configuration, which stays as it was: {error}"
            if problem and problem != told:
                LOG.error("%s", problem)
            told = problem
            self.metrics.config_in_force.set(not problem)
            if now != self.config:
                changed = [
                    name for field, name in RELOADED.items() if getattr(now, field) != getattr(self.config, field)
                ]
                LOG.info("another configuration: %s", ", ".join(changed))
                self.config, self.index.max_tables = now, now.agent.max_tables
                reconciler.configure(now)
                for key in self.index.tables():
                    self.queue.add(key)

    async def _until_first_failure(self, tasks: list[asyncio.Task[None]], last: Coroutine[Any, Any, None]) -> None:
        """Wait for ``last``; a task that fails earlier ends the operator."""
        main = asyncio.get_running_loop().create_task(last, name="events")
        done, _ = await asyncio.wait([main, *tasks], return_when=asyncio.FIRST_COMPLETED)
        if main not in done:
            main.cancel()
            await asyncio.gather(main, return_exceptions=True)
        for task in done:
            task.result()

    async def _stop(self, tasks: list[asyncio.Task[None]], watches: list[PrefixWatch]) -> None:
        self.probes.not_ready = "stopping"
        for watch in watches:
            watch.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _hand_over(loop: asyncio.AbstractEventLoop, callback: Any) -> None:
    """Call ``callback`` on the loop from a watch's thread; the loop may already be closed."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(callback)


async def wait_for_api(api: ApiServer, probes: observability.Probes) -> None:
    """Wait until the API server answers and serves our kinds.

    Raises Fatal for a Kubernetes that is too old.
    """
    last = ""
    while True:
        problem = await _api_problem(api)
        if not problem:
            return
        if problem != last:
            LOG.error("cannot start yet: %s", problem)
        last = probes.not_ready = problem
        probes.beat()
        await asyncio.sleep(_RETRY_SECONDS)


async def _api_problem(api: ApiServer) -> str:
    """Why the operator cannot start yet; empty when it can. Raises Fatal."""
    try:
        version = await api.request("GET", "/version")
        check_version(str(version.get("major")), str(version.get("minor")))
        served = await api.request("GET", f"/apis/{naming.API_VERSION}")
    except ApiError as error:
        if error.status == 404:
            return (
                f"the API server does not serve {naming.API_VERSION}: install the CustomResourceDefinitions "
                "huditables and hudiwriters"
            )
        return f"API server: {error} ({error.status})"
    except Retryable as error:
        return str(error)
    missing = {"huditables", "hudiwriters"} - {str(resource.get("name")) for resource in served.get("resources") or ()}
    return f"CustomResourceDefinitions are missing: {', '.join(sorted(missing))}" if missing else ""


def check_version(major: str, minor: str) -> None:
    """Raises Fatal below Kubernetes 1.30: admission policies guard the evidence of pods' deaths."""
    digits = re.match(r"\d+", minor)
    found = (int(major), int(digits.group()) if digits else 0)
    if found < OLDEST_KUBERNETES:
        raise Fatal(
            f"Kubernetes {found[0]}.{found[1]} is too old: 1.30 is needed, because admission policies guard the "
            "evidence of pods' deaths"
        )


def main() -> int:
    """Entry point; returns the exit code."""
    sys.setrecursionlimit(LEVELS)
    observability.configure_from_environment()
    path = os.environ.get("HUDI_OPERATOR_CONFIG", DEFAULT_CONFIG)
    try:
        config = read_config(path)
    except ConfigError as error:
        LOG.error("configuration: %s", error)
        return EXIT_USAGE
    with contextlib.suppress(KeyboardInterrupt):
        return asyncio.run(_run(config, path))
    return 0


async def _run(config: OperatorConfig, path: str) -> int:
    try:
        return await Operator(config, path).run()
    except Fatal as error:
        LOG.error("%s", error)
        return EXIT_USAGE

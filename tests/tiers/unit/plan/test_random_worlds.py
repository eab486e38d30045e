"""Random histories of the simulated world: whatever happens in whatever order, the invariants hold and everything ends once it is healed.

Each run draws a new seed. A failure prints its steps and how to repeat them (`--hypothesis-seed`); its steps become a test of their own.
"""

from __future__ import annotations

import copy
from typing import ClassVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from hudi_operator.plan.table import plan_table
from tests.support.world.simulated_world import CONFIG, Node, Process, World

WRITERS = ("a", "b", "c")
TABLE = {"fencing": {"drainSeconds": 3}, "lock": {"suspectSeconds": 2, "maxHoldSeconds": 40}}


class Histories(RuleBasedStateMachine):
    """Writers come and go, processes die or freeze, nodes and the operator fail, objects are deleted."""

    table: ClassVar[dict[str, object]] = {**TABLE}

    @initialize(executors=st.integers(0, 1), single=st.booleans())
    def start(self, executors: int, single: bool) -> None:
        mode = {"concurrency": {"mode": "SingleWriter" if single else "Optimistic"}}
        self.world = World(executors_per_driver=executors)
        self.world.make_table(**TABLE, **mode)
        self.world.nodes["n2"] = Node("n2", "node-uid-2", "boot-2")
        self.deleted_table = False
        self.world.run(lambda w: w.is_true(w.table, "Ready"))

    def _living(self) -> list[Process]:
        return [p for p in self.world.processes if p.alive]

    def _reconcile(self, crash_after: int | None = None) -> None:
        observed = self.world.observe()
        before = copy.deepcopy(observed.table)
        first = plan_table(observed, CONFIG)
        assert plan_table(observed, CONFIG) == first, "a planner is a function of what it sees"
        assert observed.table == before
        self.world.reconcile(crash_after)

    @rule(seconds=st.integers(1, 6))
    def live_on(self, seconds: int) -> None:
        for _ in range(seconds):
            self._reconcile()
            self.world.tick()

    @rule(seconds=st.integers(1, 15))
    def operator_is_down(self, seconds: int) -> None:
        for _ in range(seconds):
            self.world.tick()
        self.world.timers.clear()

    @rule(after=st.integers(0, 8))
    def operator_dies(self, after: int) -> None:
        self._reconcile(crash_after=after)

    @rule(name=st.sampled_from(WRITERS), hang=st.sampled_from([None, None, 1, 3, 4, 5]), code=st.sampled_from([None, None, 11, 13]))
    def writer_is_made(self, name: str, hang: int | None, code: int | None) -> None:
        if name not in self.world.writers:
            self.world.writer_hang_at = hang
            self.world.exit_codes = [] if code is None else [code]
            self.world.make_writer(name, retryPolicy={"limit": 20, "backoffSeconds": 1, "maxBackoffSeconds": 2}, stop={"graceSeconds": 3})

    @rule(name=st.sampled_from(WRITERS))
    def writer_is_deleted(self, name: str) -> None:
        if name in self.world.writers:
            self.world.delete(self.world.writers[name])

    @rule(name=st.sampled_from(WRITERS), on=st.booleans())
    def writer_is_suspended(self, name: str, on: bool) -> None:
        if name in self.world.writers:
            self.world.edit(self.world.writers[name], suspend=on)

    @rule(number=st.integers(0, 9), how=st.sampled_from(["kill", "pause", "resume", "stubborn"]))
    def process_fails(self, number: int, how: str) -> None:
        living = self._living()
        if living:
            process = living[number % len(living)]
            if how == "kill":
                self.world.kill(process)
            elif how == "stubborn":
                process.ignores_sigterm = True
            else:
                process.paused = how == "pause"

    @rule(die=st.booleans(), node=st.sampled_from(["n1", "n2"]))
    def node_is_lost(self, die: bool, node: str) -> None:
        self.world.fail_node(node, processes_die=die)

    @rule(node=st.sampled_from(["n1", "n2"]))
    def node_reboots(self, node: str) -> None:
        self.world.reboot_node(node)

    @rule(number=st.integers(0, 9))
    def pod_is_force_deleted(self, number: int) -> None:
        pods = list(self.world.pods.values())
        if pods:
            self.world.force_delete(pods[number % len(pods)])

    @precondition(lambda self: not self.deleted_table)
    @rule()
    def table_is_deleted(self) -> None:
        if self.world.table is not None and len(self.world.sentences) % 5 == 0:
            self.deleted_table = True
            self.world.delete(self.world.table)

    def teardown(self) -> None:
        """Heal the world; then everything must end, and a table of this path must become usable again."""
        if not hasattr(self, "world"):
            return
        world = self.world
        for name in list(world.nodes):
            world.reboot_node(name)
        for process in world.processes:
            process.paused, process.hang_at = False, None
            if process.pod not in world.pods or world.pods[process.pod].uid != process.pod_uid:
                world.kill(process)
        world.writer_hang_at, world.exit_codes = None, []
        for writer in world.writers.values():
            if writer["spec"].get("suspend"):
                world.edit(writer, suspend=False)
        if self.deleted_table:
            self._attest()
            world.run(lambda w: w.table is None)
        if world.table is None:
            world.make_table(**self.table)
        self._attest()
        world.run(self._over)
        world.settle_down()
        assert "lock" not in world.kv
        assert not any("instant/" in key for key in world.kv)

    def _attest(self) -> None:
        """A person's word for every pod whose object was forced away."""
        world = self.world
        gone = [p for p in world.processes if p.pod_uid not in {pod.uid for pod in world.pods.values()}]
        words = [{"podUID": p.pod_uid, "node": p.node, "statement": "gone", "attestedBy": "ann", "at": "2026-01-01T00:00:00Z"} for p in gone]
        if world.table is not None:
            world.edit(world.table, fencing={**TABLE["fencing"], "attestations": words})

    @staticmethod
    def _over(world: World) -> bool:
        writers = all(world.is_true(w, "Finished") for w in world.writers.values() if not w["metadata"].get("deletionTimestamp"))
        gone = not any(w["metadata"].get("deletionTimestamp") for w in world.writers.values())
        settled = all(k.value["phase"] == "Settled" for k in world.names("settle").values())
        return writers and gone and settled and world.is_true(world.table, "Ready")


class Beginnings(Histories):
    """The same while the table is being bootstrapped: alone, and once (asserted in the world)."""

    @initialize(executors=st.just(0), single=st.booleans(), hang=st.sampled_from([None, 1, 2, 3, 4, 5]))
    def start(self, executors: int, single: bool, hang: int | None) -> None:  # type: ignore[override]
        self.world = World(executors_per_driver=executors, bootstrap_hang_at=hang)
        source = {"path": "s3a://lake/plain", "format": "Parquet"}
        self.world.make_table(**TABLE, concurrency={"mode": "SingleWriter" if single else "Optimistic"}, bootstrap={"source": source})
        self.world.nodes["n2"] = Node("n2", "node-uid-2", "boot-2")
        self.deleted_table = False

    @rule()
    def agent_goes_on(self) -> None:
        self.world.bootstrap_hang_at = None

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        self.world.bootstrap_hang_at = None
        super().teardown()
        assert self.deleted_table or len(self.world.bootstrapped) == 1


class Overlaps(Histories):
    """The same with writers that may write the same partitions, in a table that keeps such apart."""

    table: ClassVar[dict[str, object]] = {**TABLE, "partitionFields": ["day"], "concurrency": {"mode": "Optimistic", "admission": "DisjointPartitions"}}

    @initialize(executors=st.integers(0, 1), hang=st.sampled_from([None, 1, 3]))
    def start(self, executors: int, hang: int | None) -> None:  # type: ignore[override]
        self.world = World(executors_per_driver=executors)
        self.world.make_table(**self.table)
        self.world.nodes["n2"] = Node("n2", "node-uid-2", "boot-2")
        self.deleted_table = False
        self.world.run(lambda w: w.is_true(w.table, "Ready"))
        self.world.writer_hang_at = hang
        # Whatever these declare, any two of them have a partition in common.
        for name, patterns in zip(WRITERS, (["x*"], ["*y", "day=z"], ["xy", "?"]), strict=True):
            retries = {"limit": 20, "backoffSeconds": 1, "maxBackoffSeconds": 2}
            self.world.make_writer(name, partitions=patterns, retryPolicy=retries, stop={"graceSeconds": 3})

    def _reconcile(self, crash_after: int | None = None) -> None:
        super()._reconcile(crash_after)
        running = [name for name, w in self.world.writers.items() if (entries := w.get("status", {}).get("attempts")) and not entries[-1].get("class")]
        assert len(running) <= 1


TestOverlaps = Overlaps.TestCase
TestOverlaps.settings = settings(max_examples=8, stateful_step_count=25, deadline=None, database=None, print_blob=True, suppress_health_check=list(HealthCheck))
TestBeginnings = Beginnings.TestCase
TestBeginnings.settings = settings(
    max_examples=12, stateful_step_count=25, deadline=None, database=None, print_blob=True, suppress_health_check=list(HealthCheck)
)
TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=12, stateful_step_count=25, deadline=None, database=None, print_blob=True, suppress_health_check=list(HealthCheck)
)

"""Faults that are there at the same time, and the operator beside which they are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from tests.campaigns.alerts import of_tables, of_the_operator, of_writers
from tests.campaigns.alerts.fault import Fault, Made
from tests.campaigns.alerts.played import Play
from tests.campaigns.alerts.stage import Stage
from tests.support.harness.revocable_store import RevocableStore
from tests.support.harness.wire import Wire

HEALTHY = "healthy"
"""A table with a writer that nothing happens to."""


@dataclass(frozen=True)
class Act:
    """`begin` prepares operator and servers; what it opens is closed after the act."""

    faults: Sequence[Fault]
    begin: Callable[[Stage, ExitStack], None]


class Acts:
    """All of them; they hand what they have begun to their faults."""

    def __init__(self) -> None:
        self._store: RevocableStore | None = None
        self._wire: Wire | None = None
        self._held: Made | None = None

    def store(self) -> RevocableStore:
        """The S3 server with its broker."""
        assert self._store is not None
        return self._store

    def wire(self) -> Wire:
        """The operator's way to the API server."""
        assert self._wire is not None
        return self._wire

    # ---- beginnings

    def _tables(self, stage: Stage, open_: ExitStack) -> None:
        files = stage.directory / "files"
        files.mkdir()
        self._store = RevocableStore(stage.directory / "store", files, cache_seconds=1, limit_seconds=4.0)
        open_.callback(self._store.stop)
        broker = {
            "url": self._store.broker,
            "tokenFile": str(self._store.token_file),
            "storeEndpoint": self._store.url,
            "identityCacheSeconds": 1,
            "requestSeconds": 5,
        }
        stage.enter("lake", credentialsBroker=broker, pathPrefixes={"lake": list(of_tables.PREFIXES)})
        stage.start()
        stage.led()
        play = Play(stage)
        play.table(HEALTHY)
        play.writer(HEALTHY, "steady")

    def _plain(self, namespace: str) -> Callable[[Stage, ExitStack], None]:
        def begin(stage: Stage, _: ExitStack) -> None:
            stage.enter(namespace)
            stage.start()
            stage.led()
            for number in range(8):
                stage.world.table(f"one-{number}")

        return begin

    def _wired(self, namespace: str) -> Callable[[Stage, ExitStack], None]:
        def begin(stage: Stage, open_: ExitStack) -> None:
            stage.enter(namespace)
            self._wire = open_.enter_context(of_the_operator.over_a_wire(stage))
            of_the_operator.many_tables(stage)

        return begin

    def _small_etcd(self, stage: Stage, open_: ExitStack) -> None:
        etcd = open_.enter_context(of_the_operator.small_etcd(stage.directory / "small-etcd", stage.small_etcd_metrics))
        files = {"caFile": "ca.crt", "certFile": "operator.crt", "keyFile": "operator.key"}
        connection = {name: str(etcd.pki / file) for name, file in files.items()}
        accepts = {"endpoints": [etcd.endpoint], "prefix": "/hudi", "allowUnauthenticated": True}
        stage.enter("small", servers=etcd, etcd={**connection, **accepts})
        open_.callback(stage.leave)
        stage.start()
        stage.led()
        for number in range(8):
            stage.world.table(f"one-{number}")

    # ---- faults that share something

    def _throttled(self, stage: Stage) -> Made:
        self._held = of_the_operator.throttled(stage, self.wire())
        return self._held

    def _queue_long(self, stage: Stage) -> Made:
        if self._held is not None:
            return of_the_operator.queue_long(stage, self._held)
        return of_the_operator.throttled(stage, self.wire())

    # ---- acts

    def every(self) -> list[Act]:
        """In their order."""
        it = of_the_operator
        ends = "nothing more: it ends with the fault"
        return [
            Act(
                [
                    *(fault for fault in of_tables.faults(self.store) if fault.alert == "HudiLockWaitLong"),
                    *of_writers.faults(),
                    *(fault for fault in of_tables.faults(self.store) if fault.alert != "HudiLockWaitLong"),
                ],
                self._tables,
            ),
            Act(
                [
                    Fault(
                        "HudiOperatorRequestsRefused",
                        "a ResourceQuota allows no pod, and 8 writers start",
                        "the quota is deleted",
                        it.requests_refused,
                    ),
                    Fault("HudiGatewayDown", "the gateway is killed", "it is started again", it.gateway_down),
                ],
                self._plain("requests"),
            ),
            Act(
                [
                    Fault(
                        "HudiGatewayRefusing",
                        "a pod that was never admitted puts the lock of a table, again and again",
                        ends,
                        it.gateway_refusing,
                    )
                ],
                self._plain("gateway"),
            ),
            Act([Fault("HudiOperatorDown", "the operator is ended", "it is started", it.down)], self._plain("down")),
            Act(
                [
                    Fault(
                        "HudiOperatorNoLeader",
                        "somebody else renews the Lease",
                        "nobody renews it any more",
                        it.no_leader,
                    )
                ],
                self._plain("leader"),
            ),
            Act(
                [
                    Fault(
                        "HudiOperatorRequestsFailing",
                        "the connections to the API server are cut for half of the time",
                        "they are not",
                        lambda stage: it.requests_failing(stage, self.wire()),
                    )
                ],
                self._wired("cut"),
            ),
            Act(
                [
                    Fault(
                        "HudiOperatorThrottled",
                        f"answers of the API server are held up for 5 s, again and again; {it.MANY} tables change",
                        "they are not",
                        self._throttled,
                    ),
                    Fault("HudiOperatorQueueLong", "the same", "the same", self._queue_long),
                ],
                self._wired("held"),
            ),
            Act(
                [
                    Fault(
                        "HudiOperatorEventLoopLag",
                        "the operator is stopped (SIGSTOP) for 1.4 s of every 2 s",
                        "it is not",
                        it.event_loop_lag,
                    )
                ],
                self._plain("still"),
            ),
            Act(
                [
                    Fault(
                        "HudiOperatorReconcileErrors",
                        "a ResourceQuota lets the agents of three tables not start",
                        "the quota is deleted",
                        it.reconcile_errors,
                    )
                ],
                self._plain("errors"),
            ),
            Act(
                [
                    Fault(
                        "HudiClocksDisagree",
                        "the operator's clock is behind by a minute",
                        "it is right",
                        it.clocks,
                    )
                ],
                self._plain("clocks"),
            ),
            Act(
                [
                    Fault(
                        "HudiEtcdDegraded",
                        "etcd's authentication is switched off, which the operator accepts",
                        "it is switched on",
                        it.degraded,
                    ),
                    Fault(
                        "HudiCertificateExpiring",
                        "the operator's certificate for etcd ends in a day",
                        "it has another one",
                        it.certificate,
                    ),
                    Fault(
                        "HudiEtcdAlmostFull",
                        "14 of 16 MiB are filled",
                        "keys deleted, compacted and defragmented",
                        it.almost_full,
                    ),
                    Fault("HudiEtcdSlow", "etcd is stopped for 0.8 s of every 1.2 s", "it is not", it.etcd_slow),
                ],
                self._small_etcd,
            ),
        ]

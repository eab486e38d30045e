"""Faults of tables and of their locks."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from hudi_contract import naming
from hudi_operator.adapters import etcd_rpc as rpc
from tests.campaigns.alerts.fault import Fault, Made
from tests.campaigns.alerts.played import Play
from tests.campaigns.alerts.stage import LOST, Stage, instant, now_ms
from tests.support.harness.local import ACCESS_KEY, SECRET_KEY
from tests.support.harness.revocable_store import RevocableStore
from tests.support.harness.servers import wait_for

JsonDict = dict[str, Any]
PREFIXES = ("s3a://lake/", "s3a://landing/")
"""What the namespace of tables may use."""
ELSEWHERE = {"options": {"fs.s3a.endpoint": "http://s3.elsewhere"}}
WAIT = 33.0
"""Seconds for which a writer waits for the lock; the alert's threshold is 30."""


def made(play: Play, table: str, *shows: str, repair: Callable[[], None], **more: Any) -> Made:
    """A fault of a table of that name."""
    return Made(play.of_table(table), shows, repair, play.words(table), **more)


def stalled(stage: Stage) -> Made:
    play, name = Play(stage), "stalled"
    stage.world.table(name, path="s3a://elsewhere/stalled")
    wait_for("it is Stalled", lambda: play.true("huditables", name, "Stalled"))

    def repair() -> None:
        stage.cluster.request("DELETE", stage.world.path("huditables", name))
        wait_for("it is gone", lambda: stage.world.get("huditables", name) is None)
        play.table(name)

    return made(play, name, "PathNotAllowed", repair=repair)


def not_ready(stage: Stage) -> Made:
    play, name = Play(stage), "not-ready"
    pod = play.pending_table(name, storage=ELSEWHERE)
    wait_for("the reason", lambda: (stage.world.condition("huditables", name, "Ready") or {}).get("reason"))
    return made(play, name, "AgentNotReady", "Pending", repair=partial(play.serve, name, pod))


def awaiting_proof(stage: Stage) -> Made:
    play, name = Play(stage), "unproven"
    play.table(name)
    pod, inc = play.writer(name, "on-a-lost-node", node=LOST)

    def node(status: str) -> None:
        ready = {"type": "Ready", "status": status, "reason": "NodeStatusUnknown"}
        path, patch = f"/api/v1/nodes/{LOST}/status", {"status": {"conditions": [ready]}}
        stage.cluster.request("PATCH", path, patch, "application/strategic-merge-patch+json")

    stage.world.instant(play.ids[name], inc, instant(10))
    node("Unknown")
    stage.world.revoke(inc)

    def repair() -> None:
        node("True")
        stage.world.kubelet_kills(pod)
        stage.world.sweep(play.ids[name], inc)

    return made(play, name, LOST, repair=repair)


def settling_slow(stage: Stage) -> Made:
    play, name = Play(stage), "settling"
    table_id = play.table(name)
    pod, inc = play.writer(name, "killed")
    stage.world.instant(table_id, inc, instant(10))
    stage.world.end_pod(pod, exit_code=137)
    stage.world.phase(table_id, inc, "RollingBack")
    found = made(play, name, "RollingBack", repair=partial(stage.world.sweep, table_id, inc))
    found.labels["phase"] = "RollingBack"
    return found


def foreign(stage: Stage) -> Made:
    play, name, at = Play(stage), "foreign", instant(30)
    play.table(name)
    play.report(name, foreign=[{"instant": at, "action": "deltacommit", "state": "Inflight"}])
    return made(play, name, at, repair=partial(play.report, name, foreign=[]))


def unreadable(stage: Stage) -> Made:
    play, name = Play(stage), "unreadable"
    table_id = play.table(name)
    key = stage.world.key(table_id, "done/service-clean")
    assert stage.etcd.ctl("root", "put", key, "this is not JSON").returncode == 0

    def repair() -> None:
        assert stage.etcd.ctl("root", "del", key).returncode == 0

    return made(play, name, "done/service-clean", repair=repair)


def bucket(stage: Stage) -> Made:
    play, name = Play(stage), "expiring"
    play.table(name)
    rule = "lifecycle rule old-files deletes objects below lake/ after 30 days"
    play.report(name, bucket={"harmful": [rule]})
    return made(play, name, rule, repair=partial(play.report, name, bucket={"harmful": []}))


def agent_silent(stage: Stage) -> Made:
    play, name = Play(stage), "silent"
    play.table(name)
    play.report(name, atMs=now_ms(1200))
    agent = str(play.status("huditables", name)["agent"])
    return made(play, name, agent, "Running", repair=partial(play.report, name))


def services(stage: Stage) -> Made:
    play, name = Play(stage), "unhealthy"
    play.table(name)
    run = {"service": "clean", "inc": play.incs[name], "message": "the store did not answer", "instant": ""}

    def ran(result: str, failures: int) -> None:
        play.put(name, "done/service-clean", {**run, "result": result, "failures": failures, "atMs": now_ms()})

    ran("Failed", 2)
    return made(play, name, "CleanFailed", repair=partial(ran, "Completed", 0))


def service_late(stage: Stage) -> Made:
    play, name = Play(stage), "late-service"
    play.table(name)
    run = {"service": "clean", "inc": play.incs[name], "message": "", "instant": "", "result": "Completed"}

    def ran(seconds_ago: float) -> None:
        play.put(name, "done/service-clean", {**run, "failures": 0, "atMs": now_ms(seconds_ago)})

    def ten_more() -> None:
        times = [instant(0.01 * number) for number in range(10)]
        told = [{"instant": at, "action": "commit", "completionTime": at, "records": 1} for at in times]
        play.report(name, commits=told, lastInstant=times[0], lastCompletionTime=times[0])

    ten_more()
    ran(90_000)
    found = made(play, name, '"clean"', repair=partial(ran, 0), again=ten_more, every=0.4)
    found.labels["service"] = "clean"
    return found


def read_cost(stage: Stage) -> Made:
    play, name = Play(stage), "read-cost"
    play.table(name, type="MergeOnRead")

    def cost(log: int) -> None:
        play.report(name, readCost={"baseBytes": 100, "logBytes": log, "fileGroups": 1, "fileGroupsWithLogs": 1})

    cost(3 << 30)
    return made(play, name, "logBytes", repair=partial(cost, 100))


def pending_old(stage: Stage) -> Made:
    play, name, at = Play(stage), "pending", instant(7 * 3600)
    play.table(name)
    listed = [{"instant": at, "action": "commit", "state": "Inflight"}]
    play.report(name, pending=listed, pendingCount=1, lowestPendingRequestedTime=at)
    end = partial(play.report, name, pending=[], pendingCount=0, lowestPendingRequestedTime="")
    return made(play, name, at, repair=end)


def undelivered(stage: Stage) -> Made:
    play, name = Play(stage), "undelivered"
    play.table(name, commitCallback={"url": "https://receiver.example.com/commits"})
    old = instant(7200)
    told = {
        "inc": play.incs[name],
        "completionTime": instant(8000),
        "instant": instant(8010),
        "delivered": 7,
        "archivedTo": "",
        "lost": 0,
    }
    answer = {"reason": "HTTP503", "message": "receiver.example.com answered 503"}
    play.put(
        name, "report/callback", {**told, "atMs": now_ms(), "undelivered": 3, "oldest": old, "failures": 4, **answer}
    )

    def repair() -> None:
        good = {"undelivered": 0, "oldest": "", "failures": 0, "reason": "", "message": ""}
        play.put(name, "report/callback", {**told, "completionTime": old, "delivered": 10, "atMs": now_ms(), **good})

    return made(play, name, "HTTP503", repair=repair)


def broker(stage: Stage, store: RevocableStore) -> Made:
    play, name = Play(stage), "brokered"
    options = {"fs.s3a.endpoint": store.url, "fs.s3a.path.style.access": "true"}
    keys = {"metadata": {"name": "lake"}, "stringData": {"accessKeyId": ACCESS_KEY, "secretAccessKey": SECRET_KEY}}
    stage.cluster.request("POST", stage.world.path("secrets", group="/api/v1"), keys)
    storage = {"secretRefs": [{"name": "lake", "as": "S3"}], "options": options}
    play.table(name, storage=storage, fencing={"mode": "Credentials", "drainSeconds": 1})
    store.kill("broker")
    stage.world.writer("without-credentials", table=name)

    def repair() -> None:
        store.start_broker()
        store.wait_for_broker()
        # A kubelet does not start a pod without its Secret.
        secret = naming.storage_key_name(play.driver("without-credentials")["metadata"]["name"])
        wait_for("the credentials", lambda: stage.world.get("secrets", secret), seconds=90)
        play.started(name, "without-credentials")

    return made(play, name, "no answer of the credentials broker", repair=repair, lasts=90)


def held_long(stage: Stage) -> Made:
    play, name = Play(stage), "held"
    # Longer than the alert's ten minutes: otherwise the operator fences the owner at once.
    table_id = play.table(name, lock={"maxHoldSeconds": 3600})
    pod, inc = play.writer(name, "slow-owner")
    meta = pod["metadata"]
    owner = {"inc": inc, "attempt": f"{play.namespace}.{meta['name']}", "podUID": meta["uid"], "nonce": "n"}
    stage.world.etcd.put(stage.world.key(table_id, "lock"), {**owner, "sinceMs": now_ms(700)})
    return made(play, name, str(meta["name"]), repair=partial(play.delete, name, "lock"))


def wait_long(stage: Stage) -> Made:
    play, name = Play(stage), "waited"
    table_id = play.table(name, concurrency={"maxWriters": 2})
    first, first_inc = play.writer(name, "owner")
    second, second_inc = play.writer(name, "second")
    stage.world.lock(table_id, first_inc, first)
    ticket = stage.world.key(table_id, f"queue/{second_inc}-n")
    stage.world.etcd.put(ticket, {"inc": second_inc})
    meta = second["metadata"]
    taken = {"inc": second_inc, "attempt": f"{play.namespace}.{meta['name']}", "podUID": meta["uid"], "nonce": "n"}

    def acquire() -> None:
        time.sleep(WAIT)
        play.delete(name, "lock")
        value = rpc.put(stage.world.key(table_id, "lock"), json.dumps({**taken, "sinceMs": now_ms()}).encode())
        stage.etcd._call("gateway", "Txn", rpc.txn_request([], [rpc.delete(ticket), value]), writes=True)

    threading.Thread(target=acquire, daemon=True).start()
    return made(play, name, "second", repair=partial(play.delete, name, "lock"), seconds=90)


def faults(store: Callable[[], RevocableStore]) -> list[Fault]:
    """All of them. ``store``: with its broker, made when it is asked for."""
    return [
        Fault(
            "HudiLockWaitLong",
            f"a writer is in the queue for {WAIT:.0f} s, then acquires",
            "the lock is released",
            wait_long,
        ),
        Fault(
            "HudiTableStalled",
            "a HudiTable has a path that its namespace may not use",
            "it is made anew with a path that is allowed",
            stalled,
        ),
        Fault("HudiTableNotReady", "the agent's pod stays Pending", "the pod runs", not_ready),
        Fault(
            "HudiAwaitingProofOfDeath",
            "a writer's heartbeat ends, and its node is lost",
            "the node is back, and its kubelet ends the pod",
            awaiting_proof,
        ),
        Fault("HudiSettlingSlow", "the agent does not roll back", "it does", settling_slow),
        Fault("HudiForeignWriters", "the agent finds an instant without an owner", "it is archived", foreign),
        Fault("HudiRecordsUnreadable", "a value in etcd is not JSON", "the key is deleted", unreadable),
        Fault("HudiBucketUnsafe", "the agent finds a lifecycle rule", "the rule is gone", bucket),
        Fault("HudiAgentSilent", "the last report of the agent is 20 minutes old", "the agent reports", agent_silent),
        Fault("HudiServicesUnhealthy", "a clean has failed", "the next one succeeds", services),
        Fault("HudiServiceLate", "the last clean was 25 hours and many commits ago", "a clean runs", service_late),
        Fault("HudiReadCostHigh", "3 GiB of log files beside 100 bytes", "they are compacted", read_cost),
        Fault("HudiPendingInstantOld", "an instant is pending for 7 hours", "it is completed", pending_old),
        Fault("HudiCommitsUndelivered", "the receiver answers 503 for 2 hours", "it accepts", undelivered),
        Fault(
            "HudiBrokerFailing",
            "the credentials broker (the example's, beside a real S3 server) is killed",
            "it is started again",
            lambda stage: broker(stage, store()),
        ),
        Fault("HudiLockHeldLong", "a living writer has held the lock for 11 minutes", "it releases it", held_long),
    ]

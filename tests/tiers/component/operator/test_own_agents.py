"""A table's own agent: made with the right to start executors, proven dead with them, and followed
by another generation.
"""

from __future__ import annotations

from yaml import safe_load

from tests.support.harness.operator_world import EVIDENCE, World
from tests.support.harness.servers import JsonDict, wait_for

COMPACTION = "20260101000000000"


def start_executor(world: World, agent: JsonDict) -> JsonDict:
    """What Spark does in the agent: a pod from the template in its ConfigMap, owned by
    its own pod.
    """
    name = agent["metadata"]["name"]
    made = safe_load((world.get("configmaps", name) or {})["data"]["executor-template.yaml"])
    made["metadata"]["name"] = f"{name}-exec-1"
    made["metadata"]["labels"]["spark-role"] = "executor"
    made["metadata"]["ownerReferences"] = [
        {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": agent["metadata"]["uid"], "controller": True}
    ]
    answer = world.cluster.request("POST", world.path("pods", group="/api/v1"), made)
    assert answer is not None
    world.run_pod(answer)
    return answer


def test_an_agent_is_proven_dead_with_its_executor(world: World) -> None:
    """I12: its compaction is handed over when the executor, which may be writing its files, is
    proven dead too.
    """
    world.start_operator()
    table_id, agent, inc = world.running_table(agent={"executors": {"instances": 1}})
    name = agent["metadata"]["name"]
    assert (agent["spec"]["serviceAccountName"], agent["spec"]["automountServiceAccountToken"]) == ("hudi-driver", True)
    executor = start_executor(world, agent)
    assert EVIDENCE in executor["metadata"]["finalizers"]
    world.etcd.put(
        world.key(table_id, f"instant/{COMPACTION}"),
        {"inc": inc, "action": "compaction", "state": "Pending", "atMs": 0},
    )
    world.end_pod(agent, exit_code=137)
    second = world.pod("agent", number=2)
    uids = {pod["metadata"]["uid"] for pod in (agent, executor)}

    def of_executor() -> JsonDict | None:
        return ((world.get("pods", executor["metadata"]["name"]) or {}).get("metadata") or {}).get("deletionTimestamp")

    wait_for("the executor is told to end", of_executor)
    record = wait_for(
        "the agent's proof",
        lambda: (r := world.settle(table_id, inc)) and agent["metadata"]["uid"] in r["proofs"] and r,
    )
    assert record["phase"] == "Terminating"
    assert (record["pods"].keys(), record["proofs"].keys()) == (
        {executor["metadata"]["uid"]},
        {agent["metadata"]["uid"]},
    )
    # The next generation is at work already; whatever it does, the operator looks again.
    world.run_pod(second)
    successor = world.register(table_id, second, role="agent")
    world.report_timeline(table_id, successor)
    wait_for(
        "the table is ready",
        lambda: (c := world.condition("huditables", "flights", "Ready")) and c["status"] == "True" and c,
    )
    record = world.phase(table_id, inc, "Terminating")
    assert executor["metadata"]["uid"] not in record["proofs"]
    world.end_pod(executor, exit_code=137)
    world.sweep(table_id, inc)
    record = world.phase(table_id, inc, "Settled")
    assert record["proofs"].keys() == uids
    for pod in (executor, agent):  # without a kubelet their objects stay
        wait_for(
            f"the evidence of {pod['metadata']['name']} goes", lambda pod=pod: EVIDENCE not in _finalizers(world, pod)
        )
    wait_for(
        "the files of the first generation are to go",
        lambda: (world.get("configmaps", name) or {"metadata": {}})["metadata"].get("deletionTimestamp"),
    )
    # F200: what executors are compared with stays as long as the pod whose token may start some.
    assert _finalizers(world, agent, "configmaps") == [EVIDENCE]
    world.cluster.request("DELETE", f"{world.path('pods', name, '/api/v1')}?gracePeriodSeconds=0")
    wait_for("the files of the first generation are gone", lambda: world.get("configmaps", name) is None)
    assert world.get("configmaps", second["metadata"]["name"]) is not None


def _finalizers(world: World, pod: JsonDict, plural: str = "pods") -> list[str]:
    """Those of a pod, or of another object of its name."""
    found = world.get(plural, pod["metadata"]["name"]) or {"metadata": {}}
    return list(found["metadata"].get("finalizers") or [])

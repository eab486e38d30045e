"""A release that tests itself, uninstalling with live writers, and deleting a namespace in the
middle of a write.
"""

from __future__ import annotations

import re
import signal
import time

import pytest
from demo import cluster
from demo.cluster import kubectl
from demo.lake import Lake
from demo.protocol import Watch

from tests.support.cluster.space import OPERATOR_NAMESPACE, Space, make_space, run, wait_for, written


def test_the_release_tests_itself(installed: None) -> None:
    """`helm test` asks each pod of the operator and the gateway, and leaves nothing."""
    told = run("helm", "test", "hudi-operator", "-n", OPERATOR_NAMESPACE, "--timeout", "3m", "--logs")
    answered = re.findall(r"^ok +(\S+):", told, re.MULTILINE)
    gateways = [f"https://hudi-operator-gateway-{number}.{OPERATOR_NAMESPACE}.svc:2379" for number in range(2)]
    assert sorted(url for url in answered if url.startswith("https:")) == gateways, told
    assert len(answered) == 5, told
    labels = "app.kubernetes.io/component=test"
    left = cluster.items("pods,services,networkpolicies", "-n", OPERATOR_NAMESPACE, "-l", labels)
    assert left == []


def test_reinstalled_operator_settles_what_was_left(space: Space) -> None:
    """`helm uninstall` while a writer runs, the writer dies meanwhile.

    After `helm install` it is settled and goes on.
    """
    space.table("moved")
    space.wait("huditable/moved", "Ready", seconds=300)
    space.writer("nomad", "moved", batches=2, rows=40, delay=0.4)
    _, pod = space.wait_inflight("nomad", "moved")
    run("helm", "uninstall", "hudi-operator", "-n", OPERATOR_NAMESPACE, "--wait", "--timeout", "2m")
    assert cluster.exists("huditable", "moved", "-n", space.namespace), "uninstalling must not delete tables"
    for driver in space.drivers("nomad"):
        if driver["status"].get("phase") == "Running":
            space.signal_all(driver["metadata"]["name"], signal.SIGKILL)
    run(
        "helm",
        "upgrade",
        "--install",
        "hudi-operator",
        "charts/hudi-operator",
        "--values=demo/values.yaml",
        "-n",
        OPERATOR_NAMESPACE,
        "--wait",
        "--timeout",
        "5m",
    )
    space.wait_settled(pod, seconds=300)
    space.wait("hudiwriter/nomad", "Finished", seconds=300)
    assert cluster.is_true(space.get("hudiwriter", "nomad"), "Succeeded")
    space.audited("moved", written(batches=2, rows=40))


@pytest.mark.extra
def test_namespace_deletion_in_the_middle_of_a_write(lake: Lake, watch: Watch) -> None:
    space = make_space("e2e-doomed", lake, watch)
    space.table("doomed")
    space.writer("doomed", "doomed", rows=200, delay=0.5, stop={"graceSeconds": 10})
    space.wait("huditable/doomed", "Ready", seconds=300)
    instant, pod = space.wait_inflight("doomed", "doomed")
    attempt, uid = f"e2e-doomed.{pod}", space.get("pod", pod)["metadata"]["uid"]
    space.signal_all(pod, signal.SIGSTOP)  # it cannot leave in order within its grace
    begin = time.monotonic()
    kubectl("delete", "namespace", "e2e-doomed", "--wait=false")
    wait_for("the end of the namespace", lambda: not cluster.exists("namespace", "e2e-doomed"), seconds=120, every=1)
    print(f"namespace gone after {time.monotonic() - begin:.0f} s")
    # Nobody can hold the lock any more, the gate belongs to nobody, and what the writer has left
    # waits for the next HudiTable of that path.
    keys = space.keys("doomed")
    assert "lock" not in keys
    assert (keys["gate"]["state"], keys["gate"]["table"]) == ("frozen", ""), keys["gate"]
    assert not [key for key in keys if key.startswith("admit/")], sorted(keys)
    records = [value for key, value in keys.items() if key.startswith("settle/") and value["attempt"] == attempt]
    assert f"instant/{instant}" in keys, sorted(keys)
    (record,) = records
    assert record["phase"] in ("Unlocked", "RollingBack", "Settled"), record
    assert record["proofs"][uid]["kind"] == "PodTerminated", record
    left = {key.partition("/")[2] for key in keys if key.startswith("writer/")}
    done = ("Unlocked", "RollingBack", "Swept", "Settled")
    unlocked = {
        key.partition("/")[2] for key, value in keys.items() if key.startswith("settle/") and value["phase"] in done
    }
    assert left <= unlocked, "somebody is registered who was not settled as far as Unlocked"

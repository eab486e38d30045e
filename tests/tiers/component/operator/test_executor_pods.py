"""Spark's executors on Kubernetes, as the operator renders them and the image starts them: with the
key of their driver from a file they work, with another one they are refused (F150). A driver to
which they are refused waits, and they are the ones that the operator asks about (F301).

Real: API server, Spark, the image's entry point. Played: the kubelet, which starts processes here.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyspark
import pytest

from hudi_operator.adapters.kubernetes_facts import pod_facts
from hudi_operator.api.spec import TableSpec, WriterSpec
from hudi_operator.manifests import asked_executor, configmaps, namespace, pods, spark_conf
from hudi_operator.model.config import OperatorConfig
from tests.support import ROOT
from tests.support.harness import spark_driver
from tests.support.harness.local import CLASS_PATH, JAVA_OPTIONS
from tests.support.harness.servers import Cluster, wait_for
from tests.support.ports import free_ports

JsonDict = dict[str, Any]
NAMESPACE, HOST, MINUTES = "executor-pods", "127.0.0.1", 180.0
CONFIG = OperatorConfig()


def meta(name: str) -> JsonDict:
    return {"namespace": NAMESPACE, "name": name, "uid": f"{name}-0123456", "generation": 1, "resourceVersion": "1"}


TABLE = TableSpec.from_object(
    {"kind": "HudiTable", "metadata": meta("flights"), "spec": {"path": "s3a://lake/flights", "recordKeyFields": ["a"]}}
)
WRITER = WriterSpec.from_object(
    {
        "kind": "HudiWriter",
        "metadata": meta("load"),
        "spec": {
            "tableRef": {"name": "flights"},
            "source": {"files": {"format": "csv", "paths": ["s3a://in/"]}},
            "executors": {"instances": 1, "memory": "512Mi"},
        },
    }
)


def start_executor(pod: JsonDict, place: Path, key: Path) -> subprocess.Popen[bytes]:
    """What the kubelet and the image do; `key` is the mounted one."""
    (container,) = pod["spec"]["containers"]
    assert container["args"] == ["executor"]
    known = {item["name"]: item.get("value", HOST) for item in container["env"]}  # what has no value is the address
    mounted = f"-Dspark.authenticate.secret.file={place / 'key'}"
    assert mounted in known.values(), "an executor is not told where its key is"
    for name, value in known.items():
        known[name] = value.replace(mounted, f"-Dspark.authenticate.secret.file={key}")
    java = Path(os.environ.get("JAVA_HOME") or Path(os.path.realpath("/usr/bin/java")).parents[1])
    environment = {
        **known,
        "PATH": os.environ["PATH"],
        "JAVA_HOME": str(java),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_DIRS": str(place / "spark"),
        "SPARK_USER": "spark",
    }
    with (place / "executors.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-I", str(ROOT / "spark-images/entrypoint.py"), "executor"],
            env=environment,
            stdout=log,
            stderr=log,
            cwd=place,
        )


def _fill_quota(cluster: Cluster) -> None:
    path, hard = f"/api/v1/namespaces/{NAMESPACE}/resourcequotas", {"count/pods": "1"}
    quota = {"apiVersion": "v1", "metadata": {"name": "few"}, "spec": {"hard": hard}}
    made = cluster.request("POST", path, quota)
    # Nobody counts in this cluster.
    cluster.request("PUT", f"{path}/few/status", {**(made or {}), "status": {"hard": hard, "used": hard}})


def _is_refused_and_waits(cluster: Cluster, driver_pod: JsonDict, driver: subprocess.Popen[bytes], log: Path) -> None:
    """F301: nobody but its log says so, and it goes on trying."""
    wait_for("the driver is refused an executor", lambda: "exceeded quota: few" in log.read_text(), seconds=MINUTES)
    with pytest.raises(AssertionError, match="exceeded quota: few"):
        _asked(cluster, driver_pod)
    time.sleep(5)
    assert driver.poll() is None, log.read_text()[-6000:]
    cluster.request("DELETE", f"/api/v1/namespaces/{NAMESPACE}/resourcequotas/few")


def _asked(cluster: Cluster, driver_pod: JsonDict) -> JsonDict:
    """The executor that the operator asks about, as the API server would store it."""
    name, files = driver_pod["metadata"]["name"], configmaps.attempt_config(TABLE, WRITER, 1, CONFIG, run=1)["data"]
    pod = asked_executor.executor_pod(files, namespace=NAMESPACE, driver=name, uid="the-uid-of-the-driver")
    return cluster.request("POST", f"/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All", pod) or {}


def _is_the_one_that_is_asked_about(made: JsonDict, asked: JsonDict) -> None:
    """F301: what Spark has made, in all that admission may judge."""
    number = made["metadata"]["labels"]["spark-exec-id"]
    assert int(number) > asked_executor.NUMBER
    labels = {**asked["metadata"]["labels"], "spark-exec-id": number}
    assert labels.items() <= made["metadata"]["labels"].items()
    for field in ("annotations", "finalizers"):
        assert made["metadata"][field] == asked["metadata"][field]
    (mine,), (its,) = (pod["metadata"]["ownerReferences"] for pod in (asked, made))
    assert {**its, "uid": ""} == {**mine, "uid": ""}
    assert made["metadata"]["name"] == asked["metadata"]["name"].removesuffix("0") + number

    def rest(of: JsonDict, *fields: str) -> JsonDict:
        return {field: value for field, value in of.items() if field not in fields}

    assert rest(made["spec"], "containers", "volumes", "hostname") == rest(asked["spec"], "containers", "volumes")
    (mine,), (its,) = (pod["spec"]["containers"] for pod in (asked, made))
    own = ("env", "ports", "volumeMounts")
    assert rest(its, *own) == rest(mine, *own)
    assert [port["name"] for port in its["ports"]] == [port["name"] for port in mine["ports"]]
    assert {mount["name"] for mount in its["volumeMounts"]} == {mount["name"] for mount in mine["volumeMounts"]}

    def volumes(pod: JsonDict) -> list[JsonDict]:
        return sorted(pod["spec"]["volumes"], key=lambda volume: str(volume["name"]))

    assert volumes(made) == volumes(asked)


def test_an_executor_needs_the_key_of_its_driver(cluster: Cluster, tmp_path: Path) -> None:
    cluster.kubectl("create", "namespace", NAMESPACE)
    for made in namespace.namespace_objects(NAMESPACE, CONFIG, ""):
        cluster.kubectl("apply", "-f", "-", stdin=json.dumps(made))
    driver_pod = pods.driver_pod(TABLE, WRITER, 1, CONFIG)
    driver_pod["metadata"]["ownerReferences"][0].pop("blockOwnerDeletion")
    cluster.kubectl("create", "-f", "-", stdin=json.dumps(driver_pod))
    key, wrong = tmp_path / "key", tmp_path / "wrong"
    for file in (key, wrong):
        file.write_bytes(secrets.token_bytes(32))
    (tmp_path / "template.yaml").write_text(pods.executor_template(TABLE, WRITER, 1, CONFIG))
    rpc, blocks = free_ports(2)
    settings = spark_conf.spark_defaults(TABLE, WRITER, 1, CONFIG) | {
        "spark.master": f"k8s://{cluster.address}",
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        "spark.driver.port": str(rpc),
        "spark.blockManager.port": str(blocks),
        "spark.driver.memory": "600m",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
        "spark.driver.extraClassPath": CLASS_PATH,
        "spark.executor.extraJavaOptions": JAVA_OPTIONS,
        "spark.executor.extraClassPath": CLASS_PATH,
        "spark.authenticate.secret.file": str(key),
        "spark.kubernetes.executor.podTemplateFile": str(tmp_path / "template.yaml"),
        "spark.local.dir": str(tmp_path / "spark"),
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
    }
    for name in ("spark.plugins", "spark.kubernetes.authenticate.caCertFile", "spark.sql.extensions"):
        del settings[name]  # needs a table, the certificate of a pod's API server, Hudi
    (tmp_path / "settings.json").write_text(json.dumps(settings))
    with (tmp_path / "driver.log").open("wb") as log:
        driver = subprocess.Popen(
            [sys.executable, spark_driver.__file__, str(tmp_path / "settings.json")],
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=tmp_path,
        )
    started: list[subprocess.Popen[bytes]] = []
    _fill_quota(cluster)
    try:
        _is_refused_and_waits(cluster, driver_pod, driver, tmp_path / "driver.log")
        path = f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=spark-role%3Dexecutor"

        def executor() -> JsonDict | None:
            assert driver.poll() is None, (tmp_path / "driver.log").read_text()[-6000:]
            items = (cluster.request("GET", path) or {"items": []})["items"]
            return items[0] if items else None

        pod = wait_for("an executor pod", executor, seconds=MINUTES)
        _is_the_one_that_is_asked_about(pod, _asked(cluster, driver_pod))
        assert not [item for item in pod["spec"]["containers"][0]["env"] if "AUTH_SECRET" in item["name"]]
        assert pod_facts(pod).secrets == (f"{WRITER.driver_pod(1)}-spark-key",)
        stranger = start_executor(pod, tmp_path, wrong)
        started.append(stranger)
        assert stranger.wait(MINUTES) != 0
        assert driver.poll() is None
        started.append(start_executor(pod, tmp_path, key))
        output, _ = driver.communicate(timeout=MINUTES)
        logs = "\n".join((tmp_path / name).read_text()[-6000:] for name in ("driver.log", "executors.log"))
        assert b"counts [143, 143, 143, 143, 143, 143, 142]" in output, logs
    finally:
        for process in (driver, *started):
            process.kill()
            process.wait()

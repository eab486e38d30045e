"""A driver as the operator makes it with its pod's token, and executors as Spark makes them."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hudi_operator.api.spec import TableSpec, WriterSpec
from hudi_operator.manifests import configmaps, pods
from hudi_operator.manifests import namespace as manifests
from hudi_operator.model.config import OperatorConfig
from tests.support import quick_yaml
from tests.tiers.component.crds.cluster import Cluster, JsonDict, create, table, writer

CONFINED = {"securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
CONFIG = OperatorConfig()
OPERATOR = "system:serviceaccount:hudi-system:hudi-operator"
KAFKA = {
    "bootstrapServers": ["kafka:9093"],
    "topics": ["t"],
    "value": {"format": "Binary"},
    "security": {"protocol": "SSL", "secretRef": {"name": "kafka-tls"}},
}


@dataclass(frozen=True)
class Driver:
    """A driver with its own token, and one of its executors as Spark makes it."""

    cluster: Cluster
    namespace: str
    name: str
    executor: JsonDict

    def creates(self, obj: JsonDict) -> tuple[int, str]:
        return create(self.cluster, obj)

    def changed(self, change: Callable[[JsonDict], Any]) -> JsonDict:
        """The executor with a change."""
        made = copy.deepcopy(self.executor)
        change(made)
        return made


def spec_of(kind: type[Any], obj: JsonDict) -> Any:
    """What the operator reads of an object that is stored."""
    obj["metadata"].update(uid=str(uuid.uuid4()), generation=1)
    return kind.from_object(obj)


def launched(
    admin: Cluster,
    namespace_: str,
    directory: Path,
    *,
    account: str = "",
    name: str = "backfill",
    instances: int = 1,
    owner: JsonDict | None = None,
    pull_secrets: tuple[str, ...] = (),
    **spec: JsonDict,
) -> Driver:
    """What the operator makes for an attempt, and the token of its pod.

    ``owner``: a HudiWriter that exists and owns both; without one nobody does. ``pull_secrets``:
    those of the HudiTable. ``spec``: more of the HudiWriter's.
    """
    storage: JsonDict = {"secretRefs": [{"name": "lake", "as": "S3"}]} | (
        {"serviceAccountName": account} if account else {}
    )
    pulls = {"imagePullSecrets": [{"name": each} for each in pull_secrets]} if pull_secrets else {}
    own: TableSpec = spec_of(TableSpec, table(namespace_, storage=storage, **pulls))
    load: WriterSpec = spec_of(
        WriterSpec,
        writer(
            namespace_,
            name,
            **{
                "source": {"kafka": KAFKA},
                **spec,
                "executors": {"instances": instances, **spec.get("executors", {})},
            },
        ),
    )
    if account:
        admin.run("create", "serviceaccount", account, "-n", namespace_)
    admin.apply(*manifests.namespace_objects(namespace_, CONFIG, "", [account]))
    driver, config = pods.driver_pod(own, load, 1, CONFIG), configmaps.attempt_config(own, load, 1, CONFIG, run=1)
    for made in (driver, config):
        if owner is None:
            del made["metadata"]["ownerReferences"]
        else:
            made["metadata"]["ownerReferences"][0]["uid"] = owner["metadata"]["uid"]
    admin.apply(config, driver)
    stored = admin.get("pod", driver["metadata"]["name"], "-n", namespace_)
    return Driver(
        as_pod(admin, stored, directory), namespace_, stored["metadata"]["name"], _executor_of(own, load, stored)
    )


def as_pod(admin: Cluster, stored: JsonDict, directory: Path) -> Cluster:
    """The cluster in the name of a pod's own token."""
    meta = stored["metadata"]
    bound = ("--bound-object-kind=Pod", f"--bound-object-name={meta['name']}", f"--bound-object-uid={meta['uid']}")
    token = admin.kubectl("create", "token", stored["spec"]["serviceAccountName"], "-n", meta["namespace"], *bound)
    return admin.with_token(token.strip(), directory / f"{meta['name']}.kubeconfig")


def _executor_of(own: TableSpec, load: WriterSpec, driver: JsonDict) -> JsonDict:
    return as_spark_makes_it(pods.executor_template(own, load, 1, CONFIG), own, driver)


def as_spark_makes_it(template: str, own: TableSpec, driver: JsonDict) -> JsonDict:
    """The executor that Spark makes from a template of the operator's."""
    made: JsonDict = quick_yaml.load(template)
    name = driver["metadata"]["name"]
    made["metadata"] |= {
        "name": f"{name}-exec-1",
        "namespace": driver["metadata"]["namespace"],
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": driver["metadata"]["uid"], "controller": True}
        ],
    }
    made["metadata"]["labels"] |= {"spark-role": "executor", "spark-exec-id": "1", "spark-app-selector": "spark-1"}
    container = made["spec"]["containers"][0]
    container |= {"args": ["executor"], "resources": {"requests": {"cpu": "100m", "memory": "1408Mi"}}}
    container["ports"] = [{"name": "blockmanager", "containerPort": 7079}]
    container["env"] = [*container["env"], {"name": "SPARK_EXECUTOR_ID", "value": "1"}]
    if not any(mount["name"].startswith("spark-local-dir-") for mount in container["volumeMounts"]):
        mount = {"name": "spark-local-dir-1", "mountPath": "/var/data"}
        container["volumeMounts"] = [*container["volumeMounts"], mount]
        made["spec"]["volumes"].append({"name": "spark-local-dir-1", "emptyDir": {}})
    account = own.storage.service_account_name or "hudi-agent"
    made["spec"] |= {"serviceAccountName": account, "serviceAccount": account, "hostname": f"{name}-exec-1"}
    return made

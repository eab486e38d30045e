"""The process that makes the certificates of the chart's etcd, beside a real API server, with the
token of its own ServiceAccount and so with the rights that the chart gives it.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kubernetes.aio import client

from hudi_operator.adapters.kubernetes import ApiServer
from hudi_operator.etcd_certificates.keeper import Keeper, Options, options_from
from tests.support import quick_yaml
from tests.tiers.component.crds.cluster import Cluster, render

ACCOUNT = "hudi-operator-etcd-identity"
NOBODY = "https://127.0.0.1:9"
"""Where no etcd answers."""


def variables(*values: str, endpoint: str = NOBODY, namespace: str = "hudi-system", **more: str) -> dict[str, str]:
    """The environment that the Deployment of the chart sets; only etcd is elsewhere.

    ``more``: variables without their common beginning.
    """
    deployment = next(
        o
        for o in render(*values, namespace=namespace)
        if o["kind"] == "Deployment" and o["metadata"]["name"] == ACCOUNT
    )
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    environment = {variable["name"]: variable["value"] for variable in container["env"]}
    environment["HUDI_OPERATOR_ETCD_ENDPOINTS"] = endpoint
    return environment | {f"HUDI_OPERATOR_ETCD_{name}": value for name, value in more.items()}


def options(*values: str, endpoint: str = NOBODY, namespace: str = "hudi-system", **more: str) -> Options:
    """What the process reads in that environment."""
    return options_from(variables(*values, endpoint=endpoint, namespace=namespace, **more))


def token_config(cluster: Cluster, to: Path, namespace: str = "hudi-system") -> Path:
    """A kubeconfig with the token of the process's ServiceAccount."""
    config = quick_yaml.load(cluster.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": cluster.kubectl("create", "token", ACCOUNT, "-n", namespace).strip()}
    to.write_text(quick_yaml.dump(config))
    return to


class Played:
    """One life of the process; turns by hand, by a clock that the test chooses."""

    def __init__(self, cluster: Cluster, chosen: Options) -> None:
        self._runner = asyncio.Runner()
        self.keeper: Keeper = self._runner.run(self._start(cluster, chosen))

    async def _start(self, cluster: Cluster, chosen: Options) -> Keeper:
        config = cluster.get_config()
        configuration = client.Configuration(host=config["server"])
        configuration.ssl_ca_cert = config["ca"]
        token = cluster.kubectl("create", "token", ACCOUNT, "-n", chosen.settings.namespace).strip()
        configuration.api_key = {"BearerToken": f"Bearer {token}"}
        return Keeper(ApiServer(configuration), chosen)

    def turn(self, now: datetime | None = None) -> str:
        """One turn; returns why etcd's identities are not as they must be."""
        self._runner.run(self.keeper.turn(now or datetime.now(tz=UTC)))
        return self.keeper.problem

    def close(self) -> None:
        self._runner.run(self.keeper.api.close())
        self._runner.close()

    def __enter__(self) -> Played:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def turn(cluster: Cluster) -> None:
    """Certificates are made or renewed; there is no etcd whose users could be set up."""
    with Played(cluster, options()) as played:
        assert "users and roles" in played.turn()

"""The writers of one table, as the API server selects them."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from kubernetes.aio import client

from hudi_contract import naming
from hudi_operator.adapters.kubernetes import ApiServer, KubernetesStore
from tests.support.harness.servers import Cluster

JsonDict = dict[str, Any]
PATH = f"/apis/{naming.API_VERSION}/namespaces/default/hudiwriters"


def test_the_api_server_selects_the_writers_of_a_table(cluster: Cluster) -> None:
    """F263: more of them than one answer has; none of another table."""
    mine, asked = f"t-{os.urandom(3).hex()}", list[float]()
    names = [f"{mine}-w{number}" for number in range(53)]
    for name in names:
        table = mine if name != names[7] else f"{mine}x"
        spec = {"tableRef": {"name": table}, "source": {"sql": {"query": "SELECT 1 AS id"}}}
        meta = {"name": name, "namespace": "default"}
        cluster.request(
            "POST", PATH, {"apiVersion": naming.API_VERSION, "kind": "HudiWriter", "metadata": meta, "spec": spec}
        )

    async def found() -> list[JsonDict]:
        url = f"http://127.0.0.1:{cluster._port}"
        api = ApiServer(client.Configuration(host=url), requested=lambda verb, status, seconds: asked.append(status))
        try:
            return await KubernetesStore(api, instance="test").writers("default", mine)
        finally:
            await api.close()

    try:
        assert {writer["metadata"]["name"] for writer in asyncio.run(found())} == {*names} - {names[7]}
        assert asked == [200, 200], "two pages, and no list of all"
    finally:
        for name in names:
            cluster.request("DELETE", f"{PATH}/{name}")

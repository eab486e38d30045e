"""Two that change the finalizers of one object, as the API server answers them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Any

import pytest
from kubernetes.aio import client

from hudi_contract.naming import EVIDENCE_FINALIZER
from hudi_operator.adapters.kubernetes import ApiError, ApiServer, KubernetesStore
from hudi_operator.model.ports import Conflict, Fatal
from tests.support.harness.servers import Cluster

JsonDict = dict[str, Any]
NAMED = {"namespace": "default", "name": f"raced-{os.urandom(3).hex()}"}


class Raced(KubernetesStore):
    """Somebody else changes the object between the first read and the patch."""

    def __init__(self, api: ApiServer, change: JsonDict | None) -> None:
        super().__init__(api, instance="test")
        self._api_server, self._change = api, change

    async def get(self, kind: str, namespace: str, name: str) -> JsonDict | None:
        found = await super().get(kind, namespace, name)
        if self._change is not None:
            change, self._change = self._change, None
            path = f"/api/v1/namespaces/{namespace}/configmaps/{name}"
            await self._api_server.request("PATCH", path, body=change, content_type="application/merge-patch+json")
        return found


@pytest.fixture
def made(cluster: Cluster) -> Iterator[str]:
    """URL of the API server, where a ConfigMap without finalizers is."""
    path = "/api/v1/namespaces/default/configmaps"
    cluster.request("POST", path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": NAMED})
    yield f"http://127.0.0.1:{cluster._port}"
    cluster.request(
        "PATCH", f"{path}/{NAMED['name']}", {"metadata": {"finalizers": None}}, "application/merge-patch+json"
    )
    cluster.request("DELETE", f"{path}/{NAMED['name']}")


def add(url: str, change: JsonDict | None, finalizer: str = EVIDENCE_FINALIZER) -> JsonDict | None:
    async def patch() -> JsonDict | None:
        api = ApiServer(client.Configuration(host=url))
        try:
            await Raced(api, change).patch_finalizers("ConfigMap", **NAMED, add=finalizer)
            return await KubernetesStore(api, instance="test").get("ConfigMap", **NAMED)
        finally:
            await api.close()

    return asyncio.run(patch())


def test_an_object_that_somebody_else_has_changed_is_a_conflict(made: str) -> None:
    """F49: look again at once. What the API server answers names neither the test nor the field."""
    with pytest.raises(Conflict, match="changed meanwhile"):
        add(made, {"data": {"a": "b"}})
    found = add(made, None)
    assert found is not None
    assert found["metadata"]["finalizers"] == [EVIDENCE_FINALIZER]


def test_a_patch_that_is_refused_for_itself_is_no_conflict(made: str) -> None:
    with pytest.raises(Fatal):
        add(made, None, finalizer="no finalizer at all")


def test_an_immutable_object_is_made_anew_when_it_is_to_be_different(made: str) -> None:
    """F56: nobody changes the ConfigMap of an attempt.

    The operator replaces it when the spec has changed before there was a pod, and its finalizer
    (F200) does not keep the former one.
    """

    async def apply() -> list[JsonDict]:
        api = ApiServer(client.Configuration(host=made))
        store = KubernetesStore(api, instance="test")
        path, found = f"/api/v1/namespaces/default/configmaps/{NAMED['name']}", list[JsonDict]()
        try:
            for value in ("a", "a", "b"):
                await store.apply(
                    {
                        "apiVersion": "v1",
                        "kind": "ConfigMap",
                        "metadata": {**NAMED, "finalizers": [EVIDENCE_FINALIZER]},
                        "immutable": True,
                        "data": {"job.json": value},
                    }
                )
                found.append(await store.get("ConfigMap", **NAMED) or {})
            with pytest.raises(ApiError, match="immutable"):
                await api.request(
                    "PATCH", path, body={"data": {"job.json": "c"}}, content_type="application/merge-patch+json"
                )
        finally:
            await api.close()
        return found

    first, again, other = asyncio.run(apply())
    assert first["metadata"]["uid"] == again["metadata"]["uid"] != other["metadata"]["uid"]
    assert (again["data"], other["data"]) == ({"job.json": "a"}, {"job.json": "b"})

"""Names that pods have told do not choose what the API server is asked for."""

from __future__ import annotations

import asyncio
import logging

import pytest
from kubernetes.aio import client

from hudi_operator.adapters.kubernetes import RESOURCES, ApiServer, KubernetesStore
from hudi_operator.model.ports import Fatal
from hudi_operator.observability import _Format
from tests.tiers.unit.adapters.answering import Handler, answering


def asked_for(name: str) -> list[str]:
    """Paths that the API server is asked for when a node of that name is read."""
    paths: list[str] = []

    class Api(Handler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.answer(404, {"message": "not found"})

    async def read(url: str) -> object:
        configuration = client.Configuration()
        configuration.host = url
        configuration.retries = 0
        api = ApiServer(configuration, timeout=2)
        try:
            return await KubernetesStore(api, instance="one").nodes([name])
        finally:
            await api.close()

    with answering(Api) as url:
        assert asyncio.run(read(url)) == {}
    return paths


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("../configmaps", "..%2Fconfigmaps"),
        ("a/b", "a%2Fb"),
        ("../namespaces/lake/configmaps", "..%2Fnamespaces%2Flake%2Fconfigmaps"),
        ("a?limit=0#x", "a%3Flimit=0%23x"),
    ],
)
def test_a_name_is_one_segment_of_the_path(name: str, segment: str) -> None:
    (path,) = asked_for(name)
    assert path.replace("%3D", "=") == f"/api/v1/nodes/{segment}"


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_what_is_no_name_is_asked_for_by_nobody(name: str) -> None:
    with pytest.raises(Fatal, match="no name of an object"):
        RESOURCES["Node"].path("", name)
    if name:
        with pytest.raises(Fatal, match="no name of an object"):
            RESOURCES["Pod"].path(name)


def test_a_name_does_not_make_a_line_of_the_log() -> None:
    forged = "read Node /x\n2026-01-01T00:00:00.000+00:00 I control: lake/orders: ready\r\u2028\x1b[2K"
    record = logging.LogRecord("hudi_operator.control", logging.ERROR, "f", 1, "%s", (forged,), None)
    first, *others = _Format(as_json=False).format(record).splitlines()
    assert first.endswith("E control: read Node /x")
    assert others == ["    2026-01-01T00:00:00.000+00:00 I control: lake/orders: ready\\r\\u2028\\x1b[2K"]

"""Events are for people: what decides does not wait long for them."""

from __future__ import annotations

import asyncio

import pytest
from kubernetes.aio import client

from hudi_operator.adapters import kubernetes
from hudi_operator.adapters.kubernetes import ApiServer, KubernetesStore

REGARDING = {"apiVersion": "v1", "kind": "HudiTable", "namespace": "lake", "name": "t", "uid": "u"}


def test_an_event_without_an_answer_is_given_up_before_other_requests(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(kubernetes, "EVENT_SECONDS", 0.2)

    async def silent(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(3600)

    async def emit() -> None:
        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        api = ApiServer(client.Configuration(host=f"http://127.0.0.1:{port}"), timeout=3600)
        event = KubernetesStore(api, instance="me").event(
            regarding=REGARDING, type_="Normal", reason="Fenced", message="x"
        )
        try:
            await asyncio.wait_for(event, 60)
        finally:
            await api.close()
            server.close()

    with caplog.at_level("INFO", logger="hudi_operator"):
        asyncio.run(emit())
    assert "event Fenced not emitted" in caplog.text

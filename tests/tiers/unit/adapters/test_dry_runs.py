"""F301: a dry run stores nothing, and only admission's own word is a refusal."""

from __future__ import annotations

import asyncio

import pytest
from kubernetes.aio import client

from hudi_operator.adapters.kubernetes import ApiServer, KubernetesStore
from hudi_operator.model.ports import Fatal, Refused, Retryable
from tests.tiers.unit.adapters.answering import Handler, answering

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "ns", "name": "a-exec-0"}}


def ask(status: int, message: str) -> list[str]:
    """The paths that were asked of a server that answers each POST like this."""
    asked: list[str] = []

    class Api(Handler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.answer(status, {"message": message})

    async def request(url: str) -> None:
        api = ApiServer(client.Configuration(host=url), timeout=5)
        try:
            await KubernetesStore(api, instance="one").would_create(POD)
        finally:
            await api.close()

    with answering(Api) as url:
        asyncio.run(request(url))
    return asked


@pytest.mark.parametrize(("status", "message"), [(201, ""), (409, 'pods "a-exec-0" already exists')])
def test_what_would_be_made(status: int, message: str) -> None:
    assert ask(status, message) == ["/api/v1/namespaces/ns/pods?fieldManager=hudi-operator&dryRun=All"]


@pytest.mark.parametrize(
    ("status", "message", "error"),
    [
        (403, 'pods "a" is forbidden: exceeded quota: few', Refused),
        (409, 'admission webhook "w.example" denied the request: no', Refused),
        (400, 'admission webhook "w.example" does not support dry run', Fatal),
        (503, "oops", Retryable),
    ],
)
def test_why_not(status: int, message: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=message) as raised:
        ask(status, message)
    assert type(raised.value) is error or error is Retryable

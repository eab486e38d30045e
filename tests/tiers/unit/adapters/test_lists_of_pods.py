"""An API server that is away says nothing about pods: what cannot be listed whole is not listed,
and nobody is taken for dead (I1, I11).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from kubernetes.aio import client

from hudi_operator import handlers
from hudi_operator.adapters.kubernetes import RESOURCES, ApiServer, KubernetesStore
from hudi_operator.model.ports import Fatal, Retryable
from tests.tiers.unit.adapters.answering import Handler, answering

FIRST_PAGE = {"metadata": {"continue": "next"}, "items": []}
LAST_PAGE = {"metadata": {}, "items": []}


@contextmanager
def api_server(*answers: int, asked: list[str] | None = None, items: list[object] | None = None) -> Iterator[str]:
    """URL of a server that gives these statuses, one after the other; 0: it never answers.

    ``asked``: where it notes the paths of requests. After the first page comes the last one;
    ``items``: of the only one.
    """
    left, end = list(answers), threading.Event()

    class Api(Handler):
        def do_GET(self) -> None:
            status = left.pop(0)
            if asked is not None:
                asked.append(self.path)
            if status == 0:
                end.wait(10)
                return
            page: object = LAST_PAGE if "continue=" in self.path and not left else FIRST_PAGE
            if items is not None:
                page = {"metadata": {}, "items": items}
            self.answer(status, page if status == 200 else {"message": "away"})

    with answering(Api) as url:
        try:
            yield url
        finally:
            end.set()


def pods(url: str) -> object:
    async def listed() -> object:
        configuration = client.Configuration()
        configuration.host = url
        configuration.retries = 0
        api = ApiServer(configuration, timeout=0.5)
        try:
            return await KubernetesStore(api, instance="one").pods("ns", labels="a=b")
        finally:
            await api.close()

    return asyncio.run(listed())


@pytest.mark.parametrize("answers", [(503,), (0,), (200, 503), (200, 410), (200, 0)])
def test_a_list_that_cannot_be_read_whole_is_none(answers: tuple[int, ...]) -> None:
    with api_server(*answers) as url, pytest.raises(Retryable):
        pods(url)


def test_a_server_that_is_gone_lists_nothing() -> None:
    with api_server() as url:
        pass
    with pytest.raises(Retryable):
        pods(url)


@pytest.mark.parametrize("kind", ["Pod", "ConfigMap", "HudiTable", "HudiWriter"])
def test_no_answer_has_more_than_fifty_objects(kind: str) -> None:
    """F209: 500 of the size that the API server stores at most are 750 MB in one answer."""
    asked: list[str] = []

    async def listed(url: str) -> object:
        api = ApiServer(client.Configuration(host=url), timeout=5)
        store = KubernetesStore(api, instance="one")
        try:
            if kind == "Pod":
                return await store.pods("ns", labels="a=b")
            if kind == "ConfigMap":
                return await store.list_metadata(kind, "ns", labels="a=b")
            return await store.list_objects(kind, "ns", labels="a=b")
        finally:
            await api.close()

    with api_server(200, 200, asked=asked) as url:
        assert asyncio.run(listed(url)) == []
    query = f"{RESOURCES[kind].path('ns')}?limit=50&labelSelector=a%3Db"
    assert asked == [query, f"{query}&continue=next"]


def writers(url: str, looks: int) -> list[object]:
    async def listed() -> list[object]:
        api = ApiServer(client.Configuration(host=url), timeout=5)
        store = KubernetesStore(api, instance="one")
        try:
            return [await store.writers("ns", "flights") for _ in range(looks)]
        finally:
            await api.close()

    return asyncio.run(listed())


def test_a_look_asks_for_the_writers_of_its_table_only() -> None:
    """F263"""
    asked: list[str] = []
    with api_server(200, 200, asked=asked) as url:
        assert writers(url, 1) == [[]]
    mine = f"{RESOURCES['HudiWriter'].path('ns')}?limit=50&fieldSelector=spec.tableRef.name%3Dflights"
    assert asked == [mine, f"{mine}&continue=next"]


def test_where_fields_cannot_be_selected_all_are_listed() -> None:
    """F263: Kubernetes 1.30, or a CRD of before; it is asked once."""
    asked: list[str] = []
    theirs = {"spec": {"tableRef": {"name": "other"}}}
    mine = {"spec": {"tableRef": {"name": "flights"}}}
    with api_server(400, 200, 200, asked=asked, items=[mine, theirs, {}]) as url:
        assert writers(url, 2) == [[{**mine, "kind": "HudiWriter"}]] * 2
    assert ["fieldSelector" in path for path in asked] == [True, False, False]


def test_another_refusal_is_none_of_the_selector() -> None:
    with api_server(403) as url, pytest.raises(Fatal):
        writers(url, 1)


def test_kopf_asks_for_no_more() -> None:
    assert handlers.settings().watching.chunk_size == 50

"""How far the API server's clock is from the operator's, and how old that knowledge may be."""

from __future__ import annotations

import asyncio
import time

from kubernetes.aio import client

from hudi_operator.adapters.kubernetes import ApiServer, KubernetesStore
from tests.tiers.unit.adapters.answering import Handler, answering

AHEAD = 3600


class Api(Handler):
    slow = False

    def do_GET(self) -> None:
        if self.slow:
            time.sleep(1.1)
        self.answer(200, {})

    def date_time_string(self, timestamp: float | None = None) -> str:
        return super().date_time_string(time.time() + AHEAD if timestamp is None else timestamp)


def test_an_answer_of_before_a_look_says_nothing_in_it() -> None:
    """F418: since then the operator's clock may have been set."""

    async def ask(url: str) -> None:
        api = ApiServer(client.Configuration(host=url), timeout=5)
        store = KubernetesStore(api, instance="one")
        try:
            began = time.monotonic()
            assert store.clock_offset_ms(since=began) is None
            for _ in range(20):  # on a busy machine not the first answer is prompt
                await api.request("GET", "/")
            found = store.clock_offset_ms(since=began)
            assert found is not None
            assert abs(found - 1000 * AHEAD) <= 1500
            began = time.monotonic()
            Api.slow = True
            await api.request("GET", "/")
            assert store.clock_offset_ms(since=began) is None, "an answer that was long on its way counts"
            assert store.clock_offset_ms() == found
        finally:
            Api.slow = False
            await api.close()

    with answering(Api) as url:
        asyncio.run(ask(url))

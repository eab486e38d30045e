"""Current objects, mirrored for as long as a user views them.

A mirror belongs to one request: what one user may see is never shown to another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from hudi_console.asking import Kind, Question, Refused
from hudi_console.cluster import Cluster, Gone

JsonDict = dict[str, Any]
Key = tuple[str, str]
AGAIN = 2.0
"""Seconds before a watch is asked for again that did not end by itself."""
TRIES = 5
"""Number of consecutive failures of the API server that are tolerated."""
NAMES = {Kind.TABLES: "HudiTable", Kind.WRITERS: "HudiWriter"}


def key(raw: JsonDict) -> Key:
    """Namespace and name."""
    meta = raw.get("metadata") or {}
    return str(meta.get("namespace") or ""), str(meta.get("name") or "")


def table_key(raw: JsonDict) -> Key:
    """Namespace and name of a table, or of the table of a writer."""
    if raw.get("kind") == NAMES[Kind.WRITERS]:
        return key(raw)[0], str(((raw.get("spec") or {}).get("tableRef") or {}).get("name") or "")
    return key(raw)


class Mirror:
    """The objects of some lists. ``kept``: reduces an object to the part that is kept."""

    def __init__(
        self, cluster: Cluster, token: str, questions: Sequence[Question], kept: Callable[[JsonDict], JsonDict]
    ) -> None:
        self._cluster, self._token, self._kept = cluster, token, kept
        self._found: dict[Question, dict[Key, JsonDict]] = {question: {} for question in questions}
        self._versions: dict[Question, str] = {}
        self._changed: set[Key] = set()
        self._told = asyncio.Event()

    def of(self, kind: Kind) -> list[JsonDict]:
        """The objects of a kind."""
        return [raw for question, found in self._found.items() if question.kind is kind for raw in found.values()]

    async def begin(self) -> None:
        """List everything."""
        for question in self._found:
            await self._list(question)
        self._changed.clear()
        self._told.clear()

    async def follow(self) -> None:
        """Follow every list; ends with the first error that does not pass."""
        tasks = [asyncio.create_task(self._watch(question)) for question in self._found]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            for one in done:
                one.result()
        finally:
            for one in tasks:
                one.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def changed(self, seconds: float) -> set[Key]:
        """Wait for a change, at most so long.

        Returns the tables that have changed since the last call, themselves or by a writer.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._told.wait()
        found = set(self._changed)
        self._changed.clear()
        self._told.clear()
        return found

    async def _list(self, question: Question) -> None:
        def kept(raw: JsonDict) -> JsonDict:
            return self._kept({"kind": NAMES[question.kind], **raw})

        items, self._versions[question] = await self._cluster.items(question, self._token, kept)
        found = {key(raw): raw for raw in items}
        before, self._found[question] = self._found[question], found
        for one in {*before, *found}:
            self._tell(before.get(one), found.get(one))

    async def _watch(self, question: Question) -> None:
        failed = 0
        while True:
            try:
                async for what, raw in self._cluster.changes(question, self._token, self._versions[question]):
                    failed = 0
                    self._versions[question] = str((raw.get("metadata") or {}).get("resourceVersion") or "")
                    self._take(question, what, raw)
            except Gone:
                await self._list(question)
            except Refused as error:
                failed += 1
                if error.status != 502 or failed == TRIES:
                    raise
                await asyncio.sleep(AGAIN * failed)

    def _take(self, question: Question, what: str, raw: JsonDict) -> None:
        found = self._found[question]
        before = found.get(key(raw))
        if what in ("ADDED", "MODIFIED"):
            found[key(raw)] = self._kept(raw)
        elif what == "DELETED":
            found.pop(key(raw), None)
        self._tell(before, found.get(key(raw)))

    def _tell(self, before: JsonDict | None, after: JsonDict | None) -> None:
        if before != after:
            self._changed |= {table_key(raw) for raw in (before, after) if raw is not None}
            self._told.set()

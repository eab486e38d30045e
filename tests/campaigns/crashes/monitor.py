"""Record of the proxies of one run: the true order of the operator's steps, and the invariants that
can be checked on it.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

from tests.campaigns.crashes.naming import Names
from tests.support.trace.events import Event

JsonDict = dict[str, Any]


@dataclass(frozen=True)
class EtcdStep:
    """One write of the operator to etcd, as sent."""

    action: str
    key: str
    detail: str
    table: str
    operations: tuple[tuple[str, str, JsonDict], ...] = ()
    token: int = 0
    """Create revision of the lock that an unlock is about."""

    def name(self, names: Names) -> str:
        """The same in each run."""
        proofs = next(
            (
                f" proofs={len(v.get('proofs') or ())}"
                for kind, k, v in self.operations
                if kind == "put" and k.startswith("settle/")
            ),
            "",
        )
        return names.text(f"etcd {self.action} {self.key} {self.detail}".rstrip() + proofs)

    def event(self, *, revision: int, ok: bool, where: str, detail: str = "") -> Event:
        """The line that the operator should have logged."""
        said = detail or self.detail
        admission = (
            next((key for kind, key, _ in self.operations if kind == "delete" and key.startswith("admit/")), "")
            if self.action == "fence"
            else ""
        )
        attempt = admission.removeprefix("admit/")
        more = {"key": self.key, "detail": said, "token": self.token, "attempt": attempt, "where": where}
        return Event(self.table, "operator", "operator", self.action, revision, ok, **more)  # type: ignore[arg-type]


@dataclass
class Monitor:
    """Sees each write in the order in which etcd and the API server answered."""

    table_id: str
    drain_seconds: float
    wrong: list[str] = field(default_factory=list)
    """Broken invariants, one sentence each."""
    events: list[Event] = field(default_factory=list)
    """Steps that etcd executed for the operator, also when nobody got the answer."""
    lost_events: list[Event] = field(default_factory=list)
    """Requests that were on the wire when the operator was killed: its log cannot have them."""
    settles: dict[str, JsonDict] = field(default_factory=dict)
    _revisions: dict[str, int] = field(default_factory=dict)
    """By incarnation: of the newest write of its settle record that is known. What the operator
    and an agent have written is told by two threads, and the older write may be told last.
    """
    _draining: dict[str, float] = field(default_factory=dict)
    _followed: bool = False
    """The operator that runs now has not looked yet."""
    _admitted: set[str] = field(default_factory=set)
    _announced: set[str] = field(default_factory=set)
    """Driver pods that a stored status names."""
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def killed(self) -> None:
        """The operator was killed: drains start again when its successor has looked (F7)."""
        with self._lock:
            self._followed = True

    def looked(self) -> None:
        """The operator reads etcd."""
        with self._lock:
            if self._followed:
                self._followed = False
                self._draining = dict.fromkeys(self._draining, time.monotonic())

    def lost(self, step: EtcdStep) -> None:
        """This request was under way when the operator was killed."""
        if step.action != "revoke-lease":
            self.lost_events.append(step.event(revision=0, ok=False, where="lost", detail="unknown"))

    # ---- etcd

    def etcd_sent(self, step: EtcdStep) -> None:
        """Check what must be true when the operator sends this step."""
        if step.action != "unlock":
            return
        with self._lock:
            now, inc = time.monotonic(), step.detail
            record = self.settles.get(inc) or {}
            pods = {str(record.get("podUID")), *(record.get("pods") or {})} - {"", "None"}
            if record.get("phase") != "Draining":
                self._say(f"I1: unlock is sent in the phase {record.get('phase')}")
            if pods - set(record.get("proofs") or {}):
                self._say("I1: unlock is sent without a proof for every pod")
            if now - self._draining.get(inc, now) < self.drain_seconds - 0.05:
                self._say(
                    f"I1: unlock is sent {now - self._draining.get(inc, now):.2f} s after the drain began or began "
                    "again"
                )

    def etcd_done(self, step: EtcdStep, *, revision: int, succeeded: bool) -> None:
        """Answered by etcd."""
        with self._lock:
            if step.action == "revoke-lease":
                return
            self.events.append(step.event(revision=revision, ok=succeeded, where=f"proxy:{len(self.events) + 1}"))
            if not succeeded:
                return
            for kind, key, value in step.operations:
                head, _, rest = key.partition("/")
                if kind == "put" and head == "settle":
                    self._settle(rest, value, revision)
                elif head == "admit":
                    self._admitted = self._admitted | {rest} if kind == "put" else self._admitted - {rest}
                elif kind == "delete" and head == "fence":
                    self._say(f"I2: {key} is deleted")
                elif kind == "delete" and head == "instant" and not self._outcome(rest):
                    self._say(f"I4: the record of {rest} is deleted without an outcome")

    def agent_wrote(self, inc: str, record: JsonDict, revision: int) -> None:
        """An agent has changed a settle record, or is about to change it.

        ``revision``: of its write, or, when it has not been answered yet, of the one that it
        replaces.
        """
        with self._lock:
            self.settles[inc], self._revisions[inc] = record, revision

    def _settle(self, inc: str, record: JsonDict, revision: int) -> None:
        if revision <= self._revisions.get(inc, 0):
            return
        self._revisions[inc] = revision
        if record.get("phase") == "Draining" and (self.settles.get(inc) or {}).get("phase") != "Draining":
            self._draining[inc] = time.monotonic()
        self.settles[inc] = record

    def _outcome(self, instant: str) -> bool:
        return any((record.get("instants") or {}).get(instant, {}).get("outcome") for record in self.settles.values())

    # ---- API server

    def api_done(self, method: str, path: str, body: Any, status: int, answer: JsonDict) -> None:
        """Answered by the API server."""
        if status >= 300:
            return
        with self._lock:
            if method == "PUT" and path.endswith("/status"):
                self._announced |= {str(a.get("pod")) for a in ((body.get("status") or {}).get("attempts") or ())}
            elif method == "POST" and path.endswith("/pods"):
                self._created(body)
            elif method == "DELETE" and "/pods/" in path:
                self._deleted(path, body)
            elif method == "PATCH" and "/pods/" in path and isinstance(body, list):
                self._finalizers(answer)

    def _created(self, body: JsonDict) -> None:
        meta = body["metadata"]
        if meta["labels"].get("hudioperator.io/role") == "driver" and meta["name"] not in self._announced:
            self._say(f"I6: pod {meta['name']} is created before a status names it")
        if not any(attempt.endswith(f".{meta['name']}") for attempt in self._admitted):
            self._say(f"F23: pod {meta['name']} is created before it is admitted")

    def _deleted(self, path: str, body: JsonDict) -> None:
        if (body or {}).get("gracePeriodSeconds") == 0:
            self._say(f"I1: {path} is deleted by force")
        if not ((body or {}).get("preconditions") or {}).get("uid"):
            self._say(f"I11: {path} is deleted without its uid")

    def _finalizers(self, pod: JsonDict) -> None:
        meta = pod["metadata"]
        if "hudioperator.io/evidence" in (meta.get("finalizers") or ()):
            return
        for inc, record in self.settles.items():
            named = meta["uid"] == record.get("podUID") or meta["uid"] in (record.get("pods") or {})
            if named and meta["uid"] not in (record.get("proofs") or {}):
                self._say(f"F14: the evidence of {meta['name']} is dropped before the proof of {inc} is written")

    def _say(self, sentence: str) -> None:
        self.wrong.append(sentence)

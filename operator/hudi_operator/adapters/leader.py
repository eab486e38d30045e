"""Leader election by a Lease, with its own thread, loop and connection.

The election of kubernetes.aio uses the wall clock, sends requests without a deadline, and lets a
leader that was frozen continue for ``renewDeadlineSeconds`` after it wakes up. Here the deadline
counts from the *send* time of the last acknowledged renewal, on the monotonic clock, and a leader
that misses it exits at once: no part of a former leader keeps running.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from kubernetes.aio import client

from hudi_operator.adapters.kubernetes import RESOURCES, ApiError, ApiServer
from hudi_operator.model.config import LeaderElectionConfig
from hudi_operator.model.ports import LeaseLost, Retryable

JsonDict = dict[str, Any]
LOG = logging.getLogger(__name__)

EXIT_LEASE_LOST = 70
_WATCHDOG_SECONDS = 0.1


class LeaseNotes(Protocol):
    """Data that a leader passes to the next one, as annotations of the Lease."""

    def write(self) -> Mapping[str, str]:
        """Annotations to be stored with each renewal."""

    def read(self, annotations: Mapping[str, str]) -> None:
        """Annotations of the Lease that was just read."""


class Leader:
    """One candidate. ``on_started`` is called on the election's thread, once."""

    def __init__(
        self,
        config: LeaderElectionConfig,
        *,
        configuration: client.Configuration,
        namespace: str,
        identity: str,
        on_started: Callable[[], None],
        notes: LeaseNotes,
    ) -> None:
        self._config = config
        self._configuration = configuration
        self._path = RESOURCES["Lease"].path(namespace)
        self._identity = identity
        self._on_started = on_started
        self._notes = notes
        self._valid_until = 0.0
        self._stop = threading.Event()
        self._seen: tuple[str, float] = ("", 0.0)
        """Last state of the Lease from another replica, and when, on our clock, it
        was first seen.
        """
        self._thread = threading.Thread(target=self._run, name="leader-election", daemon=True)

    @property
    def leading(self) -> bool:
        """True while this replica may act."""
        return time.monotonic() < self._valid_until

    def check(self) -> None:
        """Raises LeaseLost when this replica may not act."""
        if not self.leading:
            raise LeaseLost("the leader's lease is not held")

    def start(self) -> None:
        """Take part in the election."""
        if not self._config.enabled:
            self._valid_until = float("inf")
            self._on_started()
            return
        self._thread.start()

    def stop(self) -> None:
        """Release the Lease, so that the next leader need not wait.

        The caller must have stopped acting.
        """
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5.0)

    def _run(self) -> None:
        asyncio.run(self._elect())

    async def _elect(self) -> None:
        api = ApiServer(self._configuration, timeout=self._config.retry_period_seconds + 1)
        try:
            while not self._stop.is_set():
                held = await self._round(api)
                if held and not self._valid_until:
                    self._lead(held)
                elif held:
                    self._valid_until = held
                await self._pause(self._config.retry_period_seconds)
            if self._valid_until:
                self._valid_until = 0.0
                await self._release(api)
        finally:
            await api.close()

    async def _pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self._stop.is_set():
            await asyncio.sleep(0.05)

    def _lead(self, valid_until: float) -> None:
        self._valid_until = valid_until
        LOG.info("%s is the leader", self._identity)
        threading.Thread(target=self._watchdog, name="leader-watchdog", daemon=True).start()
        self._on_started()

    def _watchdog(self) -> None:
        while not self._stop.wait(_WATCHDOG_SECONDS):
            if not self.leading:
                self._end("the leader's lease could not be renewed in time")

    def _end(self, why: str) -> None:
        if self._stop.is_set():
            return
        LOG.error("%s: exiting at once, so that only the next leader acts", why)
        logging.shutdown()
        os._exit(EXIT_LEASE_LOST)

    async def _round(self, api: ApiServer) -> float:
        """Acquire or renew.

        Returns the time until which the Lease is held, on our monotonic clock; 0 when it
        is not held.
        """
        sent = time.monotonic()
        try:
            lease = await self._read(api)
            if lease is not None:
                self._notes.read(lease["metadata"].get("annotations") or {})
            if lease is None:
                await api.request("POST", self._path, body=self._lease(None))
            elif self._mine(lease):
                await self._write(api, self._lease(lease))
            elif self._valid_until:
                self._end("another replica holds the leader's lease")
            elif self._expired(lease):
                await self._write(api, self._lease(lease))
            else:
                return 0.0
        except ApiError as error:
            if error.status != 409:
                LOG.warning("leader election: %s (%d)", error, error.status)
            return 0.0
        except Retryable as error:
            LOG.warning("leader election: %s", error)
            return 0.0
        except Exception:
            # Whatever the answer or the content of the Lease is, the thread must not end, or this
            # replica never leads (F514).
            LOG.exception("leader election")
            return 0.0
        return sent + self._config.renew_deadline_seconds

    async def _read(self, api: ApiServer) -> JsonDict | None:
        """The Lease; None when there is none."""
        try:
            return await api.request("GET", f"{self._path}/{self._config.lease_name}")
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def _write(self, api: ApiServer, lease: JsonDict) -> None:
        await api.request("PUT", f"{self._path}/{self._config.lease_name}", body=lease)

    def _mine(self, lease: JsonDict) -> bool:
        return bool((lease.get("spec") or {}).get("holderIdentity") == self._identity)

    def _expired(self, lease: JsonDict) -> bool:
        """True when it was released, or unchanged for its whole duration on our clock.

        Clocks of other hosts do not count.
        """
        spec = lease.get("spec") or {}
        if not spec.get("holderIdentity"):
            return True
        state, now = str(lease["metadata"]["resourceVersion"]), time.monotonic()
        if state != self._seen[0]:
            self._seen = (state, now)
        duration = max(float(spec.get("leaseDurationSeconds") or 0), self._config.lease_duration_seconds)
        return now - self._seen[1] > duration

    def _lease(self, old: JsonDict | None) -> JsonDict:
        now = datetime.now(tz=UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        before = (old or {}).get("spec") or {}
        mine = before.get("holderIdentity") == self._identity
        spec = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(1, int(self._config.lease_duration_seconds)),
            "acquireTime": before.get("acquireTime") if mine else now,
            "renewTime": now,
            "leaseTransitions": int(before.get("leaseTransitions") or 0) + (0 if mine or old is None else 1),
        }
        meta = (old or {}).get("metadata") or {"name": self._config.lease_name}
        meta["annotations"] = {**(meta.get("annotations") or {}), **self._notes.write()}
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta, "spec": spec}

    async def _release(self, api: ApiServer) -> None:
        try:
            lease = await self._read(api)
            if lease is not None and self._mine(lease):
                lease["spec"]["holderIdentity"] = ""
                await self._write(api, lease)
        except (ApiError, Retryable) as error:
            LOG.info("leader election: the lease was not released: %s", error)

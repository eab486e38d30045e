"""Storage credentials of attempts: given, revoked, and seen to be refused (mode Credentials).

Observations are kept in this process only, by its monotonic clock: another operator starts over. No
value of a credential leaves this module but into the Secret of its attempt.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hudi_contract import environment, naming
from hudi_operator.control.queue import Key
from hudi_operator.model.ports import CredentialsPort, Fatal, KubernetesPort, Retryable
from hudi_operator.model.store_access import Credentials, Revocation, StoreAnswer, Verdict

JsonDict = dict[str, Any]
KEPT_ATTEMPTS = 256
"""Number of attempts of one table that are remembered."""


@dataclass
class _Seen:
    """Observations of one attempt; times on the monotonic clock."""

    revoked: bool = False
    refusals: int = 0
    first_at: float = 0.0
    """Time at which the answer to the first refused request arrived."""
    last_at: float = 0.0
    """Time at which the last refused request was sent."""
    told: str = ""
    problem: str = ""

    def facts(self) -> Revocation:
        seconds = max(0.0, self.last_at - self.first_at) if self.refusals else 0.0
        return Revocation(self.revoked, self.refusals, seconds, self.told, self.problem)

    def answered(self, answer: StoreAnswer, *, sent_at: float, now: float) -> None:
        """One answer of the store. Only an unbroken row of refusals counts."""
        self.told = answer.told
        if answer.verdict is not Verdict.REFUSED:
            self.refusals = 0
            self.problem = (
                "the store still accepts them" if answer.verdict is Verdict.ACCEPTED else "the store does not say"
            )
            # The broker may have reported a revocation that it had not made.
            self.revoked = self.revoked and answer.verdict is not Verdict.ACCEPTED
            return
        self.problem = ""
        if not self.refusals:
            self.first_at = now
        self.refusals += 1
        self.last_at = sent_at


@dataclass
class AttemptCredentials:
    """The broker and the store, for the attempts of all tables."""

    port: CredentialsPort
    kubernetes: KubernetesPort
    clock: Callable[[], float] = time.monotonic
    _seen: dict[Key, dict[str, _Seen]] = field(default_factory=dict)

    def facts(self, key: Key) -> Mapping[str, Revocation]:
        """Revocations of a table's attempts, as far as this process has seen them."""
        return {attempt: seen.facts() for attempt, seen in self._seen.get(key, {}).items()}

    def forget(self, key: Key) -> None:
        """Forget a table at which no look is made any more."""
        self._seen.pop(key, None)

    def _of(self, key: Key, attempt: str) -> _Seen:
        known = self._seen.setdefault(key, {})
        if attempt not in known and len(known) >= KEPT_ATTEMPTS:
            del known[next(iter(known))]  # what was forgotten is asked again
        return known.setdefault(attempt, _Seen())

    async def issue(self, key: Key, manifest: JsonDict, *, id: str, attempt: str, path: str) -> bool:
        """Create the Secret of an attempt. False when it is there, or there is a problem.

        Raises what Kubernetes raises; a problem with broker or store is kept.
        """
        meta = manifest["metadata"]
        if await self.kubernetes.owners("Secret", meta["namespace"], meta["name"]) is not None:
            return False
        seen = self._of(key, attempt)
        try:
            found = await self.port.issue(id, table="/".join(key), attempt=attempt, path=path)
            answer = await self.port.ask_store(found, path)
        except (Retryable, Fatal) as error:
            seen.problem = str(error)
            return False
        if answer.verdict is not Verdict.ACCEPTED:
            seen.problem = f"the store does not accept new credentials yet ({answer.told})"
            return False
        seen.problem = ""
        return bool(await self.kubernetes.create({**manifest, "data": _data(found)}))

    async def revoke(self, key: Key, *, id: str, attempt: str) -> bool:
        """Have them revoked; a problem is kept."""
        seen = self._of(key, attempt)
        try:
            await self.port.revoke(id)
        except (Retryable, Fatal) as error:
            seen.problem = str(error)
            return False
        seen.revoked, seen.problem = True, ""
        return True

    async def ask(self, key: Key, *, attempt: str, namespace: str, name: str, pod_uid: str, path: str) -> None:
        """One request to the store with the very credentials that the pod has mounted."""
        seen = self._of(key, attempt)
        try:
            secret = await self.kubernetes.get("Secret", namespace, name)
        except (Retryable, Fatal) as error:
            seen.refusals, seen.problem = 0, str(error)
            return
        found = _credentials(secret, pod_uid)
        if found is None:
            seen.refusals = 0
            seen.problem = f"Secret {name} was deleted or replaced: it is unknown which credentials the pod has"
            return
        sent_at = self.clock()
        answer = await self.port.ask_store(found, path)
        seen.answered(answer, sent_at=sent_at, now=self.clock())


def _data(found: Credentials) -> dict[str, str]:
    keys = (found.access_key_id, found.secret_access_key, found.session_token)
    values = dict(zip(environment.S3_KEYS, keys, strict=True))
    return {name: base64.b64encode(value.encode()).decode() for name, value in values.items() if value}


def _credentials(secret: JsonDict | None, pod_uid: str) -> Credentials | None:
    """Credentials that the operator gave this pod; None when the Secret is not the operator's."""
    if secret is None or not secret.get("immutable"):
        return None
    meta = secret["metadata"]
    mine = naming.MANAGED.items() <= (meta.get("labels") or {}).items()
    if not mine or pod_uid not in [owner["uid"] for owner in meta.get("ownerReferences") or ()]:
        return None
    try:
        values = {
            name: base64.b64decode(value, validate=True).decode() for name, value in (secret.get("data") or {}).items()
        }
    except ValueError:
        return None
    key, value = values.get("accessKeyId", ""), values.get("secretAccessKey", "")
    return Credentials(key, value, values.get("sessionToken", "")) if key and value else None

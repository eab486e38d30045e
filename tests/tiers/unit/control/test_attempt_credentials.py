"""What is kept of the answers of broker and store, and what becomes of a Secret (F230, F231)."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import dataclass, field
from typing import Any

import pytest

from hudi_contract import naming
from hudi_operator.control.attempt_credentials import KEPT_ATTEMPTS, AttemptCredentials
from hudi_operator.model.ports import Fatal, OutcomeUnknown
from hudi_operator.model.store_access import Credentials, Revocation, StoreAnswer, Verdict

KEY, ATTEMPT, PATH = ("lake", "flights"), "lake.load-1", "s3a://lake/flights"
GIVEN = Credentials("key", "secret")
ACCEPTED, REFUSED, UNKNOWN = (
    StoreAnswer(Verdict.ACCEPTED, "204"),
    StoreAnswer(Verdict.REFUSED, "403 InvalidAccessKeyId"),
    StoreAnswer(Verdict.UNKNOWN, "503"),
)
MANIFEST: dict[str, Any] = {
    "kind": "Secret",
    "metadata": {
        "namespace": "lake",
        "name": "load-1-storage-key",
        "labels": dict(naming.MANAGED),
        "ownerReferences": [{"uid": "uid-1"}],
    },
    "immutable": True,
}


@dataclass
class Outside:
    """Broker, store and API server: what they answer is set by the test."""

    answers: list[StoreAnswer] = field(default_factory=list)
    broker_fails: Exception | None = None
    secret: dict[str, Any] | None = None
    created: list[dict[str, Any]] = field(default_factory=list)
    sent: list[Credentials] = field(default_factory=list)
    now: float = 100.0

    async def issue(self, id: str, **_: str) -> Credentials:
        if self.broker_fails:
            raise self.broker_fails
        return GIVEN

    async def revoke(self, id: str) -> None:
        if self.broker_fails:
            raise self.broker_fails

    async def ask_store(self, credentials: Credentials, path: str) -> StoreAnswer:
        self.sent.append(credentials)
        self.now += 0.25
        return self.answers.pop(0)

    async def owners(self, *_: str) -> tuple[str, ...] | None:
        return None if self.secret is None else ("uid-1",)

    async def get(self, *_: str) -> dict[str, Any] | None:
        return self.secret

    async def create(self, manifest: dict[str, Any]) -> str:
        self.created.append(manifest)
        return "uid"


def keeper(outside: Outside) -> AttemptCredentials:
    return AttemptCredentials(outside, outside, clock=lambda: outside.now)  # type: ignore[arg-type]


def made(**changes: Any) -> dict[str, Any]:
    data = {
        "accessKeyId": base64.b64encode(b"key").decode(),
        "secretAccessKey": base64.b64encode(b"secret").decode(),
    }
    return {**MANIFEST, "data": data, **changes}


def issued(outside: Outside) -> tuple[bool, str]:
    one = keeper(outside)
    done = asyncio.run(one.issue(KEY, MANIFEST, id="id", attempt=ATTEMPT, path=PATH))
    return done, one.facts(KEY).get(ATTEMPT, Revocation()).problem


def test_a_secret_is_made_of_credentials_that_the_store_accepts() -> None:
    outside = Outside([ACCEPTED])
    assert issued(outside) == (True, "")
    (secret,) = outside.created
    assert secret["data"] == made()["data"]
    assert outside.sent == [GIVEN]


@pytest.mark.parametrize("answer", [REFUSED, UNKNOWN], ids=lambda a: a.verdict)
def test_none_is_made_of_credentials_that_it_does_not(answer: StoreAnswer) -> None:
    """A refusal later on would say nothing."""
    outside = Outside([answer])
    done, problem = issued(outside)
    assert (done, outside.created) == (False, [])
    assert "does not accept new credentials yet" in problem


@pytest.mark.parametrize("error", [Fatal("revoked"), OutcomeUnknown("no answer")])
def test_a_broker_that_fails_is_a_problem_and_no_exception(error: Exception) -> None:
    outside = Outside(broker_fails=error)
    assert issued(outside) == (False, str(error))
    one = keeper(outside)
    assert not asyncio.run(one.revoke(KEY, id="id", attempt=ATTEMPT))
    assert one.facts(KEY)[ATTEMPT] == Revocation(problem=str(error))


def test_a_secret_that_exists_is_kept() -> None:
    outside = Outside(secret=made())
    assert issued(outside) == (False, "")
    assert outside.sent == []


def asked(outside: Outside, *answers: StoreAnswer, apart: float = 10.0) -> Revocation:
    """After the revocation, these answers at these intervals."""
    one = keeper(outside)
    asyncio.run(one.revoke(KEY, id="id", attempt=ATTEMPT))
    outside.answers = [*answers]
    for _ in answers:
        asyncio.run(
            one.ask(KEY, attempt=ATTEMPT, namespace="lake", name="load-1-storage-key", pod_uid="uid-1", path=PATH)
        )
        outside.now += apart
    return one.facts(KEY)[ATTEMPT]


def test_refusals_in_a_row_are_counted_from_the_first_answer_to_the_last_question() -> None:
    outside = Outside(secret=made())
    found = asked(outside, REFUSED, REFUSED, REFUSED)
    assert (found.revoked, found.refusals, found.told) == (True, 3, "403 InvalidAccessKeyId")
    assert found.refused_seconds == pytest.approx(20.25)
    assert outside.sent == [GIVEN] * 3


@pytest.mark.parametrize("answer", [ACCEPTED, UNKNOWN], ids=lambda a: a.verdict)
def test_any_other_answer_begins_the_count_anew(answer: StoreAnswer) -> None:
    """One server of the store may still know them while another has forgotten them (F231)."""
    found = asked(Outside(secret=made()), REFUSED, REFUSED, answer)
    assert (found.refusals, found.refused_seconds) == (0, 0.0)
    assert found.problem
    assert found.revoked == (answer is UNKNOWN), "a broker that was wrong is asked again"
    assert asked(Outside(secret=made()), REFUSED, answer, REFUSED).refusals == 1


OTHERS = {
    "gone": None,
    "of another pod": made(metadata={**MANIFEST["metadata"], "ownerReferences": [{"uid": "uid-2"}]}),
    "not the operator's": made(metadata={**MANIFEST["metadata"], "labels": {}}),
    "changeable": made(immutable=False),
    "without a key": made(data={}),
    "not base64": made(data={"accessKeyId": "§", "secretAccessKey": "§"}),
}


@pytest.mark.parametrize("secret", OTHERS.values(), ids=OTHERS.keys())
def test_no_other_credentials_are_asked_with(secret: dict[str, Any] | None) -> None:
    outside = Outside(secret=secret)
    found = asked(outside, REFUSED)
    assert outside.sent == []
    assert found.refusals == 0
    assert "was deleted or replaced" in found.problem


def test_what_is_kept_is_bounded_and_another_process_knows_nothing() -> None:
    outside = Outside()
    one = keeper(outside)
    for number in range(KEPT_ATTEMPTS + 5):
        asyncio.run(one.revoke(KEY, id="id", attempt=f"lake.load-{number}"))
    assert len(one.facts(KEY)) == KEPT_ATTEMPTS
    assert keeper(outside).facts(KEY) == {}

"""Mode Credentials: what is proof, what is none, and what is asked next (I1, I11, F230, F231)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hudi_contract import naming
from hudi_operator.model.config import CredentialsBrokerConfig
from hudi_operator.model.store_access import Revocation
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.core.view import View, build_view
from hudi_operator.plan.fencing import evidence, revocation, settling
from hudi_operator.plan.writers import attempts
from tests.support.world.scene import ATTEMPT_POD, INC, Scene
from tests.support.world.simulated_store import CONFIG, NAMESPACE, START_MS

ENDPOINT = "http://s3.storage.svc:9000"
BROKER = CredentialsBrokerConfig(
    url="https://broker:8443", store_endpoint=ENDPOINT, identity_cache_seconds=30, request_seconds=90
)
ATTEMPT = naming.attempt_id(NAMESPACE, ATTEMPT_POD)
KEY = naming.storage_key_name(ATTEMPT_POD)
SEEN = Revocation(revoked=True, refusals=16, refused_seconds=30.0, told="403 InvalidAccessKeyId")
UID = f"uid-of-{ATTEMPT_POD}"
PROVEN = {UID: {"kind": "CredentialsRevoked", "detail": "", "atMs": START_MS}}


class Lost(Scene):
    """A writer with credentials of its own, which runs on a node that nobody hears of."""

    def __init__(self, *, mode: str = "Credentials", secrets: tuple[str, ...] = (KEY,), **pod: Any) -> None:
        super().__init__(fencing={"mode": "Credentials"})
        gate = dict(self.kv["gate"].value)
        self.put("gate", {**gate, "mode": mode})
        self.nodes["n1"].ready = False
        self.host = self.pod(secrets=secrets, **pod)
        self.incarnation(alive=False)
        self.broker = BROKER

    def seen(self, found: Revocation | None) -> View:
        """The view when this was seen of the attempt's credentials."""
        observed = replace(self.observe(), revocations={ATTEMPT: found} if found is not None else {})
        return build_view(observed, replace(CONFIG, credentials_broker=self.broker))


def proofs(view: View) -> dict[str, str]:
    """By pod uid: the kind of each proof that is recorded now."""
    updates = [a for a in settling.plan_settling(view).actions if isinstance(a, act.UpdateSettle)]
    return {uid: proof["kind"] for a in updates for uid, proof in (a.value.get("proofs") or {}).items()}


def asked(view: View) -> list[str]:
    kinds = (act.RevokeCredentials, act.AskStore)
    return [type(a).__name__ for a in settling.plan_settling(view).actions if isinstance(a, kinds)]


def test_refused_for_as_long_as_the_cache_is_a_proof() -> None:
    scene = Lost()
    scene.lock()
    scene.fenced("Terminating")
    assert proofs(scene.seen(SEEN)) == {UID: "CredentialsRevoked"}
    assert asked(scene.seen(SEEN)) == []


NO_PROOF = {
    "nothing is known": None,
    "the broker's word alone": Revocation(revoked=True),
    "refused, and nobody says revoked": replace(SEEN, revoked=False),
    "one server has refused": Revocation(revoked=True, refusals=1, refused_seconds=0.0),
    "shorter than the cache": replace(SEEN, refused_seconds=29.9),
    "two requests in a long time": replace(SEEN, refusals=2),
}


@pytest.mark.parametrize("found", NO_PROOF.values(), ids=NO_PROOF.keys())
def test_less_is_no_proof_and_the_next_question_is_asked(found: Revocation | None) -> None:
    scene = Lost()
    scene.fenced("Terminating")
    assert proofs(scene.seen(found)) == {}
    wanted = "AskStore" if found is not None and found.revoked else "RevokeCredentials"
    assert asked(scene.seen(found)) == [wanted]


def test_the_store_is_asked_with_what_the_pod_has_mounted() -> None:
    scene = Lost()
    scene.fenced("Terminating")
    (ask,) = [
        a for a in settling.plan_settling(scene.seen(Revocation(revoked=True))).actions if isinstance(a, act.AskStore)
    ]
    assert (ask.namespace, ask.name, ask.pod_uid, ask.attempt) == (NAMESPACE, KEY, UID, ATTEMPT)


def no_broker(scene: Lost) -> None:
    scene.broker = CredentialsBrokerConfig()


def no_pod(scene: Lost) -> None:
    del scene.pods[ATTEMPT_POD]


def no_evidence(scene: Lost) -> None:
    scene.host.finalizers.clear()


def an_agent(scene: Lost) -> None:
    scene.host.labels[naming.LABEL_ROLE] = naming.ROLE_AGENT
    scene.host.labels[naming.LABEL_AGENT] = "load-0000"


NOT_OF_THIS_POD = {
    "another mode is in force": lambda: Lost(mode="PodTermination"),
    "the pod has other credentials": lambda: Lost(secrets=("lake",)),
    "the credentials of another attempt": lambda: Lost(secrets=(naming.storage_key_name("load-0000-2"),)),
}
TAKEN_AWAY = {
    "no broker": no_broker,
    "its object is gone": no_pod,
    "seen without our finalizer": no_evidence,
    "an agent": an_agent,
}


@pytest.mark.parametrize("made", NOT_OF_THIS_POD.values(), ids=NOT_OF_THIS_POD.keys())
def test_credentials_prove_nothing_of_a_pod_that_has_others(made: Any) -> None:
    scene = made()
    scene.fenced("Terminating")
    assert proofs(scene.seen(SEEN)) == {}


@pytest.mark.parametrize("change", TAKEN_AWAY.values(), ids=TAKEN_AWAY.keys())
def test_credentials_prove_nothing_where_the_pod_does_not_show_them(change: Any) -> None:
    scene = Lost()
    scene.fenced("Terminating")
    change(scene)
    assert proofs(scene.seen(SEEN)) == {}


def test_executors_are_covered_when_they_have_the_drivers_credentials() -> None:
    scene = Lost()
    scene.fenced("Terminating")
    same = scene.pod("exec-1", role=naming.ROLE_EXECUTOR, owner=ATTEMPT_POD, secrets=(KEY,))
    other = scene.pod("exec-2", role=naming.ROLE_EXECUTOR, owner=ATTEMPT_POD, secrets=("lake",))
    found = proofs(scene.seen(SEEN))
    assert found == {UID: "CredentialsRevoked", same.uid: "CredentialsRevoked"}
    assert other.uid not in found


@pytest.mark.parametrize(("kind", "seconds"), [("CredentialsRevoked", 90.0), ("PodTerminated", 10.0)])
def test_the_drain_is_as_long_as_the_store_goes_on_with_a_request(kind: str, seconds: float) -> None:
    """F230: a request of a paused process was authorised before the refusal."""
    scene = Lost()
    scene.lock()
    scene.fenced("Draining", proofs={UID: {"kind": kind, "detail": "", "atMs": START_MS}})
    for age, unlocked in ((seconds - 0.5, False), (seconds, True)):
        observed = replace(scene.observe(), timers={f"drain/{INC}": age})
        view = build_view(observed, replace(CONFIG, credentials_broker=BROKER))
        found = [a for a in settling.plan_settling(view).actions if isinstance(a, act.Unlock)]
        assert bool(found) == unlocked, (age, found)


def test_a_pod_that_has_ended_needs_no_credentials() -> None:
    """Whichever proof comes first is taken, and the drain is the short one."""
    scene = Lost(phase="Failed")
    scene.nodes["n1"].ready = True
    scene.fenced("Terminating")
    assert proofs(scene.seen(None)) == {UID: "PodTerminated"}


@pytest.mark.parametrize("revoked", [False, True])
def test_evidence_is_dropped_after_the_revocation(revoked: bool) -> None:
    """The end of an attempt: its finalizer goes when its credentials have gone."""
    scene = Lost(phase="Succeeded")
    scene.nodes["n1"].ready = True
    scene.fenced("Terminating")
    actions = settling.plan_settling(scene.seen(Revocation(revoked=revoked))).actions
    assert [isinstance(a, act.DropEvidence) for a in actions].count(True) == revoked
    assert any(isinstance(a, act.RevokeCredentials) for a in actions) != revoked
    for key in ("writer", "settle", "fence"):
        del scene.kv[f"{key}/{INC}"]
    actions = evidence.plan_evidence(scene.seen(Revocation(revoked=revoked))).actions
    assert [type(a).__name__ for a in actions if not isinstance(a, act.DeleteReport)] == [
        "DropEvidence" if revoked else "RevokeCredentials"
    ]


def test_a_new_pod_gets_credentials_and_one_that_may_have_begun_none() -> None:
    scene = Lost(phase="Pending")
    view = scene.seen(None)
    (pod,) = [p for p in view.observed.pods if p.name == ATTEMPT_POD]
    (give,) = revocation.give(view, ATTEMPT, pod)
    assert isinstance(give, act.GiveCredentials)
    assert give.manifest["metadata"]["name"] == KEY
    assert give.manifest["immutable"] is True
    assert "data" not in give.manifest
    assert give.id == naming.credential_id(view.table.table_id, ATTEMPT)
    for changed in (replace(pod, phase="Running"), replace(pod, deleting=True), replace(pod, secrets=())):
        assert revocation.give(view, ATTEMPT, changed) == ()


@pytest.mark.parametrize("fenced", [False, True])
def test_a_fenced_attempt_gets_no_credentials_any_more(fenced: bool) -> None:
    """Its revocation may have been asked for already."""
    scene = Lost()
    name = scene.writer()
    scene.pods.pop(ATTEMPT_POD)
    scene.pod(name, phase="Pending", secrets=(naming.storage_key_name(name),))
    scene.put(f"admit/{naming.attempt_id(NAMESPACE, name)}", {"role": "writer"})
    if fenced:
        scene.fenced("Terminating", "inc-2", pod=name)
    view = scene.seen(None)
    (writer,) = view.writers
    given = [a for a in attempts.follow(view, writer).after if isinstance(a, act.GiveCredentials)]
    assert len(given) == (not fenced)


def test_a_person_is_told_how_far_it_is() -> None:
    scene = Lost()
    scene.fenced("Terminating")
    told = {
        "not revoked yet (no answer of the broker)": Revocation(problem="no answer of the broker"),
        "are revoked, but the store still accepts them (204)": Revocation(
            revoked=True, told="204", problem="the store still accepts them"
        ),
        "were refused for 12 of 30 s: no action is needed": Revocation(
            revoked=True, refusals=5, refused_seconds=12.0, told="403"
        ),
    }
    for text, found in told.items():
        view = scene.seen(found)
        (inc,) = [i for i in view.incs if i.inc == INC]
        assert text in settling.awaiting_proof(view, inc)

"""A pod starts only with Secrets and accounts whose owners allow it, and with an allowed image.

That is asked again at each launch. Who runs goes on, and nothing that exists is given up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from hudi_operator.api import references, revocable
from hudi_operator.api.references import Consent, Named
from hudi_operator.api.spec import TableSpec, WriterSpec
from hudi_operator.model.config import ConsentBindingConfig, ConsentConfig, OperatorConfig
from hudi_operator.model.facts import Observed
from hudi_operator.model.status import attempt_entries
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.core.view import build_view
from hudi_operator.plan.gate.stalled import path_problem
from hudi_operator.plan.writers import attempts
from tests.support.world import simulated_world
from tests.support.world.simulated_world import World, finished

REQUIRED = ConsentConfig(secrets="Required", service_accounts="Required")
SECRET, ACCOUNT = Named("Secret", "lake"), Named("ServiceAccount", "irsa")
STORAGE = {"secretRefs": [{"name": "lake", "as": "Env", "prefix": "APP_"}], "serviceAccountName": "irsa"}
ALLOWED = {SECRET: Consent(True, ("flights",)), ACCOUNT: Consent(True, ("*",))}
KAFKA = {
    "bootstrapServers": ["kafka:9093"],
    "topics": ["t"],
    "value": {"format": "Binary"},
    "security": {"protocol": "SSL", "secretRef": {"name": "tls"}},
}


class Owners(World):
    """A world with what Secrets and accounts say of who may use them."""

    said: Mapping[Named, Consent] = ALLOWED

    def observe(self) -> Observed:
        return replace(super().observe(), consents=self.said)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Owners:
    monkeypatch.setattr(simulated_world, "CONFIG", OperatorConfig(consent=REQUIRED, allowed_images=("lake/*",)))
    return Owners()


def looks(world: World, times: int = 6) -> None:
    for _ in range(times):
        world.reconcile()
        world.tick()


def stalled(world: World, obj: Any) -> tuple[str, str]:
    found = world.condition(obj, "Stalled")
    return found["reason"], found["message"]


def test_with_its_owners_word_it_runs(world: Owners) -> None:
    world.make_table(storage=STORAGE)
    world.make_writer("load")
    world.run(finished("load"))


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({**ALLOWED, SECRET: Consent(True)}, "spec.storage.secretRefs: Secret lake allows no table: its owner allows"),
        ({**ALLOWED, SECRET: Consent(True, ())}, "Secret lake allows only none"),
        ({**ALLOWED, SECRET: Consent(True, ("orders",))}, "Secret lake allows only orders: its owner allows this one"),
        ({**ALLOWED, SECRET: Consent(exists=False)}, "spec.storage.secretRefs: Secret lake does not exist"),
        ({ACCOUNT: Consent(True, ("*",))}, "it is not known yet whether Secret lake allows this HudiTable"),
        (
            {**ALLOWED, ACCOUNT: Consent(True)},
            "spec.storage.serviceAccountName: ServiceAccount irsa allows no table: its owner allows this one with: "
            "kubectl annotate serviceaccount irsa -n lake --overwrite hudioperator.io/allowed-tables=flights",
        ),
    ],
)
def test_without_it_nothing_is_made(world: Owners, said: dict[Named, Consent], message: str) -> None:
    world.said = said
    world.make_table(storage=STORAGE)
    world.make_writer("load")
    looks(world)
    assert stalled(world, world.table)[0] == "ReferenceNotAllowed"
    assert message in stalled(world, world.table)[1]
    (event,) = world.events
    assert (event.kind, event.name, event.reason) == ("HudiTable", "flights", "ReferenceNotAllowed")
    assert message in event.message
    assert not world.pods
    assert not world.kv
    # The word is given later.
    world.said = ALLOWED
    world.run(finished("load"))


class Bound(Owners):
    """A world in which Secrets are readable once the operator has bound its role to itself."""

    bound = False
    taken_away = False

    def observe(self) -> Observed:
        found = super().observe()
        made = any(m["metadata"]["name"] == BINDING.role for m in self.applied)
        self.bound = (self.bound or made) and not self.taken_away
        said = {name: word for name, word in self.said.items() if self.bound or name.kind != "Secret"}
        return replace(found, consents=said, secrets_unreadable=not self.bound)


BINDING = ConsentBindingConfig("release-consent", "release", "hudi-operator")


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> Bound:
    config = OperatorConfig(
        consent=REQUIRED, consent_binding=BINDING, path_prefixes={"lake": ("s3a://lake/", "s3a://landing/"), "*": ()}
    )
    monkeypatch.setattr(simulated_world, "CONFIG", config)
    return Bound()


def test_the_right_to_read_secrets_comes_before_the_first_question(bound: Bound) -> None:
    """F403: nobody is told that something is wrong meanwhile."""
    bound.make_table(storage=STORAGE)
    bound.make_writer("load")
    bound.reconcile()
    (made,) = (m for m in bound.applied if m["metadata"]["name"] == BINDING.role)
    assert made["roleRef"] == {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": BINDING.role}
    assert made["subjects"] == [
        {"kind": "ServiceAccount", "name": BINDING.service_account, "namespace": BINDING.namespace}
    ]
    assert not bound.pods
    bound.run(finished("load"))
    assert not [event for event in bound.events if event.reason == "ReferenceNotAllowed"]


def test_a_right_that_is_taken_away_keeps_the_next_launch_only(bound: Bound) -> None:
    """F403: who runs goes on, the dead are settled, and the right is taken anew."""
    bound.make_table(storage=STORAGE)
    bound.make_writer("load")
    bound.run(lambda w: any(p.role == "writer" and p.alive for p in w.processes))
    before, bound.taken_away = set(bound.pods), True
    (writer,) = (p for p in bound.processes if p.alive and p.role == "writer")
    bound.kill(writer)
    bound.applied.clear()
    for _ in range(60):
        looks(bound, 1)
    assert {p.role for p in bound.processes if p.alive} == {"agent"}
    assert not [p for p in bound.pods if p not in before], "nothing new starts"
    assert bound.condition(bound.table, "Stalled")["status"] == "False"
    waits = bound.condition(bound.writers["load"], "Admitted")
    assert (waits["reason"], waits["message"]) == (
        "AwaitingRights",
        "the operator may not read Secrets of namespace lake until its RoleBinding release-consent takes effect there",
    )
    assert [m for m in bound.applied if m["metadata"]["name"] == BINDING.role]
    bound.taken_away = False
    bound.run(finished("load"), seconds=600)


def test_no_right_is_taken_where_no_table_may_be(bound: Bound) -> None:
    bound.make_table(storage=STORAGE, path="gs://elsewhere/flights")
    looks(bound)
    assert stalled(bound, bound.table)[0] == "PathNotAllowed"
    assert not bound.applied


def test_a_word_that_is_withdrawn_counts_at_the_next_launch(world: Owners) -> None:
    """What a dead writer and a dead agent have left stays: nothing starts, nothing is deleted."""
    world.make_table(storage=STORAGE)
    world.make_writer("load")
    world.run(lambda w: any(p.role == "writer" and p.alive for p in w.processes))
    before = set(world.pods)
    world.said = {**ALLOWED, SECRET: Consent(True)}
    looks(world, 1)
    running = [p for p in world.processes if p.alive]
    assert {p.role for p in running} == {"agent", "writer"}, "who runs goes on"
    for process in running:
        world.kill(process)
    for _ in range(60):
        looks(world, 1)
    assert stalled(world, world.table)[0] == "ReferenceNotAllowed"
    assert not [p for p in world.pods if p not in before], "nothing new starts"
    world.said = ALLOWED
    world.run(finished("load"), seconds=600)


def test_a_writers_own_secret(world: Owners) -> None:
    world.make_table(storage=STORAGE)
    world.make_writer("load", source={"kafka": KAFKA})
    world.make_writer("other")
    world.said = {**ALLOWED, Named("Secret", "tls"): Consent(True, ("orders",))}
    world.run(finished("other"))
    assert stalled(world, world.writers["load"])[0] == "ReferenceNotAllowed"
    assert (
        "spec.source.kafka.security.secretRef: Secret tls allows only orders"
        in stalled(world, world.writers["load"])[1]
    )
    assert not any(name.startswith("load") for name in world.created)
    world.said = {**ALLOWED, Named("Secret", "tls"): Consent(True, ("orders", "flights"))}
    world.run(finished("load"))


def test_an_image_that_is_not_allowed_starts_nothing(world: Owners) -> None:
    world.make_table(storage=STORAGE, image="evil:1")
    looks(world)
    reason, message = stalled(world, world.table)
    assert reason == "ImageNotAllowed"
    assert "spec.image: evil:1 is none of the allowed images: localhost/hudi-operator/spark:dev, lake/*" in message
    assert not world.pods
    world.edit(world.table, image="lake/spark:1")
    world.run(lambda w: w.is_true(w.table, "Ready"))


OWN = {"image": "lake/own:1", "serviceAccountName": "cloud", "imagePullSecrets": [{"name": "registry"}]}
OWN_ALLOWED = {
    Named("ServiceAccount", "cloud"): Consent(True, ("*",)),
    Named("Secret", "registry"): Consent(True, ("*",)),
}


@pytest.mark.parametrize(
    ("spec", "said", "reason", "message"),
    [
        ({**OWN, "image": "evil:1"}, {}, "ImageNotAllowed", "spec.image: evil:1 is none of the allowed images"),
        (
            OWN,
            {Named("ServiceAccount", "cloud"): Consent(True)},
            "ReferenceNotAllowed",
            "spec.serviceAccountName: ServiceAccount cloud allows no table",
        ),
        (
            OWN,
            {Named("Secret", "registry"): Consent(True, ("orders",))},
            "ReferenceNotAllowed",
            "spec.imagePullSecrets: Secret registry allows only orders",
        ),
    ],
)
def test_a_writers_own_image_account_and_pull_secret(
    world: Owners, spec: dict[str, Any], said: dict[Named, Consent], reason: str, message: str
) -> None:
    world.make_table(storage=STORAGE)
    world.make_writer("load", **spec)
    world.make_writer("other")
    world.said = {**ALLOWED, **OWN_ALLOWED, **said}
    world.run(finished("other"))
    found = stalled(world, world.writers["load"])
    assert found[0] == reason
    assert message in found[1]
    assert not any(name.startswith("load") for name in world.created)
    world.said = {**ALLOWED, **OWN_ALLOWED}
    world.edit(world.writers["load"], **OWN)
    world.run(finished("load"))


def test_a_word_that_is_withdrawn_before_the_pod_is_there_counts(world: Owners) -> None:
    """Status and admission came first: it is asked once more, whatever was said then."""
    world.make_table(storage=STORAGE)
    world.run(lambda w: w.is_true(w.table, "Ready"))
    world.make_writer("load", **OWN)
    world.said = {**ALLOWED, **OWN_ALLOWED}
    world.run(finished("load"))
    (attempt,) = attempt_entries(world.writers["load"]["status"])
    for fields, said in (
        ({**OWN, "image": "evil:1"}, world.said),
        (OWN, {**world.said, Named("Secret", "registry"): Consent(True)}),
        (OWN, {**world.said, Named("ServiceAccount", "cloud"): Consent(exists=False)}),
        (OWN, world.said),
    ):
        world.said = said
        obj = {**world.writers["load"], "spec": {**world.writers["load"]["spec"], **fields}}
        view = build_view(world.observe(), simulated_world.CONFIG)
        made = attempts.start_actions(view, WriterSpec.from_object(obj), attempt, [attempt])
        assert bool(made) == (fields is OWN and said == {**ALLOWED, **OWN_ALLOWED})
    (pod,) = [action.manifest for action in made if isinstance(action, act.CreatePod)]
    assert pod["spec"]["containers"][0]["image"] == "lake/own:1"
    assert pod["spec"]["serviceAccountName"] == "cloud"
    assert pod["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    bound = [a.manifest["subjects"][0]["name"] for a in made if isinstance(a, act.Apply) and "subjects" in a.manifest]
    assert "cloud" in bound, "it starts executors"


def test_an_account_of_a_writers_own_would_not_be_revoked() -> None:
    """Its cloud identity reaches the store after the attempt is fenced."""
    load = WriterSpec.from_object(
        {"metadata": {"name": "load"}, "spec": {"tableRef": {"name": "flights"}, "serviceAccountName": "cloud"}}
    )
    assert not revocable.account_problem(spec(), load)
    revoked = spec(fencing={"mode": "Credentials"})
    found = revocable.account_problem(revoked, load)
    assert found.startswith("spec.serviceAccountName: cloud would give the writer an access that cannot be revoked")
    assert "HudiTable flights" in found


@pytest.mark.parametrize(
    ("image", "allowed", "answer"),
    [
        ("", (), True),
        ("own:1", (), True),
        ("own:2", (), False),
        ("a/b:1", ("a/*",), True),
        ("ab/b:1", ("a/*",), False),
        ("a/b:1", ("a/b:1",), True),
        ("a/b:12", ("a/b:1",), False),
        ("x", ("*",), True),
    ],
)
def test_images(image: str, allowed: tuple[str, ...], answer: bool) -> None:
    assert (references.image_problem(image, "own:1", allowed) == "") is answer


def spec(**fields: Any) -> TableSpec:
    meta = {"namespace": "lake", "name": "flights", "uid": "u"}
    body = {"path": "s3a://lake/t", "recordKeyFields": ["id"], **fields}
    return TableSpec.from_object({"kind": "HudiTable", "metadata": meta, "spec": body})


def test_a_secret_without_which_pods_start_may_be_missing() -> None:
    table = spec(commitCallback={"url": "https://example.org/", "secretRef": {"name": "receiver"}})
    named = references.of_table(table)
    for consent, word in ((Consent(exists=False), ""), (Consent(True), "allows no table")):
        found = references.problem(named, {Named("Secret", "receiver"): consent}, table, REQUIRED.by_kind)
        assert (word in found) if word else not found


def test_an_optional_secret_of_a_template_waits_for_its_owner() -> None:
    """F655: a kubelet mounts it when it comes, and asks nobody."""
    field = "spec.driver.podTemplate.spec.volumes[keys]"
    named = [references.Reference(field, Named("Secret", "keys"), optional=True)]
    gone = {Named("Secret", "keys"): Consent(exists=False)}
    found = references.problem(named, gone, spec(), REQUIRED.by_kind)
    assert found.startswith(f"{field}: Secret keys does not exist, so its owner has not allowed this HudiTable")
    optional = ConsentConfig(secrets="Optional", service_accounts="Optional")
    assert not references.problem(named, gone, spec(), optional.by_kind)


def test_rules_of_an_installation() -> None:
    table = spec(storage=STORAGE)
    silent = {SECRET: Consent(True), ACCOUNT: Consent(True)}
    named = references.of_table(table)
    optional = ConsentConfig(secrets="Optional", service_accounts="Optional")
    assert references.problem(named, silent, table, REQUIRED.by_kind)
    assert not references.problem(named, silent, table, optional.by_kind)
    assert references.problem(named, {**silent, SECRET: Consent(True, ())}, table, optional.by_kind)
    assert not references.problem(named, {}, table, ConsentConfig().by_kind)


@pytest.mark.parametrize("name", ["hudi-operator-etcd", "load-01234567-1-spark-key", "load-01234567-1-storage-key"])
def test_the_operators_own_secret_is_never_used(name: str) -> None:
    """Whatever the rules say, and whatever stands at it."""
    table = spec(storage={"secretRefs": [{"name": name, "as": "Env", "prefix": "APP_"}]})
    said = {Named("Secret", name): Consent(True, ("*",))}
    found = references.problem(references.of_table(table), said, table, ConsentConfig().by_kind)
    assert (
        f"Secret {name}: names that begin with hudi-operator- or end with -spark-key or -storage-key are reserved"
        in found
    )


@pytest.mark.parametrize(
    ("annotations", "consent"),
    [
        (None, Consent(exists=False)),
        ({}, Consent(True)),
        ({references.ANNOTATION: ""}, Consent(True, ())),
        ({references.ANNOTATION: " flights, orders,"}, Consent(True, ("flights", "orders"))),
        ({references.ANNOTATION: "*"}, Consent(True, ("*",))),
    ],
)
def test_the_annotation(annotations: dict[str, str] | None, consent: Consent) -> None:
    assert Consent.read(annotations) == consent


@pytest.mark.parametrize(
    ("prefixes", "allowed"),
    [
        ({}, True),
        ({"*": ()}, False),
        ({"*": ("*",)}, True),
        ({"*": (), "lake": ("s3a://lake/",)}, True),
        ({"*": ("*",), "lake": ("s3a://other/",)}, False),
        ({"*": ("s3a://lake/",)}, True),
    ],
)
def test_paths_of_namespaces_that_are_not_listed(prefixes: dict[str, tuple[str, ...]], allowed: bool) -> None:
    problem = path_problem("s3a://lake/t", "lake", OperatorConfig(path_prefixes=prefixes))
    assert (problem == "") is allowed, problem

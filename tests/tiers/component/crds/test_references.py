"""Who may name which account, Secret, ConfigMap, table and image, and who may decide what."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hudi_contract.defaults import CONFIG_MAP, KEY, VERB
from tests.support.crds import schema
from tests.tiers.component.crds.cluster import (
    DEFAULT_IMAGES,
    Cluster,
    JsonDict,
    allow,
    grant,
    install,
    render,
    table,
    wait_until,
    writer,
)

KAFKA = {
    "bootstrapServers": ["kafka:9093"],
    "topics": ["t"],
    "value": {"format": "Binary"},
    "security": {"protocol": "SSL", "secretRef": {"name": "kafka-tls"}},
}
JDBC = {
    "engine": "PostgreSQL",
    "host": "orders-db",
    "database": "shop",
    "table": "orders",
    "secretRef": {"name": "orders-reader"},
}
CODE = {"configMapKeyRef": {"name": "code", "key": "a.py"}}
CALLBACK = {"url": "https://example.org/", "secretRef": {"name": "receiver"}}
REGISTERED = {
    "bootstrapServers": ["kafka:9093"],
    "topics": ["orders"],
    "value": {
        "format": "Json",
        "schema": "id BIGINT",
        "registry": {"url": "https://registry.example.com", "secretRef": {"name": "registry-reader"}},
    },
}
REFERENCES: dict[str, tuple[str, JsonDict, str, str]] = {
    "account": ("huditables", {"storage": {"serviceAccountName": "default-admin"}}, "serviceaccounts", "default-admin"),
    "secret": (
        "huditables",
        {"storage": {"secretRefs": [{"name": "any", "as": "Env", "prefix": "APP_"}]}},
        "secrets",
        "any",
    ),
    "callback": ("huditables", {"commitCallback": CALLBACK}, "secrets", "receiver"),
    "kafka": ("hudiwriters", {"source": {"kafka": KAFKA}}, "secrets", "kafka-tls"),
    "a registry": ("hudiwriters", {"source": {"kafka": REGISTERED}}, "secrets", "registry-reader"),
    "jdbc": ("hudiwriters", {"source": {"jdbc": JDBC}}, "secrets", "orders-reader"),
    "python": ("hudiwriters", {"source": {"python": {**CODE, "function": "f"}}}, "configmaps", "code"),
    "application": ("hudiwriters", {"source": None, "application": CODE}, "configmaps", "code"),
    "a table's pull secret": ("huditables", {"imagePullSecrets": [{"name": "registry"}]}, "secrets", "registry"),
    "a writer's pull secret": ("hudiwriters", {"imagePullSecrets": [{"name": "registry"}]}, "secrets", "registry"),
    "a writer's account": ("hudiwriters", {"serviceAccountName": "cloud"}, "serviceaccounts", "cloud"),
    "table": ("hudiwriters", {"tableRef": {"name": "lake"}}, "huditables", "lake"),
}
MAKE = {"huditables": table, "hudiwriters": writer}


@pytest.mark.parametrize("case", REFERENCES)
def test_what_an_object_names_needs_the_verb_use(light_cluster: Cluster, author: str, case: str) -> None:
    plural, spec, resource, name = REFERENCES[case]
    if plural == "hudiwriters" and resource != "huditables":
        grant(light_cluster, author, "use", "huditables")
    made = MAKE[plural](author, **spec)
    refused = light_cluster.refused(made, user="ann")
    assert f"user 'ann' needs the verb use on {resource} '{name}' in namespace {author}" in refused
    grant(light_cluster, author, "use", resource, "another")
    assert "needs the verb use" in light_cluster.refused(made, user="ann")
    grant(light_cluster, author, "use", resource, name)
    light_cluster.apply(made, user="ann")


def secret_refs(number: int) -> JsonDict:
    return {"secretRefs": [{"name": f"s{n}", "as": "Files"} for n in range(number)]}


def test_a_table_may_name_as_many_secrets_as_its_schema_says(light_cluster: Cluster, author: str) -> None:
    """F246: one expression may ask the authorizer twice."""
    made = table(author, storage=secret_refs(8), imagePullSecrets=[{"name": "s8"}, {"name": "s9"}])
    light_cluster.apply(made)
    light_cluster.kubectl("delete", "ht", "flights", "-n", author)
    for number in range(10):
        assert "user 'ann' needs the verb use on secrets" in light_cluster.refused(made, user="ann")
        grant(light_cluster, author, "use", "secrets", f"s{number}")
    light_cluster.apply(made, user="ann")
    more = table(author, storage=secret_refs(8), imagePullSecrets=[{"name": f"s{n}"} for n in range(8, 12)])
    assert "more than 10 secrets: user 'ann' needs the verb use on all secrets" in light_cluster.refused(
        more, user="ann"
    )
    light_cluster.apply(more)
    grant(light_cluster, author, "use", "secrets")
    light_cluster.apply(table(author, **{**more["spec"], "agent": {"memory": "1Gi"}}), user="ann")


def test_a_change_of_what_pods_are_needs_it_too(light_cluster: Cluster, author: str) -> None:
    """Somebody else's table, with a Secret that ann may not use."""
    storage: JsonDict = {"secretRefs": [{"name": "any", "as": "Env", "prefix": "APP_"}]}
    light_cluster.apply(table(author, storage=storage))
    for change in (
        {"image": "localhost/hudi-operator/spark:dev"},
        {"storage": {**storage, "options": {"fs.s3a.endpoint": "http://mine"}}},
        {"commitCallback": {"url": "https://mine.example/"}},
        {"agent": {"env": [{"name": "A", "value": "b"}]}},
    ):
        message = light_cluster.refused(table(author, **{"storage": storage, **change}), user="ann")
        assert "needs the verb use on secrets 'any'" in message
    for change in ({"suspend": True}, {"savepoints": [{"name": "before"}]}):
        light_cluster.apply(table(author, storage=storage, **change), user="ann")
    light_cluster.kubectl("label", "ht", "flights", "-n", author, "a=b", "--as=ann")


@pytest.mark.parametrize("name", ["hudi-operator-etcd", "load-01234567-1-spark-key", "load-01234567-1-storage-key"])
def test_the_operators_own_secrets_are_nobodys(light_cluster: Cluster, author: str, name: str) -> None:
    spec = {"storage": {"secretRefs": [{"name": name, "as": "Env", "prefix": "APP_"}]}}
    message = light_cluster.refused(table(author, **spec))
    assert (
        f"Secret '{name}': names that begin with hudi-operator- or end with -spark-key or -storage-key are reserved"
        in message
    )
    kafka = {**KAFKA, "security": {"protocol": "SSL", "secretRef": {"name": name}}}
    assert "are reserved for Secrets of the operator" in light_cluster.refused(writer(author, source={"kafka": kafka}))
    jdbc = {**JDBC, "secretRef": {"name": name}}
    assert "are reserved for Secrets of the operator" in light_cluster.refused(writer(author, source={"jdbc": jdbc}))
    for made in (table, writer):
        pulled = made(author, imagePullSecrets=[{"name": "registry"}, {"name": name}])
        assert f"Secret '{name}': names that begin" in light_cluster.refused(pulled)


@pytest.mark.parametrize(("plural", "policy"), [("huditables", "table"), ("hudiwriters", "writer")])
def test_every_field_is_thought_of(plural: str, policy: str) -> None:
    """A new field of a spec is judged, or stands among those that are free."""
    policies = {o["metadata"]["name"]: o for o in render() if o["kind"] == "ValidatingAdmissionPolicy"}
    found = policies[f"hudi-operator-{policy}-references"]
    said = found["metadata"]["annotations"]
    judged, free = (said[f"hudioperator.io/{name}"].split(",") for name in ("fields", "free-fields"))
    assert sorted([*judged, *free]) == sorted(schema(plural, "spec")["properties"])
    (condition,) = found["spec"]["matchConditions"]
    assert [f for f in judged if f"object.spec.{f} != oldObject.spec.{f}" not in condition["expression"]] == []


# ---- images


def test_an_image_must_be_allowed(light_cluster: Cluster, namespace: str) -> None:
    message = light_cluster.refused(table(namespace, image="evil:1"))
    assert (
        "spec.image: 'evil:1' is none of the images that this cluster allows: localhost/hudi-operator/spark:dev"
        in message
    )
    light_cluster.apply(table(namespace, image="localhost/hudi-operator/spark:dev"))
    assert "spec.image: 'evil:1' is none of the images" in light_cluster.refused(writer(namespace, image="evil:1"))
    light_cluster.apply(writer(namespace, image="localhost/hudi-operator/spark:dev"))


def test_images_are_allowed_by_pattern(bare_cluster: Cluster) -> None:
    install(bare_cluster, "--set=config.allowedImages={registry.example/lake/*,exact:1}")
    for image in ("registry.example/lake/spark:7", "exact:1"):
        bare_cluster.apply(table("default", image=image))
    for image in ("registry.example/lakes/spark:7", "exact:12", "registry.example/other"):
        assert "is none of the images" in bare_cluster.refused(table("default", image=image))


# ---- storage credentials that can be revoked


def test_the_mode_credentials_needs_a_broker(bare_cluster: Cluster) -> None:
    """Without one no writer would ever start."""
    storage = {"secretRefs": [{"name": "lake", "as": "S3"}], "options": {"fs.s3a.endpoint": "http://s3:9000"}}
    revocable = table("default", fencing={"mode": "Credentials"}, storage=storage)
    install(bare_cluster)
    message = bare_cluster.refused(revocable)
    assert "spec.fencing.mode: Credentials: this operator has no broker of storage credentials" in message
    bare_cluster.apply(table("default", fencing={"mode": "PodTermination"}, storage=storage))
    assert "has no broker" in bare_cluster.refused(revocable)
    values = "--set=credentialsBroker.url=https://b:8443,credentialsBroker.storeEndpoint=http://s3:9000"
    policies = [o for o in render(DEFAULT_IMAGES, values) if o["kind"] == "ValidatingAdmissionPolicy"]
    bare_cluster.apply(*policies)
    wait_until(lambda: not bare_cluster.run("apply", "-f", "-", stdin=json.dumps(revocable)).returncode)


def test_leaving_the_mode_credentials_needs_the_secrets(light_cluster: Cluster, author: str) -> None:
    """F604: from then on pods of writers get the table's own Secrets, which they had none of."""
    storage = {"secretRefs": [{"name": "lake", "as": "S3"}], "options": {"fs.s3a.endpoint": "http://s3:9000"}}
    light_cluster.apply(table(author, fencing={"mode": "Credentials"}, storage=storage))
    light_cluster.apply(table(author, fencing={"mode": "Credentials"}, storage=storage, suspend=True), user="ann")
    for fencing in ({"fencing": {"mode": "PodTermination"}}, {"fencing": {}}, {}):
        message = light_cluster.change_refused(table(author, storage=storage, **fencing), user="ann")
        assert f"user 'ann' needs the verb use on secrets 'lake' in namespace {author}" in message
    grant(light_cluster, author, "use", "secrets", "lake")
    light_cluster.apply(table(author, storage=storage, fencing={"mode": "PodTermination"}), user="ann")


# ---- decisions


INSTANT = "20260101000000000"
DECISIONS: dict[str, tuple[JsonDict, str, str]] = {
    "lease-only": ({"fencing": {"mode": "LeaseOnly"}}, "lease-only", "spec.fencing.mode: LeaseOnly"),
    "node-deletion": ({"fencing": {"trustNodeDeletion": True}}, "trust-nodes", "spec.fencing.trustNodeDeletion"),
    "taint": ({"fencing": {"trustOutOfServiceTaint": True}}, "trust-nodes", "spec.fencing.trustOutOfServiceTaint"),
    "rollback": (
        {"adoption": {"rollbackInstants": [INSTANT]}},
        "rollback-instants",
        "spec.adoption.rollbackInstants",
    ),
}


@pytest.mark.parametrize("case", DECISIONS)
@pytest.mark.parametrize("first", [True, False], ids=["create", "update"])
def test_a_decision_needs_a_verb_of_its_own(light_cluster: Cluster, author: str, case: str, first: bool) -> None:
    spec, verb, field = DECISIONS[case]
    if not first:
        light_cluster.apply(table(author), user="ann")
    refused = light_cluster.refused(table(author, **spec), user="ann")
    assert f"{field}: user 'ann' needs the verb {verb} on huditables in namespace {author}" in refused
    light_cluster.apply(table(author, **spec))
    # It stands; others may edit the rest.
    light_cluster.apply(table(author, **spec, suspend=True), user="ann")
    light_cluster.kubectl("delete", "ht", "flights", "-n", author)
    grant(light_cluster, author, verb, "huditables")
    light_cluster.apply(table(author, **spec), user="ann")


def config_map(namespace: str, name: str, text: str) -> JsonDict:
    meta = {"namespace": namespace, "name": name}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {KEY: text}}


def test_defaults_of_a_namespace_need_a_verb_of_their_own(light_cluster: Cluster, author: str) -> None:
    """They change pods of everybody's writers there: the right to ConfigMaps is not enough, nor is
    that to writers.
    """
    verbs = ["get", "create", "update", "patch", "delete"]
    allow(light_cluster, author, "config-maps", {"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs})
    made, changed = (config_map(author, CONFIG_MAP, f"startDeadlineSeconds: {n}") for n in (60, 90))
    told = f"user 'ann' needs the verb {VERB} on hudiwriters in namespace {author}"
    assert told in light_cluster.refused(made, user="ann")
    light_cluster.apply(config_map(author, "settings", "x"), user="ann")
    light_cluster.apply(made)
    assert told in light_cluster.refused(changed, user="ann")
    delete = ("delete", "configmap", CONFIG_MAP, "-n", author, "--as=ann")
    assert told in light_cluster.run(*delete).stdout
    grant(light_cluster, author, VERB, "hudiwriters")
    light_cluster.apply(changed, user="ann")
    light_cluster.kubectl(*delete)
    light_cluster.apply(made)
    light_cluster.kubectl("delete", "namespace", author, "--wait=false")
    wait_until(lambda: "NotFound" in light_cluster.run("get", "namespace", author).stdout, seconds=60)


def test_unfreezing_needs_a_verb_of_its_own(light_cluster: Cluster, author: str) -> None:
    a_word_needs_its_verb(light_cluster, author, "unfreeze")


def test_taking_a_path_over_needs_a_verb_of_its_own(light_cluster: Cluster, author: str) -> None:
    a_word_needs_its_verb(light_cluster, author, "take-over")


def a_word_needs_its_verb(cluster: Cluster, author: str, verb: str) -> None:
    """An annotation of that name: to set or change it, not to keep it."""
    cluster.apply(table(author), user="ann")

    def say(word: str) -> Any:
        annotation = f"hudioperator.io/{verb}={word}"
        return cluster.run("annotate", "ht", "flights", annotation, "--overwrite", "-n", author, "--as=ann")

    refused = say("7")
    assert refused.returncode != 0
    assert f"the annotation hudioperator.io/{verb}: user 'ann' needs the verb {verb} on huditables" in refused.stdout
    cluster.kubectl("annotate", "ht", "flights", "-n", author, f"hudioperator.io/{verb}=7")
    cluster.kubectl("label", "ht", "flights", "-n", author, "a=b", "--as=ann")
    assert say("8").returncode != 0
    grant(cluster, author, verb, "huditables")
    assert say("8").returncode == 0

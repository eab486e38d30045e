"""The corpus of attacks and a sample of hostile specs, put to a real API server with the CRDs: what
the operator refuses at launch is refused at `kubectl apply`, wherever the CRDs can know it.
"""

from __future__ import annotations

from typing import Any

from tests.support import seeds
from tests.support.hostile.attacks import ATTACKS, merged, writer_spec
from tests.support.hostile.grammar import Generator
from tests.support.hostile.launch import made, refusal
from tests.support.hostile.vocabulary import PREFIX
from tests.tiers.component.crds.cluster import Cluster, create

BY_THE_OPERATOR = (
    "not below a prefix",
    "not on the allow-list",
    "has another scheme",
    "is not allowed",
    "overlaps with the folder",
    "allows only",
)
"""Rules of the operator's configuration, and of objects together."""
OF_A_PERSON = "ValidatingAdmissionPolicy 'hudi-operator-attestations'"
"""Who attests is asked of the person who applies an object; launch knows nobody."""
SPECS = 60


def objects(attack: dict[str, Any]) -> list[dict[str, Any]]:
    table = {"path": f"{PREFIX}/t", "recordKeyFields": ["id"], "storage": {}}
    source = {"files": {"format": "csv", "paths": [f"{PREFIX}/in"]}}
    writer = writer_spec({"tableRef": {"name": "flights"}, "source": source}, attack)
    return [
        made("HudiTable", "flights", merged(table, attack["table"])) if "table" in attack else {},
        made("HudiWriter", "load", writer) if "writer" in attack else {},
    ]


def refused(cluster: Cluster, one: dict[str, Any], validate: str = "Strict") -> str:
    """What the API server says; empty when it would accept the object."""
    sent = {"apiVersion": "hudioperator.io/v1alpha1", **one}
    sent["metadata"] = {"namespace": "default", "name": one["metadata"]["name"]}
    code, said = create(cluster, sent, validate=validate)
    return said if code else ""


def test_attacks_are_refused_at_apply(light_cluster: Cluster) -> None:
    passed = []
    for attack in ATTACKS:
        said = "".join(refused(light_cluster, one) for one in objects(attack) if one)
        if "refused" not in attack:
            assert said == "", f"{attack['name']}: {said}"
        elif (
            not said
            and not {"late", "pruned"} & attack.keys()
            and not any(words in attack["refused"] for words in BY_THE_OPERATOR)
        ):
            passed.append(attack["name"])
    assert passed == []


def test_what_the_api_server_refuses_does_not_launch(light_cluster: Cluster) -> None:
    """Of random specs: the checks at launch are no weaker than those at apply."""
    first = seeds.drawn()
    print(f"{SPECS} hostile specs from {seeds.VARIABLE}={first} on")
    for seed in range(first, first + SPECS):
        table, writer = Generator(seed).objects()
        # A field that is in no CRD is taken away.
        said = refused(light_cluster, table, "Ignore") or refused(light_cluster, writer, "Ignore")
        if said:
            assert refusal(table, writer) or OF_A_PERSON in said, f"seed {seed}: {said}"

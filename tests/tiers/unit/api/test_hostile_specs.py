"""What a spec says stays where it belongs: random specs, and every attack that was thought of or
found (`attacks.yaml`).

Each run draws a new seed and prints it (`RANDOM_SEED` repeats one), and replays the seeds of
`seeds.yaml`. A spec that got through is told, with the line to add there. The rule:

* what it says becomes a case of `attacks.yaml`, which does not depend on the grammar;
* its line goes into `seeds.yaml`: `why` is what was wrong, or its finding, `refused` a part of the
  message that refuses it now; without it the objects launch, and nothing is wrong with them;
* a new family of fields gets a seed that launches with it: `reaches` names its fields. A seed says
  the same as long as the grammar of its own families is the same. When a test says that it does
  not, `python -m tests.support.hostile.reach FIELD...` draws another one.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import crds, seeds
from tests.support.hostile import reach
from tests.support.hostile.attacks import ATTACKS, merged, writer_spec
from tests.support.hostile.grammar import Generator
from tests.support.hostile.launch import made, refusal
from tests.support.hostile.oracle import wrong
from tests.support.hostile.readers import alternatives, expanded, hudi_file, properties
from tests.support.hostile.vocabulary import PREFIX

SPECS = 10_000
DRAWN = 20_000
"""Specs in which each field of the CRDs is found; about 5,000 are enough."""
FOLDER = Path(__file__).parent
SEEDS: list[dict[str, Any]] = yaml.safe_load((FOLDER / "seeds.yaml").read_text())
TEMPLATES = (
    "HudiWriter.spec.driver.podTemplate",
    "HudiWriter.spec.executors.podTemplate",
    "HudiTable.spec.agent.podTemplate",
    "HudiTable.spec.agent.executors.podTemplate",
)
"""Places of one schema, of which one part of the grammar draws."""
NOT_DRAWN: dict[str, str] = {}
"""Fields that the grammar leaves out, each with the reason why it can mean nothing else."""


def test_ten_thousand_specs(capsys: pytest.CaptureFixture[str]) -> None:
    first = seeds.drawn()
    with capsys.disabled():
        print(f"\n{SPECS} hostile specs from {seeds.VARIABLE}={first} on", flush=True)
    kinds: Counter[str] = Counter()
    for seed in range(first, first + SPECS):
        table, writer = Generator(seed).objects()
        refused = refusal(table, writer)
        found = "" if refused else wrong(table, writer)
        line = f"- {{seed: {seed}, why: {found.partition(' ')[0]!r}}}"
        assert not found, f"{found}\nfor seeds.yaml: {line}\nfor attacks.yaml: {table['spec']} {writer['spec']}"
        kinds[refused.partition(":")[0].partition("[")[0] if refused else "launched"] += 1
    assert kinds["launched"] > SPECS / 10, kinds
    assert len(kinds) > 30, f"the grammar no longer reaches the checks: {kinds}"


def test_the_grammar_draws_every_field_of_the_crds() -> None:
    """A new field of a CRD is drawn, or `NOT_DRAWN` says why not."""
    known = reach.fields()
    below = {place: {path.removeprefix(place) for path in known if path.startswith(f"{place}.")} for place in TEMPLATES}
    assert len({frozenset(paths) for paths in below.values()}) == 1, "podTemplates of different schemas"

    def one(paths: set[str]) -> set[str]:
        return {
            re.sub("|".join(map(re.escape, sorted(TEMPLATES, reverse=True))), "podTemplate", path) for path in paths
        }

    found: set[str] = set()
    for seed in range(DRAWN):
        found |= reach.drawn(*Generator(seed).objects())
        if seed % 100 == 0 and one(known) - NOT_DRAWN.keys() <= one(found):
            break
    assert {*TEMPLATES, *(f"{place}{part}" for place in TEMPLATES for part in (".metadata", ".spec"))} <= found

    assert sorted(one(known) - one(found) - NOT_DRAWN.keys()) == [], "fields that the grammar never draws"
    assert sorted(NOT_DRAWN.keys() & one(found)) == [], "fields that it draws"
    assert len(one(known)) > 350


@pytest.mark.parametrize("kept", SEEDS, ids=lambda kept: f"{kept['seed']}: {kept['why']}")
def test_a_seed_that_was_kept(kept: dict[str, Any]) -> None:
    table, writer = Generator(kept["seed"]).objects()
    missing = set(kept.get("reaches", ())) - reach.drawn(table, writer)
    assert not missing, f"the seed says something else by now: draw another one that reaches {sorted(missing)}"
    said = refusal(table, writer)
    if "refused" in kept:
        assert kept["refused"] in said
    else:
        assert said == ""
        assert wrong(table, writer) == ""


def test_a_field_that_is_not_drawn_is_noticed() -> None:
    """The walk sees a field of an object, of an item of a list and of an entry of a map."""
    node = {
        "properties": {
            "a": {"items": {"properties": {"b": {}, "c": {}}}},
            "m": {"additionalProperties": {"type": "string"}},
        }
    }
    assert {path for path, _ in crds.fields(node, "spec")} == {
        "spec.a", "spec.a[]", "spec.a[].b", "spec.a[].c", "spec.m", "spec.m{}",
    }  # fmt: skip
    table = made("HudiTable", "t", {"savepoints": [{"name": "a", "x": 1}], "hudiOptions": {"k": "v"}, "y": 1})
    at = "HudiTable.spec"
    assert reach.drawn(table) == {
        f"{at}.savepoints", f"{at}.savepoints[]", f"{at}.savepoints[].name",
        f"{at}.hudiOptions", f"{at}.hudiOptions{{}}",
    }  # fmt: skip


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack["name"])
def test_an_attack(attack: dict[str, Any]) -> None:
    """It is refused by the field that it uses, or what it says has no effect."""
    table = {"path": f"{PREFIX}/t", "recordKeyFields": ["id"], "storage": {}}
    writer = {"tableRef": {"name": "flights"}, "source": {"files": {"format": "csv", "paths": [f"{PREFIX}/in"]}}}
    writer |= {"driver": {}, "executors": {"instances": 1}}
    ordinary = (made("HudiTable", "flights", table), made("HudiWriter", "load", writer))
    assert refusal(*ordinary) == ""
    assert wrong(*ordinary) == ""
    attacking = made("HudiTable", "flights", merged(table, attack.get("table", {})))
    objects = (attacking, made("HudiWriter", "load", writer_spec(writer, attack)))
    if "refused" in attack:
        assert attack["refused"] in refusal(*objects)
    else:
        assert refusal(*objects) == ""
        assert wrong(*objects) == ""


def test_the_readers_read_what_java_hudi_and_the_kubelet_read() -> None:
    assert properties("a=b\n#c=d\n e : f\\\n   g\nh\\:i=j\\u0041\\n\nk\n") == {
        "a": "b",
        "e": "fg",
        "h:i": "jA\n",
        "k": "",
    }
    assert hudi_file("a=b=c\n#d=e\n f = g h \n") == {"a": "b=c", "f": "g h"}
    assert expanded("$$(A) $(A) $(B) $", {"A": "1"}) == "$(A) 1 $(B) $"
    assert {*alternatives("s3a://x/{a,b/{c,..}}/d")} == {"s3a://x/a/d", "s3a://x/b/c/d", "s3a://x/b/../d"}

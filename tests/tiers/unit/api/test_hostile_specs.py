"""What a spec says stays where it belongs: random specs, and every attack that was thought of or
found (`attacks.yaml`).

Each run draws a new seed and prints it (`RANDOM_SEED` repeats one). A spec that got through is
told; what it says becomes a case of `attacks.yaml`, which is played in each run.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import seeds
from tests.support.hostile_specs import (
    PREFIX,
    Generator,
    alternatives,
    expanded,
    hudi_file,
    made,
    properties,
    refusal,
    wrong,
)

SPECS = 10_000
FOLDER = Path(__file__).parent
ATTACKS: list[dict[str, Any]] = yaml.safe_load((FOLDER / "attacks.yaml").read_text())


def test_ten_thousand_specs(capsys: pytest.CaptureFixture[str]) -> None:
    first = seeds.drawn()
    with capsys.disabled():
        print(f"\n{SPECS} hostile specs from {seeds.VARIABLE}={first} on", flush=True)
    kinds: Counter[str] = Counter()
    for seed in range(first, first + SPECS):
        table, writer = Generator(seed).objects()
        refused = refusal(table, writer)
        found = "" if refused else wrong(table, writer)
        assert not found, f"seed {seed}: {found}; a case for attacks.yaml: {table['spec']} {writer['spec']}"
        kinds[refused.partition(":")[0].partition("[")[0] if refused else "launched"] += 1
    assert kinds["launched"] > SPECS / 10, kinds
    assert len(kinds) > 15, f"the grammar no longer reaches the checks: {kinds}"


def merged(base: Any, change: Any) -> Any:
    if isinstance(base, dict) and isinstance(change, dict):
        return {**base, **{key: merged(base.get(key), value) for key, value in change.items()}}
    return change


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack["name"])
def test_an_attack(attack: dict[str, Any]) -> None:
    """It is refused by the field that it uses, or what it says has no effect."""
    table = {"path": f"{PREFIX}/t", "recordKeyFields": ["id"], "storage": {}}
    writer = {"tableRef": {"name": "flights"}, "source": {"files": {"format": "csv", "paths": [f"{PREFIX}/in"]}}}
    writer |= {"driver": {}, "executors": {"instances": 1}}
    ordinary = (made("HudiTable", "flights", table), made("HudiWriter", "load", writer))
    assert refusal(*ordinary) == ""
    assert wrong(*ordinary) == ""
    changed = merged(writer, attack.get("writer", {}))
    if "source" in attack.get("writer", {}):
        changed["source"] = attack["writer"]["source"]
    attacking = made("HudiTable", "flights", merged(table, attack.get("table", {})))
    objects = (attacking, made("HudiWriter", "load", changed))
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

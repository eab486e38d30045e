"""The list of Hudi's options, which the Java module applies at each write, compared with the
options that a HudiWriter and a HudiTable may set: by the rules of the contract, and by the CRD.
"""

from __future__ import annotations

import fnmatch
import re
from importlib import resources

from hudi_contract import options as contract
from hudi_operator.api import options
from tests.support import crds

BESIDE_THE_TABLE = {"off", "operation", "schema", "name", "sql", "duplicates"}
"""Free at the write because Hudi sets it itself, because the runtime derives it, or because it does
nothing, and still not for a spec.
"""
TABLE = r"^hoodie\.(" + "|".join(re.escape(family) for family in contract.FAMILIES_OF_THE_TABLE) + r")\."
MATCHES = re.compile(r"matches\('([^']*)'\)")


def listed() -> list[tuple[str, str, str]]:
    """Name, rule and detail of each option."""
    text = resources.files("hudi_contract").joinpath("hudi_options.tsv").read_text(encoding="utf-8")
    return [
        (name, rule, detail)
        for name, rule, detail in (line.split("\t") for line in text.splitlines() if line and not line.startswith("#"))
    ]


def test_the_list_is_well_formed() -> None:
    names = [name for name, _, _ in listed()]
    assert len(names) == len(set(names))
    options_of_hudi = {name for name, rule, _ in listed() if rule in {"free", "fixed"}}
    assert {rule for _, rule, _ in listed()} == {"free", "fixed", "alias"}
    assert not [name for name, rule, detail in listed() if rule == "alias" and detail not in options_of_hudi]
    assert not [name for name, rule, detail in listed() if rule == "free" and not detail], "a free option has a reason"
    rules = [rule for _, rule, _ in listed()]
    assert rules == sorted(rules, key=lambda rule: rule == "alias"), "another name comes after its option"


def test_a_write_is_not_free_to_say_what_the_operator_owns() -> None:
    free = [name for name, rule, detail in listed() if rule == "free" and detail not in BESIDE_THE_TABLE]
    assert not [name for name in free if "owned by the operator" in options.hudi_problem({name: "x"})]


def test_what_a_writer_may_say_is_an_option_of_hudi() -> None:
    names = [name.lower() for name, _, _ in listed()]
    dead = [
        pattern
        for pattern in (*options.ALLOWED_HUDI, *options.ALLOWED_OF_THE_TABLE)
        if not fnmatch.filter(names, pattern)
    ]
    assert not dead, "Hudi has no such option"


def test_no_writer_says_otherwise_what_every_write_must_say() -> None:
    """F93: what the Java module refuses a program because it decides what becomes of the table, a
    HudiWriter may not say either.
    """
    fixed = [name for name, rule, _ in listed() if rule == "fixed"]
    assert not [name for name in fixed if not options.hudi_problem({name: "x"})]


def patterns(message: str) -> list[str]:
    """Patterns of the rule on spec.hudiOptions of a HudiWriter whose message contains this text.

    Those of the rule itself, then those of its messageExpression.
    """
    rules = crds.schema("hudiwriters", "spec")["properties"]["hudiOptions"]["x-kubernetes-validations"]
    (rule,) = (rule for rule in rules if message in rule.get("message", ""))
    found = MATCHES.findall(rule["rule"]) + MATCHES.findall(rule["messageExpression"])
    return [pattern.replace("\\\\", "\\") for pattern in found]


def test_the_crd_has_the_families_of_the_contract() -> None:
    owned = patterns("is set by the operator")
    assert patterns("concerns the whole table") == [TABLE, owned[0], TABLE, owned[0]]


def test_the_crd_refuses_each_option_of_hudi_that_is_the_tables() -> None:
    table, owned = (re.compile(patterns(text)[0]) for text in ("concerns the whole table", "is set by the operator"))
    names = [name.lower() for name, _, _ in listed()]
    tables = [name for name in names if contract.rule_for(name, contract.OF_THE_TABLE)]
    assert len(tables) > 50
    assert [name for name in names if table.search(name)] == tables
    assert [name for name in names if owned.search(name) and not options.hudi_problem({name: "x"})] == [], (
        "the API server refuses what the operator allows"
    )


def test_a_rule_has_a_normalized_pattern_and_stands_once() -> None:
    patterns_ = [rule.pattern for rule in (*contract.OWNED, *contract.OF_THE_TABLE)]
    assert len(patterns_) == len(set(patterns_)) + len({"hoodie.keep.*", "hoodie.log.compaction.*"})
    assert all(pattern == contract.normal(pattern) for pattern in patterns_)


def test_the_operators_rule_comes_before_the_tables() -> None:
    found = contract.writer_rule("Spark.Hoodie.Clean.Failed.Writes.Policy")
    assert found is not None
    assert found in contract.OWNED
    assert contract.writer_rule("hoodie.parquet.max.file.size") is None

"""The list of Hudi's options, which the Java module goes by at each write, beside what a HudiWriter
and a HudiTable may say.
"""

from __future__ import annotations

import fnmatch
from importlib import resources

from hudi_operator.api import options

BESIDE_THE_TABLE = {"off", "operation", "schema", "name", "sql", "duplicates"}
"""Free at the write because Hudi sets it itself, because the runtime derives it, or because it does
nothing, and still not for a spec.
"""


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

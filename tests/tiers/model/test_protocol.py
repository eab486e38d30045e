"""The protocol holds in every configuration.

Every broken design fails with the invariant that it breaks.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.model import configurations, variants
from tests.support.model.invariants import INVARIANTS
from tests.support.model.rules import Configuration, Rules
from tests.support.model.search import explore
from tests.support.model.variants import Variant


@pytest.mark.parametrize("configuration", configurations.ALL.values(), ids=lambda c: c.name)
def test_the_protocol_holds_and_can_always_be_settled(configuration: Configuration) -> None:
    result = explore(configuration)
    assert result.complete
    assert result.counter_examples == {}


LATE = frozenset({"I9"})
"""A search breadth first comes to it last: of credentials that takes most of the model's time."""


@pytest.mark.parametrize("variant", variants.ALL, ids=lambda v: v.name)
def test_a_design_without_a_rule_fails(variant: Variant) -> None:
    breaks = variant.breaks - LATE if variant.configuration.credentials else variant.breaks
    result = explore(variant.configuration, until=breaks)
    assert breaks <= result.counter_examples.keys()
    assert all(result.counter_examples[name] for name in breaks)


@pytest.mark.extra
@pytest.mark.parametrize(
    "variant", [v for v in variants.ALL if v.configuration.credentials and v.breaks & LATE], ids=lambda v: v.name
)
def test_a_design_without_a_rule_fails_in_the_end(variant: Variant) -> None:
    result = explore(variant.configuration, until=variant.breaks)
    assert variant.breaks <= result.counter_examples.keys()


@pytest.mark.parametrize("rule", ["next_attempt_waits", "next_attempt_after_fence", "progress_check"])
def test_a_successor_is_safe_without_any_one_of_its_rules(rule: str) -> None:
    """A program has no check of its progress; whoever has one is safe though it reads too early."""
    result = explore(replace(configurations.ATTEMPTS, rules=Rules(**{rule: False})))
    assert result.complete
    assert result.counter_examples == {}


def test_every_invariant_is_broken_by_some_variant() -> None:
    """An invariant that no variant breaks would be a predicate that cannot fail."""
    broken = set().union(*(v.breaks for v in variants.ALL))
    assert broken >= {*INVARIANTS, "I6"} - {"I8"}
    acknowledged = explore(variants.REQUIRED[1].configuration, until=frozenset({"I8"}))
    assert "I8" in acknowledged.counter_examples

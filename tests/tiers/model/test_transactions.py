"""The model, the traces and the code read the same transactions:
operator/hudi_contract/protocol.json.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.model import configurations as on
from tests.support.model.rules import Configuration, Rules
from tests.support.model.search import explore
from tests.support.model.transactions import _APPLY, COMPARES, EFFECTS, NOT_SEARCHED, TRANSACTIONS
from tests.support.trace import rules as trace_rules
from tests.support.trace import state as trace_state

DATA: dict[str, Any] = json.loads((Path(__file__).parents[3] / "operator/hudi_contract/protocol.json").read_text())

# Without this compare the search finds the invariant broken, in this configuration.
NEEDED: dict[tuple[str, str], tuple[Configuration, str]] = {
    ("register", "version(admit/<attempt>) > 0"): (on.REQUESTS, "I6"),
    ("acquire", "version(lock) = 0"): (on.REQUESTS, "I1"),
    ("acquire", "version(fence/<inc>) = 0"): (on.SESSION, "I2"),
    ("acquire", "mod(alive/<inc>) = m"): (on.SESSION, "I1"),
    ("acquire", "mod(gate) = g"): (on.GATE, "I1"),
    ("acquire-resolve", "value(lock) = mine"): (on.SESSION, "I1"),
    ("record-instant", "create(lock) = token"): (on.LATE, "I6"),
    ("publish", "mod(instant/<t>) = mine and Pending"): (on.STREAMING, "I3"),
    ("claim", "mod(instant/<c>) = seen"): (on.SERVICES, "I12"),
    ("release", "create(lock) = token"): (on.REQUESTS, "I1"),
    ("fence", "version(fence/<inc>) = 0"): (on.UPGRADE, "I7"),
    ("settle-update", "mod(settle/<inc>) = seen"): (on.UPGRADE, "I7"),
    ("unlock", "create(lock) = seen and lock owned by inc"): (on.UPGRADE, "I1"),
}
# A second line of defence: alone, its loss breaks nothing, because of another rule.
SECOND_LINE = {
    ("register", "version(fence/<inc>) = 0"): "the fence deletes the admission in the same transaction",
    (
        "keepalive",
        "version(fence/<inc>) = 0",
    ): "a heartbeat gives a fenced incarnation nothing: acquire compares the fence itself",
    (
        "keepalive",
        "version(writer/<inc>) > 0",
    ): "without a registration there is nobody left who would use the heartbeat",
    ("record-instant", "version(instant/<t>) = 0"): "instant times grow with tokens, so none comes twice",
    ("publish", "create(lock) = token"): "nobody deletes the lock of a process before its death is proven",
    (
        "publish",
        "mod(clock) = seen",
    ): "the search executes a request once; one that is executed again after later promises is in PublishTest",
    (
        "publish",
        "version(fence/<inc>) = 0",
    ): "what a fenced owner still publishes has landed or died before anything is unlocked",
    (
        "abandon",
        "mod(instant/<t>) = mine and Pending",
    ): "the agent keeps what it sees completed, whatever the record says",
    ("claim", "version(fence/<inc>) = 0"): "a claim of a settled incarnation is taken over at once",
    ("clean-exit", "version(fence/<inc>) = 0"): "settling starts from the settle record, not from the registration",
    ("fence", "version(alive/<inc>) = 0 when the reason is LeaseGone"): "only a needless fence of one that came back",
    ("unlock", "version(fence/<inc>) > 0"): "the phase Draining is reached through the fence only",
    ("settled", "mod(settle/<inc>) = seen"): "the phases after Swept do not go back",
    ("collect", "mod(settle/<inc>) = seen"): "a record that is Settled changes no more",
    ("collect", "version(writer/<inc>) = 0"): "the registration goes when the record becomes Settled",
}


def test_the_same_transactions_and_compares() -> None:
    assert {name: tuple(entry["compare"]) for name, entry in DATA["transactions"].items()} == TRANSACTIONS


def test_the_same_effects() -> None:
    assert {name: tuple(entry["then"]) for name, entry in DATA["transactions"].items()} == EFFECTS
    assert {name: entry["else"] for name, entry in DATA["transactions"].items() if "else" in entry} == {
        "acquire-resolve": ["put alive/<inc> lease L"]
    }


def test_every_key_that_a_transaction_names_is_declared() -> None:
    declared = {entry["path"].partition("/")[0] for entry in DATA["keys"].values()}
    named = set()
    for texts in (*TRANSACTIONS.values(), *EFFECTS.values()):
        for text in texts:
            named.update(re.findall(r"\((\w+)[/)]", text))
            named.update(re.findall(r"^(?:put|get|delete) (\w+)", text))
    assert named == declared - {"request", "seen", "report", "done"}


def test_every_compare_has_a_meaning_in_the_search_and_in_traces() -> None:
    texts = {text for compares in TRANSACTIONS.values() for text in compares}
    assert texts <= COMPARES.keys()
    assert texts <= trace_state.COMPARES.keys()
    assert {
        text for text in texts if trace_state.COMPARES[text].__code__.co_consts != (None,)
    } <= trace_state.BROKEN.keys()


def test_every_transaction_is_searched_or_excused_and_replayed() -> None:
    assert TRANSACTIONS.keys() == _APPLY.keys() | NOT_SEARCHED.keys()
    assert TRANSACTIONS.keys() <= trace_rules._EFFECTS.keys() | trace_rules.WITHOUT_EFFECT


def test_every_compare_is_needed_or_a_second_line() -> None:
    searched = {(name, text) for name, texts in TRANSACTIONS.items() if name not in NOT_SEARCHED for text in texts}
    assert searched == NEEDED.keys() | SECOND_LINE.keys()
    assert not NEEDED.keys() & SECOND_LINE.keys()


@pytest.mark.parametrize(("transaction", "compare"), NEEDED, ids=lambda x: x)
def test_without_the_compare_the_protocol_breaks(transaction: str, compare: str) -> None:
    configuration, invariant = NEEDED[transaction, compare]
    rules = Rules(without=frozenset({(transaction, compare)}))
    result = explore(replace(configuration, rules=rules, reduced=False), until=frozenset({invariant}))
    assert invariant in result.counter_examples

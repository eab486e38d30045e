"""The specification in Quint holds in simulation, and each design that lacks a rule fails.

Every run has the same budget, `SAMPLES` runs of at most `STEPS` steps, from a seed that is drawn
and printed (`RANDOM_SEED=N` repeats it). How often each design breaks its invariant, and so how
unlikely it is that none of `SAMPLES` runs does, is in docs/design/spec/README.md.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT, seeds

SPEC = ROOT / "docs/design/spec"
LOCK = (SPEC / "lock.qnt").read_text()
VARIANTS = (SPEC / "variants.qnt").read_text()
CONTRACT: dict[str, Any] = json.loads((ROOT / "operator/hudi_contract/protocol.json").read_text())
CACHE = Path(os.environ.get("HUDI_OPERATOR_CACHE", Path.home() / ".cache" / "hudi-operator"))

Simulation = Callable[..., subprocess.CompletedProcess[str]]
SAMPLES, STEPS = 600, 80
SEED = seeds.drawn()

BREAKS = {
    "lease_lock_and_rollback_under_the_lock": "I4_no_lost_commit",
    "no_fence_before_unlock": "I2_fenced_never_acquires",
    "drain_shorter_than_a_request_lives": "I3_no_commit_after_judgement",
    "unlock_without_proof_of_executors": "I5_nothing_stays",
    "release_with_an_unknown_publication": "I9_no_lost_update",
    "successor_neither_waits_nor_compares": "I9_no_doubled_commit",
    "no_conflict_check": "I9_no_lost_update",
}
"""Designs that must fail, each with the invariant that the simulation has to find broken."""
ALSO_BREAKS = {
    "I1_single_holder_at_publish": "drain_shorter_than_a_request_lives",
    "I1_one_owner": "lease_lock_and_rollback_under_the_lock",
    "I7_only_recorded": "lease_lock_and_rollback_under_the_lock",
    "I8_acknowledged_stays": "lease_lock_and_rollback_under_the_lock",
    "I11_proofs_are_true": "unlock_without_proof_of_executors",
}
"""The other invariants, each with a design that breaks it, too."""
NEVER_BROKEN = {"I1_nobody_behind_the_gate": "the gate has no design that fails: README.md says why"}

INVARIANTS = re.findall(r"^  val (I\d+_\w+)", LOCK, re.MULTILINE)
WITNESSES = re.findall(r"^  val (W_\w+)", LOCK, re.MULTILINE)


def quint(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Quint on the designs; `typescript` is its evaluator in JavaScript, which needs nothing
    but the package.
    """
    if shutil.which("node") is None:
        pytest.fail("no node on this machine: run hack/setup/deps as root")
    program = CACHE / "bin" / "quint"
    if not program.exists():
        pytest.fail(f"{program} is missing: run hack/quint/fetch-quint")
    command = (str(program), arguments[0], "variants.qnt", *arguments[1:])
    return subprocess.run(command, cwd=SPEC, capture_output=True, text=True, timeout=600)


@pytest.fixture
def simulate(capsys: pytest.CaptureFixture[str]) -> Simulation:
    """Simulate one design; the command is printed, to be repeated by hand."""

    def run(design: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        budget = ("--max-samples", str(SAMPLES), "--max-steps", str(STEPS), "--seed", hex(SEED), "--verbosity", "1")
        words = ("run", "--main", design, "--backend", "typescript", *budget, *arguments)
        with capsys.disabled():
            print(f"\n{seeds.VARIABLE}={SEED}: quint {words[0]} variants.qnt {' '.join(words[1:])}", flush=True)
        return quint(*words)

    return run


def test_the_specification_is_well_typed() -> None:
    done = quint("typecheck")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_protocol_holds_and_comes_to_what_it_is_about(simulate: Simulation) -> None:
    """A run in which nothing happens would hold as well: each witness has to be seen."""
    done = simulate("sound", "--invariants", *INVARIANTS, "--witnesses", *WITNESSES)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "[ok] No violation found" in done.stdout
    told = rf"^(W_\w+) was witnessed in (\d+) trace\(s\) out of {SAMPLES} explored"
    seen = dict(re.findall(told, done.stdout, re.MULTILINE))
    assert seen.keys() == set(WITNESSES)
    assert [name for name, times in seen.items() if times == "0"] == []


@pytest.mark.parametrize("design", BREAKS)
def test_a_design_that_lacks_a_rule_fails(simulate: Simulation, design: str) -> None:
    done = simulate(design, "--invariant", BREAKS[design])
    assert done.returncode == 1, done.stdout + done.stderr
    assert "[violation] Found an issue" in done.stdout


@pytest.mark.extra
@pytest.mark.parametrize("invariant", ALSO_BREAKS)
def test_every_other_invariant_can_be_broken(simulate: Simulation, invariant: str) -> None:
    done = simulate(ALSO_BREAKS[invariant], "--invariant", invariant)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "[violation] Found an issue" in done.stdout


def test_every_rule_is_left_out_by_some_design_and_every_invariant_is_broken() -> None:
    rules = set(re.findall(r"^  const ([A-Z_]+):", LOCK, re.MULTILINE)) - {"STORY"}
    modules = {
        name: dict(re.findall(r"([A-Z_]+) = ([^,\n]+)", body))
        for name, body in re.findall(r"^module (\w+) \{(.*?)^\}", VARIANTS, re.MULTILINE | re.DOTALL)
    }
    assert modules.keys() == {"sound", *BREAKS}
    sound = modules.pop("sound")
    assert sound["STORY"] == '""', "all of them"
    assert sound.keys() == rules | {"STORY"}
    assert "false" not in sound.values()
    left_out = {name: {rule for rule in rules if rules_of[rule] != sound[rule]} for name, rules_of in modules.items()}
    assert all(left_out.values()), "a design that is the protocol"
    assert set().union(*left_out.values()) == rules
    assert {*BREAKS.values(), *ALSO_BREAKS, *NEVER_BROKEN} == set(INVARIANTS)


COMPARES_LEFT_OUT = {
    ("publish", "mod(clock) = seen"): "times are not in it (I10)",
    ("gate-put", "mod(gate of T2) = seen for each T2 whose folder overlaps, until the gate was open"): "one table",
}
TRANSACTIONS_LEFT_OUT = {
    "enqueue": "the queue is for fairness only",
    "record-savepoint": "no savepoints",
    "claim": "one agent, and no table services (I12)",
    "claim-unrecorded": "no instant loses its record",
    "done": "the operator removes the record of an Abandoned instant, in the action `forgets`",
    "admit": "one operator puts it, once, in the action `admits`",
    "delete-admit": "no attempt dies before it has registered",
    "adopt": "the table is new",
    "settled": "its one compare is that of settle-update, in the action `settles`",
    "collect": "settle records stay",
}
KEYS_LEFT_OUT = {
    "request": "no table services",
    "seen": "proofs from a node are not in it",
    "queue": "for fairness only",
    "clock": "times are not in it (I10)",
    "report": "never an input of a decision",
    "done": "no one-off actions",
}


def test_the_words_are_those_of_the_contract() -> None:
    """A key, a phase or a compare that is renamed in the contract is renamed here, too."""
    compares = {
        name.replace("_", "-"): re.findall(r'compare\("([^"]+)"', body)
        for name, body in re.findall(r"^  pure def may_(\w+)\((.*?)\n\n", LOCK, re.MULTILINE | re.DOTALL)
    }
    assert len(compares) >= 10
    for name, words in compares.items():
        of_the_contract = CONTRACT["transactions"][name]["compare"]
        assert words == [word for word in of_the_contract if (name, word) not in COMPARES_LEFT_OUT], name
    assert compares.keys() | TRANSACTIONS_LEFT_OUT.keys() == CONTRACT["transactions"].keys()
    assert not compares.keys() & TRANSACTIONS_LEFT_OUT.keys()
    assert all(word in CONTRACT["transactions"][name]["compare"] for name, word in COMPARES_LEFT_OUT)

    section = re.search(r"// keys of etcd\n(.*?)\n    // requests on the wire", LOCK, re.DOTALL)
    assert section is not None
    keys = set(re.findall(r"^    (\w+):", section[1], re.MULTILINE)) - {"rev", "outcome"}
    assert keys == CONTRACT["keys"].keys() - KEYS_LEFT_OUT.keys()

    def alternatives(kind: str) -> list[str]:
        (line,) = re.findall(rf"^  type {kind} = (.*)$", LOCK, re.MULTILINE)
        return [word.strip() for word in line.split("|")[1:]]  # the first one: there is none

    assert alternatives("Record") == CONTRACT["words"]["InstantState"]
    assert alternatives("Phase") == [w for w in CONTRACT["words"]["Phase"] if w not in ("RollingBack", "Swept")]
    assert alternatives("Outcome") == [w for w in CONTRACT["words"]["Outcome"] if w != "Reexecuted"]


def test_every_invariant_bears_the_number_of_the_protocol() -> None:
    """And the page says which numbers the specification leaves out."""
    protocol = (ROOT / "docs/design/protocol.md").read_text().partition("## Invariants")[2].partition("\n## ")[0]
    numbers = set(re.findall(r"\bI\d+\b", protocol))
    here = {name.partition("_")[0] for name in INVARIANTS}
    assert here < numbers
    page = (SPEC / "README.md").read_text().partition("## What is left out")[2]
    for number in sorted(numbers - here):
        assert re.search(rf"^\* \*\*{number}\*\*", page, re.MULTILINE), f"{number}: in neither"

"""The contract stands in hudi_contract alone: operator, runtime and demo spell no key, read no
record as a dict, and use no word of the protocol as a text. Tests do spell them
(docs/design/testing.md, Tests of both halves together).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from hudi_contract import environment, job, keys, outcomes, records, reports, settle, table_keys, words
from hudi_contract.settle import Phase
from hudi_contract.shape import Record, fields_of
from tests.support import ROOT

HALVES = ("operator/hudi_operator", "spark-images/hudi_runtime")
KEY = re.compile(r"^/?(?:control|tables|control/agents)?/?(?:" + "|".join(keys.Kind) + r")/")
"""Begins a key: `settle/`, `/control/`… with more behind it."""
RANGE = re.compile(r"(?:^|/)(?:" + "|".join(keys.RANGES) + r")/")
TIMERS = ("alive/", "proof/", "drain/")
"""The operator's own timers are named by incarnation as well; they never reach etcd."""
OF_THE_PROTOCOL = {
    *(word.value for of in (words.GateState, words.InstantState, words.FencingMode) for word in of),
    *(phase.name for phase in Phase if phase is not Phase.Fenced),
    *(code.value for code in outcomes.ErrorCode),
    words.Outcome.ROLLED_BACK.value,
    words.Outcome.REEXECUTED.value,
    *(error.value for error in words.AgentError),
} - {"Pending"}
"""Words that mean one thing wherever they stand; Pending is a phase of pods, too."""
OF_THE_API = (
    *(words.Adoption, words.ApiTableType, words.BootstrapFormat, words.BootstrapMode, words.Concurrency, words.Deletes),
    *(words.Duplicates, words.HoldOutcome, words.MergeMode, words.MissingColumns, words.PartialUpdates),
    *(words.ProofKind, words.SourceError, words.TableType),
)
WORDS = OF_THE_PROTOCOL | {word.value for of in OF_THE_API for word in of} - {"Pending", "Fail", "Drop"}
"""The same, and what a spec or a status says; other fields have the words Fail and Drop, too."""
TOOLS = ("operator/hudi_kubectl", "operator/hudi_console")
"""They cannot import the enums, and have names for the protocol's words (kubectl/test_words.py)."""
GIVEN = {
    text for text in vars(environment).values() if isinstance(text, str) and re.match("HUDI_OPERATOR_|/|io[.]", text)
}
"""Variables, files and classes that the operator gives to a pod, and the runtime looks for."""
STATES = {state.value for state in words.WriterState}
STATEFUL = (*(f"operator/hudi_operator/{part}" for part in ("plan", "control", "metrics")), "spark-images/hudi_runtime")
"""Where a state of a writer is decided, or followed."""
OF_CONDITIONS = {"condition", "Condition", "is_true", "find", "_not_ready"}
"""Their arguments are types and reasons of conditions, some of which have the word of a state."""


def constants(tree: ast.AST) -> Iterator[tuple[int, str, int]]:
    """Texts that are no docstrings, with their lines and the identities of their nodes."""
    docs = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value, id(node)


def texts(tree: ast.AST) -> Iterator[tuple[int, str, bool]]:
    """Texts with their lines. False: something stands before it (a later part of an f-string)."""
    inner = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values[1:]}
    for line, text, node in constants(tree):
        yield line, text, node not in inner


def keys_by_hand(tree: ast.AST) -> list[str]:
    every = ((line, text) for line, text, first in texts(tree) if RANGE.search(text) or (first and KEY.match(text)))
    return [f"{line}: {text}" for line, text in every if not text.startswith(TIMERS)]


def words_by_hand(tree: ast.AST, known: Collection[str] = frozenset(WORDS)) -> list[str]:
    """States and phases that are compared, or looked for, as texts."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            sides += [part for side in sides if isinstance(side, ast.Tuple | ast.Set | ast.List) for part in side.elts]
            found += [
                f"{node.lineno}: {side.value}"
                for side in sides
                if isinstance(side, ast.Constant) and side.value in known
            ]
    return found


def states_by_hand(tree: ast.AST) -> list[str]:
    """States of a writer as texts.

    Types and reasons of conditions and phases of pods have such words, too. They are known by the
    call or the comparison that they stand in, or by other words beside them in a list.
    """
    others: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            parts = [*node.args] if name in OF_CONDITIONS else []
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            phase = any(isinstance(side, ast.Attribute) and side.attr == "phase" for side in sides)
            parts = [part for side in sides for part in getattr(side, "elts", [side])] if phase else []
        elif isinstance(node, ast.Tuple | ast.List | ast.Set):
            listed = [part.value for part in node.elts if isinstance(part, ast.Constant)]
            parts = node.elts if set(listed) - STATES else []
        else:
            continue
        others |= {id(value) for part in parts for value in alternatives(part)}
    return [f"{line}: {text}" for line, text, found in constants(tree) if text in STATES and found not in others]


def alternatives(node: ast.expr) -> Iterator[ast.expr]:
    """What an argument may be; its conditions are not."""
    if isinstance(node, ast.IfExp):
        yield from alternatives(node.body)
        yield from alternatives(node.orelse)
    else:
        yield node


def raw_records(tree: ast.AST) -> list[str]:
    """`stored.value["field"]`, `entry.value.get("field")`: a field of a value in etcd that no class
    has read.
    """
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            value: ast.AST = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            value = node.func.value
        else:
            continue
        if isinstance(value, ast.Attribute) and value.attr == "value":
            found.append(f"{node.lineno}: {ast.unparse(node)}")
        if isinstance(value, ast.Attribute) and value.attr == "gate":
            found.append(f"{node.lineno}: {ast.unparse(node)}")
    return found


OF_THE_OPERATOR = re.compile("HUDI_OPERATOR_(CACHE|CONFIG|LOG_(LEVEL|FORMAT)|PROBE_PORT|ETCD_)")
"""Variables of the operator's own pods, which the chart sets, their common prefix, and one of
development.
"""


def given_by_hand(tree: ast.AST) -> list[str]:
    """Names of variables, files and classes that both halves know."""
    return [
        f"{line}: {text}"
        for line, text, _ in constants(tree)
        if text in GIVEN or (re.fullmatch("HUDI_OPERATOR_[A-Z0-9_]+", text) and not OF_THE_OPERATOR.fullmatch(text))
    ]


def test_variables_of_pods_are_those_of_the_data_file() -> None:
    """The Java module compares its own with the same file; no other class of it has a name."""
    told = keys.protocol()["environment"]
    known = {name: text for name, text in vars(environment).items() if name.isupper() and isinstance(text, str)}
    assert told == {name: text for name, text in known.items() if re.fullmatch("[A-Z0-9_]+", text)}
    java = ROOT / "spark-images" / "etcd-lock" / "src" / "main" / "java"
    for path in sorted(java.rglob("*.java")):
        if path.name != "Environment.java":
            assert not re.search('"HUDI_OPERATOR_[A-Z]', path.read_text()), path.name


RULES = {"keys": keys_by_hand, "words": words_by_hand, "records": raw_records, "environment": given_by_hand}


def sources(half: str) -> list[Path]:
    return sorted((ROOT / half).rglob("*.py"))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("half", [*HALVES, "demo"])
def test_nothing_of_the_contract_is_said_twice(half: str, rule: str) -> None:
    assert sources(half)
    found = {
        str(path.relative_to(ROOT)): hits
        for path in sources(half)
        if (hits := RULES[rule](ast.parse(path.read_text())))
    }
    assert found == {}


@pytest.mark.parametrize("tool", TOOLS)
def test_no_tool_compares_a_word_as_a_text(tool: str) -> None:
    assert sources(tool)
    found = {
        str(path.relative_to(ROOT)): hits
        for path in sources(tool)
        if (hits := words_by_hand(ast.parse(path.read_text()), OF_THE_PROTOCOL))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ("keys", 'etcd.get(f"settle/{inc}")'),
        ("keys", 'etcd.get("instant/" + t)'),
        ("keys", 'etcd.get(f"{prefix}/control/{table}/gate")'),
        ("keys", 'etcd.put("done/create", value)'),
        ("words", 'gate.state == "closed"'),
        ("words", 'record.phase in ("Swept", "Settled")'),
        ("words", 'item.state != "Abandoned"'),
        ("words", 'code == "HUDIOP-FENCED"'),
        ("words", 'table.concurrency_mode == "NonBlocking"'),
        ("words", 'spec.type in ("MergeOnRead",)'),
        ("environment", 'os.environ["HUDI_OPERATOR_S3_CREDENTIALS"]'),
        ("environment", 'GUARD = "io.hudioperator.GuardedFileSystem"'),
        ("records", 'view.gate.get("state")'),
        ("records", 'entry.value["inc"]'),
        ("records", 'entry.value.get("claimedBy")'),
    ],
)
def test_what_is_said_twice_is_found(rule: str, code: str) -> None:
    assert RULES[rule](ast.parse(code))


@pytest.mark.parametrize("part", STATEFUL)
def test_no_state_of_a_writer_is_a_text(part: str) -> None:
    assert sources(part)
    found = {
        str(path.relative_to(ROOT)): hits
        for path in sources(part)
        if (hits := states_by_hand(ast.parse(path.read_text())))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("code", "hits"),
    [
        ('status["state"] = "Running"', 1),
        ('return "Retrying" if again else "Waiting"', 2),
        ('AS_ASKED = frozenset({"Running", "Scheduled"})', 2),
        ('status.get("state") in ("Stalled", "Waiting")', 2),
        ('condition("Running", state == "Running", state)', 1),
        ('condition("Stalled", stalled, "Failed" if over == "Failed" else "NotStalled")', 1),
        ('conditions.is_true(status, "Finished") or conditions.is_true(status, "Running")', 0),
        ('TYPES = ("Ready", "Running", "Stalled")', 0),
        ('pod.phase != "Running" or pod.phase in ("Succeeded", "Failed")', 0),
    ],
)
def test_a_state_of_a_writer_as_a_text_is_found(code: str, hits: int) -> None:
    assert len(states_by_hand(ast.parse(code))) == hits


def test_both_halves_use_the_contract() -> None:
    for half in HALVES:
        users = [path for path in sources(half) if re.search(r"^from hudi_contract", path.read_text(), re.MULTILINE)]
        assert len(users) >= 20, half


def test_the_codes_of_the_data_file_are_those_of_the_enums() -> None:
    """The Java module compares its own with the same file."""
    data = keys.protocol()
    assert {code.value for code in outcomes.ErrorCode} == {*data["errors"], *data["runtimeErrors"]}
    assert all(code.meaning for code in outcomes.ErrorCode)
    assert set(data["exitCodes"]) == {kind.value for kind in outcomes.FailureClass}
    assert {kind.value for kind in keys.Kind} == set(data["keys"])


def test_the_names_of_the_data_file_are_those_that_are_used() -> None:
    """F648: the gateway lets an agent put no other ones."""
    services = {f"{words.RequestKind.SERVICE}-{service}" for service in words.Service}
    kinds = {name.removeprefix("done/") for name in records._KINDS if name.startswith("done/")}
    known = {*kinds - {f"{words.RequestKind.SERVICE}-"}, *services, keys.COUNTED}
    assert set(keys.Kind.DONE.names) == known
    reports = {name.removeprefix("report/") for name in records._KINDS if name.startswith("report/")}
    assert set(keys.Kind.REPORT.names) == reports


def test_the_words_of_the_data_file_are_those_of_the_enums() -> None:
    """The Java module compares its own with the same file."""
    told = keys.protocol()["words"]
    assert set(told) >= {"GateState", "InstantState", "Phase", "Role", "FencingMode"}
    assert told["Phase"] == [phase.name for phase in sorted(Phase)]
    assert {name: found for name, found in told.items() if name != "Phase"} == {
        name: [word.value for word in getattr(words, name)] for name in told if name != "Phase"
    }


RECORDS: dict[str, type[Record]] = {
    name: found
    for module in (table_keys, settle, reports, job)
    for name, found in vars(module).items()
    if isinstance(found, type) and issubclass(found, Record)
}
WRITTEN_BY_JAVA = ("Registration", "Alive", "Lock", "Ticket", "InstantRecord", "Clock")
"""Records of which Java writes every field."""


def paths_of(record: type[Record]) -> set[str]:
    """Fields of a record, and those of the records in them: `table`, `table.recordKeyFields`."""
    inner = {f"{one.name}.{path}" for one in fields_of(record) for part in one.type.parts for path in paths_of(part)}
    return {one.name for one in fields_of(record)} | inner


def test_the_fields_of_the_data_file_are_those_of_the_records() -> None:
    """The Java module compares its own with the same file."""
    told = keys.protocol()["records"]
    assert set(told) >= {"Gate", "Durations", "Fence", "SettleRecord", "JobRecord", *WRITTEN_BY_JAVA}
    assert {name: unknown for name in told if (unknown := set(told[name]) - paths_of(RECORDS[name]))} == {}
    assert {name: set(told[name]) for name in WRITTEN_BY_JAVA} == {
        name: paths_of(RECORDS[name]) for name in WRITTEN_BY_JAVA
    }

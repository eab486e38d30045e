"""docs/operate/conditions.md: conditions, their reasons and events, made from the operator's code.

    python -m tests.campaigns.pages.conditions      write the page

Types, reasons and events are what calls in `operator/hudi_operator` name. This module describes the
meaning of each type and event; one that the code has and that is not described here, or the
reverse, is an error.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from hudi_contract import words
from hudi_contract.outcomes import EXIT_CODES, FailureClass
from hudi_contract.reports import TerminationMessage
from hudi_operator.model import classify
from tests.support import ROOT
from tests.support.evidence.prose import wrapping

PAGE = ROOT / "docs/operate/conditions.md"
CODE = ROOT / "operator/hudi_operator"
WORD = re.compile("[A-Z][A-Za-z]+")
NO_REASON = {"True", "False", "Unknown"}
TABLE, WRITER = "HudiTable", "HudiWriter"
TYPES = {
    TABLE: {
        "Ready": "writers may write",
        "Reconciling": "the operator works on the difference between spec and state (kstatus)",
        "Stalled": "no progress until a person intervenes (kstatus)",
        "Bootstrapped": "the bootstrap is complete, or none is requested",
        "RollbackPending": "unfinished instants of a dead process wait for the agent",
        "AwaitingProofOfDeath": "a process is fenced, or its pod deleted, and there is no proof yet that it has ended",
        "ForeignWriters": "another process writes to the table without its lock",
        "ServicesHealthy": "the last run of each table service succeeded",
        "Suspended": "`spec.suspend` is set: no attempt starts",
        "RecordsReadable": "every value of the table in etcd can be read",
        "ClocksAgree": "the clocks of operator and API server agree",
        "Degraded": "etcd is older than required, or has no authentication",
        "CredentialsRenewed": "running pods follow a change of their Secrets",
        "DuplicatesAllowed": "a key may exist twice in its partition",
        "BucketSafe": "no setting of the bucket damages the table; only with S3",
        "BrokerAnswers": "broker and store issue and revoke credentials; only with the fencing mode Credentials",
        "CallbackDelivered": "the receiver accepts the notifications; only with `commitCallback`",
        "CatalogSynced": "the catalog shows the newest commit; only with `catalog`",
        "CleaningHeld": "a hold keeps old files for more than a day; only with `holds`",
    },
    WRITER: {
        "Ready": "the writer matches its spec: it runs, waits for its next tick, has succeeded or is suspended",
        "Admitted": "an attempt may write, or starts now",
        "Running": "the driver of an attempt is registered",
        "StartRefused": "the API server refuses the pod of the attempt, or an object that it needs",
        "ExecutorsMissing": "the attempt has fewer executors than it requests",
        "Late": "more than half of the time of a deadline of the attempt is over",
        "Finished": "the run is over",
        "Succeeded": "the run is over, and it succeeded",
        "Suspended": "`spec.suspend` of the writer or the table is set",
        "Reconciling": "the writer waits for something that is expected to pass (kstatus)",
        "Stalled": "no progress until a person intervenes (kstatus)",
        "Committed": "outcome of the last write",
    },
}
REASONS = {
    "_not_ready": (TABLE, "Ready", 0),
    "_waits": (TABLE, "Ready", 1),
    "_plan_status_only": (TABLE, "Ready", 1),
    "_stall": (TABLE, "Stalled", 0),
    "Stall": (TABLE, "Stalled", 0),
    "Block": (WRITER, "Admitted", 0),
    "table_blocks": (WRITER, "Admitted", 0),
    "Decision": (WRITER, "Admitted", 1),
    "_stalled": (WRITER, "Stalled", 0),
    "EtcdFitness": (TABLE, "Degraded", 0),
}
"""Functions that take a reason: of which kind, for which condition, and at which argument."""
FITNESS = "adapters/etcd_fitness.py"
"""Beside plan and control the one module that gives a reason."""
FILES_OF_TABLES = {"duplicates.py"}
"""Modules beside those of writers whose condition is the table's."""
SAME = {
    (TABLE, "Reconciling"): "Those of `Ready`, while it is not True and nothing is stalled; else `Current`.",
    (WRITER, "Ready"): "The writer's `status.state`.",
    (WRITER, "Running"): "The writer's `status.state`.",
    (WRITER, "Reconciling"): "That of `Admitted` while the writer waits; else `Running` or `Current`.",
    (WRITER, "Finished"): "`Succeeded` or `Failed`; else `NotFinished`.",
    (WRITER, "Succeeded"): "`Succeeded` or `Failed`; else `NotFinished`.",
    (WRITER, "StartRefused"): "Why the API server refuses, as the operator classifies its answer; else `NotRefused`.",
}
"""Reasons that are taken over from elsewhere."""
EVENTS = {
    TABLE: {
        "Ready": "writers may write",
        "reason of Stalled": "condition `Stalled` became True; the reason is the condition's",
        "reason of RecordsReadable": "condition `RecordsReadable` became False",
        "reason of ServicesHealthy": "condition `ServicesHealthy` became False",
        "reason of BucketSafe": "condition `BucketSafe` became False",
        "AwaitingProofOfDeath": "condition `AwaitingProofOfDeath` became True",
        "ForeignWriters": "condition `ForeignWriters` became True",
        "CallbackFailed": "condition `CallbackDelivered` became False",
        "CatalogSyncFailed": "condition `CatalogSynced` became False",
        "CatalogEntryDropped": "the deletion of the HudiTable has dropped its entries in the catalog",
        "CatalogEntryKept": "the entries stay in the catalog; the message says why",
        "SavepointTaken": "a savepoint of `spec.savepoints` exists",
        "SavepointFailed": "a savepoint could not be taken",
        "SavepointDeleted": "a savepoint was deleted, because its entry has its instant as `deleteInstant`",
        "HoldGranted": "all files of a hold are there, and stay until its end",
        "HoldRefused": "a hold cannot be granted: nothing is kept",
        "CleaningHeld": "condition `CleaningHeld` became True",
        "Bootstrapped": "the rows of the dataset are committed",
        "BootstrapFailed": "a bootstrap failed; it is retried",
        "Restoring": "commits are being undone",
        "Restored": "the table is restored to the savepoint",
        "RestoreFailed": "a restore failed; the message says what happens next",
        "Fenced": "a process may not write any more; the message has the reason",
        "Unlocked": "a dead process no longer holds the table's lock",
        "RollingBack": "the unfinished instants of a dead process are rolled back",
        "ActionRefused": "an action of the operator failed: the message is the API server's, or names the defect",
    },
    WRITER: {
        "AttemptCLASS": "an attempt has ended; CLASS is one of [classes of attempts](#classes-of-attempts)",
        "StartRefused": "condition `StartRefused` became True",
        "ExecutorsMissing": "the API server refuses executors",
        "reason of Stalled": "condition `Stalled` became True",
        "Succeeded": "the run is over",
        "Failed": "the run is over: retries are used up, or the class is not retried",
    },
}
CLASSES = {
    classify.SUCCEEDED: "it did what it was asked to do",
    classify.OUT_OF_MEMORY: "it, or its executors, had too little memory",
    classify.EVICTION: "the kubelet evicted its pod, or somebody deleted it: a drain, a preemption, a queue",
    classify.DEADLINE_EXCEEDED: "`activeDeadlineSeconds` have passed",
    classify.START_DEADLINE_EXCEEDED: "its driver did not run within `startDeadlineSeconds`",
    classify.READY_DEADLINE_EXCEEDED: "its driver was not registered within `readyDeadlineSeconds` after it ran",
    classify.COMMIT_DEADLINE_EXCEEDED: "it did not commit within `commitDeadlineSeconds`",
    classify.NODE_LOST: "its pod is gone, although nobody requested its deletion",
    classify.CANCELLED: "the writer was suspended or deleted",
    FailureClass.ENDED_FOR_CHANGE: "it ended for a change of the table: the next attempt continues after the change",
    FailureClass.WRITE_CONFLICT: "a batch was refused because of other commits more often than the writer repeats it",
    FailureClass.LOCK_TIMEOUT: "the table's lock was not free in time",
    FailureClass.FENCED: "its right to write was withdrawn, or the release of its lock was refused; the JVM halts",
    FailureClass.HEARTBEAT_LOST: "etcd did not answer, or its revision went back; the JVM halts",
    FailureClass.CLOCK_SKEW: "the clock of its host is wrong",
    FailureClass.STORAGE_UNREACHABLE: "the store refused or did not answer",
    FailureClass.INFRASTRUCTURE: "its environment failed, in another way than the classes above",
    FailureClass.USER_ERROR: "the program or the query failed",
    FailureClass.OPTION_NOT_ALLOWED: "an option of Hudi or Spark that a writer may not set",
    FailureClass.POSITION_LOST: "the source no longer has the data after the writer's position",
    FailureClass.SCHEMA_MISMATCH: "the columns of the batch do not fit the table's",
    FailureClass.HUDI_VERSION_MISMATCH: "the image has another release of Hudi than `spec.hudiVersion`",
    FailureClass.PARTITION_NOT_DECLARED: "a row belongs to a partition that `spec.partitions` does not name",
    FailureClass.BAD_DATA: "a row that the table cannot hold, or a file that cannot be read",
    FailureClass.VALIDATION_FAILED: "a batch does not meet `spec.validations`",
}
"""In the order of the page. Those that are no FailureClass the operator gives by itself."""


class Module:
    """One file of the operator, and the names in it that denote words."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tree = ast.parse(path.read_text(encoding="utf-8"))
        self.constants: dict[str, str] = {}
        self.tables: dict[str, ast.Dict] = {}
        for node in self.tree.body:
            if isinstance(node, ast.Assign):
                target = node.targets[0]
                pairs = (
                    zip(target.elts, node.value.elts, strict=True)
                    if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple)
                    else [(target, node.value)]
                )
                for name, value in pairs:
                    if isinstance(name, ast.Name) and isinstance(value, ast.Constant) and isinstance(value.value, str):
                        self.constants[name.id] = value.value
                    if isinstance(name, ast.Name) and isinstance(value, ast.Dict):
                        self.tables[name.id] = value


def modules() -> dict[str, Module]:
    """Modules that plan or act, by name: names of two packages do not collide here."""
    found = {}
    for folder in ("plan", "control"):
        for path in sorted((CODE / folder).rglob("*.py")):
            found[str(path.relative_to(CODE))] = Module(path)
    found[FITNESS] = Module(CODE / FITNESS)
    return found


class Reader:
    """Finds the words that an expression may have as its value."""

    def __init__(self, every: dict[str, Module]) -> None:
        self.every = every
        self.by_stem: dict[str, dict[str, str]] = defaultdict(dict)
        for module in every.values():
            self.by_stem[module.path.stem] |= module.constants

    def words(self, node: ast.AST, module: Module, function: ast.AST | None) -> set[str]:
        """Conditions of an `if` and comparisons are no values."""
        if isinstance(node, ast.Constant):
            text = node.value
            return {text} if isinstance(text, str) and WORD.fullmatch(text) and text not in NO_REASON else set()
        if isinstance(node, ast.IfExp):
            return self.words(node.body, module, function) | self.words(node.orelse, module, function)
        if isinstance(node, ast.Compare | ast.JoinedStr):
            return set()
        if isinstance(node, ast.Name):
            return self._named(node.id, module, function)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Call):  # its answer when it knows nothing better
            return {
                word
                for part in (*node.args, *(one.value for one in node.keywords))
                for word in self.words(part, module, function)
            } | (self.words(node.func.value, module, function) if isinstance(node.func, ast.Attribute) else set())
        return {word for part in ast.iter_child_nodes(node) for word in self.words(part, module, function)}

    def _named(self, name: str, module: Module, function: ast.AST | None) -> set[str]:
        if name in module.constants:
            return {module.constants[name]}
        if name in module.tables:
            return {word for value in module.tables[name].values for word in self.words(value, module, None)}
        found = set[str]()
        for node in ast.walk(function) if function is not None else ():
            if isinstance(node, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == name for target in node.targets
            ):
                found |= self.words(node.value, module, None)
        return found

    def _attribute(self, node: ast.Attribute) -> set[str]:
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        kind = getattr(words, owner, None)
        if isinstance(kind, type) and issubclass(kind, Enum) and node.attr in kind.__members__:
            return {str(kind[node.attr].value)}
        return {self.by_stem[owner][node.attr]} if node.attr in self.by_stem.get(owner, {}) else set()


def calls(module: Module) -> Iterator[tuple[str, ast.Call, ast.AST | None]]:
    """Each call with the name of what is called, and the function in which it is."""
    inside = {
        id(inner): node
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
    }
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            yield name, node, inside.get(id(node))


def of_writers(module: Module) -> bool:
    return "writers" in module.path.parts and module.path.name not in FILES_OF_TABLES


def conditions() -> dict[str, dict[str, set[str]]]:
    """Reasons by kind and type."""
    every = modules()
    reader = Reader(every)
    found: dict[str, dict[str, set[str]]] = {TABLE: defaultdict(set), WRITER: defaultdict(set)}
    for module in every.values():
        kind = WRITER if of_writers(module) else TABLE
        for name, call, function in calls(module):
            if name in ("condition", "Condition") and len(call.args) >= 3:
                for type_ in reader.words(call.args[0], module, function):
                    found[kind][type_] |= reader.words(call.args[2], module, function)
            elif name in REASONS and len(call.args) > REASONS[name][2]:
                owner, type_, index = REASONS[name]
                found[owner][type_] |= reader.words(call.args[index], module, function)
                if any(one.arg == "refused" for one in call.keywords):  # nothing is done for the table then
                    found[TABLE]["Stalled"] |= reader.words(call.args[index], module, function)
            elif name == "_waiting_writer":
                for one in call.keywords:
                    if one.arg == "reason":
                        found[WRITER]["Admitted"] |= reader.words(one.value, module, function)
    found[TABLE]["Stalled"] |= {str(error) for error in words.AgentError} - {"TableNotFound"}
    found[TABLE]["Ready"] |= {"TableNotFound"}
    return found


def events() -> dict[str, set[tuple[str, str]]]:
    """Severity and reason of each event, by kind; a reason that is taken over says from where."""
    every = modules()
    reader = Reader(every)
    found: dict[str, set[tuple[str, str]]] = {TABLE: set(), WRITER: set()}
    for module in every.values():
        kind = WRITER if of_writers(module) else TABLE
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call):
                found[kind] |= _event(reader, module, node.args)
            elif isinstance(node, ast.Tuple):
                found[kind] |= _event(reader, module, node.elts)
        table = next(
            (
                node.value
                for node in module.tree.body
                if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_EVENTS"
            ),
            None,
        )
        if isinstance(table, ast.Dict):
            for key, value in zip(table.keys, table.values, strict=True):
                if isinstance(key, ast.Tuple) and isinstance(value, ast.Tuple):
                    (type_,) = reader.words(key.elts[0], module, None)
                    severity, reason = (ast.literal_eval(one) for one in value.elts)
                    found[TABLE].add((severity, reason or f"reason of {type_}"))
    return found


def _event(reader: Reader, module: Module, parts: list[ast.expr]) -> set[tuple[str, str]]:
    for at, part in enumerate(parts[:-2]):
        severities = _severities(part)
        if severities:
            reason = parts[at + 1]
            text = ast.unparse(reason)
            if text == "f'Attempt{kind}'":
                return {("/".join(severities), "AttemptCLASS")}
            if text == "phase.name":
                return {("/".join(severities), one) for one in ("Unlocked", "RollingBack")}
            if text == "decision.reason":
                ended = len(severities) > 1
                return {("Normal", "Succeeded"), ("Warning", "Failed")} if ended else {("Warning", "reason of Stalled")}
            return {("/".join(severities), one) for one in reader.words(reason, module, None)}
    return set()


def _severities(node: ast.AST) -> list[str]:
    if isinstance(node, ast.IfExp):
        return _severities(node.body) + _severities(node.orelse)
    known = isinstance(node, ast.Constant) and node.value in ("Normal", "Warning")
    return [str(node.value)] if known and isinstance(node, ast.Constant) else []


def refusals() -> list[str]:
    """Reasons of StartRefused, from the answers of the API server."""
    module = Module(CODE / "adapters/kubernetes.py")
    found = {"Forbidden", "Invalid"}
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_REFUSALS":
            found |= {reason for _, reason in ast.literal_eval(node.value)}
    return sorted(found)


def of_operator() -> set[str]:
    """Classes of attempts that classify.py names itself."""
    return {
        value
        for name, value in vars(classify).items()
        if name.isupper() and isinstance(value, str) and not name.startswith("_") and WORD.fullmatch(value)
    }


def listed(found: set[str] | list[str]) -> str:
    return ", ".join(f"`{one}`" for one in sorted(found))


def checked(what: str, found: set[str], described: set[str]) -> None:
    if found != described:
        raise ValueError(
            f"{what}: not described here: {sorted(found - described)}; not in the code: {sorted(described - found)}"
        )


def _types(kind: str, found: dict[str, set[str]]) -> list[str]:
    checked(f"conditions of {kind}", set(found), set(TYPES[kind]))
    lines = [f"## Conditions of a {kind}", "", "| condition | True means | reasons |", "|---|---|---|"]
    for type_, meaning in TYPES[kind].items():
        reasons = SAME.get((kind, type_)) or listed(found[type_])
        if (kind, type_) == (WRITER, "StartRefused"):
            reasons = f"{listed(refusals())}; else `NotRefused`"
        if (kind, type_) == (TABLE, "Ready"):
            reasons += "; those of `Stalled`; the class of the agent's failure"
        if (kind, type_) == (WRITER, "Admitted"):
            reasons += "; those of `Stalled`; the error that the table's agent reports"
        lines.append(f"| `{type_}` | {meaning} | {reasons} |")
    return [*lines, ""]


def _events(kind: str, found: set[tuple[str, str]]) -> list[str]:
    checked(f"events of {kind}", {reason for _, reason in found}, set(EVENTS[kind]))
    lines = [f"## Events of a {kind}", "", "| event | type | when |", "|---|---|---|"]
    severity = {reason: kind_ for kind_, reason in sorted(found)}
    for reason, when in EVENTS[kind].items():
        name = reason if reason.startswith("reason of") else f"`{reason}`"
        lines.append(f"| {name} | {severity[reason].replace('/', ' or ')} | {when} |")
    return [*lines, ""]


@wrapping
def page() -> str:
    found, told = conditions(), events()
    lines = [
        "# Conditions and events",
        "",
        "Made from `operator/hudi_operator` by `python -m tests.campaigns.pages.conditions`; a test compares",
        "it. What to do about a condition: [operations](operations.md#status-and-conditions). Exit codes,",
        "error codes and the other words of the contract: [records](../design/records.md#exit-codes).",
        "",
        "A condition has `status` True, False or Unknown, one `reason` and a `message` for people. `kubectl",
        "wait --for=condition=Ready` works with both kinds. A commit is no event: a busy table has many.",
        "",
        *_types(TABLE, found[TABLE]),
        "Where the agent has reported a cause, its word is the reason (`Bootstrapped`, `CallbackDelivered`,",
        "`CatalogSynced`).",
        "",
        *_events(TABLE, told[TABLE]),
        *_types(WRITER, found[WRITER]),
        *_events(WRITER, told[WRITER]),
        "## Classes of attempts",
        "",
        "`status.attempts[].class`. A process tells its class with its exit code; a class without a code is one",
        "that the operator gives by itself. Not repeated: only a changed spec or a new `restartNonce` helps.",
        "",
        "| class | exit code | repeated | meaning |",
        "|---|---|---|---|",
    ]
    checked("classes", {str(one) for one in CLASSES}, {*of_operator(), *map(str, FailureClass)})
    for name, meaning in CLASSES.items():
        outcome = classify.Outcome(str(name), None, "", TerminationMessage())
        again = "yes" if outcome.retried else "no"
        code = (
            0 if name == classify.SUCCEEDED else EXIT_CODES.get(FailureClass(name)) if name in set(FailureClass) else ""
        )
        lines.append(f"| `{name!s}` | {code} | {again} | {meaning} |")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE, file=sys.stderr)

"""The simulated agent and the agent's own code write the same: for each request, for settling, for
reports, and where neither goes on.

The operator is the same in both worlds. Compared is every value below `done/`, `settle/` and
`report/`, in order: its fields, its words and its counts; of times, names and messages, that they
are there. What the simulated one cannot at all is said at its top
(tests/support/world/simulated_agent.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from hudi_contract.metadata import BOOTSTRAP
from hudi_contract.outcomes import FailureClass
from hudi_contract.requests import request_id
from hudi_contract.words import RequestKind, Stage
from hudi_operator.api.bootstrap import Bootstrap
from hudi_operator.api.holds import Hold
from hudi_operator.api.metadata_table import MetadataTable
from hudi_operator.api.restore import Restore
from hudi_operator.plan.requests import bootstrap as bootstrap_requests
from hudi_operator.plan.requests import metadata_table as metadata_requests
from hudi_operator.plan.requests import restores as restore_requests
from hudi_operator.plan.requests import savepoints as savepoint_requests
from hudi_runtime.agent import creation
from hudi_runtime.process.errors import Failure, RuntimeFailure
from hudi_runtime.process.result import Reporter, Tally, termination_message
from tests.support.world.fake_bootstrap import Fake as BootstrapFake
from tests.support.world.fake_holds import Fake as HoldFake
from tests.support.world.fake_metadata_table import Fake as MetadataFake
from tests.support.world.fake_restores import KEPT, UNDONE, T
from tests.support.world.fake_restores import Fake as RestoreFake
from tests.support.world.fake_savepoints import Fake as SavepointFake
from tests.support.world.meeting import Meeting
from tests.support.world.served import (
    dataset_in_memory,
    in_its_time,
    names_of,
    with_agent,
    with_bootstrap,
    with_holds,
    with_metadata,
    with_restores,
    with_savepoints,
)
from tests.support.world.simulated_agent import ROWS as BOOTSTRAPPED
from tests.support.world.simulated_store import Author, Store
from tests.support.world.simulated_world import World, all_settled, finished

JsonDict = dict[str, Any]
Do = Callable[[World, Any], None]
"""With the world and, where the agent's code serves, the fake of its table."""
UNTIL = 120
ROWS = 10
OLD = "20251231000000000"
SOURCE = {"source": {"path": "s3a://lake/plain", "format": "Parquet"}}


# ---- what was written


class Told:
    """Every value that was put into a world, in order."""

    def __init__(self, world: World) -> None:
        self.values: list[tuple[str, JsonDict]] = []
        put = world.put

        def heard(key: str, value: JsonDict, lease: str = "") -> int:
            revision = put(key, value, lease)
            self.values.append((key, world.kv[key].value))
            return revision

        world.put = heard  # type: ignore[method-assign]

    def below(self, prefix: str) -> list[list[Any]]:
        """The shapes of each key that begins so, one after the other, without repetitions."""
        found: dict[str, list[Any]] = {}
        for key, value in self.values:
            if key.startswith(prefix):
                shapes, shape = found.setdefault(key, []), shaped(value, kind=key.partition("/")[0])
                if shapes[-1:] != [shape]:
                    shapes.append(shape)
        return sorted(found.values(), key=repr)


NAMES = ("inc", "agentInc", "owner", "claimedBy", "attempt", "tableUID", "message", "error")
EXACT = ("boundary", "newest", "undoneInstants")
"""Times of commits that are the same in both worlds."""


def shaped(value: Any, name: str = "", *, kind: str = "") -> Any:
    """A value without what differs from world to world."""
    if kind == "settle":  # the agent's part of it; the rest is the operator's
        instants = sorted((shaped(item) for item in value["instants"].values()), key=repr)
        return sorted(value), value["phase"], instants, sorted(value["times"])
    if isinstance(value, dict):
        return {key: shaped(one, key) for key, one in sorted(value.items())}
    if isinstance(value, list):
        return [shaped(one, name) for one in value]
    if name in EXACT:
        return value
    if isinstance(value, str) and (name in NAMES or re.fullmatch(r"\d{17}|\d{4}-\d\d-\d\dT[\d:]{8}Z", value)):
        return "<time>" if value[:2] == "20" else f"<{name}>" if value else ""
    return "<ms>" if name.endswith("Ms") and value else value


# ---- both


@dataclass(frozen=True)
class Case:
    """What is done in both worlds, and the keys that are compared."""

    key: str
    real: Callable[[Meeting, pytest.MonkeyPatch], Any]
    """Puts the agent's code into the world; its fake, if it has one."""
    steps: tuple[tuple[Do, Callable[[World], bool]], ...]
    """Something that happens, and until when the world goes on."""
    status: str = ""
    """A field of the HudiTable's status that is compared, too."""
    table: JsonDict = field(default_factory=dict)
    last: bool = False
    """Only the last value of the key: one of them looks more often."""
    ready: bool = True
    """The first step comes when the table is Ready."""


def nothing(world: World, fake: Any) -> None:
    pass


def commits(world: World, *instants: str) -> None:
    world.completions |= {T[1]: T[4], T[2]: T[3]}  # before the savepoint of the fake
    for instant in instants:
        world.authors[instant] = Author("lake/load", "lake.load-1", ROWS)
        world.completed.add(instant)


def change(*instants: str, foreign: str = "", **spec: Any) -> Do:
    """A person edits the HudiTable, which has these commits."""

    def do(world: World, fake: Any) -> None:
        commits(world, *instants)
        world.foreign |= {foreign: "commit"} if foreign else {}
        world.change(**spec)

    return do


def outcome(name: str, word: str) -> Callable[[World], bool]:
    def reached(world: World) -> bool:
        found = world.status(name)
        shown = found[-1] if isinstance(found, list) and found else found or {}
        return bool(shown.get("outcome") == word)

    return reached


def extended(world: World) -> bool:
    asked, done = world.kv["request/hold-a"].value, world.kv["done/hold-a"].value
    return outcome("holds", "Granted")(world) and asked["untilMs"] == done["untilMs"] == asked["sinceMs"] + 99_000


def ready(world: World) -> bool:
    return world.is_true(world.table, "Ready")


def play(world: World, case: Case, fake: Any = None) -> None:
    world.make_table(fencing={"drainSeconds": 1}, **case.table)
    if case.ready:
        world.run(ready)
    for do, until in case.steps:
        do(world, fake)
        world.run(until, seconds=UNTIL)
    for _ in range(20 if case.status == "timeline" else 0):  # the agent lists every 15 s
        world.reconcile()
        world.tick()


def result(world: World, told: Told, case: Case) -> Any:
    if case.last:
        return shaped(world.kv[case.key].value), shaped(world.status(case.status))
    more = [told.below(kind) for kind in ("instant/", "done/", "clock")] if case.key == "settle/" else []
    return told.below(case.key), more, shaped(world.status(case.status))


# ---- requests


def savepoints(world: Meeting, monkeypatch: pytest.MonkeyPatch) -> SavepointFake:
    fake = SavepointFake([])
    with_savepoints(world, fake)
    serve = world.serve

    def filled(process: Any, requests: JsonDict) -> None:
        assert serve is not None
        fake.names = fake.names or names_of(world)
        serve(process, requests)

    world.serve = filled
    return fake


def holds(world: Meeting, monkeypatch: pytest.MonkeyPatch) -> HoldFake:
    fake = HoldFake([])
    with_holds(world, fake)
    serve = world.serve

    def filled(process: Any, requests: JsonDict) -> None:
        assert serve is not None
        fake.names = names_of(world)
        serve(process, requests)

    world.serve = filled
    return fake


def slip(world: World, fake: Any) -> None:
    world.change(savepoints=[{"name": "a", "deleteInstant": OLD}])


def refused_deletion(world: World) -> bool:
    return bool(world.status("savepoints")[0].get("message"))


def deletes(world: World, fake: Any) -> None:
    world.change(savepoints=[{"name": "a", "deleteInstant": world.status("savepoints")[0]["instant"]}])


def restores(*names: str) -> Callable[[Meeting, pytest.MonkeyPatch], RestoreFake]:
    def real(world: Meeting, monkeypatch: pytest.MonkeyPatch) -> RestoreFake:
        fake = RestoreFake([*KEPT, *names], comments={T[2]: "lake/flights: good", T[7]: "lake/flights: later"})
        with_restores(world, fake, monkeypatch)
        return fake

    return real


def restore(*names: str, listed: tuple[str, ...] = ("good",), savepoint: str = "good", foreign: str = "") -> Do:
    """The same commits and savepoints for the simulated agent, and what is asked."""

    def do(world: World, fake: Any) -> None:
        for name in (*KEPT, *names):
            times, _, action = name.partition(".")
            instant, _, completion = times.partition("_")
            if action == "commit":
                commits(world, instant)
                world.completions[instant] = completion
            else:
                taken = "good" if instant == T[2] else "later"
                said = {"name": taken, "result": "Completed", "instant": instant, "completionTime": completion}
                world.put(f"done/savepoint-{taken}", {**said, "boundary": T[4], "atMs": 1})
        world.foreign |= {foreign: "commit"} if foreign else {}
        wanted = {"savepoint": savepoint, "nonce": "n1"}
        world.change(savepoints=[{"name": name} for name in listed], restore=wanted)

    return do


def is_restored(world: World) -> bool:
    return outcome("restore", "Completed")(world) and ready(world)


LATER = f"{T[7]}_{T[10]}.savepoint"


def bootstraps(world: Meeting, monkeypatch: pytest.MonkeyPatch) -> BootstrapFake:
    fake = BootstrapFake(rows=BOOTSTRAPPED, wrote=BOOTSTRAPPED)
    dataset_in_memory(fake, monkeypatch)
    with_bootstrap(world, fake, monkeypatch)
    return fake


def bad_source(world: World, fake: Any) -> None:
    world.bootstrap_error = "column x is missing"
    if fake is not None:
        fake.source_error = RuntimeFailure(FailureClass.USER_ERROR, world.bootstrap_error)


def mended(world: World, fake: Any) -> None:
    world.bootstrap_error = world.metadata_error = ""
    if isinstance(fake, BootstrapFake):
        fake.source_error = None
    elif fake is not None:
        fake.error = None


def metadata(*partitions: str) -> Callable[[Meeting, pytest.MonkeyPatch], MetadataFake]:
    def real(world: Meeting, monkeypatch: pytest.MonkeyPatch) -> MetadataFake:
        fake = MetadataFake(leaves=(set(partitions), set()))
        with_metadata(world, fake)
        return fake

    return real


def bad_store(world: World, fake: Any) -> None:
    world.metadata_error = "the store has failed"
    if fake is not None:
        fake.error = OSError(world.metadata_error)
    world.change(metadataTable={"rebuild": "1"})


INDEXED = {"indexes": ["ColumnStats"], "rebuild": "1"}
BEGUN = {"bootstrap": SOURCE}
REQUESTS = {
    "a savepoint": Case(
        "done/savepoint-a",
        savepoints,
        ((change(T[1], T[2], savepoints=[{"name": "a"}]), outcome("savepoints", "Completed")),),
        "savepoints",
    ),
    "a savepoint of an empty table": Case(
        "done/savepoint-a",
        savepoints,
        ((change(savepoints=[{"name": "a"}]), outcome("savepoints", "Failed")),),
        "savepoints",
    ),
    "a savepoint beside a foreign writer": Case(
        "done/savepoint-a",
        savepoints,
        ((change(T[1], foreign=T[3], savepoints=[{"name": "a"}]), outcome("savepoints", "Failed")),),
        "savepoints",
    ),
    "a savepoint that is deleted": Case(
        "done/savepoint-a",
        savepoints,
        (
            (change(T[1], T[2], savepoints=[{"name": "a"}]), outcome("savepoints", "Completed")),
            (slip, refused_deletion),
            (deletes, outcome("savepoints", "Deleted")),
        ),
        "savepoints",
    ),
    "a savepoint that is deleted and was never taken": Case(
        "done/savepoint-a",
        savepoints,
        ((change(T[1], savepoints=[{"name": "a", "deleteInstant": OLD}]), outcome("savepoints", "Failed")),),
        "savepoints",
    ),
    "a hold": Case(
        "done/hold-a",
        holds,
        ((change(T[1], T[2], holds=[{"name": "a", "reader": "me"}]), outcome("holds", "Granted")),),
        "holds",
    ),
    "a hold of no commit": Case(
        "done/hold-a",
        holds,
        ((change(T[1], holds=[{"name": "a", "instant": OLD}]), outcome("holds", "Refused")),),
        "holds",
    ),
    "a hold of an older commit that is extended": Case(
        "done/hold-a",
        holds,
        (
            (change(T[1], T[2], holds=[{"name": "a", "instant": T[1]}]), outcome("holds", "Granted")),
            (change(holds=[{"name": "a", "instant": T[1], "durationSeconds": 99}]), extended),
        ),
        "holds",
    ),
    "a restore": Case("done/", restores(*UNDONE), ((restore(*UNDONE), is_restored),), "restore"),
    "a restore without later commits": Case("done/", restores(), ((restore(), is_restored),), "restore"),
    "a restore of no savepoint": Case(
        "done/", restores(*UNDONE), ((restore(savepoint="never"), outcome("restore", "Failed")),), "restore"
    ),
    "a restore that drops a later savepoint": Case(
        "done/", restores(*UNDONE, LATER), ((restore(*UNDONE, LATER), is_restored),), "restore"
    ),
    "a restore beside a foreign writer": Case(
        "done/",
        restores(*UNDONE, f"{T[11]}.commit.requested"),
        ((restore(*UNDONE, foreign=T[11]), outcome("restore", "Failed")),),
        "restore",
    ),
    "a restore to before a savepoint that is wanted": Case(
        "done/",
        restores(*UNDONE, LATER),
        ((restore(*UNDONE, LATER, listed=("good", "later")), outcome("restore", "Failed")),),
        "restore",
    ),
    "a bootstrap": Case("done/bootstrap", bootstraps, ((nothing, ready),), "bootstrap", BEGUN, ready=False),
    "a bootstrap from a bad source": Case(
        "done/bootstrap",
        bootstraps,
        ((bad_source, outcome("bootstrap", "Failed")), (mended, ready)),
        "bootstrap",
        BEGUN,
        ready=False,
    ),
    "the metadata table goes": Case(
        "done/metadata",
        metadata(),
        ((change(metadataTable={"enabled": False}), outcome("metadataTable", "Completed")),),
        "metadataTable",
    ),
    "the metadata table is made": Case(
        "done/metadata",
        metadata("files"),
        ((change(metadataTable={"rebuild": "1"}), outcome("metadataTable", "Completed")),),
        "metadataTable",
    ),
    "the metadata table gets an index": Case(
        "done/metadata",
        metadata("files", "column_stats", "partition_stats"),
        ((change(metadataTable=INDEXED), outcome("metadataTable", "Completed")),),
        "metadataTable",
    ),
    "the metadata table fails": Case(
        "done/metadata",
        metadata("files"),
        ((bad_store, outcome("metadataTable", "Failed")), (mended, outcome("metadataTable", "Completed"))),
        "metadataTable",
    ),
}


# ---- settling and reports


def agent(**errors: Any) -> Callable[[Meeting, pytest.MonkeyPatch], None]:
    return lambda world, monkeypatch: with_agent(world, monkeypatch, **errors)


def works(*, until: int) -> tuple[Do, Callable[[World], bool]]:
    """A writer is killed at this step, and tried again."""

    def begin(world: World, fake: Any) -> None:
        world.writer_hang_at = until
        world.make_writer("load", retryPolicy={"limit": 2, "backoffSeconds": 1})

    def there(world: World) -> bool:
        process = world.writer_process("load")
        return process is not None and process.step >= until

    return begin, there


def dies(world: World, fake: Any) -> None:
    victim = world.writer_process("load")
    assert victim is not None
    world.writer_hang_at = None
    world.kill(victim)


def agent_dies_first(world: World, fake: Any) -> None:
    """Between the claim of an instant and its end there is nothing here: it dies beside it."""
    process = world.agent_process()
    assert process is not None
    world.kill(process)
    dies(world, fake)


def settled(world: World) -> bool:
    return all_settled(world) and finished("load")(world)


def foreign(**instants: str) -> Do:
    """Instants (with their actions) that others have left."""

    def do(world: World, fake: Any) -> None:
        world.foreign |= {t.removeprefix("t"): action for t, action in instants.items()}

    return do


def beating(world: World, fake: Any) -> None:
    world.foreign, world.beating = {OLD: "commit", T[1]: "clean"}, {OLD}


def stalled(world: World) -> bool:
    return world.condition(world.table, "Stalled")["status"] == "True"


def reported(world: World) -> bool:
    return bool(world.kv.get("report/timeline"))


def unready(code: str, message: str = "why not") -> Do:
    def do(world: World, fake: Any) -> None:
        world.table_error = {"code": code, "message": message}

    return do


def refused(code: str, real: Callable[[Meeting, pytest.MonkeyPatch], None], **table: Any) -> Case:
    return Case("report/timeline", real, ((unready(code), reported),), "timeline", table, last=True, ready=False)


ADOPT = {"adoption": {"policy": "Adopt", "rollbackInstants": [OLD]}}
FOREIGN = foreign(**{f"t{OLD}": "commit"})
SETTLING = {
    "a writer that was killed before its commit": Case(
        "settle/", agent(), (works(until=3), (dies, settled)), "timeline"
    ),
    "a writer that was killed after its commit": Case(
        "settle/", agent(), (works(until=5), (dies, settled)), "timeline"
    ),
    "a writer that was killed before it had an instant": Case(
        "settle/", agent(), (works(until=2), (dies, settled)), "timeline"
    ),
    "a writer and the agent": Case("settle/", agent(), (works(until=3), (agent_dies_first, settled)), "timeline"),
    "instants of former writers": Case("settle/", agent(), ((FOREIGN, ready),), "timeline", ADOPT, ready=False),
}
REPORTS = {
    "commits": Case(
        "report/timeline",
        agent(),
        ((lambda w, _: w.make_writer("load"), finished("load")),),
        "timeline",
        {"services": {"clean": {"afterCommits": 10}}},
        last=True,
    ),
    "a writer at work": Case("report/timeline", agent(), (works(until=3),), "timeline", last=True),
    "pending instants of former writers": Case(
        "report/timeline", agent(), ((beating, stalled),), "timeline", last=True, ready=False
    ),
    "a pending instant of a foreign writer": Case(
        "report/timeline",
        agent(),
        ((FOREIGN, lambda w: w.is_true(w.table, "ForeignWriters")),),
        "timeline",
        last=True,
    ),
    "no storage": refused(
        "StorageUnreachable", agent(probe=RuntimeFailure(FailureClass.STORAGE_UNREACHABLE, "why not"))
    ),
    "another table": refused("TableMismatch", agent(compare=creation.TableMismatch("why not"))),
    "another lock": refused("OtherLockAuthority", agent(marker=creation.OtherLockAuthority("why not"))),
    "a table where none may be": refused("TableExists", agent(), adoption={"policy": "Create"}),
    "no table where one must be": refused("TableNotFound", agent(there=False), adoption={"policy": "Adopt"}),
}
CASES = REQUESTS | SETTLING | REPORTS


def both(case: Case, monkeypatch: pytest.MonkeyPatch, simulated: type[World] = World) -> tuple[Any, Any]:
    """What the simulated agent has written, and what the agent's code has."""
    world = simulated()
    told = Told(world)
    play(world, case)
    found = result(world, told, case)
    meeting = Meeting()
    in_its_time(meeting, monkeypatch)
    told = Told(meeting)
    play(meeting, case, case.real(meeting, monkeypatch))
    return found, result(meeting, told, case)


@pytest.mark.parametrize("name", list(CASES))
def test_both_write_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    simulated, real = both(CASES[name], monkeypatch)
    assert simulated == real


def test_every_request_has_a_case() -> None:
    tried = {case.key.removeprefix("done/").partition("-")[0] for case in REQUESTS.values()} - {""} | {"restore"}
    # The deletion of a savepoint is answered in the savepoint's own record.
    assert tried | {RequestKind.SERVICE, RequestKind.UNSAVEPOINT} == set(RequestKind)


# ---- where neither goes on


NONCE = MetadataTable(rebuild="1").nonce
ASKED: dict[str, Any] = {
    request_id(RequestKind.SAVEPOINT, "a"): (savepoint_requests.request("a"), savepoints),
    request_id(RequestKind.RESTORE, "n1"): (
        restore_requests.request(Restore("good", "n1"), ["good"]),
        restores(*UNDONE),
    ),
    request_id(RequestKind.BOOTSTRAP): (
        bootstrap_requests.request("uid-1", Bootstrap("s3a://lake/plain")),
        bootstraps,
    ),
    request_id(RequestKind.METADATA): (metadata_requests.request(MetadataTable(rebuild="1")), metadata("files")),
    request_id(RequestKind.HOLD, "a"): (Hold("a").request("uid-1", since_ms=10**13), holds),
}
"""By id: the request, and the agent's code that serves it."""
OTHER = {"inc": "other", "attempt": "lake.other-1"}


def gate(state: str) -> Do:
    def do(world: World, fake: Any) -> None:
        world.put("gate", {**world.kv["gate"].value, "state": state})

    return do


def phase(role: str, phase: str) -> Do:
    def do(world: World, fake: Any) -> None:
        world.put("settle/other", {**OTHER, "reason": "LeaseGone", "role": role, "phase": phase})

    return do


def registered(world: World, fake: Any) -> None:
    world.put("writer/other", {**OTHER, "role": "agent"})


def pending(world: World, fake: Any) -> None:
    world.put(f"instant/{T[11]}", {"inc": "other", "action": "commit", "state": "Pending"})
    if fake is not None and not isinstance(fake, SavepointFake):
        fake.names.append(f"{T[11]}.commit.requested")


def unforgotten(world: World, fake: Any) -> None:
    """The last commit's owner is not settled. A table with a commit is not bootstrapped."""
    if T[2] not in world.completed:
        commits(world, T[2])
    if isinstance(fake, BootstrapFake):
        fake.names.append(f"{T[2]}_{T[3]}.commit")
    world.put(f"instant/{T[2]}", {"inc": "other", "action": "commit", "state": "Pending"})


def older(world: World, fake: Any) -> None:
    world.put("assignment", {**world.kv["assignment"].value, "metadataTable": "Files/0"})


FREE, OLDER = "nothing in the way", "its options are older"
DEAD, GONE = "a writer is not settled", "a writer is rolled back"
GONE_AGENT, KEPT_RECORD = "another agent is rolled back", "a completed instant has its record"
STATES: dict[str, Do] = {
    FREE: nothing,
    "the gate is open": gate("open"),
    "the gate is frozen": gate("frozen"),
    "another agent is registered": registered,
    "another agent is not settled": phase("agent", "Draining"),
    GONE_AGENT: phase("agent", "RollingBack"),
    DEAD: phase("writer", "Draining"),
    GONE: phase("writer", "RollingBack"),
    "an instant is pending": pending,
    KEPT_RECORD: unforgotten,
    OLDER: older,
}
GO_ON = {
    "savepoint-a": {FREE, GONE_AGENT, DEAD, GONE, OLDER},
    "restore-n1": {FREE, GONE_AGENT, DEAD, GONE, KEPT_RECORD, OLDER},
    "bootstrap": {FREE, OLDER},
    "metadata": {FREE, KEPT_RECORD},
    "hold-a": set(STATES) - {"another agent is registered", "another agent is not settled"},
}
"""The states in which a request is carried out; the lock of a dead writer is not there."""
JUDGED = "the operator must not ask"


def answer(world: World, id: str, state: Do, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is written about a request that is put into a world in this state."""
    request, real = ASKED[id]
    world.make_table()
    world.run(ready)
    value = {k: v for k, v in world.kv["gate"].value.items() if k != "adopted" or id != "bootstrap"}
    world.put("gate", {**value, "state": "closed", **({"restoring": "n1"} if id == "restore-n1" else {})})
    world.put("assignment", {**world.kv["assignment"].value, "metadataTable": NONCE})
    if id == "restore-n1":
        restore(*UNDONE)(world, None)
    elif id != "bootstrap":
        commits(world, T[1], T[2])
    world.put(f"request/{id}", request.to_json())
    fake = real(world, monkeypatch) if isinstance(world, Meeting) else None
    state(world, fake)
    told = Told(world)
    process = world.agent_process()
    assert process is not None
    try:
        for _ in range(10):
            world._serve(process)
    except AssertionError as error:
        if "is asked for while" not in str(error):
            raise
        return JUDGED
    return told.below(f"done/{id}")


@pytest.mark.parametrize("state", list(STATES))
@pytest.mark.parametrize("id", list(ASKED))
def test_both_wait_alike(id: str, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    simulated, real = (answer(world, id, STATES[state], monkeypatch) for world in (World(), Meeting()))
    assert ("Completed" in [shapes[-1]["result"] for shapes in real]) == (state in GO_ON[id]), real
    assert simulated == real or (simulated == JUDGED and state == "the gate is open")


# ---- what another agent has left


AHEAD = {"result": "Running", "inc": "other", "failures": 1, "beginMs": 1}
RESTORING = {"nonce": "n1", "savepoint": "good", "result": "Running", "boundary": T[4], "newest": T[2], "undone": 2}


def half_bootstrapped(world: World, fake: Any) -> None:
    world.put("done/bootstrap", {**AHEAD, "tableUID": "uid-1", "mode": "FullRecord", "source": "s3a://lake/plain"})


def bootstrapped(world: World, fake: Any) -> None:
    half_bootstrapped(world, fake)
    commits(world, T[1])
    world.bootstrapped = [T[1]]
    if fake is not None:
        fake.names = [f"{T[1]}_{T[4]}.commit"]
        fake.extra = {T[1]: {BOOTSTRAP: json.dumps({"tableUID": "uid-1", "source": "s3a://lake/plain"})}}


def of_another_table(world: World, fake: Any) -> None:
    world.put("done/bootstrap", {"tableUID": "uid-0", "result": "Completed", "instant": T[1], "failures": 3})


def half_changed(world: World, fake: Any) -> None:
    world.put("done/metadata", {"nonce": NONCE, "result": "Running", "inc": "other", "failures": 1, "retryAtMs": 1})


def of_another_nonce(world: World, fake: Any) -> None:
    world.put("done/metadata", {"nonce": "Off/", "result": "Completed", "partitions": [], "failures": 3})


def announced(world: World, fake: Any) -> None:
    value = {**RESTORING, "undoneInstants": [T[6], T[7]], "after": T[9], "beginMs": 1, "inc": "other", "atMs": 1}
    world.put("done/restore-n1", value)


def restoring(claimed: bool) -> Do:
    def do(world: World, fake: Any) -> None:
        process = world.agent_process()
        assert process is not None
        announced(world, fake)
        phase("agent", "RollingBack")(world, fake)
        record = {"inc": "other", "action": "restore", "state": "Pending"}
        world.put(f"instant/{T[20]}", {**record, **({"claimedBy": process.inc} if claimed else {})})
        if fake is not None:
            fake.names.append(f"{T[20]}.restore.requested")
            fake.plan = [(T[6], "commit"), (T[7], "commit")]

    return do


def restored(world: World, fake: Any) -> None:
    announced(world, fake)
    world.put("done/restore-n1", {**world.kv["done/restore-n1"].value, "instant": T[20]})
    world.restored.append("n1")
    world.restore_instants.add(T[20])
    world.completed -= {T[6], T[7]}
    if fake is not None:
        fake.names[:] = [*KEPT, f"{T[20]}_{T[25]}.restore"]


LEFT: dict[str, tuple[str, Do]] = {
    "a bootstrap that was announced": ("bootstrap", half_bootstrapped),
    "a bootstrap that has its commit": ("bootstrap", bootstrapped),
    "a bootstrap of another HudiTable": ("bootstrap", of_another_table),
    "a metadata table that is half made": ("metadata", half_changed),
    "another metadata table": ("metadata", of_another_nonce),
    "a restore that was announced": ("restore-n1", announced),
    "a restore that is pending": ("restore-n1", restoring(claimed=False)),
    "a restore that is claimed": ("restore-n1", restoring(claimed=True)),
    "a restore that is completed": ("restore-n1", restored),
}


@pytest.mark.parametrize("left", list(LEFT))
def test_both_go_on_alike(left: str, monkeypatch: pytest.MonkeyPatch) -> None:
    id, state = LEFT[left]
    simulated, real = (answer(world, id, state, monkeypatch) for world in (World(), Meeting()))
    assert simulated == real
    assert real[0][-1]["result"] == ("Running" if left == "a restore that is pending" else "Completed")


# ---- writers


def tally(world: World) -> Tally:
    (instant,) = world.completed
    counted = Tally()
    counted.committed(instant, world.completion(instant), ROWS, since=0)
    return counted


def test_a_writer_reports_alike() -> None:
    world = World()
    world.make_table()
    world.make_writer("load")
    world.run(finished("load"))
    process, meeting = world.writer_process("load"), Meeting()
    assert process is not None
    session: Any = SimpleNamespace(attempt=process.attempt, inc=process.inc, etcd=meeting.etcd)
    Reporter(session, tally(world)).stage(Stage.COMMITTED)
    key = f"report/attempt/{process.attempt}"
    assert shaped(world.kv[key].value) == shaped(meeting.kv[key].value)


def test_a_writer_that_ends_for_a_change_says_so_alike() -> None:
    world = World()
    world.make_table()
    world.make_writer("feed", streaming={"intervalSeconds": 1})
    world.run(lambda w: len(w.completed) == 1)
    counted = tally(world)
    world.change(lock={"leaseSeconds": 20})
    world.run(lambda w: any(pod.message for pod in w.pods.values()))
    (said,) = [json.loads(pod.message) for pod in world.pods.values() if pod.message]
    real = json.loads(termination_message(counted, Failure(FailureClass.ENDED_FOR_CHANGE, said["message"])))
    assert shaped(said) == shaped(real)


# ---- what would be seen


@pytest.mark.parametrize(
    "rename",
    [
        lambda value: {{"boundary": "bound"}.get(name, name): one for name, one in value.items()},
        lambda value: {name: one for name, one in value.items() if name != "completionTime"},
        lambda value: {**value, "name": "savepoint-a"},
        lambda value: {**value, "more": 1},
    ],
    ids=["another name", "a field less", "another word", "a field more"],
)
def test_a_simulated_agent_that_writes_otherwise_is_seen(rename: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    class Otherwise(World):
        def put(self, key: str, value: JsonDict, lease: str = "") -> int:
            return Store.put(self, key, rename(value) if key == "done/savepoint-a" else value, lease)

    simulated, real = both(REQUESTS["a savepoint"], monkeypatch, Otherwise)
    assert simulated != real


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("done/savepoint-a", {"bound": T[1]}, "SavepointDone has no field bound"),
        ("done/restore-n1", {"id": "restore-n1"}, "RestoreDone has no field id"),
        ("done/bootstrap", {"result": "Ready"}, r"BootstrapDone\.result is not one of"),
        ("done/metadata", {"atMs": "now"}, r"MetadataDone\.atMs is not a whole number"),
        ("settle/x", {"phase": "Swept", "instants": {T[1]: {"result": "Gone"}}}, r"has no field instants\.result"),
        ("settle/x", {"inc": "x"}, r"SettleRecord\.phase is missing"),
        ("report/timeline", {"agent": "x"}, "TimelineReport has no field agent"),
        ("report/attempt/lake.load-1", {"rows": 1}, "AttemptReport has no field rows"),
    ],
)
def test_no_world_has_a_value_that_no_reader_knows(key: str, value: JsonDict, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        World().put(key, value)

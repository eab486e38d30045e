"""`kubectl hudi plan` and `why` beside the operator: each reason for which a writer does not start,
and each one for which a table is stuck.

The operator of a simulated world writes the statuses that the plan reads. Then somebody applies a
change, and the operator's planner, which sees pods and etcd, is asked what happens, and so is the
plan. A check of the planner that has no situation here, and a reason that no situation meets, fail
the test. What the plan cannot know has its words in `outlook.UNKNOWN`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml

from hudi_kubectl import outlook, why
from hudi_kubectl.objects import Table, Writer
from hudi_kubectl.outlook import Namespace, Outlook
from hudi_operator.model.config import ConsentConfig, CredentialsBrokerConfig, OperatorConfig
from hudi_operator.model.facts import Observed
from hudi_operator.plan import forecast
from hudi_operator.plan.core.checks import Chain
from hudi_operator.plan.core.view import View, build_view
from hudi_operator.plan.gate import stalled
from hudi_operator.plan.writers import admission, awaited, next_step
from hudi_operator.plan.writers.admission import Decision, Kind
from hudi_operator.plan.writers.next_step import Verdict
from hudi_operator.plan.writers.runs import Progress
from tests.support.world import simulated_world
from tests.support.world.simulated_world import CONFIG, World, finished, in_phase, ready_world

JsonDict = dict[str, Any]
Step = Callable[[World], None]
BAD = {"hoodie.base.path": "s3a://elsewhere/"}
OWN_ACCESS = {"secretRefs": [{"name": "keys", "as": "S3"}]}
STORE = {**OWN_ACCESS, "options": {"fs.s3a.endpoint": "https://store"}}
BUCKETS: JsonDict = {"type": "MergeOnRead", "orderingFields": ["ts"], "index": {"type": "Bucket", "buckets": 4}}
ALONE = {"concurrency": {"mode": "SingleWriter"}}
SLOW = {"fencing": {"drainSeconds": 300}}
TIMELINE = {"activeLength": 1}
DISJOINT: JsonDict = {"partitionFields": ["day"], "concurrency": {"admission": "DisjointPartitions"}}
VERDICTS = {
    Kind.ACTIVE: {outlook.RUNS, outlook.STALLS},
    Kind.START: {outlook.STARTS, outlook.UNTOLD},
    Kind.WAIT: {outlook.WAITS},
    Kind.FINISHED: {outlook.RESTS},
    Kind.SCHEDULED: {outlook.RESTS},
    Kind.SUSPENDED: {outlook.RESTS},
    Kind.DELETING: {outlook.WAITS},
    Kind.STALLED: {outlook.STALLS},
}
"""What the plan may say of a decision."""
WORDS = {
    Verdict.STARTS: {outlook.STARTS, outlook.UNTOLD},
    Verdict.WAITS: {outlook.WAITS},
    Verdict.STALLS: {outlook.STALLS},
    Verdict.GOES_ON: {outlook.RUNS},
    Verdict.RESTS: {outlook.RESTS},
}
"""What the plan may say where `status.plan` has this word."""


def nothing(world: World) -> None:
    pass


def made(**spec: Any) -> Step:
    """A person applies a HudiWriter `w`: a new one, or other fields of the one that is there."""

    def apply(world: World) -> None:
        if "w" in world.writers:
            world.edit(world.writers["w"], **spec)
        else:
            world.make_writer("w", **spec)

    return apply


def both(table: JsonDict, **spec: Any) -> Step:
    """The same, and fields of its HudiTable in the same file."""

    def apply(world: World) -> None:
        world.change(**table)
        made(**spec)(world)

    return apply


def ended(world: World, name: str = "w") -> None:
    world.make_writer(name)
    world.run(finished(name))


def running(name: str = "w", **spec: Any) -> Step:
    """A writer whose attempt hangs."""

    def run(world: World) -> None:
        world.writer_hang_at = 1
        world.make_writer(name, **spec)
        world.run(lambda w: w.is_true(w.writers[name], "Running"))
        world.writer_hang_at = None
        world.pass_time(5)

    return run


def backing_off(world: World) -> None:
    world.exit_codes = [11]
    world.make_writer("w", retryPolicy={"limit": 3, "backoffSeconds": 900, "maxBackoffSeconds": 900})
    world.run(lambda w: (w.writers["w"].get("status") or {}).get("state") == "Retrying" and not w.names("settle"))


def lost(name: str = "w", *, at: int) -> Step:
    """A writer whose process was killed at a step of its attempt, and that somebody suspends.

    3: it has the lock.
    """

    def lose(world: World) -> None:
        world.writer_hang_at = at
        world.make_writer(name)
        world.run(lambda w: (p := w.writer_process(name)) is not None and p.step == at)
        world.writer_hang_at = None
        victim = world.writer_process(name)
        assert victim is not None
        world.kill(victim)
        world.edit(world.writers[name], suspend=True)
        world.run(in_phase("Draining"))
        world.pass_time(5)

    return lose


def without_a_source(world: World) -> None:
    world.make_writer("other", priority=5, source=reads(tableRef={"name": "orders"}))
    world.pass_time(5)


def deleted(world: World) -> None:
    running()(world)
    world.delete(world.writers["w"])


def table_deleted(world: World) -> None:
    running("other")(world)
    assert world.table is not None
    world.delete(world.table)


def table_was_bad(world: World) -> None:
    world.change(hudiOptions=BAD)
    world.pass_time(5)


def namespace_has(text: str) -> Step:
    """Defaults for its HudiWriters."""
    return lambda world: world.set_defaults(text)


def own_as_source(world: World) -> None:
    """A HudiTable that is read is read live, as any other."""
    world.sources["flights"] = world.table or {}


def with_savepoint(world: World) -> None:
    ended(world, "first")
    world.change(savepoints=[{"name": "a"}])
    world.run(
        lambda w: (w.status("savepoints") or [{}])[0].get("outcome") == "Completed" and w.is_true(w.table, "Ready")
    )


def without_agent(world: World) -> None:
    """Its gate is open, and its agent is gone."""
    world.schedulable = False
    for pod in list(world.pods.values()):
        world._mark_deleted(pod, 1)
    world.run(lambda w: w.condition(w.table, "Ready")["reason"] == "AgentNotReady", seconds=600)


def sources(**tables: JsonDict) -> Step:
    """Other HudiTables of the namespace: spec and status."""

    def make(world: World) -> None:
        for name, each in tables.items():
            spec = {"path": f"s3a://lake/{name}", "recordKeyFields": ["id"], **each.get("spec", {})}
            made_of = world._object("HudiTable", name, spec)
            world.sources[name] = {**made_of, "status": each.get("status", {"timeline": TIMELINE})}

    return make


def reads(**hudi: Any) -> JsonDict:
    return {"hudi": {"startFrom": "Earliest", **hudi}}


def kafka(**fields: Any) -> JsonDict:
    value = {"format": "String"}
    return {"kafka": {"bootstrapServers": ["kafka:9092"], "value": value, **(fields or {"topics": ["t"]})}}


def jdbc(**fields: Any) -> JsonDict:
    server = {"engine": "PostgreSQL", "host": "db", "database": "shop", "secretRef": {"name": "reader"}}
    return {"jdbc": {**server, **fields}}


def condition(kind: str, status: str, reason: str) -> JsonDict:
    return {"type": kind, "status": status, "reason": reason}


@dataclass(frozen=True)
class Case:
    """A situation. ``check``: of the planner, which decides; empty: nothing keeps `w` back.

    ``looked``: the operator looks before the change, for so many seconds where nothing is waited
    for. ``unknown``: words of `outlook.UNKNOWN` where the plan cannot know it. ``facts``: what the
    operator sees besides the world.
    """

    id: str
    check: str
    reason: str
    kind: Kind
    change: Step
    table: JsonDict = field(default_factory=dict)
    before: Step = nothing
    config: OperatorConfig = CONFIG
    unknown: str = ""
    facts: JsonDict = field(default_factory=dict)
    world: Callable[..., World] = ready_world
    verdicts: frozenset[str] = frozenset()
    """Instead of those of the kind."""


def unready(until: Callable[[World], bool], **settings: Any) -> Callable[..., World]:
    """A world whose table does not get ready."""

    def make(**table: Any) -> World:
        world = World(**settings)
        world.make_table(**table)
        world.run(until)
        return world

    return make


def reports(reason: str) -> Callable[[World], bool]:
    return lambda world: world.condition(world.table, "Ready")["reason"] == reason


UNTOLD = frozenset({outlook.UNTOLD})
STALL, WAIT = Kind.STALLED, Kind.WAIT
CASES = (
    Case("starts", "", "Admitted", Kind.START, made()),
    Case("other fields of the table", "", "Admitted", Kind.START, both({"concurrency": {"maxWriters": 3}})),
    # ---- its own state
    Case("deleted", "_being_deleted", "Deleted", Kind.DELETING, made(operation="Insert"), before=deleted),
    Case("runs", "_has_an_active_attempt", "Admitted", Kind.ACTIVE, made(operation="Insert"), before=running()),
    Case("cron", "_schedule_or_source_is_wrong", "InvalidSpec", STALL, made(schedule={"cron": "61 * * * *"})),
    Case(
        "time zone",
        "_schedule_or_source_is_wrong",
        "InvalidSpec",
        STALL,
        made(schedule={"cron": "1 * * * *", "timeZone": "Europe/Nowhere"}),
    ),
    Case(
        "topic pattern",
        "_schedule_or_source_is_wrong",
        "InvalidSpec",
        STALL,
        made(source=kafka(topicPattern="(")),
    ),
    Case(
        "start of a topic",
        "_schedule_or_source_is_wrong",
        "InvalidSpec",
        STALL,
        made(source=kafka(topics=["t"], startFrom="2026-02-30T10:00:00Z")),
    ),
    Case(
        "parentheses of a query",
        "_schedule_or_source_is_wrong",
        "InvalidSpec",
        STALL,
        made(source=jdbc(query="SELECT (1")),
    ),
    Case("over", "_run_is_over", "Succeeded", Kind.FINISHED, made(operation="Insert"), before=ended),
    Case("suspended", "_is_suspended", "Suspended", Kind.SUSPENDED, made(suspend=True)),
    Case("table suspended", "_is_suspended", "Suspended", Kind.SUSPENDED, both({"suspend": True})),
    Case(
        "schedule", "_first_tick_is_to_come", "AwaitingSchedule", Kind.SCHEDULED, made(schedule={"cron": "0 3 * * *"})
    ),
    Case("defaults", "_defaults_are_wrong", "InvalidDefaults", STALL, made(), before=namespace_has("image: x")),
    Case(
        "defaults that it does not bear",
        "_defaults_are_wrong",
        "InvalidDefaults",
        STALL,
        made(driver={"nodeSelector": {f"label-{number}": "x" for number in range(16)}}),
        before=namespace_has("driver: {nodeSelector: {pool: hudi}}"),
    ),
    Case("option", "_option_is_not_allowed", "OptionNotAllowed", STALL, made(hudiOptions=BAD)),
    Case("spark", "_option_is_not_allowed", "OptionNotAllowed", STALL, made(sparkConf={"spark.jars": "x"})),
    Case(
        "event log in the table",
        "_event_log_is_not_allowed",
        "PathNotAllowed",
        STALL,
        made(sparkConf={"spark.eventLog.dir": "s3a://lake/flights/log"}),
    ),
    Case(
        "event log of the defaults in the table",
        "_event_log_is_not_allowed",
        "PathNotAllowed",
        STALL,
        made(),
        before=namespace_has("sparkConf: {spark.eventLog.dir: s3a://lake/flights/log}"),
    ),
    Case(
        "reads itself",
        "_source_is_not_allowed",
        "SourceNotAllowed",
        STALL,
        made(source=reads(path="s3a://lake/flights")),
    ),
    Case(
        "reads its own table",
        "_source_is_not_allowed",
        "SourceNotAllowed",
        STALL,
        made(source=reads(tableRef={"name": "flights"})),
        before=own_as_source,
    ),
    Case(
        "another scheme",
        "_source_is_not_allowed",
        "SourceNotAllowed",
        STALL,
        made(source=reads(path="gs://lake/other")),
    ),
    Case(
        "another access",
        "_source_is_not_allowed",
        "SourceNotAllowed",
        STALL,
        made(source=reads(tableRef={"name": "orders"})),
        before=sources(orders={"spec": {"storage": OWN_ACCESS}}),
    ),
    Case(
        "deletes of a source whose class decides",
        "_source_is_not_allowed",
        "SourceNotAllowed",
        STALL,
        made(source=reads(tableRef={"name": "orders"}, deletes="Carry")),
        before=sources(
            orders={
                "spec": {
                    "type": "MergeOnRead",
                    "image": "i",
                    "merge": {
                        "mode": "Custom",
                        "custom": {"strategyId": "1" * 8 + "-1111-1111-1111-" + "1" * 12, "className": "a.B"},
                    },
                }
            }
        ),
    ),
    Case(
        "files of the pod",
        "_source_is_not_allowed",
        "SourceNotAllowed",
        STALL,
        made(source={"files": {"format": "csv", "paths": ["file:///etc/"]}}),
    ),
    Case(
        "image",
        "_image_is_not_allowed",
        "ImageNotAllowed",
        STALL,
        made(image="other:1"),
        config=replace(CONFIG, allowed_images=()),
        unknown="allowed images",
    ),
    Case(
        "account",
        "_account_is_not_possible",
        "FencingModeNotPossible",
        STALL,
        both({"fencing": {"mode": "Credentials"}, "storage": STORE}, serviceAccountName="mine"),
        config=replace(
            CONFIG, credentials_broker=CredentialsBrokerConfig(url="https://b", store_endpoint="https://store")
        ),
    ),
    Case(
        "reserved Secret",
        "_reference_is_not_allowed",
        "ReferenceNotAllowed",
        STALL,
        made(imagePullSecrets=[{"name": "hudi-operator-etcd"}]),
    ),
    Case(
        "consent",
        "_reference_is_not_allowed",
        "ReferenceNotAllowed",
        STALL,
        made(serviceAccountName="mine"),
        config=replace(CONFIG, consent=ConsentConfig(service_accounts="Required")),
        unknown="whether their owners consent",
    ),
    Case("no partitions", "_partitions_are_wrong", "InvalidSpec", STALL, made(partitions=["day=1"])),
    Case(
        "replaces partitions beside buckets",
        "_partitions_are_wrong",
        "InvalidSpec",
        STALL,
        made(operation="InsertOverwrite"),
        table={**BUCKETS, "concurrency": {"mode": "NonBlocking"}},
    ),
    Case(
        "deletes partitions beside buckets",
        "_partitions_are_wrong",
        "InvalidSpec",
        STALL,
        made(operation="DeletePartition", partitions=["1"]),
        table={**BUCKETS, "partitionFields": ["day"], "concurrency": {"mode": "NonBlocking"}},
    ),
    Case(
        "rights",
        "_rights_are_missing",
        "AwaitingRights",
        WAIT,
        made(),
        facts={"secrets_unreadable": True},
        unknown="its rights in the namespace",
    ),
    Case("backs off", "_backs_off", "BackOff", WAIT, made(operation="Insert"), before=backing_off),
    # ---- its turn
    Case("table stalls", "_table_is_stalled", "TableStalled", WAIT, both({"hudiOptions": BAD})),
    Case("table was stalled", "_table_is_stalled", "TableStalled", WAIT, made(), before=table_was_bad),
    Case("table deleted", "_table_is_deleted", "TableDeleted", WAIT, made(), before=table_deleted),
    Case(
        "store away",
        "_agent_reports_an_error",
        "StorageUnreachable",
        WAIT,
        made(),
        verdicts=UNTOLD,
        world=unready(reports("StorageUnreachable"), table_error={"code": "StorageUnreachable", "message": "…"}),
    ),
    Case(
        "bootstrap",
        "_bootstrap_comes_first",
        "TableBootstrap",
        WAIT,
        made(),
        table={"bootstrap": {"source": {"format": "Parquet", "path": "s3a://landing/old"}}},
        world=unready(reports("Bootstrapping"), bootstrap_hang_at=1),
    ),
    Case(
        "restore",
        "_restore_comes_first",
        "TableRestore",
        WAIT,
        both({"restore": {"savepoint": "a", "nonce": "n"}}),
        before=with_savepoint,
    ),
    Case("savepoint", "_savepoint_comes_first", "TableSavepoint", WAIT, both({"savepoints": [{"name": "a"}]})),
    Case(
        "metadata table",
        "_metadata_table_comes_first",
        "TableMetadata",
        WAIT,
        both({"metadataTable": {"enabled": False}}),
    ),
    Case("lease", "_table_changes", "TableChanging", WAIT, both({"lock": {"leaseSeconds": 20}})),
    Case("mode", "_table_changes", "TableChanging", WAIT, both(ALONE)),
    Case(
        "not ready yet",
        "_gate_is_not_open",
        "TableNotReady",
        WAIT,
        made(),
        verdicts=UNTOLD,
        world=unready(reports("AgentNotReady"), schedulable=False),
    ),
    Case(
        "its dead attempt has the lock",
        "_previous_attempt_may_hold_the_lock",
        "PreviousAttempt",
        WAIT,
        made(suspend=False),
        table=SLOW,
        before=lost(at=3),
    ),
    Case(
        "missing source",
        "_source_is_not_there",
        "SourceNotFound",
        WAIT,
        made(source=reads(tableRef={"name": "orders"})),
    ),
    Case(
        "missing view",
        "_source_is_not_there",
        "SourceNotFound",
        WAIT,
        made(
            source={
                "sql": {"query": "SELECT * FROM v", "views": [{"name": "v", "hudi": {"tableRef": {"name": "orders"}}}]}
            }
        ),
    ),
    Case(
        "young source",
        "_source_is_not_there",
        "SourceNotReady",
        WAIT,
        made(source=reads(tableRef={"name": "orders"})),
        before=sources(orders={"status": {}}),
    ),
    Case(
        "source without its rows",
        "_source_is_not_there",
        "SourceNotReady",
        WAIT,
        made(source=reads(tableRef={"name": "orders"})),
        before=sources(
            orders={"status": {"timeline": TIMELINE, "conditions": [condition("Bootstrapped", "False", "Waiting")]}}
        ),
    ),
    Case(
        "source that is restored",
        "_source_is_not_there",
        "SourceNotReady",
        WAIT,
        made(source=reads(tableRef={"name": "orders"})),
        before=sources(
            orders={"status": {"timeline": TIMELINE, "conditions": [condition("Ready", "False", "Restore")]}}
        ),
    ),
    Case(
        "somebody may still write",
        "_single_writer_is_taken",
        "SingleWriter",
        WAIT,
        made(),
        table={**ALONE, **SLOW},
        before=lost("other", at=3),
    ),
    Case(
        "places",
        "_places_are_taken",
        "MaxWriters",
        WAIT,
        made(),
        table={"concurrency": {"maxWriters": 1}},
        before=running("other"),
    ),
    Case(
        "partitions of another",
        "block",
        "OverlappingPartitions",
        WAIT,
        made(partitions=["1*"]),
        table=DISJOINT,
        before=running("other", partitions=["*1"]),
    ),
    # ---- what does not keep it
    Case(
        "other partitions",
        "",
        "Admitted",
        Kind.START,
        made(partitions=["1*"]),
        table=DISJOINT,
        before=running("other", partitions=["2*"]),
    ),
    Case(
        "behind one that waits for something else",
        "",
        "Admitted",
        Kind.START,
        made(),
        table=DISJOINT,
        before=without_a_source,
    ),
    Case(
        "its dead attempt has no lock", "", "Admitted", Kind.START, made(suspend=False), table=SLOW, before=lost(at=1)
    ),
    Case("its agent is away", "", "Admitted", Kind.START, made(), before=without_agent, verdicts=UNTOLD),
    Case(
        "source of its own views",
        "",
        "Admitted",
        Kind.START,
        made(
            source={
                "sql": {"query": "SELECT * FROM v", "views": [{"name": "v", "hudi": {"tableRef": {"name": "flights"}}}]}
            },
        ),
        before=own_as_source,
    ),
)
ELSEWHERE = {
    "_gate_is_closed": "it asks WHY_NOT_OPEN",
    "planned": "PlanningFailed: a defect of the operator, which outlook.UNKNOWN names",
}
"""Checks that have no situation of their own, and why."""


def checks(*chains: Chain[Any, Any]) -> Iterator[str]:
    for chain in chains:
        for check in chain.checks:
            if isinstance(check, Chain):
                yield from checks(check)
            else:
                yield str(getattr(check, "__name__", check))


def test_every_check_and_every_reason_has_a_situation() -> None:
    wanted = {*checks(admission.OWN_STATE, admission.MAY_START, admission.WHY_NOT_OPEN), "block", "planned"}
    assert wanted == {case.check for case in CASES if case.check} | ELSEWHERE.keys()
    reasons = {case.reason for case in CASES if case.kind in (STALL, WAIT)}
    assert awaited.EVENTS.keys() | awaited.POLLED.keys() == reasons - {"StorageUnreachable"} | {"PlanningFailed"}
    assert {case.kind for case in CASES} == set(Kind) == VERDICTS.keys()


def objects(world: World) -> tuple[dict[str, Table], dict[str, Writer]]:
    assert world.table is not None
    mine = {"flights": Table(copy.deepcopy(world.table))}
    others = {name: Table(copy.deepcopy(obj)) for name, obj in world.sources.items() if name != "flights"}
    return mine | others, {name: Writer(copy.deepcopy(obj)) for name, obj in world.writers.items()}


def planner(observed: Observed, config: OperatorConfig) -> tuple[View, dict[str, Decision]]:
    """The operator's own word."""
    view = build_view(observed, config)
    progress = {w.name: Progress(tuple(a.entry for a in w.attempts)) for w in view.writers}
    return view, admission.decide(view, progress)


def asked(case: Case) -> tuple[Decision, Outlook]:
    decision, told, _ = with_status(case)
    return decision, told


def with_status(case: Case) -> tuple[Decision, Outlook, str]:
    """The same, with the verdict that the operator writes to ``status.plan``."""
    world = case.world(**case.table)
    case.before(world)
    tables_before, writers_before = objects(world)
    case.change(world)
    tables, writers = objects(world)
    view, decisions = planner(replace(world.observe(), **case.facts), case.config)
    given = outlook.defaults_of(world.defaults, yaml.safe_load)
    space = Namespace(tables_before, writers_before, tables, writers, given)
    (told,) = outlook.of_writers(space, ["w"], world.now_ms)
    mine = next(one for one in view.writers if one.name == "w")
    plan = next_step.of(view, mine, Progress(tuple(a.entry for a in mine.attempts)), decisions["w"])
    return decisions["w"], told, plan.verdict


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_plan_says_what_the_operator_does(case: Case) -> None:
    decision, told = asked(case)
    assert (decision.kind, decision.reason) == (case.kind, case.reason), decision
    if case.unknown:
        assert any(case.unknown in one for one in outlook.UNKNOWN), case.unknown
        return
    assert told.verdict in (case.verdicts or VERDICTS[case.kind]), (decision, told)
    assert told.facts


@pytest.mark.parametrize("case", [case for case in CASES if not case.unknown], ids=lambda case: case.id)
def test_the_status_has_the_same_plan(case: Case) -> None:
    decision, told, verdict = with_status(case)
    assert told.verdict in (case.verdicts or WORDS[Verdict(verdict)]), (decision, told, verdict)


def test_a_suspended_writer_reads_in_its_status_what_will_refuse_it() -> None:
    """Before anybody resumes it, and no more once it is corrected."""
    world = ready_world()
    world.make_writer("w", suspend=True, hudiOptions=BAD)
    world.pass_time(5)
    plan = world.writers["w"]["status"]["plan"]
    assert (plan["verdict"], plan["reason"]) == ("Stalls", "OptionNotAllowed")
    assert "hoodie.base.path" in plan["message"]
    assert not world.is_true(world.writers["w"], "Stalled"), "nothing is due"
    world.edit(world.writers["w"], hudiOptions={})
    world.pass_time(5)
    plan = world.writers["w"]["status"]["plan"]
    assert plan == {"verdict": "Rests", "reason": "Suspended", "message": "spec.suspend is set"}


@pytest.mark.parametrize(
    ("before", "table"),
    [
        pytest.param(running(), {}, id="runs"),
        pytest.param(ended, {}, id="is over"),
        pytest.param(lambda world: world.make_writer("w", suspend=True), {}, id="is suspended"),
        pytest.param(nothing, {"suspend": True}, id="its table is suspended"),
        pytest.param(lambda world: world.make_writer("w", schedule={"cron": "0 3 * * *"}), {}, id="is scheduled"),
    ],
)
@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"hudiOptions": BAD}, id="option"),
        pytest.param({"partitions": ["day=1"]}, id="partitions"),
        pytest.param({"source": kafka(topics=["t"], startFrom="2026-02-30T10:00:00Z")}, id="source"),
    ],
)
def test_what_stalls_its_next_attempt_is_told_while_nothing_is_due(
    before: Step, table: JsonDict, spec: JsonDict
) -> None:
    """The plan had said "goes on" and "does not start", with exit code 0."""
    decision, told, verdict = with_status(Case("", "", "", Kind.ACTIVE, made(**spec), before=before, table=table))
    assert told.verdict == outlook.STALLS, (decision, told)
    assert verdict == Verdict.STALLS
    assert told.is_bad
    if decision.kind is not Kind.STALLED:
        assert told.facts[1].startswith("until its next attempt is due it "), told


def test_a_running_writer_of_a_table_that_will_stall_is_told_so() -> None:
    decision, told = asked(Case("", "", "", Kind.ACTIVE, both({"hudiOptions": BAD}), before=running()))
    assert (decision.kind, told.verdict) == (Kind.ACTIVE, outlook.RUNS)
    assert told.facts[-1].startswith(
        "HudiTable flights is stalled (OptionNotAllowed: spec.hudiOptions['hoodie.base.path']"
    )


def test_a_running_writer_is_told_of_wrong_defaults() -> None:
    """They are another object, as its table is, and it has begun without them."""
    case = Case("", "", "", Kind.ACTIVE, lambda world: world.set_defaults("image: x"), before=running())
    decision, told = asked(case)
    assert (decision.kind, told.verdict) == (Kind.ACTIVE, outlook.RUNS)
    said = "no other attempt follows attempt 1: ConfigMap hudi-operator-defaults, defaults.yaml: image = 'x': cannot"
    assert told.facts[0].startswith(said)


def test_a_stalled_writer_takes_no_place_of_the_plan() -> None:
    """Whatever it is stalled for, also what only the operator can see: it has said so."""
    world = ready_world(concurrency={"maxWriters": 1})
    world.make_writer("other", priority=5)
    said = {"type": "Stalled", "status": "True", "reason": "PodRefused", "message": "a webhook refuses its pod"}
    world.writers["other"]["status"] = {"state": "Stalled", "conditions": [said]}
    before = objects(world)
    made()(world)
    (told,) = outlook.of_writers(Namespace(*before, *objects(world)), ["w"], world.now_ms)
    assert told.verdict == outlook.STARTS


def test_who_follows_in_the_schedules_time_takes_no_place() -> None:
    world = ready_world(concurrency={"maxWriters": 1})
    world.make_writer("other", priority=5, schedule={"cron": "0 3 * * *"})
    world.pass_time(5)
    before = objects(world)
    made()(world)
    (told,) = outlook.of_writers(Namespace(*before, *objects(world)), ["w"], world.now_ms)
    assert told.verdict == outlook.STARTS


# ---- tables
TABLES: dict[str, JsonDict] = {
    "_spec_is_unreadable": {"storage": {"secretRefs": [{"name": "keys", "as": "Env"}]}},
    "_path_is_not_allowed": {"path": "file:///etc/hudi"},
    "_lock_is_wrong": {"lock": {"leaseSeconds": 5, "keepAliveSeconds": 3, "rpcTimeoutSeconds": 3}},
    "_services_are_wrong": {"services": {"clustering": {"enabled": True, "layout": "ZOrder", "sortColumns": ["a"]}}},
    "_bootstrap_is_wrong": {"bootstrap": {"source": {"format": "Parquet", "path": "gs://landing/old"}}},
    "_callback_is_wrong": {"commitCallback": {"url": "http://example.com/"}},
    "_catalog_is_wrong": {
        "path": "hdfs://nn/lake/flights",
        "catalog": {"database": "d", "glue": {"region": "us-east-1"}},
    },
    "_metadata_table_is_wrong": {"metadataTable": {"enabled": False, "indexes": ["ColumnStats"]}},
    "_option_is_not_allowed": {"hudiOptions": BAD},
    "_reference_is_not_allowed": {"storage": {"secretRefs": [{"name": "hudi-operator-x", "as": "S3"}]}},
    "_mode_is_not_possible": {
        "fencing": {"mode": "Credentials"},
        "storage": {**STORE, "serviceAccountName": "mine"},
    },
}
"""Specs that the checks of a table refuse."""
NOT_OF_A_SPEC = {
    "_object_is_wrong": "it asks OBJECT",
    "_image_is_not_allowed": "allowed images",
    "_store_is_another": "path prefixes and stores",
    "_path_overlaps": "HudiTables of other namespaces",
    "_path_is_taken": "HudiTables of other namespaces",
    "_protocol_is_too_new": "told by the status",
    "_etcd_is_not_trusted": "told by the status",
    "_gate_is_frozen": "told by the status",
    "_marker_names_another_lock": "told by the status",
    "_adoption_waits_for_a_person": "told by the status",
    "_agent_reports_an_error": "told by the status",
}
"""The others, and who knows of them. HudiTables of the namespace are compared in `test_plan.py`."""


def test_every_check_of_a_table_has_a_spec() -> None:
    assert {*checks(stalled.STALLED, stalled.OBJECT)} == TABLES.keys() | NOT_OF_A_SPEC.keys()
    for who in NOT_OF_A_SPEC.values():
        assert who in ("it asks OBJECT", "told by the status") or any(who in one for one in outlook.UNKNOWN), who


@pytest.mark.parametrize("check", TABLES)
def test_a_table_that_will_be_stuck_stalls(check: str) -> None:
    world = World()
    world.make_table(**TABLES[check])
    broker = CredentialsBrokerConfig(url="https://b", store_endpoint="https://store")
    config = replace(CONFIG, credentials_broker=broker, allowed_schemes=forecast.SCHEMES)
    view = build_view(world.observe(), config)
    stall = stalled.table_stall(view)
    assert stall is not None
    tables, writers = objects(world)
    told = outlook.of_table(Namespace({}, {}, tables, writers), "flights", world.now_ms)
    assert (told.verdict, told.facts[0]) == (outlook.STALLS, stall.message)
    assert told.is_bad


@pytest.mark.parametrize(
    ("reason", "make"),
    [
        ("Frozen", lambda world: world.kv["gate"].value.update(state="frozen", reason="by a person")),
        (
            "OtherLockAuthority",
            lambda world: setattr(world, "table_error", {"code": "OtherLockAuthority", "message": "…"}),
        ),
    ],
)
def test_what_the_operator_has_said_of_a_table_holds_its_writers(reason: str, make: Step) -> None:
    world = ready_world()
    make(world)
    world.run(reports(reason))
    before = objects(world)
    made()(world)
    _, decisions = planner(world.observe(), CONFIG)
    (told,) = outlook.of_writers(Namespace(*before, *objects(world)), ["w"], world.now_ms)
    assert (decisions["w"].reason, told.verdict) == ("TableStalled", outlook.WAITS)
    assert reason in told.facts[0]


def test_reasons_with_an_open_gate_are_those_of_the_operator() -> None:
    """Behind them writers start, although the table is not Ready: the plan cannot tell."""
    world = ready_world()
    without_agent(world)
    view, _ = planner(world.observe(), CONFIG)
    assert view.gate.state == "open"
    assert world.condition(world.table, "Ready")["reason"] in forecast.GATE_UNTOLD
    for code in stalled.RETRIED:
        world = ready_world()
        world.table_error = {"code": code, "message": "…"}
        world.run(reports(code))
        view, _ = planner(world.observe(), CONFIG)
        assert (view.gate.state, code in forecast.GATE_UNTOLD) == ("open", True)


def test_the_plan_of_a_repair_says_that_it_may_help() -> None:
    """The operator leaves the gate open when a spec becomes bad: a good one starts the writers."""
    world = ready_world()
    world.change(hudiOptions=BAD)
    world.run(reports("OptionNotAllowed"))
    before = objects(world)
    world.change(hudiOptions={})
    made()(world)
    _, decisions = planner(world.observe(), CONFIG)
    (told,) = outlook.of_writers(Namespace(*before, *objects(world)), ["w"], world.now_ms)
    assert (decisions["w"].kind, told.verdict) == (Kind.START, outlook.UNTOLD)
    assert "OptionNotAllowed" in told.facts[0]
    assert told.facts[0].endswith("; this is corrected")


@pytest.mark.parametrize("names", [("savepoint",), ("savepoint", "restore")])
def test_the_plan_of_a_resume_says_what_was_asked_for_meanwhile(names: tuple[str, ...]) -> None:
    world = ready_world()
    ended(world, "first")
    if "restore" in names:
        world.change(savepoints=[{"name": "a"}])
        world.run(lambda w: (w.status("savepoints") or [{}])[0].get("outcome") == "Completed")
    world.change(suspend=True)
    world.pass_time(5)
    if "restore" in names:
        world.change(restore={"savepoint": "a", "nonce": "n"})
    else:
        world.change(savepoints=[{"name": "a"}])
    made()(world)
    world.pass_time(5)
    before = objects(world)
    world.change(suspend=False)
    space = Namespace(*before, *objects(world))
    table = outlook.of_table(space, "flights", world.now_ms)
    (told,) = outlook.of_writers(space, ["w"], world.now_ms)
    what = "the restore to a, which undoes all later commits" if "restore" in names else "the savepoint a"
    assert any(f"{what}: running attempts end" in fact for fact in table.facts), table
    assert told.verdict == outlook.WAITS
    assert f"{what} of HudiTable flights comes first" in told.facts[0]


# ---- why
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.kind in (STALL, WAIT) and case.id != "rights"], ids=lambda case: case.id
)
def test_why_says_what_the_operator_says(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """`why` had told of a writer that waits its place and whom it waits for, and not what for."""
    monkeypatch.setattr(simulated_world, "CONFIG", case.config)
    world = case.world(**case.table)
    case.before(world)
    case.change(world)
    world.run(lambda w: said(w)["reason"] == case.reason, seconds=60)
    tables, writers = objects(world)
    at = datetime.fromtimestamp(world.now_ms / 1000, tz=UTC)
    told = "\n".join(why.lines(why.of_writer(writers["w"], why.World([*tables.values()], [*writers.values()], {}, at))))
    shown = [said(world)["message"]]
    if (writers["w"].status.get("queue") or {}).get("blockedBy") == "table flights":
        shown += [
            one["message"] for one in tables["flights"].status["conditions"] if one["type"] in ("Ready", "Stalled")
        ]
    if case.reason == "BackOff":
        shown = ["it is repeated in "]
    assert any(one and one in told for one in shown), (shown, told)


def said(world: World) -> JsonDict:
    """The condition of `w` with the reason."""
    writer = world.writers["w"]
    return world.condition(writer, "Stalled" if world.is_true(writer, "Stalled") else "Admitted")

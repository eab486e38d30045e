"""What `kubectl hudi plan` says would happen. `crds/test_kubectl.py` asks an API server, too, and
`test_reasons.py` the operator of a simulated world.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from hudi_kubectl import outlook, planning
from hudi_kubectl.cluster import Failed
from hudi_kubectl.objects import INVALID_DEFAULTS, TABLE, WRITER, Table, Writer
from hudi_kubectl.outlook import Namespace, Outlook
from hudi_kubectl.screen import Screen
from hudi_operator.api.defaults import read
from hudi_operator.api.metadata_table import MetadataTable
from hudi_operator.api.spec import TableSpec
from hudi_operator.plan import forecast
from hudi_operator.plan.core import launch
from hudi_operator.plan.gate import gate
from tests.support import crds, quick_yaml
from tests.support.hostile.grammar import Generator
from tests.tiers.unit.kubectl.played import Played

JsonDict = dict[str, Any]
READY = {"type": "Ready", "status": "True", "reason": "Ready"}


def table(name: str = "flights", *, ready: bool | str = True, status: JsonDict | None = None, **spec: Any) -> JsonDict:
    condition = READY if ready is True else {"type": "Ready", "status": "False", "reason": str(ready), "message": "…"}
    return {
        "apiVersion": "hudioperator.io/v1alpha1",
        "kind": "HudiTable",
        "metadata": {"name": name, "namespace": "team", "uid": "u", "generation": 1},
        "spec": {"path": f"s3a://lake/{name}", "recordKeyFields": ["a"], "partitionFields": ["day"], **spec},
        "status": {"observedGeneration": 1, "conditions": [condition], "timeline": {}, **(status or {})},
    }


def writer(name: str = "load", *, status: JsonDict | None = None, **spec: Any) -> JsonDict:
    source = {"files": {"format": "csv", "paths": ["s3a://in/"]}}
    return {
        "apiVersion": "hudioperator.io/v1alpha1",
        "kind": "HudiWriter",
        "metadata": {"name": name, "namespace": "team", "uid": "0123456789", "generation": 1},
        "spec": {"tableRef": {"name": "flights"}, "source": source, **spec},
        "status": status or {},
    }


RUNS = {"state": "Running", "attempt": 2, "attempts": [{"number": 2, "pod": "load-01234567-2", "generation": 1}]}
ENDED = [
    {"number": 1, "class": "Infrastructure", "startTime": "2026-03-01T11:59:57Z", "endTime": "2026-03-01T11:59:58Z"}
]
NOW_MS = 1_772_366_400_000
"""2026-03-01T12:00:00Z."""
DEAD = {"number": 1, "pod": "load-01234567-1", "class": "PodGone", "startTime": "2026-03-01T10:00:00Z"}
"""An attempt that ended long ago."""
SETTLING: JsonDict = {
    "settling": [
        {"incarnation": "i", "attempt": "team.load-01234567-1", "phase": "Terminating", "waitingFor": "node-3"}
    ],
    "lock": {"owner": "i", "attempt": "team.load-01234567-1"},
}


def over(result: str, **more: Any) -> JsonDict:
    return {"state": result, "conditions": [{"type": "Finished", "status": "True", "reason": result}], **more}


def space(before: list[JsonDict], after: list[JsonDict]) -> Namespace:
    def of(kind: str, *objects: list[JsonDict]) -> JsonDict:
        made = Table if kind == "HudiTable" else Writer
        return {one["metadata"]["name"]: made(one) for many in objects for one in many if one["kind"] == kind}

    return Namespace(
        of("HudiTable", before),
        of("HudiWriter", before),
        of("HudiTable", before, after),
        of("HudiWriter", before, after),
    )


def one_writer(before: list[JsonDict], *after: JsonDict) -> Outlook:
    names = [one["metadata"]["name"] for one in after if one["kind"] == "HudiWriter"]
    return outlook.of_writers(space(before, list(after)), names, NOW_MS)[0]


def one_table(before: list[JsonDict], after: JsonDict) -> Outlook:
    return outlook.of_table(space(before, [after]), after["metadata"]["name"])


CASES: list[tuple[str, list[JsonDict], JsonDict, str, str]] = [
    ("starts", [table()], writer(), outlook.STARTS, "as attempt 1"),
    ("no table", [], writer(), outlook.WAITS, "there is no HudiTable flights in namespace team"),
    ("not ready", [table(ready="Preparing")], writer(), outlook.WAITS, "Ready=False, Preparing: …"),
    ("without an agent", [table(ready="AgentNotReady")], writer(), outlook.UNTOLD, "Ready=False, AgentNotReady: …"),
    ("suspended", [table()], writer(suspend=True), outlook.RESTS, "spec.suspend is true"),
    ("table suspended", [table(suspend=True)], writer(), outlook.RESTS, "spec.suspend of HudiTable flights is true"),
    ("schedule", [table()], writer(schedule={"cron": "0 3 * * *"}), outlook.RESTS, "0 3 * * * (Etc/UTC)"),
    (
        "no partition fields",
        [table(partitionFields=[])],
        writer(partitions=["day=1"]),
        outlook.STALLS,
        "spec.partitions = ['day=1']: HudiTable flights has no partitionFields",
    ),
    (
        "option of the operator",
        [table()],
        writer(hudiOptions={"hoodie.write.lock.provider": "x"}),
        outlook.STALLS,
        "spec.hudiOptions['hoodie.write.lock.provider'] = 'x': owned by the operator",
    ),
    (
        "option on no list",
        [table()],
        writer(sparkConf={"spark.something.new": "x"}),
        outlook.STALLS,
        "an administrator can add it to options.allow (what the operator's chart allows beyond its defaults",
    ),
    (
        "all places taken",
        [table(concurrency={"mode": "Optimistic", "maxWriters": 1}), writer("other", status=RUNS)],
        writer(),
        outlook.WAITS,
        "1 of 1 writers run: other",
    ),
    (
        "a single writer",
        [table(concurrency={"mode": "SingleWriter"}), writer("other", status=RUNS)],
        writer(),
        outlook.WAITS,
        "1 of 1 writers",
    ),
    (
        "overlap",
        [
            table(concurrency={"admission": "DisjointPartitions"}),
            writer("other", partitions=["day=2026-*"], status=RUNS),
        ],
        writer(partitions=["2026-03"]),
        outlook.WAITS,
        "other runs and may write the same partitions: 2026-03 here, 2026-* there",
    ),
    (
        "undeclared overlap",
        [table(concurrency={"admission": "DisjointPartitions"}), writer("other", status=RUNS)],
        writer(partitions=["2026-03"]),
        outlook.WAITS,
        "2026-03 here, any there",
    ),
    (
        "no overlap",
        [table(concurrency={"admission": "DisjointPartitions"}), writer("other", partitions=["a*"], status=RUNS)],
        writer(partitions=["b*"]),
        outlook.STARTS,
        "as attempt 1",
    ),
    (
        "a higher one in the queue takes the last place",
        [
            table(concurrency={"maxWriters": 1}),
            writer("urgent", priority=5, status={"state": "Waiting", "queue": {"since": "2026"}}),
        ],
        writer(),
        outlook.WAITS,
        "1 of 1 writers run: urgent",
    ),
    ("over", [table(), writer(status=over("Succeeded"))], writer(), outlook.RESTS,
     "its last run is over (Succeeded); a new spec.restartNonce starts another run"),
    (
        "restarted",
        [table(), writer(status=over("Failed", attempt=4, executedNonce=""))],
        writer(restartNonce="again"),
        outlook.STARTS,
        "as attempt 5",
    ),
    (
        "backs off",
        [table(), writer(status={"state": "Retrying", "attempts": ENDED})],
        writer(),
        outlook.WAITS,
        "its last attempt failed, and is repeated at 2026-03-01T12:00:",
    ),
    (
        "its dead attempt has the lock",
        [table(status=SETTLING), writer(status={"state": "Retrying", "attempts": [DEAD]})],
        writer(),
        outlook.WAITS,
        "attempt team.load-01234567-1 is Terminating: node-3",
    ),
    (
        "its dead attempt is settled without the lock",
        [table(status={"settling": SETTLING["settling"]}), writer(status={"state": "Retrying", "attempts": [DEAD]})],
        writer(),
        outlook.STARTS,
        "as attempt 2",
    ),
    (
        "a source that is not there",
        [table()],
        writer(source={"hudi": {"tableRef": {"name": "orders"}}}),
        outlook.WAITS,
        "HudiTable orders, the source, does not exist in this namespace",
    ),
    ("runs as it is", [table(), writer(status=RUNS)], writer(status=RUNS), outlook.RUNS, "attempt 2 runs"),
    (
        "runs, and changes later",
        [table(), writer(status=RUNS)],
        writer(status=RUNS, operation="Insert"),
        outlook.RUNS,
        "spec.operation: from the next attempt on; attempt 2 goes on as it began",
    ),
    (
        "runs, and is suspended",
        [table(), writer(status=RUNS)],
        writer(status=RUNS, suspend=True),
        outlook.RUNS,
        "spec.suspend: attempt 2 ends at its next commit",
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[name for name, *_ in CASES])
def test_a_writer(case: tuple[str, list[JsonDict], JsonDict, str, str]) -> None:
    _, before, after, verdict, fact = case
    found = one_writer(before, after)
    assert (found.verdict, fact in found.facts[0]) == (verdict, True), found


def test_a_writer_of_a_table_that_the_same_file_makes_or_changes() -> None:
    found = one_writer([], writer(), table())
    assert (found.verdict, found.facts) == (
        outlook.WAITS,
        ("HudiTable flights is new: it waits until its condition Ready is True",),
    )
    found = one_writer([table()], writer(), table(savepoints=[{"name": "a"}]))
    assert found.facts[0].startswith("spec.savepoints: the savepoint a of HudiTable flights comes first")
    found = one_writer([table(), writer(status=RUNS)], writer(status=RUNS), table(hudiVersion="1.2.1"))
    assert found.facts[0].startswith("spec.hudiVersion of HudiTable flights: attempt 2 ends at its next commit")


def test_writers_of_one_file_take_places_in_the_operators_order() -> None:
    before = [table(concurrency={"maxWriters": 2}), writer("one", status=RUNS)]
    asked = [writer("low"), writer("high", priority=3)]
    found = outlook.of_writers(space(before, asked), ["low", "high"])
    assert [(one.name, one.verdict) for one in found] == [("low", outlook.WAITS), ("high", outlook.STARTS)]
    assert found[0].facts == ("2 of 2 writers run: high, one",)


@pytest.mark.parametrize(
    ("before", "after", "verdict", "fact"),
    [
        ([], table(), outlook.NEW, "its agent adopts the table at s3a://lake/flights, or creates it"),
        ([], table(adoption={"policy": "Create"}), outlook.NEW, "where none may be"),
        ([table()], table(), outlook.SAME, ""),
        ([table(ready="Frozen")], table(), outlook.SAME, "now it has Ready=False, Frozen: …"),
        (
            [table()],
            table(lock={"leaseSeconds": 20}),
            outlook.CHANGES,
            "spec.lock.leaseSeconds: running attempts end at their next commit",
        ),
        (
            [table(lock={"leaseSeconds": 10, "maxHoldSeconds": 600})],
            table(lock={"leaseSeconds": 10, "maxHoldSeconds": 900}),
            outlook.CHANGES,
            "spec.lock.maxHoldSeconds: changes",
        ),
        (
            [table(savepoints=[{"name": "a"}])],
            table(savepoints=[{"name": "a"}], restore={"savepoint": "a", "nonce": "n"}),
            outlook.CHANGES,
            "spec.restore: the restore to a, which undoes all later commits",
        ),
        ([table(savepoints=[{"name": "a"}])], table(savepoints=[]), outlook.CHANGES, "its savepoint stays"),
        (
            [table(savepoints=[{"name": "a"}])],
            table(savepoints=[{"name": "a", "deleteInstant": "20260101000000000"}]),
            outlook.CHANGES,
            "spec.savepoints: a has deleteInstant 20260101000000000: it is deleted if that is its instant",
        ),
        (
            [table()],
            table(holds=[{"name": "a"}]),
            outlook.CHANGES,
            "the files of the last commit stay for a; no writer waits",
        ),
        ([table(holds=[{"name": "a"}])], table(holds=[]), outlook.CHANGES, "spec.holds: a ends"),
        (
            [table(holds=[{"name": "a"}])],
            table(holds=[{"name": "a", "durationSeconds": 99}]),
            outlook.CHANGES,
            "spec.holds: a changes",
        ),
        (
            [table(services={"clean": {}})],
            table(services={"clean": {"runNonce": "n"}}),
            outlook.CHANGES,
            "spec.services.clean.runNonce: the service runs once, now",
        ),
        ([table()], table(suspend=True), outlook.CHANGES, "spec.suspend: running attempts end"),
        (
            [table("other", path="s3a://lake//flights/")],
            table(path="s3://lake/flights"),
            outlook.STALLS,
            "HudiTable other has s3a://lake//flights/, and one path has one HudiTable",
        ),
        ([table("other", path="s3a://lake")], table(), outlook.STALLS, "tables must not be nested"),
        (
            [],
            table(hudiOptions={"hoodie.table.name": "x"}),
            outlook.STALLS,
            "spec.hudiOptions['hoodie.table.name'] = 'x': owned by the operator",
        ),
    ],
)
def test_a_table(before: list[JsonDict], after: JsonDict, verdict: str, fact: str) -> None:
    found = one_table(before, after)
    assert found.verdict == verdict, found
    assert any(fact in one for one in found.facts) or not fact, found


def test_what_is_being_deleted_is_said_to_be() -> None:
    gone = table()
    gone["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z"
    assert one_table([gone], table()).verdict == outlook.WAITS
    gone = writer()
    gone["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z"
    assert one_writer([table(), gone], writer()).facts[0].startswith("it is being deleted")


# ---- the fields are the operator's
def test_its_fields_are_those_of_the_crds() -> None:
    """A field of another name would never be found."""
    assert set(outlook._AT_ONCE) <= set(crds.schema("hudiwriters", "spec")["properties"])


OTHER_VALUES: dict[str, Any] = {
    "metadataTable": {"enabled": False},
    "hudiVersion": "1.2.9",
    "fencing.mode": "LeaseOnly",
    "fencing.drainSeconds": 11,
    "lock": {"leaseSeconds": 20},
    "concurrency.mode": "SingleWriter",
    "concurrency.insertConflicts": "Ignore",
    "lock.suspectSeconds": 6,
    "lock.maxHoldSeconds": 900,
    "concurrency.maxWriters": 3,
    "concurrency.changeTimeoutSeconds": 60,
    "hudiOptions": {"hoodie.parquet.max.file.size": "1"},
    "services": {"clean": {"runNonce": "n"}},
}


@pytest.mark.parametrize("field", OTHER_VALUES)
def test_what_ends_running_attempts_is_what_closes_the_operators_gate(field: str) -> None:
    first, _, second = field.partition(".")
    changed = table(**{first: {second: OTHER_VALUES[field]} if second else OTHER_VALUES[field]})
    before, after = TableSpec.from_object(table()), TableSpec.from_object(changed)
    nonces = {(one.metadata_table or MetadataTable()).nonce for one in (before, after)}
    closes = gate.parameters(before) != gate.parameters(after) or len(nonces) > 1
    wanted = {"lock": "lock.leaseSeconds"}.get(field, field)
    assert outlook.closing(Table(table()), Table(changed)) == ([f"spec.{wanted}"] if closes else [])


def test_every_parameter_of_the_gate_has_its_field() -> None:
    """Those of a version are no field, and a path does not change."""
    rest = {"protocol_version", "table_version", "path", "lock"}
    assert set(gate.PARAMETERS) == forecast.FIELD_OF.keys() | rest


# ---- the command
class Asked(Played):
    """The API server's answer to `kubectl apply --dry-run=server` is the object, or a refusal."""

    def __init__(self, *objects: JsonDict, file: list[JsonDict], refusals: dict[str, str] | None = None) -> None:
        super().__init__(*objects)
        self.file, self.refusals = file, refusals or {}

    def written_in(self, file: str, stdin: str = "") -> list[JsonDict]:
        if file == "-":
            return [self._read(stdin)]
        if file != "objects.yaml":
            raise Failed("error: the path does not exist")
        return self.file

    @staticmethod
    def _read(stdin: str) -> JsonDict:
        try:
            found: JsonDict = quick_yaml.load(stdin)
        except Exception as error:
            raise Failed(f"error: error parsing STDIN: {error}") from None
        return found

    def applied(self, what: JsonDict) -> JsonDict:
        name = what["metadata"]["name"]
        if name in self.refusals:
            raise Failed(self.refusals[name])
        there = self.there.get((TABLE if what["kind"] == "HudiTable" else WRITER, name), {})
        return {**what, "status": there.get("status", {})}


def test_a_plan_says_each_objects_fate_and_what_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": "team"}}
    file = [secret, writer("bad"), writer()]
    refusal = 'The HudiWriter "bad" is invalid: spec.source: Invalid value: source is empty'
    asked = Asked(table(), file=file, refusals={"bad": refusal})
    assert planning.plan(asked, Screen(), ["objects.yaml"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [
        "Secret team/keys: is accepted",
        "HudiWriter team/bad: refused",
        f"    {refusal}",
        "HudiWriter team/load: starts now",
        "    as attempt 1",
    ]
    assert lines[5] == "Nothing was changed. Not looked at, and able to change this:"
    assert len(lines) == 6 + len(outlook.UNKNOWN)
    assert planning.plan(Asked(table(), file=[writer()]), Screen(as_json=True), ["objects.yaml"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["objects"] == [
        {"kind": "HudiWriter", "namespace": "team", "name": "load", "verdict": "starts now", "facts": ["as attempt 1"]}
    ]
    assert told["notLookedAt"] == list(outlook.UNKNOWN)
    assert not asked.patches


def test_a_namespace_of_the_same_file_is_not_there_yet(capsys: pytest.CaptureFixture[str]) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    missing = 'Error from server (NotFound): error when creating "STDIN": namespaces "team" not found'
    assert (
        planning.plan(Asked(file=[namespace, table()], refusals={"flights": missing}), Screen(), ["objects.yaml"]) == 0
    )
    assert "HudiTable team/flights: not asked\n    namespace team is made by the same file" in capsys.readouterr().out


def test_a_file_that_cannot_be_read_is_named() -> None:
    with pytest.raises(Failed, match=r"^-f nothing.yaml: error: the path does not exist$"):
        planning.plan(Asked(file=[]), Screen(), ["nothing.yaml"])
    with pytest.raises(Failed, match=r"^-f objects.yaml: there is no object in it$"):
        planning.plan(Asked(file=[]), Screen(), ["objects.yaml"])


# ---- defaults of a namespace
POOL = "driver: {nodeSelector: {pool: hudi}}\nexecutors: {nodeSelector: {pool: spot}}\n"
TAKEN = "with the defaults of the namespace (ConfigMap hudi-operator-defaults): spec.driver.nodeSelector['pool']"
WHERE = "ConfigMap hudi-operator-defaults, defaults.yaml: "
UNREAD = "the defaults of namespace team: you may not read ConfigMap hudi-operator-defaults"


def config_map(text: str, key: str = "defaults.yaml") -> JsonDict:
    meta = {"name": "hudi-operator-defaults", "namespace": "team"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {key: text}}


class Forbidden(Asked):
    """The user has no right to read ConfigMaps."""

    def get(self, kind: str, name: str) -> JsonDict:
        if kind == "configmaps":
            raise Failed("Error from server (Forbidden): configmaps is forbidden")
        return super().get(kind, name)


def planned(asked: Asked, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[JsonDict], list[str]]:
    """Exit code, objects, and what was not looked at."""
    code = planning.plan(asked, Screen(as_json=True), ["objects.yaml"])
    told = json.loads(capsys.readouterr().out)
    return code, told["objects"], told["notLookedAt"]


def test_a_writer_starts_with_the_defaults_of_its_namespace(capsys: pytest.CaptureFixture[str]) -> None:
    """Those that count for it."""
    code, (one,), unread = planned(Asked(table(), config_map(POOL), file=[writer()]), capsys)
    assert (code, one["verdict"], one["facts"]) == (0, outlook.STARTS, ["as attempt 1", TAKEN])
    assert unread == list(outlook.UNKNOWN)
    _, (one,), _ = planned(Asked(table(), config_map(POOL), file=[writer(executors={"instances": 2})]), capsys)
    assert one["facts"][1] == f"{TAKEN}, spec.executors.nodeSelector['pool']"
    own = writer(driver={"nodeSelector": {"pool": "own"}})
    _, (one,), _ = planned(Asked(table(), config_map(POOL), file=[own]), capsys)
    assert one["facts"] == ["as attempt 1"]
    away = table(ready="AgentNotReady")
    _, (one,), _ = planned(Asked(away, config_map(POOL), file=[writer()]), capsys)
    assert (one["verdict"], one["facts"][-1]) == (outlook.UNTOLD, TAKEN)


BAD_DEFAULTS = [
    (config_map("image: x:1"), f"{WHERE}image = 'x:1': cannot be a default of a namespace; driver, executors, "),
    (
        config_map("sparkConf: {spark.master: local}"),
        f"{WHERE}sparkConf['spark.master'] = 'local': owned by the operator",
    ),
    (config_map("- a"), f"{WHERE}expected an object, found a list"),
    (config_map("a: b: c"), f"{WHERE}error: error parsing STDIN"),
    (config_map("", key="x"), "ConfigMap hudi-operator-defaults: needs the key defaults.yaml, has x"),
]


@pytest.mark.parametrize(("bad", "message"), BAD_DEFAULTS, ids=[message[:70] for _, message in BAD_DEFAULTS])
def test_bad_defaults_stall_what_would_start(bad: JsonDict, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, (one,), _ = planned(Asked(table(), bad, file=[writer()]), capsys)
    assert (code, one["verdict"]) == (1, outlook.STALLS)
    (fact,) = one["facts"]
    assert fact.startswith(message)
    # Who rests does not care; who runs goes on, and is told what comes after.
    code, (one,), _ = planned(Asked(table(), bad, file=[writer(suspend=True)]), capsys)
    assert (code, one["verdict"]) == (0, outlook.RESTS)
    code, (one,), _ = planned(Asked(table(), writer(status=RUNS), bad, file=[writer(status=RUNS)]), capsys)
    assert (code, one["verdict"]) == (0, outlook.RUNS)
    assert one["facts"][-1].startswith(f"no other attempt follows attempt 2: {message}")


def test_what_the_operator_has_said_of_them_counts(capsys: pytest.CaptureFixture[str]) -> None:
    """Its reader of YAML knows more: anchors, and names that stand there twice."""
    condition = {
        "type": "Stalled",
        "status": "True",
        "reason": launch.INVALID_DEFAULTS,
        "message": f"{WHERE}line 2: twice",
    }
    waits = writer("waits", status={"state": "Stalled", "conditions": [condition]})
    code, (one,), _ = planned(Asked(table(), waits, config_map(POOL), file=[writer()]), capsys)
    assert (code, one["verdict"], one["facts"]) == (1, outlook.STALLS, [f"{WHERE}line 2: twice"])
    # Of a text that is to replace it nothing was said.
    code, (changed, one), _ = planned(Asked(table(), waits, config_map("x"), file=[config_map(POOL), writer()]), capsys)
    assert (code, one["verdict"]) == (0, outlook.STARTS)
    assert (changed["verdict"], changed["kind"]) == (outlook.CHANGES, "ConfigMap")
    assert changed["facts"] == ["from their next attempt on, for the HudiWriters load, waits"]


def test_what_the_operator_has_said_counts_for_who_may_not_read_them(capsys: pytest.CaptureFixture[str]) -> None:
    condition = {"type": "Stalled", "status": "True", "reason": launch.INVALID_DEFAULTS, "message": f"{WHERE}wrong"}
    waits = writer("waits", status={"state": "Stalled", "conditions": [condition]})
    code, (one,), unread = planned(Forbidden(table(), waits, file=[writer()]), capsys)
    assert (code, one["verdict"], one["facts"]) == (1, outlook.STALLS, [f"{WHERE}wrong"])
    assert unread[0] == UNREAD
    # Without the ConfigMap it was said of one that is gone.
    code, (one,), _ = planned(Asked(table(), waits, file=[writer()]), capsys)
    assert (code, one["verdict"]) == (0, outlook.STARTS)


def test_who_was_stalled_by_them_takes_a_place_when_they_are_right(capsys: pytest.CaptureFixture[str]) -> None:
    condition = {"type": "Stalled", "status": "True", "reason": launch.INVALID_DEFAULTS, "message": f"{WHERE}wrong"}
    first = writer("first", priority=5, status={"state": "Stalled", "conditions": [condition]})
    alone = table(concurrency={"maxWriters": 1})
    _, (_, one), _ = planned(Asked(alone, first, config_map("x"), file=[config_map(POOL), writer()]), capsys)
    assert (one["verdict"], one["facts"]) == (outlook.WAITS, ["1 of 1 writers run: first"])
    _, (_, one), _ = planned(Asked(alone, first, config_map("x"), file=[config_map("y"), writer()]), capsys)
    assert one["verdict"] == outlook.STALLS


def test_a_writer_that_does_not_bear_them_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    full = writer(driver={"nodeSelector": {f"label-{number}": "x" for number in range(16)}})
    code, (one,), _ = planned(Asked(table(), config_map(POOL), file=[full]), capsys)
    assert (code, one["verdict"]) == (1, outlook.STALLS)
    assert one["facts"] == [
        f"{WHERE}together with this HudiWriter: spec.driver.nodeSelector: has 17 entries, must have at most 16"
    ]
    # Values that no writer bears are told of the ConfigMap, whoever is in the file.
    bad = config_map("driver: {nodeSelector: {pool: 1}}")
    code, (one,), _ = planned(Asked(table(), file=[bad]), capsys)
    said = f"{WHERE}driver.nodeSelector['pool']: expected str, found 1"
    assert (code, one["verdict"], one["facts"][0]) == (1, outlook.STALLS, said)


@pytest.mark.parametrize("spec", [{}, {"path": ""}], ids=["no table", "a table without a path"])
def test_bad_defaults_stall_a_writer_without_a_table(spec: JsonDict, capsys: pytest.CaptureFixture[str]) -> None:
    tables = [table(**spec)] if spec else []
    code, (one,), _ = planned(Asked(*tables, config_map("image: x"), file=[writer()]), capsys)
    assert (code, one["verdict"]) == (1, outlook.STALLS)
    assert one["facts"][0].startswith(f"{WHERE}image = 'x': cannot be a default of a namespace")
    code, (one,), _ = planned(Asked(*tables, config_map("image: x"), file=[writer(suspend=True)]), capsys)
    assert (code, one["verdict"]) == (0, outlook.WAITS if tables else outlook.RESTS)


def test_the_config_map_of_the_file_is_judged(capsys: pytest.CaptureFixture[str]) -> None:
    code, (one, two), _ = planned(Asked(table(), file=[config_map("image: x"), writer()]), capsys)
    assert (code, one["verdict"], two["verdict"]) == (1, outlook.STALLS, outlook.STALLS)
    assert one["facts"][0] == two["facts"][0]
    code, (one, _), _ = planned(Asked(table(), file=[config_map(POOL), writer()]), capsys)
    assert (code, one["verdict"]) == (0, outlook.NEW)
    _, (one,), _ = planned(Asked(table(), config_map(POOL), file=[config_map(POOL)]), capsys)
    assert (one["verdict"], one["facts"]) == (outlook.SAME, [])


def test_who_may_not_read_them_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    code, (one,), unread = planned(Forbidden(table(), config_map("image: x"), file=[writer()]), capsys)
    assert (code, one["verdict"]) == (0, outlook.STARTS)
    assert unread[0] == UNREAD


def test_kubectl_reads_what_the_operator_reads() -> None:
    """The text becomes a part of an object: its lines are indented, its head is left out."""
    asked, wrong = Asked(file=[]), 0
    for seed in range(200):
        tree = Generator(seed).defaults()
        for text in (json.dumps(tree), f"# a comment\n---\n{json.dumps(tree, indent=2)}\n"):
            found = outlook.defaults_of(config_map(text), partial(planning._loads, asked))
            assert found == read(config_map(text)), seed
            wrong += bool(found.problem)
    assert 20 < wrong < 380
    assert INVALID_DEFAULTS == launch.INVALID_DEFAULTS

"""What `kubectl hudi` says of objects. `crds/test_kubectl.py` runs it on an API server."""

from __future__ import annotations

import ast
import io
import json
import re
import tarfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from hudi_contract.words import WriterState
from hudi_kubectl import objects, pictures, report, screen, why
from hudi_kubectl.objects import Table, Writer, ago, span, when
from hudi_operator.plan.writers import writer_status
from tests.support import ROOT, crds

JsonDict = dict[str, Any]
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SOURCES = sorted((ROOT / "operator" / "hudi_kubectl").rglob("*.py"))
OF_THE_PLAN = ("outlook.py", "planning.py")
"""Modules that run on the operator's Python."""


def time(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def instant(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y%m%d%H%M%S") + "000"


def condition(kind: str, value: str, reason: str, message: str = "", since: float = 60) -> JsonDict:
    return {"type": kind, "status": value, "reason": reason, "message": message, "lastTransitionTime": time(since)}


def table(*conditions: JsonDict, spec: JsonDict | None = None, **more: Any) -> Table:
    told = {"observedGeneration": 1, "conditions": list(conditions) or [condition("Ready", "True", "Ready")], **more}
    meta = {"name": "flights", "namespace": "team", "generation": 1}
    return Table({"kind": "HudiTable", "metadata": meta, "spec": spec or {}, "status": told})


def writer(state: str, *conditions: JsonDict, spec: JsonDict | None = None, **more: Any) -> Writer:
    told = {"observedGeneration": 1, "state": state, "conditions": list(conditions), **more}
    meta = {"name": "load", "namespace": "team", "generation": 1}
    wanted = {"tableRef": {"name": "flights"}, **(spec or {})}
    return Writer({"kind": "HudiWriter", "metadata": meta, "spec": wanted, "status": told})


def world(*things: Table | Writer, pods: dict[str, JsonDict] | None = None) -> why.World:
    tables = [one for one in things if isinstance(one, Table)]
    return why.World(tables, [one for one in things if isinstance(one, Writer)], pods or {}, NOW)


def chain(reason: why.Reason) -> str:
    return "\n".join(why.lines(reason))


def test_a_writer_that_waits_behind_a_dead_one_is_explained_to_the_end() -> None:
    settling = {
        "pod": "late-1", "attempt": "team.late-1", "phase": "Terminating", "reason": "LeaseGone", "since": time(130),
        "waitingFor": "the kubelet of node-3",
    }  # fmt: skip
    target = table(
        condition("Ready", "True", "Ready"),
        condition("AwaitingProofOfDeath", "True", "NodeLost", "…"),
        settling=[settling],
        lock={"attempt": "team.late-1", "since": time(135)},
    )
    queue = {"position": 2, "since": time(90), "blockedBy": "the pod late-1"}
    load = writer("Waiting", condition("Ready", "False", "Queued"), queue=queue)
    assert chain(why.of_writer(load, world(target, load))) == (
        "HudiWriter load is Waiting\n"
        "└─ it has waited 90s for admission as number 2: the pod late-1\n"
        "   └─ attempt team.late-1 has held the lock for 2m15s\n"
        "      └─ pod late-1 of attempt team.late-1 is Terminating for 2m10s (LeaseGone)\n"
        "         └─ the kubelet of node-3"
    )


@pytest.mark.parametrize(
    ("load", "told"),
    [
        (writer("Running", condition("Ready", "True", "Running")), "nothing keeps it from writing"),
        (writer("Scheduled", nextScheduleTime=time(-600)), f"its next run begins at {time(-600)}"),
        (writer("Succeeded"), "its input is written; `kubectl hudi restart` starts another run"),
        (writer("Suspended", spec={"suspend": True}), "spec.suspend is true"),
        (
            writer("Starting", condition("StartRefused", "True", "QuotaExceeded", "pods: 3 of 3")),
            "HudiWriter load: StartRefused=True, QuotaExceeded for 60s",
        ),
        (
            writer("Running", condition("ExecutorsMissing", "True", "Refused", "no PodSecurity")),
            "HudiWriter load: ExecutorsMissing=True, Refused for 60s",
        ),
        (
            writer(
                "Running",
                condition("Ready", "True", "Running"),
                condition("Late", "True", "NoCommit", "more than half of the time is over"),
            ),
            "HudiWriter load: Late=True, NoCommit for 60s",
        ),
        (
            writer("Failed", condition("Stalled", "True", "Failed"), attempts=[
                {"number": 3, "class": "BadData", "message": "column v is null", "endTime": time(5)},
            ]),
            "attempt 3 ended as BadData: column v is null",
        ),
        (
            writer("Retrying", nextRetryTime=time(-42), attempts=[{"number": 1, "class": "NodeLost"}]),
            "it is repeated in 42s",
        ),
        (
            writer("Running", conflicts=7, attempts=[{"number": 1}], recentConflicts=[
                {"time": time(4), "with": "team.other-1", "fileGroups": ["a/1", "a/2"]},
            ]),
            "7 of its commits were refused and repeated, the last one 4s ago because of team.other-1 (a/1, a/2)",
        ),
    ],
)  # fmt: skip
def test_the_first_reason(load: Writer, told: str) -> None:
    assert why.of_writer(load, world(table(), load)).causes[0].fact == told


def test_a_writer_that_is_late_is_not_well() -> None:
    """F556: its driver hangs, and nothing was said to keep it from writing."""
    late = condition("Late", "True", "NoCommit", "more than half of the time is over: no commit within 3600 s")
    load = writer("Running", condition("Ready", "True", "Running"), late)
    found = why.of_writer(load, world(table(), load))
    assert "more than half of the time is over: no commit within 3600 s" in chain(found)
    assert not any(cause.is_well for cause in found.causes)
    assert "nothing keeps it from writing" not in chain(found)


def test_a_writer_that_waits_for_others_says_so_and_is_well() -> None:
    told = "it waits for the table's lock; that time does not count"
    waits = condition("Late", "False", "Waiting", told)
    ready = condition("Ready", "True", "Running")
    load = writer("Running", ready, waits, attempts=[{"number": 2, "waitingSince": time(90)}])
    (found,) = why.of_writer(load, world(table(), load)).causes
    assert found == why.Reason(f"attempt 2, for 90s: {told}", is_well=True)
    over = writer("Running", ready, condition("Late", "False", "InTime"), attempts=[{"number": 2}])
    assert "nothing keeps it from writing" in chain(why.of_writer(over, world(table(), over)))


@pytest.mark.parametrize("kind", ["Late", "ExecutorsMissing"])
def test_executors_that_lack_memory_are_named_where_somebody_looks(kind: str) -> None:
    attempt = {"number": 2, "outOfMemory": "load-2-exec-1"}
    load = writer("Running", condition(kind, "True", "NoCommit"), attempts=[attempt])
    told = why.of_writer(load, world(table(), load)).causes[-1]
    assert told.fact == "executor load-2-exec-1 of attempt 2 has ended for lack of memory"
    assert "retryPolicy.outOfMemory.maxExecutorMemory" in told.todo
    well = writer("Running", condition("Ready", "True", "Running"), attempts=[attempt])
    assert "memory" not in chain(why.of_writer(well, world(table(), well)))


def test_a_pod_that_does_not_start_is_named() -> None:
    load = writer("Starting", attempts=[{"number": 1, "pod": "load-1"}])
    unscheduled = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
    waiting = {"name": "driver", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}
    pod = {"status": {"conditions": [unscheduled], "containerStatuses": [waiting]}}
    facts = [one.fact for one in why.of_writer(load, world(table(), load, pods={"load-1": pod})).causes]
    assert facts == [
        "pod load-1 is not scheduled: 0/3 nodes are available",
        "container driver of pod load-1 waits: ImagePullBackOff: no such image",
    ]


def test_a_writer_without_a_table_and_one_that_nobody_has_looked_at() -> None:
    load = writer("Waiting")
    assert why.of_writer(load, world(load)).causes[0].fact == "there is no HudiTable flights in namespace team"
    load.meta["generation"] = 2
    said = why.of_writer(load, world(table(), load)).causes[0]
    assert said.fact == "the operator has not looked at generation 2 of it yet (last: 1)"
    assert "app.kubernetes.io/name=hudi-operator" in said.todo


def test_a_table_says_what_stops_it() -> None:
    stalled = table(
        condition("Ready", "False", "Stalled"), condition("Stalled", "True", "TableMismatch", "recordKeyFields differ")
    )
    assert chain(why.of_table(stalled, world(stalled))) == (
        "HudiTable flights is not Ready\n"
        "└─ HudiTable flights: Stalled=True, TableMismatch for 60s\n"
        "   └─ recordKeyFields differ"
    )
    assert why.of_table(table(), world()).causes == (why.Reason("writers may write", is_well=True),)


def test_the_conditions_are_those_of_the_operator() -> None:
    """Of another name they would never be found."""
    told_of = {
        plural: crds.schema(plural, "status")["properties"]["conditions"]["description"]
        for plural in ("huditables", "hudiwriters")
    }
    for kind in (*why.NORMAL_FALSE, *why.NORMAL_TRUE, "Ready"):
        assert kind in told_of["huditables"], kind
    for kind in (*why.REFUSED, "Ready"):
        assert kind in told_of["hudiwriters"], kind


def test_the_states_are_those_of_the_contract() -> None:
    """The plugin runs on a Python that cannot import them."""
    assert set(objects.AS_ASKED) == writer_status.AS_ASKED
    assert {*objects.AS_ASKED, objects.FAILED, objects.STALLED} <= set(WriterState)


def told() -> tuple[Table, list[Writer]]:
    commits = [
        {
            "instant": instant(50),
            "completionTime": instant(40),
            "writer": "team/load",
            "action": "commit",
            "records": 3,
        },
        {"instant": instant(20), "completionTime": instant(15), "action": "replacecommit"},
    ]
    load = writer("Retrying", attempts=[
        {"number": 1, "startTime": time(60), "endTime": time(30), "class": "NodeLost"},
        {"number": 2, "startTime": time(25)},
    ])  # fmt: skip
    return table(timeline={"commits": commits}), [load]


def test_the_picture_has_each_thing_at_its_time() -> None:
    target, writers = told()
    load, services, *_ = pictures.text(pictures.rows(target, writers, NOW), NOW, 10 + 61)
    cells, other = load[10:], services[10:]
    assert load.startswith("load      ")
    assert cells[10:21] == "█" * 11, "50 s to 40 s ago, a column for each second"
    assert cells[0:10] == "─" * 10
    assert cells[30] == "x", "30 s ago"
    assert cells[31:35] == "    "
    assert cells[35:61] == "─" * 26, "the second attempt is under way"
    assert other == " " * 40 + "█" * 6


def test_the_picture_of_the_last_minutes_leaves_out_what_was_before() -> None:
    target, writers = told()
    (load, services) = pictures.rows(target, writers, NOW, timedelta(seconds=30))
    assert [(bar.kind, (NOW - bar.begin).seconds) for bar in load.bars] == [("attempt", 30), ("attempt", 25)]
    assert [bar.kind for bar in services.bars] == ["commit"]


def test_the_svg_is_well_formed_and_has_a_bar_for_each_thing() -> None:
    target, writers = told()
    title = "team/<flights>"
    picture = ElementTree.fromstring(pictures.svg(title, pictures.rows(target, writers, NOW), NOW))
    titles = [one.text for one in picture.iter("{http://www.w3.org/2000/svg}title")]
    assert "attempt 1: NodeLost" in titles
    assert f"commit {instant(50)}: 3 records" in titles
    bars = [one for one in picture.iter("{http://www.w3.org/2000/svg}rect") if len(one)]
    assert len(bars) == 4
    assert all(0 <= float(bar.get("x", "-1")) <= 960 for bar in bars)


@pytest.mark.parametrize("seconds", [1, 60, 61, 65, 3600])
def test_times_of_the_svg_are_whole(seconds: int) -> None:
    """Eight signs of at most 7 px around their tick: in the picture, and not over the word UTC."""
    bar = pictures.Bar(pictures.COMMIT, NOW - timedelta(seconds=seconds), NOW, "a commit")
    drawn = ElementTree.fromstring(pictures.svg("flights", [pictures.Row("a", (bar,))], NOW))
    times = [one for one in drawn.iter("{http://www.w3.org/2000/svg}text") if one.get("text-anchor") == "middle"]
    assert len(times) > 1
    for one in times:
        assert float(one.get("x", "")) - 28 >= 8 + 3 * 8
        assert float(one.get("x", "")) + 28 <= 960


def test_a_driver_does_not_break_the_svg() -> None:
    """F543: it writes the action of a commit, and XML has no form of most control characters."""
    said = "\x00\x1b[8m\x9b\ud800\uffff <commit> ü"
    bar = pictures.Bar(pictures.COMMIT, NOW - timedelta(seconds=9), NOW, said, failed=True)
    row = pictures.Row("w\x07", (bar,))
    drawn = ElementTree.fromstring(pictures.svg("t\x01", [row], NOW).encode())
    told = [one.text or "" for one in drawn.iter("{http://www.w3.org/2000/svg}title")]
    assert told == ["\\x00\\x1b[8m\\x9b\\ud800\\uffff <commit> ü"] * 2


@pytest.mark.parametrize("width", [40, 77, 78, 79, 80, 81, 83, 85, 87, 120])
@pytest.mark.parametrize("seconds", [1, 13, 61, 65, 3600, 7000, 86_400, 5 * 86_400])
def test_times_of_the_text_are_whole(seconds: int, width: int) -> None:
    bar = pictures.Bar(pictures.COMMIT, NOW - timedelta(seconds=seconds), NOW, "a commit")
    lines = pictures.text([pictures.Row("a", (bar,))], NOW, width)
    form = r"\d\d-\d\d \d\d:\d\d" if seconds > 86_400 else r"\d\d:\d\d:\d\d"
    assert re.fullmatch(rf"UTC +({form} *)+", lines[2]), lines[2]
    assert lines[1].count("┬") == len(re.findall(form, lines[2]))
    assert all(len(line) <= width for line in lines[:3])


def test_nothing_to_draw() -> None:
    assert pictures.text(pictures.rows(table(), [], NOW), NOW, 80) == ["nothing has happened that the status still has"]


def test_times() -> None:
    assert when("20260301120000123") == NOW.replace(microsecond=123_000)
    assert when("2026-03-01T12:00:00Z") == NOW
    assert when("2026-03-01T12:00:00.123456Z") == NOW
    assert when("") is when(None) is when("soon") is None
    assert [span(s) for s in (0, 119, 120, 200, 3600, 7200, 200_000)] == [
        "0s",
        "119s",
        "2m",
        "3m20s",
        "60m",
        "2h",
        "2d",
    ]
    assert ago(time(5), NOW) == "5s"


def test_a_report_has_no_secrets() -> None:
    pod = {
        "metadata": {
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": '{"password":"one"}'},
            "managedFields": [],
        },
        "spec": {
            "containers": [{"env": [{"name": "DB_PASSWORD", "value": "two"}, {"name": "HOME", "value": "/tmp"}]}],
            "storage": {"options": {"fs.s3a.secret.key": "three"}, "secretRefs": [{"name": "lake"}]},
        },
    }
    log = "url=jdbc://bob:four@db/x\nAuthorization: Bearer five.six\nsecret_key = 'seven'\nAKIAABCDEFGHIJKLMNOP\nfine\n"
    with tarfile.open(fileobj=io.BytesIO(report.bundle({"pod.json": pod, "log.txt": log}, 0))) as tar:
        files = {name: (tar.extractfile(name) or io.BytesIO()).read().decode() for name in tar.getnames()}
    everything = "".join(files.values())
    for secret in ("one", "two", "three", "four", "five", "seven", "AKIAABC"):
        assert secret not in everything, secret
    kept = json.loads(files["hudi-report/pod.json"])
    assert kept["spec"]["containers"][0]["env"][1] == {"name": "HOME", "value": "/tmp"}
    assert kept["spec"]["storage"]["secretRefs"] == [{"name": "lake"}]
    assert files["hudi-report/log.txt"].endswith("fine\n")


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_it_runs_on_python_3_9_without_other_packages(source: Path) -> None:
    tree = ast.parse(source.read_text(), feature_version=(3, 9))
    names = {"argparse", "dataclasses", "datetime", "io", "json", "os", "pathlib", "re", "shutil", "subprocess", "sys"}
    names |= {"tarfile", "time", "typing", "xml", "collections", "__future__", "hudi_kubectl", "hudi_contract"}
    names |= {"contextlib", "fnmatch", "functools", "hashlib", "shlex", "signal", "uuid"}
    names |= {"hudi_operator"} if source.name == "outlook.py" else set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert {one.name.split(".")[0] for one in node.names} <= names
        if isinstance(node, ast.ImportFrom):
            assert (node.module or "").split(".")[0] in names
            assert node.module != "hudi_contract" or {one.name for one in node.names} <= {
                "allowed_options",
                "defaults",
                "naming",
                "secret_names",
            }
            assert node.module != "datetime" or "UTC" not in {one.name for one in node.names}, "datetime.UTC is of 3.11"


@pytest.mark.parametrize("source", [one for one in SOURCES if one.name not in OF_THE_PLAN], ids=lambda path: path.name)
def test_modules_of_the_plan_are_imported_when_it_is_asked(source: Path) -> None:
    """All other commands run on Python 3.9."""
    at_once = [node for node in ast.parse(source.read_text()).body if isinstance(node, ast.ImportFrom)]
    names = {one.name for node in at_once for one in node.names} | {str(node.module) for node in at_once}
    assert not {name for name in names if name.rpartition(".")[2] in ("outlook", "planning")}


def test_a_status_does_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """F543: a driver writes the message of its attempt."""
    shown = screen.Screen(colour=True)
    shown.say(f"{shown.word('Failed')}: \x1b]0;owned\x07 \x1b[2J\x9b2J\r\x00 ü\tx")
    shown.table(("NAME", "WHY"), [("load", "Failed"), ("live", "\x1b[8mhidden")], coloured=(1,))
    told = capsys.readouterr().out
    assert told.splitlines()[0] == ("\x1b[31mFailed\x1b[0m: \\x1b]0;owned\\x07 \\x1b[2J\\x9b2J\\r\\x00 ü\tx")
    assert "\\x1b[8mhidden" in told
    assert told.count("\x1b[31mFailed\x1b[0m") == 2


def test_who_waits_for_the_defaults_of_its_namespace_is_told_where_they_are() -> None:
    told = "ConfigMap hudi-operator-defaults, defaults.yaml: image = 'x': cannot be a default of a namespace"
    waits = writer(
        "Stalled", condition("Stalled", "True", "InvalidDefaults", told), spec={"tableRef": {"name": "flights"}}
    )
    said = chain(why.of_writer(waits, world(table(), waits)))
    assert (
        "Stalled=True, InvalidDefaults for 60s\n      → kubectl edit configmap hudi-operator-defaults -n team" in said
    )
    assert told in said

"""Whatever the operator writes into a status is held by the CRD.

One refused write of a status would keep everything that follows from it from being done.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hack.crds import statuses
from hypothesis import given, settings
from hypothesis import strategies as st

from hudi_contract import naming
from hudi_contract.keys import attempt_report
from hudi_contract.shape import MAX_MS
from hudi_operator.model import conditions
from hudi_operator.model.config import CredentialsBrokerConfig
from hudi_operator.model.facts import EtcdFitness
from hudi_operator.model.status_bounds import MOST_INT32, MOST_INT64, OF_KIND, fitted
from hudi_operator.plan.core import actions as act
from hudi_operator.plan.core.view import build_view
from hudi_operator.plan.table import plan_table
from hudi_operator.plan.table_status import table_status
from hudi_operator.plan.writers.attempts import KEPT_INSTANTS
from tests.support import ROOT, crds
from tests.support.world.scene import INC, Scene
from tests.support.world.simulated_store import CONFIG, NAMESPACE

STATUS = {
    naming.TABLE_KIND: crds.schema("huditables", "status"),
    naming.WRITER_KIND: crds.schema("hudiwriters", "status"),
}
EVERYTHING = {
    "fencing": {"mode": "Credentials"},
    "commitCallback": {"url": "https://example.com/hook"},
    "catalog": {"hiveMetastore": {"uris": ["thrift://metastore.catalogs.svc:9083"]}},
    "services": {"ttl": {"retainSeconds": 86400}, "clustering": {"enabled": True}},
    "suspend": True,
}


class Served(Scene):
    """A table that the operator is in charge of."""

    def __init__(self, **table: Any) -> None:
        super().__init__(**table)
        assert self.table is not None
        self.table["metadata"]["finalizers"] = [naming.SETTLE_FINALIZER]


@pytest.mark.parametrize("kind", STATUS)
def test_the_bounds_are_those_of_the_crd(kind: str) -> None:
    """Which lists name each item once is not a bound of a value: they are made of maps."""
    found = crds.differences(STATUS[kind], OF_KIND[kind], "status")
    assert [one for one in found if "x-kubernetes-list" not in one] == []


def test_the_bounds_are_made_of_the_crds() -> None:
    """Not by hand: `make chart` after a change of a status."""
    made = subprocess.run(
        [sys.executable, ROOT / "hack/crds/statuses.py", "--check"], capture_output=True, text=True, timeout=60
    )
    assert made.returncode == 0, made.stderr


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ({"type": "string", "maxLength": 3, "pattern": "a"}, "pattern"),
        ({"type": "string"}, "maxLength"),
        ({"type": "array", "items": {"type": "boolean"}}, "maxItems"),
        ({"maxLength": 3}, "no type"),
    ],
)
def test_what_the_operator_cannot_keep_is_in_no_status(node: dict[str, Any], said: str) -> None:
    with pytest.raises(SystemExit, match=f"status.x: .*{said}"):
        statuses.bounds({"type": "object", "properties": {"x": node}}, "status")


def test_a_table_with_everything_on_has_a_status_that_is_written() -> None:
    scene = Served(**EVERYTHING)
    gate = dict(scene.kv["gate"].value)
    scene.put("gate", {**gate, "mode": "Credentials"})
    scene.incarnation("a", pod="hudi-agent-1", role="agent")
    scene.put("report/timeline", {"agentInc": "a", "exists": True, "bucket": {"harmful": ["x"], "unknown": ["y"]}})
    config = replace(CONFIG, credentials_broker=CredentialsBrokerConfig(url="https://broker:8443"))
    observed = replace(scene.observe(), etcd_fitness=EtcdFitness(reason="EtcdTooOld", message="3.4"))
    view = build_view(observed, config)
    made = table_status(view, {}, "nothing to do")
    kinds = {c["type"] for c in made["conditions"]}
    assert {"BucketSafe", "CallbackDelivered", "CatalogSynced", "BrokerAnswers"} <= kinds
    assert len(kinds) == len(made["conditions"])
    assert crds.refused(made, STATUS[naming.TABLE_KIND], "status") == []
    (update,) = (a for a in plan_table(observed, config).actions if isinstance(a, act.UpdateStatus))
    assert kinds <= {c["type"] for c in update.status["conditions"]}, "no condition is left out to make it fit"


def test_times_of_the_distant_future_are_written() -> None:
    assert conditions.rfc3339(MOST_INT64) == conditions.rfc3339(MAX_MS) == "9999-12-31T23:59:59Z"


INT = st.integers() | st.sampled_from([0, -1, MOST_INT32, MOST_INT32 + 1, MOST_INT64, MOST_INT64 + 1])
TEXT = st.text(max_size=40) | st.sampled_from(["20260101000000000", "t" * 40, "t" * 400, "x" * 9000, "\ud800", ""])
ANY: st.SearchStrategy[Any] = st.none() | st.booleans() | INT | TEXT | st.lists(TEXT, max_size=30)


def told(*names: str, **known: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={**dict.fromkeys(names, ANY), **known})


INSTANTS = st.lists(
    told("instant", "action", "state", "completionTime", "beating", "records", "writer", "attempt"), max_size=25
)
CONFLICTS = st.lists(told("instant", "retriedAs", "with", "yielded", "fileGroups", "atMs"), max_size=12)
ENDED = told(
    "outcome", "class", "message", "commits", "records", "lastInstant", "lastCompletionTime", "conflicts", "caughtUp"
)
REPORTED = told(
    "inc",
    "stage",
    "commits",
    "records",
    "lastInstant",
    "lastCompletionTime",
    "caughtUp",
    "atMs",
    "conflictCount",
    conflicts=CONFLICTS,
)
TIMELINE = told(
    "exists",
    "lastInstant",
    "lastCompletionTime",
    "lowestPendingRequestedTime",
    "pendingCount",
    "activeLength",
    "atMs",
    pending=INSTANTS,
    foreign=INSTANTS,
    commits=INSTANTS,
    error=told("code", "message"),
    readCost=told("baseBytes", "logBytes", "fileGroups", "fileGroupsWithLogs"),
    bucket=told("harmful", "unknown"),
)
CALLBACK = told(
    "inc", "completionTime", "instant", "delivered", "archivedTo", "lost", "atMs", "undelivered", "oldest", "failures",
    "reason", "message",
)  # fmt: skip
CATALOG = told(
    "inc", "target", "instant", "completionTime", "atMs", "failures", "begun", "leftOut", "reason", "message"
)
NAMES = ("20260101000000000", "20260101000001", "x", "9" * 33, "9" * 512)
EARLIER = st.integers(0, MOST_INT64)


@settings(max_examples=60, deadline=None)
@given(
    ended=ENDED,
    reported=REPORTED,
    timeline=TIMELINE,
    callback=CALLBACK,
    catalog=CATALOG,
    earlier=EARLIER,
    instants=st.lists(st.sampled_from(NAMES), max_size=3),
    lock=told("inc", "attempt", "sinceMs"),
    record=told("reason", "times"),
)
def test_whatever_pods_and_etcd_tell_the_statuses_are_held(
    ended: dict[str, Any],
    reported: dict[str, Any],
    timeline: dict[str, Any],
    callback: dict[str, Any],
    catalog: dict[str, Any],
    earlier: int,
    instants: list[str],
    lock: dict[str, Any],
    record: dict[str, Any],
) -> None:
    scene = Served(**{**EVERYTHING, "suspend": False})
    name = scene.writer()
    scene.writers["load"]["status"].update(records=earlier, earlierAttempts={"records": earlier, "conflicts": 1})
    pod = scene.pod(name, phase="Failed")
    pod.message = json.dumps(ended)
    scene.incarnation(pod=name)
    scene.put(f"report/{attempt_report(naming.attempt_id(NAMESPACE, name))}", reported)
    scene.incarnation("a", pod="hudi-agent-1", role="agent")
    scene.put("report/timeline", {**timeline, "agentInc": "a"})
    scene.put("report/callback", callback)
    scene.put("report/catalog", catalog)
    scene.put("lock", lock)
    scene.fenced("Terminating", inc="other", **record)
    for instant in instants:
        scene.put(f"instant/{instant}", {"inc": INC, "action": "commit", "state": "Pending"})
    plan = plan_table(scene.observe(), CONFIG)
    assert plan.failed == ()
    written = {a.kind: a.status for a in plan.actions if isinstance(a, act.UpdateStatus)}
    assert set(written) == set(STATUS)
    for kind, status in written.items():
        assert crds.refused(status, STATUS[kind], "status") == []
        assert json.loads(json.dumps(status).encode()) == status, "the API server stores what was sent"
        json.dumps(status, ensure_ascii=False).encode()


def test_sums_and_instants_of_an_attempt_stay_what_they_are() -> None:
    """Two attempts that tell of as many records as a number holds; many instants that are none."""
    scene = Served()
    name = scene.writer()
    most = MOST_INT64
    first = {
        "number": 1,
        "pod": name,
        "podUID": f"uid-of-{name}",
        "records": most,
        "class": "Infrastructure",
    }
    scene.writers["load"]["status"] = {
        "attempt": 1,
        "attempts": [first],
        "earlierAttempts": {"records": most, "conflicts": 0},
    }
    pod = scene.pod(name, phase="Failed")
    pod.message = json.dumps({"outcome": "Failed", "records": most, "conflicts": MOST_INT32 + 1})
    scene.incarnation(pod=name)
    for number in range(KEPT_INSTANTS):
        scene.put(f"instant/{'9' * 510}{number:02}", {"inc": INC, "action": "commit", "state": "Pending"})
    scene.instant("20260101000000000")
    (written,) = (
        a.status
        for a in plan_table(scene.observe(), CONFIG).actions
        if isinstance(a, act.UpdateStatus) and a.kind == naming.WRITER_KIND
    )
    assert (written["records"], written["conflicts"]) == (most, MOST_INT32)
    assert written["attempts"][0]["instants"] == ["20260101000000000"]


def test_a_status_that_fits_is_not_changed() -> None:
    status = {"records": 3, "attempts": [{"number": 1, "of a newer version": 2}], "more": "x", "state": "Running"}
    assert fitted(naming.WRITER_KIND, status) == status
    cut = fitted(naming.WRITER_KIND, {"state": "x" * 65, "attempts": [{"pod": "p"}], "queue": {"blockedBy": "b" * 600}})
    assert cut == {"attempts": [], "queue": {"blockedBy": "b" * 512}}

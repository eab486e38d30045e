"""What `kubectl hudi` changes, and what it refuses to."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from hudi_contract import words
from hudi_kubectl import __main__ as plugin
from hudi_kubectl import changing, verbs, waiting
from hudi_kubectl.changing import How
from hudi_kubectl.cluster import Failed
from hudi_kubectl.objects import TABLE, Table, Thing
from hudi_kubectl.screen import Screen
from hudi_operator.api import metadata_table
from hudi_operator.api.spec import FencingSpec
from hudi_operator.model import proof
from hudi_operator.model.facts import Nodes
from hudi_operator.plan.gate import trust
from tests.support import crds
from tests.tiers.unit.kubectl.played import Played

JsonDict = dict[str, Any]
UID = "0d3c0b54-6c0e-4c8e-9a55-7f2b9d1f0c11"
NOW, YES = How(), How(yes=True)


@pytest.fixture(autouse=True)
def _no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changing, "_SET_BACK_SECONDS", 0)
    monkeypatch.setattr(waiting, "_EVERY_SECONDS", 0)


def condition(kind: str, status: str, reason: str, message: str = "") -> JsonDict:
    return {"type": kind, "status": status, "reason": reason, "message": message}


READY = (condition("Ready", "True", "Ready"), condition("Stalled", "False", "Ready"))


def stalled(reason: str, message: str) -> tuple[JsonDict, ...]:
    return (condition("Ready", "False", reason, message), condition("Stalled", "True", reason, message))


def table(
    *conditions: JsonDict, spec: JsonDict | None = None, managers: JsonDict | None = None, **more: Any
) -> JsonDict:
    fields = [{"manager": name, "fieldsV1": owned} for name, owned in (managers or {}).items()]
    return {
        "kind": "HudiTable",
        "metadata": {
            "name": "flights", "namespace": "team", "generation": 1, "resourceVersion": "1", "managedFields": fields,
        },
        "spec": {"path": "s3a://lake/flights", "type": "MergeOnRead", **(spec or {})},
        "status": {"observedGeneration": 1, "conditions": list(conditions or READY), **more},
    }  # fmt: skip


def taken(name: str, boundary: str = "20260301120000000", outcome: str = "Completed") -> JsonDict:
    return {"name": name, "outcome": outcome, "boundaryCompletionTime": boundary, "instant": boundary}


def spec_of(played: Played) -> JsonDict:
    found: JsonDict = played.there[TABLE, "flights"]["spec"]
    return found


def refused(ask: Callable[[], object]) -> str:
    with pytest.raises(Failed) as error:
        ask()
    return str(error.value)


# ---- one patch, and nobody's entry is lost
def test_a_list_is_made_anew_when_somebody_else_has_changed_it() -> None:
    played = Played(table(spec={"savepoints": [{"name": "old"}]}))

    def another() -> None:
        played.touched(TABLE, "flights")["spec"]["savepoints"].append({"name": "theirs"})

    played.meanwhile = [another]
    assert verbs.savepoint(played, Screen(), "flights", "mine", NOW) == 0
    assert [one["name"] for one in spec_of(played)["savepoints"]] == ["old", "theirs", "mine"]
    assert len(played.patches) == 1


def test_it_gives_up_when_the_object_changes_all_the_time() -> None:
    played = Played(table())
    played.meanwhile = [lambda: played.touched(TABLE, "flights") and None] * 20
    assert "the object has been modified" in refused(lambda: verbs.savepoint(played, Screen(), "flights", "mine", NOW))
    assert not played.patches


@pytest.mark.parametrize(
    ("path", "owned"),
    [
        (("spec", "savepoints"), {"f:spec": {"f:savepoints": {'k:{"name":"a"}': {}}}}),
        (("spec", "services", "clean", "runNonce"), {"f:spec": {"f:services": {"f:clean": {"f:runNonce": {}}}}}),
        (
            ("metadata", "annotations", verbs.UNFREEZE),
            {"f:metadata": {"f:annotations": {f"f:{verbs.UNFREEZE}": {}}}},
        ),
    ],
)
def test_what_a_manager_keeps_is_refused_by_its_path(path: tuple[str, ...], owned: JsonDict) -> None:
    thing = Table(table(managers={"argocd-controller": owned, "kubectl-client-side-apply": owned}))
    played = Played(thing.raw)
    said = refused(lambda: changing.change(played, thing, lambda _: {path: "x"}, NOW))
    assert said == (
        f"{'.'.join(path)} of HudiTable flights is kept by argocd-controller, which would set it back: change it "
        "there, or use --force"
    )
    changing.change(played, thing, lambda _: {path: "x"}, How(force=True))
    assert len(played.patches) == 1


def test_a_manager_of_other_fields_is_no_reason_to_refuse() -> None:
    managers = {"argocd-controller": {"f:spec": {"f:services": {"f:clean": {"f:afterCommits": {}}}, "f:path": {}}}}
    played = Played(table(managers=managers))
    assert verbs.service(played, Screen(), "flights", "clean", NOW) == 0


def test_a_dry_run_changes_nothing_and_asks_nobody() -> None:
    spec = {"savepoints": [{"name": "a"}]}
    played = Played(table(spec=spec, savepoints=[taken("a")]))
    assert verbs.restore(played, Screen(), "flights", "a", False, How(dry_run="server")) == 0
    assert verbs.savepoint(played, Screen(), "flights", "b", How(dry_run="client")) == 0
    assert played.dry == ["server", "client"]
    assert not played.patches
    assert spec_of(played)["savepoints"] == [{"name": "a"}]


def test_a_dry_run_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    played = Played(table())
    verbs.savepoint(played, Screen(), "flights", "b", How(dry_run="server"))
    assert capsys.readouterr().out.endswith("end at their next commit first (server dry run)\n")
    verbs.savepoint(played, Screen(as_json=True), "flights", "b", How(dry_run="server"))
    assert json.loads(capsys.readouterr().out)["spec"]["savepoints"] == [{"name": "b"}]


def test_suspending_waits_for_what_runs(capsys: pytest.CaptureFixture[str]) -> None:
    def running(raw: JsonDict) -> None:
        raw["status"]["writers"] = {"running": 1}

    def died(raw: JsonDict) -> None:
        raw["status"] |= {"writers": {"running": 0}, "settling": [{"incarnation": "i", "attempt": "ns.load-1"}]}

    def ended(raw: JsonDict) -> None:
        raw["status"] |= {"writers": {"running": 0}, "settling": []}

    played = Played(table(writers={"running": 2}))
    name = "huditable/flights"
    assert waited(played, [running, died, ended], lambda how: verbs.suspend(played, Screen(), name, True, how)) == 0
    out = capsys.readouterr().out
    assert "waits for 1 writer to end" in out
    assert "waits for ns.load-1, which has died, to be settled" in out
    assert "nothing of it runs any more" in out
    assert verbs.suspend(played, Screen(as_json=True), name, True, How(wait=True)) == 0
    out = capsys.readouterr()
    assert json.loads(out.out)["spec"]["suspend"] is True
    assert "spec.suspend is true already" in out.err


# ---- savepoints and restores
def test_a_savepoints_name_is_used_once() -> None:
    spec = {"savepoints": [{"name": "a"}]}
    played = Played(table(spec=spec, savepoints=[taken("a", outcome="Failed")]))
    said = refused(lambda: verbs.savepoint(played, Screen(), "flights", "a", NOW))
    assert said == (
        "spec.savepoints of HudiTable flights: 'a' is there already (Failed): a name is used once, take another one"
    )


def test_a_table_has_as_many_savepoints_as_the_crd_allows() -> None:
    assert crds.schema("huditables", "spec")["properties"]["savepoints"]["maxItems"] == verbs.MOST_SAVEPOINTS
    full = [{"name": f"s{n}"} for n in range(verbs.MOST_SAVEPOINTS)]
    played = Played(table(spec={"savepoints": full}))
    assert "16 names, and there may be 16" in refused(lambda: verbs.savepoint(played, Screen(), "flights", "a", NOW))


def test_a_savepoint_without_a_name_has_one_that_the_crd_takes() -> None:
    played = Played(table())
    verbs.savepoint(played, Screen(), "flights", "", NOW)
    (one,) = spec_of(played)["savepoints"]
    assert one["name"].replace("-", "").isdigit()


SAVED = {"savepoints": [{"name": "early"}, {"name": "mine"}, {"name": "late"}, {"name": "bad"}, {"name": "new"}]}
TAKEN = [
    taken("early", "20260301110000000"),
    taken("mine", "20260301120000000"),
    taken("late", "20260301130000000"),
    taken("bad", "", "Failed"),
]
COMMITS = [{"instant": str(n), "completionTime": f"2026030112{n:02}00000"} for n in (0, 5, 6)]


def test_a_restore_undoes_later_savepoints_only_when_that_is_said() -> None:
    played = Played(table(spec=SAVED, savepoints=TAKEN, timeline={"commits": COMMITS}))
    said = refused(lambda: verbs.restore(played, Screen(), "flights", "mine", False, YES))
    assert said.startswith("spec.savepoints of HudiTable flights: late, new are later than 'mine': a restore undoes")
    assert verbs.restore(played, Screen(), "flights", "mine", True, YES) == 0
    (patch,) = played.patches
    assert [one["name"] for one in patch["spec"]["savepoints"]] == ["early", "mine", "bad"]
    assert patch["spec"]["restore"]["savepoint"] == "mine"
    assert patch["spec"]["restore"]["nonce"]


@pytest.mark.parametrize(
    ("to", "more", "told"),
    [
        (
            "other",
            {},
            "--savepoint other: it is none of spec.savepoints of HudiTable flights (early, mine, late, bad, new)",
        ),
        ("new", {}, "--savepoint new: it is Pending, and a table is restored to one that is Completed"),
        ("bad", {}, "--savepoint bad: it is Failed"),
        ("late", {"restore": {"savepoint": "mine", "outcome": "Running"}}, "the restore to 'mine' is Running"),
        (
            "late",
            {"restore": {"savepoint": "mine", "outcome": "Pending"}},
            "the restore to 'mine' is Pending; --force replaces it",
        ),
    ],
)
def test_a_restore_that_cannot_be_is_refused_before_anybody_is_asked(to: str, more: JsonDict, told: str) -> None:
    played = Played(table(spec=SAVED, savepoints=TAKEN, **more))
    assert told in refused(lambda: verbs.restore(played, Screen(), "flights", to, True, NOW))
    assert not played.patches


def test_a_restore_says_what_it_undoes_and_needs_a_yes() -> None:
    spec = {"savepoints": [{"name": "mine"}]}
    played = Played(table(spec=spec, savepoints=[taken("mine")], timeline={"commits": COMMITS}))
    said = refused(lambda: verbs.restore(played, Screen(), "flights", "mine", False, NOW))
    assert said == (
        "HudiTable flights is taken back to 2026-03-01 12:00:00 UTC: 2 commits that completed since then are undone, "
        "and cannot be recovered. If that is wanted, add --yes"
    )
    assert not played.patches


# ---- services
@pytest.mark.parametrize(
    ("kind", "spec", "told"),
    [
        ("clustering", {}, "spec.services.clustering of HudiTable flights is not there: clustering is off by default"),
        ("ttl", {"services": {"clean": {}}}, "spec.services.ttl of HudiTable flights is not there"),
        ("clean", {"services": {"clean": {"enabled": False}}}, "enabled is false, and a disabled service does not run"),
        ("compact", {"type": "CopyOnWrite"}, "spec.type of HudiTable flights is CopyOnWrite: only a MergeOnRead table"),
    ],
)
def test_a_service_that_would_not_run_is_refused(kind: str, spec: JsonDict, told: str) -> None:
    played = Played(table(spec=spec))
    assert told in refused(lambda: verbs.service(played, Screen(), "flights", kind, NOW))
    assert not played.patches


def test_every_service_can_be_asked_for() -> None:
    assert set(verbs.SERVICES.values()) == {kind.value for kind in words.Service}
    for typed, kind in verbs.SERVICES.items():
        played = Played(table(spec={"services": {kind: {}}}))
        assert verbs.service(played, Screen(), "flights", typed, NOW) == 0
        assert spec_of(played)["services"][kind]["runNonce"]


def waited(played: Played, steps: list[Callable[[JsonDict], None]], ask: Callable[[How], int]) -> int:
    """Ask with --wait while the operator takes these steps."""

    def of(step: Callable[[JsonDict], None]) -> Callable[[], None]:
        return lambda: step(played.touched(TABLE, "flights"))

    played.later, played.asked_before = [of(step) for step in steps], len(played.patches)
    return ask(How(wait=True, yes=True, timeout=5))


def test_waiting_for_a_service(capsys: pytest.CaptureFixture[str]) -> None:
    before = {"outcome": "Failed", "lastTime": "2026-03-01T11:00:00Z", "failures": 2}

    def running(raw: JsonDict) -> None:
        raw["status"]["services"] = {"compaction": {"outcome": "Running", "executedNonce": "another"}}

    def done(raw: JsonDict) -> None:
        word = raw["spec"]["services"]["compaction"]["runNonce"]
        one = {"outcome": "Completed", "executedNonce": word, "lastInstant": "2026", "message": "3 file groups"}
        raw["status"]["services"] = {"compaction": one}

    played = Played(table(services={"compaction": before}))
    steps = [lambda _: None, running, done]
    assert waited(played, steps, lambda how: verbs.service(played, Screen(), "flights", "compaction", how)) == 0
    lines = [line.split("s  ", 1)[1] for line in capsys.readouterr().out.splitlines()[1:]]
    assert lines == [
        "compaction: its last run failed; it is tried again",
        "compaction: Running",
        "compaction: Completed 2026: 3 file groups",
    ]

    def failed(raw: JsonDict) -> None:
        raw["status"]["services"] = {"compaction": {**before, "failures": 3, "message": "no memory"}}

    played = Played(table(services={"compaction": before}))
    assert waited(played, [failed], lambda how: verbs.service(played, Screen(), "flights", "compact", how)) == 1
    assert "compaction: Failed: no memory; it is tried again" in capsys.readouterr().out


def test_waiting_for_a_savepoint_and_a_restore(capsys: pytest.CaptureFixture[str]) -> None:
    closing = [condition("Ready", "False", "Savepoint", "running writers end: load")]

    def closed(raw: JsonDict) -> None:
        raw["status"].update(conditions=closing, savepoints=[taken("a", outcome="Pending")])

    def done(raw: JsonDict) -> None:
        raw["status"].update(conditions=list(READY), savepoints=[{**taken("a"), "time": "2026-03-01T12:00:01Z"}])

    played = Played(table())
    assert waited(played, [closed, done], lambda how: verbs.savepoint(played, Screen(), "flights", "a", how)) == 0
    out = capsys.readouterr().out
    assert "savepoint a: Pending: Savepoint: running writers end: load" in out
    assert "savepoint a: Completed, of commit 20260301120000000, taken at 2026-03-01T12:00:01Z" in out

    def undone(raw: JsonDict) -> None:
        nonce = raw["spec"]["restore"]["nonce"]
        raw["status"]["restore"] = {"nonce": nonce, "savepoint": "a", "outcome": "Failed", "message": "a is gone"}

    assert waited(played, [undone], lambda how: verbs.restore(played, Screen(), "flights", "a", False, how)) == 1
    assert "restore to a: Failed: a is gone" in capsys.readouterr().out


def test_a_wait_ends_when_the_request_is_taken_back_and_when_its_time_is_over() -> None:
    def gone(raw: JsonDict) -> None:
        raw["spec"]["savepoints"] = []

    played = Played(table())
    assert waited(played, [gone], lambda how: verbs.savepoint(played, Screen(), "flights", "a", how)) == 1
    how = How(wait=True, timeout=0.001)
    said = refused(lambda: verbs.savepoint(played, Screen(), "flights", "b", how))
    assert said.startswith("not over within 0s, and still asked for: savepoint b: Pending")


def test_a_wait_outlives_errors_of_the_api_server_and_not_the_object(monkeypatch: pytest.MonkeyPatch) -> None:
    played, answers = Played(table()), iter(["Unable to connect to the server"] * 3 + ["(NotFound)"])

    def broken(kind: str, name: str) -> JsonDict:
        raise Failed(next(answers))

    thing = Thing(played.get(TABLE, "flights"))
    monkeypatch.setattr(played, "get", broken)
    said = refused(lambda: waiting.follow(played, Screen(), thing, lambda _: waiting.Seen("x"), How(wait=True)))
    assert said == "(NotFound)"


def test_ctrl_c_ends_the_wait_and_not_the_request(capsys: pytest.CaptureFixture[str]) -> None:
    def interrupt(_: JsonDict) -> None:
        raise KeyboardInterrupt

    played = Played(table())
    code = waited(played, [interrupt], lambda how: verbs.savepoint(played, Screen(), "flights", "a", how))
    assert code == waiting.INTERRUPTED
    assert "the request stays; kubectl hudi why huditable/flights" in capsys.readouterr().out
    assert spec_of(played)["savepoints"] == [{"name": "a"}]


def test_a_savepoint_is_deleted_by_its_instant_after_a_yes(capsys: pytest.CaptureFixture[str]) -> None:
    played = Played(table(spec={"savepoints": [{"name": "b"}, {"name": "a"}]}, savepoints=[taken("a"), taken("b")]))
    said = refused(lambda: verbs.delete_savepoint(played, Screen(), "flights", "a", NOW))
    assert "the table cannot be restored to it afterwards" in said
    assert not played.patches
    assert verbs.delete_savepoint(played, Screen(), "flights", "a", YES) == 0
    instant = taken("a")["instant"]
    assert spec_of(played)["savepoints"] == [{"name": "b"}, {"name": "a", "deleteInstant": instant}]

    def outcome(**more: str) -> Callable[[JsonDict], None]:
        return lambda raw: raw["status"].update(savepoints=[{**taken("a"), **more}])

    for last, code, word in (
        (outcome(outcome="Deleted"), 0, "savepoint a: Deleted"),
        (outcome(message="not deleted: why"), 1, "savepoint a: not deleted: why"),
    ):
        played = Played(table(spec={"savepoints": [{"name": "a"}]}, savepoints=[taken("a")]))
        steps = [outcome(message="not deleted yet: another agent"), last]
        assert waited(played, steps, partial(verbs.delete_savepoint, played, Screen(), "flights", "a")) == code
        out = capsys.readouterr().out
        assert "savepoint a: not deleted yet: another agent" in out
        assert word in out


@pytest.mark.parametrize(
    ("spec", "status", "why"),
    [
        ({}, [taken("a")], "'a' is not there, or the operator has not looked at it yet"),
        ({"savepoints": [{"name": "a"}]}, [], "'a' is not there, or the operator has not looked at it yet"),
        ({"savepoints": [{"name": "a"}]}, [taken("a", outcome="Failed")], "--name a: it is Failed"),
        (
            {"savepoints": [{"name": "a"}], "restore": {"savepoint": "a", "nonce": "1"}},
            [taken("a")],
            "names 'a': remove restore first",
        ),
    ],
)
def test_a_deletion_that_cannot_be_is_refused(spec: JsonDict, status: list[JsonDict], why: str) -> None:
    played = Played(table(spec=spec, savepoints=status))
    assert why in refused(lambda: verbs.delete_savepoint(played, Screen(), "flights", "a", YES))
    assert not played.patches


# ---- holds
def test_a_hold_is_one_more_name_and_has_only_what_was_given() -> None:
    played = Played(table(spec={"holds": [{"name": "old"}]}))
    asked = {"seconds": 14400, "instant": "20260301120000000", "reader": "export", "how": NOW}
    assert verbs.hold(played, Screen(), "flights", "mine", **asked) == 0
    assert spec_of(played)["holds"] == [
        {"name": "old"},
        {"name": "mine", "instant": "20260301120000000", "durationSeconds": 14400, "reader": "export"},
    ]
    assert held(played, "more") == 0
    assert spec_of(played)["holds"][-1] == {"name": "more"}
    assert verbs.unhold(played, Screen(), "flights", "mine", NOW) == 0
    assert [one["name"] for one in spec_of(played)["holds"]] == ["old", "more"]


def held(played: Played, name: str, how: How = NOW, seconds: float | None = None) -> int:
    return verbs.hold(played, Screen(), "flights", name, seconds=seconds, instant="", reader="", how=how)


def test_a_hold_that_cannot_be_is_refused_by_field_and_value() -> None:
    there = {"name": "a", "outcome": "Expired"}
    played = Played(table(spec={"holds": [{"name": "a"}]}, holds=[there]))
    assert refused(lambda: held(played, "a")) == (
        "spec.holds of HudiTable flights: 'a' is there already (Expired): take another name"
    )
    assert refused(lambda: held(played, "b", seconds=0)).startswith("--for 0s: a hold lasts for 60 to")
    assert refused(lambda: held(played, "b", seconds=30)) == (
        "--for 30s: a hold lasts for 60 to 604800 seconds (7 days)"
    )
    assert refused(lambda: verbs.unhold(played, Screen(), "flights", "b", NOW)) == (
        "spec.holds of HudiTable flights: 'b' is none of a"
    )
    full = Played(table(spec={"holds": [{"name": f"h{n}"} for n in range(16)]}, holds=[{**there, "name": "h3"}]))
    assert refused(lambda: held(full, "b")).endswith("end one first; over: h3")
    assert not played.patches + full.patches
    found = crds.schema("huditables", "spec")["properties"]["holds"]
    assert found["maxItems"] == verbs.MOST_HOLDS
    assert found["items"]["properties"]["durationSeconds"]["maximum"] == verbs.LONGEST_HOLD


def test_waiting_for_a_hold(capsys: pytest.CaptureFixture[str]) -> None:
    def outcome(word: str, message: str = "") -> Callable[[JsonDict], None]:
        one = {"name": "a", "outcome": word, "message": message, "instant": "1", "until": "2026-03-01T13:00:00Z"}
        return lambda raw: raw["status"].update(holds=[one])

    played, steps = Played(table()), [outcome("Pending", "clean 2 is not over"), outcome("Granted")]
    assert waited(played, steps, lambda how: held(played, "a", how)) == 0
    out = capsys.readouterr().out
    assert "hold a: Pending: clean 2 is not over" in out
    assert "hold a: Granted, commit 1 until 2026-03-01T13:00:00Z" in out
    played = Played(table())
    assert waited(played, [outcome("Refused", "file x is gone")], lambda how: held(played, "a", how)) == 1
    assert "hold a: Refused: file x is gone" in capsys.readouterr().out


# ---- the metadata table
@pytest.mark.parametrize(
    "section",
    [
        {},
        {"enabled": False},
        {"indexes": ["ColumnStats"]},
        {"rebuild": "x"},
        {"enabled": True, "indexes": [], "rebuild": ""},
    ],
)
def test_a_metadata_table_has_the_name_that_the_status_has(section: JsonDict) -> None:
    wanted = metadata_table.MetadataTable(
        section.get("enabled", True), tuple(section.get("indexes", ())), section.get("rebuild", "")
    )
    assert verbs.metadata_word(section) == wanted.nonce
    assert verbs.INDEXES == metadata_table.INDEXES


def metadata(played: Played, how: How = NOW, **asked: Any) -> int:
    given = {"on": None, "indexes": None, "rebuild": False, **asked}
    return verbs.metadata_table(played, Screen(), "flights", how=how, **given)


def test_a_metadata_table_is_changed_in_what_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    played = Played(table(spec={"metadataTable": {"indexes": ["ColumnStats"]}}))
    assert "use --on, --off, --indexes or --rebuild" in refused(lambda: metadata(played))
    assert metadata(played, on=True) == 0
    assert "spec.metadataTable is Files+ColumnStats/ already" in capsys.readouterr().out
    assert not played.patches
    assert metadata(played, indexes=[], rebuild=True) == 0
    assert spec_of(played)["metadataTable"]["indexes"] == []
    assert spec_of(played)["metadataTable"]["rebuild"]
    assert "enabled" not in spec_of(played)["metadataTable"]


def test_waiting_for_a_metadata_table(capsys: pytest.CaptureFixture[str]) -> None:
    def failed(raw: JsonDict) -> None:
        raw["status"]["metadataTable"] = {"wanted": "Off/", "outcome": "Failed", "failures": 1, "message": "no store"}

    played = Played(table())
    assert waited(played, [failed], lambda how: metadata(played, how, on=False)) == 1
    assert "Failed: no store; it is tried again" in capsys.readouterr().out


# ---- a person's word
PENDING = stalled("PendingInstants", "pending instants of writers without this lock: 20260301120000000 (commit)")


def test_instants_are_named_one_by_one_and_with_a_yes() -> None:
    played = Played(table(*PENDING, spec={"adoption": {"rollbackInstants": ["20260301110000000"]}}))
    said = refused(lambda: verbs.adopt(played, Screen(), "flights", (), YES))
    assert "20260301120000000 (commit). Name each of them with --roll-back INSTANT" in said
    named = ["20260301120000000", "20260301110000000"]
    assert "add --yes" in refused(lambda: verbs.adopt(played, Screen(), "flights", named, NOW))
    assert not played.patches
    assert verbs.adopt(played, Screen(), "flights", named, YES) == 0
    assert spec_of(played)["adoption"]["rollbackInstants"] == ["20260301110000000", "20260301120000000"]


def test_a_table_that_exists_is_adopted_and_another_one_waits_for_no_word() -> None:
    played = Played(table(*stalled("TableExists", "there is a table")))
    assert verbs.adopt(played, Screen(), "flights", (), NOW) == 0
    assert spec_of(played)["adoption"] == {"policy": "Adopt"}
    played = Played(table())
    said = refused(lambda: verbs.adopt(played, Screen(), "flights", ["20260301120000000"], YES))
    assert said.startswith("HudiTable flights waits for no decision about an adoption: Stalled is False, Ready")


def test_a_frozen_table_is_unfrozen_with_the_number_of_its_condition() -> None:
    played = Played(
        table(*stalled("Frozen", f"set back; annotate the HudiTable with {trust.UNFREEZE_ANNOTATION}=4711"))
    )
    assert "no process that may write to the table runs anywhere" in refused(
        lambda: verbs.unfreeze(played, Screen(), "flights", NOW)
    )
    assert not played.patches
    assert verbs.unfreeze(played, Screen(), "flights", YES) == 0
    assert played.there[TABLE, "flights"]["metadata"]["annotations"] == {trust.UNFREEZE_ANNOTATION: "4711"}


@pytest.mark.parametrize(
    ("conditions", "told"),
    [
        (READY, "HudiTable flights is not frozen: Stalled is False, Ready"),
        (stalled("Frozen", "no gate is created"), "no annotation helps before its cause is gone: Frozen: no gate"),
    ],
)
def test_what_no_annotation_opens_is_refused(conditions: tuple[JsonDict, ...], told: str) -> None:
    played = Played(table(*conditions))
    assert told in refused(lambda: verbs.unfreeze(played, Screen(), "flights", YES))


def test_the_path_of_a_table_that_is_gone_is_taken_with_the_word_of_the_condition() -> None:
    said = f"another HudiTable has this path; annotate this HudiTable with {trust.TAKE_OVER_ANNOTATION}=4711-7"
    played = Played(table(*stalled("DuplicatePath", said)))
    assert "that no pod of it runs anywhere" in refused(lambda: verbs.take_over(played, Screen(), "flights", NOW))
    assert not played.patches
    assert verbs.take_over(played, Screen(), "flights", YES) == 0
    assert played.there[TABLE, "flights"]["metadata"]["annotations"] == {trust.TAKE_OVER_ANNOTATION: "4711-7"}


@pytest.mark.parametrize(
    "conditions",
    [
        READY,
        stalled("DuplicatePath", "another HudiTable has this path; the first one that reaches the table keeps it"),
        stalled("Frozen", f"set back; {trust.TAKE_OVER_ANNOTATION}=4711"),
    ],
)
def test_a_path_that_is_not_given_up_is_not_taken(conditions: tuple[JsonDict, ...]) -> None:
    said = refused(lambda: verbs.take_over(Played(table(*conditions)), Screen(), "flights", YES))
    assert said.startswith("HudiTable flights has no path to take over")


WAITS = (
    f"load-1: pod load-1 (uid {UID}) on node node-3 is not proven dead (phase Running, NotReady); to resolve it, do "
    "one of: bring the node back"
)
SETTLING = [{"pod": "load-1", "incarnation": "i", "phase": "Terminating", "reason": "LeaseGone", "waitingFor": WAITS}]


def pod(*, ready: str, uid: str = UID) -> JsonDict:
    return {
        "kind": "Pod",
        "metadata": {"name": "load-1", "uid": uid, "resourceVersion": "1"},
        "spec": {"nodeName": "node-3"},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def attest(played: Played, how: How = YES, name: str = "load-1", **more: str) -> int:
    given = {"uid": "", "node": "", **more}
    return verbs.attest(played, Screen(), "flights", name, "powered off at the rack", how=how, **given)


@pytest.mark.parametrize("there", [True, False])
def test_a_pod_is_attested_in_the_users_own_name(there: bool) -> None:
    played = Played(table(settling=SETTLING), *([pod(ready="False")] if there else []))
    assert "You say, as ann, that pod load-1" in refused(lambda: attest(played, NOW))
    assert not played.patches
    assert attest(played) == 0
    (one,) = spec_of(played)["fencing"]["attestations"]
    assert one.pop("at")
    assert one == {
        "podUID": UID, "node": "node-3", "statement": "powered off at the rack", "attestedBy": "ann",
    }  # fmt: skip
    assert f"uid {UID} is attested already, by ann" in refused(lambda: attest(played))


def test_a_pod_that_lives_is_not_attested() -> None:
    played = Played(table(settling=SETTLING), pod(ready="True"))
    assert "pod load-1 is Ready, says the kubelet of node node-3" in refused(lambda: attest(played))
    assert not played.patches


def test_a_pod_that_nothing_waits_for_is_not_attested() -> None:
    played = Played(table(), pod(ready="False"))
    assert "waits for proof of its end (it waits for no pod)" in refused(lambda: attest(played))
    assert attest(played, How(yes=True, force=True)) == 0


def test_a_pod_of_nobody_who_is_settled_is_attested() -> None:
    """F613: only the condition names it, in the operator's own words."""
    subject = proof.Subject(uid=UID, name="load-1", node="node-3")
    told = proof.ways_out(subject, None, Nodes(), FencingSpec())
    played = Played(table({"type": "AwaitingProofOfDeath", "status": "True", "message": told}))
    assert attest(played) == 0
    (one,) = spec_of(played)["fencing"]["attestations"]
    assert (one["podUID"], one["node"]) == (UID, "node-3")


def test_a_pod_of_that_name_with_another_uid_is_not_taken_for_it() -> None:
    played = Played(table(settling=SETTLING), pod(ready="False", uid=UID.replace("0", "1")))
    assert f"and uid {UID} is waited for: choose one with --uid" in refused(lambda: attest(played))
    assert attest(played, uid=UID) == 0
    assert spec_of(played)["fencing"]["attestations"][0]["podUID"] == UID


def test_a_pod_that_is_gone_and_not_named_has_to_be_described() -> None:
    played = Played(table(settling=[{"pod": "load-1", "phase": "Fenced"}]))
    assert refused(lambda: attest(played)).endswith("the status does not name it: add --uid")


def test_the_words_are_those_of_the_operator() -> None:
    """Of other words nothing would be found."""
    assert verbs.UNFREEZE == trust.UNFREEZE_ANNOTATION
    for node in ("node-3", ""):
        subject = proof.Subject(uid=UID, name="load-1", node=node)
        said = proof.ways_out(subject, None, Nodes(), FencingSpec())
        assert verbs._NOT_PROVEN.findall(said) == [("load-1", UID, node)]
    assert words.AgentError.OTHER_LOCK_AUTHORITY in verbs.FROZEN
    assert words.AgentError.PENDING_INSTANTS == "PendingInstants"


# ---- the command line
def run(monkeypatch: pytest.MonkeyPatch, played: Played, *arguments: str) -> int:
    monkeypatch.setattr(plugin, "Kubectl", lambda *_, **__: played)
    return plugin.main(list(arguments))


@pytest.mark.parametrize("section", [{}, {"enabled": True}])
def test_a_clustering_that_runs_by_itself_goes_on(section: JsonDict) -> None:
    """With nothing but a runNonce it would run on demand alone."""
    from hudi_contract.words import Service
    from hudi_operator.api import services

    played = Played(table(spec={"services": {"clustering": section}}))
    assert verbs.service(played, Screen(), "flights", "cluster", How()) == 0
    asked = played.patches[-1]["spec"]["services"]["clustering"]
    assert asked["afterCommits"] == verbs.CLUSTERED_AFTER == services.AFTER_COMMITS[Service.CLUSTERING]
    for own in ({"runNonce": "a"}, {"afterCommits": 5}, {"sortColumns": ["a"]}):
        played = Played(table(spec={"services": {"clustering": own}}))
        assert verbs.service(played, Screen(), "flights", "cluster", How()) == 0
        assert list(played.patches[-1]["spec"]["services"]["clustering"]) == ["runNonce"]


def test_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    played = Played(table(spec={"services": {"clustering": {}}}))
    assert run(monkeypatch, played, "savepoint", "flights", "--name", "a") == 0
    assert run(monkeypatch, played, "service", "huditables.hudioperator.io/flights", "cluster") == 0
    assert run(monkeypatch, played, "metadata-table", "flights", "--indexes", "ColumnStats") == 0
    assert run(monkeypatch, played, "hold", "flights", "--for", "4h") == 0
    assert run(monkeypatch, played, "suspend", "huditables.hudioperator.io/flights") == 0
    assert [list(patch["spec"]) for patch in played.patches] == [
        ["savepoints"],
        ["services"],
        ["metadataTable"],
        ["holds"],
        ["suspend"],
    ]
    capsys.readouterr()
    assert run(monkeypatch, played, "savepoint", "flights", "--dry-run=server", "--wait") == 1
    assert "error: --wait: with --dry-run=server nothing is changed" in capsys.readouterr().err
    assert run(monkeypatch, played, "savepoint", "hudiwriter/flights") == 1
    assert "this is asked of a HudiTable" in capsys.readouterr().err


def test_an_error_does_not_steer_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """F543: a condition's message may have words of a driver."""
    played = Played(table(*stalled("PendingInstants", "\x1b[2Jhidden")))
    assert run(monkeypatch, played, "adopt", "flights") == 1
    assert capsys.readouterr().err.startswith("error: HudiTable flights: \\x1b[2Jhidden. Name each")


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10m", 600), ("1h30m", 5400), ("0", 0), ("0s", 0)])
def test_durations(text: str, seconds: float) -> None:
    assert plugin.duration(text) == seconds


@pytest.mark.parametrize("text", ["", "10", "ten", "1d", "m"])
def test_what_is_no_duration_is_named(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        plugin.parser().parse_args(["savepoint", "flights", "--timeout", text])
    assert f"{text!r} is no duration" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["savep"], ["savepoint"]),
        (["service", ""], ["flights"]),
        (["service", "flights", "cl"], ["clean", "cluster", "clustering"]),
        (["restore", "flights", "--savepoint", ""], ["a"]),
        (["restore", "--savepoint", "a", ""], ["flights"]),
        (["delete-savepoint", "flights", "--name", ""], ["a"]),
        (["unhold", "flights", "--name", ""], ["h"]),
        (["attest", "flights", ""], ["load-1"]),
        (["savepoint", "flights", "--dry-run", "s"], ["server"]),
        (["savepoint", "flights", "--dry-run=s"], ["--dry-run=server"]),
        (["metadata-table", "flights", "--o"], ["--off", "--on", "--output"]),
        (["savepoint", "flights", "more", ""], []),
        (["plan", ""], []),
    ],
)
def test_completion(typed: list[str], offered: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    played = Played(table(spec={"savepoints": [{"name": "a"}], "holds": [{"name": "h"}]}, settling=SETTLING))
    monkeypatch.setattr(plugin, "Kubectl", lambda *_, **__: played)
    assert plugin.complete(typed) == offered

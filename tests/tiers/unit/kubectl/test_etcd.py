"""`kubectl hudi etcd`: what is kept of a backup, what is asked, and what is printed.

What the pod answers is played; `component/operator/test_etcd_upkeep.py` has a real etcd.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import pytest

from hudi_contract import naming
from hudi_kubectl import __main__ as plugin
from hudi_kubectl import etcd
from hudi_kubectl.changing import How
from hudi_kubectl.cluster import Failed, Kubectl
from hudi_kubectl.objects import TABLE
from hudi_kubectl.screen import Screen

JsonDict = dict[str, Any]
DATABASE = bytes(range(256)) * 64
SNAPSHOT = DATABASE + hashlib.sha256(DATABASE).digest()
REPORT = {
    "cluster_id": "cdf818194e3a8c32",
    "member": "hudi-operator-etcd-0",
    "version": "3.6.16",
    "revision": 4711,
    "keys": 99,
    "tables": 3,
    "bytes": len(SNAPSHOT),
    "sha256": hashlib.sha256(DATABASE).hexdigest(),
    "seconds": 0.2,
}
SECRET = "-----BEGIN"


def member(number: int, *, in_use: int, leader: bool = False) -> JsonDict:
    name = f"hudi-operator-etcd-{number}"
    return {
        "id": f"{number}",
        "name": name,
        "endpoint": f"https://{name}:2379",
        "leader": leader,
        "version": "3.6.16",
        "revision": 7,
        "size": 100 * 2**20,
        "in_use": in_use * 2**20,
    }


class Pod(Kubectl):
    """A release's Deployment, and what its pod answers: by the command's first word, exit code,
    output and error output.
    """

    def __init__(self, answers: dict[str, tuple[int, bytes, str]], releases: int = 1) -> None:
        super().__init__()
        self.answers, self.releases, self.asked = answers, releases, list[list[str]]()

    def objects(self, kind: str, *, everywhere: bool = False, selector: str = "") -> list[JsonDict]:
        assert (kind, selector) == ("deployments.apps", "app.kubernetes.io/component=etcd-identity")
        return [{"metadata": {"name": f"r{n}-etcd-identity"}} for n in range(self.releases)]

    def execute(
        self, target: str, container: str, command: Sequence[str], output: IO[bytes] | None = None
    ) -> subprocess.CompletedProcess[str]:
        assert (target, container) == ("deployment/r0-etcd-identity", "etcd-identity")
        assert list(command[:3]) == ["python", "-m", "hudi_operator.etcd_upkeep"]
        self.asked.append(list(command[3:]))
        code, out, err = self.answers[command[3]]
        if output is not None:
            output.write(out)
        return subprocess.CompletedProcess(command, code, "" if output is not None else out.decode(), err)


def backup(out: bytes = SNAPSHOT, err: str = "", code: int = 0) -> dict[str, tuple[int, bytes, str]]:
    return {"backup": (code, out, err or json.dumps(REPORT))}


def of_members(*found: JsonDict, **more: Any) -> dict[str, tuple[int, bytes, str]]:
    return {"members": (0, json.dumps({"members": found}).encode(), ""), **more}


@pytest.fixture(autouse=True)
def without_etcdutl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(etcd.shutil, "which", lambda name: None)


def test_a_backup_is_kept_when_it_is_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "etcd.db"
    assert etcd.backup(Pod(backup()), Screen(), str(file)) == 0
    assert file.read_bytes() == SNAPSHOT
    assert file.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["etcd.db"]
    said = capsys.readouterr().out
    for word in (
        "etcd 3.6.16",
        "cdf818194e3a8c32",
        "revision  4711 or later",
        "99 keys, 3 tables",
        str(REPORT["sha256"]),
    ):
        assert word in said, said
    assert f"etcdutl snapshot status {file}" in said, "what was not looked at is said"


def test_programs_get_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert etcd.backup(Pod(backup()), Screen(as_json=True), str(tmp_path / "etcd.db")) == 0
    assert json.loads(capsys.readouterr().out) == {"file": str(tmp_path / "etcd.db"), **REPORT}


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        (backup(SNAPSHOT[:-1]), "16415 of 16416 bytes have arrived"),
        (backup(b"\x01" + SNAPSHOT[1:]), "its SHA-256 is"),
        (backup(SNAPSHOT, json.dumps({**REPORT, "sha256": "0" * 64})), "its SHA-256 is"),
        (backup(b"", "etcd: Snapshot: UNAVAILABLE: no\ncommand terminated with exit code 1\n", 1), "UNAVAILABLE: no"),
        (backup(SNAPSHOT, "error: lost connection to pod"), "has not said what it has sent: error: lost connection"),
    ],
)
def test_nothing_is_kept_of_one_that_is_not(
    tmp_path: Path, answers: dict[str, tuple[int, bytes, str]], why: str
) -> None:
    with pytest.raises(Failed, match=why):
        etcd.backup(Pod(answers), Screen(), str(tmp_path / "etcd.db"))
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "etcd.db"
    file.write_text("an older one")
    pod = Pod(backup())
    with pytest.raises(Failed, match="overwrites nothing"):
        etcd.backup(pod, Screen(), str(file))
    assert (file.read_text(), pod.asked) == ("an older one", [])
    with pytest.raises(Failed, match="No such file"):
        etcd.backup(pod, Screen(), str(tmp_path / "none" / "etcd.db"))


@pytest.mark.parametrize(("releases", "word"), [(0, "no release"), (2, "2 releases")])
def test_which_etcd_is_never_guessed(tmp_path: Path, releases: int, word: str) -> None:
    with pytest.raises(Failed, match=word):
        etcd.backup(Pod(backup(), releases), Screen(), str(tmp_path / "etcd.db"))


DONE = {
    "defragment": (
        0,
        json.dumps(
            {
                "members": [
                    {"member": "hudi-operator-etcd-1", "outcome": "LeftAlone", "size": 2**20, "in_use": 2**20},
                    {
                        "member": "hudi-operator-etcd-0",
                        "outcome": "Defragmented",
                        "size_before": 100 * 2**20,
                        "size": 11 * 2**20,
                        "in_use": 10 * 2**20,
                        "seconds": 1.0,
                        "silent_seconds": 0.94,
                    },
                ]
            }
        ).encode(),
        "",
    )
}


def test_a_defragmentation_asks_and_says_what_it_cost(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = Pod(of_members(member(0, in_use=10, leader=True), member(1, in_use=95), **DONE))
    with pytest.raises(Failed, match=r"hudi-operator-etcd-0 \(10.0 MiB of 100.0 MiB in use\)\. .*--yes"):
        etcd.defragment(pod, Screen(), 0.2, interrupt=False, how=How())
    assert pod.asked == [["members"]]
    assert etcd.defragment(pod, Screen(), 0.2, interrupt=False, how=How(yes=True)) == 0
    assert pod.asked[-1] == ["defragment", "--least=0.2"]
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["hudi-operator-etcd-1", "LeftAlone", "1.0", "MiB", "1.0", "MiB"]
    assert lines[2].split() == ["hudi-operator-etcd-0", "Defragmented", "100.0", "MiB", "11.0", "MiB", "0.9s"]


def test_a_member_that_is_alone_needs_one_word_more() -> None:
    pod = Pod(of_members(member(0, in_use=10, leader=True), **DONE))
    with pytest.raises(Failed, match=r"only member: until its 10\.0 MiB .* --interrupt"):
        etcd.defragment(pod, Screen(), 0.2, interrupt=False, how=How(yes=True))
    assert pod.asked == [["members"]]
    assert etcd.defragment(pod, Screen(as_json=True), 0.2, interrupt=True, how=How(yes=True)) == 0
    assert pod.asked[-1] == ["defragment", "--least=0.2", "--interrupt"]


def test_members_and_one_that_does_not_answer(capsys: pytest.CaptureFixture[str]) -> None:
    silent = {**member(1, in_use=0), "endpoint": "", "version": "", "size": 0}
    assert etcd.members(Pod(of_members(member(0, in_use=10, leader=True), silent)), Screen()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["hudi-operator-etcd-0", "leader", "3.6.16", "7", "100.0", "MiB", "90%"]
    assert "does not answer" in lines[2]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["etcd", "members", "-f", "x"], "-f x: members writes no file"),
        (["etcd", "backup"], "-f FILE: where the backup is written is missing"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert plugin.main(arguments) == 1
    assert why in capsys.readouterr().err


def test_completion() -> None:
    assert plugin.complete(["etcd", ""]) == [
        "add-member",
        "backup",
        "defragment",
        "forget",
        "members",
        "promote-member",
        "restore",
        "tables",
    ]
    assert plugin.complete(["etcd", "backup", "--fi"]) == ["--file"]


class Growing(Pod):
    """With the StatefulSet of the chart, too."""

    def objects(self, kind: str, *, everywhere: bool = False, selector: str = "") -> list[JsonDict]:
        if kind == "deployments.apps":
            template = {"spec": {"containers": [{"name": "etcd-identity", "image": "o"}]}}
            return [{**one, "spec": {"template": template}} for one in super().objects(kind, selector=selector)]
        args = ["--initial-advertise-peer-urls=https://$(POD_NAME).hudi-operator-etcd.ns.svc:2380"]
        template = {"spec": {"containers": [{"name": "etcd", "args": args}]}}
        return [{"metadata": {"name": "hudi-operator-etcd"}, "spec": {"template": template}}]


def test_the_next_member_is_added_and_then_gets_its_vote(capsys: pytest.CaptureFixture[str]) -> None:
    added = {"add-member": (0, b'{"name": "x", "id": "1", "added": true}', "")}
    pod = Growing(of_members(member(0, in_use=10, leader=True), **added))
    assert etcd.add_member(pod, Screen(), How(yes=True)) == 0
    assert pod.asked[-1] == [
        "add-member",
        "--name=hudi-operator-etcd-1",
        "--peer=https://hudi-operator-etcd-1.hudi-operator-etcd.ns.svc:2380",
    ]
    assert "--set etcd.members=2,etcd.joins=true" in capsys.readouterr().out
    promoted = {"promote-member": (0, b'{"name": "x", "id": "1", "promoted": true}', "")}
    pod = Growing(of_members(member(0, in_use=10, leader=True), member(1, in_use=10), **promoted))
    with pytest.raises(Failed, match="needs 2 of 2"):
        etcd.promote_member(pod, Screen(), How())
    assert etcd.promote_member(pod, Screen(), How(yes=True)) == 0
    assert pod.asked[-1] == ["promote-member", "--name=hudi-operator-etcd-1"]


@pytest.mark.parametrize(
    ("present", "why"),
    [
        ([member(0, in_use=1), {**member(1, in_use=1), "name": ""}], "one that has not started"),
        ([member(0, in_use=1), member(2, in_use=1)], "only the next one of the StatefulSet is added"),
        ([member(number, in_use=1) for number in range(3)], "there are 3 members"),
    ],
)
def test_only_the_next_member_is_added(present: list[JsonDict], why: str) -> None:
    pod = Growing(of_members(*present))
    with pytest.raises(Failed, match=why):
        etcd.add_member(pod, Screen(), How(yes=True))
    assert pod.asked == [["members"]]


def test_nobody_is_promoted_who_has_not_started() -> None:
    for present, why in (
        ([{**member(1, in_use=1), "name": ""}, member(0, in_use=1)], "has not started yet"),
        ([member(0, in_use=1)], "is the only member"),
    ):
        with pytest.raises(Failed, match=why):
            etcd.promote_member(Growing(of_members(*present)), Screen(), How(yes=True))


PATH, GONE = "s3a://lake/flights", "ab" * 16


class Cluster(Pod):
    """The same, with HudiTables."""

    tables: tuple[JsonDict, ...] = ()

    def objects(self, kind: str, *, everywhere: bool = False, selector: str = "") -> list[JsonDict]:
        if kind == TABLE:
            assert everywhere, "an etcd serves all namespaces"
            return list(self.tables)
        return super().objects(kind, everywhere=everywhere, selector=selector)


def leftovers(*ids: str, **more: Any) -> Cluster:
    said = [{"id": id, "keys": 7, "gate": "frozen", "path": PATH, "table": "", "tableUID": "", **more} for id in ids]
    cluster = Cluster(
        {
            "tables": (0, json.dumps({"tables": said}).encode(), ""),
            "forget": (0, json.dumps({"id": GONE, "deleted": 7}).encode(), ""),
        }
    )
    meta = {"uid": "uid-1", "name": "flights", "namespace": "lake"}
    cluster.tables = ({"metadata": meta, "status": {"tableId": naming.table_id(PATH)}},)
    return cluster


def test_keys_of_tables_and_of_their_trials_are_no_leftovers(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = leftovers(naming.table_id(PATH), naming.trial_id("uid-1"))
    assert etcd.tables(cluster, Screen()) == 0
    assert "every key is one of a HudiTable" in capsys.readouterr().out
    cluster = leftovers(naming.table_id(PATH), GONE)
    assert etcd.tables(cluster, Screen(as_json=True)) == 0
    assert [one["id"] for one in json.loads(capsys.readouterr().out)["tables"]] == [GONE]


@pytest.mark.parametrize(
    ("more", "word"), [({}, "released"), ({"tableUID": "u"}, "not released"), ({"gate": ""}, "a trial")]
)
def test_leftovers_are_named(more: JsonDict, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert etcd.tables(leftovers(GONE, **more), Screen()) == 0
    told = capsys.readouterr().out
    assert GONE in told
    assert word in told


def test_forgetting_asks_first(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = leftovers(GONE)
    with pytest.raises(Failed, match="no other cluster with this etcd"):
        etcd.forget(cluster, Screen(), GONE, How())
    assert ["forget", f"--id={GONE}"] not in cluster.asked
    assert etcd.forget(cluster, Screen(), GONE, How(yes=True)) == 0
    assert cluster.asked[-1] == ["forget", f"--id={GONE}"]
    assert "7 keys deleted" in capsys.readouterr().out


def test_a_table_that_a_huditable_has_is_not_forgotten() -> None:
    id = naming.table_id(PATH)
    cluster = leftovers(id)
    with pytest.raises(Failed, match="or a HudiTable has it"):
        etcd.forget(cluster, Screen(), id, How(yes=True))
    assert [asked[0] for asked in cluster.asked] == ["tables"]


def test_a_table_that_nobody_has_looked_at_is_known_by_its_path(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = leftovers(naming.table_id(PATH), GONE)
    spec = {"path": PATH.replace("s3a:", "S3:") + "/"}
    cluster.tables = ({**cluster.tables[0], "spec": spec, "status": {}},)
    assert etcd.tables(cluster, Screen(as_json=True)) == 0
    assert [one["id"] for one in json.loads(capsys.readouterr().out)["tables"]] == [GONE]
    with pytest.raises(Failed, match="or a HudiTable has it"):
        etcd.forget(cluster, Screen(), naming.table_id(PATH), How(yes=True))


def test_a_table_that_cannot_be_read_stands_in_nobodys_way(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = leftovers(GONE)
    cluster.tables = ({"metadata": cluster.tables[0]["metadata"]},)
    assert etcd.tables(cluster, Screen(as_json=True)) == 0
    assert [one["id"] for one in json.loads(capsys.readouterr().out)["tables"]] == [GONE]

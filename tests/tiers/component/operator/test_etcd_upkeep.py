"""Backups and defragmentation of real members of etcd, by root and by nobody else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import pytest

from hudi_kubectl import etcd as plugin
from hudi_kubectl.cluster import Kubectl
from hudi_kubectl.screen import Screen
from hudi_operator.etcd_upkeep import members as of
from hudi_operator.etcd_upkeep import snapshot, tables
from hudi_operator.model.config import EtcdConfig
from hudi_operator.model.ports import Retryable
from tests.support.harness.etcd_members import Members, answers
from tests.support.harness.servers import ENVIRONMENT, Etcd, wait_for

JsonDict = dict[str, Any]
T = "00000000000000ab00000000000000ab"


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Members]:
    made = Members(tmp_path_factory.mktemp("members"))
    try:
        made.begin(3)
        yield made
    finally:
        made.stop()


def upkeep(config: EtcdConfig, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """The command, as in a pod with the identity as files."""
    variables = {
        "HUDI_OPERATOR_ETCD_ENDPOINTS": ",".join(config.endpoints),
        "HUDI_OPERATOR_ETCD_CA": config.ca_file,
        "HUDI_OPERATOR_ETCD_CERT": config.cert_file,
        "HUDI_OPERATOR_ETCD_KEY": config.key_file,
    }
    command = [sys.executable, "-m", "hudi_operator.etcd_upkeep", *arguments]
    return subprocess.run(command, env={**ENVIRONMENT, **variables}, capture_output=True, timeout=120, check=False)


def said(done: subprocess.CompletedProcess[bytes]) -> JsonDict:
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def fill(etcd: Etcd, count: int, *, size: int = 60_000) -> None:
    for number in range(count):
        etcd.put(f"/hudi/tables/{T}/filler/{number:04d}", {"x": "x" * size})


def test_a_backup_is_whole_and_says_what_is_in_it(three: Members, tmp_path: Path) -> None:
    etcd = three.all[0]
    etcd.ctl("root", "put", f"/hudi/control/{T}/gate", '{"state":"open"}')
    etcd.put(f"/hudi/tables/{T}/clock", {"value": "1"})
    revision = etcd.revision()
    report = said(upkeep(three.config(), "backup", f"--folder={tmp_path}"))
    file = tmp_path / report["file"]
    assert (report["revision"], report["tables"]) == (revision, 1)
    assert report["keys"] == len(etcd.read("/hudi/"))
    assert file.stat().st_size == report["bytes"]
    assert file.stat().st_mode & 0o777 == 0o600, "it has everybody's keys"
    assert json.loads((tmp_path / f"{report['file']}.json").read_text()) == report
    assert (tmp_path / snapshot.NEWEST).samefile(file)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [report["file"], f"{report['file']}.json", snapshot.NEWEST]
    )
    # The same through a pipe, as `kubectl exec` gives it.
    done = upkeep(three.config(), "backup")
    told = json.loads(done.stderr.splitlines()[-1])
    digest = snapshot.Digest()
    digest.update(done.stdout)
    assert digest.problem() == ""
    assert (len(done.stdout), digest.sha256) == (told["bytes"], told["sha256"])


class Here(Kubectl):
    """`kubectl exec` into the pod with the identity of root: its command runs here."""

    def __init__(self, config: EtcdConfig) -> None:
        super().__init__()
        self._config = config

    def objects(self, kind: str, *, everywhere: bool = False, selector: str = "") -> list[JsonDict]:
        return [{"metadata": {"name": "hudi-operator-etcd-identity"}}]

    def execute(
        self, target: str, container: str, command: Sequence[str], output: IO[bytes] | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = upkeep(self._config, *command[3:])
        if output is not None:
            output.write(done.stdout)
        told = "" if output is not None else done.stdout.decode()
        return subprocess.CompletedProcess(command, done.returncode, told, done.stderr.decode())


def test_the_plugin_takes_a_backup(three: Members, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kubectl, file = Here(three.config()), tmp_path / "etcd.db"
    assert plugin.backup(kubectl, Screen(as_json=True), str(file)) == 0
    report = json.loads(capsys.readouterr().out)
    assert plugin.damage(file, report) == ""
    assert report["revision"] == three.all[0].revision()
    assert plugin.members(kubectl, Screen()) == 0
    assert capsys.readouterr().out.count("3.6.") == 3


def test_old_backups_go_and_nothing_else(three: Members, tmp_path: Path) -> None:
    old = [f"etcd-{cluster}-2026010{day}T000000Z-r{day}.db" for day, cluster in enumerate("cba", start=1)]
    for name in (*old, f"{old[0]}.json", "mine.db", "etcd-x.db"):
        (tmp_path / name).write_text("x")
    newest = said(upkeep(three.config(), "backup", f"--folder={tmp_path}"))["file"]
    assert said(upkeep(three.config(), "prune", f"--folder={tmp_path}", "--keep=2"))["deleted"] == old[:2]
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {old[2], newest, f"{newest}.json", snapshot.NEWEST, "mine.db", "etcd-x.db"}


@pytest.mark.parametrize("command", [("backup",), ("defragment", "--least=0")])
@pytest.mark.parametrize("identity", ["operator", "gateway"])
def test_only_root_may(three: Members, identity: str, command: tuple[str, ...], tmp_path: Path) -> None:
    """A snapshot has the keys of all tenants."""
    more = (f"--folder={tmp_path}",) if command == ("backup",) else ()
    done = upkeep(three.config(identity), *command, *more)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"permission denied" in done.stderr.splitlines()[-1].lower()
    assert not list(tmp_path.iterdir()), "nothing is left that looks like a backup"


def test_without_etcd_nothing_is_written_and_the_reason_is_said(tmp_path: Path, three: Members) -> None:
    config = three.config()
    nobody = EtcdConfig(("https://127.0.0.1:9",), config.prefix, config.ca_file, config.cert_file, config.key_file)
    done = upkeep(nobody, "backup", f"--folder={tmp_path}")
    assert done.returncode == 1
    assert b"UNAVAILABLE" in done.stderr.splitlines()[-1]
    done = upkeep(config, "backup", f"--folder={tmp_path / 'missing'}")
    assert done.returncode == 1
    assert b"cannot be written" in done.stderr.splitlines()[-1]
    assert not list(tmp_path.iterdir())


def test_members_are_defragmented_one_by_one_and_the_leader_hands_over_first(three: Members) -> None:
    etcd, config = three.all[0], three.config()
    fill(etcd, 150)
    etcd.ctl("root", "del", "--prefix", f"/hudi/tables/{T}/filler/")
    done = etcd.ctl("root", "compaction", "--physical", str(etcd.revision()))
    assert done.returncode == 0, done.stderr

    def compacted() -> bool:
        etcd.put(f"/hudi/tables/{T}/clock", {"value": "1"})  # sizes are told anew with the next write
        return all(member.unused > 0.5 for member in of.look(config))

    wait_for("all have compacted", compacted)  # the other members do it a little later
    before = {member.name: member for member in of.look(config)}
    leader = next(name for name, member in before.items() if member.leader)
    report = upkeep(config, "defragment", "--least=0.5")
    found = said(report)["members"]
    assert [one["member"] for one in found][-1] == leader
    assert {one["outcome"] for one in found} == {"Defragmented"}
    after = {member.name: member for member in of.look(config)}
    assert not after[leader].leader
    assert f"{leader}: it leads no longer" in report.stderr.decode()
    for name, member in after.items():
        assert member.size < before[name].size / 2, name
        assert member.cluster_id == before[name].cluster_id
    again = said(upkeep(config, "defragment", "--least=0.5"))["members"]
    assert {one["outcome"] for one in again} == {"LeftAlone"}


def test_nobody_is_defragmented_while_a_member_is_missing(three: Members) -> None:
    missing = three.all[2]
    missing.stop()
    try:
        done = upkeep(three.config(), "defragment", "--least=0")
        assert (done.returncode, done.stdout) == (1, b"")
        assert b"member e2 does not answer" in done.stderr.splitlines()[-1]
    finally:
        missing.start()


def test_a_member_that_is_alone_is_interrupted_only_on_request(tmp_path: Path) -> None:
    one = Members(tmp_path)
    try:
        one.begin(1)
        refused = upkeep(one.config(), "defragment", "--least=0")
        assert (refused.returncode, refused.stdout) == (1, b"")
        assert b"is the only member" in refused.stderr
        (found,) = said(upkeep(one.config(), "defragment", "--least=0", "--interrupt"))["members"]
        assert found["outcome"] == "Defragmented"
        assert 0 < found["silent_seconds"] <= found["seconds"] + 1
    finally:
        one.stop()


def test_the_members_are_shown(three: Members) -> None:
    found = said(upkeep(three.config(), "members"))["members"]
    assert [one["name"] for one in found] == ["e0", "e1", "e2"]
    assert [one["leader"] for one in found].count(True) == 1


def added(cluster: Members, name: str, peer: str) -> bool:
    done = upkeep(cluster.config(), "add-member", f"--name={name}", f"--peer={peer}")
    assert done.returncode == 0 or b"unhealthy cluster" in done.stderr, done.stderr
    return done.returncode == 0


def promoted(cluster: Members, name: str) -> bool:
    return upkeep(cluster.config(), "promote-member", f"--name={name}").returncode == 0


def start_joining(cluster: Members, joins: bool) -> None:
    """The last member begins, as the chart starts it."""
    member = cluster.all[-1]
    state = "existing" if joins else "new"
    member.more += [f"--initial-cluster={cluster.initial}", f"--initial-cluster-state={state}"]
    member.start()


def test_one_member_becomes_three_and_stays_the_cluster_that_tables_know(tmp_path: Path) -> None:
    cluster = Members(tmp_path)
    try:
        cluster.begin(1)
        first = cluster.all[0]
        first.put(f"/hudi/tables/{T}/clock", {"value": "1"})
        known = of.look(cluster.config())[0].cluster_id
        root = cluster.config()
        for number in (1, 2):
            name, member = f"e{number}", cluster.make()
            # etcd refuses until the one before has been connected for five seconds.
            wait_for("it is added", lambda each=member, called=name: added(cluster, called, each.peer))
            again = said(upkeep(root, "add-member", f"--name={name}", f"--peer={member.peer}"))
            assert again["added"] is False
            assert first.revision(), "a member that has not started stops nobody"
            early = upkeep(root, "promote-member", f"--name={name}")
            assert (early.returncode, b"no member" in early.stderr) == (1, True)
            start_joining(cluster, joins=True)
            wait_for("it has all data", lambda each=name: promoted(cluster, each))
            assert said(upkeep(root, "promote-member", f"--name={name}"))["promoted"] is False
            wait_for("it answers", lambda each=member: answers(each))
        assert {one.cluster_id for one in of.look(root)} == {known}
        first.stop()
        wait_for("two of three serve", lambda: answers(cluster.all[1]))
        assert cluster.all[2].read(f"/hudi/tables/{T}/clock") == {f"/hudi/tables/{T}/clock": {"value": "1"}}
    finally:
        cluster.stop()


def test_a_member_that_nobody_has_added_does_not_join(tmp_path: Path) -> None:
    """It ends, instead of beginning a second cluster."""
    cluster = Members(tmp_path)
    try:
        cluster.begin(1)
        cluster.make()
        start_joining(cluster, joins=True)
        wait_for("it ends", lambda: not Path(f"/proc/{cluster.all[1].pid}/exe").exists())
        assert "member count is unequal" in (cluster.all[1].directory / "etcd.log").read_text()
        assert len(of.look(cluster.config())) == 1
    finally:
        cluster.stop()


def test_members_that_do_not_join_are_a_second_cluster(tmp_path: Path) -> None:
    """Why `etcd.members` alone is not to be raised: it has no user, and none of the keys."""
    cluster = Members(tmp_path)
    try:
        cluster.begin(1)
        first = cluster.all[0]
        first.put(f"/hudi/tables/{T}/clock", {"value": "1"})
        for _ in (1, 2):
            cluster.make()
        for member in cluster.all[1:]:
            member.more += [f"--initial-cluster={cluster.initial}", "--initial-cluster-state=new"]
            member.start()
        second = cluster.all[1]
        wait_for("the second one serves", lambda: answers(second))
        assert second.read(f"/hudi/tables/{T}/") == {}
        assert first.read(f"/hudi/tables/{T}/") != {}
        alone = {one.cluster_id for one in of.look(cluster.config()) if one.endpoint == first.endpoint}
        other = {one.cluster_id for one in of.look(cluster.config()) if one.endpoint == second.endpoint}
        assert alone.isdisjoint(other)
    finally:
        cluster.stop()


OTHER, TRIAL = "00000000000000cd00000000000000cd", "00000000000000ef00000000000000ef"
RELEASED = {"state": "frozen", "reason": "no HudiTable", "path": "s3a://lake/flights", "table": "", "tableUID": ""}


def keys_of(etcd: Etcd, id: str) -> list[str]:
    return [*etcd.read(f"/hudi/control/{id}/"), *etcd.read(f"/hudi/tables/{id}/")]


def refused(config: EtcdConfig, id: str) -> str:
    done = upkeep(config, "forget", f"--id={id}")
    assert done.returncode == 1
    return done.stderr.decode()


@pytest.fixture
def left(three: Members) -> Iterator[Etcd]:
    """A released table, a table of a HudiTable, and a trial."""
    etcd = three.all[0]
    etcd.ctl("root", "del", "--prefix", "/hudi/control/")
    etcd.ctl("root", "del", "--prefix", "/hudi/tables/")
    etcd.put(f"/hudi/control/{OTHER}/gate", RELEASED, identity="operator")
    etcd.put(f"/hudi/tables/{OTHER}/clock", {"value": "20260101000000000"})
    etcd.put(f"/hudi/tables/{OTHER}/settle/inc-1", {"phase": "Settled"})
    etcd.put(f"/hudi/control/{OTHER}/fence/inc-1", {"inc": "inc-1"}, identity="operator")
    etcd.put(f"/hudi/control/agents/hudi-agent-x/{OTHER}", {"T": OTHER}, identity="operator")
    etcd.put(f"/hudi/tables/{TRIAL}/report/timeline", {"exists": True})
    etcd.put(f"/hudi/control/{T}/gate", {**RELEASED, "table": "lake/orders", "tableUID": "uid-1"}, identity="operator")
    yield etcd
    for id in (OTHER, TRIAL, T):
        etcd.ctl("root", "del", "--prefix", f"/hudi/control/{id}/")
        etcd.ctl("root", "del", "--prefix", f"/hudi/tables/{id}/")
    etcd.ctl("root", "del", "--prefix", "/hudi/control/agents/")


def test_whose_keys_there_are(three: Members, left: Etcd, monkeypatch: pytest.MonkeyPatch) -> None:
    found = {one["id"]: one for one in said(upkeep(three.config(), "tables"))["tables"]}
    assert {id: one["keys"] for id, one in found.items()} == {OTHER: 4, TRIAL: 1, T: 1}
    assert found[OTHER]["kinds"] == {"clock": 1, "fence": 1, "gate": 1, "settle": 1}
    assert (found[OTHER]["path"], found[OTHER]["tableUID"]) == ("s3a://lake/flights", "")
    assert found[OTHER]["agents"] == ["hudi-agent-x"]
    assert (found[T]["table"], found[T]["tableUID"]) == ("lake/orders", "uid-1")
    assert (found[TRIAL]["gate"], found[TRIAL]["kinds"]) == ("", {"report": 1})
    monkeypatch.setattr(tables, "PAGE", 2)
    assert {one.id: one.keys for one in tables.look(three.config())} == {id: one["keys"] for id, one in found.items()}


def test_a_person_forgets_a_table_that_nobody_has(three: Members, left: Etcd) -> None:
    others = keys_of(left, T)
    assert said(upkeep(three.config(), "forget", f"--id={OTHER}")) == {"id": OTHER, "deleted": 5}
    assert said(upkeep(three.config(), "forget", f"--id={TRIAL}")) == {"id": TRIAL, "deleted": 1}
    assert keys_of(left, OTHER) == keys_of(left, TRIAL) == list(left.read("/hudi/control/agents/")) == []
    assert keys_of(left, T) == others, "nothing of another table is touched"
    assert said(upkeep(three.config(), "forget", f"--id={OTHER}")) == {"id": OTHER, "deleted": 0}


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("control/{}/gate", {**RELEASED, "table": "lake/flights", "tableUID": "u"}, "its gate names HudiTable lake/fl"),
        ("control/{}/gate", {"state": "ajar"}, "its gate cannot be read"),
        ("control/{}/admit/lake.hudi-agent-1", {"attempt": "x"}, "it has keys of kind admit"),
        ("tables/{}/writer/inc-2", {"inc": "inc-2"}, "it has keys of kind writer"),
        ("tables/{}/lock", {"inc": "inc-2"}, "it has keys of kind lock"),
        ("tables/{}/instant/20260101000000000", {"inc": "inc-2"}, "it has keys of kind instant"),
        ("tables/{}/settle/inc-2", {"phase": "RollingBack"}, "incarnation inc-2 is not settled"),
    ],
)
def test_what_somebody_may_need_is_not_forgotten(
    three: Members, left: Etcd, key: str, value: JsonDict, told: str
) -> None:
    left.put(f"/hudi/{key.format(OTHER)}", value, identity="operator" if key.startswith("control/") else "gateway")
    before = keys_of(left, OTHER)
    assert told in refused(three.config(), OTHER)
    assert keys_of(left, OTHER) == before


def test_a_gate_that_was_put_meanwhile_keeps_its_keys(
    three: Members, left: Etcd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A HudiTable took the path between the read and the deletion."""
    read = tables._require_nobody

    def slowly(kinds: set[str], gates: list[bytes]) -> None:
        read(kinds, gates)
        left.put(
            f"/hudi/control/{OTHER}/gate", {**RELEASED, "table": "lake/flights", "tableUID": "u"}, identity="operator"
        )

    monkeypatch.setattr(tables, "_require_nobody", slowly)
    with pytest.raises(Retryable, match="its gate was put meanwhile"):
        tables.forget(three.config(), OTHER)
    assert len(keys_of(left, OTHER)) == 4


def test_no_id_is_no_range(three: Members, left: Etcd) -> None:
    for id in ("", "..", "agents", OTHER[:31]):
        assert "is no id of a table" in refused(three.config(), id)

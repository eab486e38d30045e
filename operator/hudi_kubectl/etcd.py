"""Upkeep of the chart's etcd: backup, defragmentation, members.

The work is done in the pod that has the identity of etcd's user root
(`hudi_operator.etcd_upkeep`): no key leaves it, and users need no access to etcd.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hudi_contract import naming
from hudi_kubectl import release
from hudi_kubectl.changing import How, confirm
from hudi_kubectl.cluster import Failed, Kubectl
from hudi_kubectl.objects import TABLE, JsonDict
from hudi_kubectl.screen import Screen

ACTIONS = ("backup", "restore", "defragment", "members", "add-member", "promote-member", "tables", "forget")
MOST_MEMBERS = 3
_DIGEST_BYTES = 32


def backup(kubectl: Kubectl, screen: Screen, file: str) -> int:
    """Write a snapshot of etcd to a file, when it is whole."""
    if not file:
        raise Failed("-f FILE: where the backup is written is missing")
    path = Path(file)
    if path.exists():
        raise Failed(f"-f {file}: it exists, and a backup overwrites nothing")
    part = path.with_name(f"{path.name}.part")
    try:
        with os.fdopen(os.open(str(part), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as output:
            report = _report(release.upkeep(kubectl, release.identity(kubectl), ["backup"], output))
            output.flush()
            os.fsync(output.fileno())
        problem = damage(part, report)
        if problem:
            raise Failed(f"the backup is not whole, and nothing is kept of it: {problem}")
        os.rename(str(part), str(path))
    except OSError as error:
        raise Failed(f"-f {file}: {error.strerror or error}") from None
    finally:
        if part.exists():
            part.unlink()
    inside = _looked_into(path)
    if screen.as_json:
        screen.give({"file": file, **report, **({"status": inside} if inside else {})})
        return 0
    screen.say(
        f"{file}: {_bytes(report['bytes'])} of etcd {report['version']}, cluster {report['cluster_id']}, "
        f"member {report['member']}",
        f"  revision  {report['revision']} or later; {report['keys']} keys, {report['tables']} tables then",
        f"  SHA-256   {report['sha256']}, as etcd sent it",
    )
    if inside:
        screen.say(f"  inside    hash {inside['hash']:x}, revision {inside['revision']}, {inside['totalKey']} keys")
    else:
        screen.say(f"  inside    not looked at: etcdutl is not on the PATH (etcdutl snapshot status {file})")
    screen.say("It has the keys of all tables: keep it as secret as etcd. It does not replace what is in the store.")
    return 0


def defragment(kubectl: Kubectl, screen: Screen, least: float, *, interrupt: bool, how: How) -> int:
    """Give unused space of etcd's database back to the disk."""
    place = release.identity(kubectl)
    members = _members(kubectl, place)
    wanted = [one for one in members if _unused(one) >= least]
    if wanted and len(members) == 1 and not interrupt:
        raise Failed(
            f"{members[0]['name']} is the only member: until its {_bytes(members[0]['in_use'])} are written anew "
            "nothing commits, and leases run out if that takes longer than they last; --interrupt does it nevertheless"
        )
    if wanted:
        names = ", ".join(f"{one['name']} ({_bytes(one['in_use'])} of {_bytes(one['size'])} in use)" for one in wanted)
        confirm(f"One after the other is defragmented, and answers nobody meanwhile: {names}.", how)
    flags = [f"--least={least}", *(["--interrupt"] if interrupt else [])]
    found: list[JsonDict] = json.loads(release.upkeep(kubectl, place, ["defragment", *flags]).stdout)["members"]
    if screen.as_json:
        screen.give({"members": found})
        return 0
    rows = [
        (
            str(one["member"]),
            str(one["outcome"]),
            _bytes(one["size_before"] if "size_before" in one else one["size"]),
            _bytes(one["size"]),
            f"{one['silent_seconds']:.1f}s" if "silent_seconds" in one else "",
        )
        for one in found
    ]
    screen.table(("MEMBER", "OUTCOME", "BEFORE", "NOW", "SILENT"), rows)
    return 0


def members(kubectl: Kubectl, screen: Screen) -> int:
    """Show the members of etcd."""
    found = _members(kubectl, release.identity(kubectl))
    if screen.as_json:
        screen.give({"members": found})
        return 0
    rows = [
        (
            str(one["name"] or one["id"]),
            "leader" if one["leader"] else "" if one["endpoint"] else "does not answer",
            str(one["version"]),
            str(one["revision"]),
            _bytes(one["size"]),
            f"{_unused(one):.0%}",
        )
        for one in found
    ]
    screen.table(("MEMBER", "IS", "VERSION", "REVISION", "SIZE", "UNUSED"), rows)
    return 0


def tables(kubectl: Kubectl, screen: Screen) -> int:
    """Show whose keys etcd has although no HudiTable of this cluster has that path."""
    found = _left(kubectl, release.identity(kubectl))
    if screen.as_json:
        screen.give({"tables": found})
        return 0
    if not found:
        screen.say("every key is one of a HudiTable")
        return 0
    rows = [
        (str(one["id"]), _is(one), str(one["table"] or "-"), str(one["keys"]), str(one["path"] or "-")) for one in found
    ]
    screen.table(("ID", "IS", "GATE NAMES", "KEYS", "PATH"), rows)
    return 0


def forget(kubectl: Kubectl, screen: Screen, id: str, how: How) -> int:
    """Delete the keys of a table that no HudiTable has any more."""
    place = release.identity(kubectl)
    one = next((each for each in _left(kubectl, place) if each["id"] == id), None)
    if one is None:
        raise Failed(
            f"--id {id or 'ID'}: etcd has nothing of that id, or a HudiTable has it (kubectl hudi etcd tables)"
        )
    confirm(
        f"{one['keys']} keys of {one['path'] or 'a trial'} are deleted for good. You say that no other cluster with "
        "this etcd has a HudiTable of that path. Where the table's files are still there, its marker names a lock that "
        "is gone then, and a person has to decide before it is written to again.",
        how,
    )
    done: JsonDict = json.loads(release.upkeep(kubectl, place, ["forget", f"--id={id}"]).stdout)
    if screen.as_json:
        screen.give(done)
        return 0
    screen.say(f"{id}: {done['deleted']} keys deleted")
    return 0


def _left(kubectl: Kubectl, place: str) -> list[JsonDict]:
    """What etcd has of ids that are neither of a HudiTable's path nor of its trial.

    etcd is read first: a HudiTable that comes meanwhile is listed.
    """
    found: list[JsonDict] = json.loads(release.upkeep(kubectl, place, ["tables"]).stdout)["tables"]
    known: set[str] = set()
    for table in kubectl.objects(TABLE, everywhere=True):
        known.add(naming.trial_id(str(table["metadata"]["uid"])))
        # Where the operator has not looked at it yet, or cannot read it, its path says the same.
        known.add(str((table.get("status") or {}).get("tableId") or ""))
        known.add(naming.table_id(str((table.get("spec") or {}).get("path") or "")))
    return [one for one in found if one["id"] not in known]


def _is(one: JsonDict) -> str:
    """What stands in etcd, in a word."""
    if not one["gate"]:
        return "a trial"
    return "not released" if one["tableUID"] else "released"


def add_member(kubectl: Kubectl, screen: Screen, how: How) -> int:
    """Add the next member of the StatefulSet to the cluster, as a learner."""
    chart, place = release.etcd(kubectl), release.identity(kubectl)
    present = [str(one["name"]) for one in _members(kubectl, place)]
    number = len(present)
    if "" in present or sorted(present) != [chart.member(at)[0] for at in range(number)]:
        raise Failed(
            f"members are {', '.join(one or 'one that has not started' for one in present)}: only the next one "
            "of the StatefulSet is added, when all others have started"
        )
    if number >= MOST_MEMBERS:
        raise Failed(f"there are {number} members: the chart has {MOST_MEMBERS} at most")
    name, peer = chart.member(number)
    confirm(f"{name} ({peer}) is added as a learner. Without a vote it changes no quorum, until it is promoted.", how)
    done = release.upkeep(kubectl, place, ["add-member", f"--name={name}", f"--peer={peer}"])
    if screen.as_json:
        screen.give(json.loads(done.stdout))
        return 0
    screen.say(
        f"{name} is added. Now let the chart start it: helm upgrade --set etcd.members={number + 1},etcd.joins=true",
        "When it runs: kubectl hudi etcd promote-member (docs/operate/operations.md, From one member to three)",
    )
    return 0


def promote_member(kubectl: Kubectl, screen: Screen, how: How) -> int:
    """Give the last member its vote, when it has all data."""
    place = release.identity(kubectl)
    present = sorted(str(one["name"]) for one in _members(kubectl, place))
    if not present[0]:
        raise Failed("a member that was added has not started yet")
    if len(present) == 1:
        raise Failed(f"{present[0]} is the only member")
    confirm(
        f"{present[-1]} gets a vote: from then on the cluster needs {len(present) // 2 + 1} of {len(present)}.", how
    )
    found: JsonDict = json.loads(release.upkeep(kubectl, place, ["promote-member", f"--name={present[-1]}"]).stdout)
    if screen.as_json:
        screen.give(found)
        return 0
    said = "has a vote" if found["promoted"] else "had its vote already"
    screen.say(f"{present[-1]} {said}. Now the next member, or helm upgrade with --set etcd.joins=false")
    return 0


def damage(path: Path, report: JsonDict) -> str:
    """Why a file is not the snapshot that a report is about; empty when it is.

    etcd appends the SHA-256 of what it has sent.
    """
    size = path.stat().st_size
    if size != report["bytes"]:
        return f"{size} of {report['bytes']} bytes have arrived"
    digest, left = hashlib.sha256(), size - _DIGEST_BYTES
    with path.open("rb") as file:
        while left > 0:
            block = file.read(min(left, 1 << 20))
            digest.update(block)
            left -= len(block)
        told = file.read()
    if digest.digest() != told or digest.hexdigest() != report["sha256"]:
        return f"its SHA-256 is {digest.hexdigest()}, and etcd says {told.hex()}"
    return ""


def _looked_into(path: Path) -> JsonDict:
    """Result of `etcdutl snapshot status`; empty when it is not on the PATH."""
    program = shutil.which("etcdutl")
    if program is None:
        return {}
    command = [program, "snapshot", "status", str(path), "--write-out=json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failed(f"{path} is kept, but etcdutl cannot read it: {release.last(done.stderr)}")
    found: JsonDict = json.loads(done.stdout)
    return found


def _report(done: Any) -> JsonDict:
    """The last line of the error output, where the output is the backup."""
    try:
        found: JsonDict = json.loads(release.last(done.stderr))
    except ValueError:
        raise Failed(f"the pod has not said what it has sent: {release.last(done.stderr)}") from None
    return found


def _members(kubectl: Kubectl, place: str) -> list[JsonDict]:
    found: list[JsonDict] = json.loads(release.upkeep(kubectl, place, ["members"]).stdout)["members"]
    return found


def _unused(member: JsonDict) -> float:
    """The part of a member's database that a defragmentation gives back."""
    return 1 - member["in_use"] / member["size"] if member["size"] and member["in_use"] else 0.0


def _bytes(count: int) -> str:
    return f"{count / 2**20:.1f} MiB"

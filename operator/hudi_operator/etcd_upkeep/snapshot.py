"""A backup: etcd's snapshot of one member, as `etcdctl snapshot save` takes it.

It has all keys, users and roles. etcd appends the SHA-256 of what it has sent; it is compared here,
so a snapshot that was cut off or changed on the way is none. ``etcdutl snapshot status`` shows its
content, and whether it can be restored.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc

from hudi_contract import keys
from hudi_operator.adapters import etcd_rpc as rpc
from hudi_operator.adapters.etcd_rpc import Connection
from hudi_operator.etcd_upkeep import members as of
from hudi_operator.model.config import EtcdConfig
from hudi_operator.model.ports import Fatal, Retryable

JsonDict = dict[str, Any]

TIMEOUT_SECONDS = 3600.0
DIGEST_BYTES = hashlib.sha256().digest_size
_PAGE_BYTES = 512
"""etcd's rule: a database is a multiple of it, and a snapshot has the digest beyond that."""
NEWEST = "newest.db"
"""A second name of the last backup in a folder."""
_NAME = re.compile(r"etcd-[0-9a-f]+-\d{8}T\d{6}Z-r\d+\.db")


@dataclass(frozen=True)
class Taken:
    """A snapshot. It is of a revision from `revision` on: what was acknowledged before is in it."""

    cluster_id: str
    member: str
    version: str
    revision: int
    keys: int
    """Number of keys below the prefix at that revision."""
    tables: int
    """Number of tables that had a gate then."""
    bytes: int
    sha256: str
    """Digest of the database, as etcd reports it and as it was received."""
    seconds: float

    def to_json(self) -> JsonDict:
        """For reports."""
        return {**self.__dict__, "seconds": round(self.seconds, 3)}


class Digest:
    """The SHA-256 of all that passes but its last 32 bytes, which are what it is compared with."""

    def __init__(self) -> None:
        self._hash, self._last, self.bytes = hashlib.sha256(), b"", 0

    def update(self, part: bytes) -> None:
        """The next part."""
        held = self._last + part
        self._hash.update(held[:-DIGEST_BYTES])
        self._last = held[-DIGEST_BYTES:]
        self.bytes += len(part)

    def problem(self) -> str:
        """Why what has passed is no whole snapshot; empty when it is one."""
        if self.bytes % _PAGE_BYTES != DIGEST_BYTES:
            return f"{self.bytes} bytes are no snapshot of etcd with its SHA-256: it was cut off"
        if self._hash.digest() != self._last:
            return f"its SHA-256 is {self._hash.hexdigest()}, and etcd says {self._last.hex()}: it was damaged"
        return ""

    @property
    def sha256(self) -> str:
        """In hexadecimal."""
        return self._hash.hexdigest()


def take(config: EtcdConfig, write: Callable[[bytes], object]) -> Taken:
    """Write a snapshot of the leader, part by part: no other member can be behind.

    Raises Retryable when it is not whole, Fatal when etcd refuses.
    """
    leader = next((member for member in of.look(config) if member.leader), None)
    if leader is None:
        raise Retryable("no member of etcd leads")
    began, digest = time.monotonic(), Digest()
    with of.connected(config, leader.endpoint, timeout=TIMEOUT_SECONDS) as connection:
        revision, count, tables = _counted(connection, config.prefix)
        for part in _parts(connection):
            digest.update(part)
            write(part)
    if problem := digest.problem():
        raise Retryable(f"the snapshot of {leader.name} is not whole: {problem}")
    taken = time.monotonic() - began
    cluster = f"{leader.cluster_id:x}"
    return Taken(cluster, leader.name, leader.version, revision, count, tables, digest.bytes, digest.sha256, taken)


def _counted(connection: Connection, prefix: str) -> tuple[int, int, int]:
    """Revision, keys and gates."""
    ranges = [rpc.messages.RangeRequest(key=f"{prefix}/".encode(), range_end=rpc.prefix_end(f"{prefix}/"))]
    ranges[0].count_only = True
    control = f"{prefix}/{keys.CONTROL}/"
    gates = rpc.messages.RangeRequest(key=control.encode(), range_end=rpc.prefix_end(control), keys_only=True)
    operations = [rpc.messages.RequestOp(request_range=one) for one in (*ranges, gates)]
    answer = connection.call_now(rpc.kv, "Txn", rpc.txn_request([], operations), writes=False)
    counted, listed = (response.response_range for response in answer.responses)
    tables = sum(pair.key.endswith(f"/{keys.Kind.GATE}".encode()) for pair in listed.kvs)
    return int(answer.header.revision), int(counted.count), tables


def _parts(connection: Connection) -> Iterator[bytes]:
    stub = rpc.maintenance(connection.channel())
    try:
        for part in stub.Snapshot(rpc.messages.SnapshotRequest(), timeout=TIMEOUT_SECONDS):
            yield bytes(part.blob)
    except grpc.RpcError as error:
        raise rpc.translate(error.code(), error.details(), method="Snapshot", writes=False) from error


def save(config: EtcdConfig, folder: Path) -> JsonDict:
    """A backup in a folder; returns its report, which stands beside it.

    A backup has its name only when it is whole and on the disk. Raises as `take`, and Fatal when
    the folder cannot be written.
    """
    part = folder / f".part-{os.getpid()}"
    try:
        for left in folder.glob(".part-*"):
            left.unlink()  # of a run that was killed
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            taken = take(config, file.write)
            file.flush()
            os.fsync(file.fileno())
        name = f"etcd-{taken.cluster_id}-{datetime.now(tz=UTC):%Y%m%dT%H%M%SZ}-r{taken.revision}.db"
        report = {"file": name, **taken.to_json()}
        (folder / f"{name}.json").write_text(json.dumps(report) + "\n", encoding="utf-8")
        part.rename(folder / name)
        (folder / NEWEST).unlink(missing_ok=True)
        os.link(folder / name, folder / NEWEST)
        _sync(folder)
    except OSError as error:
        raise Fatal(f"{folder} cannot be written: {error}") from error
    finally:
        part.unlink(missing_ok=True)
    return report


def prune(folder: Path, keep: int) -> list[str]:
    """Delete all backups but the newest ones; returns the names of the deleted ones.

    Nothing else is touched. To be called when the newest one was verified.
    """
    names = sorted((path.name for path in folder.iterdir() if _NAME.fullmatch(path.name)), key=_taken_at)
    old = names[: max(0, len(names) - keep)]
    for name in old:
        (folder / name).unlink()
        (folder / f"{name}.json").unlink(missing_ok=True)
    return old


def set_aside(folder: Path) -> str:
    """Rename the data of a member that does not run; returns the new name, empty: there is none.

    It is kept until a person deletes it.
    """
    if not folder.exists():
        return ""
    kept = folder.with_name(f"{folder.name}.before-{datetime.now(tz=UTC):%Y%m%dT%H%M%SZ}")
    folder.rename(kept)
    _sync(folder.parent)
    return str(kept)


def _taken_at(name: str) -> str:
    return name.split("-")[2]


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

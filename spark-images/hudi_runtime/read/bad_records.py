"""Records of Kafka that cannot be written: `source.kafka.onBadRecord` of a HudiWriter.

They are left out of the commit whose offsets contain them, which counts them in its progress. With
`SetAside` their content is in a file, which that progress names. The file is written before the
commit: a commit without it would lose records. Its name is the hash of its content, so that a
process that writes late, or twice, writes the same. Without a completed commit that names it, a
file has no meaning: its records come again, in the file of a later commit.

What is bad is a property of the record, the schema and the query, so that it is the same each time
it is computed. Rows that differ each time are not spared (`Committer`).
"""

from __future__ import annotations

import base64
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import DataFrame, Row, functions

from hudi_contract.outcomes import FailureClass
from hudi_runtime.process.errors import RuntimeFailure
from hudi_runtime.read import manifests
from hudi_runtime.table.storage import Storage
from hudi_runtime.table.values import CAUSE, PLACE

ROOT = ".hoodie/hudi-operator-bad-records"
MAX_BYTES = 64 * 1024 * 1024
"""Keys and values of one file, which the driver holds in memory."""
SHOWN = 3
"""Records that are named in the log."""
_KAFKA = ("topic", "partition", "offset")


@dataclass(frozen=True, order=True)
class Bad:
    """One bad record."""

    topic: str
    partition: int
    offset: int
    cause: str

    def __str__(self) -> str:
        """Its place and the rule."""
        return f"topic {self.topic}, partition {self.partition}, offset {self.offset}: {self.cause}"


@dataclass(frozen=True)
class BadRecords:
    """How the bad records of one batch are found.

    `unparsed`: `PLACE` and `CAUSE` of records whose value does not parse; None: all of them do.
    `records`: the whole batch with Kafka's own columns. `keep`: their content is set aside.
    """

    unparsed: DataFrame | None
    records: DataFrame
    limit: int
    keep: bool

    def found(self, refused: DataFrame | None) -> tuple[Bad, ...]:
        """The bad records in order, each once. Raises RuntimeFailure(BadData) when they are many.

        `refused`: `PLACE` and `CAUSE` of rows that the table cannot hold; a record may be in
        several of them.
        """
        frames = [frame for frame in (self.unparsed, refused) if frame is not None]
        if not frames:
            return ()
        whole = frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])
        once = whole.groupBy(*PLACE).agg(functions.min(CAUSE).alias(CAUSE))
        rows = once.select(*PLACE, CAUSE).limit(self.limit + 1).collect()
        bad = tuple(sorted(Bad(str(row[0]), int(row[1]), int(row[2]), str(row[3])) for row in rows))
        if len(bad) > self.limit:
            raise RuntimeFailure(
                FailureClass.BAD_DATA,
                f"more than {self.limit} bad records in one commit (source.kafka.onBadRecord.maxPerCommit), such as "
                f"{bad[0]}",
            )
        if bad:
            shown = "; ".join(str(each) for each in bad[:SHOWN])
            more = f" and {len(bad) - SHOWN} more" if len(bad) > SHOWN else ""
            print(f"source.kafka.onBadRecord: left out: {shown}{more}", file=sys.stderr, flush=True)
        return bad

    def set_aside(self, storage: Storage, writer: str, bad: Sequence[Bad]) -> str:
        """Write the content of these records; returns the file's path below the table's base path.

        Raises RuntimeFailure(BadData) when they are too large, RuntimeFailure(Infrastructure) when
        one of them is gone.
        """
        spark = self.records.sparkSession
        wanted = spark.createDataFrame(
            [(each.topic, each.partition, each.offset) for each in bad], "topic string, partition int, offset long"
        )
        kept = self.records.join(functions.broadcast(wanted), list(_KAFKA), "left_semi")
        sizes = [functions.coalesce(functions.octet_length(name), functions.lit(0)) for name in ("key", "value")]
        size = int(kept.agg(functions.sum(sizes[0] + sizes[1])).collect()[0][0] or 0)
        if size > MAX_BYTES:
            raise RuntimeFailure(
                FailureClass.BAD_DATA,
                f"the bad records of one commit have {size} bytes, more than {MAX_BYTES}: lower "
                "source.kafka.maxOffsetsPerCommit",
            )
        rows = kept.select(*_KAFKA, functions.unix_millis("timestamp").alias("at"), "key", "value").collect()
        there = {(str(row.topic), int(row.partition), int(row.offset)): row for row in rows}
        gone = [each for each in bad if (each.topic, each.partition, each.offset) not in there]
        if gone:
            raise RuntimeFailure(
                FailureClass.INFRASTRUCTURE, f"a bad record has been removed before it was set aside: {gone[0]}"
            )
        lines = [_line(writer, each, there[each.topic, each.partition, each.offset]) for each in bad]
        text = "".join(f"{json.dumps(line, separators=(',', ':'))}\n" for line in lines)
        path = f"{folder_of(writer)}/{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"
        storage.write(path, text)
        return path


def folder_of(writer: str) -> str:
    """Folder of the records that a writer has set aside, below the table's base path."""
    return f"{ROOT}/{manifests.hash_of(writer)}"


def progress(bad: Sequence[Bad], before: int, file: str) -> Mapping[str, object]:
    """The part of a commit's progress about bad records; `before`: those of earlier commits."""
    total = before + len(bad)
    return {"bad": {"count": len(bad), "total": total, "file": file}} if total else {}


def _line(writer: str, bad: Bad, row: Row) -> Mapping[str, object]:
    """One line of a file: a record, with key and value in base64."""
    at = datetime.fromtimestamp(row["at"] / 1000, tz=UTC)
    return {
        "writer": writer,
        "topic": bad.topic,
        "partition": bad.partition,
        "offset": bad.offset,
        "timestamp": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "cause": bad.cause,
        "key": _encoded(row["key"]),
        "value": _encoded(row["value"]),
    }


def _encoded(content: bytes | bytearray | None) -> str | None:
    return None if content is None else base64.b64encode(bytes(content)).decode()

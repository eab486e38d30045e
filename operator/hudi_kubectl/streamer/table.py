"""The table: where it is, its keys and partitions, how versions are merged, its index.

Below it are `work` and the records of `given`; it uses nothing else.
"""

from __future__ import annotations

import re

from hudi_kubectl.streamer.given import MISSING, TABLE, BadInput, Option, Said
from hudi_kubectl.streamer.work import Work

_TYPES = {"COPY_ON_WRITE": "CopyOnWrite", "MERGE_ON_READ": "MergeOnRead"}
_SCHEMES = ("s3a", "s3", "gs", "abfs", "abfss", "hdfs")
_PATH = re.compile(
    r"(s3a|s3|gs|hdfs)://[A-Za-z0-9._-]+(:[0-9]+)?/+[^/].*|abfss?://[a-z0-9-]+@[A-Za-z0-9.-]+/+[^/@][^@]*"
)
_FOLDER = re.compile(r"[A-Za-z0-9._=+,~:/@-]*")
_GLOB = re.compile(r"[^\x00-\x20\x7f\\]*")
_UPWARDS = re.compile(r"[/{,][.]{1,2}(?=[/},]|\Z)")
_COLUMN = re.compile(r"[^\x00-\x20\x7f,:`]{1,255}")
_TABLE_NAME = re.compile("[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_KEYGEN = "hoodie.datasource.write.keygenerator.class"
_KEYGEN_TYPE = "hoodie.datasource.write.keygenerator.type"
_PARTITION = "hoodie.datasource.write.partitionpath.field"
_KEY = "hoodie.datasource.write.recordkey.field"
_ORDERING = "hoodie.datasource.write.precombine.field"
SIMPLE, COMPLEX, NONE = "SimpleKeyGenerator", "ComplexKeyGenerator", "NonpartitionedKeyGenerator"
_GENERATORS = {
    "SIMPLE": SIMPLE,
    "SIMPLE_AVRO": SIMPLE,
    "COMPLEX": COMPLEX,
    "COMPLEX_AVRO": COMPLEX,
    "NON_PARTITION": NONE,
    "NON_PARTITION_AVRO": NONE,
    "TIMESTAMP": "TimestampBasedKeyGenerator",
    "TIMESTAMP_AVRO": "TimestampBasedKeyGenerator",
    "CUSTOM": "CustomKeyGenerator",
    "CUSTOM_AVRO": "CustomKeyGenerator",
    "GLOBAL_DELETE": "GlobalDeleteKeyGenerator",
    "GLOBAL_DELETE_AVRO": "GlobalDeleteKeyGenerator",
}
_REFUSED = {
    "TimestampBasedKeyGenerator": (
        "a partition is the value of a column here, and not a time that is formatted on its way",
        "for a new table compute a column with the partition in transform.sql, name it as the partition and leave the "
        "generator out; an existing table cannot be adopted",
    ),
    "CustomKeyGenerator": (
        "partition fields have no types here, and an existing table stores this generator",
        "for a new table name the fields without types and leave the generator out; an existing one cannot be adopted",
    ),
    "GlobalDeleteKeyGenerator": (
        "it deletes keys in every partition; keys are unique within their partition here",
        "delete by key and partition, see docs/use/indexes.md",
    ),
}
_MAX_KEYS, _MAX_PARTITIONS, _MAX_ORDERING = 16, 8, 4


def translate(work: Work) -> None:
    """Path, name, type, keys, partitions, ordering, merge and index of the HudiTable."""
    _where(work)
    _type(work)
    _keys(work)
    _merge(work)
    _index(work)
    work.choose(
        "--base-file-format",
        ("parquet",),
        "tables have Parquet files",
        ("tables have Parquet files only", "write the table anew, with Parquet"),
        TABLE,
    )


def object_name(text: str) -> str:
    """A name of Kubernetes; empty when nothing is left of the text."""
    return re.sub("-+", "-", re.sub("[^a-z0-9-]", "-", text.lower()))[:63].strip("-")


def path_of(work: Work, option: Option, *, pattern: bool = False) -> str:
    """The path that an option names, in a form that the API takes; empty: the option is missed.

    A path that may have credentials is never shown.
    """
    kind = TABLE if option.name == "--target-base-path" else "HudiWriter"
    text = option.value.rstrip("/") if not pattern else option.value
    if text.startswith("/") and work.wishes.default_fs:
        text = work.wishes.default_fs.rstrip("/") + text
    for old in ("s3n://",):
        text = "s3a://" + text[len(old) :] if text.startswith(old) else text
    scheme = text.partition("://")[0] if "://" in text else ""
    if not scheme:
        work.missing(
            option,
            "a path without a scheme is one of the job's default file system, which is not known here",
            "name it with --default-fs, for example hdfs://namenode:8020",
            kind,
        )
    elif scheme not in _SCHEMES:
        work.missing(
            option, f"scheme {scheme!r} is none of {', '.join(_SCHEMES)}", "copy the data to an object store", kind
        )
    elif "@" in text and not scheme.startswith("abfs"):
        work.missing(option, "the path has credentials", "name the path without them, and put them into a Secret", kind)
    elif not _PATH.fullmatch(text) or _UPWARDS.search(text) or not (_GLOB if pattern else _FOLDER).fullmatch(text):
        work.missing(option, "must be SCHEME://BUCKET/FOLDER of plain characters", "name the folder plainly", kind)
    elif not pattern and "//" in text.partition("://")[2]:
        work.missing(option, "must not have '//' after the bucket", "name the folder plainly", kind)
    else:
        return text
    return ""


def _where(work: Work) -> None:
    path, name = work.flag("--target-base-path"), work.flag("--target-table")
    if path is None:
        work.not_given("--target-base-path", "the table's path is not known", "give it after --", TABLE)
    elif found := path_of(work, path):
        work.table["path"] = found
        work.to(path, "HudiTable spec.path")
    if name is None and not work.wishes.table:
        work.not_given("--target-table", "the table's name is not known", "give it after --", TABLE)
    wanted = work.wishes.table or object_name("" if name is None else name.value)
    work.table_name = wanted or "table"
    work.writer_name = work.wishes.writer or work.table_name
    for each, at in ((work.table_name, "--table"), (work.writer_name, "--writer")):
        if each != object_name(each):
            raise BadInput(f"{at} {each!r}: not the name of an object: lower-case letters, digits and '-', at most 63")
    if name is None:
        return
    if not _TABLE_NAME.fullmatch(name.value) or not wanted:
        work.missing(name, "letters, digits, _ . and -, at most 128", "correct the name", TABLE)
        return
    if name.value != work.table_name:
        work.table["tableName"] = name.value
    work.to(name, "HudiTable metadata.name" + (", spec.tableName" if "tableName" in work.table else ""))


def _type(work: Work) -> None:
    option = work.flag("--table-type")
    if option is None:
        work.not_given("--table-type", "HoodieStreamer needs it", "give COPY_ON_WRITE or MERGE_ON_READ after --", TABLE)
    elif option.value not in _TYPES:
        work.missing(option, "COPY_ON_WRITE or MERGE_ON_READ", "correct the value", TABLE)
    else:
        work.table["type"] = _TYPES[option.value]
        work.to(option, "HudiTable spec.type")


# ---- keys and partitions


def _columns(work: Work, option: Option, at: str, most: int) -> list[str]:
    """The columns of an option, also put into the table's field `at`; empty: it is missed."""
    found = work.names(option)
    if len(found) > most or len(set(found)) < len(found) or not all(_COLUMN.fullmatch(each) for each in found):
        work.missing(option, f"{at} has at most {most} names of different columns", "rename the columns in SQL", TABLE)
        return []
    nested = [each for each in found if "." in each]
    if nested:
        work.missing(
            option,
            f"{at} names columns, not fields in them",
            "give the field a column of its own in transform.sql; an existing table with it cannot be adopted",
            TABLE,
        )
        return []
    if found:
        work.table[at] = found
        work.to(option, f"HudiTable spec.{at}")
    return found


def _keys(work: Work) -> None:
    key = work.prop(_KEY)
    keys: list[str] = []
    if key is None or not work.names(key):
        work.not_given(
            _KEY,
            "Hudi would make keys up; a HudiTable has columns as its key",
            "name the columns that tell records apart; an existing table without a key cannot be adopted",
            TABLE,
        )
        work.unneeded(key, "it is empty")
    else:
        keys = _columns(work, key, "recordKeyFields", _MAX_KEYS)
    generator = _generator(work)
    partitions = _partitions(work, generator)
    _layout(work, generator, len(keys), len(partitions))
    style = work.prop("hoodie.datasource.write.hive_style_partitioning")
    if work.is_true("hoodie.datasource.write.hive_style_partitioning"):
        work.table["hiveStylePartitioning"] = True
        work.to(style, "HudiTable spec.hiveStylePartitioning")
    work.unneeded(style, "the default here as well")
    work.choose(
        "hoodie.datasource.write.partitionpath.urlencode",
        ("false",),
        "the default here as well",
        ("partition paths are not encoded here", "an existing table with it cannot be adopted"),
        TABLE,
    )
    work.choose(
        "hoodie.populate.meta.fields",
        ("true",),
        "the default here as well",
        ("the table needs Hudi's meta fields", "an existing table without them cannot be adopted"),
        TABLE,
    )


def _generator(work: Work) -> str:
    """The class that the job names, without its package; empty: Hudi infers it."""
    named, kind = work.prop(_KEYGEN), work.prop(_KEYGEN_TYPE)
    if named is not None:
        return named.value.rpartition(".")[2].replace("AvroKeyGenerator", "KeyGenerator")
    return "" if kind is None else _GENERATORS.get(kind.value.upper(), kind.value)


def _partitions(work: Work, generator: str) -> list[str]:
    option = work.prop(_PARTITION)
    if option is None:
        return []
    if not work.names(option) or generator == NONE:
        work.unneeded(option, "the table has no partitions")
        return []
    if ":" in option.value:
        work.missing(option, *_REFUSED["CustomKeyGenerator"], TABLE)
        return []
    if generator and generator not in (SIMPLE, COMPLEX):
        work.missing(option, f"{generator} makes other partitions of it than the column's values", "see there", TABLE)
        return []
    return _columns(work, option, "partitionFields", _MAX_PARTITIONS)


def _layout(work: Work, generator: str, keys: int, partitions: int) -> None:
    """A table has the generator that Hudi infers from its fields.

    Another one stores keys in another form.
    """
    option = work.prop(_KEYGEN) or work.prop(_KEYGEN_TYPE)
    inferred = NONE if not partitions else SIMPLE if keys == partitions == 1 else COMPLEX
    if option is None:
        return
    if generator in _REFUSED:
        work.missing(option, *_REFUSED[generator], TABLE)
    elif generator not in (SIMPLE, COMPLEX, NONE):
        work.missing(option, "a key generator of your own", "an existing table with it cannot be adopted", TABLE)
    elif generator != inferred and not work.blocked[TABLE]:
        work.missing(
            option,
            f"keys of this table would be stored as {inferred} stores them, for that is what follows from its fields",
            "for a new table leave the generator out; an existing one cannot be adopted",
            TABLE,
        )
    else:
        work.unneeded(option, "it follows from recordKeyFields and partitionFields")
    for other in (work.prop(_KEYGEN_TYPE), *work.below("hoodie.keygen.timebased.")):
        if other is not None and generator in (SIMPLE, COMPLEX, NONE):
            work.unneeded(other, f"{generator} does not use it")
        elif other is not None:
            work.missing(other, *(_REFUSED.get(generator) or _REFUSED["TimestampBasedKeyGenerator"]))


# ---- merging

_MODES = {"EVENT_TIME_ORDERING": "EventTime", "COMMIT_TIME_ORDERING": "CommitTime", "CUSTOM": "Custom"}
_PAYLOADS = {
    "OverwriteWithLatestAvroPayload": "CommitTime",
    "DefaultHoodieRecordPayload": "EventTime",
    "EventTimeAvroPayload": "EventTime",
}
_PAYLOAD_REASONS = {
    "PartialUpdateAvroPayload": "partial updates by event time could lose an update of another column",
    "OverwriteNonDefaultsWithLatestAvroPayload": "a column's default value stays a value here",
    "AWSDmsAvroPayload": "changes of AWS DMS are not read here",
    "MySqlDebeziumAvroPayload": "changes of Debezium are not read here",
    "PostgresDebeziumAvroPayload": "changes of Debezium are not read here",
}


def _merge(work: Work) -> None:
    ordering = _ordering(work)
    mode = _mode(work)
    if mode == "EventTime" and not ordering:
        work.not_given("--source-ordering-fields", "merge mode EventTime needs one", "name the column", TABLE)
    implied = "EventTime" if ordering else "CommitTime"
    if mode and mode != implied:
        merge = work.section("merge")
        merge["mode"] = mode
        if mode == "Custom":
            _custom(work)
    elif not ordering:
        work.notes.append(
            "The job names no ordering field: of two versions of a record the later commit stays. HoodieDeltaStreamer "
            "before 1.0 took the column ts; if yours did, give --source-ordering-fields ts."
        )
    for name in ("--merge-strategy-id", "--merge-impl-classes"):
        work.unneeded(work.flag(name), "only merge mode CUSTOM uses it")
    for name in ("hoodie.write.record.merge.strategy.id", "hoodie.write.record.merge.custom.implementation.classes"):
        work.unneeded(work.prop(name), "only merge mode CUSTOM uses it")


def _ordering(work: Work) -> list[str]:
    flag, option = work.flag("--source-ordering-fields"), work.prop(_ORDERING)
    winner = flag or option
    if flag is not None:
        work.unneeded(option, f"{flag.name} counts")
    if winner is None:
        return []
    return _columns(work, winner, "orderingFields", _MAX_ORDERING)


def _mode(work: Work) -> str:
    """The merge mode that the job names; empty: it names none."""
    flag, option = work.flag("--merge-mode"), work.prop("hoodie.write.record.merge.mode")
    payload, other = work.flag("--payload-class"), work.prop("hoodie.compaction.payload.class")
    named, classed = flag or option, payload or other
    work.unneeded(option if flag else None, "--merge-mode counts")
    work.unneeded(other if payload else None, "--payload-class counts")
    if named is not None:
        if named.value.upper() not in _MODES:
            work.missing(named, f"one of {', '.join(_MODES)}", "correct the value", TABLE)
            return ""
        if named.value.upper() != "CUSTOM" and classed is not None:
            work.unneeded(classed, "the merge mode counts")
        work.to(named, "HudiTable spec.merge.mode")
        return _MODES[named.value.upper()]
    if classed is None:
        return ""
    short = classed.value.rpartition(".")[2]
    if short not in _PAYLOADS:
        reason = _PAYLOAD_REASONS.get(short, "a payload class of your own")
        work.missing(classed, reason, "choose spec.merge by docs/use/merging.md for a new table", TABLE)
        return ""
    work.to(classed, "HudiTable spec.merge.mode")
    return _PAYLOADS[short]


def _custom(work: Work) -> None:
    pairs = (
        ("strategyId", "--merge-strategy-id", "hoodie.write.record.merge.strategy.id"),
        ("className", "--merge-impl-classes", "hoodie.write.record.merge.custom.implementation.classes"),
    )
    custom: dict[str, str] = {}
    for at, flag, name in pairs:
        option = work.flag(flag) or work.prop(name)
        if option is None:
            work.not_given(flag, "merge mode CUSTOM needs it", "give it after --", TABLE)
            continue
        fits = (
            "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}" if at == "strategyId" else r"[A-Za-z_]\w*([.][A-Za-z_][\w$]*)+"
        )
        if not re.fullmatch(fits, option.value):
            work.missing(option, f"spec.merge.custom.{at} is one UUID or class", "correct the value", TABLE)
            continue
        custom[at] = option.value
        work.to(option, f"HudiTable spec.merge.custom.{at}")
    work.section("merge")["custom"] = custom
    if not work.wishes.image:
        work.said.append(
            Said(
                MISSING, "--merge-mode CUSTOM", "--image is not given",
                reason="the class has to be in the image of the table",
                instead="build an image with it and name it with --image, see docs/use/pods.md",
            )
        )  # fmt: skip
        work.block(TABLE, "merge mode CUSTOM needs --image")


# ---- index


def _index(work: Work) -> None:
    option = work.prop("hoodie.index.type")
    buckets = work.prop("hoodie.bucket.index.num.buckets")
    kinds = {"SIMPLE": "Simple", "BLOOM": "Bloom", "BUCKET": "Bucket"}
    if option is not None and option.value.upper() in kinds:
        kind = kinds[option.value.upper()]
        index = work.section("index")
        index["type"] = kind
        work.to(option, "HudiTable spec.index.type")
        if kind == "Bucket":
            if buckets is None:
                index["buckets"] = 4
                work.notes.append("index.buckets is 4, as Hudi's default; it cannot be changed afterwards.")
            elif not work.number(
                buckets, "HudiTable spec.index.buckets", 1, 4096, lambda count: index.update(buckets=count)
            ):
                work.block(TABLE, f"{buckets.name}: not a number of buckets")
            _buckets(work)
    elif option is not None:
        work.missing(
            option,
            "with several writers this index may assign one key to two file groups, or is not tested",
            "use SIMPLE, BLOOM or BUCKET (docs/use/indexes.md); keys are then unique within a partition",
            TABLE,
        )
    for each in (buckets, *work.below("hoodie.bucket.index."), *work.below("hoodie.index.bucket.")):
        work.unneeded(each, "the index is no bucket index")


def _buckets(work: Work) -> None:
    hashed = work.prop("hoodie.bucket.index.hash.field")
    if hashed is not None and work.names(hashed) != work.table.get("recordKeyFields"):
        work.missing(
            hashed, "buckets are made of the whole key", "leave it out; an existing table cannot be adopted", TABLE
        )
    work.unneeded(hashed, "buckets are made of the whole key")
    work.choose(
        "hoodie.index.bucket.engine",
        ("simple",),
        "buckets have a fixed number",
        ("consistent hashing moves records while others write", "use a fixed number of buckets"),
        TABLE,
    )

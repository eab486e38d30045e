"""Hudi and Spark options that users may set.

A list of options owned by the operator, then an allow-list.

Hudi and Spark accept options in several spellings (``spark.hadoop.`` and ``spark.`` prefixes, any
case in some readers, blanks); all spellings are normalized first. An option on neither list is
refused, so that a new Hudi version cannot silently open a hole.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence

from hudi_contract.options import EXTERNAL, OF_THE_TABLE, OWNED, Rule, rule_for, spellings
from hudi_contract.secret_names import is_secret
from hudi_operator.api import merging
from hudi_operator.api.spec import TableSpec, WriterSpec
from hudi_operator.api.storage_options import NAME, NAME_LIMIT, REFERENCE

ALLOWED_OF_THE_TABLE = (
    "hoodie.archive.*",
    "hoodie.commits.archival.batch",
    "hoodie.compaction.target.io",
    "hoodie.compaction.logfile.*.threshold",
    "hoodie.clustering.plan.strategy.*bytes",
    "hoodie.clustering.plan.strategy.max.num.groups",
    "hoodie.layout.optimize.*",
    "hoodie.bloom.*",
    "hoodie.index.bloom.*",
    "hoodie.simple.index.*",
)
INDEX_TYPES = ("Simple", "Bloom", "Bucket")
"""Hudi refuses no index type, but a global or record index with several writers may assign one key
to two file groups (measured).
"""
ALLOWED_HUDI = (
    "hoodie.upsert.shuffle.parallelism",
    "hoodie.insert.shuffle.parallelism",
    "hoodie.bulkinsert.shuffle.parallelism",
    "hoodie.delete.shuffle.parallelism",
    "hoodie.combine.before.*",
    "hoodie.parquet.*",
    "hoodie.orc.*",
    "hoodie.hfile.*",
    "hoodie.logfile.*",
    "hoodie.copyonwrite.*",
    "hoodie.memory.*",
    "hoodie.write.status.storage.level",
    "hoodie.markers.delete.parallelism",
    "hoodie.bulkinsert.sort.mode",
    "hoodie.datasource.write.row.writer.enable",
)

_IDENTITY = "the operator decides who runs what and where"
_GUARD = "the guarded storage of the table must not be replaced"
_CODE = "code is added through the image, not by options"
_ZONE = (
    "a writer's session is in UTC (F95): set the zone of a source's times in source.files.options.timeZone, that "
    "of a column with to_utc_timestamp in SQL"
)
_WIRE = "connections between a driver and its executors are authenticated and encrypted, and so are their files"
_CALENDAR = "all writers of a table write dates in one calendar"
OWNED_SPARK = (
    Rule("spark.hoodie.*", "use spec.hudiOptions"),
    Rule("spark.hadoop.hoodie.*", "use spec.hudiOptions"),
    Rule("hoodie.*", "use spec.hudiOptions"),
    Rule("spark.hadoop.fs.*", _GUARD),
    Rule("spark.hadoop.hudi.*", _GUARD),
    Rule("spark.hadoop.*", _GUARD),
    Rule("fs.*", _GUARD),
    Rule("spark.plugins*", _GUARD),
    Rule("spark.kubernetes.*", _IDENTITY),
    Rule("spark.master", _IDENTITY),
    Rule("spark.submit.*", _IDENTITY),
    Rule("spark.app.*", _IDENTITY),
    Rule("spark.driver.host", _IDENTITY),
    Rule("spark.driver.port", _IDENTITY),
    Rule("spark.driver.bindaddress", _IDENTITY),
    Rule("spark.authenticate*", _WIRE),
    Rule("spark.network.crypto.*", _WIRE),
    Rule("spark.network.sasl.*", _WIRE),
    Rule("spark.network.auth.*", _WIRE),
    Rule("spark.io.encryption.*", _WIRE),
    Rule("spark.executor.instances", "set it in spec.executors.instances"),
    Rule("spark.*.memoryoverhead*", "set it in driver.resources and executors.resources"),
    Rule("spark.dynamicallocation.*", _IDENTITY),
    Rule("spark.task.reaper.*", "tasks of a stopped job must end before its instant is abandoned"),
    Rule("spark.speculation*", "a second copy of a task may write after the first has been committed"),
    Rule(
        "spark.sql.files.ignore*",
        (
            "rows of an unreadable file would be skipped, also in the table's own files: for a source set it in "
            "source.files.options"
        ),
    ),
    Rule("spark.sql.session.timezone", _ZONE),
    Rule("spark.sql.parquet.*rebasemodeinwrite", _CALENDAR),
    Rule("spark.sql.extensions", _CODE),
    Rule("spark.sql.catalog*", _CODE),
    Rule("spark.serializer", _CODE),
    Rule("spark.kryo*", _CODE),
    Rule("spark.jars*", _CODE),
    Rule("spark.files*", _CODE),
    Rule("spark.archives*", _CODE),
    Rule("spark.*class*", _CODE),
    Rule("spark.*plugin*", _CODE),
    Rule("spark.*committer*", _CODE),
    Rule("spark.shuffle.manager", _CODE),
    Rule("spark.*extralibrarypath*", _CODE),
    Rule("spark.*extrajavaoptions*", _CODE),
    Rule("spark.*defaultjavaoptions*", _CODE),
    Rule("spark.*userclasspathfirst*", _CODE),
    Rule("spark.executorenv.*", _CODE),
    Rule("spark.pyspark.*", _CODE),
    Rule("spark.python.*exec*", _CODE),
    Rule("spark.extralisteners", _CODE),
    Rule("spark.*listeners*", _CODE),
    Rule("spark.redaction.*", "redaction keeps secrets out of logs"),
    Rule("spark.ui.*", _IDENTITY),
    Rule("spark.metrics.*", EXTERNAL),
)
ALLOWED_SPARK = (
    "spark.sql.shuffle.partitions",
    "spark.sql.adaptive.*",
    "spark.sql.files.*",
    "spark.sql.parquet.*",
    "spark.sql.orc.*",
    "spark.sql.ansi.enabled",
    "spark.sql.casesensitive",
    "spark.sql.autobroadcastjointhreshold",
    "spark.sql.broadcasttimeout",
    "spark.sql.legacy.*",
    "spark.sql.execution.arrow.*",
    "spark.sql.inmemorycolumnarstorage.*",
    "spark.default.parallelism",
    "spark.memory.*",
    "spark.shuffle.*",
    "spark.reducer.*",
    "spark.rdd.compress",
    "spark.io.compression.*",
    "spark.locality.wait*",
    "spark.task.maxfailures",
    "spark.task.cpus",
    "spark.scheduler.mode",
    "spark.scheduler.minregisteredresourcesratio",
    "spark.scheduler.maxregisteredresourceswaitingtime",
    "spark.eventlog.*",
    "spark.excludeonfailure.*",
    "spark.stage.*",
    "spark.sql.sources.*",
    "spark.sql.csv.*",
    "spark.sql.json.*",
    "spark.sql.avro.*",
    "spark.sql.join.*",
    "spark.sql.maxplanstringlength",
    "spark.sql.debug.*",
    "spark.scheduler.minregisteredresourcesratio",
    "spark.scheduler.maxregisteredresourceswaitingtime",
    "spark.eventlog.*",  # for Spark's history server; written with the writer's own credentials
    "spark.network.timeout",
    "spark.rpc.asktimeout",
    "spark.rpc.message.maxsize",
    "spark.broadcast.*",
    "spark.driver.maxresultsize",
    "spark.executor.heartbeatinterval",
    "spark.cleaner.*",
    "spark.python.worker.memory",
    "spark.python.worker.reuse",
)
VALUE_LIMIT = 80
LISTED = 8
"""How many options that are refused a message names."""


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, p.lower()) for p in patterns)


def _dirty(name: str) -> bool:
    """True for a name that is not one plain word.

    It could smuggle a second option into a properties file.
    """
    return len(name) > NAME_LIMIT or re.fullmatch(NAME, name) is None


def hudi_problem(options: Mapping[str, str], extra: Sequence[str] = (), *, field: str = "spec.hudiOptions") -> str:
    """Why these Hudi options of a writer are refused: field, value and rule of each, by name.

    Empty when all may be set.
    """
    return _problem(options, (*OWNED, *OF_THE_TABLE), (*ALLOWED_HUDI, *extra), field=field, prefix="hoodie.")


def spark_problem(options: Mapping[str, str], *, field: str = "spec.sparkConf") -> str:
    """Why these Spark settings are refused: field, value and rule of each, by name.

    Empty when all may be set.
    """
    return _problem(options, OWNED_SPARK, ALLOWED_SPARK, field=field, prefix="spark.")


def _problem(
    options: Mapping[str, str], owned: Sequence[Rule], allowed: Sequence[str], *, field: str, prefix: str
) -> str:
    told = []
    for name in sorted(options):
        why = _refused(name, options[name], owned, allowed, prefix)
        if why:
            value = "<redacted>" if is_secret(name) else str(options[name])[:VALUE_LIMIT]
            told.append(f"{field}[{name!r}] = {value!r}: {why}")
    more = [f"and {len(told) - LISTED} more"] if len(told) > LISTED else []
    return "; ".join([*told[:LISTED], *more])


def _refused(name: str, value: str, owned: Sequence[Rule], allowed: Sequence[str], prefix: str) -> str:
    """The first rule that refuses an option; empty when it may be set."""
    if _dirty(name):
        return "not a plain option name"
    if "\n" in value or "\r" in value:
        return "a value has one line"
    if REFERENCE in value:
        return f"the value contains {REFERENCE}, which Spark replaces by variables and other settings"
    forms = spellings(name)
    rule = rule_for(name, owned)
    if rule is not None:
        whose = "of the table" if rule in OF_THE_TABLE else "owned by the operator"
        return f"{whose} (rule {rule.pattern}): {rule.why}"
    if not any(form.startswith(prefix) for form in forms):
        return f"must begin with {prefix}"
    if not all(_matches(form, allowed) for form in forms):
        return "not on the allow-list; an administrator can add it to options.allow"
    return ""


def table_problem(table: TableSpec, extra: Sequence[str] = ()) -> str:
    """Why an option of this table is refused; empty when none is."""
    field, allowed = "spec.hudiOptions", (*ALLOWED_HUDI, *ALLOWED_OF_THE_TABLE, *extra)
    owned = (
        *OWNED,
        *(
            Rule(name, "set it in spec.index")
            for name in ("hoodie.index.type", "hoodie.index.bucket.*", "hoodie.bucket.index.num.*")
        ),
    )
    return (
        _problem(table.hudi_options, owned, allowed, field=field, prefix="hoodie.")
        or _index_problem(table)
        or _merge_problem(table)
    )


def _index_problem(table: TableSpec) -> str:
    if table.index_type and table.index_type not in INDEX_TYPES:
        return (
            f"spec.index.type = {table.index_type[:VALUE_LIMIT]!r}: with several writers one of "
            f"{', '.join(INDEX_TYPES)}"
        )
    if (table.index_type == "Bucket") != (table.buckets > 0):
        return f"spec.index.buckets = {table.buckets}: needed with index.type Bucket, and only there"
    if table.concurrency_mode == "NonBlocking" and (table.type, table.index_type) != ("MergeOnRead", "Bucket"):
        return "spec.concurrency.mode = 'NonBlocking': needs type MergeOnRead and index.type Bucket"
    return ""


def _merge_problem(table: TableSpec) -> str:
    mode, missing = table.concurrency_mode, table.missing_columns
    return merging.problem(
        table.merge, ordering_fields=table.ordering_fields, concurrency=mode, missing_columns=missing, image=table.image
    )


def writer_problem(writer: WriterSpec, extra: Sequence[str] = ()) -> str:
    """Why options of this writer are refused; empty when none is."""
    told = (hudi_problem(writer.hudi_options, extra), spark_problem(writer.spark_conf))
    return "; ".join(filter(None, told))

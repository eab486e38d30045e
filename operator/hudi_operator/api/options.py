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

from hudi_contract.allowed_options import ALLOWED_HUDI as ALLOWED_HUDI
from hudi_contract.allowed_options import ALLOWED_OF_THE_TABLE as ALLOWED_OF_THE_TABLE
from hudi_contract.allowed_options import ALLOWED_SPARK as ALLOWED_SPARK
from hudi_contract.allowed_options import OWNED_SPARK as OWNED_SPARK
from hudi_contract.options import OF_THE_TABLE, OWNED, Rule, rule_for, spellings
from hudi_contract.secret_names import is_secret
from hudi_contract.words import ApiTableType, Concurrency
from hudi_operator.api import merging
from hudi_operator.api.spec import TableSpec, WriterSpec
from hudi_operator.api.storage_options import NAME, NAME_LIMIT, REFERENCE

INDEX_TYPES = ("Simple", "Bloom", "Bucket")
"""Hudi refuses no index type, but a global or record index with several writers may assign one key
to two file groups (measured).
"""
VALUE_LIMIT = 80
LISTED = 8
"""Number of refused options that a message names at most."""


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
    in_buckets = table.type == ApiTableType.MERGE_ON_READ and table.index_type == "Bucket"
    if table.concurrency_mode == Concurrency.NON_BLOCKING and not in_buckets:
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

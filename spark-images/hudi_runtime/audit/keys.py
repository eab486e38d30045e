"""Sources of the audit's `Keys`: etcd itself, or the output of `etcdctl get`."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from hudi_contract.keys import CONTROL, TABLES, Kind
from hudi_runtime.audit.facts import Keys
from hudi_runtime.process.etcd import unbound


def from_etcd(spark: SparkSession) -> Callable[[str], Keys]:
    """Read through the Java module.

    Address and identity come from the environment (`HUDI_OPERATOR_ETCD_…`).
    """

    def read(table_id: str) -> Keys:
        etcd = unbound(spark)
        entries = [
            (entry.key, entry.readable) for part in (TABLES, CONTROL) for entry in etcd.range(f"{part}/{table_id}/")
        ]
        return of_table(table_id, entries)

    return read


def from_etcdctl(text: str) -> Callable[[str], Keys]:
    """Read the output of `etcdctl get --prefix <P>/ -w json`.

    Raises ValueError when the text is not of that form.
    """
    pairs = []
    for pair in json.loads(text).get("kvs") or []:
        key = base64.b64decode(pair["key"]).decode()
        if any(f"/{part}/" in key for part in (TABLES, CONTROL)):
            pairs.append((key, json.loads(base64.b64decode(pair.get("value", "")) or b"{}")))
    return lambda table_id: of_table(table_id, pairs)


def of_table(table_id: str, entries: Iterable[tuple[str, Mapping[str, Any]]]) -> Keys:
    """The keys of one table.

    Raises ValueError when there is no gate: the keys are of another etcd, or incomplete.
    """
    found: dict[str, dict[str, Mapping[str, Any]]] = {TABLES: {}, CONTROL: {}}
    for key, value in entries:
        for part, keys in found.items():
            _, hit, name = key.partition(f"{part}/{table_id}/")
            if hit:
                keys[name] = value
    if Kind.GATE not in found[CONTROL]:
        raise ValueError(
            f"there is no gate of table {table_id}: another etcd or prefix, or the keys below control/ were not given"
        )
    return Keys(found[TABLES], found[CONTROL])

"""One run of Hudi's tool for a Hive Metastore.

The addresses are user input. The connection leaves from the agent's pod, in the user's own
namespace and under its network policies. It never goes to a loopback or link-local address or to a
cloud's metadata service; other addresses of pods and nodes are allowed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from hudi_contract.assignment import AssignmentRecord, CatalogOrder
from hudi_runtime.catalog import probe
from hudi_runtime.process.addresses import Address, NotResolved, Refused, forbidden, resolved, text

_NOT_PARTITIONED = "org.apache.hudi.hive.NonPartitionedExtractor"
_VALUES = "io.hudioperator.catalog.PartitionValues$"


class NotSynced(Exception):
    """The catalog was not changed, or not completely. `reason` is one word."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Busy(NotSynced):
    """Not tried: an earlier try of this process is still within its time limit."""


def checked(uris: Sequence[str], *, refused: Callable[[Address], bool] = forbidden) -> list[str]:
    """The URIs with addresses in place of names: what was checked is what is connected to.

    A name that cannot be resolved is left out as long as there is another.

    Raises NotSynced when no name can be resolved, or an address is forbidden.
    """
    found: list[str] = []
    for uri in uris:
        parts = urlsplit(uri)
        host, port = parts.hostname or "", parts.port or 0
        try:
            addresses = [text(info) for info in resolved(host, port, refused=refused)]
        except NotResolved:
            continue
        except Refused as error:
            raise NotSynced("AddressRefused", str(error)) from error
        found += [f"thrift://{f'[{address}]' if ':' in address else address}:{port}" for address in addresses]
    if not found:
        names = ", ".join(urlsplit(uri).hostname or "" for uri in uris)
        raise NotSynced("NameNotResolved", f"the name {names} cannot be resolved")
    return list(dict.fromkeys(found))


def options(order: AssignmentRecord, wanted: CatalogOrder, uris: Sequence[str], *, everything: bool) -> dict[str, str]:
    """Options of Hudi's tool. `everything`: compare all partitions, not those of later commits."""
    fields = order.partition_fields
    named, several = "Named" if order.hive_style_partitioning else "", "Levels" if len(fields) > 1 else "Whole"
    extractor = f"{_VALUES}{named}{several}" if fields else _NOT_PARTITIONED
    sync = "hoodie.datasource.hive_sync"
    return {
        "hoodie.datasource.meta.sync.base.path": order.path,
        f"{sync}.mode": "hms",
        f"{sync}.metastore.uris": ",".join(uris),
        f"{sync}.database": wanted.database,
        f"{sync}.table": wanted.table,
        f"{sync}.partition_fields": ",".join(fields),
        f"{sync}.partition_extractor_class": extractor,
        f"{sync}.support_timestamp": "true",
        f"{sync}.auto_create_database": "false",
        f"{sync}.ignore_exceptions": "false",
        "hoodie.meta.sync.incremental": "false" if everything else "true",
        # Of a partition that was deleted, the metadata table and the storage say different things
        # until it is cleaned.
        "hoodie.meta.sync.metadata_file_listing": "false",
    }


class HiveMetastore:
    """The table's entries in one metastore."""

    def __init__(self, spark: SparkSession, order: AssignmentRecord, wanted: CatalogOrder) -> None:
        self._jvm: Any = spark.sparkContext._jvm
        self._hadoop: Any = spark.sparkContext._jsc.hadoopConfiguration()
        self._order = order
        self._wanted = wanted

    def sync(self, *, everything: bool) -> tuple[str, ...]:
        """Synchronize now; returns within the order's time-out. See `Catalog.sync`.

        Raises NotSynced, with the metastore's or Hudi's words.
        """
        seconds = self._wanted.timeout_seconds
        end = time.monotonic() + seconds
        uris, wrong = probe.answering(checked(self._wanted.uris), seconds=seconds / 2)
        if not uris:
            raise NotSynced("ConnectionFailed", "; ".join(wrong))
        conf = self._jvm.org.apache.hadoop.conf.Configuration(self._hadoop)
        for key, value in {
            "hive.metastore.client.socket.timeout": f"{max(2, seconds // 2)}s",
            "hive.metastore.connect.retries": "1",
            "hive.metastore.failure.retries": "0",
            "hive.metastore.sasl.enabled": "false",
        }.items():
            conf.set(key, value)
        said = str(
            self._jvm.io.hudioperator.catalog.HiveSync.run(
                self._wanted.target,
                options(self._order, self._wanted, uris, everything=everything),
                conf,
                int(max(1.0, end - time.monotonic()) * 1000),
            )
        )
        reason, _, message = said.partition("\n")
        if reason:
            raise (Busy if reason == "busy" else NotSynced)(reason, message)
        return tuple(message.splitlines())

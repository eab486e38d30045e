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
from hudi_runtime.catalog.options import OWNER, SYNC, entries, of_table
from hudi_runtime.catalog.outcome import NotSynced, said
from hudi_runtime.process.addresses import Address, NotResolved, Refused, forbidden, resolved, text


def checked(uris: Sequence[str], *, refused: Callable[[Address], bool] = forbidden) -> list[str]:
    """The URIs with addresses in place of names, so that the checked address is the one used.

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
    return of_table(order, wanted) | {
        f"{SYNC}.mode": "hms",
        f"{SYNC}.metastore.uris": ",".join(uris),
        f"{SYNC}.auto_create_database": "false",
        f"{SYNC}.ignore_exceptions": "false",
        f"{SYNC}.table_properties": f"{OWNER}={wanted.uid}",
        "hoodie.meta.sync.incremental": "false" if everything else "true",
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
        end, uris, conf = self._answering()
        return tuple(
            said(
                self._tool.run(
                    self._wanted.target,
                    options(self._order, self._wanted, uris, everything=everything),
                    conf,
                    _milliseconds(end),
                )
            ).splitlines()
        )

    def drop(self) -> str:
        """Drop the entries of this HudiTable, within the order's time-out. See `Catalog.drop`.

        Raises NotSynced.
        """
        end, uris, conf = self._answering()
        names = self._jvm.java.util.ArrayList()
        for name in entries(self._order, self._wanted):
            names.add(name)
        settings = options(self._order, self._wanted, uris, everything=False)
        target, uid = self._wanted.target, self._wanted.uid
        return "; ".join(said(self._tool.drop(target, settings, names, uid, conf, _milliseconds(end))).splitlines())

    @property
    def _tool(self) -> Any:
        return self._jvm.io.hudioperator.catalog.HiveSync

    def _answering(self) -> tuple[float, list[str], Any]:
        """End of the try, addresses of metastores that answer, and settings of Hive's client.

        Raises NotSynced.
        """
        seconds = self._wanted.timeout_seconds
        end = time.monotonic() + seconds
        uris, wrong = probe.answering(checked(self._wanted.uris), seconds=seconds / 2)
        if not uris:
            raise NotSynced("ConnectionFailed", "; ".join(wrong))
        conf = self._jvm.org.apache.hadoop.conf.Configuration(self._hadoop)
        for key, value in {
            "hive.metastore.uris": ",".join(uris),
            "hive.metastore.client.socket.timeout": f"{max(2, seconds // 2)}s",
            "hive.metastore.connect.retries": "1",
            "hive.metastore.failure.retries": "0",
            "hive.metastore.sasl.enabled": "false",
        }.items():
            conf.set(key, value)
        return end, uris, conf


def _milliseconds(end: float) -> int:
    return int(max(1.0, end - time.monotonic()) * 1000)

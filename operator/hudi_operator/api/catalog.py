"""``spec.catalog``: a catalog in which engines find the table."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hudi_contract.assignment import CatalogOrder
from hudi_operator.api.addresses import MOST_PORT, NEVER, NOTHING_IS_SENT, PORT
from hudi_operator.api.fields import number, record, text, texts

WHERE = "spec.catalog"
_URI = "^thrift://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?:[0-9]{1,5}$"
_NAME = "^[a-z0-9_]+$"
_NEVER = re.compile(f"thrift://({NEVER}):[0-9]+", re.IGNORECASE)
_OTHER = re.compile("[^a-z0-9_]")


@dataclass(frozen=True)
class HiveMetastore:
    """The addresses of one Hive Metastore; those that answer are used."""

    uris: tuple[str, ...] = texts(required=True, at_least=1, at_most=5, length=(10, 253), matches=_URI)


@dataclass(frozen=True)
class Catalog:
    """Where the table is listed. ``table`` empty: the name follows from the table's."""

    hive_metastore: HiveMetastore = record(HiveMetastore, required=True)
    database: str = text("default", at_least=1, at_most=128, matches=_NAME)
    table: str = text(at_least=1, at_most=128, matches=_NAME)
    timeout_seconds: int = number(60, at_least=5, at_most=600)

    def order(self, table_name: str, uid: str) -> CatalogOrder:
        """The catalog in the agent's assignment. ``uid``: of the HudiTable."""
        return CatalogOrder(
            uris=self.hive_metastore.uris,
            database=self.database,
            table=self.table or _OTHER.sub("_", table_name.lower()),
            timeout_seconds=self.timeout_seconds,
            uid=uid,
        )


def problem(wanted: Catalog | None) -> str:
    """Why nothing is sent to this catalog (field and rule); empty when it is, or there is none.

    The CRD refuses the same. The agent looks at the addresses of the names at each try.
    """
    for at, uri in enumerate(wanted.hive_metastore.uris if wanted is not None else ()):
        where = f"{WHERE}.hiveMetastore.uris[{at}]"
        if not 0 < int(uri.rpartition(":")[2]) <= MOST_PORT:
            return f"{where}: {PORT}"
        if _NEVER.fullmatch(uri):
            return f"{where}: {NOTHING_IS_SENT}"
    return ""

"""``spec.catalog``: a catalog in which engines find the table."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hudi_contract.assignment import CatalogOrder
from hudi_operator.api.addresses import MOST_PORT, NEVER, NOTHING_IS_SENT, PORT
from hudi_operator.api.fields import VALUE_LIMIT, number, record, text, texts

WHERE = "spec.catalog"
ONE_OF = "set exactly one of hiveMetastore and glue"
NEEDS_S3 = "must begin with s3a:// or s3://: Glue is used with the credentials of the table's storage"
_URI = "^thrift://[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?:[0-9]{1,5}$"
_NAME = "^[a-z0-9_]+$"
_REGION = "^[a-z]{2,3}(-[a-z]+)+-[0-9]{1,2}$"
_ACCOUNT = "^[0-9]{12}$"
KEEP, DROP = "Keep", "Drop"
_NEVER = re.compile(f"thrift://({NEVER}):[0-9]+", re.IGNORECASE)
_OTHER = re.compile("[^a-z0-9_]")


@dataclass(frozen=True)
class HiveMetastore:
    """The addresses of one Hive Metastore; those that answer are used."""

    uris: tuple[str, ...] = texts(required=True, at_least=1, at_most=5, length=(10, 253), matches=_URI)


@dataclass(frozen=True)
class Glue:
    """The AWS Glue Data Catalog of one region.

    ``account``: an AWS account; empty: the account of the table's credentials.
    """

    region: str = text(required=True, at_least=8, at_most=32, matches=_REGION)
    account: str = text(at_most=12, matches=_ACCOUNT)


@dataclass(frozen=True)
class Catalog:
    """Catalog that lists the table. ``table`` empty: the name follows from the table's."""

    hive_metastore: HiveMetastore | None = record(HiveMetastore, optional=True)
    glue: Glue | None = record(Glue, optional=True)
    database: str = text("default", at_least=1, at_most=128, matches=_NAME)
    table: str = text(at_least=1, at_most=128, matches=_NAME)
    timeout_seconds: int = number(60, at_least=5, at_most=600)
    on_delete: str = text(KEEP, choices=(KEEP, DROP))
    """Action on the entries when the HudiTable is deleted."""

    @property
    def drops(self) -> bool:
        """Whether the entries go with the HudiTable."""
        return self.on_delete == DROP

    def order(self, table_name: str, uid: str, *, deleting: bool = False) -> CatalogOrder:
        """The catalog in the agent's assignment.

        ``uid``: of the HudiTable; ``deleting``: whether it is being deleted.
        """
        glue = self.glue
        return CatalogOrder(
            uris=self.hive_metastore.uris if self.hive_metastore is not None else (),
            region=glue.region if glue is not None else "",
            account=glue.account if glue is not None else "",
            drop=deleting and self.drops,
            database=self.database,
            table=self.table or _OTHER.sub("_", table_name.lower()),
            timeout_seconds=self.timeout_seconds,
            uid=uid,
        )


def problem(wanted: Catalog | None, path: str) -> str:
    """Why nothing is sent to this catalog (field and rule); empty when it is, or there is none.

    ``path``: of the table. The CRD refuses the same. The agent checks the addresses of the names at
    each try.
    """
    if wanted is None:
        return ""
    if (wanted.hive_metastore is None) == (wanted.glue is None):
        return f"{WHERE}: {ONE_OF}"
    if wanted.glue is not None and not path.startswith(("s3a://", "s3://")):
        return f"{WHERE}.glue: path {path[:VALUE_LIMIT]!r} {NEEDS_S3}"
    for at, uri in enumerate(wanted.hive_metastore.uris if wanted.hive_metastore is not None else ()):
        where = f"{WHERE}.hiveMetastore.uris[{at}]"
        if not 0 < int(uri.rpartition(":")[2]) <= MOST_PORT:
            return f"{where}: {PORT}"
        if _NEVER.fullmatch(uri):
            return f"{where}: {NOTHING_IS_SENT}"
    return ""

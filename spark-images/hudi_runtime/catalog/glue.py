"""The table's entries in AWS Glue, with the parameters that Hudi's own tool for Glue writes.

Their wanted content comes from Hudi's classes (`description.py`). Entries are compared and made
right, so that a try which was cut off is finished by the next one: the last commit is written at
the end. Requests are signed with the credentials of the table's storage and go to AWS' own endpoint
of the region.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from hudi_contract.assignment import AssignmentRecord, CatalogOrder
from hudi_runtime.catalog import held, outcome
from hudi_runtime.catalog.description import Description, Entry, Values
from hudi_runtime.catalog.options import OWNER, entries, of_table
from hudi_runtime.catalog.outcome import Busy, NotSynced, said

INSTANT, COMPLETION = "last_commit_time_sync", "last_commit_completion_time_sync"
"""Parameters of a table: the last commit that it shows."""
CREATED_AT_ONCE, DELETED_AT_ONCE = 100, 25
"""Partitions of one request, as Glue allows."""
ATTEMPTS = 3
"""Tries of one request; Glue limits the rate of requests."""
LONGEST_WAIT_SECONDS = 20.0
_KEPT = ("Description", "Owner", "Retention", "ViewOriginalText", "ViewExpandedText", "TargetTable")
"""Fields of a table that others may have set; an update would take them away."""
_OWN_PREFIX = "spark.sql.sources.schema."
_ABSENT = "EntityNotFoundException"
_EXISTS = "AlreadyExistsException"
JsonDict = dict[str, Any]
T = TypeVar("T")

_running: set[str] = set()
_running_lock = threading.Lock()


class Glue:
    """The table's entries in one Data Catalog."""

    def __init__(
        self,
        spark: SparkSession | None,
        order: AssignmentRecord,
        wanted: CatalogOrder,
        *,
        describe: Callable[[str, str, float], Description] | None = None,
        connect: Callable[[float], Any] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make a catalog; the parts that need a JVM and credentials may be replaced.

        ``describe``: takes requested and completion time of the change that is shown, and seconds.
        ``connect``: makes a client that waits so long for a connection, and for an answer.
        """
        self._order = order
        self._wanted = wanted
        self._describe = describe or (lambda *given: _described(spark, order, wanted, *given))
        self._connect = connect or (lambda seconds: _client(spark, order, wanted, seconds))
        self._clock = clock
        self._end = 0.0
        self._glue: Any = None

    def sync(self, *, everything: bool) -> tuple[str, ...]:
        """Make the entries what the table is now. See `Catalog.sync`.

        Raises NotSynced.
        """
        with self._alone(), _explained():
            self._ask("get_database", Name=self._wanted.database)
            there = {name: self._table(name) for name in entries(self._order, self._wanted)}
            for name, table in there.items():
                self._check(name, table)
            since = _shown(list(there.values())) if not everything else ("", "")
            described = self._describe(*since, self._left())
            self._check_columns(there, described)
            not_held = held.problem(described)
            if not_held:
                raise NotSynced(outcome.NOT_HELD, not_held)
            described, left_out = held.partitions(described)
            for entry in described.entries:
                name = f"{self._wanted.table}{entry.suffix}"
                self._entry(name, there[name], entry, described)
            return left_out

    def drop(self) -> str:
        """Drop the entries of this HudiTable. See `Catalog.drop`.

        Raises NotSynced.
        """
        stays = []
        with self._alone(), _explained():
            for name in entries(self._order, self._wanted):
                table = self._table(name)
                if table is None:
                    continue
                why = self._not_mine(table)
                if why:
                    stays.append(f"table {name} stays: {why}")
                else:
                    self._ask("delete_table", DatabaseName=self._wanted.database, Name=name, absent={})
        return "; ".join(stays)

    # -- one entry ---------------------------------------------------------------------------------

    def _entry(self, name: str, table: JsonDict | None, entry: Entry, described: Description) -> None:
        wanted = self._input(name, table, entry, described)
        where: JsonDict = {"DatabaseName": self._wanted.database}
        if table is None:
            self._ask("create_table", **where, TableInput=wanted)
        storage = wanted["StorageDescriptor"]
        if described.partition_columns:
            self._partitions(name, storage, described)
            if table is not None and _columns(table["StorageDescriptor"]) != _columns(storage):
                self._cascade(name, storage)
        shown = {INSTANT: described.instant, COMPLETION: described.completion}
        wanted["Parameters"] |= {key: value for key, value in shown.items() if value}
        self._ask("update_table", **where, TableInput=wanted, SkipArchive=True)

    def _input(self, name: str, table: JsonDict | None, entry: Entry, described: Description) -> JsonDict:
        before = table or {}
        parameters = {
            key: value for key, value in (before.get("Parameters") or {}).items() if not key.startswith(_OWN_PREFIX)
        }
        own = {"EXTERNAL": "TRUE", "hudi.metadata-listing-enabled": "FALSE", OWNER: self._wanted.uid}
        return {key: before[key] for key in _KEPT if key in before} | {
            "Name": name,
            "TableType": "EXTERNAL_TABLE",
            "Parameters": parameters | own | dict(entry.properties),
            "PartitionKeys": [_column(*each) for each in _lower(described.partition_columns)],
            "StorageDescriptor": {
                "Columns": [_column(*each) for each in _lower(described.columns)],
                "Location": _location(self._order.path),
                "InputFormat": entry.input_format,
                "OutputFormat": described.output_format,
                "SerdeInfo": {
                    "SerializationLibrary": described.serde,
                    "Parameters": {"serialization.format": "1", **entry.serde_properties},
                },
            },
        }

    # -- partitions --------------------------------------------------------------------------------

    def _partitions(self, name: str, storage: JsonDict, described: Description) -> None:
        dropped = list(described.dropped)
        written = dict(described.written)
        if described.everything:
            there = dict(self._all(name))
            dropped = [values for values in there if values not in written]
            written = {values: path for values, path in written.items() if there.get(values) != self._folder(path)}
        self._put(name, [self._partition(values, path, storage) for values, path in written.items()])
        for some in _batches(dropped, DELETED_AT_ONCE):
            answer = self._ask(
                "batch_delete_partition",
                DatabaseName=self._wanted.database,
                TableName=name,
                PartitionsToDelete=[{"Values": list(values)} for values in some],
            )
            _refuse(answer, "is not dropped", but=_ABSENT)

    def _put(self, name: str, partitions: Sequence[JsonDict]) -> None:
        """Add partitions; those that are there already lie at the same place by their values."""
        for some in _batches(partitions, CREATED_AT_ONCE):
            answer = self._ask(
                "batch_create_partition",
                DatabaseName=self._wanted.database,
                TableName=name,
                PartitionInputList=list(some),
            )
            known = {
                tuple(error.get("PartitionValues") or ())
                for error in answer.get("Errors") or ()
                if (error.get("ErrorDetail") or {}).get("ErrorCode") == _EXISTS
            }
            _refuse(answer, "is not added", but=_EXISTS)
            self._change(name, [each for each in some if tuple(each["Values"]) in known])

    def _change(self, name: str, partitions: Sequence[JsonDict]) -> None:
        for some in _batches(partitions, CREATED_AT_ONCE):
            answer = self._ask(
                "batch_update_partition",
                DatabaseName=self._wanted.database,
                TableName=name,
                Entries=[{"PartitionValueList": each["Values"], "PartitionInput": each} for each in some],
            )
            _refuse(answer, "is not changed")

    def _cascade(self, name: str, storage: JsonDict) -> None:
        """Give all partitions the table's columns: engines read a partition by its own."""
        self._change(
            name,
            [
                {"Values": list(values), "StorageDescriptor": {**storage, "Location": location}}
                for values, location in self._all(name)
            ],
        )

    def _partition(self, values: Values, path: str, storage: JsonDict) -> JsonDict:
        return {"Values": list(values), "StorageDescriptor": {**storage, "Location": self._folder(path)}}

    def _folder(self, path: str) -> str:
        return f"{_location(self._order.path)}/{path}"

    def _all(self, name: str) -> Iterator[tuple[Values, str]]:
        token: JsonDict = {}
        while True:
            answer = self._ask(
                "get_partitions",
                DatabaseName=self._wanted.database,
                TableName=name,
                ExcludeColumnSchema=True,
                **token,
            )
            for each in answer.get("Partitions") or ():
                yield tuple(each["Values"]), str((each.get("StorageDescriptor") or {}).get("Location") or "")
            if not answer.get("NextToken"):
                return
            token = {"NextToken": answer["NextToken"]}

    # -- whose an entry is -------------------------------------------------------------------------

    def _check(self, name: str, table: JsonDict | None) -> None:
        location = str((table or {}).get("StorageDescriptor", {}).get("Location") or "")
        if table is not None and _location(location) != _location(self._order.path):
            raise NotSynced(
                outcome.TABLE_TAKEN,
                f"table {name} exists in Glue with the location {location}, which is not this table: drop it there, or "
                "choose another name",
            )

    def _check_columns(self, there: Mapping[str, JsonDict | None], described: Description) -> None:
        wanted = [name for name, _ in _lower(described.partition_columns)]
        for name, table in there.items():
            found = [str(each["Name"]) for each in (table or {}).get("PartitionKeys") or ()]
            if table is not None and found != wanted:
                raise NotSynced(
                    outcome.TABLE_TAKEN,
                    f"table {name} exists in Glue with the partition columns {found}, and this table has {wanted}: "
                    "drop it there, or choose another name",
                )

    def _not_mine(self, table: JsonDict) -> str:
        location = str((table.get("StorageDescriptor") or {}).get("Location") or "")
        if _location(location) != _location(self._order.path):
            return "it has another location"
        mark = (table.get("Parameters") or {}).get(OWNER)
        if not mark:
            return "it does not say which HudiTable has made it"
        return "" if mark == self._wanted.uid else "another HudiTable has made it"

    # -- requests ----------------------------------------------------------------------------------

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One try of this target in this process.

        Nothing begins after the order's time-out; a request that has begun may take as long again.
        """
        target = f"{self._order.path} {self._wanted.target}"
        with _running_lock:
            if target in _running:
                raise Busy("busy", "an earlier try has not ended")
            _running.add(target)
        try:
            self._end = self._clock() + self._wanted.timeout_seconds
            # Connecting and reading take this long each, in every attempt.
            self._glue = self._connect(min(LONGEST_WAIT_SECONDS, self._wanted.timeout_seconds / (2 * ATTEMPTS)))
            yield
        finally:
            with _running_lock:
                _running.discard(target)
            if self._glue is not None:
                self._glue.close()
                self._glue = None

    def _left(self) -> float:
        left = self._end - self._clock()
        if left <= 0:
            raise NotSynced(outcome.TIMEOUT, f"not done within {self._wanted.timeout_seconds} s")
        return left

    def _table(self, name: str) -> JsonDict | None:
        answer = self._ask("get_table", DatabaseName=self._wanted.database, Name=name, absent={})
        found: JsonDict | None = answer.get("Table")
        return found

    def _ask(self, operation: str, *, absent: JsonDict | None = None, **request: Any) -> JsonDict:
        """``absent``: the answer in place of an error when there is no such thing."""
        from botocore.exceptions import ClientError

        self._left()
        if self._wanted.account:
            request["CatalogId"] = self._wanted.account
        try:
            answer: JsonDict = getattr(self._glue, operation)(**request)
        except ClientError as error:
            if absent is not None and _code(error) == _ABSENT:
                return absent
            if operation == "get_database" and _code(error) == _ABSENT:
                raise NotSynced(outcome.DATABASE_MISSING, "the database does not exist in Glue") from error
            raise
        return answer


def _code(error: Any) -> str:
    return str((error.response.get("Error") or {}).get("Code") or "")


@contextmanager
def _explained() -> Iterator[None]:
    """Errors of AWS' client as NotSynced, without the request."""
    from botocore.exceptions import (
        BotoCoreError,
        ClientError,
        ConnectTimeoutError,
        EndpointConnectionError,
        HTTPClientError,
        NoCredentialsError,
        ReadTimeoutError,
    )

    try:
        yield
    except ClientError as error:
        code = _code(error)
        reason = outcome.ACCESS_DENIED if code in _DENIED else outcome.SYNC_FAILED
        words = str((error.response.get("Error") or {}).get("Message") or "")
        raise NotSynced(reason, f"{error.operation_name}: {code}: {words}") from error
    except NoCredentialsError as error:
        raise NotSynced(outcome.ACCESS_DENIED, "the table's storage has no credentials for AWS") from error
    except (ConnectTimeoutError, ReadTimeoutError) as error:
        raise NotSynced(outcome.TIMEOUT, "Glue did not answer in time") from error
    except (EndpointConnectionError, HTTPClientError) as error:
        raise NotSynced(outcome.CONNECTION_FAILED, f"{type(error).__name__}: {error}") from error
    except BotoCoreError as error:
        raise NotSynced(outcome.SYNC_FAILED, f"{type(error).__name__}: {error}") from error


_DENIED = frozenset(
    {
        "AccessDeniedException",
        "AccessDenied",
        "ExpiredTokenException",
        "ExpiredToken",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "UnrecognizedClientException",
    }
)


def _refuse(answer: JsonDict, what: str, *, but: str = "") -> None:
    for error in answer.get("Errors") or ():
        detail = error.get("ErrorDetail") or {}
        if detail.get("ErrorCode") != but:
            values = error.get("PartitionValues") or error.get("PartitionValueList") or []
            words = f"{detail.get('ErrorCode')}: {detail.get('ErrorMessage')}"
            raise NotSynced(outcome.SYNC_FAILED, f"partition {'/'.join(map(str, values))[:200]} {what}: {words}")


def _shown(tables: Sequence[JsonDict | None]) -> tuple[str, str]:
    """Times of the change that all entries show, requested and completed; empty: they show none."""
    found = [(table or {}).get("Parameters") or {} for table in tables]
    instants = [str(each.get(INSTANT) or "") for each in found]
    if not all(instants):
        return "", ""
    return min(instants), min(str(each.get(COMPLETION) or "") for each in found)


def _columns(storage: JsonDict) -> list[tuple[str, str]]:
    return [(str(each["Name"]), str(each.get("Type") or "")) for each in storage.get("Columns") or ()]


def _column(name: str, kind: str) -> JsonDict:
    return {"Name": name, "Type": kind, "Comment": ""}


def _lower(columns: Sequence[Any]) -> list[tuple[str, str]]:
    """Glue compares names and types in lower case."""
    return [(each.name.lower(), each.type.lower()) for each in columns]


def _location(path: str) -> str:
    """With the scheme that AWS' engines read."""
    scheme, colon, rest = path.partition("://")
    return f"{'s3' if scheme in ('s3a', 's3n') else scheme}{colon}{rest.rstrip('/')}"


def _batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


# ---- what only an agent has: a JVM, and credentials


def _described(
    spark: Any, order: AssignmentRecord, wanted: CatalogOrder, instant: str, completion: str, seconds: float
) -> Description:
    jvm = spark.sparkContext._jvm
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    milliseconds = int(max(1.0, seconds) * 1000)
    return Description.from_json(
        said(
            str(
                jvm.io.hudioperator.catalog.Description.of(
                    wanted.target, of_table(order, wanted), hadoop, instant, completion, milliseconds
                )
            )
        )
    )


def _client(spark: Any, order: AssignmentRecord, wanted: CatalogOrder, seconds: float) -> Any:
    """A client with the credentials that the table's storage has now."""
    import boto3
    from botocore.config import Config

    config = Config(
        region_name=wanted.region,
        connect_timeout=seconds,
        read_timeout=seconds,
        retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
        max_pool_connections=1,
        ignore_configured_endpoint_urls=True,
    )
    session = boto3.session.Session(**credentials(spark, order.path))
    return session.client("glue", config=config)


def credentials(spark: Any, path: str) -> dict[str, str]:
    """Credentials with which S3A signs requests for this path: of its storage, or of its account.

    Raises NotSynced when there are none.
    """
    from py4j.protocol import Py4JJavaError

    jvm = spark.sparkContext._jvm
    place = jvm.java.net.URI.create(path)
    s3a = jvm.org.apache.hadoop.fs.s3a.S3AUtils
    try:
        conf = s3a.propagateBucketOptions(spark.sparkContext._jsc.hadoopConfiguration(), place.getHost())
        providers = s3a.createAWSCredentialProviderSet(place, conf)
        try:
            found = providers.getCredentials()
            if not found.getAWSAccessKeyId():
                raise NotSynced(
                    outcome.ACCESS_DENIED, "the table's storage is read without credentials: Glue needs some"
                )
            known = {
                "aws_access_key_id": str(found.getAWSAccessKeyId()),
                "aws_secret_access_key": str(found.getAWSSecretKey()),
            }
            if jvm.com.amazonaws.auth.AWSSessionCredentials._java_lang_class.isInstance(found):
                known["aws_session_token"] = str(found.getSessionToken())
            return known
        finally:
            providers.close()
    except Py4JJavaError as error:
        kind = error.java_exception.getClass().getSimpleName()
        raise NotSynced(outcome.ACCESS_DENIED, f"the table's storage has no credentials for AWS: {kind}") from error

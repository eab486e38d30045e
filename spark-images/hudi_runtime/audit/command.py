"""`python -m hudi_runtime.audit PATH`.

Exit code 0 = every requested check is ok, 1 = one is violated, 2 = one could not be checked.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from hudi_contract.environment import ETCD_ENDPOINTS
from hudi_runtime.audit import STEPS, TITLES, Expected, audit
from hudi_runtime.audit.keys import from_etcd, from_etcdctl
from hudi_runtime.audit.reader import reason_of
from hudi_runtime.process import class_archive
from hudi_runtime.process.errors import environment_secrets, redact

UNKNOWN = 2
SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -Djol.skipHotspotSAAttach=true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
    "spark.hadoop.fs.s3a.attempts.maximum": "4",
    "spark.hadoop.fs.s3a.retry.limit": "4",
    "spark.hadoop.fs.s3a.retry.interval": "500ms",
    # Enough connections for the streams that Hudi leaves open (ClosingInLineFileSystem): an audit
    # may run without our jar.
    "spark.hadoop.fs.s3a.connection.maximum": "1024",
}
ENVIRONMENT_CREDENTIALS = "com.amazonaws.auth.EnvironmentVariableCredentialsProvider"


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="audit", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", help="base path of the table, as in spec.path of the HudiTable (s3a://…)")
    parser.add_argument(
        "--expected",
        metavar="FILE",
        help="rows that the table must have, no others: parquet, .csv (with a header) or .json lines",
    )
    parser.add_argument(
        "--option",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="storage option, as in spec.storage.options (fs.s3a.endpoint=…)",
    )
    parser.add_argument("--conf", metavar="KEY=VALUE", action="append", default=[], help="Spark setting")
    parser.add_argument(
        "--keys",
        metavar="FILE",
        help=f"output of `etcdctl get --prefix /hudi/ -w json`; without it etcd is asked if {ETCD_ENDPOINTS} is set",
    )
    parser.add_argument(
        "--skip",
        metavar="CHECK",
        action="append",
        default=[],
        choices=list(TITLES),
        help=f"leave out a check: {', '.join(TITLES)}",
    )
    parser.add_argument(
        "--only", metavar="CHECK", action="append", default=[], choices=list(TITLES), help="run only these checks"
    )
    parser.add_argument(
        "--steps",
        type=int,
        default=STEPS,
        help="newest commits that the incremental check pulls one by one (%(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args(words)


def pairs(words: Sequence[str], option: str) -> dict[str, str]:
    """Parse `KEY=VALUE` arguments.

    Exits with code 2, after printing the argument, its value and the rule, when one
    has another form.
    """
    found = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not sign or not key:
            print(f"audit: {option} {word!r}: it must have the form KEY=VALUE", file=sys.stderr)
            raise SystemExit(UNKNOWN)
        found[key] = value
    return found


def session(conf: dict[str, str], options: dict[str, str]) -> SparkSession:
    """A local Spark session that only reads."""
    settings = {**SETTINGS, "spark.local.dir": tempfile.gettempdir(), **class_archive.settings()}
    if os.environ.get("AWS_ACCESS_KEY_ID"):
        settings["spark.hadoop.fs.s3a.aws.credentials.provider"] = ENVIRONMENT_CREDENTIALS
    settings.update({f"spark.hadoop.{key}": value for key, value in options.items()})
    settings.update(conf)
    builder = SparkSession.builder.master(settings.pop("spark.master", "local[*]")).appName("hudi-audit")
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def expected_file(name: str) -> Expected:
    """Expected rows from a file; the suffix of its name gives the format."""

    def read(spark: SparkSession, schema: StructType) -> DataFrame:
        path = name if "://" in name else Path(name).resolve().as_uri()
        if name.endswith(".csv"):
            return spark.read.csv(path, header=True)
        return spark.read.json(path, schema=schema) if name.endswith((".json", ".jsonl")) else spark.read.parquet(path)

    return read


def hudi_rs_options(options: dict[str, str]) -> dict[str, str]:
    """The storage options of hudi-rs for the table's access.

    They correspond to the table's S3A options and the environment's credentials.
    """
    found = {"aws_region": options.get("fs.s3a.endpoint.region", os.environ.get("AWS_REGION", "us-east-1"))}
    variables = {
        "aws_access_key_id": "AWS_ACCESS_KEY_ID",
        "aws_secret_access_key": "AWS_SECRET_ACCESS_KEY",
        "aws_session_token": "AWS_SESSION_TOKEN",
    }
    found |= {key: os.environ[variable] for key, variable in variables.items() if os.environ.get(variable)}
    endpoint = options.get("fs.s3a.endpoint", "")
    if endpoint:
        found["aws_endpoint"] = endpoint if "://" in endpoint else f"https://{endpoint}"
        found["aws_allow_http"] = str(endpoint.startswith("http://")).lower()
    found["aws_virtual_hosted_style_request"] = str(options.get("fs.s3a.path.style.access", "false") != "true").lower()
    return found


def own_stdout() -> TextIO:
    """The real stdout, for the report only.

    From now on, output of the JVM and its libraries goes to stderr.
    """
    ours = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return ours


def main(words: Sequence[str] | None = None) -> int:
    """Audit one table, print the report, return the exit code."""
    given = arguments(words)
    out = own_stdout()
    options, conf = pairs(given.option, "--option"), pairs(given.conf, "--conf")
    only = [name for name in given.only or TITLES if name not in given.skip]
    try:
        recorded = from_etcdctl(Path(given.keys).read_text(encoding="utf-8")) if given.keys else None
        spark = session(conf, options)
    except Exception as error:
        print(f"audit: {redact(reason_of(error), secrets=environment_secrets())}", file=sys.stderr)
        return UNKNOWN
    keys = recorded or (from_etcd(spark) if os.environ.get(ETCD_ENDPOINTS) else None)
    report = audit(
        spark,
        given.path,
        expected=expected_file(given.expected) if given.expected else None,
        keys=keys,
        hudi_rs_options=hudi_rs_options(options) if given.path.startswith("s3") else {},
        only=only,
        steps=given.steps,
    )
    print(json.dumps(report.to_dict(), indent=1) if given.json else report.text(), file=out, flush=True)
    return report.exit_code

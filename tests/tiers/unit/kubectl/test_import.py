"""`kubectl hudi import`: the jobs that Hudi's documentation and demo show, and jobs that cannot be
translated. What is written passes the CRDs, the operator's launch checks and the runtime's reader.
"""

from __future__ import annotations

import fnmatch
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hudi_contract import allowed_options
from hudi_kubectl.__main__ import main
from hudi_kubectl.streamer import avro, properties, rules, words, yaml
from hudi_kubectl.streamer.given import Given, Places
from hudi_operator.api import options, sources
from hudi_operator.api.spec import TableSpec, WriterSpec
from hudi_operator.plan.core import launch
from hudi_runtime.job.options import check_allowed
from tests.support import ROOT, crds, quick_yaml, seeds
from tests.support.world.job_across import parsed
from tests.support.world.meeting import Meeting

JsonDict = dict[str, Any]
TSV = ROOT / "operator" / "hudi_contract" / "hudi_options.tsv"
META = {"namespace": "lake", "uid": "0a1b2c3d-uid", "generation": 1, "resourceVersion": "1"}
U = "org.apache.hudi.utilities"
KAFKA = f"--source-class {U}.sources.JsonKafkaSource --schemaprovider-class {U}.schema.FilebasedSchemaProvider"
TICKS = {
    "type": "record",
    "name": "stock_ticks",
    "fields": [
        {"name": "volume", "type": "long"},
        {"name": "symbol", "type": "string"},
        {"name": "ts", "type": "string"},
        {"name": "open", "type": ["null", "double"], "default": None},
        {"name": "key", "type": "string"},
        {"name": "date", "type": "string"},
    ],
}
FILES = {
    "base.properties": (
        "hoodie.upsert.shuffle.parallelism=2\nhoodie.insert.shuffle.parallelism=2\n"
        "hoodie.embed.timeline.server=true\nhoodie.filesystem.view.type=EMBEDDED_KV_STORE\n"
        "hoodie.compact.inline=false\n"
    ),
    "kafka-source.properties": (
        "include=base.properties\n# keys\nhoodie.datasource.write.recordkey.field=key\n"
        "hoodie.datasource.write.partitionpath.field=date\n"
        "hoodie.streamer.schemaprovider.source.schema.file=/var/demo/config/schema.avsc\n"
        "hoodie.streamer.schemaprovider.target.schema.file=/var/demo/config/schema.avsc\n"
        "hoodie.streamer.source.kafka.topic=stock_ticks\nbootstrap.servers=kafkabroker:9092\nauto.offset.reset=earliest"
    ),
    "dfs-source.properties": (
        "include=base.properties\nhoodie.datasource.write.recordkey.field=key\n"
        "hoodie.datasource.write.partitionpath.field=date\n"
        "hoodie.deltastreamer.schemaprovider.source.schema.file=/var/demo/config/schema.avsc\n"
        "hoodie.deltastreamer.schemaprovider.target.schema.file=/var/demo/config/schema.avsc\n"
        "hoodie.deltastreamer.source.dfs.root=s3a://landing/input/\n"
    ),
    "csv.properties": (
        "hoodie.datasource.write.recordkey.field=id\nhoodie.datasource.write.partitionpath.field=\n"
        "hoodie.streamer.source.dfs.root=s3a://landing/csv\n"
        "hoodie.streamer.csv.header=true\nhoodie.streamer.csv.sep=|\n"
    ),
    "hoodie-incr.properties": (
        "hoodie.delete.shuffle.parallelism=2\nhoodie.datasource.write.recordkey.field=_row_key\n"
        "hoodie.datasource.write.partitionpath.field=partition\n"
        "hoodie.deltastreamer.source.hoodieincr.partition.fields=partition\n"
        "hoodie.deltastreamer.source.hoodieincr.path=s3a://lake/source\n"
        "hoodie.deltastreamer.source.hoodieincr.read_latest_on_missing_ckpt=true\n"
        "hoodie.datasource.hive_sync.table=t\nhoodie.datasource.hive_sync.jdbcurl=jdbc:hive2://hiveserver:10000\n"
    ),
    "multi-writer.properties": (
        "hoodie.datasource.write.recordkey.field=_row_key,day\nhoodie.datasource.write.partitionpath.field=day\n"
        "hoodie.datasource.write.keygenerator.class=org.apache.hudi.keygen.ComplexKeyGenerator\n"
        "hoodie.write.concurrency.mode=optimistic_concurrency_control\nhoodie.cleaner.policy.failed.writes=LAZY\n"
        "hoodie.write.lock.provider=org.apache.hudi.client.transaction.lock.ZookeeperBasedLockProvider\n"
        "hoodie.write.lock.zookeeper.url=zookeeper\nhoodie.write.lock.zookeeper.port=2181\n"
        "hoodie.write.lock.zookeeper.lock_key=locks\nhoodie.write.lock.zookeeper.base_path=/tmp/.locks\n"
        "hoodie.metadata.enable=false\nhoodie.streamer.source.dfs.root=s3a://landing/p\n"
        "hoodie.cleaner.commits.retained=4\nhoodie.keep.min.commits=8\nhoodie.keep.max.commits=12\n"
        "hoodie.clustering.inline=true\nhoodie.clustering.inline.max.commits=2\nhoodie.write.markers.type=DIRECT\n"
        "hoodie.clustering.plan.strategy.sort.columns=_row_key\n"
        "hoodie.clustering.plan.strategy.target.file.max.bytes=1073741824\n"
    ),
    "timestamp.properties": (
        "hoodie.datasource.write.recordkey.field=_row_key\nhoodie.datasource.write.partitionpath.field=timestamp\n"
        "hoodie.datasource.write.keygenerator.class=org.apache.hudi.keygen.TimestampBasedKeyGenerator\n"
        "hoodie.deltastreamer.keygen.timebased.timestamp.type=UNIX_TIMESTAMP\n"
        "hoodie.deltastreamer.keygen.timebased.output.dateformat=yyyy/MM/dd\n"
        "hoodie.streamer.source.dfs.root=s3a://landing/p\n"
    ),
    "jdbc.properties": (
        "hoodie.datasource.write.recordkey.field=id\nhoodie.datasource.write.partitionpath.field=\n"
        "hoodie.streamer.jdbc.url=jdbc:postgresql://orders-db.shop:5433/shop\n"
        "hoodie.streamer.jdbc.driver.class=org.postgresql.Driver\nhoodie.streamer.jdbc.user=foo:bar\n"
        "hoodie.streamer.jdbc.password=PASSWORD\nhoodie.streamer.jdbc.table.name=sales.orders\n"
        "hoodie.streamer.jdbc.table.incr.column.name=updated_at\nhoodie.streamer.jdbc.incr.pull=true\n"
        "hoodie.deltastreamer.jdbc.extra.options.fetchSize=500\nhoodie.streamer.jdbc.storage.level=DISK_ONLY\n"
        "hoodie.streamer.jdbc.extra.options.partitionColumn=id\n"
        "hoodie.streamer.jdbc.extra.options.numPartitions=4\n"
        "hoodie.streamer.jdbc.extra.options.lowerBound=1\nhoodie.streamer.jdbc.extra.options.upperBound=9\n"
    ),
    "schema.avsc": json.dumps(TICKS),
    "q.sql": "-- trips\nSELECT key, symbol\nFROM <SRC>\nWHERE volume > 0;\n",
}


def target(kind: str = "COPY_ON_WRITE", table: str = "stock_ticks") -> str:
    return f"--table-type {kind} --target-base-path s3a://lake/{table} --target-table {table}"


JOBS = {
    "demo, Kafka to copy on write": (
        f"spark-submit --class {U}.streamer.HoodieStreamer $BUNDLE {target()} {KAFKA} --source-ordering-field ts "
        "--props /var/demo/config/kafka-source.properties",
        0,
    ),
    "demo, Kafka to merge on read": (
        f"spark-submit --class {U}.deltastreamer.HoodieDeltaStreamer `ls packaging/hudi-utilities-bundle-*.jar` \\\n"
        f" {target('MERGE_ON_READ')} {KAFKA} --source-ordering-field ts --disable-compaction \\ \n"
        "--props /var/demo/config/kafka-source.properties",
        0,
    ),
    "docs, continuous with a query": (
        f"{target()} {KAFKA} --continuous --min-sync-interval-seconds 60 --source-limit 1000 "
        f"--props kafka-source.properties --transformer-class {U}.transform.SqlQueryBasedTransformer "
        "--hoodie-conf 'hoodie.streamer.transformer.sql=SELECT a.key, a.date FROM <SRC> a' "
        "--hoodie-conf bootstrap.servers=other:9092,more:9092",
        0,
    ),
    "docs, SQL from a file after a query": (
        f"{target()} {KAFKA} --props kafka-source.properties "
        f"--transformer-class a:{U}.transform.SqlQueryBasedTransformer,b:{U}.transform.SqlFileBasedTransformer "
        "--hoodie-conf 'hoodie.streamer.transformer.sql.a=SELECT * FROM <SRC>' "
        "--hoodie-conf hoodie.streamer.transformer.sql.file.b=/jobs/q.sql",
        0,
    ),
    "docs, Avro with a registry": (
        f"{target()} --source-class {U}.sources.AvroKafkaSource "
        f"--schemaprovider-class {U}.schema.SchemaRegistryProvider "
        "--source-ordering-field impresssiontime --op BULK_INSERT --props kafka-source.properties --hoodie-conf "
        "hoodie.streamer.schemaprovider.registry.url=https://foo:bar@registry/subjects/t/versions/latest",
        3,
    ),
    "demo, files with a schema": (
        f"{target()} --schemaprovider-class {U}.schema.FilebasedSchemaProvider --props dfs-source.properties",
        3,
    ),
    "csv": (
        f"{target()} --source-class {U}.sources.CsvDFSSource --op INSERT --filter-dupes --props csv.properties",
        0,
    ),
    "another table": (
        f"{target()} --source-class {U}.sources.HoodieIncrSource --props hoodie-incr.properties "
        "--checkpoint resumeFromInstantCompletionTime:20260101000000000",
        0,
    ),
    "several writers": (
        f"{target()} --source-class {U}.sources.ParquetDFSSource --op INSERT --props multi-writer.properties",
        0,
    ),
    "partitions by time": (f"{target()} --source-class {U}.sources.ParquetDFSSource --props timestamp.properties", 3),
    "bucket index, metastore, TLS": (
        f"{target('MERGE_ON_READ')} {KAFKA} --source-ordering-fields ts --props kafka-source.properties --enable-sync "
        "--retry-on-source-failures --max-retry-count 5 --retry-interval-seconds 600 "
        "--hoodie-conf hoodie.index.type=BUCKET --hoodie-conf hoodie.bucket.index.num.buckets=8 "
        "--hoodie-conf hoodie.write.concurrency.mode=NON_BLOCKING_CONCURRENCY_CONTROL "
        "--hoodie-conf hoodie.datasource.hive_sync.mode=hms "
        "--hoodie-conf hoodie.datasource.hive_sync.metastore.uris=thrift://metastore.catalogs:9083 "
        "--hoodie-conf hoodie.datasource.hive_sync.database=lake "
        "--hoodie-conf hoodie.datasource.hive_sync.partition_fields=date "
        "--hoodie-conf hoodie.cleaner.policy=KEEP_LATEST_BY_HOURS --hoodie-conf hoodie.cleaner.hours.retained=48 "
        "--hoodie-conf security.protocol=SASL_SSL --hoodie-conf sasl.mechanism=SCRAM-SHA-512 "
        "--hoodie-conf 'sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="u" '
        'password="PASSWORD1";\' --hoodie-conf ssl.truststore.location=/x.jks '
        "--hoodie-conf ssl.truststore.password=PASSWORD2 --hoodie-conf fetch.min.bytes=1000 --hoodie-conf group.id=g",
        0,
    ),
    "Spark's settings and keys of the store": (
        "spark-submit --master yarn --driver-memory 2g --num-executors 4 --executor-memory 4G --executor-cores 2 "
        "--conf spark.serializer=org.apache.spark.serializer.KryoSerializer --conf spark.sql.shuffle.partitions=8 "
        "--conf spark.hadoop.fs.s3a.endpoint=http://minio:9000 --conf spark.hadoop.fs.s3a.access.key=PASSWORD3 "
        f"--conf spark.hadoop.fs.s3a.secret.key=PASSWORD4 b.jar {target()} {KAFKA} --props kafka-source.properties",
        0,
    ),
    "a class that merges": (
        f"{target()} {KAFKA} --props kafka-source.properties --merge-mode CUSTOM "
        "--merge-strategy-id 0a1b2c3d-0000-4000-8000-000000000001 --merge-impl-classes com.example.Merger",
        3,
    ),
}


@dataclass
class Ran:
    code: int
    out: str
    err: str

    @property
    def objects(self) -> dict[str, JsonDict]:
        return {one["kind"]: one for one in quick_yaml.load_all(self.out) if one}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def ran(job: str, *more: str, after: tuple[str, ...] = ()) -> Ran:
        (folder / "job.sh").write_text(job)
        given = ["import", "--file", str(folder / "job.sh"), "--files", str(folder), *more]
        code = main([*given, *(["--", *after] if after else [])])
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return ran


def refused(one: JsonDict, plural: str) -> list[str]:
    """What the schema refuses; maps of texts are judged by the types."""
    found = crds.refused(one["spec"], crds.schema(plural, "spec"), "spec")
    return [told for told in found if not told.endswith("is not of type object")]


def launched(objects: dict[str, JsonDict]) -> None:
    """The objects are what the API server, the operator and the runtime accept."""
    for kind, plural in (("HudiTable", "huditables"), ("HudiWriter", "hudiwriters")):
        if kind in objects:
            assert refused(objects[kind], plural) == []
    if "HudiTable" not in objects:
        return
    stored = crds.completed(objects["HudiTable"]["spec"], crds.schema("huditables", "spec"))
    world = Meeting()
    world.make_table(**{name: value for name, value in stored.items() if name != "catalog"})
    world.run(lambda w: "assignment" in w.kv)
    assert world.condition(world.table, "Stalled")["status"] != "True", world.condition(world.table, "Stalled")
    meta = {**META, "name": objects["HudiTable"]["metadata"]["name"]}
    table = TableSpec.from_object({"metadata": meta, "spec": stored})
    assert options.table_problem(table) == ""
    if "HudiWriter" not in objects:
        return
    stored = crds.completed(objects["HudiWriter"]["spec"], crds.schema("hudiwriters", "spec"))
    writer = WriterSpec.from_object(
        {"metadata": {**META, "name": objects["HudiWriter"]["metadata"]["name"]}, "spec": stored}
    )
    assert writer.table == table.ref.name
    assert options.writer_problem(writer) == ""
    assert launch.source_problem(writer) == ""
    if writer.files is not None:
        assert sources.options_problem(writer.files.options, "files") == ""
    check_allowed(parsed(table, writer).options)


@pytest.mark.parametrize("name", JOBS)
def test_a_job_of_the_documentation(name: str, run: Any) -> None:
    job, code = JOBS[name]
    ran = run(job)
    assert ran.code == code, ran.err
    assert ("NOT translated" in ran.err) == (code == 3), ran.err
    assert "PASSWORD" not in ran.out + ran.err
    assert "foo:bar" not in ran.out + ran.err
    launched(ran.objects)
    if code == 0:
        assert set(ran.objects) == {"HudiTable", "HudiWriter"}
        assert "suspend" not in ran.objects["HudiWriter"]["spec"]


def test_the_demo_as_it_is_written(run: Any) -> None:
    found = run(JOBS["demo, Kafka to merge on read"][0], "-n", "lake").objects
    assert found["HudiTable"]["metadata"] == {"name": "stock-ticks", "namespace": "lake"}
    assert found["HudiTable"]["spec"] == {
        "path": "s3a://lake/stock_ticks",
        "tableName": "stock_ticks",
        "type": "MergeOnRead",
        "recordKeyFields": ["key"],
        "partitionFields": ["date"],
        "orderingFields": ["ts"],
        "services": {"compaction": {"enabled": False}},
    }
    assert found["HudiWriter"]["spec"] == {
        "tableRef": {"name": "stock-ticks"},
        "source": {
            "kafka": {
                "bootstrapServers": ["kafkabroker:9092"],
                "topics": ["stock_ticks"],
                "startFrom": "Earliest",
                "maxOffsetsPerCommit": 5_000_000,
                "value": {
                    "format": "Json",
                    "schema": "volume BIGINT, symbol STRING, ts STRING, open DOUBLE, key STRING, date STRING",
                },
            }
        },
        "operation": "Upsert",
        "hudiOptions": {"hoodie.upsert.shuffle.parallelism": "2", "hoodie.insert.shuffle.parallelism": "2"},
    }


JDBC = f"{target()} --source-class {U}.sources.JdbcSource --props jdbc.properties --source-ordering-field ts"


def test_a_database(run: Any) -> None:
    ran = run(f"{JDBC} --op INSERT --source-limit 1000 --checkpoint 2026-01-31 --continuous")
    assert ran.code == 0, ran.err
    assert "PASSWORD" not in ran.out + ran.err
    assert "foo:bar" not in ran.out + ran.err
    launched(ran.objects)
    spec = ran.objects["HudiWriter"]["spec"]
    assert spec["source"] == {
        "jdbc": {
            "engine": "PostgreSQL",
            "host": "orders-db.shop",
            "port": 5433,
            "database": "shop",
            "table": "sales.orders",
            "incremental": {"column": "updated_at", "maxRowsPerCommit": 1000, "startFrom": "2026-01-31"},
            "partitioning": {"column": "id", "partitions": 4},
            "fetchSize": 500,
            "secretRef": {"name": "stock-ticks-jdbc"},
        }
    }
    assert (spec["operation"], spec["duplicates"], spec["streaming"]) == ("Insert", "Drop", {"intervalSeconds": 1})
    assert "Secret stock-ticks-jdbc" in ran.err


@pytest.mark.parametrize(
    ("changed", "more", "told"),
    [
        ("url=jdbc:postgresql://db/shop?socketFactory=x", "", "properties of the driver cannot be set"),
        ("url=jdbc:oracle:thin:@db:1521/shop", "", "one host, a port and a database"),
        ("url=jdbc:postgresql://a,b/shop", "", "one host, a port and a database"),
        ("driver.class=com.example.Driver", "", "the image has drivers of PostgreSQL and MariaDB"),
        ("table.name=(SELECT 1) t", "", "TABLE or SCHEMA.TABLE"),
        ("table.incr.column.name=max(a)", "", "letters, digits, _ and $"),
        ("incr.pull=false", "--continuous", "without an incremental column each run reads everything"),
        ("incr.fallback.to.full.fetch=true", "", "is repeated from the position"),
        ("extra.options.sessionInitStatement=DROP TABLE x", "", "source.jdbc has no such setting"),
        ("incr.pull=true", "--op DELETE", "would delete again what is read again"),
        ("incr.pull=true", "--checkpoint '2026-01-31 12:00:00'", "set source.jdbc.incremental.startFrom"),
    ],
)
def test_what_is_no_database_here_is_told(changed: str, more: str, told: str, run: Any, folder: Path) -> None:
    name = changed.partition("=")[0]
    kept = [line for line in FILES["jdbc.properties"].splitlines() if f".jdbc.{name}=" not in line]
    (folder / "jdbc.properties").write_text("\n".join([*kept, f"hoodie.streamer.jdbc.{changed}"]))
    ran = run(f"{JDBC} {more}")
    assert ran.code in (1, 3)
    assert told in ran.err + ran.out
    assert "PASSWORD" not in ran.out + ran.err
    launched(ran.objects)


def test_queries_that_are_chained(run: Any) -> None:
    found = run(JOBS["docs, SQL from a file after a query"][0]).objects["HudiWriter"]["spec"]
    assert found["transform"]["sql"] == (
        "WITH step1 AS (SELECT * FROM source) SELECT key, symbol\nFROM step1\nWHERE volume > 0"
    )


EXPIRES = "--hoodie-conf hoodie.partition.ttl.inline=true --hoodie-conf hoodie.partition.ttl.strategy.days.retain=30 "


def test_partitions_expire_but_for_the_mode_non_blocking(run: Any) -> None:
    ran = run(JOBS["several writers"][0] + " " + EXPIRES)
    assert ran.objects["HudiTable"]["spec"]["services"]["ttl"] == {"retainSeconds": 30 * 86400}
    ran = run(JOBS["bucket index, metastore, TLS"][0] + " " + EXPIRES)
    assert ran.code == 3
    assert ran.err.count("spec.services.ttl contradicts NonBlocking") == 2
    assert "ttl" not in ran.objects["HudiTable"]["spec"]["services"]


def test_services_catalog_and_secrets(run: Any) -> None:
    ran = run(JOBS["bucket index, metastore, TLS"][0])
    table, writer = ran.objects["HudiTable"]["spec"], ran.objects["HudiWriter"]["spec"]
    assert table["concurrency"] == {"mode": "NonBlocking"}
    assert table["index"] == {"type": "Bucket", "buckets": 8}
    assert table["services"] == {"clean": {"retainSeconds": 172800}}
    assert table["catalog"] == {
        "hiveMetastore": {"uris": ["thrift://metastore.catalogs:9083"]},
        "database": "lake",
    }
    secret = {"name": "stock-ticks-kafka"}
    assert writer["source"]["kafka"]["security"] == {
        "protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", "secretRef": secret
    }  # fmt: skip
    assert "# Create Secret stock-ticks-kafka first, with username, password, ca.crt" in ran.out
    assert writer["retryPolicy"] == {"limit": 5, "backoffSeconds": 600, "maxBackoffSeconds": 600}


REFUSED = [
    ("hoodie.datasource.write.recordkey.field=a.b", "HudiTable", "recordKeyFields names columns"),
    ("hoodie.datasource.write.recordkey.field=", "HudiTable", "Hudi would make keys up"),
    ("hoodie.datasource.write.partitionpath.field=date:SIMPLE", "HudiTable", "partition fields have no types"),
    ("hoodie.datasource.write.keygenerator.type=CUSTOM", "HudiTable", "partition fields have no types"),
    (
        "hoodie.datasource.write.keygenerator.class=org.apache.hudi.keygen.GlobalDeleteKeyGenerator",
        "HudiTable",
        "deletes keys in every partition",
    ),
    ("hoodie.datasource.write.keygenerator.class=com.example.Mine", "HudiTable", "a key generator of your own"),
    (
        "hoodie.datasource.write.keygenerator.class=org.apache.hudi.keygen.ComplexKeyGenerator",
        "HudiTable",
        "as SimpleKeyGenerator stores them",
    ),
    ("hoodie.datasource.write.partitionpath.urlencode=true", "HudiTable", "partition paths are not encoded"),
    ("hoodie.index.type=GLOBAL_BLOOM", "HudiTable", "one key to two file groups"),
    ("hoodie.index.type=RECORD_INDEX", "HudiTable", "one key to two file groups"),
    (
        "hoodie.datasource.write.payload.class=org.apache.hudi.common.model.PartialUpdateAvroPayload",
        "HudiTable",
        "could lose an update",
    ),
    ("hoodie.write.record.merge.mode=EVENT_TIME_ORDERING", "HudiTable", "EventTime needs one"),
    ("auto.offset.reset=group", "HudiWriter", "no consumer group is used"),
    ("bootstrap.servers=broker", "HudiWriter", "HOST:PORT"),
    ("sasl.mechanism=GSSAPI;security.protocol=SASL_SSL", "HudiWriter", "one of PLAIN"),
    ("hoodie.streamer.schemaprovider.source.schema.file=/nowhere.avsc", "HudiWriter", "no such file here"),
    ("hoodie.compaction.strategy=x.Y", "", "not on the list"),
    ("hoodie.nobody.knows=1", "", "not on the list"),
    ("hoodie.metrics.on=true", "", "there is no such thing here"),
    ("hoodie.datasource.write.commitmeta.key.prefix=x", "", "the lock that keeps"),
    ("hoodie.streamer.source.kafka.enable.commit.offset=true", "", "nothing is committed to Kafka"),
    ("hoodie.keep.min.commits=3", "", "more than clean retains"),
    ("session.timeout.ms=3", "", "may be set"),
    ("sasl.login.class=x;security.protocol=SSL", "", "no such setting"),
]


@pytest.mark.parametrize(("given", "kind", "told"), REFUSED, ids=[given.partition(";")[0] for given, _, _ in REFUSED])
def test_what_is_refused(given: str, kind: str, told: str, run: Any) -> None:
    after = [word for one in given.split(";") for word in ("--hoodie-conf", one)]
    ran = run(f"{target()} {KAFKA} --props kafka-source.properties", after=tuple(after))
    assert ran.code == 3
    assert told in ran.err
    assert (kind not in ran.objects) if kind else len(ran.objects) == 2
    assert not kind or f"# No {kind} is written" in ran.out
    if "HudiWriter" in ran.objects:
        assert ran.objects["HudiWriter"]["spec"]["suspend"] is True
    launched(ran.objects)


@pytest.mark.parametrize(
    ("more", "kind", "told"),
    [
        ("--op INSERT_OVERWRITE", "HudiWriter", "no such operation"),
        (f"--transformer-class {U}.transform.FlatteningTransformer", "HudiWriter", "a Java class"),
        ("--base-file-format HFILE", "HudiTable", "Parquet files only"),
        ("--run-bootstrap", "HudiTable", "by its own field"),
        ("--commit-on-errors", "", "committed whole or not"),
        ("--checkpoint stock_ticks,0:12", "", "has its own progress"),
        ("--filter-dupes", "", "HoodieStreamer refuses it"),
        ("--enable-sync", "", "not to HiveServer2"),
        ("--sunshine 5", "", "not an option of HoodieStreamer"),
    ],
)
def test_options_of_the_tool_that_are_refused(more: str, kind: str, told: str, run: Any) -> None:
    ran = run(f"{target()} {KAFKA} --props kafka-source.properties {more}")
    assert (ran.code, told in ran.err) == (3, True), ran.err
    assert (kind not in ran.objects) if kind else len(ran.objects) == 2
    allowed = run(f"{target()} {KAFKA} --props kafka-source.properties {more}", "--allow-missing")
    assert allowed.code == (3 if kind else 0)
    if not kind:
        assert "suspend" not in allowed.objects["HudiWriter"]["spec"]
        assert "# NOT translated" in allowed.out


@pytest.mark.parametrize(
    "path", ["/warehouse/t", "file:///tmp/t", "s3a://KEY:PASSWORD@b/t", "s3a://b/../t", "maprfs://b/t"]
)
def test_paths_that_are_no_tables(path: str, run: Any) -> None:
    ran = run(
        f"--table-type COPY_ON_WRITE --target-base-path {path} --target-table t {KAFKA} --props kafka-source.properties"
    )
    assert ran.code == 3
    assert set(ran.objects) == {"HudiWriter"}
    assert "PASSWORD" not in ran.out + ran.err


def test_a_path_of_the_default_file_system(run: Any) -> None:
    job = f"--table-type COPY_ON_WRITE --target-base-path /warehouse/t --target-table t {KAFKA}"
    job += " --props kafka-source.properties"
    ran = run(job, "--default-fs", "hdfs://namenode:8020")
    assert ran.code == 0, ran.err
    assert ran.objects["HudiTable"]["spec"]["path"] == "hdfs://namenode:8020/warehouse/t"
    launched(ran.objects)


def test_words_after_the_dashes_count(run: Any) -> None:
    ran = run(JOBS["csv"][0], after=("--op", "UPSERT", "--hoodie-conf", "hoodie.streamer.csv.sep=;"))
    assert ran.objects["HudiWriter"]["spec"]["operation"] == "Upsert"
    assert ran.objects["HudiWriter"]["spec"]["source"]["files"]["options"]["sep"] == ";"
    assert "that of command line, --hoodie-conf counts" in ran.err


def test_the_answer_for_programs(run: Any) -> None:
    ran = run(JOBS["partitions by time"][0], "-o", "json")
    found = json.loads(ran.out)
    assert (ran.code, ran.err) == (3, "")
    assert [one["kind"] for one in found["objects"]] == ["HudiWriter"]
    assert set(found["notWritten"]) == {"HudiTable"}
    lost = {one["name"] for one in found["options"] if one["outcome"] == "missing"}
    assert lost == {
        "hoodie.datasource.write.keygenerator.class",
        "hoodie.datasource.write.partitionpath.field",
        "hoodie.deltastreamer.keygen.timebased.timestamp.type",
        "hoodie.deltastreamer.keygen.timebased.output.dateformat",
    }


SECRETS = ("sasl.jaas.config", "ssl.key.password", "schema.registry.basic.auth.user.info", "hoodie.x.password")


def test_no_option_is_dropped_in_silence_and_no_secret_is_shown(
    run: Any, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Random jobs of options that are known, and of others: each is in the report once, and what is
    written is still an object of the API.
    """
    hudi = [line.split("\t")[0] for line in TSV.read_text().splitlines() if line and not line.startswith("#")]
    own = [line.partition("=")[0] for text in FILES.values() for line in text.splitlines() if "=" in line]
    names = sorted({*hudi, *own, *allowed_options.KAFKA_OPTIONS} - {"include", "-- trips"})
    names = [name for name in names if " " not in name and "{" not in name]
    values = ("true", "false", "7", "0", "x", "s3a://b/c", "a,b", "BUCKET", "NONE", "${env.HOME}", "é" * 3000)
    seed = seeds.drawn()
    with capsys.disabled():
        print(f"\noptions of jobs from {seeds.VARIABLE}={seed}")
    dice = random.Random(seed)
    for _ in range(40):
        chosen = dice.sample(names, 25)
        text = "".join(f"{name}={dice.choice(values)}\n" for name in chosen)
        text += "".join(f"{name}=HIDDEN{number}\n" for number, name in enumerate(SECRETS))
        (folder / "random.properties").write_text(text)
        flags = dice.sample(sorted(words.SWITCHES | words.VALUED - {"--props", "--hoodie-conf"}), 8)
        line = " ".join(flag if flag in words.SWITCHES else f"{flag} {dice.choice(values[:8])}" for flag in flags)
        kind = dice.choice(("JsonKafkaSource", "CsvDFSSource", "HoodieIncrSource", "JdbcSource"))
        line += f" --props random.properties --odd 1 stray --hoodie-conf {chosen[0]}=again"
        if "--source-class" not in flags:
            line += f" --source-class {kind}"
        ran = run(line, "-o", "json", after=("--x",))
        found = json.loads(ran.out)
        told = [(one["name"], one["origin"]) for one in found["options"] if one["origin"] != "not given"]
        assert len(told) == len(set(told)), told
        assert {*chosen, *SECRETS, *flags, "--odd", "--x", "--props", "(a word)"} <= {name for name, _ in told}
        assert sum(name == chosen[0] for name, _ in told) >= 2
        assert len(told) == len(chosen) + len(SECRETS) + len(flags) + 5 + ("--source-class" not in flags)
        assert all(one.get("field") or one.get("reason") for one in found["options"])
        assert all(one.get("instead") for one in found["options"] if one["outcome"] == "missing")
        assert "HIDDEN" not in ran.out + ran.err
        for one in found["objects"]:
            plural = f"{one['kind'].lower()}s"
            assert refused(one, plural) == [], text + line
            kinds = {"HudiTable": TableSpec, "HudiWriter": WriterSpec}
            spec = kinds[one["kind"]].from_object({"metadata": {**META, "name": "t"}, "spec": one["spec"]})
            problem = options.table_problem(spec) if isinstance(spec, TableSpec) else options.writer_problem(spec)
            assert problem == "", text + line


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a=1\nrubbish\n", "2: neither KEY=VALUE"),
        ("=x\n", "1: no name"),
        ("a=1\\\nb=2\n", "1: ends with a backslash"),
        ("a=\x00\n", "1: a control character"),
        ("include=bad.properties\n", "includes itself"),
        ("include=nothing.properties\n", "1: include: 'nothing.properties' is neither"),
        (b"a=\xff\n", "1: is not UTF-8"),
    ],
)
def test_properties_that_cannot_be_read(text: str | bytes, told: str, run: Any, folder: Path, capsys: Any) -> None:
    (folder / "bad.properties").write_bytes(text if isinstance(text, bytes) else text.encode())
    ran = run(f"{target()} --props bad.properties")
    assert (ran.code, ran.out) == (1, "")
    assert told in ran.err
    assert "bad.properties" in ran.err


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--op 'UPSERT", "not a command line"),
        ("--op UPSERT --op INSERT", "--op is given twice"),
        ("--target-table", "--target-table needs a value"),
        ("--hoodie-conf nothing", "--hoodie-conf: neither KEY=VALUE"),
        ("--props nowhere.properties", "no such file here"),
        ("spark-submit --conf x b.jar", "needs KEY=VALUE"),
        ("spark-submit --master local", "without a jar"),
        ("--continuous=true", "--continuous has no value"),
    ],
)
def test_command_lines_that_cannot_be_read(line: str, told: str, run: Any) -> None:
    ran = run(line)
    assert (ran.code, ran.out) == (1, "")
    assert told in ran.err


def test_no_job_at_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import"]) == 1
    assert "give its options after --" in capsys.readouterr().err


def test_lines_are_read_as_the_tool_reads_them(tmp_path: Path) -> None:
    (tmp_path / "a.properties").write_text("  # c\n! d\n a  =  b   c \nkey value of it\nx==y\n\n")
    found = [(one.name, one.value) for one in properties.options(tmp_path / "a.properties", Places())]
    assert found == [("a", "b c"), ("key", "value of it"), ("x", "=y")]


def test_of_two_names_of_one_option_the_later_counts() -> None:
    given = Given()
    confs = words.read(["--hoodie-conf", "hoodie.cleaner.policy=A", "--hoodie-conf", "hoodie.clean.policy=B"], given)
    assert [words.canonical(one.name) for one in confs] == ["hoodie.clean.policy"] * 2


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ({"type": "long", "logicalType": "timestamp-millis"}, "timestamp-millis"),
        (["null", "int", "string"], "a union of several types"),
        ("other", "refers to another one"),
        ({"type": "record", "name": "stock_ticks", "fields": []}, "has no fields"),
    ],
)
def test_columns_that_cannot_be_said(kind: Any, told: str) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "a", "type": kind}]}
    with pytest.raises(avro.Unsaid, match=told):
        avro.columns(json.dumps(schema))


def test_nested_columns() -> None:
    inner = {"type": "record", "name": "i", "fields": [{"name": "x-y", "type": {"type": "array", "items": "int"}}]}
    price = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
    fields = [
        {"name": "m", "type": {"type": "map", "values": ["null", inner]}},
        {"name": "p", "type": price},
        {"name": "n", "type": "int", "default": 0},
    ]
    text = json.dumps({"type": "record", "name": "r", "fields": fields})
    assert avro.columns(text) == ("m MAP<STRING, STRUCT<`x-y`: ARRAY<INT>>>, p DECIMAL(10,2), n INT", ("n",))


def test_yaml_is_read_as_it_was_meant() -> None:
    obj = {
        "plain": "s3a://a/b",
        "words": ["true", "no", "null", "1e5", "12:30", "0x1f", "~", ".inf", "2026-01-01", "", " a", "a: b"],
        "lists": [{"a": 1, "b": [[], {}]}, ["x"]],
        "text": "SELECT 1\n\n  FROM source",
        "odd": "a\n b \n",
        "tab": "a\n\tb\x07",
        "letters": "é😀\u2028\x85\ufeff",
        "n": True,
        "none": None,
        "- x": "#",
        "'": '"',
        "%": "@x",
        "k": "x #y",
        "z": "a:",
    }
    assert quick_yaml.load(yaml.dump(obj)) == obj


def test_rules_name_options_that_exist() -> None:
    """A pattern that matches no option of Hudi would never be used."""
    known = [line.split("\t") for line in TSV.read_text().splitlines() if line and not line.startswith("#")]
    names = {line[0] for line in known}
    of_hudi = [each for each in (*rules._SAME, *rules._OFF) if not each.startswith("hoodie.streamer.")]
    assert [each for each in of_hudi if not fnmatch.filter(names, each)] == []
    alias = {line[0]: line[2] for line in known if line[1] == "alias"}
    for old, new in words._OLD.items():
        assert old not in alias or alias[old] == new or words.canonical(alias[old]) == new, old
    assert rules._OF_THE_OPERATOR
    assert rules._SERVICES

"""Programs with a main class of the JVM, and what user code brings along: real Java, compiled here,
against real Spark and Hudi on S3.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from hudi_contract import metadata
from hudi_contract.job import Dependencies
from hudi_operator.api.spec import WriterSpec
from hudi_operator.manifests import configmaps
from hudi_runtime.table.hudi import Table as HudiTable
from tests.support import ROOT, quick_yaml
from tests.support.harness.executors import EXECUTORS
from tests.support.harness.jvm_program import jar, mirror, publish, wheel
from tests.support.harness.local import AGENT, Process, Table, World, until

EXAMPLE = ROOT / "examples" / "spark-application"
WORDS = {
    "words.Words": """
        package words;
        public final class Words {
            public static String of(long id) { return base.Base.PREFIX + id; }
        }"""
}
BASE = {"base.Base": 'package base; public final class Base { public static final String PREFIX = new String("w0"); }'}
BROUGHT = {
    "mine.Brought": """
        package mine;
        import java.nio.file.*;
        import java.util.*;
        import org.apache.spark.SparkFiles;
        import org.apache.spark.api.java.JavaSparkContext;
        import org.apache.spark.api.java.function.MapFunction;
        import org.apache.spark.sql.*;
        import org.apache.spark.sql.types.StructType;

        public final class Brought {
            public static final class Mine implements java.io.Serializable { public String word; }

            public static void main(String[] a) throws Exception {
                SparkSession before = SparkSession.active();
                SparkSession spark = SparkSession.builder().master("local[7]").appName("other").getOrCreate();
                if (spark.sparkContext() != before.sparkContext()) throw new IllegalStateException("another context");
                String suffix = Files.readString(Path.of(SparkFiles.get("suffix.txt"))).trim();
                // In tasks: classes of a jar and of a package, and back in the driver an own class
                Dataset<String> texts = spark.range(1, 4).map(
                    (MapFunction<Long, String>) id -> words.Words.of(id) + suffix + greek.Greek.LETTER,
                    Encoders.STRING());
                List<Mine> mine = texts.javaRDD().map(w -> { Mine m = new Mine(); m.word = w; return m; }).collect();
                List<Row> rows = new ArrayList<>();
                for (int i = 0; i < mine.size(); i++) rows.add(RowFactory.create(i, "a", mine.get(i).word, 1L));
                StructType type = StructType.fromDDL("id INT, p STRING, v STRING, ts LONG");
                spark.createDataFrame(rows, type).write().format("hudi").mode(SaveMode.Append).save(a[0]);
                try (JavaSparkContext closed = JavaSparkContext.fromSparkContext(spark.sparkContext())) {
                    spark.sql("SELECT 1").collect();
                }
                spark.sql("SELECT 1").collect();
            }
        }"""
}
ENDS = {
    "mine.Ends": """
        package mine;
        import java.util.*;
        import java.util.concurrent.CountDownLatch;
        import org.apache.spark.*;
        import org.apache.spark.sql.*;
        import org.apache.spark.sql.types.StructType;

        public final class Ends {
            static SparkSession spark;
            static String table;

            static void save(int id, String p) {
                StructType type = StructType.fromDDL("id INT, p STRING, v STRING, ts LONG");
                spark.createDataFrame(List.of(RowFactory.create(id, p, "v", 1L)), type)
                    .write().format("hudi").mode(SaveMode.Append).save(table);
            }

            public static void main(String[] a) throws Exception {
                spark = SparkSession.builder().getOrCreate();
                table = a[0];
                save(1, "a");
                switch (a[1]) {
                    case "exits":
                        Thread other = new Thread(() -> System.exit(3));
                        other.start();
                        Thread.sleep(600_000);
                        break;
                    case "throws":
                        throw new IllegalStateException("what the program has to say");
                    case "context":
                        new SparkContext(new SparkConf().setMaster("local[1]").setAppName("second"));
                        break;
                    case "goes-on":
                        CountDownLatch second = new CountDownLatch(1);
                        Thread endless = new Thread(() -> {
                            for (int id = 2; ; id++) {
                                try {
                                    save(id, "p" + id);
                                    second.countDown();
                                } catch (Throwable e) {
                                    System.err.println("GOES ON: " + e);
                                }
                            }
                        }, "endless");
                        endless.start();
                        second.await();
                        break;
                    case "halts":
                        Runtime.class.getMethod("halt", int.class).invoke(Runtime.getRuntime(), 0);
                        break;
                    default:
                        throw new IllegalArgumentException(a[1]);
                }
            }
        }"""
}
CLIENT = {
    "mine.Client": """
        package mine;
        import java.nio.file.*;
        import java.util.*;
        import org.apache.hudi.client.*;
        import org.apache.hudi.client.common.HoodieSparkEngineContext;
        import org.apache.hudi.common.config.*;
        import org.apache.hudi.common.model.*;
        import org.apache.hudi.common.util.Option;
        import org.apache.hudi.config.HoodieWriteConfig;
        import org.apache.avro.*;
        import org.apache.avro.generic.*;
        import org.apache.spark.api.java.*;
        import org.apache.spark.sql.SparkSession;

        public final class Client {
            static final String SCHEMA = "{\\"type\\":\\"record\\",\\"name\\":\\"r\\",\\"fields\\":["
                + "{\\"name\\":\\"id\\",\\"type\\":\\"int\\"},{\\"name\\":\\"p\\",\\"type\\":\\"string\\"},"
                + "{\\"name\\":\\"v\\",\\"type\\":\\"string\\"},{\\"name\\":\\"ts\\",\\"type\\":\\"long\\"}]}";

            public static void main(String[] a) throws Exception {
                SparkSession spark = SparkSession.builder().getOrCreate();
                JavaSparkContext context = JavaSparkContext.fromSparkContext(spark.sparkContext());
                HoodieWriteConfig.Builder builder = HoodieWriteConfig.newBuilder().withPath(a[0]).withSchema(SCHEMA);
                if (a[1].equals("with")) builder = builder.withProps(DFSPropertiesConfiguration.getGlobalProps());
                SparkRDDWriteClient<HoodieAvroPayload> client =
                    new SparkRDDWriteClient<>(new HoodieSparkEngineContext(context), builder.build());
                String instant = client.startCommit();
                GenericRecord row = new GenericData.Record(new Schema.Parser().parse(SCHEMA));
                row.put("id", 1); row.put("p", "a"); row.put("v", "client"); row.put("ts", 5L);
                HoodieRecord<HoodieAvroPayload> record =
                    new HoodieAvroRecord<>(new HoodieKey("1", "a"), new HoodieAvroPayload(row, 5L));
                JavaRDD<WriteStatus> written = client.upsert(context.parallelize(List.of(record), 1), instant);
                List<WriteStatus> statuses = written.collect();
                Path reached = Path.of(a[2]);
                Files.createFile(reached);
                while (a[3].equals("wait") && !Files.exists(Path.of(a[2] + ".open"))) Thread.sleep(50);
                if (!client.commit(instant, context.parallelize(statuses, 1)))
                    throw new IllegalStateException("not committed");
                client.close();
            }
        }"""
}


def created(world: World, agent: Process, name: str, **changes: Any) -> Table:
    table = world.table(name, **changes)
    world.create(table, agent=AGENT, process=agent)
    return table


def program(table: Table, file: Path, main: str, *arguments: str, **more: Any) -> Process:
    """A main class of a jar, which drivers read from the image."""
    application = {"mainFile": "", "arguments": [*arguments], "mainClass": main, "jar": f"local://{file}"}
    return table.writer("program", application=application, **more)


@pytest.fixture(scope="module")
def jars(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("jars")
    base = jar(folder / "base.jar", BASE)
    words = jar(folder / "words.jar", WORDS, class_path=[base])
    greek = jar(
        folder / "greek.jar",
        {"greek.Greek": 'package greek; public class Greek { public static final String LETTER = new String("g"); }'},
    )
    return {
        "base": base,
        "words": words,
        "greek": greek,
        "brought": jar(folder / "brought.jar", BROUGHT, class_path=[words, greek]),
        "ends": jar(folder / "ends.jar", ENDS),
        "client": jar(folder / "client.jar", CLIENT),
    }


def commits(world: World, table: Table, inc: str) -> dict[str, dict[str, str]]:
    """Metadata of the completed commits, by instant."""
    reader = HudiTable(world.spark(), table.path)
    found = {i.requested: dict(info.extra) for i, info in reader.commits(tuple(table.timeline().completed))}
    assert all(extra.get(metadata.INC) in (inc, None) for extra in found.values())
    return found


def test_a_spark_application_becomes_a_hudi_writer(world: World, agent: Process) -> None:
    """examples/spark-application: the same class, arguments and settings, on S3."""
    (before,) = quick_yaml.load_all((EXAMPLE / "spark-application.yml").read_text())
    (after,) = quick_yaml.load_all((EXAMPLE / "writer.yaml").read_text())
    (of_table,) = quick_yaml.load_all((EXAMPLE / "table.yaml").read_text())
    said, spec = before["spec"], WriterSpec.from_object(after)
    assert spec.application is not None
    assert spec.application.main_class == said["mainClass"]
    assert spec.application.file == said["mainApplicationFile"]
    assert [*spec.application.arguments] == said["arguments"]
    assert spec.spark_conf.items() <= said["sparkConf"].items()
    assert spec.executors.instances == said["executor"]["instances"]

    lake = world.lake
    table = created(
        world,
        agent,
        "orders",
        **{key: of_table["spec"][key] for key in ("type", "recordKeyFields", "partitionFields", "orderingFields")},
    )
    landing = lake / "landing" / "orders"
    landing.mkdir(parents=True)
    orders = [
        (1, "2026-01-01", 9.5, 1),
        (2, "2026-01-01", 3.0, 1),
        (3, "2026-01-02", 7.25, 2),
        (1, "2026-01-01", 9.9, 3),
    ]
    names = ("order_id", "day", "amount", "updated_at")
    (landing / "a.json").write_text(
        "".join(json.dumps(dict(zip(names, order, strict=True))) + "\n" for order in orders)
    )
    source = EXAMPLE / "src" / "main" / "java" / "com" / "example" / "orders" / "LoadOrders.java"
    (lake / "jobs").mkdir()
    jar(lake / "jobs" / "load-orders.jar", {said["mainClass"]: source.read_text()})
    assert said["arguments"] == [world.url(landing) + "/", table.path]

    application = configmaps.job(table.spec, spec, 1, run=1).to_json()["application"]
    writer = table.writer("load-orders", application=application, spark=dict(spec.spark_conf))
    assert writer.wait() == 0, writer.log()[-4000:]
    told = writer.termination()
    assert (told["commits"], told["records"]) == (1, 3), told
    (extra,) = commits(world, table, writer.inc).values()
    assert extra[metadata.INC] == writer.inc
    assert extra[metadata.WRITER] == "default/load-orders"
    schema = "order_id long, day string, amount double, updated_at long"
    table.audited([orders[3], orders[1], orders[2]], schema=schema)


def test_what_a_program_brings_along(world: World, agent: Process, jars: dict[str, Path], tmp_path: Path) -> None:
    """Jars of a bucket and of the image, a package with what it depends on, and a file: in driver
    and executors. What it closes stays open.
    """
    table = created(world, agent, "brought")
    lake = world.lake / "brought-along"
    lake.mkdir()
    shutil.copy(jars["words"], lake / "words.jar")
    (lake / "suffix.txt").write_text("!\n")
    shutil.copy(jars["greek"], tmp_path / "alpha.jar")
    publish(tmp_path / "repository", "org.words:alpha:1.0", tmp_path / "alpha.jar", needs=["org.words:base:2.1"])
    publish(tmp_path / "repository", "org.words:base:2.1", jars["base"])
    with mirror(tmp_path / "repository") as url:
        deps = Dependencies(
            jars=(world.url(lake / "words.jar"),),
            files=(world.url(lake / "suffix.txt"),),
            packages=("org.words:alpha:1.0",),
            mirror=url,
        )
        writer = program(table, jars["brought"], "mine.Brought", table.path, deps=deps.to_json(), spark=EXECUTORS)
        assert writer.wait() == 0, writer.log()[-6000:]
    assert writer.termination()["commits"] == 1
    table.audited([(i, "a", f"w0{i + 1}!g", 1) for i in range(3)])


@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("exits", "mine.Ends ended with exit code 3"),
        ("throws", "mine.Ends: IllegalStateException: what the program has to say"),
        ("context", "Only one SparkContext should be running in this JVM"),
    ],
)
def test_a_program_that_fails(world: World, agent: Process, jars: dict[str, Path], end: str, said: str) -> None:
    """Its class is known, and the commits before are counted."""
    table = created(world, agent, f"fails-{end}")
    writer = program(table, jars["ends"], "mine.Ends", table.path, end)
    assert writer.wait() != 0
    told = writer.termination()
    assert (told["class"], told["commits"]) == ("UserError", 1), writer.log()[-4000:]
    assert said in told["message"]
    assert writer.inc not in table.names("writer/"), writer.log()[-6000:]
    table.audited([(1, "a", "v", 1)])


def test_threads_that_go_on_end_with_main(world: World, agent: Process, jars: dict[str, Path]) -> None:
    """F626: whatever they have committed is counted, and nothing is committed afterwards."""
    table = created(world, agent, "goes-on")
    writer = program(table, jars["ends"], "mine.Ends", table.path, "goes-on")
    assert writer.wait() == 0, writer.log()[-6000:]
    told = writer.termination()
    completed = [i for i in table.timeline().completed if i.action in ("commit", "deltacommit")]
    assert told["commits"] == len(completed) >= 2, writer.log()[-6000:]
    assert "mine.Ends has ended, and its thread endless goes on" in writer.log()
    assert writer.inc not in table.names("writer/"), writer.log()[-6000:]
    assert not table.names("instant/")
    table.audited([(1, "a", "v", 1), *((i, f"p{i}", "v", 1) for i in range(2, told["commits"] + 1))])


@pytest.mark.unfinished("the JVM is gone, and nobody plays the operator that settles it")
def test_a_jvm_that_ends_is_no_success(world: World, agent: Process, jars: dict[str, Path]) -> None:
    """With exit code 0, too: what was committed is not known to its runtime."""
    table = created(world, agent, "program-halts")
    writer = program(table, jars["ends"], "mine.Ends", table.path, "halts")
    assert writer.wait() != 0
    told = writer.termination()
    assert (told["class"], told["message"]) == ("Infrastructure", "the driver's JVM ended with exit code 0")
    assert writer.inc in table.names("writer/"), "it is settled by the operator"
    table.audited([(1, "a", "v", 1)], owners="ok")


def test_hudis_write_client(world: World, agent: Process, jars: dict[str, Path], tmp_path: Path) -> None:
    """With the table's options it commits under the lock, and loses to a commit meanwhile. Without
    them nothing of it is published.
    """
    table = created(world, agent, "write-client")
    first = program(table, jars["client"], "mine.Client", table.path, "with", str(tmp_path / "one"), "go")
    assert first.wait() == 0, first.log()[-6000:]
    assert first.termination()["commits"] == 1
    assert [line["action"] for line in first.protocol() if line["action"] == "publish"], "under the lock"

    second = program(table, jars["client"], "mine.Client", table.path, "with", str(tmp_path / "two"), "wait")
    until("it has written", (tmp_path / "two").exists, alive=second)
    other = table.writer("other", python={"batches": [{"rows": [(1, "a", "other", 7)]}]})
    assert other.wait() == 0, other.log()[-4000:]
    (tmp_path / "two.open").touch()
    assert second.wait() != 0
    assert second.termination()["class"] == "WriteConflict", second.log()[-6000:]

    third = program(table, jars["client"], "mine.Client", table.path, "without", str(tmp_path / "three"), "go")
    assert third.wait() != 0
    assert third.termination()["class"] == "UserError", third.log()[-6000:]
    assert "HUDIOP-NOT-OWNER" in third.termination()["message"]
    assert third.termination()["commits"] == 0
    table.audited([(1, "a", "other", 7)])


def test_a_module_of_a_wheel(world: World, agent: Process, tmp_path: Path) -> None:
    table = created(world, agent, "wheel")
    lake = world.lake / "wheels"
    lake.mkdir()
    wheel(
        lake / "cleaning-2.1-py3-none-any.whl",
        {
            "cleaning/__init__.py": "def clean(text):\n    return text.strip()\n",
            "cleaning/load.py": (
                "import sys\n"
                "from hudi_runtime.api import current_context\n"
                "context = current_context()\n"
                "spark = context.spark\n"
                "def row(id):\n"
                "    from cleaning import clean\n"
                "    return (id, 'a', clean(f' {id} '), 1)\n"
                "frame = spark.sparkContext.range(1, 3).map(row).toDF('id int, p string, v string, ts long')\n"
                "assert sys.argv[1:] == ['x'], sys.argv\n"
                "frame.write.format('hudi').options(**context.table_options()).mode('append').save(context.table_path)\n"
                "sys.exit(0)\n"
            ),
        },
    )
    deps = Dependencies(py_files=(world.url(lake / "cleaning-2.1-py3-none-any.whl"),))
    application = {"mainFile": "", "arguments": ["x"], "module": "cleaning.load"}
    writer = table.writer("program", application=application, deps=deps.to_json(), spark=EXECUTORS)
    assert writer.wait() == 0, writer.log()[-6000:]
    assert writer.termination()["commits"] == 1, "without commit_metadata, too"
    table.audited([(1, "a", "1", 1), (2, "a", "2", 1)])


def test_what_cannot_be_loaded_is_told_before_anything_is_written(
    world: World, agent: Process, jars: dict[str, Path], tmp_path: Path
) -> None:
    table = created(world, agent, "not-loaded")
    assert table.writer("first", python={"batches": [{"rows": [(1, "a", "v", 1)]}]}).wait() == 0
    hudi = jar(tmp_path / "hudi.jar", {"org.apache.hudi.Mine": "package org.apache.hudi; public class Mine {}"})
    lost = Dependencies(jars=(world.url(world.lake / "lost.jar"),))
    impure = wheel(tmp_path / "fast-1.0-py3-none-any.whl", {"fast.py": ""}, pure=False)
    missing = Dependencies(packages=("org.words:alpha:1.0",), mirror="http://127.0.0.1:1/")
    cases: list[tuple[Dependencies, str, str]] = [
        (Dependencies(jars=(f"local://{hudi}",)), "UserError", "has a class of Hudi, org/apache/hudi/Mine.class"),
        (lost, "UserError", "lost.jar: FileNotFoundException"),
        (Dependencies(py_files=(f"local://{impure}",)), "UserError", "a wheel with compiled code"),
        (missing, "UserError", "spec.deps.packages: "),
    ]
    for deps, kind, said in cases:
        writer = program(table, jars["ends"], "mine.Ends", table.path, "throws", deps=deps.to_json())
        assert writer.wait() != 0
        told = writer.termination()
        assert told["class"] == kind, writer.log()[-4000:]
        assert said in told["message"], told
        assert not writer.inc, "it was not registered"
    assert len([i for i in table.timeline().completed if i.action == "commit"]) == 1
    table.audited([(1, "a", "v", 1)])

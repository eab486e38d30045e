"""Two objects of a seed: a HudiTable and a HudiWriter of it."""

from __future__ import annotations

import json

from hudi_contract.defaults import FIELDS
from tests.support.hostile.draw import Draw, JsonDict
from tests.support.hostile.launch import SOURCE, made
from tests.support.hostile.templates import pods
from tests.support.hostile.vocabulary import (
    ACCOUNTS,
    ARTIFACTS,
    CLASSES,
    COLUMNS,
    CRONS,
    DATABASES,
    ENDPOINT,
    HOSTS,
    HUDI,
    IMAGES,
    KAFKA,
    MODULES,
    PACKAGES,
    PATHS,
    PATTERNS,
    PREFIX,
    PREFIXES,
    PROGRAMS,
    QUERIES,
    READER,
    REGIONS,
    REGISTRIES,
    SECRETS,
    SPARK,
    STORAGE,
    TABLES,
    THRIFT,
    URLS,
    ZONES,
)


def _parts(settings: JsonDict, known: JsonDict) -> JsonDict:
    """Fields that may be defaults."""
    return {
        name: value if isinstance(known[name], str) else _parts(value, known[name])
        for name, value in settings.items()
        if name in known and (isinstance(known[name], str) or isinstance(value, dict))
    }


class Generator:
    """One seed, one pair of objects."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def objects(self) -> tuple[JsonDict, JsonDict]:
        """A HudiTable and a HudiWriter of it."""
        spec = self._table()
        # The words of the vocabulary stay as they are, whatever is put into these objects.
        table = made("HudiTable", "flights", json.loads(json.dumps(spec)))
        writer = made("HudiWriter", "load", json.loads(json.dumps(self._writer(spec))))
        draw = Draw(self._seed, "spoils")
        for _ in range(draw.one((0, 0, 0, 0, 1, 1, 1, 2, 3))):
            spec = draw.one((table, writer))["spec"]
            draw.displace(spec) if draw.chance(0.1) else draw.spoil(spec)
        return table, writer

    def defaults(self) -> JsonDict:
        """Defaults of the namespace, of which some may not be there."""
        draw = Draw(self._seed, "defaults")
        found = draw.fields(0.5, {
            "sparkConf": lambda: draw.map(SPARK, 3), "startDeadlineSeconds": (30, 600),
            "podHistory.ttlSecondsAfterFinished": (0, 60),
        })  # fmt: skip
        for part, container in (("driver", "driver"), ("executors", "executor")):
            if draw.chance(0.5):
                settings = pods(draw, container)
                found[part] = settings if draw.odd(0.3) else _parts(settings, FIELDS[part])
        found = json.loads(json.dumps(found))
        if found.get("sparkConf") and draw.chance(0.2):
            draw.spoil(found)
        if found and draw.chance(0.2):
            draw.displace(found)
        return found

    # ---- the table

    def _table(self) -> JsonDict:
        draw = Draw(self._seed, "table")
        refs: list[JsonDict] = [{"name": draw.some(SECRETS, 1), "as": "S3"}]
        if draw.chance(0.3):
            refs.append({"name": "more", "as": "Env", "prefix": draw.some(PREFIXES, 2)})
        if draw.chance(0.1):
            refs.append({"name": draw.some(("keys", *SECRETS[2:]), 1), "as": "Files"})
        table: JsonDict = {
            "path": draw.one(PATHS) if draw.odd(0.15) else draw.one((f"{PREFIX}/flights", f"{PREFIX}/a=b/c")),
            "recordKeyFields": draw.one((["id"], ["a", "b"], ["Straße", "b.c"])),
            "partitionFields": draw.one(([], ["day"])),
            "storage": {"secretRefs": refs, "options": draw.map(STORAGE, 2)},
            "hudiOptions": draw.map(HUDI, 2),
        }
        table |= draw.fields(0.07, {
            "tableName": ("flights_1",),
            "image": lambda: draw.some(IMAGES, 2),
            "imagePullSecrets": lambda: [{"name": draw.some(SECRETS, 2)}],
            "hudiVersion": ("1.2.0",),
            "orderingFields": (["ts"], ["a", "ts"]),
            "hiveStylePartitioning": (True, False),
            "schema": ({"missingColumns": "Null"}, {"missingColumns": "Refuse"}),
            "suspend": (True, False),
        })  # fmt: skip
        if draw.chance(0.05):
            table["storage"]["serviceAccountName"] = draw.some(ACCOUNTS, 2)
        self._layout(table)
        self._beginning(table)
        self._protocol(table)
        table |= self._services(table)
        draw = Draw(self._seed, "callback")
        if draw.chance(0.15):
            more = draw.fields(0.5, {
                "secretRef.name": lambda: draw.some(SECRETS, 2), "timeoutSeconds": (1, 60),
                "tableServices": (True, False),
            })  # fmt: skip
            table["commitCallback"] = {"url": draw.one(URLS if draw.odd(0.3) else URLS[:3]), **more}
        draw = Draw(self._seed, "catalog")
        if draw.chance(0.1):
            uris = [draw.one(THRIFT if draw.odd(0.3) else THRIFT[:3]) for _ in range(draw.one((1, 2)))]
            more = draw.fields(0.3, {
                "database": ("lake", "a.b") if draw.odd(0.3) else ("lake",),
                "table": ("flights",), "timeoutSeconds": (5, 600), "onDelete": ("Keep", "Drop"),
            })  # fmt: skip
            glue = {"region": draw.one(REGIONS if draw.odd(0.3) else REGIONS[:2])}
            glue |= draw.fields(0.5, {"account": ("123456789012", "1") if draw.odd(0.3) else ("123456789012",)})
            table["catalog"] = {**draw.one(({"hiveMetastore": {"uris": uris}}, {"glue": glue})), **more}
        draw = Draw(self._seed, "agent")
        if draw.chance(0.2):
            table["agent"] = pods(draw, "agent")
            if draw.chance(0.5):
                table["agent"]["executors"] = {**pods(draw, "executor"), "instances": draw.one((0, 1, 2))}
        return table

    def _layout(self, table: JsonDict) -> None:
        draw = Draw(self._seed, "layout")
        if draw.chance(0.1):
            table["index"] = draw.one(({"type": "Bucket", "buckets": 8}, {"type": "Bloom"}, {"type": "Simple"}))
        if draw.chance(0.1):
            table["type"] = draw.one(("CopyOnWrite", "MergeOnRead"))
        if draw.chance(0.1):
            table["merge"] = draw.one(({"mode": "CommitTime"}, {"mode": "CommitTime", "partialUpdates": "IgnoreNulls"}))
        elif draw.chance(0.05):
            custom = {"strategyId": "5a1e7e0e-0000-4000-8000-000000000001", "className": "com.example.Newest$Of"}
            table |= {"merge": {"mode": "Custom", "custom": custom}, "image": "registry/spark:1"}
        if draw.chance(0.1):
            table["metadataTable"] = draw.fields(0.6, {
                "enabled": (True, False), "indexes": ([], ["ColumnStats"]), "rebuild": ("1", "2026-01-01T00:00"),
            })  # fmt: skip

    def _beginning(self, table: JsonDict) -> None:
        draw = Draw(self._seed, "beginning")
        if draw.chance(0.1):
            table["adoption"] = draw.fields(0.6, {
                "policy": ("AdoptOrCreate", "Create", "Adopt"), "rollbackInstants": (["20260101000000000"], []),
            })  # fmt: skip
        if draw.chance(0.1):
            path = draw.one(PATHS) if draw.odd(0.3) else draw.one((f"{PREFIX}/raw", f"{PREFIX}/raw/2026"))
            table["bootstrap"] = {"source": {"path": path, "format": "Parquet"}}
            table["bootstrap"] |= draw.fields(0.3, {"mode": ("FullRecord", "FullRecord", "MetadataOnly")})
        draw_hold = Draw(self._seed, "held")
        if draw_hold.chance(0.1):
            table["holds"] = [
                {"name": name, **draw_hold.fields(0.4, {
                    "instant": ("20260101000000000", "20260101000000"), "durationSeconds": (60, 604_800),
                    "reader": ("nightly export", "Jörg"),
                })}
                for name in draw_hold.one((["a"], ["b-1", "c"]))
            ]  # fmt: skip
        if draw.chance(0.1):
            table["savepoints"] = [{"name": name} for name in draw.one((["a"], ["before-x", "b"]))]
        if table.get("savepoints", [{}])[0].get("name") == "a" and draw.chance(0.5):
            table["restore"] = {"savepoint": "a", "nonce": draw.one(("1", "x:2"))}
        elif "savepoints" in table and Draw(self._seed, "deleted savepoint").chance(0.4):
            table["savepoints"][-1]["deleteInstant"] = "20260101000000000"

    def _protocol(self, table: JsonDict) -> None:
        draw = Draw(self._seed, "protocol")
        concurrency = draw.fields(0.04, {
            "mode": ("SingleWriter", "Optimistic"), "maxWriters": (1, 2), "changeTimeoutSeconds": (10, 604800),
            "admission": ("Always", "DisjointPartitions"), "serializeAfterConflicts": (0, 20),
            "earlyConflictDetection": (True, False), "insertConflicts": ("Key", "Partition", "Ignore"),
        })  # fmt: skip
        lock = draw.fields(0.04, {
            "leaseSeconds": (10, 12), "keepAliveSeconds": (1, 3), "rpcTimeoutSeconds": (1, 3),
            "silenceSeconds": (60, 3600), "suspectSeconds": (0, 5), "maxHoldSeconds": (10, 600),
            "maxClockSkewSeconds": (1, 60),
        })  # fmt: skip
        fencing = draw.fields(0.04, {
            "mode": ("PodTermination", "LeaseOnly"), "drainSeconds": (1, 10), "trustNodeDeletion": (True, False),
            "trustOutOfServiceTaint": (True, False),
            "attestations": lambda: [{
                "podUID": "5a1e7e0e-0000-4000-8000-000000000001", "node": "n1",
                "statement": draw.text("pulled the plug"), "attestedBy": draw.text("ann"), "at": "2026-01-01T00:00:00Z",
            }],
        })  # fmt: skip
        if draw.chance(0.05):
            fencing["mode"] = "Credentials"
            table["storage"] = {"secretRefs": [{"name": "creds", "as": "S3"}], "options": {"fs.s3a.endpoint": ENDPOINT}}
        for name, found in (("concurrency", concurrency), ("lock", lock), ("fencing", fencing)):
            table |= {name: found} if found else {}

    def _services(self, table: JsonDict) -> JsonDict:
        draw = Draw(self._seed, "services")
        if not draw.chance(0.2):
            return {}
        own: dict[str, JsonDict] = {
            "clean": draw.fields(0.3, draw.one((
                {"retainCommits": (1, 10)}, {"retainSeconds": (3600,)}, {"retainFileVersions": (1,)},
            ))),
            "archive": draw.one(({}, {"minCommitsToKeep": 21, "maxCommitsToKeep": 40})),
            "compaction": {} if table.get("type") == "MergeOnRead" else {"enabled": False},
            "clustering": draw.fields(0.3, {
                "smallFileSize": ("1Mi",), "targetFileSize": ("2Gi",), "sortColumns": (["a"], ["a", "Straße"]),
                "layout": ("Linear", "ZOrder", "Hilbert"), "partitionPattern": lambda: draw.some(PATTERNS, 2),
                "skipNewestPartitions": (1, 2),
            }),
            "ttl": {"retainSeconds": 86400, **draw.fields(0.4, {
                "since": ("LastWrite", "Creation"), "partitionPattern": lambda: draw.some(PATTERNS, 2),
                "maxPartitionsPerRun": (1, 1000),
            })},
        }  # fmt: skip
        found: JsonDict = {}
        for name, section in own.items():
            if (name == "ttl" and not table["partitionFields"]) or not draw.chance(0.4):
                continue
            found[name] = draw.fields(0.3, {
                "enabled": (True, False), "afterCommits": (1, 100), "schedule": self._schedule,
                "window": lambda: {**self._schedule(), "durationSeconds": draw.one((60, 3600))},
            }) | section  # fmt: skip
            found[name] |= Draw(self._seed, f"run {name}").fields(0.1, {"runNonce": ("1", "a:b")})
        return {"services": found}

    def _schedule(self) -> JsonDict:
        draw = Draw(self._seed, "schedule")
        return {"cron": draw.some(CRONS, 2), **({"timeZone": draw.some(ZONES, 2)} if draw.chance(0.5) else {})}

    # ---- the writer

    def _writer(self, table: JsonDict) -> JsonDict:
        draw = Draw(self._seed, "writer")
        driver, executors = Draw(self._seed, "driver"), Draw(self._seed, "executors")
        writer: JsonDict = {
            "tableRef": {"name": "flights"},
            "source": self._source(),
            "driver": pods(driver, "driver"),
            "executors": {**pods(executors, "executor"), "instances": executors.one((0, 0, 0, 0, 2))},
            "sparkConf": draw.map(SPARK, 2),
            "hudiOptions": draw.map(HUDI, 2),
        }
        if draw.chance(0.3):
            writer["transform"] = {"sql": draw.text("SELECT * FROM source")}
        writer |= draw.fields(0.05, {
            "operation": ("Upsert", "Insert", "BulkInsert", "Delete", "InsertOverwrite"),
            "image": lambda: draw.some(IMAGES, 2), "imagePullSecrets": lambda: [{"name": draw.some(SECRETS, 2)}],
            "serviceAccountName": lambda: draw.some(ACCOUNTS, 2), "priority": (-1000, 0, 1000),
            "activeDeadlineSeconds": (60, 31_536_000), "startDeadlineSeconds": (30, 86400),
            "stop": ({"graceSeconds": 1}, {"graceSeconds": 3600}), "restartNonce": ("1", "a:b"),
            "suspend": (True, False), "retryPolicy": self._retries,
            "podHistory": lambda: draw.fields(0.7, {"limit": (0, 10), "ttlSecondsAfterFinished": (0, 60)}),
        })  # fmt: skip
        if writer.get("operation", "").endswith("nsert") and draw.chance(0.5):
            writer["duplicates"] = draw.one(("Fail", "Drop", "Allow"))
        if writer.get("operation") == "InsertOverwrite" and draw.chance(0.5):
            writer["overwrite"] = draw.one(({}, {"scope": "Table"}, {"scope": "Table", "ifEmpty": "Truncate"}))
        writer |= self._validations()
        writer |= Draw(self._seed, "deadlines").fields(0.05, {
            "readyDeadlineSeconds": (30, 86400), "commitDeadlineSeconds": (60, 31_536_000),
        })  # fmt: skip
        if table["partitionFields"] and draw.chance(0.1):
            writer["partitions"] = draw.one((["2026-*"], ["day=2026-01-01", "*"], [draw.text("a")]))
        if draw.chance(0.05):
            writer["schedule"] = {**self._schedule(), **draw.fields(0.5, {"startingDeadlineSeconds": (10, 60)})}
        elif draw.chance(0.05) and not {"sql", "python"} & writer["source"].keys():
            writer["streaming"] = draw.fields(0.8, {"intervalSeconds": (1, 60)})
            writer |= Draw(self._seed, "deadline of a stream").fields(0.5, {"commitDeadlineSeconds": (60, 3600)})
        if draw.chance(0.08):
            for name in (
                "source", "transform", "operation", "overwrite", "duplicates", "validations", "partitions", "streaming",
                "commitDeadlineSeconds",
            ):  # fmt: skip
                writer.pop(name, None)
            program: JsonDict = {"configMapKeyRef": {"name": "code", "key": "a.py"}}
            if draw.chance(0.6):
                program = {"mainFile": draw.one(PROGRAMS if draw.odd(0.3) else PROGRAMS[:1])}
            writer["application"] = program | draw.fields(0.7, {"arguments": lambda: ["--x", draw.text("a")]})
        self._programs(writer)
        return writer

    def _programs(self, writer: JsonDict) -> None:
        """Other kinds of programs, and what code brings along."""
        draw = Draw(self._seed, "programs")

        def artifact(*endings: str) -> str:
            return str(draw.one(ARTIFACTS if draw.odd(0.2) else ARTIFACTS[:3])) + str(draw.one(endings))

        if writer.get("application") and draw.chance(0.6):
            arguments = {key: value for key, value in writer["application"].items() if key == "arguments"}
            jvm = {
                "mainClass": draw.one(CLASSES if draw.odd(0.2) else CLASSES[:2]),
                "file": artifact(".jar", *([".zip"] if draw.odd(0.1) else [])),
            }
            module = {"module": draw.one(MODULES if draw.odd(0.2) else MODULES[:2])}
            writer["application"] = draw.one((jvm, jvm, module)) | arguments
        if (writer.get("application") or (writer.get("source") or {}).get("python")) and draw.chance(0.3):
            packages = lambda: [draw.one(PACKAGES if draw.odd(0.2) else PACKAGES[:2])]  # noqa: E731
            writer["deps"] = draw.fields(0.5, {
                "jars": lambda: [artifact("-j.jar")], "files": lambda: [artifact("", ".txt", "-f.conf")],
                "pyFiles": lambda: [artifact("-p.py", "-p.zip", "-p-none-any.whl", "-p-cp311.whl")],
                "packages": packages,
            })  # fmt: skip
            if "packages" in writer["deps"] and draw.chance(0.5):
                writer["deps"]["excludePackages"] = [draw.one(("a:b", "a:b:1", "a,b:c"))]

    def _validations(self) -> JsonDict:
        draw = Draw(self._seed, "validations")
        kinds: tuple[JsonDict, ...] = (
            {"sql": draw.text("SELECT * FROM batch"), "expect": "Empty"},
            {"sql": draw.text("SELECT count(*) FROM table"), "equals": draw.text("0")},
            {"minRows": 1}, {"maxRows": 10**12}, {"minRows": 2, "maxRows": draw.one((1, 2))},
            {"notNull": ["id", draw.one(("a.b", draw.text("c")))]},
        )  # fmt: skip
        if not draw.chance(0.1):
            return {}
        return {"validations": [{"name": f"v{n}", **draw.one(kinds)} for n in range(draw.one((1, 2)))]}

    def _retries(self) -> JsonDict:
        draw = Draw(self._seed, "retries")
        return draw.fields(0.6, {
            "limit": (0, 20), "backoffSeconds": (1, 10), "maxBackoffSeconds": (300, 86400),
            "writeConflict.inProcess": (0, 20), "classLimits": ([{"class": "Eviction", "limit": 20}], []),
            "outOfMemory": (
                {"maxMemory": "4Gi"}, {"maxMemory": "2048Mi", "increasePercent": 100}, {"maxExecutorMemory": "3Gi"},
                {"maxMemory": "2Gi", "maxExecutorMemory": "512Mi", "increasePercent": 10}, {"increasePercent": 50},
            ),
        })  # fmt: skip

    def _source(self) -> JsonDict:
        draw = Draw(self._seed, "source")
        files: JsonDict = {"format": "csv", "paths": [draw.some(PATHS, 3)], "options": draw.map(READER, 3)}
        view: JsonDict = {"name": "v", "files": {"format": "json", "paths": [draw.some(PATHS, 3)]}}
        if draw.chance(0.1):
            view["files"]["options"] = draw.map(READER, 3)
        views = [view]
        if draw.chance(0.2):
            views.append({"name": "w", "hudi": draw.one(({"tableRef": {"name": SOURCE}}, {"path": draw.one(PATHS)}))})
        code = {"configMapKeyRef": {"name": "code", "key": "a.py"}, "function": "f"}
        found: JsonDict = draw.one((
            {"files": files | draw.fields(0.1, {"maxFilesPerCommit": (1, 100)})},
            {"sql": {"query": draw.text("SELECT * FROM v"), "views": views}},
            {"python": {**code, "arguments": {"x": draw.text("y")}}},
            {"kafka": self._kafka()},
            {"hudi": self._hudi()},
        ))  # fmt: skip
        draw = Draw(self._seed, "jdbc source")
        return {"jdbc": self._jdbc(draw)} if draw.chance(0.12) else found

    def _jdbc(self, draw: Draw) -> JsonDict:
        read: JsonDict = {"table": draw.some(TABLES, 2)}
        if draw.chance(0.5):
            read = {"query": draw.some(QUERIES, 3) if draw.chance(0.7) else draw.text("SELECT a FROM t")}
        server = {
            "engine": draw.one(("PostgreSQL", "MariaDB")), "host": draw.some(HOSTS, 3),
            "database": draw.some(DATABASES, 2), "secretRef": {"name": draw.some(SECRETS, 2)},
        }  # fmt: skip
        more = draw.fields(0.3, {
            "port": (1, 5433, 65535), "fetchSize": (1, 1000), "tls": ("Verify", "Off"),
            "incremental": lambda: {"column": draw.some(COLUMNS, 2), **draw.fields(0.4, {
                "startFrom": ("Earliest", "Latest", "-1.5", "2026-01-31", "2026-01-31T23:59:59.5Z", "2026-02-30"),
                "lag": (0, 60), "maxRowsPerCommit": (1, 1000),
            })},
            "partitioning": lambda: {"column": draw.some(COLUMNS, 2), "partitions": draw.one((2, 256))},
        })  # fmt: skip
        return {**server, **read, **more}

    def _hudi(self) -> JsonDict:
        draw = Draw(self._seed, "hudi")
        named = draw.one(({"tableRef": {"name": SOURCE}}, {"path": draw.one((f"{PREFIX}/planes", draw.one(PATHS)))}))
        more = draw.fields(0.2, {
            "startFrom": ("Earliest", "Latest", "20260101000000000"),
            "order": ("CompletionTime", "Fenced", "OutOfOrder"),
            "maxCommitsPerBatch": (1, 100), "ifPositionLost": ("Fail", "Snapshot"), "deletes": ("Ignore", "Carry"),
        })  # fmt: skip
        return {**named, **more}

    def _kafka(self) -> JsonDict:
        draw = Draw(self._seed, "kafka")
        topics: JsonDict = {"topics": draw.one((["t"], ["a.b", "c_d"]))}
        if draw.chance(0.2):
            topics = {"topicPattern": draw.one(("t.*", "a|b", "("))}
        more = draw.fields(0.2, {
            "startFrom": ("Earliest", "Latest", "2026-01-31T23:59:59Z"), "maxOffsetsPerCommit": (1, 1000),
            "ifPositionLost": ("Fail", "Earliest"), "options": lambda: draw.map(KAFKA, 3),
            "security": lambda: {**draw.one((
                {"protocol": "PLAINTEXT"}, {"protocol": "SSL"}, {"protocol": "SASL_SSL", "mechanism": "PLAIN"},
                {"protocol": "SASL_PLAINTEXT", "mechanism": "SCRAM-SHA-256"},
            )), **draw.fields(0.6, {"secretRef.name": lambda: draw.some(SECRETS, 2)})},
        })  # fmt: skip
        value = draw.one(({"format": "String"}, {"format": "Binary"}, {"format": "Json", "schema": draw.text("a INT")}))
        value |= draw.fields(0.2, {"metadataColumns": (True, False)})
        asked = Draw(self._seed, "registry")
        if value["format"] == "Json" or asked.odd(0.1):
            value |= asked.fields(0.3, {"registry": lambda: {
                "url": asked.some(REGISTRIES, 3),
                **asked.fields(0.5, {"secretRef.name": lambda: asked.some(SECRETS, 2)}),
            }})  # fmt: skip
        bad = Draw(self._seed, "bad records")
        more |= bad.fields(0.2, {"onBadRecord": lambda: {
            "action": bad.one(("Fail", "Drop", "SetAside")), **bad.fields(0.5, {"maxPerCommit": (1, 10_000)}),
        }})  # fmt: skip
        return {"bootstrapServers": draw.one((["b:9092"], ["[fd00::1]:9092", "b:9"])), **topics, "value": value, **more}

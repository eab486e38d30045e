"""The writer's source: files, topics of Kafka, another Hudi table, a database.

Below it are `work`, `avro`, `jdbc`, the paths of `table`, the records of `given` and the lists of
`hudi_contract`; it uses nothing else.
"""

from __future__ import annotations

import re

from hudi_contract import allowed_options as allowed
from hudi_contract.secret_names import is_secret
from hudi_kubectl.streamer import avro, jdbc
from hudi_kubectl.streamer.given import WRITER, JsonDict, Needed, Option
from hudi_kubectl.streamer.table import path_of
from hudi_kubectl.streamer.work import Work

_S = "hoodie.streamer."
_FILES = {
    "JsonDFSSource": "json",
    "CsvDFSSource": "csv",
    "ParquetDFSSource": "parquet",
    "ORCDFSSource": "orc",
    "AvroDFSSource": "avro",
}
_REGISTRY = (
    "the schemas of a registry are not in the job, and are not asked for",
    "write source.kafka with value.registry and the schema of the columns (docs/use/sources.md)",
)
_UNREAD = {
    "AvroKafkaSource": _REGISTRY,
    "ProtoKafkaSource": ("Protobuf is not read here", "read it with a program of your own (spec.application)"),
    "SqlSource": (
        "SQL reads no tables of a catalog here",
        "write source.sql with a view for each table (docs/use/sources.md)",
    ),
    "SqlFileBasedSource": (
        "SQL reads no tables of a catalog here",
        "write source.sql with a view for each table (docs/use/sources.md)",
    ),
    "S3EventsSource": ("there is no source for events of a store", "use source.files: it lists the folder"),
    "S3EventsHoodieIncrSource": ("there is no source for events of a store", "use source.files: it lists the folder"),
    "GcsEventsSource": ("there is no source for events of a store", "use source.files: it lists the folder"),
    "GcsEventsHoodieIncrSource": ("there is no source for events of a store", "use source.files: it lists the folder"),
    "MysqlDebeziumSource": ("changes of Debezium are not read here", "flatten them before, or use a program"),
    "PostgresDebeziumSource": ("changes of Debezium are not read here", "flatten them before, or use a program"),
    "PulsarSource": ("Pulsar is not read here", "bring the rows to Kafka or to files"),
    "KinesisSource": ("Kinesis is not read here", "bring the rows to Kafka or to files"),
    "JsonKinesisSource": ("Kinesis is not read here", "bring the rows to Kafka or to files"),
    "HiveIncrPullSource": ("there is no incremental pull by Hive here", "use source.hudi on the table itself"),
}
_NO_FILE = "copy it here and name its folder with --files"
_GIVEN_SCHEMA = f"{_S}schemaprovider.source.schema.file"
_TARGET_SCHEMA = f"{_S}schemaprovider.target.schema.file"
_AT = "HudiWriter spec.source."
_VALUE = r"-?[0-9]{1,38}([.][0-9]{1,38})?|[0-9]{4}-[0-9]{2}-[0-9]{2}"
"""A checkpoint of JdbcSource that has one meaning: a time has none without its zone."""


def translate(work: Work) -> None:
    """`source` of the HudiWriter."""
    option = work.flag("--source-class")
    name = "JsonDFSSource" if option is None else option.value.rpartition(".")[2]
    if name in _FILES:
        _files(work, _FILES[name])
        work.to(option, f"{_AT}files.format")
    elif name == "JsonKafkaSource":
        _kafka(work)
        work.to(option, f"{_AT}kafka.value.format")
    elif name == "HoodieIncrSource":
        _hudi(work)
        work.to(option, f"{_AT}hudi")
    elif name == "JdbcSource":
        jdbc.translate(work)
        work.to(option, f"{_AT}jdbc")
    else:
        reason = _UNREAD.get(name, ("a source of your own", "read it with a Python source or a program of your own"))
        work.missing(option, *reason, WRITER)
        for each in (*work.below(f"{_S}source."), *_foreign(work)):
            work.missing(each, "belongs to a source that is not read here", "see --source-class")
    for each in (*work.below(f"{_S}source.hoodieincr."), *work.below(f"{_S}source.dfs.")):
        work.unneeded(each, f"{name} does not use it")
    for each in work.below(f"{_S}jdbc."):
        work.unneeded(each, f"{name} does not use it")
    for each in (*work.below(f"{_S}source.kafka."), *work.below(f"{_S}kafka.source."), *work.below(f"{_S}csv.")):
        work.unneeded(each, f"{name} does not use it")
    for each in _foreign(work):
        work.unneeded(each, f"a property of Kafka's consumer; {name} does not use it")
    _checkpoints(work, name)


def _foreign(work: Work) -> list[Option]:
    """Properties that HoodieStreamer hands on to Kafka's consumer."""
    return [each for each in work.below("") if not each.name.startswith(("hoodie.", "spark.", "fs."))]


def _checkpoints(work: Work, name: str) -> None:
    checkpoint = work.flag("--checkpoint")
    if checkpoint is not None and name == "HoodieIncrSource":
        found = re.fullmatch("resumeFromInstantCompletionTime: *([0-9]{17})", checkpoint.value)
        if found is not None and "hudi" in work.writer.get("source", {}):
            work.writer["source"]["hudi"]["startFrom"] = found[1]
            work.to(checkpoint, f"{_AT}hudi.startFrom")
    new = work.writer.get("source", {}).get("jdbc", {}).get("incremental")
    if checkpoint is not None and new is not None and re.fullmatch(_VALUE, checkpoint.value):
        new["startFrom"] = checkpoint.value
        work.to(checkpoint, f"{_AT}jdbc.incremental.startFrom")
    hints = {
        "JsonKafkaSource": "set source.kafka.startFrom to the time from which records are read",
        "JdbcSource": "set source.jdbc.incremental.startFrom to the value of the checkpoint",
    }
    hint = hints.get(name, "an Upsert may read all of it once more")
    work.missing(checkpoint, "a writer has its own progress, and no checkpoints of HoodieStreamer", hint)
    work.missing(
        work.flag("--initial-checkpoint-provider"),
        "a writer has its own progress, and no checkpoints of HoodieStreamer",
        hint,
    )
    work.unneeded(work.flag("--ignore-checkpoint"), "a writer does not read HoodieStreamer's checkpoints")
    for each in work.below(f"{_S}checkpoint."):
        work.missing(each, "a writer has its own progress, and no checkpoints of HoodieStreamer", hint)


# ---- files


def _files(work: Work, kind: str) -> None:
    root = work.prop(f"{_S}source.dfs.root")
    files: JsonDict = {"format": kind}
    if root is None:
        work.not_given(f"{_S}source.dfs.root", "the folder of the files is not known", "give it", WRITER)
    elif found := path_of(work, root, pattern=True):
        files["paths"] = [found]
        work.to(root, f"{_AT}files.paths")
    options = {"recursiveFileLookup": "true"}
    known = {name.lower(): name for name in allowed.READER_OPTIONS}
    for option in work.below(f"{_S}csv."):
        name = option.name.rpartition(".csv.")[2]
        if kind != "csv":
            work.unneeded(option, "the files are not csv")
        elif name.lower() in known and len(options) < 32:
            options[known[name.lower()]] = option.value
            work.to(option, f"{_AT}files.options.{known[name.lower()]}")
        else:
            work.missing(option, "not an option of Spark's readers that may be set", "prepare the files otherwise")
    described = _schema_of_files(work, kind)
    if kind == "csv" and not described:
        options.setdefault("inferSchema", "true")
    files["options"] = options
    work.writer["source"] = {"files": files}
    work.choose(
        f"{_S}source.input.selector",
        ("org.apache.hudi.utilities.sources.helpers.dfspathselector",),
        "the files of the folder are listed here as well",
        ("a selector of files of your own", "name the folders in source.files.paths, patterns may be used"),
    )
    limit = work.flag("--source-limit")
    work.missing(limit, "a commit has a number of files, not of bytes", "set source.files.maxFilesPerCommit")
    for each in work.below(f"{_S}source.dfs."):
        work.missing(each, "files are not chosen by dates in folders", "name the folders in source.files.paths")
    work.notes.append(
        "A file is read once, by its name, size and time, in folders below the path as well; folders such as "
        "day=2026-01-31 are no columns (recursiveFileLookup), as with HoodieStreamer."
    )


def _schema_of_files(work: Work, kind: str) -> bool:
    """Whether the job has a schema for the files; its effect on them is reported as missing."""
    provider = work.flag("--schemaprovider-class")
    if provider is None:
        for each in work.below(f"{_S}schemaprovider."):
            work.unneeded(each, "no --schemaprovider-class is given")
        return False
    said = "numbers and texts as they are written" if kind == "json" else "the files' own columns and types"
    cast = ""
    source = work.prop(_GIVEN_SCHEMA)
    text = None if source is None else work.places.text(source.value)
    if text is not None:
        try:
            cast = f": {_casts(avro.columns(text)[0])}"
        except avro.Unsaid as error:
            cast = f" ({error})"
    for each in (provider, *work.below(f"{_S}schemaprovider.")):
        work.missing(
            each,
            f"source.files has no schema: Spark reads {said}",
            f"compare the types, and convert columns in transform.sql{cast if each is source else ''}",
        )
    return True


def _casts(columns: str) -> str:
    depth, at, found = 0, 0, []
    for place, letter in enumerate(f"{columns},"):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            name, _, kind = columns[at:place].strip().partition(" ")
            found.append(f"CAST({name} AS {kind}) AS {name}")
            at = place + 1
    return " ".join(("SELECT", ", ".join(found), "FROM source"))


# ---- Kafka


def _kafka(work: Work) -> None:
    kafka: JsonDict = {}
    _brokers(work, kafka)
    _offsets(work, kafka)
    _value(work, kafka)
    _security(work, kafka)
    _consumer(work, kafka)
    work.writer["source"] = {"kafka": kafka}


def _brokers(work: Work, kafka: JsonDict) -> None:
    servers, topic = work.prop("bootstrap.servers"), work.prop(f"{_S}source.kafka.topic")
    if servers is None:
        work.not_given("bootstrap.servers", "the brokers are not known", "give HOST:PORT", WRITER)
    else:
        named = [each.strip() for each in servers.value.split(",") if each.strip()]
        fits = r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\]):[0-9]{1,5}"
        if named and len(named) <= 16 and all(re.fullmatch(fits, each) for each in named):
            kafka["bootstrapServers"] = named
            work.to(servers, f"{_AT}kafka.bootstrapServers")
        else:
            work.missing(servers, "1 to 16 of HOST:PORT", "correct the value", WRITER)
    if topic is None:
        work.not_given(f"{_S}source.kafka.topic", "the topic is not known", "give it", WRITER)
    elif re.fullmatch("[A-Za-z0-9._-]{1,249}", topic.value):
        kafka["topics"] = [topic.value]
        work.to(topic, f"{_AT}kafka.topics")
    else:
        work.missing(topic, "one topic: letters, digits, . _ and -", "correct the value", WRITER)


def _offsets(work: Work, kafka: JsonDict) -> None:
    reset = work.prop("auto.offset.reset")
    starts = {"earliest": "Earliest", "latest": "Latest"}
    kafka["startFrom"] = starts.get("latest" if reset is None else reset.value.lower(), "Latest")
    if reset is None:
        work.notes.append("source.kafka.startFrom is Latest: HoodieStreamer's default without auto.offset.reset.")
    elif reset.value.lower() in starts:
        work.to(reset, f"{_AT}kafka.startFrom")
    else:
        work.missing(reset, "no consumer group is used", "give earliest or latest, or set startFrom to a time", WRITER)
    limit, events = work.flag("--source-limit"), work.prop(f"{_S}kafka.source.maxEvents")
    kafka["maxOffsetsPerCommit"] = 5_000_000
    most = limit or events
    at = f"{_AT}kafka.maxOffsetsPerCommit"
    work.number(most, at, 1, 1_000_000_000, lambda count: kafka.update(maxOffsetsPerCommit=count))
    work.unneeded(events, "--source-limit counts")
    if most is None:
        work.notes.append("source.kafka.maxOffsetsPerCommit is 5000000: HoodieStreamer's default.")
    lost = work.prop(f"{_S}source.kafka.enable.failOnDataLoss")
    if lost is None:
        work.notes.append(
            "source.kafka.ifPositionLost is Fail, the default here: HoodieStreamer reads on with what is left "
            "(Earliest), and says so in its log alone."
        )
    else:
        kafka["ifPositionLost"] = "Fail" if lost.value.lower() == "true" else "Earliest"
        work.to(lost, f"{_AT}kafka.ifPositionLost")


def _value(work: Work, kafka: JsonDict) -> None:
    """`value`: the columns of the JSON are those of the source's schema."""
    provider, file = work.flag("--schemaprovider-class"), work.prop(_GIVEN_SCHEMA)
    named = "" if provider is None else provider.value.rpartition(".")[2]
    deserializer = work.prop(f"{_S}source.kafka.value.deserializer.class")
    work.unneeded(deserializer, "only AvroKafkaSource uses it")
    if named != "FilebasedSchemaProvider":
        reason = (
            "columns of JSON are declared here, and the job has no schema"
            if provider is None
            else f"columns of JSON are declared here, and {named} is not asked"
        )
        instead = (
            "give --schemaprovider-class FilebasedSchemaProvider and an Avro schema of the values: "
            f"--hoodie-conf {_GIVEN_SCHEMA}=FILE"
        )
        if provider is None:
            work.not_given("--schemaprovider-class", reason, instead, WRITER)
        work.missing(provider, reason, instead, WRITER if provider is not None else "")
        for each in work.below(f"{_S}schemaprovider."):
            if provider is None:
                work.unneeded(each, "no --schemaprovider-class is given")
            else:
                work.missing(each, f"{named} is not asked", instead)
        return
    if file is None:
        work.not_given(_GIVEN_SCHEMA, "the columns of the values are not known", "name an Avro schema", WRITER)
        return
    text = work.places.text(file.value)
    if text is None:
        work.missing(file, "no such file here", _NO_FILE, WRITER)
        work.to(provider, f"{_AT}kafka.value.schema")
        return
    _declared(work, kafka, file, text)
    work.to(provider, f"{_AT}kafka.value.schema")


def _declared(work: Work, kafka: JsonDict, file: Option, text: str) -> None:
    try:
        columns, defaults = avro.columns(text)
    except avro.Unsaid as error:
        work.missing(file, str(error), "correct a copy of the schema, and name its folder with --files", WRITER)
        return
    if len(columns) > 65_536:
        work.missing(file, "the columns have more than 65536 characters", "read fewer columns", WRITER)
        return
    kafka["value"] = {"format": "Json", "schema": columns}
    if defaults:
        work.missing(
            file,
            f"columns with default values ({', '.join(defaults)}): a field that a value lacks is null here",
            "use coalesce in transform.sql, or take the defaults out of the schema",
        )
    work.to(file, f"{_AT}kafka.value.schema")
    target = work.prop(_TARGET_SCHEMA)
    if target is not None:
        theirs = work.places.text(target.value)
        if target.value == file.value or theirs == text:
            work.unneeded(target, "it is that of the source")
        else:
            work.missing(target, "a table has the columns that its writers give it", "convert columns in transform.sql")


_SASL = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def _security(work: Work, kafka: JsonDict) -> None:
    option = work.prop("security.protocol")
    protocol = "PLAINTEXT" if option is None else option.value.upper()
    family = [*work.below("sasl."), *work.below("ssl.")]
    if protocol == "PLAINTEXT":
        work.unneeded(option, "the default here as well")
        for each in family:
            work.unneeded(each, "protocol PLAINTEXT does not use it")
        return
    if protocol not in ("SSL", "SASL_PLAINTEXT", "SASL_SSL"):
        work.missing(option, "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL", "correct the value", WRITER)
        return
    security: JsonDict = {"protocol": protocol}
    at = f"{_AT}kafka.security"
    work.to(option, f"{at}.protocol")
    keys: list[str] = []
    if protocol.startswith("SASL"):
        keys += _sasl(work, security, at)
    if protocol.endswith("SSL"):
        keys += _tls(work, at)
    if keys:
        name = f"{work.writer_name[:57]}-kafka"
        security["secretRef"] = {"name": name}
        work.needed.append(Needed("Secret", name, tuple(dict.fromkeys(keys))))
    for each in (*work.below("sasl."), *work.below("ssl.")):
        work.missing(each, "connections have no such setting here", "see source.kafka.security")
    kafka["security"] = security


def _sasl(work: Work, security: JsonDict, at: str) -> list[str]:
    mechanism = work.prop("sasl.mechanism")
    if mechanism is None or mechanism.value.upper() not in _SASL:
        if mechanism is None:
            work.not_given("sasl.mechanism", "Kafka's default, GSSAPI, is not used here", ", ".join(_SASL), WRITER)
        work.missing(
            mechanism,
            f"one of {', '.join(_SASL)}",
            "have the brokers accept one of them for the user of this writer",
            WRITER if mechanism is not None else "",
        )
        return ["username", "password"]
    security["mechanism"] = mechanism.value.upper()
    work.to(mechanism, f"{at}.mechanism")
    secret = f"{at}.secretRef"
    work.to(work.prop("sasl.jaas.config"), secret, "its user and password go into the Secret, by your hand")
    return ["username: the user of the brokers", "password: that user's password"]


def _tls(work: Work, at: str) -> list[str]:
    secret, keys = f"{at}.secretRef", []
    if work.prop("ssl.truststore.location") is not None or work.prop("ssl.truststore.certificates") is not None:
        keys.append("ca.crt: the authorities of the trust store, as PEM")
    if work.prop("ssl.keystore.location") is not None or work.prop("ssl.keystore.key") is not None:
        keys += ["tls.crt: the client certificate, as PEM", "tls.key: its key, PKCS 8 as PEM, without a password"]
    for name in ("truststore.location", "truststore.certificates"):
        work.to(work.prop(f"ssl.{name}"), secret, "its authorities go into the Secret, as ca.crt")
    for name in ("keystore.location", "keystore.key", "keystore.certificate.chain"):
        work.to(work.prop(f"ssl.{name}"), secret, "key and certificate go into the Secret, as tls.key and tls.crt")
    for name in ("truststore.password", "truststore.type", "keystore.password", "keystore.type", "key.password"):
        work.unneeded(work.prop(f"ssl.{name}"), "the Secret has PEM files")
    work.choose(
        "ssl.endpoint.identification.algorithm",
        ("https",),
        "names are checked here as well",
        ("names in certificates are always checked", "give the brokers certificates with their names"),
    )
    return keys


_OF_KAFKA = {
    "group.id": "no consumer group is used",
    "enable.auto.commit": "nothing is committed to Kafka",
    "key.deserializer": "keys are read as bytes",
    "value.deserializer": "values are read as bytes, and parsed as value.format says",
    "isolation.level": "records of committed transactions are read",
}
_OF_SOURCE = {
    "minPartitions": "the number of tasks follows from the partitions of the topic",
    "fetch_partition.time.out": "the operator's reader has its own",
    "spark.sql.consumer.enable": "there is one way to read",
    "proto.value.deserializer.class": "only ProtoKafkaSource uses it",
    "ignore.prefix.config.list": "what reaches the consumer is chosen by name",
    "value.deserializer.schema": "only AvroKafkaSource uses it",
}


def _consumer(work: Work, kafka: JsonDict) -> None:
    prefix = f"{_S}source.kafka."
    for name, reason in _OF_SOURCE.items():
        work.unneeded(work.prop(prefix + name), reason)
    for name, same, reason, instead in (
        ("enable.commit.offset", "false", "nothing is committed to Kafka", "watch the writer's metrics and status"),
        (
            "append.offsets", "false", "columns of the record's place have other names here",
            "set value.metadataColumns: _kafka_offset and others, and rename them in transform.sql",
        ),
        ("checkpoint.type", "string", "there are no checkpoints", "set source.kafka.startFrom to a time"),
    ):  # fmt: skip
        work.choose(prefix + name, (same,), "the default here as well", (reason, instead))
    for each in work.below(prefix):
        work.missing(each, "source.kafka has no such setting", "see docs/use/sources.md")
    options: dict[str, str] = {}
    for each in _foreign(work):
        if each.name in _OF_KAFKA:
            work.unneeded(each, _OF_KAFKA[each.name])
        elif each.name in allowed.KAFKA_OPTIONS and len(each.value) <= 256:
            options[each.name] = each.value
            work.to(each, f"{_AT}kafka.options")
        elif is_secret(each.name):
            work.missing(each, "a credential that Kafka's consumer does not use here", "see source.kafka.security")
        else:
            work.missing(each, "not a property of Kafka's consumer that may be set", "see source.kafka.options")
    if options:
        kafka["options"] = options


# ---- another table


def _hudi(work: Work) -> None:
    prefix = f"{_S}source.hoodieincr."
    hudi: JsonDict = {}
    path = work.prop(f"{prefix}path")
    if path is None:
        work.not_given(f"{prefix}path", "the table to read is not known", "give its path", WRITER)
    elif found := path_of(work, path):
        hudi["path"] = found
        work.to(path, f"{_AT}hudi.path")
        work.notes.append("source.hudi.path: for a HudiTable of the namespace name it with tableRef instead.")
    strategy, latest = (work.prop(prefix + n) for n in ("missing.checkpoint.strategy", "read_latest_on_missing_ckpt"))
    starts = {"READ_LATEST": "Latest", "READ_UPTO_LATEST_COMMIT": "Earliest"}
    if strategy is not None and strategy.value.upper() in starts:
        hudi["startFrom"] = starts[strategy.value.upper()]
        work.to(strategy, f"{_AT}hudi.startFrom")
        work.unneeded(latest, "missing.checkpoint.strategy counts")
    elif strategy is not None:
        work.missing(strategy, f"one of {', '.join(starts)}", "set source.hudi.startFrom")
    elif latest is not None:
        hudi["startFrom"] = "Latest" if latest.value.lower() == "true" else "Earliest"
        work.to(latest, f"{_AT}hudi.startFrom")
    else:
        work.notes.append("source.hudi.startFrom is Earliest: HoodieStreamer without a checkpoint would fail.")
    hudi["maxCommitsPerBatch"] = 5
    commits = work.prop(f"{prefix}num_instants")
    at = f"{_AT}hudi.maxCommitsPerBatch"
    work.number(commits, at, 1, 10_000, lambda count: hudi.update(maxCommitsPerBatch=count))
    fallback = work.prop("hoodie.datasource.read.incr.fallback.fulltablescan.enable")
    if fallback is not None and fallback.value.lower() == "true":
        hudi["ifPositionLost"] = "Snapshot"
        work.to(fallback, f"{_AT}hudi.ifPositionLost")
    work.unneeded(fallback, "the default here as well")
    for name in ("drop.all.meta.fields.from.source", "file.format", "partition.fields", "partition.extractor.class"):
        work.unneeded(work.prop(prefix + name), "rows come with their columns, and without Hudi's meta fields")
    for each in work.below(prefix):
        work.missing(each, "source.hudi has no such setting", "see docs/use/sources.md")
    work.missing(work.flag("--source-limit"), "a batch has a number of commits", "set source.hudi.maxCommitsPerBatch")
    for schema in (work.flag("--schemaprovider-class"), *work.below(f"{_S}schemaprovider.")):
        work.missing(schema, "rows have the columns of the source table", "convert columns in transform.sql")
    work.writer["source"] = {"hudi": hudi}

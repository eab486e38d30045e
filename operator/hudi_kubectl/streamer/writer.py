"""The writer's operation, transform, runs and pods.

Below it are `work`, the records of `given` and the lists of `hudi_contract`; it uses nothing else.
"""

from __future__ import annotations

import fnmatch
import re

from hudi_contract import allowed_options as allowed
from hudi_contract.options import rule_for
from hudi_contract.secret_names import is_secret
from hudi_kubectl.streamer.given import TABLE, WRITER, Needed, Option
from hudi_kubectl.streamer.work import MOST_OPTIONS, Work

_S = "hoodie.streamer."
_OPERATIONS = {"UPSERT": "Upsert", "INSERT": "Insert", "BULK_INSERT": "BulkInsert", "DELETE": "Delete"}
_OVERWRITE = "HudiWriter spec.operation InsertOverwrite, with source.files, sql or python"
_OTHER_OPERATIONS = {
    "INSERT_OVERWRITE": _OVERWRITE,
    "INSERT_OVERWRITE_TABLE": f"{_OVERWRITE}, and overwrite.scope Table",
    "DELETE_PARTITION": "HudiWriter spec.operation DeletePartition with partitions, or services.ttl",
}
_SQL = f"{_S}transformer.sql"


def translate(work: Work) -> None:
    """Everything of the HudiWriter but its source."""
    _operation(work)
    _transform(work)
    _runs(work)
    _spark(work)
    _storage(work)
    _submit(work)


# ---- operation


def _operation(work: Work) -> None:
    option = work.flag("--op")
    name = "UPSERT" if option is None else option.value.upper()
    if name not in _OPERATIONS:
        work.missing(
            option, "there is no such operation here", _OTHER_OPERATIONS.get(name, "use a program of your own"), WRITER
        )
        return
    work.writer["operation"] = _OPERATIONS[name]
    work.to(option, "HudiWriter spec.operation")
    work.unneeded(work.prop("hoodie.datasource.write.operation"), "HoodieStreamer takes the operation of --op")
    policy = work.prop("hoodie.datasource.insert.dup.policy")
    drop = work.prop("hoodie.datasource.write.insert.drop.duplicates")
    filtered = work.flag("--filter-dupes")
    if name not in ("INSERT", "BULK_INSERT"):
        work.missing(filtered, "HoodieStreamer refuses it with this operation", "leave it out")
        for each in (policy, drop):
            work.unneeded(each, "only inserts look for duplicates")
        return
    _duplicates(work, [filtered, drop], policy)


def _duplicates(work: Work, drops: list[Option | None], policy: Option | None) -> None:
    at = "HudiWriter spec.duplicates"
    on = [each for each in drops if each is not None and (each.name.startswith("--") or each.value.lower() == "true")]
    chosen = {"drop": "Drop", "fail": "Fail", "none": "Allow"}
    if on:
        work.writer["duplicates"] = "Drop"
    elif policy is not None and policy.value.lower() in chosen:
        work.writer["duplicates"] = chosen[policy.value.lower()]
    else:
        work.writer["duplicates"] = "Allow"
        work.notes.append(
            "spec.duplicates is Allow, as with HoodieStreamer: an insert looks no key up, and keys may exist twice. "
            "Fail and Drop look them up (docs/use/indexes.md)."
        )
    for each in on:
        work.to(each, at)
    for drop in drops:
        work.unneeded(drop, "it is off")
    if policy is not None and policy.value.lower() not in chosen:
        work.missing(policy, f"one of {', '.join(chosen)}", "set spec.duplicates")
    elif on:
        work.unneeded(policy, "duplicates are dropped")
    work.to(policy, at)


# ---- transform


def _transform(work: Work) -> None:
    option = work.flag("--transformer-class") or work.prop(f"{_S}transformer.class")
    family = work.below(f"{_S}transformer.")
    if option is None:
        for each in family:
            work.unneeded(each, "no --transformer-class is given")
        return
    steps: list[str] = []
    for text in (each.strip() for each in option.value.split(",") if each.strip()):
        tag, _, name = text.rpartition(":")
        found = _step(work, option, name.rpartition(".")[2], f".{tag}" if tag else "")
        if found is None:
            return
        steps.append(found)
    if not steps:
        work.unneeded(option, "it is empty")
        return
    query = _chained(steps)
    if query is None:
        work.missing(
            option, "queries that are chained begin with SELECT", "write them as one query in transform.sql", WRITER
        )
        return
    if len(query) > 65_536:
        work.missing(option, "the query has more than 65536 characters", "shorten it", WRITER)
        return
    work.writer["transform"] = {"sql": query}
    work.to(option, "HudiWriter spec.transform.sql")


def _step(work: Work, option: Option, name: str, tag: str) -> str | None:
    """The query of one transformer; None: the transformer is missed."""
    if name == "SqlQueryBasedTransformer":
        query = work.prop(_SQL + tag) or work.prop(_SQL)
        if query is None:
            work.missing(option, f"{_SQL}{tag} is not given", "give the query", WRITER)
            return None
        work.to(query, "HudiWriter spec.transform.sql")
        return query.value.rstrip("; ")
    if name == "SqlFileBasedTransformer":
        return _of_file(work, option, work.prop(f"{_SQL}.file{tag}") or work.prop(f"{_SQL}.file"))
    reasons = {
        "FlatteningTransformer": "name the fields in transform.sql: SELECT a.b AS a_b, … FROM source",
        "AWSDmsTransformer": "add the column Op in transform.sql",
    }
    work.missing(
        option, f"{name} is a Java class; a writer transforms with one SQL query",
        reasons.get(name, "write what it does as SQL, or use a program of your own"), WRITER,
    )  # fmt: skip
    return None


def _of_file(work: Work, option: Option, file: Option | None) -> str | None:
    text = None if file is None else work.places.text(file.value)
    if text is None:
        if file is None:
            work.missing(option, f"{_SQL}.file is not given", "give it", WRITER)
        work.missing(file, "no such file here", "copy it here and name its folder with --files", WRITER)
        return None
    lines = [line for line in text.split("\n") if not line.strip().startswith("--")]
    queries = [each.strip() for each in "\n".join(lines).split(";") if each.strip()]
    if len(queries) != 1:
        work.missing(file, "transform.sql is one query; the file has several statements", "join them with WITH", WRITER)
        return None
    work.to(file, "HudiWriter spec.transform.sql")
    return "\n".join(line.rstrip() for line in queries[0].split("\n"))


def _chained(steps: list[str]) -> str | None:
    """One query: each step reads the one before it."""
    if len(steps) > 1 and not all(re.match(r"(?i)select\s", each) for each in steps):
        return None
    read = "source"
    named: list[str] = []
    for number, query in enumerate(steps, 1):
        text = query.replace("<SRC>", read)
        if number == len(steps):
            return f"WITH {', '.join(named)} {text}" if named else text
        read = f"step{number}"
        named.append(f"{read} AS ({text})")
    return None


# ---- runs


def _runs(work: Work) -> None:
    continuous, interval = work.flag("--continuous"), work.flag("--min-sync-interval-seconds")
    if continuous is not None:
        streaming = {"intervalSeconds": 1}
        work.writer["streaming"] = streaming
        at = "HudiWriter spec.streaming.intervalSeconds"
        if interval is not None and interval.value == "0":
            work.to(interval, at, "the shortest interval is 1")
        work.number(interval, at, 1, 86_400, lambda count: streaming.update(intervalSeconds=count))
        work.to(continuous, "HudiWriter spec.streaming")
    else:
        work.unneeded(interval, "only --continuous uses it")
        work.notes.append("The writer runs once. If a scheduler started the job, set spec.schedule, or spec.streaming.")
    again = work.flag("--retry-on-source-failures")
    count, pause = work.flag("--max-retry-count"), work.flag("--retry-interval-seconds")
    if again is not None:
        retry: dict[str, int] = {}
        work.number(count, "HudiWriter spec.retryPolicy.limit", 0, 20, lambda number: retry.update(limit=number))
        seconds = "HudiWriter spec.retryPolicy.backoffSeconds"
        work.number(pause, seconds, 1, 3600, lambda number: retry.update(backoffSeconds=number))
        if retry.get("backoffSeconds", 0) > 300:
            retry["maxBackoffSeconds"] = retry["backoffSeconds"]
        if retry:
            work.writer["retryPolicy"] = retry
    for each in (again, count, pause):
        work.unneeded(each, "a failed attempt is repeated (retryPolicy)")
    conflicts = work.prop("hoodie.write.num.retries.on.conflict.failures")
    work.number(
        conflicts, "HudiWriter spec.retryPolicy.writeConflict.inProcess", 0, 20,
        lambda number: work.writer.setdefault("retryPolicy", {}).update(writeConflict={"inProcess": number}),
    )  # fmt: skip


# ---- Spark


def _spark(work: Work) -> None:
    """`--conf`, memory, cores and instances of spark-submit."""
    amounts = {
        "spark.driver.memory": ("driver", "memory"),
        "spark.executor.memory": ("executors", "memory"),
        "spark.driver.cores": ("driver", "cores"),
        "spark.executor.cores": ("executors", "cores"),
        "spark.executor.instances": ("executors", "instances"),
    }
    flags = {
        "--driver-memory": "spark.driver.memory",
        "--executor-memory": "spark.executor.memory",
        "--driver-cores": "spark.driver.cores",
        "--executor-cores": "spark.executor.cores",
        "--num-executors": "spark.executor.instances",
    }
    for flag, name in flags.items():
        option = work.given.submit.get(flag)
        if option is not None:
            work.unneeded(work.given.spark.get(name), f"{flag} counts")
            _amount(work, option, *amounts[name])
    for name, field in amounts.items():
        option = work.given.spark.get(name)
        if option is not None and work.is_open(option):
            _amount(work, option, *field)
    for name, option in work.given.spark.items():
        if work.is_open(option) and not name.startswith("spark.hadoop."):
            _conf(work, name, option)


def _amount(work: Work, option: Option, part: str, field: str) -> None:
    at = f"HudiWriter spec.{part}.{field}"
    section = work.writer.setdefault(part, {})
    if field != "memory":
        most, least = (200, 0) if field == "instances" else (64, 1)
        work.number(option, at, least, most, lambda count: section.update({field: count}))
        return
    found = re.fullmatch("([1-9][0-9]{0,5})([mMgG])[bB]?", option.value)
    if found is None:
        work.missing(option, f"{at} is a whole number of MiB or GiB", "set it as 512Mi or 2Gi")
        return
    section[field] = f"{found[1]}{found[2].upper()}i"
    work.to(option, at)


_SAME_CONF = {
    "spark.serializer": "the operator sets Kryo",
    "spark.kryo.registrator": "the operator sets it",
    "spark.sql.extensions": "the operator sets Hudi's",
    "spark.sql.catalog.spark_catalog": "the operator sets Hudi's",
    "spark.master": "the operator runs the pods",
    "spark.app.name": "the name of the HudiWriter",
    "spark.submit.deployMode": "the operator runs the pods",
    "spark.yarn.*": "there is no YARN",
    "spark.kubernetes.*": "the operator makes the pods; see driver.podTemplate for more of them",
}


def _conf(work: Work, name: str, option: Option) -> None:
    same = next((why for pattern, why in _SAME_CONF.items() if fnmatch.fnmatchcase(name, pattern)), None)
    rule = rule_for(name, allowed.OWNED_SPARK)
    kept = work.writer.get("sparkConf", {})
    fits = len(option.value) <= 2048 and "${" not in option.value and len(kept) < MOST_OPTIONS
    if same is not None:
        work.unneeded(option, same)
    elif rule is not None:
        work.missing(option, rule.why, "leave it out, or set the field that the reason names")
    elif is_secret(name) or not any(fnmatch.fnmatchcase(name.lower(), each) for each in allowed.ALLOWED_SPARK):
        work.missing(option, "not on the list of settings of Spark that may be set", "leave it out")
    elif not fits:
        work.missing(option, "one line of at most 2048 characters without ${, 64 settings", "shorten it")
    else:
        work.writer.setdefault("sparkConf", {})[name] = option.value
        work.to(option, "HudiWriter spec.sparkConf")


_KEYS = {
    "fs.s3a.access.key": "accessKeyId: the access key",
    "fs.s3a.secret.key": "secretAccessKey: the secret key",
    "fs.s3a.session.token": "sessionToken: the session token",
}
_STORAGE = (
    "fs.s3a.endpoint",
    "fs.s3a.endpoint.region",
    "fs.s3a.path.style.access",
    "fs.s3a.connection.ssl.enabled",
)


def _storage(work: Work) -> None:
    """Hadoop's settings of the store, in `--conf spark.hadoop.` or as properties."""
    found = [(name[len("spark.hadoop.") :], each) for name, each in work.given.spark.items() if work.is_open(each)]
    found += [(each.name, each) for each in work.below("fs.")]
    keys = []
    for name, option in found:
        if name in _KEYS:
            keys.append(_KEYS[name])
            work.to(option, "HudiTable spec.storage.secretRefs", "its value goes into the Secret, by your hand")
        elif name in _STORAGE and len(option.value) <= 1024 and "${" not in option.value and "@" not in option.value:
            work.section("storage", "options")[name] = option.value
            work.to(option, "HudiTable spec.storage.options")
        elif name == "fs.s3a.impl":
            work.unneeded(option, "the operator's storage wrapper opens s3a://")
        elif is_secret(name):
            work.missing(option, "a credential", "see spec.storage.secretRefs and docs/operate/tenants.md")
        else:
            work.missing(option, "not a setting of the store that is known here", "see spec.storage.options")
    if keys:
        name = f"{work.table_name[:55]}-storage"
        work.section("storage")["secretRefs"] = [{"name": name, "as": "S3"}]
        work.needed.append(Needed("Secret", name, tuple(keys)))
    elif str(work.table.get("path", "")).startswith(("s3", "gs", "abfs")):
        work.notes.append(
            "How pods may use the store is not in the job: set spec.storage (secretRefs or serviceAccountName)."
        )


def _submit(work: Work) -> None:
    reasons = {
        "--class": "the operator's runtime writes",
        "--master": "the operator runs the pods",
        "--deploy-mode": "the operator runs the pods",
        "--name": "the name of the HudiWriter",
        "--verbose": "of spark-submit",
        "-v": "of spark-submit",
        "--supervise": "a failed attempt is repeated (retryPolicy)",
        "--queue": "there is no YARN",
        "(jar)": "the operator's image has Hudi",
    }
    for name, option in work.given.submit.items():
        if name == "--class" and not option.value.endswith(("HoodieStreamer", "HoodieDeltaStreamer")):
            work.missing(option, "not HoodieStreamer", "give the options of each table's job as one of its own", TABLE)
            work.block(WRITER, "--class: not HoodieStreamer")
        elif name in reasons:
            work.unneeded(option, reasons[name])
        elif name in ("--packages", "--jars", "--repositories", "--exclude-packages"):
            parts = [each.strip() for each in option.value.split(",")]
            if name in ("--packages", "--jars") and all(re.search("hudi-(spark|utilities)", each) for each in parts):
                work.unneeded(option, "the operator's image has Hudi")
            else:
                work.missing(option, "code is added through the image", "build an image, see docs/use/pods.md")
        elif name in ("--properties-file", "--files", "--py-files", "--archives", "--driver-class-path"):
            work.missing(option, "files of the machine do not reach the pods", "see docs/use/pods.md")
        else:
            work.missing(option, "an option of spark-submit that is not known here", "see docs/use/pods.md")

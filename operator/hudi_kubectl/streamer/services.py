"""The table's services, metadata table, concurrency and catalog.

Below it are `work` and the records of `given`; it uses nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from hudi_kubectl.streamer.given import JsonDict, Option
from hudi_kubectl.streamer.work import Work

_AGENT = "the table's agent runs it, on its own"
_MIB, _GIB = 2**20, 2**30
_PLAN = "hoodie.clustering.plan.strategy"
_SYNC = "hoodie.datasource.hive_sync"
_CLASS_OF_SYNC = "org.apache.hudi.hive.HiveSyncTool"
_BY_HAND = "set spec.services by hand (docs/operate/operations.md)"


def translate(work: Work) -> None:
    """`services`, `metadataTable`, `concurrency` and `catalog` of the HudiTable."""
    _concurrency(work)
    off = work.value("hoodie.table.services.enabled", "true").lower() == "false"
    work.to(
        work.prop("hoodie.table.services.enabled") if off else None,
        "HudiTable spec.services.clean.enabled, archive.enabled, compaction.enabled",
    )
    if off:
        for service in ("clean", "archive", *(("compaction",) if _merge_on_read(work) else ())):
            work.section("services", service)["enabled"] = False
        work.notes.append("Without services a table grows for ever: they are off because the job has them off.")
    _clean(work)
    _archive(work)
    _compaction(work)
    _clustering(work)
    _ttl(work)
    _metadata(work)
    _catalog(work)


def _merge_on_read(work: Work) -> bool:
    return work.table.get("type") == "MergeOnRead"


def _concurrency(work: Work) -> None:
    option = work.prop("hoodie.write.concurrency.mode")
    if option is None:
        return
    if option.value.upper() == "NON_BLOCKING_CONCURRENCY_CONTROL":
        if (
            _merge_on_read(work)
            and work.table.get("index", {}).get("type") == "Bucket"
            and (work.table.get("orderingFields") or work.table.get("merge", {}).get("mode") == "Custom")
        ):
            work.section("concurrency")["mode"] = "NonBlocking"
            work.to(option, "HudiTable spec.concurrency.mode")
        else:
            work.missing(
                option,
                "NonBlocking needs MERGE_ON_READ, a bucket index, and ordering fields",
                "leave it out: writers are then optimistic",
            )
    work.unneeded(option, "several writers are the default here (concurrency.mode Optimistic)")


def _clean(work: Work) -> None:
    clean: JsonDict = {}
    automatic = work.prop("hoodie.clean.automatic")
    if automatic is not None and automatic.value.lower() == "false":
        clean["enabled"] = False
        work.to(automatic, "HudiTable spec.services.clean.enabled")
    work.unneeded(automatic, _AGENT)
    work.unneeded(work.prop("hoodie.clean.async.enabled"), _AGENT)
    policy = work.prop("hoodie.clean.policy")
    chosen = "KEEP_LATEST_COMMITS" if policy is None else policy.value.upper()
    at = "HudiTable spec.services.clean."
    fields: dict[str, tuple[str, str, int, int]] = {
        "KEEP_LATEST_COMMITS": ("hoodie.clean.commits.retained", "retainCommits", 10_000, 1),
        "KEEP_LATEST_BY_HOURS": ("hoodie.clean.hours.retained", "retainSeconds", 87_600, 3600),
        "KEEP_LATEST_FILE_VERSIONS": ("hoodie.clean.fileversions.retained", "retainFileVersions", 1000, 1),
    }
    if chosen in fields:
        name, field, most, times = fields[chosen]
        work.number(work.prop(name), at + field, 1, most, lambda count: clean.update({field: count * times}))
        if policy is not None and field not in clean and chosen != "KEEP_LATEST_COMMITS":
            clean[field] = {"retainSeconds": 24 * 3600, "retainFileVersions": 3}[field]
        work.to(policy, at + field)
    else:
        work.missing(policy, f"none of {', '.join(fields)}", _BY_HAND)
    for name, _, _, _ in fields.values():
        work.unneeded(work.prop(name), f"the policy {chosen} does not use it")
    work.number(
        work.prop("hoodie.clean.trigger.max.commits"), f"{at}afterCommits", 1, 10_000,
        lambda count: clean.update(afterCommits=count),
    )  # fmt: skip
    work.choose(
        "hoodie.clean.trigger.strategy", ("num_commits",), "the default here as well", ("commits trigger it", _BY_HAND)
    )
    for name in ("incremental.enabled", "parallelism", "multiple.enabled", "optimize.using.local.engine.context"):
        work.unneeded(work.prop(f"hoodie.clean.{name}"), _AGENT)
    if clean:
        work.section("services", "clean").update(clean)


def _archive(work: Work) -> None:
    archive: JsonDict = {}
    at = "HudiTable spec.services.archive."
    automatic = work.prop("hoodie.archive.automatic")
    if automatic is not None and automatic.value.lower() == "false":
        archive["enabled"] = False
        work.to(automatic, f"{at}enabled")
    work.unneeded(automatic, _AGENT)
    work.unneeded(work.prop("hoodie.archive.async"), _AGENT)
    retained = work.table.get("services", {}).get("clean", {})
    kept = int(retained.get("retainCommits", 10)) if not set(retained) & {"retainSeconds", "retainFileVersions"} else 0
    low, high = work.prop("hoodie.keep.min.commits"), work.prop("hoodie.keep.max.commits")
    least, most = (_count(each, unset) for each, unset in ((low, 20), (high, 30)))
    if low is None and high is None:
        if least <= kept:
            archive.update(minCommitsToKeep=kept + 10, maxCommitsToKeep=kept + 20)
            work.notes.append(f"services.archive keeps {kept + 10} to {kept + 20} commits: more than clean retains.")
    elif not (max(2, kept + 1) <= least < most <= 100_000):
        for each in (low, high):
            work.missing(
                each, f"whole numbers, more than clean retains ({kept}), the second more than the first", _BY_HAND
            )
        if least <= kept:
            archive.update(minCommitsToKeep=kept + 10, maxCommitsToKeep=kept + 20)
    else:
        archive.update(minCommitsToKeep=least, maxCommitsToKeep=most)
        work.to(low, f"{at}minCommitsToKeep")
        work.to(high, f"{at}maxCommitsToKeep")
    if archive:
        work.section("services", "archive").update(archive)


def _count(option: Option | None, unset: int) -> int:
    """A number; 0 when it is none."""
    if option is None:
        return unset
    return int(option.value) if re.fullmatch("[0-9]{1,9}", option.value) else 0


def _compaction(work: Work) -> None:
    disabled = work.flag("--disable-compaction")
    every = work.prop("hoodie.compact.inline.max.delta.commits")
    if not _merge_on_read(work):
        for each in (disabled, every, *work.below("hoodie.compact.inline.")):
            work.unneeded(each, "a CopyOnWrite table is not compacted")
        return
    compaction: JsonDict = {}
    if disabled is not None:
        compaction["enabled"] = False
        work.to(disabled, "HudiTable spec.services.compaction.enabled")
        work.notes.append("Nothing compacts the table: the job has --disable-compaction. Its log files will grow.")
    work.number(
        every, "HudiTable spec.services.compaction.afterCommits", 1, 10_000,
        lambda count: compaction.update(afterCommits=count),
    )  # fmt: skip
    work.choose(
        "hoodie.compact.inline.trigger.strategy",
        ("num_commits", "num_commits_after_last_request"),
        "commits trigger it here as well",
        ("commits or a schedule trigger it", "set spec.services.compaction.schedule"),
    )
    work.unneeded(work.prop("hoodie.compact.inline.max.delta.seconds"), "only a trigger by time uses it")
    if compaction:
        work.section("services", "compaction").update(compaction)


def _clustering(work: Work) -> None:
    inline, apart = work.prop("hoodie.clustering.inline"), work.prop("hoodie.clustering.async.enabled")
    on = [each for each in (inline, apart) if each is not None and each.value.lower() == "true"]
    family = [*work.below("hoodie.clustering."), *work.below("hoodie.layout.optimize.")]
    if not on:
        for each in family:
            work.unneeded(each, "clustering is off")
        return
    if work.table.get("index", {}).get("type") == "Bucket" or work.table.get("concurrency"):
        for each in family:
            work.missing(each, "clustering contradicts a bucket index and NonBlocking", "leave it out")
        return
    cluster = work.section("services", "clustering")
    at = "HudiTable spec.services.clustering"
    for each in on:
        work.to(each, at)
    for switch in (inline, apart):
        work.unneeded(switch, _AGENT)
    inlined = inline in on
    for name, used in (("inline", inlined), ("async", not inlined)):
        option = work.prop(f"hoodie.clustering.{name}.max.commits")
        if used:
            work.number(option, f"{at}.afterCommits", 1, 10_000, lambda count: cluster.update(afterCommits=count))
        work.unneeded(option, "the other way of clustering counts")
    cluster.setdefault("afterCommits", 4)
    _clustered_files(work, cluster, at)


def _clustered_files(work: Work, cluster: JsonDict, at: str) -> None:
    """Translate the options that select the files to cluster and their layout."""
    _size(work, f"{_PLAN}.small.file.limit", f"{at}.smallFileSize", lambda text: cluster.update(smallFileSize=text))
    target = f"{_PLAN}.target.file.max.bytes"
    _size(work, target, f"{at}.targetFileSize", lambda text: cluster.update(targetFileSize=text))
    columns = work.prop(f"{_PLAN}.sort.columns")
    sorted_by = work.names(columns)
    if sorted_by and len(sorted_by) <= 16 and all(re.fullmatch("[^, ]{1,256}", each) for each in sorted_by):
        cluster["sortColumns"] = sorted_by
        work.to(columns, f"{at}.sortColumns")
    layout = work.prop("hoodie.layout.optimize.strategy")
    layouts = {"LINEAR": "Linear", "Z-ORDER": "ZOrder", "ZORDER": "ZOrder", "HILBERT": "Hilbert"}
    if layout is not None and layout.value.upper() in layouts:
        chosen = layouts[layout.value.upper()]
        if len(cluster.get("sortColumns", ())) >= (1 if chosen == "Linear" else 2):
            cluster["layout"] = chosen
            work.to(layout, f"{at}.layout")
    pattern = work.prop(f"{_PLAN}.partition.regex.pattern")
    if pattern is not None and _is_pattern(pattern.value):
        cluster["partitionPattern"] = pattern.value
        work.to(pattern, f"{at}.partitionPattern")


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return 0 < len(text) <= 512


def _size(work: Work, name: str, at: str, put: Callable[[str], None]) -> None:
    """Bytes as Mi or Gi; a size that is not a whole number of Mi is reported as missing."""
    option = work.prop(name)
    if option is None:
        return
    count = int(option.value) if re.fullmatch("[1-9][0-9]{0,18}", option.value) else 0
    unit, letter = (_GIB, "Gi") if count and count % _GIB == 0 else (_MIB, "Mi")
    if not count or count % unit or count // unit > 999_999:
        work.missing(option, f"{at} is a whole number of Mi", "round the value to 1048576 bytes")
        return
    put(f"{count // unit}{letter}")
    work.to(option, at)


def _ttl(work: Work) -> None:
    on = work.prop("hoodie.partition.ttl.inline")
    days = work.prop("hoodie.partition.ttl.strategy.days.retain")
    if on is None or on.value.lower() != "true":
        for each in work.below("hoodie.partition.ttl."):
            work.unneeded(each, "partitions do not expire: hoodie.partition.ttl.inline is not true")
        return
    at = "HudiTable spec.services.ttl"
    if not work.table.get("partitionFields"):
        work.missing(on, "the table has no partitions", "leave it out")
        return
    if work.section("concurrency").get("mode") == "NonBlocking":
        for each in work.below("hoodie.partition.ttl."):
            work.missing(each, "spec.services.ttl contradicts NonBlocking", "delete the rows of old partitions instead")
        return
    ttl: JsonDict = {}
    if days is None or not work.number(
        days, f"{at}.retainSeconds", 1, 24_855, lambda count: ttl.update(retainSeconds=count * 86_400)
    ):
        work.missing(on, "for how many days partitions stay is not known", "set spec.services.ttl.retainSeconds")
        return
    work.to(on, at)
    since = work.prop("hoodie.partition.ttl.management.strategy.type")
    if since is not None and since.value.upper() in ("KEEP_BY_TIME", "KEEP_BY_CREATION_TIME"):
        ttl["since"] = "LastWrite" if since.value.upper() == "KEEP_BY_TIME" else "Creation"
        work.to(since, f"{at}.since")
    work.number(
        work.prop("hoodie.partition.ttl.strategy.max.delete.partitions"), f"{at}.maxPartitionsPerRun", 1, 100_000,
        lambda count: ttl.update(maxPartitionsPerRun=count),
    )  # fmt: skip
    for each in work.below("hoodie.partition.ttl."):
        work.missing(each, "has no counterpart in spec.services.ttl", _BY_HAND)
    work.section("services")["ttl"] = ttl


def _metadata(work: Work) -> None:
    on = work.prop("hoodie.metadata.enable")
    stats = work.prop("hoodie.metadata.index.column.stats.enable")
    if on is not None and on.value.lower() == "false":
        work.section("metadataTable")["enabled"] = False
        work.to(on, "HudiTable spec.metadataTable.enabled")
    elif stats is not None and stats.value.lower() == "true":
        work.section("metadataTable")["indexes"] = ["ColumnStats"]
        work.to(stats, "HudiTable spec.metadataTable.indexes")
    work.unneeded(on, "the default here as well")
    work.unneeded(stats, "the default here as well")
    for each in work.below("hoodie.metadata."):
        if each.value.lower() == "false":
            work.unneeded(each, "off here as well")
        elif each.name.lower().endswith("parallelism"):
            work.unneeded(each, _AGENT)
        else:
            work.missing(each, "the metadata table has no such index or setting here", "see spec.metadataTable")


# ---- catalog


def _catalog(work: Work) -> None:
    family = [*work.below(f"{_SYNC}."), *work.below("hoodie.datasource.meta.sync."), *work.below("hoodie.meta.sync.")]
    tools = work.flag("--sync-tool-classes")
    switches = [work.flag("--enable-sync"), work.flag("--enable-hive-sync")]
    properties = [work.prop(f"{_SYNC}.enable"), work.prop("hoodie.datasource.meta.sync.enable")]
    on = [each for each in switches if each is not None]
    on += [each for each in properties if each is not None and each.value.lower() == "true"]
    work.unneeded(work.flag("--force-empty-sync"), "the agent brings the table to its catalog, and not a commit")
    if not on:
        for each in (tools, *family):
            work.unneeded(each, "no catalog is asked for: --enable-sync is not given")
        return
    refused = _refusal(work, tools)
    if refused:
        for each in (*on, tools, *family):
            work.missing(each, *refused)
        return
    _in_metastore(work, on, tools, family)


def _refusal(work: Work, tools: Option | None) -> tuple[str, str] | None:
    """Why there is no such catalog here, and what to do; None: there is one."""
    if tools is not None and tools.value not in (_CLASS_OF_SYNC, "HiveSyncTool"):
        return "the only catalog here is a Hive Metastore", "run your tool apart, see docs/use/catalogs.md"
    if work.value(f"{_SYNC}.mode").lower() != "hms":
        return (
            "the agent speaks to a Hive Metastore, and not to HiveServer2",
            "name the metastore: hoodie.datasource.hive_sync.mode=hms and "
            "hoodie.datasource.hive_sync.metastore.uris=thrift://HOST:PORT",
        )
    uris = work.value(f"{_SYNC}.metastore.uris").split(",")
    fits = (
        "thrift://(?!localhost|127[.]|0[.:]|169[.]254[.]|metadata[.:])"
        "[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?:[0-9]{1,5}"
    )
    if len(uris) > 5 or not all(
        re.fullmatch(fits, each.strip()) and 0 < int(each.rpartition(":")[2]) < 2**16 for each in uris
    ):
        return (
            "the address of the metastore is not known",
            "give hoodie.datasource.hive_sync.metastore.uris=thrift://HOST:PORT",
        )
    return None


def _in_metastore(work: Work, on: list[Option], tools: Option | None, family: list[Option]) -> None:
    catalog = work.section("catalog")
    at = "HudiTable spec.catalog"
    uris = work.prop(f"{_SYNC}.metastore.uris")
    catalog["hiveMetastore"] = {"uris": [each.strip() for each in work.value(f"{_SYNC}.metastore.uris").split(",")]}
    work.to(uris, f"{at}.hiveMetastore.uris")
    for each in (*on, tools, work.prop(f"{_SYNC}.mode"), work.prop("hoodie.meta.sync.client.tool.class")):
        work.to(each, at)
    for name in ("database", "table"):
        option = work.prop(f"{_SYNC}.{name}")
        if option is not None and re.fullmatch("[a-z0-9_]{1,128}", option.value):
            catalog[name] = option.value
            work.to(option, f"{at}.{name}")
        elif option is not None:
            work.missing(option, "lower-case letters, digits and _, at most 128", "correct the name")
    fields = work.prop(f"{_SYNC}.partition_fields")
    if work.names(fields) == work.table.get("partitionFields", []):
        work.unneeded(fields, "they are those of the table")
    reasons = {
        "partition_extractor_class": "values are taken from partition paths as the table has its partitions",
        "jdbcurl": "mode hms does not use it",
        "use_jdbc": "mode hms does not use it",
        "ignore_exceptions": "no writer fails because of a catalog",
        "support_timestamp": "timestamps are timestamps",
        "enable": "off",
    }
    for each in family:
        short = each.name.rpartition("hive_sync.")[2]
        if short in reasons and not (short == "support_timestamp" and each.value.lower() != "true"):
            work.unneeded(each, reasons[short])
        else:
            work.missing(each, "has no counterpart in spec.catalog", "leave it out, or set it in the metastore by hand")

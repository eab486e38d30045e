"""Results for the options that no topic has taken.

Below it are `work`, the records of `given` and the rules of `hudi_contract`; it uses nothing else.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable

from hudi_contract import allowed_options as allowed
from hudi_contract.options import OF_THE_TABLE, OWNED, normal, rule_for
from hudi_contract.secret_names import is_secret
from hudi_kubectl.streamer.given import TABLE, WRITER, Option
from hudi_kubectl.streamer.words import canonical
from hudi_kubectl.streamer.work import Work

_OF_THE_OPERATOR = frozenset(
    rule.why
    for rule in OWNED
    if rule.pattern in ("hoodie.write.lock.*", "hoodie.rollback.*", "hoodie.internal.*", "hoodie.base.path")
)
"""Reasons of rules for options that the operator sets itself: without them nothing is missed."""
_MISSED_ANYWAY = ("hoodie.datasource.write.commitmeta.*", "hoodie.table.cdc.*", "hoodie.write.executor.*")
"""Options that match such a rule, but have a separate effect."""
_SERVICES = frozenset(rule.why for rule in OWNED if rule.pattern == "hoodie.keep.*")

_FLAGS_UNNEEDED = {
    "--allow-commit-on-no-checkpoint-change": "a commit without rows is not needed for progress",
    "--bootstrap-index-class": "only a bootstrap uses it",
    "--cluster-scheduling-minshare": "services run in a process of their own",
    "--cluster-scheduling-weight": "services run in a process of their own",
    "--compact-scheduling-minshare": "services run in a process of their own",
    "--compact-scheduling-weight": "services run in a process of their own",
    "--delta-sync-scheduling-minshare": "services run in a process of their own",
    "--delta-sync-scheduling-weight": "services run in a process of their own",
    "--enable-hive-support": "writers read no catalog",
    "--max-pending-clustering": "services do not keep writers waiting",
    "--max-pending-compactions": "services do not keep writers waiting",
    "--props": "its properties are listed here",
    "--retry-last-pending-inline-clustering": "the agent finishes what it has begun",
    "--retry-last-pending-inline-compaction": "the agent finishes what it has begun",
    "--source-limit": "the source is not read here",
    "--spark-app-name": "the name of the HudiWriter",
    "--spark-master": "the operator runs the pods",
    "--sync-tool-classes": "no catalog is asked for",
}
_BOOTSTRAP = (
    "a table begins with other rows by its own field",
    "set spec.bootstrap of the HudiTable by docs/use/migrate.md, and leave this out",
)
_FLAGS_MISSED: dict[str, tuple[str, str, str]] = {
    "--bootstrap-overwrite": (*_BOOTSTRAP, TABLE),
    "--commit-on-errors": ("a batch is committed whole or not", "filter such rows in transform.sql", ""),
    "--config-hot-update-strategy-class": ("a changed spec applies from the next attempt on", "leave it out", ""),
    "--help": ("it asks HoodieStreamer for its options, and is no job", "leave it out", ""),
    "--ingestion-metrics-class": ("classes of your own do not run here", "see docs/operate/operations.md", ""),
    "--post-write-termination-strategy-class": (
        "a streaming run has no end of its own",
        "leave --continuous out: a run then ends with its source",
        "",
    ),
    "--run-bootstrap": (*_BOOTSTRAP, TABLE),
    "--schemaprovider-class": (
        "the source declares its columns",
        "convert columns in transform.sql",
        "",
    ),
}
_SAME = {
    "hoodie.base.path": "--target-base-path counts",
    "hoodie.table.name": "--target-table counts",
    "hoodie.datasource.write.table.name": "--target-table counts",
    "hoodie.datasource.write.table.type": "--table-type counts",
    "hoodie.table.type": "--table-type counts",
    "hoodie.database.name": "a name for SQL; the table has its path",
    "hoodie.write.markers.*": "the operator sets how markers are kept",
    "hoodie.markers.timeline_server_based.*": "the operator sets how markers are kept",
    "hoodie.streamer.ingestion.*": "only HoodieMultiTableStreamer uses it",
    "hoodie.streamer.sample.writes.*": "file sizes are estimated from the table's own commits",
    "hoodie.streamer.row.throw.explicit.exceptions": "a row that cannot be read fails the attempt (BadData)",
    "hoodie.streamer.transformer.*": "the transformers do not use it",
    "hoodie.datasource.write.streaming.*": "only Spark's structured streaming uses it",
    "hoodie.datasource.compaction.async.enable": "the table's agent compacts",
    "hoodie.datasource.write.reconcile.schema": "a batch is fitted to the columns of the table here as well",
}
"""Properties that HoodieStreamer does not use itself, or whose effect is here anyway."""
_OFF = (
    "hoodie.metrics.*",
    "hoodie.write.commit.callback.on",
    "hoodie.schema.on.read.enable",
    "hoodie.log.compaction.*",
    "hoodie.table.cdc.enabled",
    "hoodie.errortable.*",
    "hoodie.datasource.write.drop.partition.columns",
    "hoodie.archive.beyond.savepoint",
    "hoodie.streamer.source.sanitize.*",
    "hoodie.streamer.source.json.skip.invalid.records",
    "hoodie.streamer.schema.make.columns.nullable",
    "hoodie.precommit.*",
)
"""Families whose switches are off here, too."""
_INSTEAD = {
    "hoodie.metrics.*": "scrape the operator and the pods (docs/operate/operations.md)",
    "hoodie.write.commit.callback.*": "set spec.commitCallback of the HudiTable (docs/use/callbacks.md)",
    "hoodie.*schema*": "see docs/use/schema.md; convert columns in transform.sql",
    "hoodie.errortable.*": "a row that cannot be read fails the attempt: filter such rows in transform.sql",
    "hoodie.streamer.source.sanitize.*": "rename columns in transform.sql",
    "hoodie.streamer.source.json.skip.invalid.records": "set source.kafka.onBadRecord: {action: Drop}",
    "hoodie.datasource.hive_sync.*": "set spec.catalog (docs/use/catalogs.md)",
    "hoodie.precommit.*": "set spec.validations of the HudiWriter (docs/use/validations.md)",
    "hoodie.bootstrap.*": "set spec.bootstrap of the HudiTable by docs/use/migrate.md",
    "hoodie.*class*": "build an image with it and use a program of your own (spec.application)",
    "hoodie.keygen.*": "compute the column in transform.sql",
    "hoodie.clustering.*": "set spec.services.clustering by hand",
}


def translate(work: Work) -> None:
    """Say something of every option that is left."""
    for option, by in work.given.others:
        work.unneeded(option, f"that of {by} counts")
    for name, option in work.given.flags.items():
        if name in _FLAGS_MISSED:
            reason, instead, blocks = _FLAGS_MISSED[name]
            work.missing(option, reason, instead, blocks if work.is_open(option) else "")
        elif name in _FLAGS_UNNEEDED:
            work.unneeded(option, _FLAGS_UNNEEDED[name])
        else:
            work.missing(option, "not an option of HoodieStreamer 1.2", "correct it, or leave it out")
    for name, option in work.given.properties.items():
        if work.is_open(option):
            _property(work, name, option)
    for option in work.given.strays:
        if option.name.endswith(".jar"):
            work.unneeded(option, "the operator's image has Hudi")
        else:
            work.missing(option, "belongs to no option", "quote a value that has blanks")
    for option in work.open:
        work.missing(option, "not known here", "correct it, or leave it out")


def _match(name: str, patterns: Iterable[str]) -> str:
    """The first pattern that a name matches; empty: none."""
    return next((each for each in patterns if fnmatch.fnmatchcase(name, each)), "")


def _property(work: Work, name: str, option: Option) -> None:
    flat = normal(canonical(name))
    instead = _INSTEAD.get(_match(flat, _INSTEAD), "leave it out, or set by hand what the reason names")
    if same := _match(flat, _SAME):
        work.unneeded(option, _SAME[same])
    elif _match(flat, _OFF) and option.value.lower() in ("false", ""):
        work.unneeded(option, "off here as well")
    elif _match(flat, _OFF):
        work.missing(option, "there is no such thing here", instead)
    elif not flat.startswith("hoodie."):
        reason = "a credential that is not known here" if is_secret(name) else "no option of Hudi"
        work.missing(option, reason, "leave it out, or put it into a Secret" if is_secret(name) else "leave it out")
    else:
        _of_hudi(work, flat, option, instead)


def _of_hudi(work: Work, flat: str, option: Option, instead: str) -> None:
    name, owned = canonical(option.name), rule_for(flat, OWNED)
    if owned is not None:
        if owned.why in _OF_THE_OPERATOR and not _match(flat, _MISSED_ANYWAY):
            work.unneeded(option, owned.why)
        elif owned.why in _SERVICES:
            work.missing(option, "spec.services has no such setting", "set spec.services by hand")
        else:
            work.missing(option, owned.why, instead)
        return
    whole = rule_for(flat, OF_THE_TABLE) is not None or bool(_match(flat, allowed.ALLOWED_OF_THE_TABLE))
    listed = allowed.ALLOWED_OF_THE_TABLE if whole else allowed.ALLOWED_HUDI
    if is_secret(option.name) or not _match(flat, listed):
        work.missing(
            option,
            "not on the list of Hudi's options that may be set",
            instead if _match(flat, _INSTEAD) else "leave it out; an administrator can allow it (options.allow)",
        )
    elif work.hudi_option(work.table if whole else work.writer, option, name if name.lower() == flat else flat):
        work.to(option, f"{TABLE if whole else WRITER} spec.hudiOptions")
    else:
        work.missing(option, "64 options of at most 2048 characters without ${", "shorten it")

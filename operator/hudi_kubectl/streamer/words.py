"""The command line of a job: options of spark-submit, the jar, options of HoodieStreamer.

Below it are `properties` and the records of `given`; it uses nothing else.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from hudi_kubectl.streamer import properties
from hudi_kubectl.streamer.given import BadInput, Given, Option, Places

ALIASES = {
    "--source-ordering-field": "--source-ordering-fields",
    "--record-merge-mode": "--merge-mode",
    "--record-merge-strategy-id": "--merge-strategy-id",
    "--record-merge-custom-implementation-classes": "--merge-impl-classes",
    "-rc": "--retry-last-pending-inline-clustering",
    "-h": "--help",
}
SWITCHES = frozenset(
    (
        "--allow-commit-on-no-checkpoint-change",
        "--bootstrap-overwrite",
        "--commit-on-errors",
        "--continuous",
        "--disable-compaction",
        "--enable-hive-support",
        "--enable-hive-sync",
        "--enable-sync",
        "--filter-dupes",
        "--force-empty-sync",
        "--help",
        "--retry-last-pending-inline-clustering",
        "--retry-last-pending-inline-compaction",
        "--retry-on-source-failures",
        "--run-bootstrap",
    )
)
"""Options of HoodieStreamer without a value."""
VALUED = frozenset(
    (
        "--base-file-format",
        "--bootstrap-index-class",
        "--checkpoint",
        "--cluster-scheduling-minshare",
        "--cluster-scheduling-weight",
        "--compact-scheduling-minshare",
        "--compact-scheduling-weight",
        "--config-hot-update-strategy-class",
        "--delta-sync-scheduling-minshare",
        "--delta-sync-scheduling-weight",
        "--hoodie-conf",
        "--ignore-checkpoint",
        "--ingestion-metrics-class",
        "--initial-checkpoint-provider",
        "--max-pending-clustering",
        "--max-pending-compactions",
        "--max-retry-count",
        "--merge-impl-classes",
        "--merge-mode",
        "--merge-strategy-id",
        "--min-sync-interval-seconds",
        "--op",
        "--payload-class",
        "--post-write-termination-strategy-class",
        "--props",
        "--retry-interval-seconds",
        "--schemaprovider-class",
        "--source-class",
        "--source-limit",
        "--source-ordering-fields",
        "--spark-app-name",
        "--spark-master",
        "--sync-tool-classes",
        "--table-type",
        "--target-base-path",
        "--target-table",
        "--transformer-class",
    )
)
"""Options of HoodieStreamer 1.2 with a value."""
_SUBMIT_SWITCHES = frozenset(("--verbose", "-v", "--supervise", "--version", "--usage-error", "--help", "-h"))
_SUBMIT = "spark-submit"
_CONTINUED = re.compile(r"\\[ \t]*\r?\n")
_COMMAND_LINE = "command line"


def of_text(text: str, name: str) -> list[str]:
    """The words of a shell script with one command. Raises BadInput."""
    try:
        return _substituted(shlex.split(_CONTINUED.sub(" ", text), comments=True))
    except ValueError as error:
        raise BadInput(f"{name}: not a command line: {str(error).lower()}") from None


def _substituted(words: Sequence[str]) -> list[str]:
    """Words of a command substitution are one word: its output is not known."""
    found: list[str] = []
    end = ""
    for word in words:
        if end:
            found[-1] += f" {word}"
            end = "" if word.endswith(end) else end
            continue
        found.append(word)
        for begin, its_end in (("`", "`"), ("$(", ")")):
            if word.startswith(begin) and not (len(word) > 1 and word.endswith(its_end)):
                end = its_end
    return found


def read(words: Sequence[str], given: Given, origin: str = _COMMAND_LINE) -> list[Option]:
    """Sort the words of one command into ``given``; the `--hoodie-conf` that they have, in order.

    Options of an earlier command that come again are replaced. Raises BadInput.
    """
    left = list(words)
    if left and left[0].rpartition("/")[2] == _SUBMIT:
        left = _submit(left[1:], given, origin)
    confs: list[Option] = []
    seen: set[str] = set()
    while left:
        word = left.pop(0)
        if not word.startswith("-") or word == "-":
            name = word if word.endswith(".jar") else "(a word)"
            given.strays.append(Option(name, word, origin))
            continue
        as_given, with_value, value = word.partition("=")
        name = ALIASES.get(as_given, as_given)
        if name in SWITCHES:
            if with_value:
                raise BadInput(f"{origin}: {name} has no value")
        elif not with_value and (name in VALUED or (left and not left[0].startswith("-"))):
            if not left:
                raise BadInput(f"{origin}: {name} needs a value")
            value = left.pop(0)
        if name == "--hoodie-conf":
            confs.append(_conf(value, origin))
            continue
        if name in seen:
            raise BadInput(f"{origin}: {name} is given twice")
        seen.add(name)
        given.put(given.flags, name, Option(as_given, value, origin))
    return confs


def _conf(value: str, origin: str) -> Option:
    option = properties.option_of(value, f"{origin}: --hoodie-conf")
    if option is None or option.name == "include":
        raise BadInput(f"{origin}: --hoodie-conf needs KEY=VALUE")
    return Option(option.name, option.value, f"{origin}, --hoodie-conf")


def _submit(words: list[str], given: Given, origin: str) -> list[str]:
    """Take the options of spark-submit and the jar; the words that are left."""
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            given.put(given.submit, "(jar)", Option("(the jar)", word, origin))
            return words
        name, with_value, value = word.partition("=")
        if not with_value and name not in _SUBMIT_SWITCHES:
            if not words:
                raise BadInput(f"{origin}: {name} of spark-submit needs a value")
            value = words.pop(0)
        if name in ("--conf", "-c"):
            key, found, set_to = value.partition("=")
            if not found:
                raise BadInput(f"{origin}: {name} of spark-submit needs KEY=VALUE")
            given.put(given.spark, key.strip(), Option(key.strip(), set_to.strip(), f"{origin}, {name}"))
        else:
            given.put(given.submit, name, Option(name, value, f"{origin}, spark-submit"))
    raise BadInput(f"{origin}: spark-submit without a jar and options of HoodieStreamer")


def job(commands: Sequence[tuple[str, Sequence[str]]], files: Sequence[str], places: Places) -> Given:
    """A whole job: commands, a later one before an earlier one, and properties files.

    ``commands``: origin and words of each. ``files``: properties files besides that of `--props`.
    Raises BadInput.
    """
    given = Given()
    confs = [conf for origin, words in commands for conf in read(words, given, origin)]
    named = [given.flags["--props"].value] if "--props" in given.flags else []
    for name in (*named, *files):
        place = places.find(name)
        if place is None:
            raise BadInput(f"--props {name}: no such file here: copy it, and name its folder with --files")
        for option in properties.options(place, places):
            given.put(given.properties, canonical(option.name), option)
    for option in confs:
        given.put(given.properties, canonical(option.name), option)
    return given


_OLD = {
    "hoodie.cleaner.policy": "hoodie.clean.policy",
    "hoodie.cleaner.commits.retained": "hoodie.clean.commits.retained",
    "hoodie.cleaner.hours.retained": "hoodie.clean.hours.retained",
    "hoodie.cleaner.fileversions.retained": "hoodie.clean.fileversions.retained",
    "hoodie.cleaner.policy.failed.writes": "hoodie.clean.failed.writes.policy",
    "hoodie.clean.max.commits": "hoodie.clean.trigger.max.commits",
    "hoodie.table.precombine.field": "hoodie.datasource.write.precombine.field",
    "hoodie.table.ordering.fields": "hoodie.datasource.write.precombine.field",
    "hoodie.datasource.write.payload.class": "hoodie.compaction.payload.class",
    "hoodie.record.merge.mode": "hoodie.write.record.merge.mode",
    "hoodie.record.merge.strategy.id": "hoodie.write.record.merge.strategy.id",
    "hoodie.datasource.write.record.merger.strategy": "hoodie.write.record.merge.strategy.id",
    "hoodie.datasource.write.record.merger.impls": "hoodie.write.record.merge.custom.implementation.classes",
    "hoodie.datasource.clustering.inline.enable": "hoodie.clustering.inline",
    "hoodie.datasource.clustering.async.enable": "hoodie.clustering.async.enabled",
    "hoodie.table.hive_style_partitioning": "hoodie.datasource.write.hive_style_partitioning",
    "hoodie.datasource.hive_sync.enabled": "hoodie.datasource.hive_sync.enable",
}


def canonical(name: str) -> str:
    """Hudi's present name of a property."""
    for old, new in (
        ("hoodie.deltastreamer.keygen.", "hoodie.keygen."),
        ("hoodie.streamer.keygen.", "hoodie.keygen."),
        ("hoodie.deltastreamer.", "hoodie.streamer."),
    ):
        if name.startswith(old):
            return new + name[len(old) :]
    return _OLD.get(name, name)

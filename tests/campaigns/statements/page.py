"""`python -m tests.campaigns.statements.page`: docs/results/statements.json from what was seen
last, and docs/use/what-user-code-may-do.md from that and the list.
"""

from __future__ import annotations

import json
from typing import Any

from tests.support import ROOT
from tests.support.evidence import Evidence, of_results

LIST = ROOT / "spark-images/etcd-lock/src/main/resources/io/hudioperator/statements/statements.json"
SEEN = ROOT / "build" / "statements"
RESULTS = ROOT / "docs" / "results" / "statements.json"
PAGE = ROOT / "docs" / "use" / "what-user-code-may-do.md"
MODES = ("local", "executors")
ALSO = {
    "InsertIntoHoodieTableCommand": ("INSERT OVERWRITE … PARTITION", "INSERT OVERWRITE TABLE"),
    "AlterTableCommand": ("AlterTableCommand, another column",),
}
"""Other statements that Spark carries out with the same class: the row names the
outcome of each.
"""
HEAD = """\
# What user code may do

Made by `python -m tests.campaigns.statements.page`; do not edit. An application, or a `python`
source, may run what is listed here as *works* or *harmless*. Everything else that names a Hudi table
is refused before it begins, with `[HUDIOP-STATEMENT]`, which names the statement and what to use
instead: the list is an allow-list, and a statement or procedure that a later Hudi brings is refused
until somebody has looked at it. The check is a Spark SQL extension that the operator sets; it guards
against accident, not against malice.

Refused as well (`tests/tiers/hudi/test_reads.py`): Hudi's sink for streams
(`df.writeStream.format("hudi")`; use `foreachBatch` with `df.write`), which passes over batches that
it takes for another query's and ends the JVM when a write is refused; and `read_optimized` queries
of a MergeOnRead table by a program that writes it (use snapshot queries): what others have committed
to log files would be missing, and be overwritten; and reads of it with
`hoodie.datasource.merge.type=skip_merge`, which show old versions of rows beside the newest; and
reads of it that leave out files: with `spark.sql.files.ignoreCorruptFiles`,
`spark.sql.files.ignoreMissingFiles` or `hoodie.enable.data.skipping` on in the session. For a read
of something else set them as options of that read.

The checkpoint of a program's own stream is the program's affair. When it is lost, or a copy of it
goes on, `foreachBatch` gets rows once more, and of two streams with one checkpoint each gets a
part: give each its own, in a store that outlives the pod, and upsert by a key of the data, so that a
batch that comes again changes nothing.

The columns say what came of it in a program beside two other writers of the table, one of which was
in the middle of its write (`tests/tiers/hudi/test_statements.py`, which also counts the rows that
are due and audits the table): with Spark's tasks in the driver, and in an executor. "error" is an
error of its own (an argument that it needs, a mode that must fail); "not run" means that it was not
tried.
"""
UNLISTED = """\
## What no entry names

Refused because nothing allows it, seen with these:
"""
RACES = """\
## Reading the table that is written

Each of these had read the table before another writer committed to the same rows, and wrote afterwards. "conflict" is `[HUDIOP-SNAPSHOT-MOVED]` or a
conflict of Hudi: the program reads again and repeats. None of them has overwritten the other writer's change. What counts as read:
[sources](sources.md#read-modify-write).
"""  # noqa: E501 - text of a page or program


def text(entry: dict[str, Any] | None) -> str:
    """What was seen, in a word."""
    if entry is None:
        return "not run"
    if "added" in entry:
        return f"{entry['added']} of 6 succeeded, each counted once"
    if not entry["failed"]:
        return "ok"
    if "[HUDIOP-STATEMENT]" in entry["message"]:
        return "refused"
    return "conflict" if "onflict" in entry["message"] or "HUDIOP-SNAPSHOT" in entry["message"] else "error"


def table(
    title: str, entries: dict[str, dict[str, str]], seen: dict[str, dict[str, Any]], prefix: str = ""
) -> list[str]:
    """One section."""
    lines = [
        f"## {title}",
        "",
        "| statement | verdict | note, or what to use instead | local | executors |",
        "|---|---|---|---|---|",
    ]
    for name, entry in entries.items():
        what = entry.get("statement") or entry.get("save") or f"`CALL {name}`"
        outcomes = " | ".join(
            ", ".join(dict.fromkeys(text(seen[mode].get(part)) for part in (prefix + name, *ALSO.get(name, ()))))
            for mode in MODES
        )
        lines.append(f"| {what} | {entry['verdict']} | {entry.get('note') or entry.get('instead', '')} | {outcomes} |")
    return [*lines, ""]


def page() -> str:
    """The whole page, from the list and the results."""
    data = json.loads(LIST.read_text(encoding="utf-8"))
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    seen = {mode: results[mode]["found"] if mode in results else {} for mode in MODES}
    known = {
        *data["statements"],
        *(part for parts in ALSO.values() for part in parts),
        *data["saves"],
        *(f"CALL {name}" for name in data["procedures"]),
    }
    others = list(dict.fromkeys(name for mode in MODES for name in seen[mode] if name not in known))
    ran = [results[mode] for mode in MODES if mode in results]
    names = ", ".join(mode for mode in MODES if mode in results)
    count = (
        f"{len(ran)} of {len(MODES)} modes ({names}), each with the whole list of that day; what has come to the "
        "list since is not run"
    )
    verdicts = [] if ran else ["The verdicts are those of the list, no outcome is claimed.", ""]
    lines = [
        HEAD,
        str(
            Evidence(
                of_results(ran),
                count,
                left_out="runs before the newest of a mode, and those that did not come to their end",
            )
        ),
        "",
        *verdicts,
    ]
    lines += table("Statements", data["statements"], seen)
    lines += table("Saving a DataFrame", data["saves"], seen)
    lines += table("Procedures", data["procedures"], seen, "CALL ")
    outcomes = {name: [text(seen[mode].get(name)) for mode in MODES] for name in others}
    for head, chosen in ((UNLISTED, True), (RACES, False)):
        rows = [
            f"| {name} | {' | '.join(found)} |" for name, found in outcomes.items() if ("refused" in found) is chosen
        ]
        lines += [head, "| what | local | executors |", "|---|---|---|", *rows, ""] if rows else []
    return "\n".join(lines)


def main() -> None:
    """Entry point."""
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    for mode in MODES:
        if (SEEN / f"{mode}.json").exists():
            results[mode] = json.loads((SEEN / f"{mode}.json").read_text(encoding="utf-8"))
            for entry in results[mode]["found"].values():
                entry.update({"message": short(entry["message"])} if "message" in entry else {})
    RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


def short(message: str) -> str:
    """Without paths of the machine."""
    return " ".join(word for word in message.split() if "/" not in word or word.startswith("docs/"))[:200]


if __name__ == "__main__":
    main()

"""`python -m demo`: the whole scenario on a cluster that is up, with the chart installed (demo/run
does both).
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from demo import checks, cluster, picture, protocol
from demo.checks import Check, Findings
from demo.cluster import JsonDict
from demo.killing import Kill, follow, kill_while_writing
from demo.lake import moment
from demo.picture import Bar
from demo.screen import DemoFailed, Screen
from demo.world import NAMESPACE, OPERATOR_NAMESPACE, OUT, TABLE, TOGETHER, World, prepare
from hudi_contract.keys import Kind
from hudi_contract.table_keys import InstantRecord
from hudi_contract.words import InstantState


def describe(writers: dict[str, JsonDict]) -> str:
    """One line on what all writers do."""
    words = []
    for name, writer in writers.items():
        status = writer.get("status", {})
        words.append(
            f"{name} {status.get('state', 'new')} #{status.get('attempt', 0)} {status.get('records', 0):,} records"
        )
    return " | ".join(words)


def wait_finished(world: World, *names: str, seconds: float) -> None:
    """Wait until all of the writers have finished.

    Raises DemoFailed at once when one has finally failed.
    """

    def finished() -> tuple[bool | None, str]:
        writers = {name: writer for name, writer in world.writers().items() if name in names}
        for name, writer in writers.items():
            if cluster.is_true(writer, "Finished") and not cluster.is_true(writer, "Succeeded"):
                why = cluster.condition(writer, "Finished")
                raise DemoFailed(f"writer {name} has failed: {why.get('reason')}: {why.get('message')}")
        if len(writers) == len(names) and all(cluster.is_true(writer, "Finished") for writer in writers.values()):
            return True, ""
        return None, describe(writers)

    world.screen.wait(f"{', '.join(names)} to finish", finished, seconds=seconds, every=1.5)


def wait_ready(world: World) -> None:
    def ready() -> tuple[bool | None, str]:
        found = cluster.condition(cluster.get("huditable", TABLE, "-n", NAMESPACE), "Ready")
        return (
            (True, "")
            if found.get("status") == "True"
            else (None, f"{found.get('reason', 'no condition yet')}: {found.get('message', '')}")
        )

    world.screen.wait("HudiTable flights to be Ready", ready, seconds=300, every=1.5)


def scenario(world: World) -> Kill:
    screen = world.screen
    screen.step("A table, and the first half of the year in one bulk insert")
    world.apply("table")
    wait_ready(world)
    screen.fact(f"HudiTable flights is Ready at s3a://{world.path}")
    world.apply("load")
    wait_finished(world, "load", seconds=900)
    screen.fact(f"load: {world.writer('load')['status'].get('records', 0):,} records")
    screen.step("live, backfill and encrypt write at the same time")
    world.apply(*TOGETHER)
    screen.step("backfill's driver is killed while it writes data")
    kill = kill_while_writing(world, "backfill")
    follow(world, kill, "backfill")
    screen.step("Everybody finishes")
    wait_finished(world, *TOGETHER, seconds=1800)
    for name, writer in world.writers().items():
        for entry in writer["status"].get("recentConflicts", []):
            groups = ", ".join(entry.get("fileGroups", []))
            again = entry.get("retriedAs") or "(a later attempt)"
            screen.fact(
                f"conflict: {name}'s {entry.get('instant')} against {entry.get('with')} on {groups}; repeated as "
                f"{again}"
            )
    return kill


def bars(findings: Findings) -> tuple[list[Bar], list[str]]:
    """The picture's rows: one for each attempt that had an instant, the agent, and the lock."""
    world, kill = findings.world, findings.kill
    changes = world.watch.changes()
    completed = {i.requested: moment(i.completed).timestamp() for i in findings.timeline if i.completed}
    refused = {entry.get("instant") for _, entry in findings.conflicts}
    found: list[Bar] = []
    now = time.time()
    for held in protocol.intervals(changes, Kind.INSTANT):
        row = row_of(held.attempt)
        start = moment(held.what).timestamp()
        if row == "agent":
            found.append(Bar(row, start, completed.get(held.what, held.end or now), "rollback"))
        elif held.what in completed:
            found.append(Bar(row, start, completed[held.what], "commit"))
        elif kill is not None and held.what == kill.instant:
            found.append(Bar(row, start, kill.at, "killed"))
        else:
            found.append(
                Bar(
                    row,
                    start,
                    abandoned_at(changes, held.what) or held.end or now,
                    "refused" if held.what in refused else "failed",
                )
            )
    found.extend(Bar("lock", held.start, held.end or now, "lock") for held in protocol.intervals(changes, Kind.LOCK))
    if kill is not None and "rolled back" in kill.times and not any(bar.row == "agent" for bar in found):
        end = kill.at + kill.times["rolled back"]
        found.append(Bar("agent", kill.at + kill.times.get("unlocked", 0.0), end, "rollback"))
    order = ["load", "live", "backfill", "encrypt"]
    writers = sorted(
        {bar.row for bar in found} - {"agent", "lock"},
        key=lambda row: (order.index(row.split(" ")[0]) if row.split(" ")[0] in order else 9, row),
    )
    return found, [*writers, "agent", "lock"]


def row_of(attempt: str) -> str:
    """``backfill #2`` from the attempt's id; ``agent`` for an agent's."""
    pod = attempt.split(".", 1)[-1]
    if pod.startswith("hudi-agent"):
        return "agent"
    parts = pod.rsplit("-", 2)
    return f"{parts[0]} #{parts[-1]}" if len(parts) == 3 else pod or "?"


def abandoned_at(changes: list[protocol.Change], instant: str) -> float | None:
    """Time at which the owner abandoned the instant; None when it never did."""
    for change in changes:
        if change.of == (Kind.INSTANT, instant) and change.read(InstantRecord).state is InstantState.ABANDONED:
            return change.at
    return None


def summary(console: Console, findings: Findings, results: list[Check]) -> None:
    writers = Table(title="Writers", title_justify="left")
    for column in ("Writer", "Attempts", "Commits", "Records", "Conflicts", "Result"):
        writers.add_column(column, justify="left" if column in {"Writer", "Result"} else "right")
    for name, writer in findings.world.writers().items():
        status = writer.get("status", {})
        commits = sum(findings.owner(i.requested) == name for i in findings.timeline)
        cells = [
            status.get("attempt", 0),
            commits,
            f"{status.get('records', 0):,}",
            status.get("conflicts", 0),
            cluster.condition(writer, "Finished").get("reason", ""),
        ]
        writers.add_row(name, *[str(cell) for cell in cells])
    console.print(writers)
    if findings.kill is not None:
        phases = Table(title=f"After the kill of {findings.kill.pod}", title_justify="left")
        phases.add_column("Step")
        phases.add_column("Seconds after the kill", justify="right")
        for name, seconds in sorted(findings.kill.times.items(), key=lambda pair: pair[1]):
            phases.add_row(name, f"{seconds:.1f}")
        console.print(phases)
    outcome = Table(title="Checks", title_justify="left")
    outcome.add_column("")
    outcome.add_column("Check")
    outcome.add_column("Found", overflow="fold")
    for check in results:
        outcome.add_row("[green]✔[/green]" if check.good else "[red]✘[/red]", check.name, check.detail)
    console.print(outcome)
    good = sum(check.good for check in results)
    console.print(f"[bold]{good} of {len(results)} checks hold[/bold]")


def show(world: World, kill: Kill | None) -> bool:
    """Checks, summary and picture on the screen and in build/demo; True when every check holds."""
    screen = world.screen
    screen.step("Checks")
    findings = checks.collect(world, kill)
    results = checks.run(findings)
    lines = picture.save(*bars(findings), str(OUT / "timeline"), "Who wrote what, when")
    report = Console(record=True, width=120 if not screen.console.is_terminal else None, highlight=False)
    report.print()
    summary(report, findings, results)
    report.print("\n[bold]Timeline[/bold]")
    for line in lines:
        report.print(line)
    report.save_text(str(OUT / "summary.txt"))
    facts = {
        "checks": {check.name: {"good": check.good, "detail": check.detail} for check in results},
        "kill": None
        if kill is None
        else {
            "instant": kill.instant,
            "pod": kill.pod,
            "files": [file.path for file in kill.files],
            "seconds": kill.times,
        },
        "longestGapSeconds": checks.longest_gap(findings),
        "commits": findings.spark.commits,
    }
    (OUT / "summary.json").write_text(json.dumps(facts, indent=1))
    return all(check.good for check in results)


NEXT = f"""
The cluster is still there. To look around:

    export KUBECONFIG="$(hack/cluster/cluster kubeconfig)" \
PATH="${{HUDI_OPERATOR_CACHE:-$HOME/.cache/hudi-operator}}/bin:$PATH"
    kubectl get hudi -n {NAMESPACE}
    kubectl describe hudiwriter backfill -n {NAMESPACE}
    kubectl logs -n {OPERATOR_NAMESPACE} deployment/hudi-operator

To remove everything:  make down
Summary and picture: build/demo/summary.txt, build/demo/timeline.svg; logs of all pods: build/demo/logs"""


def main() -> int:
    OUT.mkdir(parents=True, exist_ok=True)
    screen = Screen()
    world: World | None = None
    try:
        screen.step("An S3 server with the flights of 2013 as CSV")
        world = prepare(screen)
        kill = scenario(world)
        good = show(world, kill)
    except (DemoFailed, cluster.KubectlFailed) as error:
        screen.console.print(f"\n[bold red]The demo failed:[/bold red] {error}", markup=True)
        screen.console.print(f"The cluster is left as it is. Logs of all pods: {Path('build/demo/logs')}")
        return 1
    finally:
        if world is not None:
            world.close()
    screen.console.print(NEXT, markup=False)
    screen.console.print(f"\n{'Every check holds' if good else 'NOT every check holds'} ({screen.elapsed():.0f} s)")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

"""Docs/results/alerts.md, from what is kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.campaigns.alerts import rules
from tests.campaigns.alerts.run import OK, load
from tests.support import ROOT
from tests.support.evidence import Evidence, as_said
from tests.support.evidence.replaced import told

JsonDict = dict[str, Any]
PAGE = ROOT / "docs" / "results" / "alerts.md"
HEAD = """\
# Alerts and runbooks that were tried

Written by `make alerts` (`tests/campaigns/alerts`); do not edit. For each
[alert](../operate/runbooks/README.md) its fault was made on a cluster. A Prometheus and an
Alertmanager had to notify of it; every command of its runbook was run while the fault was there,
had to succeed, and together they had to show the cause; then the fault was repaired, and the
Alertmanager had to notify of the end. Meanwhile no alert may fire for a table without a fault.

Real are the API server with the chart's objects, etcd, the operator, the gateway, Prometheus and
Alertmanager; for HudiBrokerFailing also an S3 server and the example broker. Agents and drivers are
played: what they find in a table or a bucket is what the test says that they find, and their pods
have no log. No table is on S3. There is no kubelet (the logs of operator, gateway and etcd are those
of their processes) and no metrics-server.

Times of the alerts are shortened, so that each fires within seconds; the last table says how. That
each fires after its real times, and not before, is shown by promtool on series
(`tests/tiers/unit/monitoring/cases.yaml`). **Fired**: seconds from the fault to the alert.
**Ended**: seconds from the repair to its end.
"""
DIRECT = (
    "Played agents and drivers reach etcd directly, with the gateway's certificate; requests through the gateway are "
    "part of HudiGatewayRefusing alone."
)


def page(found: Callable[[str], JsonDict | None] = load) -> str:
    """The whole page. ``found``: the result of an alert."""
    every = rules.every()
    results = {name: found(name) for name in every}
    known = [result for result in results.values() if result is not None]
    good = sum(result["verdict"] == OK for result in known)
    commands = [command for result in known for command in result.get("commands", ())]
    ran = sum("exit" in command for command in commands)
    evidence = Evidence.of(
        known,
        f"the last one of each of {len(known)} of {len(every)} alerts, {good} of them ok; {ran} of {len(commands)} "
        "commands of their runbooks were run",
        left_out=told(results.values()),
        direct=DIRECT,
    )
    lines = [HEAD, str(evidence), ""]
    for group in rules.groups():
        lines += [f"## {_title(group['name'])}", ""]
        lines += [
            "| alert | fault | fired | runbook | repair | ended | commit, day |",
            "|---|---|---:|---|---|---:|---|",
        ]
        for rule in group["rules"]:
            lines.append(_row(rule["alert"], results[rule["alert"]]))
        lines.append("")
    lines += _not_run(results)
    lines += _shortened(every)
    return "\n".join(lines)


def _title(group: str) -> str:
    word = group.removeprefix("hudi-")
    return {"operator": "The operator", "etcd": "etcd and certificates", "gateway": "The gateway"}.get(
        word, word.capitalize()
    )


def _row(alert: str, result: JsonDict | None) -> str:
    link = f"[{alert}](../operate/runbooks/{alert}.md)"
    if result is None:
        return f"| {link} | not run | | | | | |"
    commands = result.get("commands", ())
    ran = sum("exit" in command for command in commands)
    shown = ", ".join(f"`{_plain(text)}`" for text in result.get("shows", ()))
    worked = f"{ran} of {len(commands)} commands, shown: {shown}"
    if result["verdict"] != OK:
        worked = f"**failed**: {_plain('; '.join(result['wrong']))}"
    cells = [link, result["fault"], _seconds(result, "firedAfter"), worked, result["repaired"]]
    cells += [_seconds(result, "endedAfter"), f"{as_said(result['commit'])}, {result['at'][:10]}"]
    return f"| {' | '.join(cells)} |"


def _plain(text: str) -> str:
    """A text within a cell of a table."""
    return re.sub(r"\s+", " ", text).replace("|", "/").replace("`", "'")


def _seconds(result: JsonDict, name: str) -> str:
    return f"{result[name]:.0f} s" if name in result else "–"


def _not_run(results: Mapping[str, JsonDict | None]) -> list[str]:
    """Commands that were not run, with the reasons."""
    found = {
        (name, command["command"], command["notRun"])
        for name, result in results.items()
        if result is not None
        for command in result.get("commands", ())
        if "notRun" in command
    }
    if not found:
        return []
    lines = ["## Commands that were not run", "", "| alert | command | why |", "|---|---|---|"]
    return [*lines, *(f"| {name} | `{_plain(line)}` | {why} |" for name, line, why in sorted(found)), ""]


def _shortened(every: Mapping[str, JsonDict]) -> list[str]:
    lines = ["## Times that were shortened", "", "| alert | real time: in these runs |", "|---|---|"]
    return [*lines, *(f"| {name} | {', '.join(rules.changes(rule))} |" for name, rule in every.items()), ""]


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")

"""The chart's alerts with shorter times, so that each can be tried in seconds.

The expressions, their thresholds and what they say stay as they are, but for what `SHORTER` lists.
What an alert does with its real times is shown by promtool (tests/tiers/unit/monitoring).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tests.support import ROOT, quick_yaml

JsonDict = dict[str, Any]
RULES = ROOT / "charts" / "hudi-operator" / "files" / "alerts.yaml"
FOR = "2s"
"""Time for which an expression must be true."""
WINDOW = "12s"
"""Time over which rates and increases are computed; Prometheus scrapes every second."""
SHORTER = {"HudiSettlingSlow": (1800, 5), "HudiWriterWaiting": (3600, 5)}
"""Ages that only time itself can make. The other ages are true: what the test plays says that it
began so long ago.
"""
_WINDOW = re.compile(r"(?<=\[)\d+[smhd](?=\])|(?<=offset )\d+[smhd]\b")


def groups() -> list[JsonDict]:
    """Groups of the chart's rules."""
    found: list[JsonDict] = quick_yaml.load(RULES.read_text())["groups"]
    return found


def every() -> dict[str, JsonDict]:
    """The chart's alerts by name, in their order."""
    return {rule["alert"]: rule for group in groups() for rule in group["rules"]}


def shortened(rule: JsonDict) -> JsonDict:
    """An alert with shorter times."""
    expression = _WINDOW.sub(WINDOW, rule["expr"])
    if rule["alert"] in SHORTER:
        real, short = SHORTER[rule["alert"]]
        expression = re.sub(rf"> {real}\b", f"> {short}", expression)
    return {**rule, "for": FOR, "expr": expression}


def changes(rule: JsonDict) -> list[str]:
    """What `shortened` has changed of an alert, in words."""
    found = [f"for {rule['for']}: {FOR}"]
    found += [f"over {window}: {WINDOW}" for window in dict.fromkeys(_WINDOW.findall(rule["expr"]))]
    if rule["alert"] in SHORTER:
        real, short = SHORTER[rule["alert"]]
        found.append(f"older than {real} s: {short} s")
    return found


def write(file: Path) -> None:
    """Write all of them as a rule file."""
    made = [{**group, "rules": [shortened(rule) for rule in group["rules"]]} for group in groups()]
    file.write_text(quick_yaml.dump({"groups": made}))

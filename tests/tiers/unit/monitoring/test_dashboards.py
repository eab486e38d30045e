"""The chart's Grafana dashboards: made by hack/dashboards/make.py, of queries that promtool reads
and of metrics that exist; every metric has a panel.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from hudi_operator.metrics import catalog
from tests.support import ROOT, promtool

FOLDER = ROOT / "charts" / "hudi-operator" / "files" / "dashboards"
PAGES = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
JsonDict = dict[str, Any]
COLUMNS = 24
VARIABLES = {"job": "hudi-operator", "namespace": "lake", "table": "orders"}
every_page = pytest.mark.parametrize("name", PAGES)


def queries(page: JsonDict) -> list[tuple[str, str, str]]:
    """Panel, expression with its variables filled in, and legend."""
    return [
        (panel["title"], promtool.replaced(target["expr"], VARIABLES), target["legendFormat"])
        for panel in page["panels"]
        for target in panel.get("targets", ())
    ]


def asked(page: JsonDict) -> list[str]:
    """Selectors of the variables."""
    found = [v["query"] for v in page["templating"]["list"] if v["type"] == "query"]
    return [re.fullmatch(r"label_values\((.*), \w+\)", query)[1] for query in found]  # type: ignore[index]


def test_they_are_what_the_generator_makes() -> None:
    script = ROOT / "hack" / "dashboards" / "make.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout
    assert PAGES.keys() == {"overview", "table", "operator"}


@every_page
def test_queries_ask_for_metrics_and_labels_that_exist(name: str) -> None:
    known = {series: metric for metric in catalog.every() for series in metric.series}
    for title, expression, legend in [*queries(PAGES[name]), *(("variable", text, "") for text in asked(PAGES[name]))]:
        selectors = promtool.selectors(expression)
        assert selectors or "process_" in expression, title
        there = {"job", "pod", "le"}.union(*(known[selector.metric].labels for selector in selectors))
        used = {label for selector in selectors for label in selector.labels} | promtool.grouped(expression)
        used |= set(re.findall(r"\{\{(\w+)\}\}", legend))
        assert used <= there, title
        for selector in selectors:
            if title != "variable":
                assert "job" in selector.labels, (title, "two operators of one cluster would be mixed")


@every_page
def test_variables_are_declared(name: str) -> None:
    page = PAGES[name]
    declared = {variable["name"] for variable in page["templating"]["list"]}
    used = {a or b for a, b in re.findall(r"\$(?:\{(\w+)\}|(\w+))", json.dumps(page))}
    assert used - {"__rate_interval", "__range"} <= declared
    assert {"datasource", "job"} <= declared


def test_promtool_reads_every_query(tmp_path: Path) -> None:
    promtool.need()
    found = [expression for page in PAGES.values() for _, expression, _ in queries(page)]
    assert len(found) > 60
    rules = [{"record": f"panel:{number}", "expr": expression} for number, expression in enumerate(found)]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    done = promtool.run("check", "rules", str(file))
    assert done.returncode == 0, done.stdout
    assert f"{len(found)} rules found" in done.stdout
    rules[0]["expr"] += ")"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    assert promtool.run("check", "rules", str(file)).returncode != 0


def test_every_metric_has_a_panel() -> None:
    shown = {s.metric for page in PAGES.values() for _, text, _ in queries(page) for s in promtool.selectors(text)}
    assert [metric.name for metric in catalog.every() if not shown & set(metric.series)] == []


@every_page
def test_panels_have_places_and_texts(name: str) -> None:
    taken: set[tuple[int, int]] = set()
    panels = PAGES[name]["panels"]
    assert [panel["id"] for panel in panels] == list(range(1, len(panels) + 1))
    titles = [panel["title"] for panel in panels]
    assert len(titles) == len(set(titles))
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert max(x for x, _ in cells) < COLUMNS, panel["title"]
        assert not cells & taken, panel["title"]
        taken |= cells
        if panel["type"] != "row":
            assert panel["description"] or "process_" in panel["targets"][0]["expr"], panel["title"]
            assert [target["refId"] for target in panel["targets"]] == list("ABCD")[: len(panel["targets"])]


def test_names_are_unique_and_stay() -> None:
    """Links and bookmarks use the uid."""
    assert {name: page["uid"] for name, page in PAGES.items()} == {
        "overview": "hudi-overview",
        "table": "hudi-table",
        "operator": "hudi-operator",
    }

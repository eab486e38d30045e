"""docs/operate/chart-values.md: every value of the chart, made from its values.yaml and schema; and
the chart's README, which has the same list.

    python -m tests.campaigns.pages.chart_values      write both

The text on a value is the comment above it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

import yaml

from tests.campaigns.pages.api import bounds, code, plain, shown
from tests.support import ROOT
from tests.support.evidence.prose import wrapping

JsonDict = dict[str, Any]
CHART = ROOT / "charts/hudi-operator"
PAGE = ROOT / "docs/operate/chart-values.md"
README = CHART / "README.md"
SECTION = re.compile(r"# ---- (.*?) ----")


def comment(lines: list[str], at: int) -> str:
    """The comment above a line. `#` and two blanks begin an example of the value before it."""
    found: list[str] = []
    while at > 0 and re.match(r"\s*# ?\S", lines[at - 1]) and not SECTION.match(lines[at - 1].strip()):
        at -= 1
        found.insert(0, lines[at].strip().removeprefix("#").strip())
    return " ".join(found)


def example(lines: list[str], at: int) -> str:
    """The example below a line."""
    found = []
    while at + 1 < len(lines) and re.match(r"\s*#  ", lines[at + 1]):
        at += 1
        found.append(lines[at].strip().removeprefix("#").strip())
    return " ".join(found)


def resolved(schema: JsonDict, root: JsonDict) -> JsonDict:
    while "$ref" in schema:
        found: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = {**found, **{name: value for name, value in schema.items() if name != "$ref"}}
    return schema


def entries(node: yaml.MappingNode, at: str, schema: JsonDict, root: JsonDict, lines: list[str]) -> Iterator[str]:
    """A line for each value, and for each group of values that has its own comment."""
    for key, value in node.value:
        path = f"{at}.{key.value}" if at else key.value
        own = resolved(resolved(schema, root).get("properties", {}).get(key.value, {}), root)
        section = _section_above(lines, key.start_mark.line)
        if section and not at:
            title = re.sub(r" \(docs/.*\)$", "", section[1])
            yield from ("", f"## {title if title.startswith('etcd') else title[0].upper() + title[1:]}", "")
        said = plain(comment(lines, key.start_mark.line))
        if isinstance(value, yaml.MappingNode) and value.value and "properties" in own:
            if said:
                yield f"* **{code(path)}**: {said}"
            yield from entries(value, path, own, root, lines)
            continue
        default = yaml.safe_load(yaml.serialize(value))
        facts = "; ".join([_kind(own), f"default {code(shown(default))}", *bounds(own, required=False)])
        text = f"* **{code(path)}** ({facts}){'. ' + said if said else ''}"
        if more := example(lines, value.start_mark.line):
            text += f" Example: {code(more)}"
        yield text


def _section_above(lines: list[str], at: int) -> re.Match[str] | None:
    """The title above a key and its comment."""
    while at > 0 and (not lines[at - 1].strip() or lines[at - 1].startswith("#")):
        at -= 1
        if found := SECTION.match(lines[at].strip()):
            return found
    return None


def _kind(schema: JsonDict) -> str:
    kind = schema.get("type", "string" if all(isinstance(one, str) for one in schema.get("enum", [0])) else "any value")
    if isinstance(kind, list):
        return " or ".join(kind)
    return {"array": "list", "object": "map"}.get(kind, kind)


def values() -> Iterator[str]:
    """A line for each value, below the titles of the parts."""
    text = (CHART / "values.yaml").read_text(encoding="utf-8")
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    root = yaml.compose(text)
    assert isinstance(root, yaml.MappingNode)
    yield from entries(root, "", schema, schema, text.splitlines())


def _page(lines: list[str]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


@wrapping
def page() -> str:
    lines = ["# Values of the chart", ""]
    lines.append(
        "Made from `charts/hudi-operator/values.yaml` and its schema by `python -m "
        "tests.campaigns.pages.chart_values`; a test compares it. In brackets: type, default and bounds. Names that "
        "are not on this page are refused."
    )
    lines.append("")
    return _page([*lines, *values()])


@wrapping
def readme() -> str:
    """README of the packaged chart: it contains no page of docs/, so it links to none."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    lines = [f"# {chart['name']}", "", f"{chart['description']}.", ""]
    lines.append(
        f"Version {chart['version']}, for Kubernetes {chart['kubeVersion'].removesuffix('-0')}. The chart has the "
        "operator, the gateway through which pods reach etcd, an etcd, the CRDs HudiTable and HudiWriter, admission "
        "policies and roles."
    )
    lines += ["", "## Install", ""]
    lines.append(
        "No registry has images of this project. Build the four images, push them to your registry, and list the "
        "paths that each namespace may use:"
    )
    lines += ["", "    helm install hudi-operator CHART -n hudi-operator --create-namespace \\"]
    lines += ["      --set images.registry=REGISTRY --set images.tag=TAG \\"]
    lines += ['      --set-json \'config.pathPrefixes={"NAMESPACE": ["s3a://BUCKET/"]}\'', ""]
    lines.append(
        "CHART is the folder or the archive of this chart. `helm test hudi-operator -n hudi-operator` asks every pod "
        "of the operator and the gateway, and through it etcd, whether it is ready, and looks at the gateways' "
        "certificates."
    )
    lines += ["", "## Upgrade and uninstall", ""]
    lines.append(
        "`helm upgrade` upgrades the CRDs, too (`crds.enabled`). Give it your values again, or use "
        "`--reset-then-reuse-values`: `--reuse-values` leaves out what a newer chart has new, and is "
        "refused then. Either way set `images.tag` to images of the new release: a tag that was set before stays, and "
        "the chart of one release does not run with images of another. "
        "`helm uninstall` keeps the CRDs with all tables and writers (`crds.keep`), etcd's volumes and "
        "the Secrets with its certificates; data of tables is never deleted. "
        "Delete HudiWriters and HudiTables before the operator: without it their finalizers stay. "
        "`docs/operate/uninstall.md` of the project says how they are removed."
    )
    lines += ["", "## Values", ""]
    lines.append(
        "Made from `values.yaml` and `values.schema.json` by `python -m tests.campaigns.pages.chart_values`. In "
        "brackets: type, default and bounds. Names that are not listed are refused."
    )
    lines.append("")
    return _page([*lines, *(line.replace("## ", "### ", 1) if line.startswith("## ") else line for line in values())])


if __name__ == "__main__":
    for path, text in ((PAGE, page()), (README, readme())):
        path.write_text(text, encoding="utf-8")
        print(path, file=sys.stderr)

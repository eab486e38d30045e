"""What the chart tells a catalog of charts: annotations of Chart.yaml that Artifact Hub reads."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import yaml

from tests.support import ROOT, crds

CHART = yaml.safe_load((ROOT / "charts/hudi-operator/Chart.yaml").read_text(encoding="utf-8"))
PREFIX = "artifacthub.io/"


def annotation(name: str) -> Any:
    """Lists are YAML in a string."""
    return yaml.safe_load(CHART["annotations"][PREFIX + name])


def test_the_kinds_are_those_of_the_crds() -> None:
    found = []
    for plural in ("huditables", "hudiwriters"):
        crd = crds.crd(plural)
        (version,) = crd["spec"]["versions"]
        found.append((crd["metadata"]["name"], crd["spec"]["names"]["kind"], version["name"]))
    told = annotation("crds")
    assert [(one["name"], one["kind"], one["version"]) for one in told] == found
    assert all(one["displayName"] and one["description"] for one in told)


def test_the_examples_are_those_of_the_readme() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"## A table and a writer\n\n((?:    .*\n|\n)+)", text)
    assert annotation("crdsExamples") == list(yaml.safe_load_all(textwrap.dedent(block)))


def test_every_annotation_is_one_that_is_read() -> None:
    """A name that is written wrong would be ignored, and each is a string for Helm."""
    known = {"category", "crds", "crdsExamples", "license", "operator", "operatorCapabilities", "prerelease"}
    assert set(CHART["annotations"]) == {PREFIX + name for name in known}
    assert all(isinstance(value, str) for value in CHART["annotations"].values())
    assert "Apache License" in (ROOT / "LICENSE").read_text()[:200]
    assert annotation("license") == "Apache-2.0"


def test_the_level_is_the_one_of_the_page() -> None:
    page = (ROOT / "docs/concepts/capability-levels.md").read_text(encoding="utf-8")
    assert f"**{annotation('operatorCapabilities')}**" in page


def test_every_section_of_the_values_is_asked_for() -> None:
    """`helm upgrade --reuse-values` from a chart without it is refused with what to do."""
    folder = ROOT / "charts/hudi-operator"
    template = (folder / "templates/values-complete.yaml").read_text(encoding="utf-8")
    asked = re.findall(r'"([\w.]+)"', template.partition("$sections := list")[2].partition("}}")[0])
    values = yaml.safe_load((folder / "values.yaml").read_text(encoding="utf-8"))
    of_people = {"resources", "labels", "annotations", "driverAnnotations"}
    """A person may take one of them away."""
    found = {name for name, of in values.items() if of and isinstance(of, dict)} - of_people
    inner = {f"{name}.{key}" for name in found for key, of in values[name].items() if of and isinstance(of, dict)}
    assert set(asked) == found | {path for path in inner if path.rpartition(".")[2] not in of_people}
    assert len(asked) == len(set(asked))
    assert max(path.name for path in (folder / "templates").iterdir()) == "values-complete.yaml", "it is rendered first"

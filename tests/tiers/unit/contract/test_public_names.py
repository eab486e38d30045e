"""Names that others import, store or watch: a later change of one is a decision, and shows in
`public-names.txt`.

Written by `python -m tests.tiers.unit.contract.test_public_names`; what leaves the list must be
told in CHANGELOG.md.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hudi_contract import defaults, metadata, naming
from hudi_contract.settle import Phase
from hudi_operator.metrics import catalog
from hudi_operator.model import classify
from tests.support import ROOT, crds, quick_yaml

LIST = Path(__file__).with_name("public-names.txt")
PACKAGES = ("operator", "spark-images/hudi_runtime")
"""All of both images, so that a word may move from one module to another."""
_WORD = re.compile("[A-Z][a-z]+([A-Z][a-z0-9]*)*")


def fields(plural: str) -> Iterator[str]:
    """Fields of spec and status with type and choices, columns, and the names of the kind."""
    spec = crds.crd(plural)["spec"]
    yield " ".join(
        [
            spec["group"],
            *(version["name"] for version in spec["versions"]),
            *spec["names"]["shortNames"],
            *spec["names"]["categories"],
        ]
    )
    for column in spec["versions"][0]["additionalPrinterColumns"]:
        yield f"column {column['name']}: {column['jsonPath']}"
    for part in ("spec", "status"):
        for path, field in crds.fields(crds.schema(plural, part), part):
            yield " ".join([path, field.get("type", "quantity"), *map(str, field.get("enum", ()))])


def words(package: str) -> set[str]:
    """Words in code: types and reasons of conditions, reasons of events, states, phases, classes of
    attempts. Docstrings do not count.
    """
    found = set()
    # Plugin and console have no names of their own: they say what the API has. Those for Glue are
    # AWS'.
    for path in sorted(
        p
        for p in (ROOT / package).rglob("*.py")
        if not {"hudi_kubectl", "hudi_console"} & {*p.parts} and p.name != "glue.py"
    ):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _WORD.fullmatch(node.value):
                found.add(node.value)
    return found | ({phase.name for phase in Phase} if package == "operator" else set())


def exported() -> list[str]:
    """What user code imports from the runtime."""
    found = []
    for node in ast.parse((ROOT / "spark-images" / "hudi_runtime" / "api" / "__init__.py").read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            found += ast.literal_eval(node.value)
    for node in ast.parse((ROOT / "spark-images" / "hudi_runtime" / "api" / "positions.py").read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            found += [f"positions.{name}" for name in ast.literal_eval(node.value)]
    return sorted(found)


def metadata_keys() -> list[str]:
    """Keys in the metadata of commits."""
    return sorted(value for name, value in vars(metadata).items() if name.isupper() and name != "PREFIX")


def leaves(value: Any, at: str) -> Iterator[str]:
    # Names with a / are those of annotations: the map is one value.
    if isinstance(value, dict) and value and not any("/" in name for name in value):
        for name, entry in value.items():
            yield from leaves(entry, f"{at}.{name}" if at else name)
    else:
        yield at


def parts(fields: dict[str, Any], at: str) -> Iterator[str]:
    """Fields of the text, and what of each a writer's own value replaces."""
    for name, kind in fields.items():
        if isinstance(kind, dict):
            yield from parts(kind, f"{at}{name}.")
        else:
            yield f"{at}{name} {kind}"


def sections() -> dict[str, list[str]]:
    """The whole list."""
    protocol = json.loads((ROOT / "operator" / "hudi_contract" / "protocol.json").read_text())
    values = quick_yaml.load((ROOT / "charts" / "hudi-operator" / "values.yaml").read_text())
    labels = {f"{name} = {value}" for name, value in vars(naming).items() if name.isupper() and isinstance(value, str)}
    metrics = [f"{metric.name} {metric.kind} {' '.join(metric.labels)}".strip() for metric in catalog.every()]
    rules = quick_yaml.load((ROOT / "charts" / "hudi-operator" / "files" / "alerts.yaml").read_text())
    alerts = [f"{rule['alert']} {rule['labels']['severity']}" for group in rules["groups"] for rule in group["rules"]]
    return {
        "HudiTable": list(fields("huditables")),
        "HudiWriter": list(fields("hudiwriters")),
        "Defaults of a namespace": [f"{defaults.CONFIG_MAP} {defaults.KEY}", *parts(defaults.FIELDS, "")],
        "Values of the chart": list(leaves(values, "")),
        "Words of conditions, events, states and classes": sorted(set().union(*map(words, PACKAGES))),
        "Exit codes of a driver": [f"{code} {name}" for code, name in classify.EXIT_CODES.items()],
        "Error codes": sorted(protocol["errors"]),
        "Keys in etcd": sorted(f"{key['range']}/{key['path']}" for key in protocol["keys"].values()),
        "Keys in the metadata of commits": metadata_keys(),
        "Labels, annotations, finalizers and other names": sorted(labels),
        "Metrics": sorted(metrics),
        "Alerts": sorted(alerts),
        "hudi_runtime.api": exported(),
    }


def page() -> str:
    """The list as text."""
    return "".join(
        f"# {title}\n" + "".join(f"{line}\n" for line in lines) + "\n" for title, lines in sections().items()
    )


def test_public_names_are_the_known_ones() -> None:
    assert page() == LIST.read_text(), (
        "a change of a public name: if it is meant, run `python -m tests.tiers.unit.contract.test_public_names`"
    )


if __name__ == "__main__":
    LIST.write_text(page())

"""Write what the CRDs hold of a status, for the operator."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "operator" / "hudi_operator" / "model" / "statuses.json"
KINDS = {"HudiTable": "huditables", "HudiWriter": "hudiwriters"}
BOUNDS = (
    "type",
    "format",
    "enum",
    "minimum",
    "minLength",
    "maxLength",
    "maxItems",
    "required",
)
"""Keywords that hudi_operator.model.status_bounds keeps."""
_NEEDED = {"string": {"enum", "format", "maxLength"}, "integer": {"format"}, "array": {"maxItems"}}
"""Bounds, one of which each value needs: a value without one may be larger than an object of the
API server.
"""
NO_BOUNDS = ("description", "x-kubernetes-list-type", "x-kubernetes-list-map-keys")


def bounds(node: dict[str, Any], at: str) -> dict[str, Any]:
    """The part of a schema that refuses values."""
    unknown = node.keys() - {*BOUNDS, *NO_BOUNDS, "properties", "items"}
    if unknown or "type" not in node:
        sys.exit(f"{at}: {', '.join(sorted(unknown)) or 'no type'}: hudi_operator.model.status_bounds cannot keep it")
    if not node.keys() & _NEEDED.get(node["type"], set(node)):
        sys.exit(f"{at}: a {node['type']} needs one of {', '.join(sorted(_NEEDED[node['type']]))}")
    found = {keyword: node[keyword] for keyword in BOUNDS if keyword in node}
    if "properties" in node:
        found["properties"] = {name: bounds(one, f"{at}.{name}") for name, one in node["properties"].items()}
    if "items" in node:
        found["items"] = bounds(node["items"], f"{at}[]")
    return found


def status(plural: str) -> dict[str, Any]:
    """The bounds of the status in a CRD."""
    crd = yaml.load((ROOT / "crds" / f"hudioperator.io_{plural}.yaml").read_text(), Loader=yaml.CSafeLoader)
    (version,) = crd["spec"]["versions"]
    return bounds(version["schema"]["openAPIV3Schema"]["properties"]["status"], f"{plural}: status")


def text() -> str:
    """The file, one line for each field of a status."""
    kinds = []
    for kind, plural in KINDS.items():
        made = status(plural)
        fields = ",\n".join(f" {json.dumps(name)}: {json.dumps(one)}" for name, one in made["properties"].items())
        head = json.dumps({**made, "properties": {}}).removesuffix("{}}")
        kinds.append(f"{json.dumps(kind)}: {head}{{\n{fields}\n}}}}")
    return "{\n" + ",\n".join(kinds) + "\n}\n"


def main() -> int:
    if "--check" not in sys.argv[1:]:
        FILE.write_text(text())
    elif FILE.read_text() != text():
        print(f"{FILE} is not what hack/crds/statuses.py makes of crds/: run make chart", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Every attack that was thought of or found (`tests/tiers/unit/api/attacks.yaml`), and the objects
that it makes of ordinary ones.
"""

from __future__ import annotations

from typing import Any

from tests.support import ROOT, quick_yaml

JsonDict = dict[str, Any]

ATTACKS: list[JsonDict] = quick_yaml.load((ROOT / "tests/tiers/unit/api/attacks.yaml").read_text())


def merged(base: Any, change: Any) -> Any:
    """The base with what the change has; objects are merged, all else is replaced."""
    if isinstance(base, dict) and isinstance(change, dict):
        return {**base, **{key: merged(base.get(key), value) for key, value in change.items()}}
    return change


def writer_spec(ordinary: JsonDict, attack: JsonDict) -> JsonDict:
    """Spec of an attack's HudiWriter: its source replaces the other, null takes a field away."""
    change = attack.get("writer", {})
    spec = merged(ordinary, change)
    if "source" in change:
        spec["source"] = change["source"]
    return {key: value for key, value in spec.items() if value is not None}

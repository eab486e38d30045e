"""Rounds that are kept, and what is left of those before them."""

from __future__ import annotations

import json
from typing import Any

from tests.support.evidence import RAW

OUT = RAW / "kills"
KINDS = ("writing", "critical")


def rounds(kind: str, commit: str = "") -> list[dict[str, Any]]:
    """Rounds of a kind, of one commit if it is named."""
    found = [json.loads(path.read_text()) for path in sorted(OUT.glob(f"{kind}-*.json"))]
    return [one for one in found if not commit or one["commit"] == commit]


def earlier() -> dict[str, dict[str, Any]]:
    """By kind, the text of the page on rounds before those that are kept."""
    paths = {kind: OUT / f"earlier-{kind}.json" for kind in KINDS}
    return {kind: json.loads(path.read_text()) for kind, path in paths.items() if path.exists()}

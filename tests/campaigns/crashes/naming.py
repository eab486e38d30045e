"""Names and values without what differs from run to run: uids, revisions,
times, generated names.
"""

from __future__ import annotations

import json
import re
from typing import Any

JsonDict = dict[str, Any]

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_POD = re.compile(r"\b([a-z]+)-[0-9a-f]{8}-(\d+)\b")
# In YAML a hash of digits only is in quotes.
_HASH = re.compile(r"(\'?)\b[0-9a-f]{16}\b\1")
_INSTANT = re.compile(r"\b20\d{15}\b")
_AGENT = re.compile(r"hudi-agent-[0-9a-f]{32}\b")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z")
_DROPPED = frozenset(
    {
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
        "selfLink",
        "since",
        "atMs",
        "sinceMs",
        "wallClockMs",
        "nextRetryTime",
        "n",
        "nonce",
    }
)


class Names:
    """Stable names for the changing ones of one run."""

    def __init__(self, namespace: str, table_id: str) -> None:
        self._known = {namespace: "NS", table_id: "T"}

    def call(self, found: str, name: str) -> None:
        """From now on ``found``, an incarnation or an instant, is called ``name``."""
        self._known[found] = name

    def text(self, text: str) -> str:
        """The text in words that are the same in each run."""
        for found, name in sorted(self._known.items(), key=lambda item: -len(item[0])):
            text = text.replace(found, name)
        text = _POD.sub(r"\1-U-\2", _UUID.sub("U", text))
        text = _INSTANT.sub("INSTANT", text)
        return _HASH.sub("H", _TIME.sub("TIME", _AGENT.sub("hudi-agent-A", text)))

    def value(self, value: Any) -> Any:
        """A JSON value in words that are the same in each run.

        Lists of conditions in the order of their types.
        """
        return json.loads(self.text(json.dumps(_clean(value))))


def _clean(value: Any) -> Any:
    if isinstance(value, dict):
        if {"number", "pod", "generation"} <= value.keys():
            # An attempt in status: an instant that came and went between two looks was seen or not.
            value = {k: v for k, v in value.items() if k != "instants"}
        return {
            k: _keys(v) if k == "times" else _clean(v)
            for k, v in sorted(value.items())
            if k not in _DROPPED and not k.endswith(("Time", "Timestamp"))
        }
    if isinstance(value, list):
        items = [_clean(item) for item in value]
        return (
            sorted(items, key=lambda item: str(item["type"]))
            if items and all(isinstance(i, dict) and "type" in i for i in items)
            else items
        )
    return value


def _keys(value: Any) -> Any:
    return sorted(value) if isinstance(value, dict) else value


def api_write(names: Names, method: str, path: str, body: Any) -> str:
    """Name of a write to the API server."""
    parts = path.strip("/").split("/")
    at = parts.index("namespaces") + 2 if "namespaces" in parts[:-2] else (2 if parts[0] == "api" else 3)
    plural, name, sub = [*parts[at:], "", "", ""][:3]
    body = body if isinstance(body, dict | list) else {}
    if plural == "events":
        return (
            f"event {body.get('reason')} {(body.get('regarding') or {}).get('name')}: "
            f"{names.text(str(body.get('note')))[:60]}"
        )
    if method == "POST":
        return names.text(f"create {plural}/{(body.get('metadata') or {}).get('name')}")
    if sub == "status":
        return names.text(f"status {plural}/{name} {_status_word(body.get('status') or {})}")
    if method == "PATCH" and isinstance(body, list):
        return names.text(f"finalizers {plural}/{name} {body[-1].get('value')}")
    return names.text(f"{'apply' if method == 'PATCH' else method.lower()} {plural}/{name}")


def _status_word(status: JsonDict) -> str:
    """Short form of a status."""
    if "attempts" in status:
        attempts = " ".join(f"{a['number']}:{a.get('class') or 'open'}" for a in status["attempts"])
        return f"{status.get('state')} [{attempts}]"
    true = ",".join(sorted(c["type"] for c in status.get("conditions") or () if c["status"] == "True"))
    settling = ",".join(sorted(s["phase"] for s in status.get("settling") or ()))
    return f"{true or '-'} {status.get('writersSummary', '')} {settling}".rstrip()


def etcd_write(names: Names, operations: list[tuple[str, str, JsonDict]]) -> tuple[str, str, str]:
    """Action, key and detail of a transaction of the operator by its operations
    ``(put or delete, key below the range, value)``.
    """
    puts = {key.partition("/")[0]: (key, value) for kind, key, value in operations if kind == "put"}
    keys = [key for _, key, _ in operations]
    if "fence" in puts:
        return "fence", puts["fence"][0], str(puts["settle"][1].get("reason"))
    if "gate" in puts:
        return "gate-put", "gate", str(puts["gate"][1].get("state"))
    if "settle" in puts:
        key, value = puts["settle"]
        deletes_writer = any(k.startswith("writer/") for k in keys)
        return ("settled", key, "") if deletes_writer else ("settle-update", key, str(value.get("phase")))
    if "admit" in puts:
        return "admit", puts["admit"][0], ""
    key = keys[0] if keys else ""
    if key == "lock":
        return "unlock", key, ""
    head = key.partition("/")[0]
    return (
        {
            "admit": "delete-admit",
            "report": "delete-report",
            "seen": "see",
            "agents": "assign",
            "instant": "settled",
        }.get(head, "unknown"),
        key,
        "",
    )

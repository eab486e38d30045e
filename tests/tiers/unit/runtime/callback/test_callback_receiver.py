"""The receiver of examples/callback keeps each event once, over repeats and its own restarts, and
refuses what is not for it.
"""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hudi_runtime.callback.callback_http import Sender, Undelivered

EXAMPLE = Path(__file__).resolve().parents[5] / "examples" / "callback" / "receiver.py"
TOKEN = "a-word-for-the-example"


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    spec = importlib.util.spec_from_file_location("receiver", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    server = module.Receiver(folder, port=0, token=TOKEN, host="127.0.0.1")
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/hudi"
    finally:
        server.shutdown()
        server.server_close()


def kept(folder: Path) -> list[str]:
    return [json.loads(line)["id"] for line in (folder / "events.jsonl").read_text().splitlines()]


def post(url: str, secret: Path, body: bytes) -> None:
    Sender(url, timeout=10, folder=secret, refused=lambda address: False).post(body, "application/cloudevents+json")


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    folder = tmp_path / "secret"
    folder.mkdir()
    (folder / "bearerToken").write_text(TOKEN)
    return folder


def test_a_repeat_is_answered_and_dropped(tmp_path: Path, secret: Path) -> None:
    with serving(tmp_path) as url:
        for name in ("a", "b", "a"):
            post(url, secret, json.dumps({"id": name}).encode())
    with serving(tmp_path) as url:
        for name in ("b", "c"):
            post(url, secret, json.dumps({"id": name}).encode())
    assert kept(tmp_path) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("body", "reason"), [(b"no JSON", "HTTP400"), (b"[]", "HTTP400"), (b"{}", "HTTP400"), (b" " * 1_000_001, "HTTP413")]
)
def test_what_is_no_event_is_refused(tmp_path: Path, secret: Path, body: bytes, reason: str) -> None:
    with serving(tmp_path) as url, pytest.raises(Undelivered) as caught:
        post(url, secret, body)
    assert caught.value.reason in (reason, "ConnectionFailed" if len(body) > 1_000_000 else reason)
    assert kept(tmp_path) == []


def test_another_word_is_refused(tmp_path: Path, secret: Path) -> None:
    (secret / "bearerToken").write_text("another")
    with serving(tmp_path) as url, pytest.raises(Undelivered, match=r"answered 401"):
        post(url, secret, b'{"id": "a"}')
    assert kept(tmp_path) == []

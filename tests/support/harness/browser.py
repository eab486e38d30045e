"""Chromium (Debian's package), driven by its DevTools protocol: one page, what it shows, pictures
of it.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

JsonDict = dict[str, Any]
PROGRAM = shutil.which("chromium") or ""
_FLAGS = (
    "--headless=new", "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking",
    "--disable-component-update", "--disable-default-apps", "--disable-sync", "--hide-scrollbars", "--mute-audio",
)  # fmt: skip
KEYS = {
    "Enter": 13,
    "ArrowDown": 40,
    "ArrowUp": 38,
    "ArrowLeft": 37,
    "ArrowRight": 39,
    "Escape": 27,
    "Tab": 9,
    "End": 35,
}


class Page:
    """A page of the browser. ``problems``: errors of its scripts and of its policies."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self._numbers = socket, itertools.count(1)
        self._answers: dict[int, asyncio.Future[JsonDict]] = {}
        self.problems: list[str] = []
        self.asked: list[str] = []
        """URLs of all requests."""

    async def listen(self) -> None:
        async for message in self._socket:
            told = message.json()
            if "id" in told:
                self._answers.pop(told["id"]).set_result(told)
            elif told["method"] == "Network.requestWillBeSent":
                self.asked.append(told["params"]["request"]["url"])
            elif told["method"] == "Runtime.exceptionThrown":
                self.problems.append(str(told["params"]["exceptionDetails"].get("exception", {}).get("description")))
            elif told["method"] == "Log.entryAdded" and told["params"]["entry"]["level"] == "error":
                self.problems.append(told["params"]["entry"]["text"])

    async def do(self, method: str, **parameters: Any) -> JsonDict:
        number = next(self._numbers)
        answer: asyncio.Future[JsonDict] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        found = await asyncio.wait_for(answer, 30)
        assert "error" not in found, found
        result: JsonDict = found["result"]
        return result

    async def value(self, expression: str) -> Any:
        """The value of an expression of JavaScript."""
        found = await self.do("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def until(self, expression: str, seconds: float = 20) -> None:
        """Wait until an expression is true."""
        try:
            async with asyncio.timeout(seconds):
                while not await self.value(expression):
                    await asyncio.sleep(0.05)
        except TimeoutError:
            shown = await self.value("document.body.innerText.slice(0, 2000)")
            raise AssertionError(f"{expression}: not in time; {self.problems}; {shown}") from None

    async def size(self, width: int, height: int, *, dark: bool = False) -> None:
        await self.do(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.do("Emulation.setEmulatedMedia", features=[feature])

    async def key(self, name: str) -> None:
        code = KEYS.get(name, 0)
        text = {"text": "\r"} if name == "Enter" else {} if code else {"text": name}
        for kind in ("keyDown", "keyUp"):
            await self.do(
                "Input.dispatchKeyEvent",
                type=kind,
                key=name,
                windowsVirtualKeyCode=code,
                **(text if kind == "keyDown" else {}),
            )

    async def type(self, text: str) -> None:
        await self.do("Input.insertText", text=text)

    async def picture(self, file: Path) -> None:
        """The whole page as a PNG."""
        found = await self.do("Page.captureScreenshot", captureBeyondViewport=True)
        await asyncio.to_thread(file.write_bytes, base64.b64decode(found["data"]))


@asynccontextmanager
async def browser() -> AsyncIterator[Page]:
    """A Chromium of its own, with an empty profile."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        flags = [*_FLAGS, *(["--no-sandbox"] if os.geteuid() == 0 else [])]
        process = subprocess.Popen(
            [PROGRAM, *flags, f"--user-data-dir={profile}", "--remote-debugging-port=0", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        try:
            port = await _port(Path(profile) / "DevToolsActivePort", process)
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                    (target, *_) = [one for one in await answer.json() if one["type"] == "page"]
                async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=64 << 20) as socket:
                    page = Page(socket)
                    listening = asyncio.create_task(page.listen())
                    try:
                        for domain in ("Page", "Runtime", "Log", "Network"):
                            await page.do(f"{domain}.enable")
                        yield page
                    finally:
                        listening.cancel()
                        await asyncio.gather(listening, return_exceptions=True)
        finally:
            os.killpg(process.pid, signal.SIGKILL)  # nothing of its profile is kept
            process.wait()


async def _port(file: Path, process: subprocess.Popen[bytes]) -> int:
    async with asyncio.timeout(30):
        while not file.exists() or not file.read_text().strip():
            assert process.poll() is None, f"{PROGRAM} has ended with {process.returncode}"
            await asyncio.sleep(0.1)
    return int(file.read_text().split()[0])

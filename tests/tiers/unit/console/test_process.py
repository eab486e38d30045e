"""The process: what it reads again while it serves."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from hudi_console import __main__
from tests.tiers.unit.console.played import ANN, Api, bearer, table


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1 that is its own authority, and its key."""
    made, key = folder / f"{name}.crt", folder / f"{name}.key"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(made)),
        ],
        check=True,
        capture_output=True,
    )
    return made, key


def test_an_authority_that_was_renewed_is_trusted_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(__main__, "CERTIFICATE_SECONDS", 0.05)
    old, new = certificate(tmp_path, "old"), certificate(tmp_path, "new")
    ca = tmp_path / "ca.crt"
    ca.write_bytes(old[0].read_bytes())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*new)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def status(session: aiohttp.ClientSession) -> int:
        try:
            async with session.get(f"http://127.0.0.1:{port}/api/v1/tables", headers=bearer(ANN)) as answer:
                return answer.status
        except aiohttp.ClientConnectionError:
            return 0  # it does not serve yet

    async def act() -> None:
        runner = web.AppRunner(Api(table()).application())
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        api = f"https://127.0.0.1:{runner.addresses[0][1]}"
        given = __main__.parser().parse_args(
            [f"--api-server={api}", f"--ca-file={ca}", "--address=127.0.0.1", f"--port={port}"]
        )
        until = asyncio.Event()
        serving = asyncio.create_task(__main__.serve(given, until))
        async with asyncio.timeout(30), aiohttp.ClientSession() as session:
            while not (found := await status(session)):
                await asyncio.sleep(0.05)
            assert found == 502, "the authority is not the one that signed"
            ca.write_bytes(b"no certificate")
            await asyncio.sleep(0.2)
            assert await status(session) == 502
            ca.write_bytes(new[0].read_bytes())
            while await status(session) != 200:
                await asyncio.sleep(0.05)
        until.set()
        await serving
        await runner.cleanup()

    asyncio.run(act())

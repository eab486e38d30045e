"""Start: ``python -m hudi_operator.etcd_certificates``, configured by environment variables."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from datetime import UTC, datetime

from hudi_operator import observability
from hudi_operator.adapters.kubernetes import ApiServer, load_configuration
from hudi_operator.etcd_certificates.keeper import SOON_SECONDS, TURN_SECONDS, Keeper, options_from
from hudi_operator.model.ports import Fatal, Retryable

LOG = logging.getLogger("hudi_operator.etcd_certificates")
EXIT_USAGE = 2


async def run(keeper: Keeper, probes: observability.Probes) -> None:
    """Turn after turn, until SIGTERM."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    while not stop.is_set():
        try:
            wait = await keeper.turn(datetime.now(tz=UTC))
        except Retryable as error:
            keeper.problem, wait = str(error), error.delay or SOON_SECONDS
        except Fatal as error:
            # A person has to act, and is seen to have acted without a restart.
            keeper.problem, wait = str(error), TURN_SECONDS
            LOG.error("%s", error)
        if keeper.problem and keeper.problem != probes.not_ready:
            LOG.warning("%s", keeper.problem)
        probes.not_ready = keeper.problem
        until = asyncio.get_running_loop().time() + wait
        while not stop.is_set() and asyncio.get_running_loop().time() < until:
            probes.beat()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), timeout=min(1.0, wait))


async def _run() -> None:
    api = ApiServer(await load_configuration())
    probes = observability.Probes()
    server = probes.serve(int(os.environ.get("HUDI_OPERATOR_PROBE_PORT", "8080")))
    try:
        await run(Keeper(api, options_from()), probes)
    finally:
        server.shutdown()
        await api.close()


def main() -> int:
    """Entry point; returns the exit code."""
    observability.configure_from_environment()
    try:
        asyncio.run(_run())
    except (ValueError, Fatal) as error:
        LOG.error("%s", error)
        return EXIT_USAGE
    return 0


if __name__ == "__main__":
    sys.exit(main())

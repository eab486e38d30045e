"""An Alertmanager that tells a test what it would tell people."""

from __future__ import annotations

import subprocess
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.support import quick_yaml
from tests.support.harness.receiver import receiver
from tests.support.harness.servers import wait_for
from tests.support.ports import free_ports

JsonDict = dict[str, Any]
PROGRAM = "prometheus-alertmanager"
"""Its name in Debian's package of the same name."""


class Alertmanager:
    """The real server, as a process, and a receiver of its notifications.

    Each alert is notified on its own, without delay, when it begins and when it ends.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_ports(1)[0]
        self._told: list[JsonDict] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._open = ExitStack()

    @property
    def address(self) -> str:
        """Address for Prometheus."""
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Alertmanager:
        self.directory.mkdir(parents=True, exist_ok=True)
        port, self._told = self._open.enter_context(receiver("127.0.0.1"))
        hook = {"url": f"http://127.0.0.1:{port}/", "send_resolved": True}
        # By all labels: a notification is of one alert.
        route = {"receiver": "test", "group_by": ["..."], "group_wait": "0s", "group_interval": "1s"}
        file = self.directory / "alertmanager.yaml"
        file.write_text(quick_yaml.dump({"route": route, "receivers": [{"name": "test", "webhook_configs": [hook]}]}))
        with (self.directory / "alertmanager.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    PROGRAM,
                    f"--config.file={file}",
                    f"--storage.path={self.directory / 'data'}",
                    f"--web.listen-address={self.address}",
                    "--cluster.listen-address=",
                ],
                stdout=log,
                stderr=log,
            )
        try:
            wait_for("alertmanager ready", self._ready)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._open.close()

    def _ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.directory / "alertmanager.log").read_text()[-3000:]
        try:
            with urllib.request.urlopen(f"http://{self.address}/-/ready", timeout=3) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    @property
    def count(self) -> int:
        """Number of alerts that were notified so far."""
        return len(self._every())

    def _every(self) -> list[JsonDict]:
        return [alert for notification in list(self._told) for alert in notification["alerts"]]

    def told(self, labels: dict[str, str], *, since: int = 0, until: int | None = None) -> list[JsonDict]:
        """Notifications of alerts with these labels, in their order: ``status`` is ``firing`` or
        ``resolved``. ``since``, ``until``: a `count`.
        """
        return [alert for alert in self._every()[since:until] if labels.items() <= alert["labels"].items()]

    def last(self, labels: dict[str, str], *, until: int | None = None) -> str:
        """State of the alerts with these labels as people know it: ``firing`` if one of them is,
        ``resolved``, or empty.
        """
        told = self.told(labels, until=until)
        states = {tuple(sorted(alert["labels"].items())): str(alert["status"]) for alert in told}
        return "firing" if "firing" in states.values() else next(iter(states.values()), "")

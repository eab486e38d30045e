"""A Prometheus that scrapes what a test serves."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.support import quick_yaml
from tests.support.harness.servers import wait_for
from tests.support.ports import free_ports

JsonDict = dict[str, Any]


class Prometheus:
    """The real server, as a process; jobs are names with the addresses of their targets.

    ``settings``: more of a job's configuration, by its name. ``alertmanager``: address of one that
    gets its alerts.
    """

    def __init__(
        self,
        directory: Path,
        jobs: dict[str, list[str]],
        *,
        rules: Path | None = None,
        settings: dict[str, JsonDict] | None = None,
        alertmanager: str = "",
    ) -> None:
        self._alertmanager = alertmanager
        self.directory, self._jobs, self._rules, self._settings = directory, jobs, rules, settings or {}
        self._port = free_ports(1)[0]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Prometheus:
        self.directory.mkdir(parents=True, exist_ok=True)
        scraped = [
            # As the chart's monitors have it: the namespace of a table's series is the table's.
            {
                "job_name": name,
                "honor_labels": True,
                "static_configs": [{"targets": targets}],
                **self._settings.get(name, {}),
            }
            for name, targets in self._jobs.items()
        ]
        configuration: JsonDict = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "scrape_configs": scraped,
        }
        if self._rules is not None:
            configuration["rule_files"] = [str(self._rules)]
        if self._alertmanager:
            configuration["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": [self._alertmanager]}]}]}
        file = self.directory / "prometheus.yaml"
        file.write_text(quick_yaml.dump(configuration))
        with (self.directory / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={file}",
                    f"--storage.tsdb.path={self.directory / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self._port}",
                ],
                stdout=log,
                stderr=log,
            )
        try:
            wait_for("prometheus ready", self._ready)
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

    def _ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.directory / "prometheus.log").read_text()[-3000:]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/-/ready", timeout=3) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def ask(self, expression: str, *, since: float | None = None, until: float = 0, step: int = 1) -> list[JsonDict]:
        """Series of an expression, now or over a time; fails with an error of Prometheus."""
        asked: dict[str, str] = {"query": expression}
        if since is not None:
            asked |= {"start": str(since), "end": str(until), "step": str(step)}
        kind = "query" if since is None else "query_range"
        url = f"http://127.0.0.1:{self._port}/api/v1/{kind}?{urllib.parse.urlencode(asked)}"
        try:
            with urllib.request.urlopen(url, timeout=20) as response:
                answer = json.loads(response.read())
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{expression}: {error.read().decode()}") from error
        assert answer["status"] == "success", answer
        result: list[JsonDict] = answer["data"]["result"]
        return result

    def rules(self) -> dict[str, str]:
        """State of each alert; the last error of one that cannot be evaluated."""
        url = f"http://127.0.0.1:{self._port}/api/v1/rules?type=alert"
        with urllib.request.urlopen(url, timeout=20) as response:
            groups = json.loads(response.read())["data"]["groups"]
        return {
            rule["name"]: rule["state"] if rule["health"] == "ok" else rule.get("lastError") or rule["health"]
            for group in groups
            for rule in group["rules"]
        }

    def healthy(self) -> dict[str, str]:
        """Health of each target by its job; the last error of one that is not up."""
        url = f"http://127.0.0.1:{self._port}/api/v1/targets"
        with urllib.request.urlopen(url, timeout=20) as response:
            targets = json.loads(response.read())["data"]["activeTargets"]
        return {t["labels"]["job"]: t["health"] if t["health"] == "up" else t["lastError"] for t in targets}

"""A PostgreSQL and a MariaDB for tests, of Debian's packages: each with a store of its own, as an
unprivileged user, on this machine only.

Their clocks are those of a place far from UTC: what a writer reads must not depend on it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.harness.own_process import OwnProcess
from tests.support.harness.processes import until
from tests.support.ports import free_port

DATABASE, USER, PASSWORD = "shop", "reader", "a password 'of' the test"
"""The user may read the tables of the database, and nothing else."""
ZONE = "Asia/Kolkata"
_OFFSET = "+05:30"


class SqlServer(OwnProcess):
    """Start with `start()`, stop with `stop()`, which removes the store."""

    engine = ""

    def __init__(self, folder: Path) -> None:
        """``folder``: for what a Secret would have, as files."""
        self.port = free_port()
        self.secret = folder
        self._store = Path(tempfile.mkdtemp(prefix="hudi-sql-"))
        self._user = _somebody()
        if self._user is not None:
            shutil.chown(self._store, self._user)
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (("username", USER), ("password", f"{PASSWORD}\n")):
            (folder / name).write_text(text)

    def source(self, table: str, column: str = "", **changes: Any) -> dict[str, Any]:
        """`source.jdbc` of a job; what is incremental when a column is given."""
        new = {name: changes.pop(name) for name in ("startFrom", "lag", "maxRowsPerCommit") if name in changes}
        incremental = {"column": column, "startFrom": "Earliest", **new} if column else None
        place = {"engine": self.engine, "host": "127.0.0.1", "port": self.port, "database": DATABASE}
        how = {"fetchSize": 100, "tls": "Off", "folder": str(self.secret)}
        return {**place, **how, "table": table, "incremental": incremental, **changes}

    def stop(self) -> None:
        super().stop()
        shutil.rmtree(self._store, ignore_errors=True)

    def run(self, *statements: str) -> list[list[str]]:
        """Run statements as the administrator, each in a transaction; the rows of the last one."""
        raise NotImplementedError

    def _made(self, command: Sequence[str], **options: Any) -> None:
        done = subprocess.run(command, user=self._user, cwd=self._store, capture_output=True, timeout=120, **options)
        assert done.returncode == 0, done.stderr.decode(errors="replace")[-3000:]

    def _started(self, command: Sequence[str]) -> None:
        with (self._store / "log").open("wb") as log:
            self._process = subprocess.Popen(command, user=self._user, cwd=self._store, stdout=log, stderr=log)
        until(f"{self.engine} answers", self._answers, timeout=90)

    def _answers(self) -> bool:
        if self._process is not None and self._process.poll() is not None:
            raise AssertionError(f"{self.engine} has ended\n{(self._store / 'log').read_text()[-3000:]}")
        try:
            self.run("SELECT 1")
        except AssertionError:
            return False
        return True


class PostgresServer(SqlServer):
    """A PostgreSQL, with TLS by a certificate of its own for those who ask."""

    engine = "PostgreSQL"

    def start(self) -> None:
        """Make the store, start the server, wait until it answers."""
        self._bin = max(Path("/usr/lib/postgresql").glob("*/bin/postgres")).parent
        data, word = self._store / "data", self._store / "word"
        word.write_text(PASSWORD)
        word.chmod(0o644)
        auth = ["--auth-local=reject", "--auth-host=scram-sha-256", "-U", "admin", f"--pwfile={word}"]
        self._made([str(self._bin / "initdb"), "-D", str(data), *auth, "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"])
        self._made(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "2", "-subj", "/CN=shop", "-addext", "subjectAltName=IP:127.0.0.1",
             "-keyout", str(data / "server.key"), "-out", str(data / "server.crt")]
        )  # fmt: skip
        self.authority = (data / "server.crt").read_text()
        settings = {
            "listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": "", "fsync": "off",
            "shared_buffers": "16MB", "timezone": ZONE, "datestyle": "SQL, DMY", "ssl": "on",
        }  # fmt: skip
        options = [option for name, value in settings.items() for option in ("-c", f"{name}={value}")]
        self._database = "postgres"
        self._started([str(self._bin / "postgres"), "-D", str(data), *options])
        word_of_sql = PASSWORD.replace("'", "''")
        self.run(f"CREATE DATABASE {DATABASE}", f"CREATE ROLE {USER} LOGIN PASSWORD '{word_of_sql}'")
        self._database = DATABASE
        self.run(f"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON TABLES TO {USER}")

    def run(self, *statements: str) -> list[list[str]]:
        done = subprocess.run(
            [*self._client, *(part for each in statements for part in ("-c", each))],
            env=self._environment, capture_output=True, timeout=60, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        return [line.split("|") for line in done.stdout.splitlines()]

    def transaction(self, statement: str) -> subprocess.Popen[bytes]:
        """A transaction that stays open: end it with `committed`."""
        client = subprocess.Popen(self._client, env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert client.stdin is not None
        assert client.stdout is not None
        client.stdin.write(f"BEGIN; {statement}; SELECT 'done';\n".encode())
        client.stdin.flush()
        assert client.stdout.readline() == b"done\n"
        return client

    @staticmethod
    def committed(client: subprocess.Popen[bytes]) -> None:
        """Commit an open transaction."""
        client.communicate(b"COMMIT;\n", timeout=30)
        assert client.returncode == 0

    @property
    def _client(self) -> list[str]:
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "admin", "-d", self._database]
        return [str(self._bin / "psql"), *where, "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1"]

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PGPASSWORD": PASSWORD, "PGCONNECT_TIMEOUT": "5"}


class MariaServer(SqlServer):
    """A MariaDB."""

    engine = "MariaDB"

    def start(self) -> None:
        """Make the store, start the server, wait until it answers."""
        data = self._store / "data"
        more = ["--no-defaults", f"--datadir={data}"]
        self._made(["mariadb-install-db", *more, "--auth-root-authentication-method=normal", "--skip-test-db"])
        self._socket = self._store / "socket"
        settings = {
            "bind-address": "127.0.0.1", "port": self.port, "socket": self._socket, "innodb-buffer-pool-size": "16M",
            "default-time-zone": _OFFSET, "pid-file": self._store / "pid", "lower-case-table-names": 0,
        }  # fmt: skip
        program = shutil.which("mariadbd") or "/usr/sbin/mariadbd"
        self._database = "mysql"
        self._started([program, *more, *(f"--{name}={value}" for name, value in settings.items())])
        word = PASSWORD.replace("'", "''")
        self.run(
            f"CREATE DATABASE {DATABASE}",
            f"CREATE USER {USER}@'%' IDENTIFIED BY '{word}'",
            f"GRANT SELECT ON {DATABASE}.* TO {USER}@'%'",
        )
        self._database = DATABASE

    def run(self, *statements: str) -> list[list[str]]:
        command = ["mariadb", "--no-defaults", f"--socket={self._socket}", "-u", "root", "-N", "-B", self._database]
        done = subprocess.run([*command, "-e", "; ".join(statements)], capture_output=True, timeout=60, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
        return [line.split("\t") for line in done.stdout.splitlines()]


def _somebody() -> str | None:
    """A user without rights, for servers that refuse to be root's; None: we are nobody else."""
    if os.getuid() != 0:
        return None
    names = {each.pw_name for each in pwd.getpwall()}
    return next(name for name in ("postgres", "mysql", "nobody") if name in names)

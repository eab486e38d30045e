"""``python -m hudi_operator.etcd_auth``.

Creates the users and roles of docs/design/contracts.md §1, then enables authentication.

Run it once per etcd, with a certificate whose common name is ``root``; running it again changes
nothing. Users are identified by the common name of their client certificate, so their passwords are
random and not stored.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import time

from hudi_contract.keys import PREFIX, RANGES
from hudi_operator.adapters import etcd_rpc as rpc
from hudi_operator.adapters.etcd_rpc import Connection, Message
from hudi_operator.model.config import EtcdConfig
from hudi_operator.model.ports import Fatal, Retryable

WAIT_SECONDS = 120.0
OPERATOR, GATEWAY, ROOT = "hudi-operator", "hudi-gateway", "root"


def grants(prefix: str) -> dict[str, list[tuple[str, bool]]]:
    """Role to ``(key prefix, may write)``."""
    control, tables = (f"{prefix}/{part}/" for part in RANGES)
    return {
        OPERATOR: [(control, True), (tables, True)],
        # Whatever the gateway lets pass, no fence is lifted and no gate opened (I2).
        GATEWAY: [(control, False), (tables, True)],
    }


def set_up(connection: Connection, prefix: str) -> None:
    """Create missing users and roles, and enable authentication.

    Raises Retryable while etcd does not answer, Fatal when it refuses.
    """
    for role in (ROOT, *grants(prefix)):
        _once(connection, "RoleAdd", rpc.messages.AuthRoleAddRequest(name=role))
        _once(connection, "UserAdd", rpc.messages.AuthUserAddRequest(name=role, password=secrets.token_urlsafe(32)))
        _once(connection, "UserGrantRole", rpc.messages.AuthUserGrantRoleRequest(user=role, role=role))
    for role, ranges in grants(prefix).items():
        for key, write in ranges:
            _once(
                connection,
                "RoleGrantPermission",
                rpc.messages.AuthRoleGrantPermissionRequest(name=role, perm=rpc.read_write(key, write=write)),
            )
    _once(connection, "AuthEnable", rpc.messages.AuthEnableRequest())


def _once(connection: Connection, method: str, request: Message) -> None:
    """One call; it succeeds when the object already exists."""
    try:
        connection.call_now(rpc.auth, method, request, writes=False)
    except (Retryable, Fatal) as error:
        if "already" not in str(error):
            raise


def run(config: EtcdConfig, *, wait_seconds: float = WAIT_SECONDS) -> str:
    """Set up, waiting for etcd at most ``wait_seconds``.

    Returns the reason of a failure; empty on success.
    """
    deadline = time.monotonic() + wait_seconds
    connection = Connection(config)
    while True:
        try:
            set_up(connection, config.prefix)
        except Fatal as error:
            return str(error)
        except Retryable as error:
            if time.monotonic() > deadline:
                return f"etcd did not answer for {wait_seconds:.0f} s: {error}"
            time.sleep(0.5)
        else:
            return ""


def main() -> int:
    """Entry point; returns the exit code.

    Every option can also be set in the environment, by the names that pods use.
    """
    parser = argparse.ArgumentParser(prog="hudi_operator.etcd_auth", description=(__doc__ or "").splitlines()[0])
    for name, variable, what in (
        ("endpoints", "ENDPOINTS", "https://host:port, comma separated"),
        ("prefix", "PREFIX", "prefix of all keys"),
        ("cacert", "CA", "certificate authority of etcd"),
        ("cert", "CERT", "client certificate with the common name root"),
        ("key", "KEY", "key of the client certificate"),
    ):
        default = os.environ.get(f"HUDI_OPERATOR_ETCD_{variable}") or (PREFIX if name == "prefix" else None)
        parser.add_argument(
            f"--{name}", default=default, required=default is None, help=f"{what} (HUDI_OPERATOR_ETCD_{variable})"
        )
    arguments = parser.parse_args()
    config = EtcdConfig(
        endpoints=tuple(arguments.endpoints.split(",")),
        prefix=arguments.prefix,
        ca_file=arguments.cacert,
        cert_file=arguments.cert,
        key_file=arguments.key,
    )
    problem = run(config)
    print(problem or f"etcd authentication is enabled, roles for {config.prefix} are set", file=sys.stderr)
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main())

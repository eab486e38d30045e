"""Transport to etcd: etcd3's raw stubs on separate threads.

It uses one endpoint at a time, and every call has a deadline.

The only module that imports etcd3. It uses only that library's channel-free stubs and messages: the
library's own lock, watch and retry layers lose locks and events (a contended lock raises TypeError,
an acquire that timed out enters the block without the lock). Reasons for the channel options:
without gRPC keep-alives a half-open connection is never noticed, without a ping time-out only after
70 s, and with the default reconnect back-off the connection returns 20 s late after an outage.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import grpc
from etcd3.etcdrpc import auth_pb2, kv_pb2, rpc_pb2, rpc_pb2_grpc

from hudi_operator.model.config import EtcdConfig
from hudi_operator.model.ports import Fatal, OutcomeUnknown, Retryable

LOG = logging.getLogger(__name__)

RPC_TIMEOUT_SECONDS = 3.0
_THREADS = 8
_CHANNEL_OPTIONS = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 500),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.keepalive_time_ms", 10000),
    ("grpc.keepalive_timeout_ms", 3000),
    ("grpc.http2.ping_timeout_ms", 3000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_receive_message_length", 64 * 2**20),
    # Channels share connections by target otherwise: a new channel would inherit the broken one.
    ("grpc.use_local_subchannel_pool", 1),
)
_UNREACHABLE = frozenset({grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED})
_REFUSED = frozenset(
    {
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.UNIMPLEMENTED,
    }
)
_DEFINITE = frozenset(
    {
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.OUT_OF_RANGE,
    }
)

Message = Any
"""A protobuf message of etcd3's generated, untyped code."""

Compare = rpc_pb2.Compare
Event = kv_pb2.Event


class Connection:
    """Channel to one of several etcd members.

    Sticky until a call fails, then the next member is used.

    Certificates are read again for each channel, so that rotated files are picked up.
    """

    def __init__(self, config: EtcdConfig, *, timeout: float = RPC_TIMEOUT_SECONDS) -> None:
        """``timeout`` is the deadline of each call in seconds."""
        self._config = config
        self.timeout = timeout
        self._lock = threading.Lock()
        self._index = 0
        self._channel: Any = None
        self._pool = ThreadPoolExecutor(max_workers=_THREADS, thread_name_prefix="etcd")

    @property
    def endpoint(self) -> str:
        """The endpoint in use."""
        return self._config.endpoints[self._index % len(self._config.endpoints)]

    def channel(self) -> Any:
        """The channel in use, created when there is none.

        Raises Retryable when the certificates cannot be read.
        """
        with self._lock:
            if self._channel is None:
                self._channel = self._open(self.endpoint)
            return self._channel

    def _open(self, endpoint: str) -> Any:
        scheme, _, target = endpoint.partition("://")
        if scheme == "http":
            return grpc.insecure_channel(target, options=_CHANNEL_OPTIONS)
        try:
            credentials = grpc.ssl_channel_credentials(
                root_certificates=Path(self._config.ca_file).read_bytes(),
                private_key=Path(self._config.key_file).read_bytes(),
                certificate_chain=Path(self._config.cert_file).read_bytes(),
            )
        except OSError as error:
            raise Retryable(f"certificates for etcd cannot be read: {error}", delay=5.0) from error
        return grpc.secure_channel(target, credentials, options=_CHANNEL_OPTIONS)

    def failed(self, channel: Any) -> None:
        """Switch away from the member behind ``channel``.

        Nothing is done when another caller has already switched.
        """
        with self._lock:
            if self._channel is not channel:
                return
            self._channel = None
            self._index += 1
        channel.close()
        silent = self._config.endpoints[(self._index - 1) % len(self._config.endpoints)]
        following = f"using {self.endpoint}" if self.endpoint != silent else "trying it again"
        LOG.warning("etcd: %s does not answer, %s", silent, following)

    async def call(
        self, stub: Callable[[Any], Any], method: str, request: Message, *, writes: bool, timeout: float | None = None
    ) -> Message:
        """Run one unary call on a thread.

        Raises Fatal (refused), Retryable (definitely not done) or, when ``writes``, OutcomeUnknown.
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._pool, lambda: self.call_now(stub, method, request, writes=writes, timeout=timeout)
        )

    def call_now(
        self, stub: Callable[[Any], Any], method: str, request: Message, *, writes: bool, timeout: float | None = None
    ) -> Message:
        """As :meth:`call`, in the calling thread."""
        channel = self.channel()
        try:
            return getattr(stub(channel), method)(request, timeout=timeout or self.timeout)
        except grpc.RpcError as error:
            code, details = error.code(), error.details()
            if code in _UNREACHABLE:
                self.failed(channel)
            raise translate(code, details, method=method, writes=writes) from error
        except ValueError as error:
            # The channel was closed by another caller's `failed` before this call was sent.
            raise Retryable(f"etcd: {method} not sent: {error}", delay=0.2) from error

    def certificate_ends(self) -> float:
        """Unix time until which the certificate is valid that the endpoint in use shows.

        0: none, or it does not answer. Blocks for the deadline of a call at most.
        """
        at = urlsplit(self.endpoint)
        if at.scheme != "https":
            return 0.0
        try:
            context = ssl.create_default_context(cafile=self._config.ca_file)
            context.load_cert_chain(self._config.cert_file, self._config.key_file)
            with (
                socket.create_connection((at.hostname, at.port), timeout=self.timeout) as plain,
                context.wrap_socket(plain, server_hostname=at.hostname) as secure,
            ):
                return ssl.cert_time_to_seconds(str((secure.getpeercert() or {})["notAfter"]))
        except (OSError, KeyError, ValueError) as error:
            LOG.debug("etcd: the certificate of %s cannot be seen: %s", self.endpoint, error)
            return 0.0

    def close(self) -> None:
        """Close the channel; calls in flight are cancelled."""
        with self._lock:
            channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()
        self._pool.shutdown(wait=False, cancel_futures=True)


def translate(code: Any, details: str | None, *, method: str, writes: bool) -> Exception:
    """The exception of :mod:`hudi_operator.model.ports` for a gRPC status."""
    message = f"etcd: {method}: {code.name}: {details or ''}".rstrip(": ")
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and "space exceeded" in (details or ""):
        return Fatal(f"{message}: make room in etcd (docs/operate/operations.md, etcd)")
    if code in _REFUSED:
        return Fatal(message)
    if writes and code not in _DEFINITE:
        return OutcomeUnknown(message)
    return Retryable(message)


# ---- messages


def txn_request(compare: Sequence[Message], success: Sequence[Message], failure: Sequence[Message] = ()) -> Message:
    """One transaction."""
    return rpc_pb2.TxnRequest(compare=list(compare), success=list(success), failure=list(failure))


def version_is(key: str, version: int) -> Message:
    """Compare: number of changes since creation; 0 = absent."""
    return Compare(key=key.encode(), target=Compare.VERSION, result=Compare.EQUAL, version=version)


def exists(key: str) -> Message:
    """Compare: the key exists."""
    return Compare(key=key.encode(), target=Compare.VERSION, result=Compare.GREATER, version=0)


def mod_is(key: str, revision: int) -> Message:
    """Compare: revision of the last change; 0 = absent."""
    return Compare(key=key.encode(), target=Compare.MOD, result=Compare.EQUAL, mod_revision=revision)


def created_at(key: str, revision: int) -> Message:
    """Compare: revision of creation."""
    return Compare(key=key.encode(), target=Compare.CREATE, result=Compare.EQUAL, create_revision=revision)


def put(key: str, value: bytes) -> Message:
    """Operation: put."""
    return rpc_pb2.RequestOp(request_put=rpc_pb2.PutRequest(key=key.encode(), value=value))


def delete(key: str) -> Message:
    """Operation: delete one key."""
    return rpc_pb2.RequestOp(request_delete_range=rpc_pb2.DeleteRangeRequest(key=key.encode()))


def delete_prefix(prefix: str) -> Message:
    """Operation: delete all keys with a prefix."""
    asked = rpc_pb2.DeleteRangeRequest(key=prefix.encode(), range_end=prefix_end(prefix))
    return rpc_pb2.RequestOp(request_delete_range=asked)


def get(key: str) -> Message:
    """Operation: read one key."""
    return rpc_pb2.RequestOp(request_range=rpc_pb2.RangeRequest(key=key.encode()))


def get_prefix(prefix: str) -> Message:
    """Operation: read all keys with a prefix."""
    return rpc_pb2.RequestOp(request_range=rpc_pb2.RangeRequest(key=prefix.encode(), range_end=prefix_end(prefix)))


def prefix_end(prefix: str) -> bytes:
    """End of the range of all keys with ``prefix`` (which does not end in 0xff)."""
    raw = prefix.encode()
    return raw[:-1] + bytes([raw[-1] + 1])


def watch_request(prefix: str, *, start_revision: int) -> Message:
    """Watch all keys with a prefix from a revision on (0 = now)."""
    return rpc_pb2.WatchRequest(
        create_request=rpc_pb2.WatchCreateRequest(
            key=prefix.encode(), range_end=prefix_end(prefix), start_revision=start_revision, progress_notify=True
        )
    )


def read_write(prefix: str, *, write: bool) -> Message:
    """Permission on all keys with a prefix: to read, or to read and write."""
    kind = auth_pb2.Permission.READWRITE if write else auth_pb2.Permission.READ
    return auth_pb2.Permission(permType=kind, key=prefix.encode(), range_end=prefix_end(prefix))


def revoke_request(lease: int) -> Message:
    """Revoke a lease."""
    return rpc_pb2.LeaseRevokeRequest(ID=lease)


kv = rpc_pb2_grpc.KVStub
leases = rpc_pb2_grpc.LeaseStub
watches = rpc_pb2_grpc.WatchStub
auth = rpc_pb2_grpc.AuthStub
cluster = rpc_pb2_grpc.ClusterStub
maintenance = rpc_pb2_grpc.MaintenanceStub
messages = rpc_pb2

"""A proxy in front of etcd: ends the operator's TLS, sees each request, and applies a fault to one
of its writes.

Requests and answers pass as bytes; transactions are also read, to name them and to tell the monitor
what etcd has executed.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc

from hudi_operator.adapters import etcd_rpc as rpc
from tests.campaigns.crashes.api_proxy import lasting_port
from tests.campaigns.crashes.faults import LATE_SECONDS, Fault, Injector
from tests.campaigns.crashes.monitor import EtcdStep, Monitor
from tests.campaigns.crashes.naming import Names, etcd_write

JsonDict = dict[str, Any]
TXN, REVOKE = "/etcdserverpb.KV/Txn", "/etcdserverpb.Lease/LeaseRevoke"
_SERVER_OPTIONS = (
    ("grpc.so_reuseport", 0),
    ("grpc.http2.min_ping_interval_without_data_ms", 1000),
    ("grpc.http2.max_ping_strikes", 0),
)
_CHANNEL_OPTIONS = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 64 * 2**20))


def bytes_of(value: bytes) -> bytes:
    """No (de)serialisation."""
    return value


def channel(pki: Path, identity: str, endpoint: str) -> Any:
    """A channel to etcd as this identity."""
    files = [(pki / name).read_bytes() for name in ("ca.crt", f"{identity}.key", f"{identity}.crt")]
    return grpc.secure_channel(
        endpoint.partition("://")[2], grpc.ssl_channel_credentials(*files), options=_CHANNEL_OPTIONS
    )


class EtcdProxy(grpc.GenericRpcHandler):
    """One proxy of one run. ``drop_events`` and ``frozen`` change what its watches deliver."""

    def __init__(
        self,
        pki: Path,
        endpoint: str,
        *,
        injector: Injector,
        monitor: Monitor,
        names: Names,
        identity: str = "operator",
    ) -> None:
        """``identity``: whose certificate its own connection to etcd shows."""
        self._pki = pki
        self._injector, self._monitor, self._names = injector, monitor, names
        self._upstream = channel(pki, identity, endpoint)
        self._root = channel(pki, "root", endpoint)
        self._closed = threading.Event()
        self.frozen = threading.Event()
        self.drop_events: Callable[[Any], bool] | None = None
        """Watch responses for which this is true are not delivered."""
        self.held_back = self.dropped = self.cut = 0
        """Effects on the operator: responses with events that came while watches were frozen, those
        that were not delivered, streams that ended with the connection.
        """
        self._streams = 0
        self._counting = threading.Lock()
        self.port = lasting_port()
        self._server: Any = None
        self.start()

    @property
    def endpoint(self) -> str:
        """For the operator's configuration."""
        return f"https://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen."""
        server = grpc.server(ThreadPoolExecutor(max_workers=24), handlers=[self], options=_SERVER_OPTIONS)
        key, certificate, ca = ((self._pki / name).read_bytes() for name in ("server.key", "server.crt", "ca.crt"))
        credentials = grpc.ssl_server_credentials([(key, certificate)], root_certificates=ca, require_client_auth=True)
        server.add_secure_port(f"127.0.0.1:{self.port}", credentials)
        server.start()
        self._server = server

    def stop(self) -> None:
        """Stop listening on this port."""
        self.cut += self._streams
        self._server.stop(grace=0).wait()

    def close(self) -> None:
        """For good."""
        self._closed.set()
        self.stop()
        self._upstream.close()
        self._root.close()

    # ---- gRPC

    def service(self, handler_call_details: Any) -> Any:
        """The handler of one method."""
        method = handler_call_details.method
        if method.endswith(("/Watch", "/LeaseKeepAlive")):
            return grpc.stream_stream_rpc_method_handler(
                lambda requests, context: self._stream(method, requests, context), bytes_of, bytes_of
            )
        return grpc.unary_unary_rpc_method_handler(
            lambda request, context: self._unary(method, request, context), bytes_of, bytes_of
        )

    def _forward(self, method: str, request: bytes) -> bytes:
        return bytes(self._upstream.unary_unary(method, bytes_of, bytes_of)(request, timeout=10))

    def _unary(self, method: str, request: bytes, context: Any) -> bytes:
        step = self._step(method, request)
        try:
            if step is None:
                self._read()
                return self._forward(method, request)
            return self._write(method, request, step, context)
        except grpc.RpcError as error:
            context.abort(error.code(), error.details())
            raise

    def _read(self) -> None:
        """The client reads."""
        self._monitor.looked()

    def _step(self, method: str, request: bytes) -> EtcdStep | None:
        """The write that a request is; None for a read."""
        if method == REVOKE:
            return EtcdStep(action="revoke-lease", key="", detail="", table=self._monitor.table_id)
        if method != TXN:
            return None
        txn = rpc.messages.TxnRequest.FromString(request)
        operations = self._operations(txn)
        if not operations:
            return None
        action, key, detail = etcd_write(self._names, operations)
        token = 0
        if action == "unlock":
            token = next(c.create_revision for c in txn.compare if c.target == rpc.Compare.CREATE)
            detail = next(c.key.decode().rpartition("/")[2] for c in txn.compare if b"/fence/" in c.key)
        return EtcdStep(
            action=action,
            key=key,
            detail=detail,
            table=self._monitor.table_id,
            operations=tuple(operations),
            token=token,
        )

    @classmethod
    def _operations(cls, txn: Any) -> list[tuple[str, str, JsonDict]]:
        """Operations of a transaction whose compares hold: put or delete, key below the range,
        value.
        """
        operations: list[tuple[str, str, JsonDict]] = []
        for each in txn.success:
            if each.HasField("request_put"):
                operations.append(("put", cls._below(each.request_put.key), json.loads(each.request_put.value)))
            elif each.HasField("request_delete_range"):
                operations.append(("delete", cls._below(each.request_delete_range.key), {}))
        return operations

    @staticmethod
    def _below(key: bytes) -> str:
        """The key below its table's range; an assignment as ``agents/<agent>``."""
        parts = key.decode().strip("/").split("/")
        return "/".join(parts[2:4]) if parts[2] == "agents" else "/".join(parts[3:])

    def _write(self, method: str, request: bytes, step: EtcdStep, context: Any) -> bytes:
        self._sent(step)
        fault = self._injector.sent(step.name(self._names))
        if fault is Fault.KILLED_BEFORE:
            self._kill(step)
        elif fault is Fault.TOO_MANY:
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "etcdserver: too many requests")
        elif fault is Fault.ERROR:
            context.abort(grpc.StatusCode.UNAVAILABLE, "etcdserver: leader changed")
        elif fault is Fault.LATE:
            threading.Timer(LATE_SECONDS, lambda: self._execute(method, request, step)).start()
            context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")
        elif fault is Fault.CONFLICT:
            self._touch(request)
        if fault is Fault.KILLED_BEFORE:
            context.abort(grpc.StatusCode.UNAVAILABLE, "killed")
        answer = self._execute(method, request, step)
        if fault is Fault.KILLED_AFTER:
            self._kill(step)
        if fault is Fault.TIMEOUT:
            while context.is_active():
                time.sleep(0.05)
        if fault in (Fault.KILLED_AFTER, Fault.TIMEOUT, Fault.LOST):
            context.abort(grpc.StatusCode.UNAVAILABLE, "Socket closed")
        return answer

    def _kill(self, step: EtcdStep) -> None:
        """Kill the client, whose request this is."""
        self._monitor.lost(step)
        self._injector.kill()
        self._monitor.killed()

    def _execute(self, method: str, request: bytes, step: EtcdStep) -> bytes:
        """Let etcd execute it, and tell the monitor."""
        answer = self._forward(method, request)
        if method == TXN:
            response = rpc.messages.TxnResponse.FromString(answer)
            self._done(step, revision=response.header.revision, succeeded=bool(response.succeeded))
        return answer

    def _sent(self, step: EtcdStep) -> None:
        """The client sends it."""
        self._monitor.etcd_sent(step)

    def _done(self, step: EtcdStep, *, revision: int, succeeded: bool) -> None:
        """etcd has answered."""
        self._monitor.etcd_done(step, revision=revision, succeeded=succeeded)

    def _touch(self, request: bytes) -> None:
        """Somebody else writes each compared key, with the value that it has: its mod revision is
        another one then.
        """
        stub = rpc.kv(self._root)
        for compare in rpc.messages.TxnRequest.FromString(request).compare:
            found = stub.Range(rpc.messages.RangeRequest(key=compare.key), timeout=5).kvs
            if compare.target == rpc.Compare.MOD and found:
                stub.Put(
                    rpc.messages.PutRequest(key=compare.key, value=found[0].value, lease=found[0].lease), timeout=5
                )

    def _stream(self, method: str, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        call = self._upstream.stream_stream(method, bytes_of, bytes_of)(requests)
        context.add_callback(call.cancel)
        self._count(streams=1)
        try:
            for response in call:
                told = rpc.messages.WatchResponse.FromString(response) if method.endswith("/Watch") else None
                events = told is not None and bool(told.events)
                self._count(held_back=self.frozen.is_set() and events)
                while self.frozen.is_set() and context.is_active() and not self._closed.wait(0.05):
                    pass
                if told is not None and self.drop_events is not None and self.drop_events(told):
                    self._count(dropped=events)
                else:
                    yield response
        except grpc.RpcError as error:
            if context.is_active():
                context.abort(error.code(), error.details())
        finally:
            self._count(streams=-1)

    def _count(self, *, streams: int = 0, held_back: int = 0, dropped: int = 0) -> None:
        with self._counting:
            self._streams += streams
            self.held_back += held_back
            self.dropped += dropped


def can_conflict(name: str) -> bool:
    """True for writes whose transaction compares a revision that somebody else can change."""
    return not name.startswith(
        (
            "etcd revoke-lease",
            "etcd fence",
            "etcd admit",
            "etcd delete-admit",
            "etcd assign",
            "etcd unlock",
            "etcd delete-report",
        )
    )

"""An example broker of storage credentials for versitygw's own users.

    python broker.py --endpoint http://s3.storage.svc:9000 --state DIRECTORY [--listen 0.0.0.0:8443]
        [--cert FILE --key FILE]

Environment: ROOT_ACCESS_KEY and ROOT_SECRET_KEY of the store, TOKEN that callers must show,
SECRET_KEY from which users' secrets are made (32 characters or more; never change it).

PUT /v1/credentials/ID gives the user of that id, who may write below the path of the request and
list the bucket; DELETE takes it away for ever. What is in DIRECTORY must outlive the process: it
says which ids were taken away. One process at a time.
"""

from __future__ import annotations

import argparse
import hashlib
import hmac
import json
import os
import re
import ssl
import threading
import urllib.error
import urllib.request
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ID = re.compile(r"/v1/credentials/(hudi-[0-9a-f]{40})")
PATH = re.compile(r"s3a://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/([A-Za-z0-9._=/-]{1,900})")
LARGEST_REQUEST = 16384
SECONDS = 4
WRITES = ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"]


class Store:
    """versitygw, as its root user."""

    def __init__(self, endpoint: str, access: str, secret: str) -> None:
        self._endpoint, self._access, self._secret = endpoint.rstrip("/"), access, secret

    def request(self, method: str, path: str, query: str = "", body: bytes = b"") -> int:
        """A signed request; returns the status. Raises OSError without an answer."""
        at = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        digest = hashlib.sha256(body).hexdigest()
        headers = {"host": urlsplit(self._endpoint).netloc, "x-amz-content-sha256": digest, "x-amz-date": at}
        names = ";".join(sorted(headers))
        lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        signed_query = "&".join(part if "=" in part else f"{part}=" for part in sorted(filter(None, query.split("&"))))
        canonical = f"{method}\n{path}\n{signed_query}\n{lines}\n{names}\n{digest}"
        scope = f"{at[:8]}/us-east-1/s3/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        key = f"AWS4{self._secret}".encode()
        for part in (at[:8], "us-east-1", "s3", "aws4_request"):
            key = hmac.digest(key, part.encode(), "sha256")
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        headers["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self._access}/{scope}, SignedHeaders={names}, Signature={signature}"
        )
        url = f"{self._endpoint}{path}" + (f"?{query}" if query else "")
        try:
            asked = urllib.request.Request(url, data=body, method=method, headers=headers)
            with urllib.request.urlopen(asked, timeout=SECONDS) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code

    def create_user(self, name: str, secret: str) -> bool:
        """True when the user is there afterwards."""
        body = f"<Account><Access>{name}</Access><Secret>{secret}</Secret><Role>user</Role></Account>"
        return self.request("PATCH", "/create-user", body=body.encode()) in (201, 409)

    def delete_user(self, name: str) -> bool:
        """True when there is no such user afterwards."""
        return self.request("PATCH", "/delete-user", f"access={name}") in (200, 404)

    def allow(self, bucket: str, users: dict[str, str]) -> bool:
        """The bucket's policy: each of ``users`` may write below its prefix."""
        if not users:
            return self.request("DELETE", f"/{bucket}", "policy") in (200, 204, 404)
        statements = [
            {
                "Effect": "Allow",
                "Principal": {"AWS": [name]},
                "Action": WRITES,
                "Resource": [f"arn:aws:s3:::{bucket}/{prefix}/*", f"arn:aws:s3:::{bucket}/{prefix}"],
            }
            for name, prefix in sorted(users.items())
        ]
        listing = {"Effect": "Allow", "Principal": {"AWS": sorted(users)}}
        actions = ["s3:ListBucket", "s3:GetBucketLocation", "s3:ListBucketMultipartUploads"]
        statements.append({**listing, "Action": actions, "Resource": [f"arn:aws:s3:::{bucket}"]})
        policy = json.dumps({"Version": "2012-10-17", "Statement": statements}).encode()
        return self.request("PUT", f"/{bucket}", "policy", policy) in (200, 204)


class Broker:
    """Who has credentials, and who had. Each change is on disk before the store knows of it."""

    def __init__(self, store: Store, state: Path, secret_key: str) -> None:
        self._store, self._state, self._secret_key = store, state, secret_key.encode()
        self._lock = threading.Lock()

    def _record(self, id: str) -> dict[str, Any]:
        try:
            return dict(json.loads((self._state / id).read_text()))
        except FileNotFoundError:
            return {}

    def _write(self, id: str, record: dict[str, Any]) -> None:
        part = self._state / f".{id}"
        with part.open("w") as file:
            json.dump(record, file)
            file.flush()
            os.fsync(file.fileno())
        part.rename(self._state / id)
        folder = os.open(self._state, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _users(self, bucket: str) -> dict[str, str]:
        """Users with rights in a bucket, with their prefixes."""
        found = {path.name: self._record(path.name) for path in self._state.glob("hudi-*")}
        return {id: r["prefix"] for id, r in found.items() if r.get("bucket") == bucket and not r["revoked"]}

    def issue(self, id: str, bucket: str, prefix: str) -> dict[str, str] | None:
        """The same credentials each time; None once they were revoked. Raises OSError."""
        with self._lock:
            record = self._record(id)
            if record.get("revoked"):
                return None
            if not record:
                self._write(id, {"bucket": bucket, "prefix": prefix, "revoked": False})
            elif (record["bucket"], record["prefix"]) != (bucket, prefix):
                raise OSError("this id has credentials for another path")
            secret = hmac.digest(self._secret_key, id.encode(), "sha256").hex()[:40]
            if not self._store.create_user(id, secret) or not self._store.allow(bucket, self._users(bucket)):
                raise OSError("the store has refused")
            return {"accessKeyId": id, "secretAccessKey": secret}

    def revoke(self, id: str) -> None:
        """For ever, also when they were never issued. Raises OSError."""
        with self._lock:
            record = self._record(id)
            self._write(id, {**record, "revoked": True})
            if not self._store.delete_user(id):
                raise OSError("the store has refused")
            if record and not self._store.allow(record["bucket"], self._users(record["bucket"])):
                raise OSError("the store has refused")


class Handler(BaseHTTPRequestHandler):
    """One request. Neither a body nor a token is ever logged."""

    timeout = 10
    broker: Broker
    token: str

    def do_PUT(self) -> None:
        found = self._id()
        if not found:
            return
        try:
            length = int(self.headers.get("Content-Length") or 0)
            said = json.loads(self.rfile.read(min(length, LARGEST_REQUEST)))
            where = PATH.fullmatch(said["path"].rstrip("/"))
        except (ValueError, KeyError, TypeError, AttributeError):
            where = None
        if where is None or ".." in where[2] or "//" in where[2]:
            self._answer(400)
            return
        try:
            given = self.broker.issue(found, where[1], where[2])
        except OSError:
            self._answer(503)
            return
        self._answer(410 if given is None else 200, given)

    def do_DELETE(self) -> None:
        found = self._id()
        if not found:
            return
        try:
            self.broker.revoke(found)
        except OSError:
            self._answer(503)
            return
        self._answer(204)

    def _id(self) -> str:
        """The id that is asked for; empty when the request has been refused."""
        shown = self.headers.get("Authorization") or ""
        if not hmac.compare_digest(shown.encode(), f"Bearer {self.token}".encode()):
            self._answer(401)
            return ""
        asked = ID.fullmatch(self.path)
        if asked is None:
            self._answer(404)
            return ""
        return asked[1]

    def _answer(self, status: int, body: dict[str, str] | None = None) -> None:
        raw = json.dumps(body).encode() if body is not None else b""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        if status != 204:
            self.send_header("Content-Length", str(len(raw)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(raw)


def main() -> None:
    parser = argparse.ArgumentParser(description="Storage credentials for attempts of HudiWriters")
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--state", required=True, type=Path)
    parser.add_argument("--listen", default="0.0.0.0:8443")
    parser.add_argument("--cert")
    parser.add_argument("--key")
    options = parser.parse_args()
    if len(os.environ["SECRET_KEY"]) < 32:
        parser.error("SECRET_KEY: at least 32 characters")
    options.state.mkdir(parents=True, exist_ok=True)
    store = Store(options.endpoint, os.environ["ROOT_ACCESS_KEY"], os.environ["ROOT_SECRET_KEY"])
    Handler.broker, Handler.token = Broker(store, options.state, os.environ["SECRET_KEY"]), os.environ["TOKEN"]
    host, _, port = options.listen.rpartition(":")
    server = ThreadingHTTPServer((host, int(port)), Handler)
    if options.cert:
        secure = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        secure.load_cert_chain(options.cert, options.key)
        server.socket = secure.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.serve_forever()


if __name__ == "__main__":
    main()

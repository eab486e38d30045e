"""A stand-in for AWS STS, and an S3 server that accepts what it gives and nothing else.

The S3 server is versitygw with its own IAM service: that one has the role with its policy, checks
key and session token of each request, and refuses them from their expiration on. Its own
AssumeRoleWithWebIdentity cannot be used: it asks an issuer on a public address for its keys, and no
session ends before 15 minutes. So the stand-in answers in its place, and lays the sessions into its
store.

It is no STS. It knows the tokens that it has projected itself: it checks no signature, issuer,
audience or trust policy. Credentials live for seconds, where STS gives an hour.

The SDK finds STS by its name, so the stand-in is a proxy, too: JVMs that have `Pod.environment` ask
it for a connection to that name, and trust its certificate. It connects nobody to anything else.
"""

from __future__ import annotations

import http.server
import json
import os
import secrets
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from tests.support import CACHE, ROOT
from tests.support.harness.local import ACCESS_KEY, LAID, SECRET_KEY, mount_files
from tests.support.harness.processes import until
from tests.support.ports import free_port

REGION = "eu-central-1"
NAME = f"sts.{REGION}.amazonaws.com"
ROLE = "arn:aws:iam::111122223333:role/flights-lake"
AUDIENCE = "sts.amazonaws.com"
_ACCOUNT = "000000000000"
"""The one that versitygw has."""
_NAME_OF_ROLE = ROLE.rpartition("/")[2]
_ROLE_HERE = f"arn:aws:iam::{_ACCOUNT}:role/{_NAME_OF_ROLE}"
_ROLE_ID = "AROAOFTHESTANDIN0000"
_XML = 'xmlns="https://sts.amazonaws.com/doc/2011-06-15/"'
_TOKEN_NAME = "token"
_PASSWORD = "changeit"


@dataclass
class Pod:
    """One pod with the identity: its projected token, and who it was for the S3 server."""

    folder: Path
    """Folder in which a kubelet would mount the token: a file `token`."""
    environment: dict[str, str]
    """Variables that EKS' webhook adds to a pod, and those that lead a JVM to the stand-in."""
    tokens: list[str] = field(default_factory=list)
    """All that were projected. Only the last one is good."""
    keys: list[tuple[str, str]] = field(default_factory=list)
    """Access keys that it was given, each with the token that it has shown."""
    refused: int = 0
    """Requests with an old token of this pod's."""

    @property
    def renewals(self) -> int:
        """Number of times that it was given other credentials than the first ones."""
        return max(0, len(self.keys) - 1)


class StsServer:
    """Serves from its creation until `stop()`."""

    def __init__(self, folder: Path, files: Path, *, policy: str, seconds: float) -> None:
        """`files`: folder that the S3 server serves; `policy`: of the role, as JSON; `seconds`: how
        long credentials live.
        """
        folder.mkdir(parents=True)
        self._folder, self._policy, self.seconds = folder, policy, seconds
        self._lock = threading.Lock()
        self._pods: list[Pod] = []
        self._sessions: dict[str, dict[str, str]] = {}
        self.unknown: list[str] = []
        """Codes of errors that were answered to requests of no pod."""
        (folder / "iam").mkdir()
        self._lay()
        self._processes: list[subprocess.Popen[bytes]] = []
        socket = str(folder / "iam.sock")
        self._run("iam", free_port(), "iam", "--dir", str(folder / "iam"), "--private-ports", socket)
        until("the IAM service runs", Path(socket).exists, timeout=30)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        """URL of the S3 server."""
        self._run(
            "s3", port, "--region", REGION, "--iam-standalone-endpoint", socket, "--iam-cache-disable",
            "posix", "--default-etag", LAID, str(files),
        )  # fmt: skip
        until("the S3 server answers", self._answers, timeout=30)
        self._context = _certificate(folder)
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Proxy", (_Proxy,), {"sts": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def _run(self, name: str, port: int, *arguments: str) -> None:
        command = [str(CACHE / "bin" / "versitygw"), "--access", ACCESS_KEY, "--secret", SECRET_KEY]
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen([*command, "--port", f"127.0.0.1:{port}", *arguments], stdout=log, stderr=log)
            )

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(self.url, timeout=5):
                return True
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False

    def _lay(self) -> None:
        """Write the IAM service's store: the role, and the sessions that have not expired."""
        now = _time(time.time())
        self._sessions = {key: found for key, found in self._sessions.items() if found["expiration"] > now}
        role = {
            "Path": "/",
            "RoleName": _NAME_OF_ROLE,
            "RoleID": _ROLE_ID,
            "Arn": _ROLE_HERE,
            "CreateDate": now,
            "AssumeRolePolicyDocument": "{}",
            "MaxSessionDuration": 3600,
            # When it is old the service writes it itself, over what is laid meanwhile.
            "RoleLastUsed": {"LastUsedDate": now, "Region": REGION},
            "Policies": {"inline": [{"PolicyName": "lake", "PolicyDocument": self._policy, "CreateDate": now}]},
        }
        store = {"roles": {_NAME_OF_ROLE: role}, "sessions": self._sessions}
        part = self._folder / "iam.part"
        part.write_text(json.dumps(store))
        os.replace(part, self._folder / "iam" / "iam.json")

    def pod(self, name: str, *, role: str = ROLE) -> Pod:
        """A pod's part of the webhook and of the kubelet, with a good token."""
        folder = self._folder / name
        options = {
            "javax.net.ssl.trustStore": str(self._folder / "trust.p12"),
            "javax.net.ssl.trustStorePassword": _PASSWORD,
            "https.proxyHost": "127.0.0.1",
            "https.proxyPort": str(self._server.server_address[1]),
        }
        environment = {
            "AWS_STS_REGIONAL_ENDPOINTS": "regional",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
            "AWS_ROLE_ARN": role,
            "AWS_WEB_IDENTITY_TOKEN_FILE": str(folder / _TOKEN_NAME),
            "JAVA_TOOL_OPTIONS": " ".join(f"-D{key}={value}" for key, value in options.items()),
        }
        made = Pod(folder, environment)
        with self._lock:
            self._pods.append(made)
        self.project(made)
        return made

    def project(self, pod: Pod, token: str = "") -> None:
        """Replace the pod's token, as a kubelet does before it expires; the old one is refused.

        `token`: one that is not the stand-in's.
        """
        text = token or secrets.token_urlsafe(64)
        mount_files(pod.folder, {_TOKEN_NAME: text})
        with self._lock:
            pod.tokens.append("" if token else text)

    def expired(self, keys: Iterable[tuple[str, str]]) -> bool:
        """Whether the S3 server refuses all of these `Pod.keys`."""
        now = _time(time.time())
        with self._lock:
            return all(self._sessions.get(key, {}).get("expiration", "") <= now for key, _ in keys)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=60)
        for process in self._processes:
            process.kill()
            process.wait()

    def answer(self, form: dict[str, str]) -> tuple[int, str]:
        """Status and XML for the form of a request."""
        token, role = form.get("WebIdentityToken", ""), form.get("RoleArn", "")
        pod, code, message = self._judged(form, token, role)
        if code or pod is None:
            with self._lock:
                if pod is None:
                    self.unknown.append(code)
                else:
                    pod.refused += 1
            status = HTTPStatus.FORBIDDEN if code == "AccessDenied" else HTTPStatus.BAD_REQUEST
            error = f"<Type>Sender</Type><Code>{code}</Code><Message>{escape(message)}</Message>"
            return (
                status,
                f"<ErrorResponse {_XML}><Error>{error}</Error><RequestId>stand-in</RequestId></ErrorResponse>",
            )
        session = {
            "accessKeyId": f"ASIA{secrets.token_hex(8).upper()}",
            "secretAccessKey": secrets.token_hex(20),
            "sessionToken": secrets.token_urlsafe(90),
            "roleArn": _ROLE_HERE,
            "roleName": _NAME_OF_ROLE,
            "roleId": _ROLE_ID,
            "roleSessionName": form.get("RoleSessionName", ""),
            "audience": AUDIENCE,
            "createDate": _time(time.time()),
            "expiration": _time(time.time() + self.seconds),
        }
        with self._lock:
            self._sessions[session["accessKeyId"]] = session
            self._lay()
            pod.keys.append((session["accessKeyId"], token))
        names = {"AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"}
        given = "".join(f"<{name}>{session[name[0].lower() + name[1:]]}</{name}>" for name in sorted(names))
        who = f"<Arn>{escape(role)}/session</Arn><AssumedRoleId>{_ROLE_ID}:session</AssumedRoleId>"
        name = "AssumeRoleWithWebIdentity"
        result = (
            f"<Credentials>{given}</Credentials><AssumedRoleUser>{who}</AssumedRoleUser><Audience>{AUDIENCE}</Audience>"
        )
        metadata = "<ResponseMetadata><RequestId>stand-in</RequestId></ResponseMetadata>"
        return HTTPStatus.OK, f"<{name}Response {_XML}><{name}Result>{result}</{name}Result>{metadata}</{name}Response>"

    def _judged(self, form: dict[str, str], token: str, role: str) -> tuple[Pod | None, str, str]:
        """Pod whose token it is; if nothing is granted, also STS' code and message."""
        if form.get("Action") != "AssumeRoleWithWebIdentity":
            return None, "InvalidAction", "the stand-in answers AssumeRoleWithWebIdentity only"
        with self._lock:
            pod = next((pod for pod in self._pods if token and token in pod.tokens), None)
            if pod is None:
                return None, "InvalidIdentityToken", "The web identity token is not one of the stand-in's"
            if token != pod.tokens[-1]:
                return pod, "ExpiredTokenException", "Token expired: current date/time must be before the expiration"
        if role != ROLE:
            return pod, "AccessDenied", "Not authorized to perform sts:AssumeRoleWithWebIdentity"
        return pod, "", ""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    sts: StsServer

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: requests have tokens."""


class _Proxy(_Handler):
    def do_CONNECT(self) -> None:
        if self.path != f"{NAME}:443":
            self.send_error(HTTPStatus.FORBIDDEN)
            return
        self.send_response(HTTPStatus.OK)
        self.end_headers()
        self.wfile.flush()
        self.close_connection = True
        try:
            with self.sts._context.wrap_socket(self.connection, server_side=True) as wrapped:
                type("Sts", (_Sts,), {"sts": self.sts})(wrapped, self.client_address, self.server)
        except OSError:  # the client has left
            pass


class _Sts(_Handler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        status, text = self.sts.answer({key: values[0] for key, values in parse_qs(body).items()})
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/xml")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _certificate(folder: Path) -> ssl.SSLContext:
    """A certificate for STS' name, of an authority in trust.p12 of the folder."""
    commands = ". hack/certificates/certs.sh; cd \"$1\"; new_ca ca 'stand-in for STS'; "
    commands += 'new_cert ca sts "/CN=$2" serverAuth "DNS:$2"'
    subprocess.run(["bash", "-euc", commands, "-", str(folder), NAME], cwd=ROOT, check=True, timeout=60)
    store = ["-keystore", "trust.p12", "-storetype", "PKCS12", "-storepass", _PASSWORD]
    subprocess.run(
        ["keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", "ca.crt", *store],
        cwd=folder,
        check=True,
        capture_output=True,
        timeout=60,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "sts.crt", folder / "sts.key")
    return context

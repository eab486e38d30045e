"""A stand-in for a company's store of secrets, over TLS, for who has its token.

The webhook of the External Secrets Operator asks it for values by key and property.
"""

from __future__ import annotations

import base64
import http.server
import json
import secrets
import ssl
import subprocess
import threading
from pathlib import Path
from typing import Any
from urllib.parse import unquote

JsonDict = dict[str, Any]


class SecretStore:
    """Serves `values` until `stop`. `asked` are the keys that were asked for, in their order."""

    def __init__(self, folder: Path) -> None:
        self.values: dict[str, dict[str, str]] = {}
        self.asked: list[str] = []
        self.refused = 0
        """Requests without the token."""
        self.token = secrets.token_hex(16)
        self._certificate = folder / "store.crt"
        key = folder / "store.key"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "2", "-subj", "/CN=store", "-addext", "subjectAltName=IP:127.0.0.1",
             "-keyout", str(key), "-out", str(self._certificate)],
            check=True, capture_output=True, timeout=30,
        )  # fmt: skip
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._certificate, key)
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def provider(self, secret: str, namespace: str) -> JsonDict:
        """`spec.provider` of a ClusterSecretStore; the Secret has the token under `token`."""
        certificate = base64.b64encode(self._certificate.read_bytes()).decode()
        return {
            "webhook": {
                "url": f"https://127.0.0.1:{self._server.server_port}/{{{{ .remoteRef.key }}}}",
                "headers": {"Authorization": "Bearer {{ .auth.token }}"},
                "result": {"jsonPath": "$.{{ .remoteRef.property }}"},
                "secrets": [{"name": "auth", "secretRef": {"name": secret, "namespace": namespace}}],
                "caBundle": certificate,
            }
        }

    def stop(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        store = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: Any) -> None:
                pass

            def do_GET(self) -> None:
                key = unquote(self.path[1:])
                if self.headers["Authorization"] != f"Bearer {store.token}":
                    store.refused += 1
                    self._answer(401, {})
                    return
                store.asked.append(key)
                self._answer(200 if key in store.values else 404, store.values.get(key, {}))

            def _answer(self, code: int, body: JsonDict) -> None:
                text = json.dumps(body).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

        return Handler

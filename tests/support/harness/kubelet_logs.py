"""The part of a kubelet that the API server asks for the logs of containers.

`kubectl logs` asks the API server, and that asks the kubelet of the pod's node. Without one a test
runs the programs itself, with logs in files; this server gives them away as a kubelet does.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.support.harness.servers import Cluster

Find = Callable[[str, str], Path | None]
"""The file with the log of a container, by the pod's namespace and name; None: it has said
nothing.
"""


@contextmanager
def kubelet_logs(cluster: Cluster, node: str, *, certificate: Path, key: Path, find: Find) -> Iterator[None]:
    """Serve the logs of the pods of a node.

    ``certificate``: any; the light cluster's API server does not verify it. Of the parameters of a
    request ``tailLines`` is understood; ``sinceSeconds`` is not, the files begin with the test.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            parts = url.path.strip("/").split("/")
            if parts[:1] != ["containerLogs"] or len(parts) != 4:
                self.send_error(404)
                return
            file = find(parts[1], parts[2])
            lines = file.read_bytes().splitlines(keepends=True) if file is not None and file.exists() else []
            tail = parse_qs(url.query).get("tailLines")
            body = b"".join(lines[-int(tail[0]) :] if tail else lines)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True).start()
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": int(server.server_address[1])}},
    }
    cluster.request("PATCH", f"/api/v1/nodes/{node}/status", {"status": status}, "application/merge-patch+json")
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()

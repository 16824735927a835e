"""A proxy between a scheduler and the API server that lets a test spoil what comes back.

scheduler <── http ──> proxy <── https ──> kube-apiserver

It is on loopback and passes everything on, unless a test says otherwise: objects in watches and
lists, whole answers, or the connection itself. The API server is a real one.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from .control_plane import ControlPlane, JsonObject

#: Takes an event of a watch; returns it, changed or not, or the bytes to send instead.
SpoilEvent = Callable[[JsonObject], JsonObject | bytes]


class Proxy(ThreadingHTTPServer):
    """Stands between a scheduler and the API server."""

    def __init__(self, plane: ControlPlane, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Exchange)
        self._plane = plane
        self._config = json.loads(plane.scheduler_kubeconfig.read_text())
        self.token = self._config["users"][0]["user"]["token"]
        self._upstream: set[socket.socket] = set()
        #: paths of the watches that were opened
        self.watched: set[str] = set()
        self.spoil_event: SpoilEvent = lambda event: event
        self.spoil_item: Callable[[JsonObject], JsonObject] = lambda item: item
        #: answers a request by itself if it returns a status code
        self.refuse: Callable[[str, str], int | None] = lambda _method, _path: None

    @contextmanager
    def ask(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> Iterator[http.client.HTTPResponse]:
        """Ask the API server; give its answer, of which only the head is read."""
        with closing(
            http.client.HTTPSConnection(
                "127.0.0.1", self._plane.port, context=self._plane.tls, timeout=60
            )
        ) as connection:
            connection.request(method, path, body=body or None, headers=headers)
            upstream: socket.socket = connection.sock  # which getresponse may take over
            self._upstream.add(upstream)
            try:
                with connection.getresponse() as answer:
                    yield answer
            finally:
                self._upstream.discard(upstream)

    def handle_error(self, request: object, client_address: object) -> None:
        """Keep quiet: connections break here on purpose."""

    def break_connections(self) -> None:
        """End all watches, and all other tasks."""
        for upstream in list(self._upstream):
            with suppress(OSError):
                upstream.shutdown(socket.SHUT_RDWR)

    def kubeconfig(self) -> Path:
        """Write a kubeconfig that leads here, where a scheduler's rights come with it."""
        here = {"server": f"http://127.0.0.1:{self.server_port}"}
        config = self._config | {"clusters": [{"name": "envtest", "cluster": here}]}
        path = self._plane.folder / f"proxy-{self.server_port}.kubeconfig"
        path.write_text(json.dumps(config))
        return path


class _Exchange(BaseHTTPRequestHandler):
    """One connection of a scheduler."""

    protocol_version = "HTTP/1.1"
    server: Proxy

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's
        """Keep quiet."""

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        code = self.server.refuse(self.command, self.path)
        if code is not None:
            status = {"kind": "Status", "status": "Failure", "code": code, "message": "spoiled"}
            self._answer(code, json.dumps(status).encode())
            return
        passed_on = ("Content-Type", "User-Agent", "Accept")
        headers = {name: self.headers[name] for name in passed_on if name in self.headers}
        # A client keeps its token to itself where there is no TLS.
        headers["Authorization"] = f"Bearer {self.server.token}"
        with self.server.ask(self.command, self.path, headers, body) as answer:
            if "watch=" in self.path and answer.status == 200:
                self._stream(answer)
            else:
                self._answer(answer.status, self._spoiled_list(answer.read()))

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_any  # noqa: N815  the base class's

    def _spoiled_list(self, body: bytes) -> bytes:
        if self.command != "GET" or b'"items":' not in body:
            return body
        answer = json.loads(body)
        answer["items"] = [self.server.spoil_item(each) for each in answer["items"]]
        return json.dumps(answer).encode()

    def _answer(self, code: int, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, answer: http.client.HTTPResponse) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        self.server.watched.add(self.path.partition("?")[0])
        with suppress(OSError, ValueError, http.client.HTTPException):
            while line := answer.readline():
                event = self.server.spoil_event(json.loads(line))
                raw = event if isinstance(event, bytes) else json.dumps(event).encode()
                self.wfile.write(b"%x\r\n%s\n\r\n" % (len(raw) + 1, raw))
            self.wfile.write(b"0\r\n\r\n")


@contextmanager
def serving(plane: ControlPlane, port: int = 0) -> Iterator[Proxy]:
    with Proxy(plane, port) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, args=(0.05,), name="proxy")
        thread.start()
        try:
            yield proxy
        finally:
            proxy.break_connections()
            proxy.shutdown()
            thread.join()

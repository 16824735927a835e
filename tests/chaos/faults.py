"""A proxy between a scheduler and the API server that fails by seed.

    scheduler <── TLS, of the proxy's own authority ──> FaultyProxy <── TLS ──> kube-apiserver

A request meets at most one fault; a watch may meet one at each event. While `is_calm`, everything
is passed on as it is. Faults are drawn, so equal seeds give equal faults only as far as the
scheduler's requests come in the same order.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import trustme

from tests.integration.control_plane import ControlPlane, JsonObject

#: Share of requests, and of events of watches, that meet a fault.
REQUEST_SHARE: Final = 0.08
EVENT_SHARE: Final = 0.01
#: A throttled connection passes on so many bytes a second.
THROTTLED: Final = 1024
#: A throttled answer is at most that long: a list of a whole cluster would outlast the run.
MOST_THROTTLED: Final = 8 * THROTTLED

REQUEST_FAULTS: Final = (
    "status 500",
    "status 503",
    "status 429",
    "dropped before",
    "answer lost",
    "delay",
    "cut body",
    "half close",
    "throttle",
)
EVENT_FAULTS: Final = ("cut line", "410", "repeat", "silence", "lag", "throttle", "dropped")


class FaultyProxy(ThreadingHTTPServer):
    """Passes on what a scheduler and an API server say to each other, or not."""

    daemon_threads = True

    def __init__(self, plane: ControlPlane, seed: int) -> None:
        super().__init__(("127.0.0.1", 0), _FaultyExchange)
        self._plane = plane
        self._rng = random.Random(seed)
        self._authority, stranger = trustme.CA(), trustme.CA()
        self._trusted, self._strange = _tls_of(self._authority), _tls_of(stranger)
        self._tls = self._trusted
        self._connections: set[socket.socket] = set()
        self.is_calm = True
        #: fault → how often
        self.met: Counter[str] = Counter()
        #: when the scheduler sent a request to bind a pod
        self.bindings: list[float] = []
        #: when it sent a request to give its lease back
        self.releases: list[float] = []

    def draw(self, faults: tuple[str, ...], share: float) -> str | None:
        """Return the fault to meet now, None for none."""
        if self.is_calm or self._rng.random() >= share:
            return None
        fault = self._rng.choice(faults)
        self.met[fault] += 1
        return fault

    def between(self, least: float, most: float) -> float:
        """Return a random number of seconds; none while it is calm."""
        return 0.0 if self.is_calm else self._rng.uniform(least, most)

    # --- connections ------------------------------------------------------------------------

    def get_request(self) -> tuple[socket.socket, object]:
        """Accept a connection; its handshake is left to the thread that serves it."""
        accepted, address = super().get_request()
        wrapped = self._tls.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
        self._connections.add(wrapped)
        return wrapped, address

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        """Forget a connection that has ended."""
        self._connections.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Keep quiet: connections break here on purpose."""

    def break_connections(self) -> None:
        """Break all connections of the scheduler."""
        for each in list(self._connections):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def swap_certificate(self, *, trusted: bool) -> None:
        """Show another certificate from now on, on new connections only as there are no others."""
        self._tls = self._trusted if trusted else self._strange
        self.break_connections()

    def calm_down(self) -> None:
        """Let no more faults happen; what was held up goes on at once."""
        self.is_calm = True
        self.swap_certificate(trusted=True)

    # --- the other side ---------------------------------------------------------------------

    @contextmanager
    def ask(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> Iterator[http.client.HTTPResponse]:
        """Ask the API server; give its answer, of which only the head is read."""
        plane = self._plane
        with closing(
            http.client.HTTPSConnection("127.0.0.1", plane.port, context=plane.tls, timeout=60)
        ) as connection:
            connection.request(method, path, body=body or None, headers=headers)
            with connection.getresponse() as answer:
                yield answer

    def kubeconfig(self) -> Path:
        """Write a kubeconfig that leads here."""
        file = self._plane.folder / f"proxy-{self.server_port}.crt"
        self._authority.cert_pem.write_to_path(str(file))
        config = json.loads(self._plane.scheduler_kubeconfig.read_text())
        config["clusters"][0]["cluster"] = {
            "server": f"https://127.0.0.1:{self.server_port}",
            "certificate-authority": str(file),
        }
        path = self._plane.folder / f"proxy-{self.server_port}.kubeconfig"
        path.write_text(json.dumps(config))
        return path


class _FaultyExchange(BaseHTTPRequestHandler):
    """One connection of a scheduler."""

    protocol_version = "HTTP/1.1"
    server: FaultyProxy
    connection: ssl.SSLSocket

    def setup(self) -> None:
        self.request.settimeout(60)
        self.request.do_handshake()
        super().setup()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's
        """Keep quiet."""

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        proxy = self.server
        if self.path.endswith("/binding"):
            proxy.bindings.append(time.monotonic())
        if self.command == "PUT" and "/leases/" in self.path and _gives_back(body):
            proxy.releases.append(time.monotonic())
        fault = proxy.draw(REQUEST_FAULTS, REQUEST_SHARE)
        if fault == "dropped before":
            raise ConnectionAbortedError
        if fault is not None and fault.startswith("status "):
            self._refuse(int(fault.removeprefix("status ")))
            return
        if fault == "delay":
            time.sleep(proxy.between(0.05, 3.0))
        kept = ("Content-Type", "User-Agent", "Accept", "Authorization")
        headers = {name: self.headers[name] for name in kept if name in self.headers}
        try:
            with proxy.ask(self.command, self.path, headers, body) as answer:
                if "watch=" in self.path and answer.status == 200:
                    self._stream(answer)
                    return
                content = answer.read()
                if fault == "answer lost":
                    raise ConnectionAbortedError
                self._answer(answer, content, fault)
        except (ConnectionRefusedError, ConnectionResetError, http.client.HTTPException) as error:
            # The API server is down: so is the connection.
            raise ConnectionAbortedError from error

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_any  # noqa: N815  the base class's

    def _refuse(self, code: int) -> None:
        status: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "status": "Failure",
            "code": code,
            "message": "a fault of the test",
            "reason": {429: "TooManyRequests", 503: "ServiceUnavailable"}.get(
                code, "InternalError"
            ),
        }
        content = json.dumps(status).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        if code == 429:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(content)

    def _answer(self, answer: http.client.HTTPResponse, content: bytes, fault: str | None) -> None:
        self.send_response(answer.status)
        for name in ("Content-Type", "Retry-After", "Audit-Id"):
            if value := answer.headers.get(name):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if fault == "cut body":
            self.wfile.write(content[: len(content) // 2])
            raise ConnectionAbortedError
        if fault == "throttle":
            self._slowly(content)
            return
        self.wfile.write(content)
        if fault == "half close":
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            self.close_connection = True

    def _slowly(self, content: bytes) -> None:
        slow, rest = content[:MOST_THROTTLED], content[MOST_THROTTLED:]
        for start in range(0, len(slow), THROTTLED // 4):
            self.wfile.write(slow[start : start + THROTTLED // 4])
            self.wfile.flush()
            time.sleep(self.server.between(0.25, 0.25))
        self.wfile.write(rest)

    def _stream(self, answer: http.client.HTTPResponse) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        while line := answer.readline():
            fault = self.server.draw(EVENT_FAULTS, EVENT_SHARE)
            if fault is not None and not self._spoil(fault, line):
                return
            self._chunk(line)
        self.wfile.write(b"0\r\n\r\n")

    def _spoil(self, fault: str, line: bytes) -> bool:
        """Let a fault happen before an event; return whether the watch goes on."""
        match fault:
            case "cut line":
                self._chunk(line[: len(line) // 2])
                return False
            case "410":
                gone = {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410}
                self._chunk(json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")
                return False
            case "repeat":
                self._chunk(line)
            case "silence":
                self._hold(5.0, 20.0)
            case "lag":
                self._hold(0.2, 3.0)
            case "throttle":
                self._hold(len(line) / THROTTLED, len(line) / THROTTLED)
            case _:
                return False
        return True

    def _hold(self, least: float, most: float) -> None:
        """Hold a watch up, while others go on: so events of kinds come in another order."""
        deadline = time.monotonic() + self.server.between(least, most)
        while time.monotonic() < deadline and not self.server.is_calm:
            time.sleep(0.05)

    def _chunk(self, raw: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))
        self.wfile.flush()


def _gives_back(body: bytes) -> bool:
    return not json.loads(body)["spec"].get("holderIdentity")


def _tls_of(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


@contextmanager
def faulty_proxy(plane: ControlPlane, seed: int) -> Iterator[FaultyProxy]:
    """Serve a proxy, calm at first."""
    with FaultyProxy(plane, seed) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, args=(0.05,), name="faulty proxy")
        thread.start()
        try:
            yield proxy
        finally:
            proxy.calm_down()
            proxy.shutdown()
            thread.join()

"""Requests to the serving port, as bytes of a connection.

Pieces of the input that the mark separates arrive one after the other, with the event loop running
in between, so that a request is cut anywhere.
"""

from __future__ import annotations

import asyncio
import functools
import logging

import httptools
import uvicorn
from uvicorn.server import ServerState

from kubesched.clock import VirtualClock
from kubesched.server.app import ServerApp
from kubesched.server.authentication import Authenticator
from kubesched.server.authorization import AllowedPaths, Authorizer
from kubesched.server.protocol import HEAD_LIMIT_BYTES, ServingProtocol
from kubesched.server.routes import Routes
from kubesched.server.sources import MetricsPage, Sources
from kubesched.server.trust import Trust
from tests.support.wire import Wire

from .target import FuzzTarget

#: Separates what arrives at once.
MARK = b"\x01|"
_TURNS = 20


class _Failures(logging.Handler):
    """Keeps what the server says of bugs of ours."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.said.append(logging.Formatter().format(record))


@functools.cache
def _config() -> uvicorn.Config:
    sources = Sources(
        component="kube-scheduler",
        metrics=MetricsPage(lambda: b"up 1\n"),
        configuration=lambda: b"{}",
        flags=lambda: {"v": "2"},
        set_verbosity=lambda _: None,
        profiling=True,
    )
    clock = VirtualClock()
    app = ServerApp(
        Routes(sources, started=0.0, clock=clock),
        Authenticator(Trust, None, clock=clock),
        Authorizer(AllowedPaths(("/*",)), None),
    )
    return uvicorn.Config(
        app,
        http=ServingProtocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        date_header=False,
        server_header=False,
    )


class _Answers:
    """Reads what the server sent as a client would."""

    def __init__(self) -> None:
        self.codes: list[int] = []
        self.parser = httptools.HttpResponseParser(self)

    def on_headers_complete(self) -> None:
        self.codes.append(self.parser.get_status_code())


async def _serve(data: bytes) -> Wire:
    config = _config()
    if not config.loaded:
        config.load()
    wire = Wire()
    connection = ServingProtocol(config=config, server_state=ServerState(), app_state={})
    connection.connection_made(wire)
    kept = 0
    for piece in data.split(MARK):
        if wire.closed:
            break
        connection.data_received(piece)
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        kept = max(kept, sum(len(name) + len(value) for name, value in connection.headers or ()))
    assert kept <= HEAD_LIMIT_BYTES
    wire.close()
    connection.connection_lost(None)
    while connection.tasks:
        await asyncio.wait(connection.tasks)
    return wire


def answer(data: bytes) -> None:
    """Bytes are answered with HTTP or with a hang-up, never with a traceback or a 500."""
    failures = _Failures()
    logger = logging.getLogger("kubesched")
    logger.addHandler(failures)
    try:
        with asyncio.Runner() as runner:
            wire = runner.run(_serve(data))
    finally:
        logger.removeHandler(failures)
    assert not failures.said, failures.said[0]
    if b"HEAD" in data:
        return  # the length of what does not follow
    answers = _Answers()
    answers.parser.feed_data(bytes(wire.sent))
    assert 500 not in answers.codes, bytes(wire.sent)


_GET = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"

TARGETS = (
    FuzzTarget(
        name="http-request",
        run=answer,
        seeds=(
            _GET,
            _GET + _GET,
            (
                b"GET /metrics?a=b&c HTTP/1.1\r\nHost: x\r\nAccept: text/plain;q=0.5, */*\r\n"
                b"Authorization: Bearer abc\r\nX-Remote-User: admin\r\n\r\n"
            ),
            b"PUT /debug/flags/v HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n" + MARK + b"10",
            b"POST /configz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"
            b"0\r\nX-Remote-User: admin\r\n\r\n" + _GET,
            b"GET /healthz?verbose&exclude=ping HTTP/1.0\r\n\r\n",
            (
                b"GET /ready%7a/%00/.. HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                b"Content-Length: 9999\r\n\r\nabc"
            ),
            (
                b"GET /flagz HTTP/1.1\r\nHost: x\r\n"
                b"Accept: application/json;v=v1alpha1;g=config.k8s.io;"
                b"as=Flagz\r\n\r\n"
            ),
            b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
            b"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        ),
        words=(
            MARK,
            b"\r\n",
            b"\r\n\r\n",
            b" HTTP/1.1",
            b"Transfer-Encoding: chunked\r\n",
            b"0\r\n",
            b"Content-Length: ",
            b"Connection: close\r\n",
            b"/metrics",
            b"/debug/pprof/",
            b"%ff",
            b"Accept: ",
            b"q=",
            b"application/yaml",
            b"application/cbor",
            b"X-Remote-Group: a\r\n",
            b"HEAD ",
            b"DELETE ",
            b"/metrics/slis",
            b"/livez/",
            b"?",
        ),
        max_bytes=4096,
        brief=250,
    ),
)

"""A connection without a socket, for the protocol of a server."""

from __future__ import annotations

import asyncio
from typing import Any


class Wire(asyncio.Transport):
    """The server's end of a connection; keeps what it sends."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = bytearray()
        self.closed = self.paused = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self if name == "socket" else default

    def setsockopt(self, *_: object) -> None:
        """Be a socket whose options are set."""

    def getsockname(self) -> tuple[str, int]:
        """Be a socket that has an address."""
        return "127.0.0.1", 1

    getpeername = getsockname

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if not self.closed:
            self.sent += data

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

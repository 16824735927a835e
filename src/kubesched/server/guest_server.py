"""A uvicorn server as one part of a process among others."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn


class GuestServer(uvicorn.Server):
    """A server that is a guest in this process: signals are not its business."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self.stopping = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and tell whoever waits for it."""
        await super().startup(sockets=sockets)
        self.listening.set()

    async def main_loop(self) -> None:
        """Wait for the end, instead of looking for it ten times a second."""
        await self.stopping.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signal handlers alone."""
        yield

    async def end_connections(self) -> None:
        """End what is still there after the grace period; its requests have been cancelled."""
        await asyncio.gather(*self.server_state.tasks, return_exceptions=True)
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()

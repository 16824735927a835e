"""A uvicorn server as one component of a process."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn


class GuestServer(uvicorn.Server):
    """A server that leaves signals to its process."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()
        self.stopping = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and set the event that callers wait for."""
        await super().startup(sockets=sockets)
        self.listening.set()

    async def main_loop(self) -> None:
        """Wait for the stop event, instead of polling ten times a second."""
        await self.stopping.wait()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the process's signal handlers alone."""
        yield

    async def end_connections(self) -> None:
        """Close connections that are left after the grace period; their requests have been
        cancelled.
        """
        await asyncio.gather(*self.server_state.tasks, return_exceptions=True)
        for connection in list(self.server_state.connections):
            if connection.transport is not None:
                connection.transport.abort()

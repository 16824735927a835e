"""A pool of keep-alive connections to one server.

    take_idle() │ check_out() ──> busy ──> give_back() ──> idle ──> too old: closed
                                              │              └──> give_away(): a stream's
                                              └──> the first waiter, if any

Idle connections are a stack: the last used is the least likely to be stale, and the rest can age
out. Waiters are served in order. One timer, for the earliest deadline, finds all timeouts: most
requests end long before theirs, so it seldom fires, and costs less than a timer per request.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque

from kubesched.client.connection import HttpConnection, PooledConnection
from kubesched.client.dial import Dialer
from kubesched.errors import ConnectionFailedError, RequestTimeoutError

#: A connection idle for this long is checked for an unseen hang-up before it is used.
_CHECK_AFTER_S = 1.0
#: How many idle connections are left for requests when streams take the others.
_SPARE = 4
#: How long a connection may take to close before it is aborted.
_CLOSE_TIMEOUT_S = 1.0
#: Timers fire to the millisecond, possibly just before their time.
_TIMER_RESOLUTION_S = 0.001
#: How long until timeouts are looked for again: thousands that wait may all be too late.
_SWEEP_PAUSE_S = 0.1


class _Turn(asyncio.Future[PooledConnection | None]):
    """A waiter, with its deadline."""

    def __init__(self, deadline: float, *, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self.deadline = deadline


class ConnectionPool:
    """A pool; belongs to the event loop that it is first used in."""

    def __init__(
        self,
        dialer: Dialer,
        *,
        max_connections: int,
        idle_timeout_s: float,
        max_body_bytes: int,
    ) -> None:
        self._dialer = dialer
        self._max_connections = max_connections
        self._idle_timeout_s = idle_timeout_s
        self._max_body_bytes = max_body_bytes
        #: connections without a request, last used at the end; a subset of _open
        self._idle: list[PooledConnection] = []
        #: connections that are idle or busy
        self._open: set[PooledConnection] = set()
        #: closed connections whose sockets are not gone yet
        self._closing: set[HttpConnection] = set()
        #: number of connections being opened: they count against the limit
        self._dialing = 0
        #: waiters for a connection; the result None means: open your own
        self._line: deque[_Turn] = deque()
        self._reaper: asyncio.TimerHandle | None = None
        self._sweeper: asyncio.TimerHandle | None = None
        #: when it fires, infinite without it
        self._sweep_at = math.inf
        self._all_lost: asyncio.Event | None = None
        self._closed = False

    def take_idle(self, now: float) -> PooledConnection | None:
        """Return a connection that can be used immediately."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed and not connection.transport.is_closing():
                if now - connection.idle_since <= _CHECK_AFTER_S or connection.is_quiet():
                    return connection
                connection.abort()
            self._retire(connection)
        return None

    def give_away(self, now: float) -> PooledConnection | None:
        """Return an idle connection that is the pool's no more, None if it has few."""
        if len(self._idle) <= _SPARE:
            return None
        connection = self.take_idle(now)
        if connection is not None:
            self._open.remove(connection)
        return connection

    async def check_out(self, deadline: float) -> PooledConnection:
        """Open a connection, or wait for one if the limit is reached."""
        self.check_open()
        connection = None
        if len(self._open) + self._dialing >= self._max_connections:
            connection = await self._stand_in_line(deadline)
            self.check_open()
        return connection or await self._dial(deadline)

    def enforce(self, deadline: float) -> None:
        """Let requests, and waiters, fail at their deadlines, of which this is one."""
        if deadline >= self._sweep_at:
            return
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._sweep_at = deadline
        at = deadline + _TIMER_RESOLUTION_S
        self._sweeper = asyncio.get_running_loop().call_at(at, self._sweep)

    def give_back(self, connection: PooledConnection) -> None:
        """End a request: pass the connection to the next waiter."""
        if connection.closed or connection.transport.is_closing():
            self._retire(connection)
            return
        while self._line:
            if _call(self._line.popleft(), connection):
                return
        self._idle.append(connection)
        if self._reaper is None:
            self._schedule_reaper(self._idle_timeout_s)

    def drop_idle(self) -> None:
        """Close idle connections."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
            self._retire(connection)

    def renew(self) -> None:
        """Use no existing connection for later requests."""
        self.drop_idle()
        for connection in self._open:
            connection.keep = False

    def check_open(self) -> None:
        """Raise if the pool is closed."""
        if self._closed:
            raise ConnectionFailedError(f"{self._dialer.peer}: the client is closed")

    async def aclose(self) -> None:
        """Close everything; requests in flight fail."""
        self._closed = True
        for timer in (self._reaper, self._sweeper):
            if timer is not None:
                timer.cancel()
        while self._line:
            _call(self._line.popleft(), None)
        self.drop_idle()
        for connection in self._open:
            connection.abort()
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await self._until_all_lost()
        except TimeoutError:
            for closing in self._closing:
                closing.abort()
            await self._until_all_lost()

    async def _until_all_lost(self) -> None:
        if self._open or self._closing:
            self._all_lost = asyncio.Event()
            await self._all_lost.wait()

    async def _dial(self, deadline: float) -> PooledConnection:
        self._dialing += 1
        try:
            connection = await self._dialer.dial(
                lambda: PooledConnection(
                    self._dialer.peer, self._lost, max_body_bytes=self._max_body_bytes
                ),
                deadline=deadline,
            )
        except BaseException:
            self._dialing -= 1
            self._call_next()
            raise
        self._dialing -= 1
        self._open.add(connection)
        if self._closed:
            connection.abort()
        return connection

    async def _stand_in_line(self, deadline: float) -> PooledConnection | None:
        turn = _Turn(deadline, loop=asyncio.get_running_loop())
        self._line.append(turn)
        self.enforce(deadline)
        try:
            return await turn
        except asyncio.CancelledError:
            self._leave_line(turn)
            raise

    def _leave_line(self, turn: _Turn) -> None:
        if not turn.done() or turn.cancelled() or turn.exception() is not None:
            turn.cancel()
            return
        connection = turn.result()  # served just before it gave up: pass it on
        if connection is not None:
            self.give_back(connection)
        else:
            self._call_next()

    def _call_next(self) -> None:
        """Let the first waiter open a connection, as a slot is free."""
        while self._line and len(self._open) + self._dialing < self._max_connections:
            if _call(self._line.popleft(), None):
                return

    def _retire(self, connection: PooledConnection) -> None:
        """Free the slot of a closed connection, though its socket may take a while."""
        if connection in self._open:
            self._open.remove(connection)
            if not connection.lost:
                self._closing.add(connection)
            self._call_next()

    def _lost(self, connection: HttpConnection) -> None:
        if isinstance(connection, PooledConnection):
            if connection in self._idle:
                self._idle.remove(connection)
            self._retire(connection)
        self._closing.discard(connection)
        if self._all_lost is not None and not (self._open or self._closing):
            self._all_lost.set()

    def _schedule_reaper(self, delay_s: float) -> None:
        self._reaper = asyncio.get_running_loop().call_later(delay_s, self._reap)

    def _reap(self) -> None:
        """Close connections idle for too long, before the server does; the oldest first."""
        self._reaper = None
        now = asyncio.get_running_loop().time()
        while self._idle and now - self._idle[0].idle_since >= self._idle_timeout_s:
            connection = self._idle.pop(0)
            connection.close()
            self._retire(connection)
        if self._idle:
            self._schedule_reaper(self._idle[0].idle_since + self._idle_timeout_s - now)

    def _sweep(self) -> None:
        """Fail requests and waiters past their deadlines."""
        self._sweeper, self._sweep_at = None, math.inf
        now = asyncio.get_running_loop().time()
        for connection in [each for each in self._open if each.is_busy]:
            if connection.deadline <= now:
                connection.expire()
        self._send_away(now)
        busy = (each.deadline for each in self._open if each.is_busy)
        waiting = (each.deadline for each in self._line if not each.done())
        earliest = min((*busy, *waiting), default=math.inf)
        self.enforce(max(earliest, now + _SWEEP_PAUSE_S))

    def _send_away(self, now: float) -> None:
        """Fail waiters past their deadline; the first are not always the oldest."""
        for turn in [each for each in self._line if each.deadline <= now and not each.done()]:
            message = f"all {self._max_connections} connections were busy for too long"
            turn.set_exception(RequestTimeoutError(f"{self._dialer.peer}: {message}"))
            self._line.remove(turn)


def _call(turn: _Turn, connection: PooledConnection | None) -> bool:
    """Serve a waiter; False if it has given up."""
    if turn.done():
        return False
    turn.set_result(connection)
    return True

"""Long computations in a forked child, which has a consistent copy of the state.

    loop ── fork ──> child: work() ──JSON through a pipe──> loop
              └── 30 s, or the client is gone: the child is killed

The child is a copy of this process between two turns of the event loop, so its state is consistent.
It must never act for its parent: it closes every descriptor but its pipe, resets all signal
handlers, and exits without running exit handlers. An alarm ends it if its parent does not.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, NoReturn

import msgspec
from msgspec import Struct

from kubesched.errors import KubeschedError
from kubesched.web.errors import BrokenError, BusyError, RefusedError, TooLongError

_log = logging.getLogger(__name__)

TIME_LIMIT_S: Final = 30.0
AT_ONCE: Final = 2
#: Maximum size of an answer.
LIMIT_BYTES: Final = 64 << 20
_READ_BYTES: Final = 1 << 18
_NICENESS: Final = 10
_LOOK_AGAIN_S: Final = 0.005
_MOST_DESCRIPTORS: Final = 65_536
_SIGNALS: Final = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGCHLD,
)


class _ForkResult(Struct, frozen=True, array_like=True):
    #: the answer
    answer: bytes = b""
    #: why there is none; "" if there is one
    refusal: str = ""
    #: the traceback of a bug; "" if there is none
    bug: str = ""


class ForkedAnswers:
    """Runs functions in children; `aclose` ends them all."""

    def __init__(self, *, at_once: int = AT_ONCE, time_limit_s: float = TIME_LIMIT_S) -> None:
        self._at_once = at_once
        self._time_limit_s = time_limit_s
        #: running children
        self._running: set[int] = set()
        #: children being reaped
        self._reaping: dict[int, asyncio.Task[None]] = {}

    async def run(self, work: Callable[[], bytes]) -> bytes:
        """Run a function in a child and return its result.

        Raises BusyError, TooLongError, RefusedError if the function raises a KubeschedError, and
        BrokenError if it raises anything else.
        """
        if len(self._running) >= self._at_once:
            raise BusyError(
                f"{self._at_once} questions like this are being answered already: try again soon"
            )
        pid, pipe = _fork(work, time_limit_s=self._time_limit_s)
        self._running.add(pid)
        try:
            async with asyncio.timeout(self._time_limit_s):
                received = await _read_all(pipe)
        except TimeoutError:
            raise TooLongError(
                f"no answer within {self._time_limit_s:.0f} s: ask for less, or the command line"
            ) from None
        finally:
            os.close(pipe)
            self._end(pid)
        return _opened(received)

    async def aclose(self) -> None:
        """End all children, and wait until they are gone."""
        for pid in list(self._running):
            self._end(pid)
        await asyncio.gather(*self._reaping.values())

    def _end(self, pid: int) -> None:
        """Kill a child; do not wait for it."""
        if pid not in self._running:
            return
        self._running.discard(pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        self._reaping[pid] = asyncio.create_task(self._reap(pid))

    async def _reap(self, pid: int) -> None:
        try:
            # The kernel may take a while to free a large process. There is no portable way to wait
            # for it that does not interfere with other code of this process.
            while not _is_gone(pid):  # noqa: ASYNC110 (see above)
                await asyncio.sleep(_LOOK_AGAIN_S)
        finally:
            self._reaping.pop(pid, None)


def _is_gone(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:  # already reaped
        return True


def _opened(received: bytes) -> bytes:
    try:
        outcome = msgspec.msgpack.decode(received, type=_ForkResult)
    except msgspec.DecodeError:
        raise BrokenError("the answer was lost: the process that worked on it ended") from None
    if outcome.bug:
        _log.error("a question of the web page could not be answered:\n%s", outcome.bug)
        raise BrokenError("this failed unexpectedly: the scheduler's log says more")
    if outcome.refusal:
        raise RefusedError(outcome.refusal)
    return outcome.answer


async def _read_all(pipe: int) -> bytes:
    """Read until the other end is closed."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    received = bytearray()

    def read() -> None:
        try:
            piece = os.read(pipe, _READ_BYTES)
        except BlockingIOError:
            return
        received.extend(piece)
        if not piece or len(received) > LIMIT_BYTES:
            loop.remove_reader(pipe)
            if not ended.done():
                ended.set_result(None)

    loop.add_reader(pipe, read)
    try:
        await ended
    finally:
        loop.remove_reader(pipe)
    if len(received) > LIMIT_BYTES:
        raise TooLongError(f"the answer is longer than {LIMIT_BYTES >> 20} MiB: ask for less")
    return bytes(received)


# --- the child ----------------------------------------------------------------------------------


def _fork(work: Callable[[], bytes], *, time_limit_s: float) -> tuple[int, int]:
    """Start a child; return its pid and the read end of its pipe."""
    out, into = os.pipe()
    try:
        with _signals_held(), warnings.catch_warnings():
            # Other threads are not copied. The child does not touch what they may hold locks on:
            # above all logging and files.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
            if pid == 0:
                _child(work, into, time_limit_s)
    except OSError as failed:
        os.close(out)
        why = (failed.strerror or str(failed)).lower()
        raise BusyError(f"the system has no room for another process: {why}") from None
    finally:
        os.close(into)
    os.set_blocking(out, False)
    return pid, out


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Block signals while the child still has its parent's handlers."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _child(work: Callable[[], bytes], pipe: int, time_limit_s: float) -> NoReturn:
    """Run the function, write the result, and exit; without the parent's exit handlers."""
    code = 1
    try:
        _become_harmless(pipe, time_limit_s)
        _write_all(pipe, msgspec.msgpack.encode(_outcome(work)))
        code = 0
    finally:
        os._exit(code)


def _become_harmless(pipe: int, time_limit_s: float) -> None:
    signal.set_wakeup_fd(-1)
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    signal.setitimer(signal.ITIMER_REAL, time_limit_s + 5)
    # A connection that the parent closes must not stay open in the child.
    for descriptor in _descriptors():
        if descriptor > 2 and descriptor != pipe:
            with contextlib.suppress(OSError):
                os.close(descriptor)
    logging.disable(logging.CRITICAL)
    gc.disable()  # it would touch, and so copy, all memory
    os.nice(_NICENESS)
    with contextlib.suppress(OSError):
        # If memory runs out, kill this child and not the scheduler.
        Path("/proc/self/oom_score_adj").write_text("1000")


def _descriptors() -> Iterable[int]:
    """Return the descriptors that may be open."""
    try:
        return [int(each.name) for each in Path("/dev/fd").iterdir()]
    except OSError:
        return range(min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], _MOST_DESCRIPTORS))


def _outcome(work: Callable[[], bytes]) -> _ForkResult:
    try:
        return _ForkResult(answer=work())
    except KubeschedError as refused:
        return _ForkResult(refusal=str(refused))
    except BaseException:  # noqa: BLE001 (reported by the parent)
        return _ForkResult(bug=traceback.format_exc())


def _write_all(pipe: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(pipe, rest) :]

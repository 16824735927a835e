"""``/debug/pprof``: CPU profile, memory, and the stacks of all tasks.

profile   stacks of the event loop's thread, sampled: one ``outer;…;inner count`` per line, which
          flamegraph.pl, speedscope and inferno accept
heap      the lines of code that hold the most memory, if tracemalloc runs
tasks     all asyncio tasks and threads with their stacks; ``goroutine`` is another name for it
"""

from __future__ import annotations

import asyncio
import gc
import io
import math
import resource
import sys
import threading
import time
import traceback
from collections import Counter
from types import FrameType

from kubesched.server import answers
from kubesched.server.answers import ServerAnswer
from kubesched.server.request import ServerRequest

PREFIX = "/debug/pprof/"
_PERIOD_S = 0.01
_DEFAULT_S = 30.0
_LONGEST_S = 3600.0
_HEAP_LINES = 50
_ABOUT = {
    "heap": "memory by line of code (needs PYTHONTRACEMALLOC=1 in the environment)",
    "profile": "CPU profile as collapsed stacks; seconds=N says for how long (default 30)",
    "tasks": "asyncio tasks and threads with their stacks (also called goroutine)",
}


class Profiler:
    """All profiles of this process; ``stop()`` ends the running one."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._busy = False

    def stop(self) -> None:
        """End a running profile early, on shutdown."""
        self._stopping.set()

    async def __call__(self, request: ServerRequest) -> ServerAnswer:
        """Handle a request under the prefix."""
        name = request.path.removeprefix(PREFIX)
        if not name:
            return answers.text(_index(), content_type=answers.HTML)
        if name == "profile":
            return await self._profile(request)
        if name == "heap":
            return answers.text(_heap())
        if name in ("tasks", "goroutine"):
            return answers.text(_tasks())
        return answers.plain_error("Unknown profile", 404)

    async def _profile(self, request: ServerRequest) -> ServerAnswer:
        seconds = _seconds(request)
        if seconds is None:
            return answers.plain_error(
                f"seconds must be a number above 0 and at most {_LONGEST_S:.0f}", 400
            )
        if self._busy:
            problem = "Could not enable CPU profiling: cpu profiling already in use"
            return answers.plain_error(problem, 500)
        self._busy = True
        loop_thread = threading.get_ident()
        try:
            stacks = await asyncio.to_thread(sample, loop_thread, seconds, stop=self._stopping)
        finally:
            self._busy = False
        lines = (f"{stack} {count}\n" for stack, count in stacks.most_common())
        return answers.text("".join(lines))


def redirect(_request: ServerRequest) -> ServerAnswer:
    """Send ``/debug/pprof`` to the index."""
    return ServerAnswer(
        f'<a href="{PREFIX}">Found</a>.\n\n'.encode(),
        302,
        answers.HTML,
        (("location", PREFIX),),
    )


def sample(thread: int, seconds: float, *, stop: threading.Event) -> Counter[str]:
    """Sample a thread's stack; return how often each was seen."""
    stacks: Counter[str] = Counter()
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not stop.wait(min(_PERIOD_S, left)):
        frame = sys._current_frames().get(thread)  # noqa: SLF001 (documented, despite its name)
        if frame is not None:
            stacks[_collapsed(frame)] += 1
    return stacks


def _collapsed(frame: FrameType | None) -> str:
    names = []
    while frame is not None:
        module = frame.f_globals.get("__name__", "?")
        # Spaces and semicolons are separators of the format.
        names.append(f"{module}:{frame.f_code.co_qualname}".replace(" ", "_").replace(";", ","))
        frame = frame.f_back
    return ";".join(reversed(names))


def _seconds(request: ServerRequest) -> float | None:
    asked = request.query.get("seconds", [""])[0]
    if not asked:
        return _DEFAULT_S
    try:
        seconds = float(asked)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and 0 < seconds <= _LONGEST_S else None


def _index() -> str:
    import html  # noqa: PLC0415 (as in the next one, what seldom a caller asks for)

    rows = "".join(
        f"<tr><td><a href='{name}'>{name}</a></td><td>{html.escape(about)}</td></tr>\n"
        for name, about in _ABOUT.items()
    )
    return (
        f"<html>\n<head>\n<title>{PREFIX}</title>\n</head>\n<body>\n{PREFIX}\n"
        f"<table>\n{rows}</table>\n</body>\n</html>\n"
    )


def _heap() -> str:
    import tracemalloc  # noqa: PLC0415

    report = io.StringIO()
    # The unit is the system's: kilobytes on Linux.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report.write(f"largest resident size so far: {peak} KiB\n")
    for generation, stats in enumerate(gc.get_stats()):
        report.write(f"garbage collector, generation {generation}: {stats}\n")
    report.write(f"objects that the collector leaves alone: {gc.get_freeze_count()}\n\n")
    if not tracemalloc.is_tracing():
        report.write(
            "Memory is not traced. Start the process with PYTHONTRACEMALLOC=1 in its environment\n"
            "to see which lines of code hold it; this makes it slower and larger.\n"
        )
        return report.getvalue()
    current, highest = tracemalloc.get_traced_memory()
    report.write(f"traced: {current} bytes now, {highest} bytes at most\n\n")
    for line in tracemalloc.take_snapshot().statistics("lineno")[:_HEAP_LINES]:
        report.write(f"{line}\n")
    return report.getvalue()


def _tasks() -> str:
    report = io.StringIO()
    tasks = sorted(asyncio.all_tasks(), key=lambda task: task.get_name())
    report.write(f"{len(tasks)} tasks\n")
    for task in tasks:
        report.write("\n")
        task.print_stack(file=report)
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sys._current_frames()  # noqa: SLF001 (documented, despite its name)
    report.write(f"\n{len(frames)} threads\n")
    for ident, frame in frames.items():
        report.write(f"\n{names.get(ident, ident)}\n")
        report.writelines(traceback.format_stack(frame))
    return report.getvalue()

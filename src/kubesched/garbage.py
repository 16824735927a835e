"""Tunes the garbage collector.

Our own code leaves hardly any reference cycles: memory is freed by reference counting, and tests
check that. The collector is for cycles of others, such as plugins.
"""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

#: Threshold of the youngest generation. Scheduling leaves hardly any cycles, so with the default of
#: 700 the collector would run every few pods and find nothing.
YOUNG = 20_000
#: Threshold while the first lists are read: nearly all that is created then stays.
LOADING = 100_000
#: How often an idle process runs a full collection.
PERIOD_S = 600.0
#: How long until a busy process is checked again.
BUSY_S = 1.0


@contextmanager
def importing() -> Iterator[None]:
    """Import modules without a collection, and exclude them from later ones.

    Nearly all of it stays: going through it would take a fifteenth of the time of imports.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def paused() -> Iterator[None]:
    """Pause collections while hundreds of thousands of objects are created, without cycles."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def expect_long_lived_objects() -> None:
    """Collect much less often until `freeze`."""
    gc.set_threshold(LOADING, *gc.get_threshold()[1:])


def freeze() -> None:
    """Exclude existing objects from collections, and collect less often.

    Without a collection before, which would take half a second after 150,000 pods were read and
    free a few hundred objects: those stay.
    """
    gc.freeze()
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])


async def collect_when_idle(
    is_idle: Callable[[], bool], *, sleep: Callable[[float], Awaitable[object]]
) -> None:
    """Run a full collection from time to time, when idle.

    The collector counts objects, not time: in an idle process it would not run for hours.
    Afterwards, free memory, e.g. of a burst of pods, is returned to the system.
    """
    give_back = _allocator_trim()
    while True:
        await sleep(PERIOD_S)
        while not is_idle():
            await sleep(BUSY_S)
        gc.collect()
        give_back()


def _allocator_trim() -> Callable[[], object]:
    """Return a function that returns free memory to the system.

    glibc does so by itself only at the end of its heap, which is hardly ever free.
    """
    import ctypes  # noqa: PLC0415 (commands that end soon import this module, too)

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return (lambda: trim(0)) if trim is not None else (lambda: None)

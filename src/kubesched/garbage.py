"""What the garbage collector looks at, and how often.

Nothing here leaves reference cycles behind in numbers: what is not needed any more is freed at
once, and tests see to that. The collector is for the cycles of others, such as plugins.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
from collections.abc import Awaitable, Callable

#: So many more objects than are freed make it look at the young ones. What is scheduled leaves
#: hardly any cycles behind, so with the usual 700 it looks every few pods and finds nothing.
YOUNG = 20_000
#: How often a process looks at objects of any age when it has nothing else to do.
PERIOD_S = 600.0
#: How long until it is asked again whether it has nothing else to do.
BUSY_S = 1.0


def settle() -> None:
    """Let it leave alone what is there by now, and look less often at what comes."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])


async def collect_when_idle(
    is_idle: Callable[[], bool], *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> None:
    """Look at everything but what was there at the start now and then, for ever.

    The collector counts objects, not time: in a process that rests, it would not look for hours.
    Memory that was needed for a while, such as in a burst of pods, goes back to the system then.
    """
    give_back = _allocator_trim()
    while True:
        await sleep(PERIOD_S)
        while not is_idle():
            await sleep(BUSY_S)
        gc.collect()
        give_back()


def _allocator_trim() -> Callable[[], object]:
    """Return what makes the C library give free memory back; glibc does so by itself only at the
    end of its heap, which hardly ever becomes free.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return (lambda: trim(0)) if trim is not None else (lambda: None)

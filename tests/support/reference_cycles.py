"""Finds reference cycles of ours: what only the garbage collector can free.

    with no_cycles():
        ...                # fails with the types of all of our objects that were left in cycles

In a process that rests, the garbage collector has no reason to look for hours. So nothing that
happens in such a process, a connection's end or a failed request, may leave a cycle behind.
"""

from __future__ import annotations

import gc
import types
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_cycles() -> Iterator[None]:
    """Fail if objects of kubesched are in cycles that became unreachable meanwhile."""
    gc.collect()
    enabled, flags = gc.isenabled(), gc.get_debug()
    gc.disable()
    try:
        yield
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found = Counter(name for each in gc.garbage if (name := _our_name(each)))
    finally:
        gc.set_debug(flags)
        gc.garbage.clear()
        if enabled:
            gc.enable()
        gc.collect()
    assert not found, f"left in reference cycles: {dict(found)}"


def _our_name(found: object) -> str:
    """Return what to call an object of ours, "" for those of others."""
    if isinstance(found, types.FrameType):
        module, name = str(found.f_globals.get("__name__", "")), found.f_code.co_qualname
    elif isinstance(found, types.FunctionType | types.MethodType):
        module, name = found.__module__ or "", found.__qualname__
    else:
        module, name = type(found).__module__, type(found).__qualname__
    return f"{module}.{name}" if module.startswith("kubesched") else ""

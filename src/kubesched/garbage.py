"""What the garbage collector looks at, and how often."""

from __future__ import annotations

import gc

#: So many more objects than are freed make it look at the young ones. What is scheduled leaves
#: hardly any cycles behind, so with the usual 700 it looks every few pods and finds nothing.
YOUNG = 20_000


def settle() -> None:
    """Let it leave alone what is there by now, and look less often at what comes."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])

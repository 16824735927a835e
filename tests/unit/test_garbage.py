"""When the garbage collector looks, and that nothing of ours needs it."""

from __future__ import annotations

import asyncio
import gc
import weakref

from kubesched import garbage


class Cycle:
    """Something that only the garbage collector can free."""

    def __init__(self) -> None:
        self.itself = self


def test_an_idle_process_frees_cycles_however_old() -> None:
    cycle = Cycle()
    gc.collect()  # it has survived, and is old now
    gone = weakref.ref(cycle)
    del cycle
    pauses: list[float] = []
    idle = iter([False, False, True])

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 4:
            raise asyncio.CancelledError
        assert gone() is not None

    async def main() -> None:
        await asyncio.gather(
            garbage.collect_when_idle(lambda: next(idle), sleep=sleep), return_exceptions=True
        )

    gc.disable()
    try:
        asyncio.run(main())
        assert gone() is None
    finally:
        gc.enable()
    # Not while there is work; and then not again for a while.
    assert pauses == [garbage.PERIOD_S, garbage.BUSY_S, garbage.BUSY_S, garbage.PERIOD_S]

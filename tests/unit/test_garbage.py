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


def test_what_is_imported_is_never_looked_at() -> None:
    gc.unfreeze()
    try:
        with garbage.importing():
            assert not gc.isenabled()
            imported: list[list[int]] = [[] for _ in range(1000)]

        assert gc.isenabled()
        assert not any(each is imported for each in gc.get_objects())
    finally:
        gc.unfreeze()


def test_while_the_first_lists_are_read_it_looks_seldom_and_never_at_them_again() -> None:
    before = gc.get_threshold()
    gc.unfreeze()
    try:
        garbage.expect_long_lived_objects()
        assert gc.get_threshold() == (garbage.LOADING, *before[1:])
        listed: list[list[int]] = [[] for _ in range(1000)]

        garbage.freeze()

        assert gc.get_threshold() == (garbage.YOUNG, *before[1:])
        assert gc.get_freeze_count() > len(listed)
        assert not any(each is listed for each in gc.get_objects())
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


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


def test_after_a_pause_collections_go_on_if_they_did_before() -> None:
    assert gc.isenabled()
    with garbage.paused():
        assert not gc.isenabled()
    assert gc.isenabled()

    gc.disable()
    try:
        with garbage.paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()

"""What a target is, and what all of them require."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct

#: Processor time of one input. Everything is bounded far below; instrumented code is several
#: times slower, and a collection of garbage may fall into it.
LONGEST_S = 10.0
#: Longest message: what it quotes of the input has to be cut.
LONGEST_MESSAGE = 20_000


class FuzzTarget(Struct, frozen=True, kw_only=True):
    """One input of kubesched."""

    name: str
    #: raises AssertionError, or what it did not expect, if something does not hold
    run: Callable[[bytes], None]
    #: examples of it, valid or nearly so
    seeds: tuple[bytes, ...]
    #: words of its language, to be put anywhere
    words: tuple[bytes, ...] = ()
    #: longer inputs are not made
    max_bytes: int = 4096
    #: inputs in a brief run
    brief: int = 300

    def check(self, data: bytes) -> None:
        """Run it on one input, within the time."""
        began = time.process_time()
        self.run(data)
        taken_s = time.process_time() - began
        assert taken_s < LONGEST_S, f"{taken_s:.1f} s of processor time"


@contextmanager
def refused_with(
    *errors: type[Exception], lines: int | None = 1, longest: int | None = LONGEST_MESSAGE
) -> Iterator[None]:
    """Accept these errors, if their text is what a user may be shown."""
    try:
        yield
    except errors as error:
        said, kind = str(error), type(error).__name__
        assert said, f"{kind} says nothing"
        if longest is not None:
            assert len(said) <= longest, f"a message of {len(said)} characters: {said[:500]}"
        if lines is not None:
            assert len(said.split("\n")) <= lines, f"several lines: {said!r}"


def text_of(data: bytes) -> str:
    """Return bytes as text; each byte string gives one."""
    return data.decode("utf-8", errors="replace")

"""Inputs made from examples, the same for the same seed: for runs without atheris."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from .target import FuzzTarget

#: Numbers and characters at the edges of what parsers expect.
EDGES = (
    b"",
    b"0",
    b"-1",
    b"9" * 25,
    b"1e999",
    b"-9223372036854775809",
    b"18446744073709551616",
    b"\x00",
    b"\xff",
    b"\xc3\x28",
    b"\xed\xa0\x80",
    b"\xe2\x80\xa8",
    b"\\ud800",
    b"\r\n",
    b'"',
    b"\\",
    b"null",
    b"{}",
    b"[]",
    b"[" * 200,
    b'{"a":' * 200,
    b"NaN",
    b"true",
)


def inputs(target: FuzzTarget, seed: int, count: int) -> Iterator[bytes]:
    """Yield all examples, then so many mutations of them."""
    yield from target.seeds
    random = Random(f"{target.name}/{seed}")
    for _ in range(count):
        yield mutated(target, random)


def mutated(target: FuzzTarget, random: Random) -> bytes:
    """Return an example with a few changes."""
    data = bytearray(random.choice(target.seeds))
    for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
        _change(data, target, random)
    return bytes(data[: target.max_bytes])


def _change(data: bytearray, target: FuzzTarget, random: Random) -> None:
    start = random.randint(0, len(data))
    end = min(len(data), start + random.choice((0, 1, 1, 2, 4, 16, 64)))
    match random.randrange(7):
        case 0:
            del data[start:end]
        case 1:
            data[start:end] = random.choice(target.words or EDGES)
        case 2:
            data[start:end] = random.choice(EDGES)
        case 3:
            data[start:end] = random.randbytes(end - start)
        case 4:
            data[start:start] = data[start:end] * random.choice((1, 2, 50))
        case 5:
            other = random.choice(target.seeds)
            cut = random.randint(0, len(other))
            data[start:] = other[cut:]
        case 6:
            del data[start:]

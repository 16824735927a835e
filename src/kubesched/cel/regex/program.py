"""From the parsed pattern to a program for an abstract machine.

An instruction reads a character of a set, checks a condition on the place, or forks: the first of
two ways is preferred. Programs are built from the end: each part is told where to go on.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kubesched.cel.regex.charsets import CharSet
from kubesched.cel.regex.parsing import (
    Alternation,
    Assertion,
    Chars,
    RegexError,
    RegexNode,
    Repeat,
    Sequence,
)

#: Go allows for a few more; no expression that fits into an API object comes near.
_MAX_INSTRUCTIONS: Final = 500_000


class Read(NamedTuple):
    """Read a character of the set, then go on."""

    chars: CharSet
    after: int


class Check(NamedTuple):
    """Go on if the condition holds here."""

    kind: str
    after: int


class Fork(NamedTuple):
    """Go both ways; the first is preferred."""

    first: int
    second: int


class Match(NamedTuple):
    """The text matches."""


Instruction = Read | Check | Fork | Match


class RegexProgram:
    """The instructions, and where to begin; the match is instruction 0."""

    def __init__(self, node: RegexNode, pattern: str) -> None:
        self._pattern = pattern
        self._sets: dict[tuple[tuple[int, int], ...], CharSet] = {}
        self.instructions: list[Instruction] = [Match()]
        self.start = self._build(node, 0)

    def _add(self, instruction: Instruction) -> int:
        if len(self.instructions) >= _MAX_INSTRUCTIONS:
            raise RegexError("expression too large", self._pattern)
        self.instructions.append(instruction)
        return len(self.instructions) - 1

    def _build(self, node: RegexNode, after: int) -> int:
        match node:
            case Chars():
                return self._add(Read(self._set(node.ranges), after))
            case Assertion():
                return self._add(Check(node.kind, after))
            case Sequence():
                for part in reversed(node.parts):
                    after = self._build(part, after)
                return after
            case Alternation():
                return self._choice(node, after)
            case Repeat():
                return self._repeat(node, after)
        raise AssertionError(node)

    def _choice(self, node: Alternation, after: int) -> int:
        start = self._build(node.options[-1], after)
        for option in reversed(node.options[:-1]):
            start = self._add(Fork(self._build(option, after), start))
        return start

    def _repeat(self, node: Repeat, after: int) -> int:
        copies = node.least
        if node.most is not None:
            start = after
            for _ in range(node.most - node.least):
                start = self._fork(node, self._build(node.part, start), after)
        elif node.least > 0:
            start, copies = self._loop(node, after)[1], node.least - 1
        else:
            loop, body = self._loop(node, after)
            # A part that can be empty needs a fork of its own, so that an empty match of it is
            # not taken for the end of the repetition.
            start = self._fork(node, body, after) if _can_be_empty(node.part) else loop
        for _ in range(copies):
            start = self._build(node.part, start)
        return start

    def _loop(self, node: Repeat, after: int) -> tuple[int, int]:
        """Return where a repetition forks, and where its body begins."""
        loop = self._add(Match())
        body = self._build(node.part, loop)
        self.instructions[loop] = Fork(body, after) if node.is_greedy else Fork(after, body)
        return loop, body

    def _fork(self, node: Repeat, body: int, after: int) -> int:
        return self._add(Fork(body, after) if node.is_greedy else Fork(after, body))

    def _set(self, ranges: tuple[tuple[int, int], ...]) -> CharSet:
        found = self._sets.get(ranges)
        if found is None:
            found = self._sets[ranges] = CharSet(list(ranges))
        return found


def _can_be_empty(node: RegexNode) -> bool:
    match node:
        case Assertion():
            return True
        case Sequence():
            return all(map(_can_be_empty, node.parts))
        case Alternation():
            return any(map(_can_be_empty, node.options))
        case Repeat():
            return node.least == 0 or _can_be_empty(node.part)
    return False

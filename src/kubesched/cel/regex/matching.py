"""Running a program over a text, with all of its states at once.

``matches`` asks only whether there is a match, so sets of states are states of a deterministic
automaton, which is built as far as texts need it. ``find`` must know where the preferred match
begins and ends, so it keeps states in the order of preference.
"""

from __future__ import annotations

from typing import Final

from kubesched.cel.recursion import deep_recursion
from kubesched.cel.regex.parsing import parse
from kubesched.cel.regex.program import Check, Fork, Match, Read, RegexProgram

#: Transitions that are remembered before the automaton is built anew.
_MAX_TRANSITIONS: Final = 10_000

_WORD: Final = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")


class _State:
    """States of the program before the character at a place, which follows ``before``."""

    __slots__ = ("before", "next", "states")

    def __init__(self, states: tuple[int, ...], before: str) -> None:
        self.states = states
        self.before = before
        #: by the next character; None: the text matches
        self.next: dict[str, _State | None] = {}


class Regex:
    """A compiled pattern."""

    def __init__(self, pattern: str) -> None:
        with deep_recursion():
            program = RegexProgram(parse(pattern), pattern)
        self._instructions = program.instructions
        self._start = program.start
        self._has_checks = any(isinstance(step, Check) for step in self._instructions)
        self._known: dict[tuple[tuple[int, ...], str], _State] = {}
        self._transitions = 0

    def matches(self, text: str) -> bool:
        """Whether the pattern matches anywhere in the text."""
        state = self._state((self._start,), "")
        for char in text:
            try:
                following = state.next[char]
            except KeyError:
                following = self._advance(state, char)
            if following is None:
                return True
            state = following
        return 0 in self._reachable(state.states, state.before, "")

    def find(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """Return where the leftmost match begins and ends, as backtracking would find it."""
        threads: list[tuple[int, int]] = []
        found: tuple[int, int] | None = None
        at = start
        while True:
            before, after = text[at - 1 : at] if at else "", text[at : at + 1]
            if found is None:
                threads = [*threads, (self._start, at)]
            advanced: list[tuple[int, int]] = []
            seen: set[int] = set()
            for pc, begin in threads:
                matched = self._follow(pc, begin, before, after, seen=seen, advanced=advanced)
                if matched:
                    # What is less preferred than a match is out.
                    found = (begin, at)
                    break
            if not after or (not advanced and found is not None):
                return found
            threads = advanced
            at += 1

    def find_all(self, text: str, limit: int = -1) -> list[str]:
        """Return all matches that do not overlap, up to a number unless it is negative."""
        result: list[str] = []
        at, last_end = 0, -1
        while at <= len(text) and (limit < 0 or len(result) < limit):
            span = self.find(text, at)
            if span is None:
                break
            begin, end = span
            if end == at:
                # An empty match right behind a match is none of its own.
                if begin != last_end:
                    result.append("")
                at += 1
            else:
                result.append(text[begin:end])
                at = end
            last_end = end
        return result

    # -- the deterministic automaton ------------------------------------------------------------

    def _state(self, states: tuple[int, ...], before: str) -> _State:
        # What was read matters only as far as conditions can tell it.
        kind = _kind(before) if self._has_checks else "x"
        key = (states, kind)
        state = self._known.get(key)
        if state is None:
            state = self._known[key] = _State(states, kind)
        return state

    def _advance(self, state: _State, char: str) -> _State | None:
        reached = self._reachable(state.states, state.before, char)
        following: _State | None = None
        if 0 not in reached:
            steps = self._instructions
            states = {self._start}
            for pc in reached:
                step = steps[pc]
                if isinstance(step, Read) and char in step.chars:
                    states.add(step.after)
            following = self._state(tuple(sorted(states)), char)
        self._transitions += 1
        if self._transitions > _MAX_TRANSITIONS:
            self._transitions = 0
            self._known.clear()
        else:
            state.next[char] = following
        return following

    def _reachable(self, states: tuple[int, ...], before: str, after: str) -> set[int]:
        """Return the states that can be reached without reading a character."""
        seen: set[int] = set()
        pending = list(states)
        while pending:
            pc = pending.pop()
            if pc in seen:
                continue
            seen.add(pc)
            step = self._instructions[pc]
            if isinstance(step, Fork):
                pending += (step.first, step.second)
            elif isinstance(step, Check) and _holds(step.kind, before, after):
                pending.append(step.after)
        return seen

    # -- in the order of preference -------------------------------------------------------------

    def _follow(
        self,
        start: int,
        begin: int,
        before: str,
        after: str,
        *,
        seen: set[int],
        advanced: list[tuple[int, int]],
    ) -> bool:
        """Add what can be read from here to ``advanced``; whether a match is reached."""
        pending = [start]
        while pending:
            pc = pending.pop()
            if pc in seen:
                continue
            seen.add(pc)
            step = self._instructions[pc]
            if isinstance(step, Match):
                return True
            if isinstance(step, Fork):
                pending += (step.second, step.first)
            elif isinstance(step, Check):
                if _holds(step.kind, before, after):
                    pending.append(step.after)
            elif after and after in step.chars:
                advanced.append((step.after, begin))
        return False


def _kind(char: str) -> str:
    """Return a character that stands for all that conditions cannot tell from this one."""
    if not char or char == "\n":
        return char
    return "w" if char in _WORD else " "


def _holds(kind: str, before: str, after: str) -> bool:
    match kind:
        case "^":
            return before == ""
        case "$":
            return after == ""
        case "A":
            return before in ("", "\n")
        case "Z":
            return after in ("", "\n")
    is_boundary = (before in _WORD) != (after in _WORD)
    return is_boundary == (kind == "b")

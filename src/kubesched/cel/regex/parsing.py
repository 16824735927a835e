"""The syntax of RE2, as Go's regexp package accepts it: the same patterns, the same errors."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from kubesched.cel.regex.charsets import (
    PERL,
    POSIX,
    Ranges,
    category,
    folded,
    negated,
    normalized,
)
from kubesched.cel.regex.scripts import script

_MAX_HEIGHT: Final = 1000
_MAX_REPEAT: Final = 1000
_REPEAT: Final = re.compile(r"\{(0|[1-9][0-9]*)(?:(,)(0|[1-9][0-9]*)?)?\}")
_NAME: Final = re.compile(r"[A-Za-z0-9_]+")
_C_ESCAPES: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_ANY: Final = [(0, 0x10FFFF)]
_ANY_BUT_NEWLINE: Final = negated([(10, 10)])


class RegexError(Exception):
    """A pattern that cannot be compiled."""

    def __init__(self, problem: str, part: str) -> None:
        super().__init__(f"error parsing regexp: {problem}: `{part}`")


# -- the parsed pattern -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RegexNode:
    """A part of a pattern; ``height`` is how deep it nests."""

    height: int


@dataclass(frozen=True, slots=True)
class Chars(RegexNode):
    """One character out of a set."""

    ranges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Assertion(RegexNode):
    """A condition on the place: one of ^ $ (of the text) A Z (of a line) b B."""

    kind: str


@dataclass(frozen=True, slots=True)
class Sequence(RegexNode):
    """Parts one after the other."""

    parts: tuple[RegexNode, ...]


@dataclass(frozen=True, slots=True)
class Alternation(RegexNode):
    """One of several, the first that matches."""

    options: tuple[RegexNode, ...]


@dataclass(frozen=True, slots=True)
class Repeat(RegexNode):
    """A part several times; ``most`` is None for any number."""

    part: RegexNode
    least: int
    most: int | None
    is_greedy: bool
    is_counted: bool


@dataclass(frozen=True, slots=True)
class _Flags:
    fold: bool = False
    multiline: bool = False
    dot_newline: bool = False
    lazy: bool = False


class _Group:
    """An open parenthesis: the alternatives so far, and the flags to return to."""

    def __init__(self, flags: _Flags) -> None:
        self.flags = flags
        self.options: list[RegexNode] = []
        self.parts: list[RegexNode] = []

    def close(self) -> RegexNode:
        self.next_option()
        if len(self.options) == 1:
            return self.options[0]
        return Alternation(1 + max(part.height for part in self.options), tuple(self.options))

    def next_option(self) -> None:
        if len(self.parts) == 1:
            self.options.append(self.parts[0])
        else:
            height = 1 + max((part.height for part in self.parts), default=0)
            self.options.append(Sequence(height, tuple(self.parts)))
        self.parts = []


def parse(pattern: str) -> RegexNode:
    """Return the parsed pattern; raises RegexError."""
    return _RegexParser(pattern).parse()


class _RegexParser:
    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._flags = _Flags()
        self._groups = [_Group(self._flags)]

    def parse(self) -> RegexNode:
        last_repeat: int | None = None
        while self._at < len(self._text):
            start = self._at
            if self._is_repeat(last_repeat):
                last_repeat = start
            else:
                self._item()
                last_repeat = None
        if len(self._groups) > 1:
            raise RegexError("missing closing )", self._text)
        node = self._groups[0].close()
        if node.height > _MAX_HEIGHT:
            raise RegexError("expression nests too deeply", self._text)
        return node

    # -- items ----------------------------------------------------------------------------------

    def _item(self) -> None:
        char = self._text[self._at]
        match char:
            case "(":
                self._open()
            case "|":
                self._groups[-1].next_option()
                self._at += 1
            case ")":
                self._close()
            case "^":
                self._assertion("A" if self._flags.multiline else "^", 1)
            case "$":
                self._assertion("Z" if self._flags.multiline else "$", 1)
            case ".":
                self._at += 1
                self._push(_ANY if self._flags.dot_newline else _ANY_BUT_NEWLINE)
            case "[":
                self._push(self._bracket())
            case "\\":
                self._escape_item()
            case _:
                self._at += 1
                self._literal(ord(char))

    def _push(self, ranges: Ranges) -> None:
        self._groups[-1].parts.append(Chars(1, tuple(normalized(ranges))))

    def _literal(self, code: int) -> None:
        self._push(folded([(code, code)]) if self._flags.fold else [(code, code)])

    def _assertion(self, kind: str, length: int) -> None:
        self._groups[-1].parts.append(Assertion(1, kind))
        self._at += length

    def _escape_item(self) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        match following:
            case "A":
                self._assertion("^", 2)
            case "z":
                self._assertion("$", 2)
            case "b" | "B":
                self._assertion(following, 2)
            case "C":
                raise RegexError("invalid escape sequence", "\\C")
            case "Q":
                quoted, _, _ = self._text[self._at + 2 :].partition("\\E")
                self._at = min(self._at + 4 + len(quoted), len(self._text))
                for char in quoted:
                    self._literal(ord(char))
            case _:
                ranges = self._class_escape()
                if ranges is None:
                    self._literal(self._escape())
                else:
                    self._push(ranges)

    # -- groups and repetition ------------------------------------------------------------------

    def _open(self) -> None:
        rest = self._text[self._at :]
        if not rest.startswith("(?"):
            self._at += 1
            self._groups.append(_Group(self._flags))
            return
        if (rest.startswith("(?P<") and len(rest) > 4) or (
            rest.startswith("(?<") and len(rest) > 3
        ):
            self._named_group(rest)
        else:
            self._flag_group(rest)

    def _named_group(self, rest: str) -> None:
        end = rest.find(">")
        if end < 0:
            raise RegexError("invalid named capture", rest)
        name = rest[rest.index("<") + 1 : end]
        if not _NAME.fullmatch(name):
            raise RegexError("invalid named capture", rest[: end + 1])
        self._at += end + 1
        self._groups.append(_Group(self._flags))

    def _flag_group(self, rest: str) -> None:
        values = {
            "i": self._flags.fold, "m": self._flags.multiline,
            "s": self._flags.dot_newline, "U": self._flags.lazy,
        }  # fmt: skip
        is_set, saw_flag, at = True, False, 2
        while at < len(rest):
            char = rest[at]
            at += 1
            if char in values:
                values[char], saw_flag = is_set, True
            elif char == "-" and is_set:
                is_set, saw_flag = False, False
            elif char in ":)" and (is_set or saw_flag):
                if char == ":":
                    self._groups.append(_Group(self._flags))
                self._flags = _Flags(values["i"], values["m"], values["s"], values["U"])
                self._at += at
                return
            else:
                break
        raise RegexError("invalid or unsupported Perl syntax", rest[:at])

    def _close(self) -> None:
        if len(self._groups) == 1:
            raise RegexError("unexpected )", self._text)
        group = self._groups.pop()
        node = group.close()
        if node.height >= _MAX_HEIGHT:
            raise RegexError("expression nests too deeply", self._text)
        self._flags = group.flags
        wrapped = Sequence(node.height + 1, (node,))
        self._groups[-1].parts.append(wrapped)
        self._at += 1

    def _is_repeat(self, last_repeat: int | None) -> bool:
        """Read a repetition if there is one here."""
        start, char = self._at, self._text[self._at]
        least, most, is_counted = 0, None, False
        if char in "*+?":
            least, most = (1 if char == "+" else 0), (1 if char == "?" else None)
            self._at += 1
        elif char == "{" and (match := _REPEAT.match(self._text, start)):
            self._at = match.end()
            least, most, is_counted = self._counts(match), self._most(match), True
            if least > _MAX_REPEAT or (most is not None and (most > _MAX_REPEAT or least > most)):
                raise RegexError("invalid repeat count", match.group())
        else:
            return False
        is_greedy = not self._flags.lazy
        if self._text[self._at : self._at + 1] == "?":
            self._at += 1
            is_greedy = not is_greedy
        if last_repeat is not None:
            part = self._text[last_repeat : self._at]
            raise RegexError("invalid nested repetition operator", part)
        parts = self._groups[-1].parts
        if not parts:
            raise RegexError(
                "missing argument to repetition operator", self._text[start : self._at]
            )
        node = Repeat(parts[-1].height + 1, parts[-1], least, most, is_greedy, is_counted)
        parts[-1] = node
        if is_counted and (least >= 2 or (most or 0) >= 2) and not _is_valid(node, _MAX_REPEAT):
            raise RegexError("invalid repeat count", self._text[start : self._at])
        return True

    @staticmethod
    def _counts(match: re.Match[str]) -> int:
        return int(match[1]) if len(match[1]) <= 9 else _MAX_REPEAT + 1

    def _most(self, match: re.Match[str]) -> int | None:
        if match[2] is None:
            return self._counts(match)
        if match[3] is None:
            return None
        return int(match[3]) if len(match[3]) <= 9 else _MAX_REPEAT + 1

    # -- escapes and classes --------------------------------------------------------------------

    def _escape(self) -> int:
        """Read an escape that stands for a character."""
        start = self._at
        rest = self._text[start + 1 :]
        if not rest:
            raise RegexError("trailing backslash at end of expression", "")
        char = rest[0]
        if char.isascii() and not char.isalnum():
            self._at += 2
            return ord(char)
        if char in _C_ESCAPES:
            self._at += 2
            return _C_ESCAPES[char]
        if match := re.match(r"0[0-7]{0,2}|[1-7][0-7]{1,2}", rest):
            self._at += 1 + match.end()
            return int(match.group(), 8)
        if match := re.match(r"x(?:([0-9a-fA-F]{2})|\{([0-9a-fA-F]+)\})", rest):
            code = int(match[1] or match[2][-9:], 16)
            if code <= 0x10FFFF and len((match[2] or "").lstrip("0")) <= 6:
                self._at += 1 + match.end()
                return code
        raise RegexError("invalid escape sequence", self._text[start : start + _bad_escape(rest)])

    def _class_escape(self) -> Ranges | None:
        """Read an escape that stands for a class of characters, if it is one."""
        rest = self._text[self._at :]
        kind = rest[1:2]
        if rest[:1] != "\\" or not kind:
            return None
        if kind in "dswDSW":
            self._at += 2
            ranges = list(PERL[kind.lower()])
            ranges = folded(ranges) if self._flags.fold else ranges
            return negated(ranges) if kind.isupper() else ranges
        if kind not in "pP" or len(rest) < 3:
            return None
        if rest[2] == "{":
            end = rest.find("}")
            if end < 0:
                raise RegexError("invalid character class range", rest)
            spelled, name = rest[: end + 1], rest[3:end]
        else:
            spelled, name = rest[:3], rest[2]
        is_negated = (kind == "P") != name.startswith("^")
        ranges_ = _unicode_class(name.removeprefix("^"))
        if ranges_ is None:
            raise RegexError("invalid character class range", spelled)
        self._at += len(spelled)
        ranges = folded(ranges_) if self._flags.fold else ranges_
        return negated(ranges) if is_negated else ranges

    def _bracket(self) -> Ranges:
        start = self._at
        self._at += 1
        is_negated = self._text[self._at : self._at + 1] == "^"
        self._at += is_negated
        ranges: Ranges = []
        is_first = True
        while is_first or self._text[self._at : self._at + 1] != "]":
            is_first = False
            named = self._named_class()
            if named is None:
                named = self._class_escape()
            if named is not None:
                ranges += named
                continue
            item = self._at
            low = high = self._class_char(start)
            following = self._text[self._at : self._at + 2]
            if len(following) == 2 and following[0] == "-" and following[1] != "]":
                self._at += 1
                high = self._class_char(start)
                if high < low:
                    raise RegexError("invalid character class range", self._text[item : self._at])
            ranges += folded([(low, high)]) if self._flags.fold else [(low, high)]
        self._at += 1
        return negated(ranges) if is_negated else ranges

    def _class_char(self, start: int) -> int:
        if self._at >= len(self._text):
            raise RegexError("missing closing ]", self._text[start:])
        if self._text[self._at] == "\\":
            return self._escape()
        self._at += 1
        return ord(self._text[self._at - 1])

    def _named_class(self) -> Ranges | None:
        rest = self._text[self._at :]
        if not rest.startswith("[:") or len(rest) < 3:
            return None
        end = rest.find(":]", 2)
        if end < 0:
            return None
        spelled, name = rest[: end + 2], rest[2:end]
        found = POSIX.get(name.removeprefix("^"))
        if found is None:
            raise RegexError("invalid character class range", spelled)
        self._at += len(spelled)
        ranges = folded(list(found)) if self._flags.fold else list(found)
        return negated(ranges) if name.startswith("^") else ranges


def _is_valid(node: RegexNode, copies: int) -> bool:
    """Whether nested counts multiply to no more than this many copies."""
    if isinstance(node, Repeat):
        if node.is_counted:
            count = node.least if node.most is None else node.most
            if node.most == 0:
                return True
            if count > copies:
                return False
            copies //= max(count, 1)
        return _is_valid(node.part, copies)
    parts = node.parts if isinstance(node, Sequence) else ()
    parts = node.options if isinstance(node, Alternation) else parts
    return all(_is_valid(part, copies) for part in parts)


def _unicode_class(name: str) -> Ranges | None:
    canonical = re.sub("[-_ ]", "", name).capitalize()
    if canonical == "Ascii":
        return [(0, 0x7F)]
    found = category(canonical)
    if found is None:
        found = script(canonical)
    return None if found is None else list(found)


def _bad_escape(rest: str) -> int:
    """Return how much of an escape Go had read when it gave up, the backslash included."""
    if rest[0] != "x":
        return 2
    if rest[1:2] != "{":
        return min(4, 1 + len(rest))
    at = 2
    while at < len(rest) and rest[at] in "0123456789abcdefABCDEF":
        at += 1
        if int(rest[2:at], 16) > 0x10FFFF:
            return 1 + at
    return 1 + min(at + 1, len(rest))

"""Label and field selectors of a query, parsed to predicates.

    "app in (web,db),!canary"          ──▶ QuerySelector.matches(labels)
    "spec.nodeName=,status.phase!=…"   ──▶ FieldSelector.terms, each a field and a value

The grammar, its corner cases (an empty value, ``()`` as a set of one empty string) and the error
messages are those of kube-apiserver.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from kubesched.api.labels import parse_int64
from kubesched.embedded import formats
from kubesched.embedded.refusals import FieldError, aggregate, not_valid
from kubesched.errors import SelectorError

_SYMBOLS: Final = frozenset({"!", "(", ")", ",", "=", "==", "!=", "<", ">"})
#: Other white space than these four is part of a word.
_TOKEN: Final = re.compile(r"[=!<>(),]+|[^=!<>(), \t\r\n]+")
_BINARY: Final = ("=", "==", "!=", "in", "notin", ">", "<")
#: The order in which kube-apiserver lists them in errors.
_EXPECTED_OPERATORS: Final = "in, notin, =, ==, !=, gt, lt"
_END: Final = ""


class QueryRequirement(NamedTuple):
    """One condition on one label."""

    key: str
    #: "=", "==", "!=", "in", "notin", "exists", "!", ">" or "<"
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether labels meet the condition."""
        match self.operator:
            case "exists":
                return self.key in labels
            case "!":
                return self.key not in labels
            case "!=" | "notin":
                return self.key not in labels or labels[self.key] not in self.values
            case "<" | ">":
                return self._compares(labels.get(self.key))
        return labels.get(self.key) in self.values

    def _compares(self, text: str | None) -> bool:
        value, (bound,) = _int64(text), map(_int64, self.values)
        if value is None or bound is None:
            return False
        return value > bound if self.operator == ">" else value < bound


class QuerySelector:
    """A conjunction of requirements; empty selects everything."""

    __slots__ = ("requirements",)

    def __init__(self, requirements: tuple[QueryRequirement, ...]) -> None:
        self.requirements = requirements

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether an object with these labels is selected."""
        return all(requirement.matches(labels) for requirement in self.requirements)


def parse_labels(text: str) -> QuerySelector:
    """Parse a labelSelector; raises SelectorError with kube-apiserver's text."""
    return QuerySelector(tuple(_LabelParser(text).requirements()))


class _LabelParser:
    """Recursive descent over the tokens of one selector."""

    def __init__(self, text: str) -> None:
        self._tokens = [*_tokens(text), _END]
        self._next = 0

    def requirements(self) -> Iterator[QueryRequirement]:
        while self._peek() != _END:
            if not _is_word(self._peek()) and self._peek() != "!":
                raise SelectorError(
                    f"found '{self._peek()}', expected: !, identifier, or 'end of string'"
                )
            try:
                yield self._requirement()
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            end = self._take()
            if end == _END:
                return
            if end != ",":
                raise SelectorError(f"found '{end}', expected: ',' or 'end of string'")
            if not _is_word(self._peek()) and self._peek() != "!":
                raise SelectorError(f"found '{self._peek()}', expected: identifier after ','")

    def _requirement(self) -> QueryRequirement:
        negated = self._peek() == "!"
        if negated:
            self._take()
        key = self._take()
        if not _is_word(key):
            raise SelectorError(f"found '{key}', expected: identifier")
        if complaints := formats.qualified_name(key):
            raise SelectorError(str(not_valid("<nil>", key, "; ".join(complaints))))
        if self._peek() in {_END, ","}:
            return QueryRequirement(key, "!" if negated else "exists")
        if negated:
            return QueryRequirement(key, "!")
        operator = self._take()
        if operator not in _BINARY:
            raise SelectorError(f"found '{operator}', expected: {_EXPECTED_OPERATORS}")
        values = self._set() if operator in {"in", "notin"} else {self._value()}
        return _checked(QueryRequirement(key, operator, frozenset(values)))

    def _value(self) -> str:
        if self._peek() in {_END, ","}:
            return ""
        value = self._take()
        if not _is_word(value):
            raise SelectorError(f"found '{value}', expected: identifier")
        return value

    def _set(self) -> set[str]:
        opening = self._take()
        if opening != "(":
            raise SelectorError(f"found '{opening}' expected: '('")
        first = self._peek()
        if not _is_word(first) and first not in {",", ")"}:
            raise SelectorError(f"found '{first}', expected: ',', ')' or identifier")
        values: set[str] = set()
        while True:
            values.add(self._take() if _is_word(self._peek()) else "")
            separator = self._take()
            if separator == ")":
                return values
            if separator != ",":
                raise SelectorError(f"found '{separator}', expected: ',' or ')'")
            if not _is_word(self._peek()) and self._peek() not in {",", ")"}:
                raise SelectorError(f"found '{self._peek()}', expected: ',', or identifier")

    def _peek(self) -> str:
        return self._tokens[self._next]

    def _take(self) -> str:
        token = self._tokens[self._next]
        self._next = min(self._next + 1, len(self._tokens) - 1)
        return token


def _checked(requirement: QueryRequirement) -> QueryRequirement:
    errors: list[FieldError] = []
    values = sorted(requirement.values)
    if requirement.operator in {"<", ">"} and _int64(values[0]) is None:
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        errors.append(not_valid("values[0]", values[0], detail))
    for index, value in enumerate(values):
        if complaints := formats.label_value(value):
            field = f"values[{index}][{requirement.key}]"
            errors.append(not_valid(field, value, "; ".join(complaints)))
    if errors:
        raise SelectorError(aggregate(map(str, errors)))
    return requirement


def _tokens(text: str) -> Iterator[str]:
    for found in _TOKEN.findall(text):
        if found[0] in "=!<>(),":
            yield from _symbols(found)
        else:
            yield found


def _symbols(run: str) -> Iterator[str]:
    """Split a run of symbols into the longest known ones: ``"!=("`` is ``"!="``, ``"("``."""
    while run:
        length = 2 if run[:2] in _SYMBOLS else 1
        yield run[:length]
        run = run[length:]


def _is_word(token: str) -> bool:
    return token != _END and token not in _SYMBOLS


def _int64(text: str | None) -> int | None:
    return None if text is None else parse_int64(text)


# ---------------------------------------------------------------- fields


class FieldTerm(NamedTuple):
    """One field and the value that it must, or must not, have."""

    field: str
    value: str
    equal: bool


class FieldSelector:
    """A conjunction of terms; empty selects everything."""

    __slots__ = ("terms",)

    def __init__(self, terms: tuple[FieldTerm, ...]) -> None:
        self.terms = terms

    def matches(self, read: Callable[[str], str]) -> bool:
        """Tell whether an object matches, given a function that reads its fields."""
        return all((read(t.field) == t.value) == t.equal for t in self.terms)

    def exact(self, field: str) -> str | None:
        """Return the value that the field must have, if there is exactly one."""
        return next((t.value for t in self.terms if t.field == field and t.equal), None)


def parse_fields(text: str, convert: Callable[[str], str]) -> FieldSelector:
    """Read a fieldSelector; SelectorError if it is malformed.

    ``convert`` gives the canonical name of a field and raises SelectorError for an unknown one.
    """
    terms: list[FieldTerm] = []
    for part in sorted(re.findall(r"(?:\\.|[^,\\]|\\$)+", text)):
        found = re.search(r"!=|==|=", part)
        if found is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
        value = _unescaped(part[found.end() :])
        terms.append(FieldTerm(part[: found.start()], value, found[0] != "!="))
    # An empty term selects everything.
    return FieldSelector(
        tuple(t._replace(field=convert(t.field)) for t in terms if t.field or t.value)
    )


def _unescaped(text: str) -> str:
    plain: list[str] = []
    for piece in re.findall(r"\\.?|[^\\]", text, re.DOTALL):
        if piece in {",", "="}:
            raise SelectorError(
                f"invalid field selector: unescaped character in value: {ord(piece)}"
            )
        if piece.startswith("\\") and piece not in {"\\\\", "\\,", "\\="}:
            raise SelectorError(f"invalid field selector: invalid escape sequence: {piece}")
        plain.append(piece[-1])
    return "".join(plain)

"""The subset of Go's text/template that scheduler_perf's files use.

    node-{{.Index}}: {{if .big}}{{DivideInt 30000 .Count}}{{else}}4{{end}} ──> parts ──> text

There are fields (``.Index``), variables (``$devices := or .numDevices 10``), literals, pipelines,
``if`` with ``else``, ``range`` over a number, and scheduler_perf's functions. A field that is not
given is false in a condition, and an error everywhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from kubesched.errors import ConfigError

#: Numbers and texts, and what a workload's parameters may hold beside them.
Value = object

_TRIMMED = re.compile(r"\s*\{\{-(?=\s)|(?<=\s)-\}\}\s*")
_ACTION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_TOKEN = re.compile(r'\s*(?:([()|])|"([^"]*)"|(:=)|([^\s()"|]+))')


class _Missing:
    """A field that was not given."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self._text = f"there is no field {name}; there are {' and '.join(known)}"

    def __bool__(self) -> bool:
        return False

    def complain(self) -> ConfigError:
        return ConfigError(self._text)


# --- functions ----------------------------------------------------------------------------------


def _number(value: Value) -> float:
    if isinstance(value, _Missing):
        raise value.complain()
    try:
        if isinstance(value, str | int | float):
            return float(value)
    except ValueError:
        pass
    raise ConfigError(f"{value!r} is not a number")


def _product(*values: Value) -> float:
    product = 1.0
    for value in values:
        product *= _number(value)
    return product


def _quotient(dividend: Value, divisor: Value) -> float:
    if not _number(divisor):
        raise ConfigError("division by zero")
    return _number(dividend) / _number(divisor)


def _remainder(dividend: Value, divisor: Value) -> int:
    whole, by = int(_number(dividend)), int(_number(divisor))
    if not by:
        raise ConfigError("division by zero")
    # As in Go, the sign is the dividend's.
    return abs(whole) % abs(by) * (-1 if whole < 0 else 1)


def _sum(*values: Value) -> float:
    return sum(map(_number, values))


def _difference(first: Value, second: Value) -> float:
    return _number(first) - _number(second)


def _first_true(*values: Value) -> Value:
    return next((each for each in values if each), values[-1])


_FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "AddFloat": _sum,
    "AddInt": lambda *values: int(_sum(*values)),
    "DivideFloat": _quotient,
    "DivideInt": lambda first, second: int(_quotient(first, second)),
    "Int": lambda value: int(_number(value)),
    "JSON": lambda value: msgspec.json.encode(value).decode(),
    "Mod": _remainder,
    "MultiplyFloat": _product,
    "MultiplyInt": lambda *values: int(_product(*values)),
    "SubtractFloat": _difference,
    "SubtractInt": lambda first, second: int(_difference(first, second)),
    "eq": lambda first, *others: first in others,
    "ge": lambda first, second: _number(first) >= _number(second),
    "not": lambda value: not value,
    "or": _first_true,
}


# --- what a template consists of ----------------------------------------------------------------


@dataclass(frozen=True)
class _Output:
    action: str


@dataclass(frozen=True)
class _Assignment:
    variable: str
    action: str


@dataclass(frozen=True)
class _Branch:
    condition: str
    then: list[_Part] = field(default_factory=list)
    otherwise: list[_Part] = field(default_factory=list)


@dataclass(frozen=True)
class _Loop:
    #: "" if the body reads the number as ``.``
    variable: str
    count: str
    body: list[_Part] = field(default_factory=list)


_Part = str | _Output | _Assignment | _Branch | _Loop


class GoTemplate:
    """A parsed template."""

    def __init__(self, text: str, *, where: str) -> None:
        self._where = where
        trimmed = _TRIMMED.sub(lambda found: found.group().strip().replace("-", ""), text)
        self._parts = self._parse(_ACTION.split(trimmed))

    @property
    def is_constant(self) -> bool:
        """Whether it is the same for all indexes."""
        return all(isinstance(part, str) for part in self._parts)

    def render(self, fields: Mapping[str, Value]) -> str:
        """Fill in the fields."""
        return "".join(self._rendered(self._parts, _Scope(fields, {})))

    # --- parsing ----------------------------------------------------------------------------

    def _parse(self, pieces: list[str]) -> list[_Part]:
        """Parse texts and actions, which alternate."""
        top: list[_Part] = []
        #: where parts go, and the block that each belongs to
        into: list[list[_Part]] = [top]
        blocks: list[_Branch | _Loop] = []
        for place, piece in enumerate(pieces):
            if place % 2 == 0:
                into[-1].extend([piece] if piece else [])
                continue
            word, _, rest = piece.partition(" ")
            if word in ("if", "range"):
                block: _Branch | _Loop = _Branch(rest) if word == "if" else _loop(rest)
                into[-1].append(block)
                blocks.append(block)
                into.append(block.then if isinstance(block, _Branch) else block.body)
            elif word in ("else", "end") and not rest:
                block = self._innermost(blocks, piece)
                into.pop()
                if word == "end":
                    blocks.pop()
                elif isinstance(block, _Branch):
                    into.append(block.otherwise)
                else:
                    raise ConfigError(f"{self._where}: {{{{else}}}} of a {{{{range}}}}")
            else:
                variable, assigns, action = piece.partition(":=")
                is_assignment = assigns and variable.startswith("$")
                part = _Assignment(variable.strip(), action) if is_assignment else _Output(piece)
                into[-1].append(part)
        if blocks:
            raise ConfigError(f"{self._where}: {{{{if}}}} or {{{{range}}}} without {{{{end}}}}")
        return top

    def _innermost(self, blocks: list[_Branch | _Loop], piece: str) -> _Branch | _Loop:
        if not blocks:
            raise ConfigError(f"{self._where}: {{{{{piece}}}}} where nothing is open")
        return blocks[-1]

    # --- rendering --------------------------------------------------------------------------

    def _rendered(self, parts: Sequence[_Part], scope: _Scope) -> list[str]:
        texts: list[str] = []
        for part in parts:
            match part:
                case str():
                    texts.append(part)
                case _Output():
                    texts.append(self._text(part.action, scope))
                case _Assignment():
                    scope.variables[part.variable] = self._evaluate(part.action, scope)
                case _Branch():
                    is_so = self._evaluate(part.condition, scope)
                    texts += self._rendered(part.then if is_so else part.otherwise, scope)
                case _Loop():
                    texts += self._repeated(part, scope)
        return texts

    def _repeated(self, loop: _Loop, scope: _Scope) -> list[str]:
        texts: list[str] = []
        count = self._evaluate(loop.count, scope)
        if not isinstance(count, int):
            raise ConfigError(f"{self._where}: {{{{range {loop.count}}}}}: not a number")
        for number in range(count):
            if loop.variable:
                scope.variables[loop.variable] = number
                texts += self._rendered(loop.body, scope)
            else:
                texts += self._rendered(loop.body, _Scope(number, scope.variables))
        return texts

    def _text(self, action: str, scope: _Scope) -> str:
        value = self._evaluate(action, scope)
        if isinstance(value, _Missing):
            raise ConfigError(f"{self._where}: {{{{{action}}}}}: {value.complain()}")
        if isinstance(value, bool):
            return str(value).lower()
        return f"{value:g}" if isinstance(value, float) else str(value)

    def _evaluate(self, action: str, scope: _Scope) -> Value:
        try:
            return _value(_tokens(action), scope)
        except (ConfigError, TypeError) as wrong:
            raise ConfigError(f"{self._where}: {{{{{action}}}}}: {wrong}") from None


def _loop(rest: str) -> _Loop:
    variable, assigns, count = rest.partition(":=")
    return _Loop(variable.strip(), count) if assigns else _Loop("", rest)


@dataclass(frozen=True)
class _Scope:
    #: what ``.`` stands for: the fields, or the number of a ``range``
    dot: Value
    variables: dict[str, Value]


# --- expressions --------------------------------------------------------------------------------


def _tokens(action: str) -> list[str]:
    tokens, place, end = [], 0, len(action.rstrip())
    while place < end:
        found = _TOKEN.match(action, place)
        if not found:
            raise ConfigError(f"cannot be read at {action[place:]!r}")
        sign, quoted, assigns, word = found.groups()
        tokens.append(sign or assigns or word or f'"{quoted}')
        place = found.end()
    return tokens


def _value(tokens: list[str], scope: _Scope) -> Value:
    """Evaluate all tokens."""
    value = _pipeline(tokens, scope)
    if tokens:
        raise ConfigError(f"there is more after its end: {tokens[0]}")
    return value


def _pipeline(tokens: list[str], scope: _Scope) -> Value:
    """Evaluate commands, each of which gets the value of the one before it as last argument."""
    value = _call(tokens, scope)
    while tokens and tokens[0] == "|":
        tokens.pop(0)
        value = _call(tokens, scope, value)
    return value


def _call(tokens: list[str], scope: _Scope, *last: Value) -> Value:
    """Evaluate a function with its arguments, or a single value."""
    if not tokens or tokens[0] in (")", "|"):
        raise ConfigError("a value is missing")
    name = tokens[0]
    if not name[0].isalpha() or name == "nil":
        return _operand(tokens, scope)
    function = _FUNCTIONS.get(tokens.pop(0))
    if function is None:
        raise ConfigError(f"there is no function {name}; there are {', '.join(sorted(_FUNCTIONS))}")
    arguments = []
    while tokens and tokens[0] not in (")", "|"):
        arguments.append(_operand(tokens, scope))
    return function(*arguments, *last)


def _operand(tokens: list[str], scope: _Scope) -> Value:
    token = tokens.pop(0)
    if token == "(":  # noqa: S105  a parenthesis, not a secret
        value = _pipeline(tokens, scope)
        if not tokens or tokens.pop(0) != ")":
            raise ConfigError("a parenthesis is not closed")
        return value
    if token.startswith("."):
        return _field(token, scope)
    if token.startswith("$"):
        if token not in scope.variables:
            raise ConfigError(f"there is no variable {token}")
        return scope.variables[token]
    return _literal(token)


def _literal(token: str) -> Value:
    if token.startswith('"'):
        return token[1:]
    if token == "nil":  # noqa: S105  no value
        return None
    try:
        return int(token)
    except ValueError:
        return _number(token)


def _field(token: str, scope: _Scope) -> Value:
    if token == ".":  # noqa: S105  the value at hand
        return scope.dot
    if not isinstance(scope.dot, Mapping):
        raise ConfigError(f"there is no field {token} of a number")
    name = token[1:]
    if name not in scope.dot:
        return _Missing(token, [f".{each}" for each in scope.dot])
    value: Value = scope.dot[name]
    return value

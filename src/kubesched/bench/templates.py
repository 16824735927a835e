"""Objects from files: YAML with the subset of Go's text/template that scheduler_perf uses.

    node-{{.Index}}: {{DivideInt 30000 .Count}} ──> pieces ──(index, count)──> YAML ──> object

An action is a field (``.Index``, ``.Count``), a literal, or one of nine functions; arguments may be
in parentheses. A file without actions is parsed once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kubesched.bench.operations import JsonObject
from kubesched.config import untrusted_yaml
from kubesched.errors import ConfigError

Value = int | float | str

_ACTION = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_TOKEN = re.compile(r'\s*(?:([()])|"([^"]*)"|([^\s()"]+))')
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

#: Maps whose keys are data; everywhere else a key is a field name.
_DATA = frozenset(
    {"labels", "annotations", "matchLabels", "nodeSelector", "data", "stringData", "limits"}
    | {"requests", "capacity", "allocatable", "attributes", "counters", "overhead"}
)


def _number(value: Value) -> float:
    try:
        return float(value)
    except ValueError:
        raise ConfigError(f"{value!r} is not a number") from None


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


_FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "AddFloat": _sum,
    "AddInt": lambda *values: int(_sum(*values)),
    "DivideFloat": _quotient,
    "DivideInt": lambda first, second: int(_quotient(first, second)),
    "Mod": _remainder,
    "MultiplyFloat": _product,
    "MultiplyInt": lambda *values: int(_product(*values)),
    "SubtractFloat": _difference,
    "SubtractInt": lambda first, second: int(_difference(first, second)),
}


class GoTemplate:
    """A parsed template."""

    def __init__(self, text: str, *, where: str) -> None:
        self._where = where
        #: text and actions, alternating, starting with text
        self._pieces = _ACTION.split(text)

    @property
    def is_constant(self) -> bool:
        """Whether it is the same for all indexes."""
        return len(self._pieces) == 1

    def render(self, fields: Mapping[str, Value]) -> str:
        """Fill in the fields."""
        filled = list(self._pieces)
        for place in range(1, len(filled), 2):
            filled[place] = _text(self._evaluate(filled[place], fields))
        return "".join(filled)

    def _evaluate(self, action: str, fields: Mapping[str, Value]) -> Value:
        try:
            return _value(_tokens(action), fields)
        except (ConfigError, TypeError) as wrong:
            raise ConfigError(f"{self._where}: {{{{{action}}}}}: {wrong}") from None


def _text(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _tokens(action: str) -> list[str]:
    tokens, place = [], 0
    while place < len(action):
        found = _TOKEN.match(action, place)
        if not found:
            raise ConfigError(f"cannot be read at {action[place:]!r}")
        parenthesis, quoted, word = found.groups()
        tokens.append(parenthesis or word or f'"{quoted}')
        place = found.end()
    return tokens


def _value(tokens: list[str], fields: Mapping[str, Value]) -> Value:
    """Evaluate all tokens."""
    value = _call(tokens, fields)
    if tokens:
        raise ConfigError(f"there is more after its end: {tokens[0]}")
    return value


def _call(tokens: list[str], fields: Mapping[str, Value]) -> Value:
    """Evaluate a function with its arguments, or a single value."""
    if not tokens or tokens[0] == ")":
        raise ConfigError("a value is missing")
    name = tokens[0]
    if not name[0].isalpha():
        return _operand(tokens, fields)
    function = _FUNCTIONS.get(tokens.pop(0))
    if function is None:
        raise ConfigError(f"there is no function {name}; there are {', '.join(sorted(_FUNCTIONS))}")
    arguments = []
    while tokens and tokens[0] != ")":
        arguments.append(_operand(tokens, fields))
    return function(*arguments)


def _operand(tokens: list[str], fields: Mapping[str, Value]) -> Value:
    token = tokens.pop(0)
    if token == "(":  # noqa: S105  a parenthesis, not a secret
        value = _call(tokens, fields)
        if not tokens or tokens.pop(0) != ")":
            raise ConfigError("a parenthesis is not closed")
        return value
    if token.startswith('"'):
        return token[1:]
    if token.startswith("."):
        if token[1:] not in fields:
            raise ConfigError(f"there is no field {token}; there are .Index and .Count")
        return fields[token[1:]]
    try:
        return int(token)
    except ValueError:
        return _number(token)


class FileTemplate:
    """An object in a file; called with index and count."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._template = GoTemplate(_read(path), where=str(path))
        self._constant = self._decode(0, 1) if self._template.is_constant else None

    def __call__(self, index: int, count: int) -> JsonObject:
        """Create the object; a constant one is the same object each time."""
        return self._constant or self._decode(index, count)

    def __repr__(self) -> str:
        return f"FileTemplate({str(self._path)!r})"

    def _decode(self, index: int, count: int) -> JsonObject:
        text = self._template.render({"Index": index, "Count": count})
        try:
            # Derived from the safe loader, in C.
            decoded = yaml.load(text, Loader=_LOADER)  # noqa: S506
        except yaml.YAMLError as wrong:
            reason = untrusted_yaml.problem(wrong)
            raise ConfigError(f"{self._path}: this is not YAML: {reason}") from None
        if not isinstance(decoded, dict):
            raise ConfigError(f"{self._path}: this is not an object")
        lowered: JsonObject = _with_lower_first(decoded)
        return lowered


@cache
def file_template(path: Path) -> FileTemplate:
    """Read a template; cached."""
    return FileTemplate(path)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as wrong:
        raise ConfigError(f"{path}: this is not YAML: {wrong}") from None
    except OSError as failed:
        raise ConfigError(f"{path}: {failed.strerror}") from None


def _with_lower_first(value: Any) -> Any:  # noqa: ANN401  any part of an object
    """Lower-case field names as in the API: scheduler_perf's reader ignores case."""
    if isinstance(value, list):
        return [_with_lower_first(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        _lower_first(str(key)): inner if key in _DATA else _with_lower_first(inner)
        for key, inner in value.items()
    }


def _lower_first(name: str) -> str:
    return name[:1].lower() + name[1:]

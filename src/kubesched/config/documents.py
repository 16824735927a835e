"""Configuration text to a JSON tree, as Kubernetes' own libraries read it.

A text that starts with ``{`` is JSON, anything else is YAML. YAML is read by the rules of Go's
yaml.v2 (``on``, ``y`` and ``0x10`` mean something, ``1:30`` does not) and then becomes JSON: keys
become strings and get sorted, whole floats become integers. Strict decoding needs more than JSON
values have, so objects retain duplicate members and numbers retain their text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, Final

import msgspec
import yaml

from kubesched.config import untrusted_yaml
from kubesched.config.untrusted_yaml import MAX_DEPTH
from kubesched.errors import ConfigError

_STR: Final = "tag:yaml.org,2002:str"
_MERGE: Final = "tag:yaml.org,2002:merge"
#: The tag that our loader gives to a scalar that is neither quoted nor tagged.
_PLAIN: Final = "!plain"
_TAG_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "tag:yaml.org,2002:bool": (bool,),
    "tag:yaml.org,2002:int": (int,),
    "tag:yaml.org,2002:float": (int, float),
    "tag:yaml.org,2002:null": (type(None),),
}

_CONSTANTS: Final[dict[str, bool | float | None]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES"), True),
    **dict.fromkeys(("true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO"), False),
    **dict.fromkeys(("false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INT: Final = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<x>[0-9a-fA-F]+)|0[bB](?P<b>[01]+)|0[oO]?(?P<o>[0-7]+)"
    r"|(?P<d>0|[1-9][0-9]*))"
)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ][0-9:.+Z-]+)?")
#: Most digits of a 64-bit number, in any base.
_MAX_DIGITS: Final = 64
_BASES: Final = {"x": 16, "b": 2, "o": 8, "d": 10}
#: Limit of values, because aliases can make a small text huge.
_MAX_NODES: Final = 400_000


#: Any JSON value; of a tree, or of ordinary Python.
Json = Any


class Members(list[tuple[str, Json]]):
    """A JSON object as its members in order, duplicates included."""


class NumberText(str):
    """A JSON number that is not an integer, as it was written."""

    __slots__ = ()


class Document(msgspec.Struct, frozen=True):
    """A JSON tree, and the errors of strict YAML reading."""

    root: Json
    yaml_errors: tuple[str, ...] = ()


def parse(text: str) -> Document:
    """Read a JSON or YAML text; only the first document of a YAML stream counts."""
    if text.lstrip().startswith("{"):
        return Document(_parse_json(text))
    builder = _TreeBuilder()
    root = builder.build(_compose(text))
    return Document(root, tuple(builder.duplicates))


def plain(tree: object) -> Json:
    """Turn a tree into ordinary Python values; of duplicate members the last one counts."""
    if isinstance(tree, Members):
        return {key: plain(value) for key, value in tree}
    if isinstance(tree, list):
        return [plain(value) for value in tree]
    return float(tree) if isinstance(tree, NumberText) else tree


def tree(value: object) -> Json:
    """Turn ordinary Python values into a tree, the opposite of ``plain``."""
    if isinstance(value, dict):
        return Members((str(key), tree(item)) for key, item in sorted(value.items()))
    if isinstance(value, list | tuple):
        return [tree(item) for item in value]
    return _json_number(value) if isinstance(value, float) else value


def resolve(text: str) -> bool | int | float | str | None:
    """Return the value of an unquoted YAML scalar."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if not text or text[0] not in "+-.0123456789" or _DATE.fullmatch(text):
        return text
    digits = text.replace("_", "")
    whole = _INT.fullmatch(digits)
    if whole and whole.lastgroup is not None:
        base = _BASES[whole.lastgroup]
        significant = whole[whole.lastgroup].lstrip("0") or "0"
        if len(significant) <= _MAX_DIGITS:
            number = int(whole["sign"] + significant, base)
            if -(2**63) <= number < 2**64:
                return number
    if not _FLOAT.fullmatch(digits):
        return text
    # A number too large for a float stays text, as in Go.
    number_or_inf = float(digits)
    return number_or_inf if math.isfinite(number_or_inf) else text


def is_text(text: str) -> bool:
    """Return whether an unquoted YAML scalar is text, and not even a date."""
    return isinstance(resolve(text), str) and not _DATE.fullmatch(text)


def _parse_json(text: str) -> Json:
    problem = "couldn't get version/kind; json parse error:"
    try:
        root = json.loads(
            text,
            object_pairs_hook=Members,
            parse_float=NumberText,
            parse_constant=_refuse_constant,
        )
    except ValueError as error:
        raise ConfigError(f"{problem} {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{problem} nested more than {MAX_DEPTH} levels deep") from error
    level = [root]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for each in level if isinstance(each, list) for inner in _inside(each)]
        if not level:
            return root
    raise ConfigError(f"{problem} nested more than {MAX_DEPTH} levels deep")


def _inside(tree: list[Any]) -> list[Json]:
    return [value for _, value in tree] if isinstance(tree, Members) else tree


def _refuse_constant(name: str) -> None:
    raise ValueError(f"invalid character '{name[0]}' looking for beginning of value")


class _PlainScalarLoader(yaml.CSafeLoader):
    """A loader that does not resolve unquoted scalars: `resolve` does, by Go's rules."""

    yaml_implicit_resolvers = {None: [(_PLAIN, re.compile(""))]}  # noqa: RUF012 - PyYAML's way


def _compose(text: str) -> yaml.Node | None:
    try:
        untrusted_yaml.check_depth(text)
        loader = _PlainScalarLoader(text)
        return loader.get_node() if loader.check_node() else None
    except yaml.MarkedYAMLError as error:
        raise ConfigError(f"yaml: {_where(error)}{error.problem}") from error
    except UnicodeEncodeError as error:
        raise ConfigError(f"yaml: invalid Unicode character at {error.start}") from error
    except yaml.YAMLError as error:
        raise ConfigError(f"yaml: {untrusted_yaml.problem(error)}") from error


def _where(error: yaml.MarkedYAMLError) -> str:
    """Return the line as yaml.v2 counts it: from 1 in the scanner, from 0 in the parser."""
    line = error.problem_mark.line if error.problem_mark else 0
    if line:
        line += isinstance(error, yaml.scanner.ScannerError)
    elif error.context_mark:
        line = error.context_mark.line
    return f"line {line}: " if line else ""


def _where_is(node: yaml.Node) -> str:
    return f"line {node.start_mark.line + 1}: "


class _TreeBuilder:
    """Builds the JSON tree of a YAML node, collecting duplicate keys on the way."""

    def __init__(self) -> None:
        self.duplicates: list[str] = []
        self._built = 0
        self._open: set[int] = set()

    def build(self, node: yaml.Node | None) -> Json:
        if node is None:
            return None
        self._count()
        if isinstance(node, yaml.ScalarNode):
            return _json_number(_scalar(node))
        with self._inside(node):
            if isinstance(node, yaml.SequenceNode):
                return [self.build(item) for item in node.value]
            entries: dict[Any, Any] = {}
            self._fill(entries, node)
            members = [(_key_text(key), value) for key, value in entries.items()]
            return Members(sorted(members, key=itemgetter(0)))

    def _count(self) -> None:
        self._built += 1
        if self._built > _MAX_NODES:
            raise ConfigError("yaml: document contains excessive aliasing")

    @contextmanager
    def _inside(self, node: yaml.Node) -> Iterator[None]:
        """Track the collections being built, to find one within itself."""
        self._count()
        if id(node) in self._open:
            raise ConfigError("yaml: anchor value contains itself")
        if len(self._open) == MAX_DEPTH:
            raise ConfigError(f"yaml: {_where_is(node)}nested more than {MAX_DEPTH} levels deep")
        self._open.add(id(node))
        yield
        self._open.discard(id(node))

    def _fill(self, entries: dict[Any, Any], node: yaml.Node) -> None:
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise ConfigError("yaml: invalid map key: it has to be a scalar")
            if key_node.value == "<<" and key_node.tag in {_PLAIN, _MERGE}:
                self._merge(entries, value_node)
                continue
            key = _scalar(key_node)
            value = self.build(value_node)
            if key in entries:
                line = value_node.start_mark.line + 1
                self.duplicates.append(f"line {line}: key {_go_literal(key)} already set in map")
            entries[key] = value

    def _merge(self, entries: dict[Any, Any], node: yaml.Node) -> None:
        # Earlier maps of a list win, so the last one is written first.
        parts = reversed(node.value) if isinstance(node, yaml.SequenceNode) else (node,)
        for part in parts:
            if not isinstance(part, yaml.MappingNode):
                raise ConfigError("yaml: map merge requires map or sequence of maps as the value")
            with self._inside(part):
                self._fill(entries, part)


def _scalar(node: yaml.ScalarNode) -> bool | int | float | str | None:
    text: str = node.value
    if node.tag == _PLAIN:
        return resolve(text)
    wanted = _TAG_TYPES.get(node.tag)
    if wanted is None:
        return text
    value = resolve(text)
    if type(value) not in wanted:
        short = node.tag.replace("tag:yaml.org,2002:", "!!")
        raise ConfigError(f"yaml: cannot decode !!str `{text}` as a {short}")
    return value


def _json_number(value: object) -> object:
    if not isinstance(value, float):
        return value
    if not math.isfinite(value):
        raise ConfigError(f"json: unsupported value: {_go_literal(value)}")
    return int(value) if value.is_integer() and abs(value) < 1e21 else NumberText(_go_float(value))


def _key_text(key: object) -> str:
    match key:
        case bool():
            return "true" if key else "false"
        case float():
            return _go_float(key)
        case None:
            raise ConfigError("unsupported map key of type: %!s(<nil>), key: <nil>")
        case _:
            return str(key)


def _go_float(value: float) -> str:
    """Write a float as Go does: the same digits as Python, but no zeros in short exponents."""
    return re.sub(r"e([-+])0(\d)$", r"e\g<1>\2", repr(value)).removesuffix(".0")


def _go_literal(value: object) -> str:
    match value:
        case str():
            return json.dumps(value, ensure_ascii=False)
        case bool():
            return "true" if value else "false"
        case float() if math.isinf(value):
            return "+Inf" if value > 0 else "-Inf"
        case float() if math.isnan(value):
            return "NaN"
        case _:
            return str(value)

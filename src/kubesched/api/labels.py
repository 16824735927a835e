"""Label selectors, compiled once into values that compare, hash and match.

    "app=web,tier in (a,b),!old"  ── parse ──────────────────┐
    LabelSelector{matchLabels…}   ── from_label_selector ────┼──▶ Selector ── matches(labels)
    spec.nodeSelector             ── from_match_labels ──────┘
    NodeSelector{terms…}          ── node_selector_terms ───────▶ NodeTerm ── matches(labels, …)

A ``Selector`` is a conjunction of ``Requirement``s in canonical order, so equivalent selectors are
equal and share their counters. Malformed input raises ``SelectorError`` with Kubernetes' text. Node
selector terms are the exception: a malformed one matches no node, and its errors are kept for the
caller to report.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kubesched.api.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.api.meta import LabelSelector
from kubesched.errors import SelectorError

IN: Final = "In"
NOT_IN: Final = "NotIn"
EXISTS: Final = "Exists"
DOES_NOT_EXIST: Final = "DoesNotExist"
GREATER: Final = "Gt"
LESS: Final = "Lt"

LABEL_SELECTOR_OPERATORS: Final = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST)
NODE_SELECTOR_OPERATORS: Final = (*LABEL_SELECTOR_OPERATORS, GREATER, LESS)
FIELD_SELECTOR_OPERATORS: Final = (IN, NOT_IN)

_INT64_DIGITS: Final = 19
_SHOWN_LENGTH: Final = 256
_SHOWN_ERRORS: Final = 16


# --- requirements and selectors ---------------------------------------------------------------


class Requirement(msgspec.Struct, frozen=True, gc=False, order=True):
    """A condition on one label; ``values`` are sorted, without duplicates.

    The constructor does not check: an unknown operator, or Gt and Lt with anything but one integer,
    match nothing. ``Requirement.checked`` rejects them.
    """

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.values) > 1:
            msgspec.structs.force_setattr(self, "values", tuple(sorted(set(self.values))))

    @classmethod
    def checked(
        cls, key: str, operator: str, values: Sequence[str] = (), *, path: str = ""
    ) -> Requirement:
        """Build a requirement that Kubernetes would accept; raises SelectorError."""
        problems = requirement_errors(key, operator, values, path=path)
        if problems:
            raise SelectorError(_aggregate(problems))
        return cls(key, operator, tuple(values))

    def matches_value(self, value: str | None) -> bool:
        """Tell whether a label of this value, or None for no such label, matches."""
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return value is not None and self._ordered(value)
        return False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether the labels match."""
        return self.matches_value(labels.get(self.key))

    def _ordered(self, value: str) -> bool:
        if len(self.values) != 1:
            return False
        have, bound = parse_int64(value), parse_int64(self.values[0])
        if have is None or bound is None:
            return False
        return have > bound if self.operator == GREATER else have < bound

    def __str__(self) -> str:
        joined = ",".join(self.values)
        if self.operator == DOES_NOT_EXIST:
            return f"!{self.key}"
        if self.operator in (IN, NOT_IN) and len(self.values) > 1:
            return f"{self.key} {self.operator.lower()} ({joined})"
        return f"{self.key}{_SIGNS.get(self.operator, ' ? ')}{joined}"


_SIGNS: Final = {IN: "=", NOT_IN: "!=", GREATER: ">", LESS: "<", EXISTS: ""}


class Selector(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """A conjunction of requirements; ``Selector.of`` puts them in canonical order."""

    requirements: tuple[Requirement, ...] = ()
    #: matches no labels at all; then there are no requirements
    nothing: bool = False

    @classmethod
    def of(cls, requirements: Iterable[Requirement]) -> Selector:
        """Build the canonical selector with these requirements."""
        return cls(tuple(sorted(set(requirements))))

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether the labels match."""
        if self.nothing:
            return False
        for requirement in self.requirements:
            if not requirement.matches_value(labels.get(requirement.key)):
                return False
        return True

    def plus(self, *requirements: Requirement) -> Selector:
        """Return this selector with additional requirements; one that matches nothing stays so."""
        return self if self.nothing else Selector.of((*self.requirements, *requirements))

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING: Final = Selector()
NOTHING: Final = Selector(nothing=True)


def from_match_labels(match_labels: Mapping[str, str] | None) -> Selector:
    """Select by equality, unchecked, as ``spec.nodeSelector`` does; no labels select everything."""
    return Selector.of(
        Requirement(key, IN, (value,)) for key, value in (match_labels or {}).items()
    )


def from_label_selector(selector: LabelSelector | None) -> Selector:
    """Compile an API object's selector: None selects nothing, an empty one everything."""
    if selector is None:
        return NOTHING
    requirements = [
        Requirement.checked(key, IN, (value,))
        for key, value in (selector.match_labels or {}).items()
    ]
    for expression in selector.match_expressions:
        if expression.operator not in LABEL_SELECTOR_OPERATORS:
            raise SelectorError(
                f"{_quoted(expression.operator)} is not a valid label selector operator"
            )
        requirements.append(
            Requirement.checked(expression.key, expression.operator, expression.values)
        )
    return Selector.of(requirements)


def parse_int64(text: str) -> int | None:
    """Parse a decimal int64, or return None: no spaces, no underscores, ASCII digits only."""
    match = _INTEGER.fullmatch(text)
    if match is None or len(match[2]) > _INT64_DIGITS:
        return None
    number = int(match[1] + (match[2] or "0"))
    return number if -(2**63) <= number < 2**63 else None


_INTEGER: Final = re.compile(r"([+-]?)(?=[0-9])0*([0-9]*)")


# --- node selector terms ----------------------------------------------------------------------


class NodeTerm(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """One term of a node selector: a conjunction of conditions.

    A term with ``errors`` was malformed and matches no node.
    """

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    errors: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
        """Tell whether a node with these labels and fields (``metadata.name``) matches."""
        if self.errors:
            return False
        if not all(requirement.matches(labels) for requirement in self.labels):
            return False
        return not fields or all(
            requirement.matches_value(fields.get(requirement.key, ""))
            for requirement in self.fields
        )


def node_selector_terms(selector: NodeSelector, *, path: str = "") -> tuple[NodeTerm, ...]:
    """Compile the terms of a node selector; empty ones, which match no node, are left out."""
    terms_path = _child(path, "nodeSelectorTerms")
    return tuple(
        node_term(term, path=f"{terms_path}[{index}]")
        for index, term in enumerate(selector.node_selector_terms)
        if term.match_expressions or term.match_fields
    )


def node_term(term: NodeSelectorTerm, *, path: str = "") -> NodeTerm:
    """Compile one term, which must not be empty; malformed parts are listed in its ``errors``."""
    errors: list[str] = []
    for index, expression in enumerate(term.match_expressions):
        at = f"{_child(path, 'matchExpressions')}[{index}]"
        errors += _node_requirement_errors(expression, at)
    for index, expression in enumerate(term.match_fields):
        at = f"{_child(path, 'matchFields')}[{index}]"
        errors += _field_requirement_errors(expression, at)
    if errors:
        return NodeTerm(errors=tuple(errors))
    return NodeTerm(_requirements(term.match_expressions), _requirements(term.match_fields))


def _requirements(expressions: Iterable[NodeSelectorRequirement]) -> tuple[Requirement, ...]:
    return tuple(sorted({Requirement(e.key, e.operator, e.values) for e in expressions}))


def _node_requirement_errors(expression: NodeSelectorRequirement, path: str) -> list[str]:
    if expression.operator not in NODE_SELECTOR_OPERATORS:
        return [_unsupported(path, expression.operator, NODE_SELECTOR_OPERATORS)]
    return requirement_errors(expression.key, expression.operator, expression.values, path=path)


def _field_requirement_errors(expression: NodeSelectorRequirement, path: str) -> list[str]:
    if expression.operator not in FIELD_SELECTOR_OPERATORS:
        return [_unsupported(path, expression.operator, FIELD_SELECTOR_OPERATORS)]
    if len(expression.values) != 1:
        return [_invalid(_child(path, "values"), expression.values, "must have one element")]
    return []


# --- validation ------------------------------------------------------------------------------


def requirement_errors(
    key: str, operator: str, values: Sequence[str], *, path: str = ""
) -> list[str]:
    """Return what Kubernetes would reject in a requirement, with the field of each error."""
    errors = []
    if problems := label_key_errors(key):
        errors.append(_invalid(_child(path, "key"), key, "; ".join(problems)))
    values_path = _child(path, "values")
    if operator in (GREATER, LESS):
        errors += _ordering_errors(values, values_path)
    elif operator not in LABEL_SELECTOR_OPERATORS:
        errors.append(_unsupported(path, operator, NODE_SELECTOR_OPERATORS))
    elif (operator in (IN, NOT_IN)) != bool(values):
        errors.append(_invalid(values_path, values, _WRONG_NUMBER_OF_VALUES[operator]))
    for index, value in enumerate(values):
        if problems := label_value_errors(value):
            errors.append(_invalid(f"{values_path}[{index}][{key}]", value, "; ".join(problems)))
    return errors


_NEED_VALUES: Final = "for 'in', 'notin' operators, values set can't be empty"
_NEED_NO_VALUES: Final = "values set must be empty for exists and does not exist"
_WRONG_NUMBER_OF_VALUES: Final = {
    IN: _NEED_VALUES,
    NOT_IN: _NEED_VALUES,
    EXISTS: _NEED_NO_VALUES,
    DOES_NOT_EXIST: _NEED_NO_VALUES,
}


def _ordering_errors(values: Sequence[str], path: str) -> list[str]:
    prefix = "for 'Gt', 'Lt' operators,"
    errors = []
    if len(values) != 1:
        errors.append(_invalid(path, values, f"{prefix} exactly one value is required"))
    errors += [
        _invalid(f"{path}[{index}]", value, f"{prefix} the value must be an integer")
        for index, value in enumerate(values)
        if parse_int64(value) is None
    ]
    return errors


_NAME_FORMAT: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_FORMAT: Final = f"({_NAME_FORMAT})?"
_DNS_LABEL_FORMAT: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_FORMAT: Final = rf"{_DNS_LABEL_FORMAT}(\.{_DNS_LABEL_FORMAT})*"
_NAME: Final = re.compile(_NAME_FORMAT)
_VALUE: Final = re.compile(_VALUE_FORMAT)
_SUBDOMAIN: Final = re.compile(_SUBDOMAIN_FORMAT)
_NAME_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    f"regex used for validation is '{_NAME_FORMAT}')"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    f"or '12345', regex used for validation is '{_VALUE_FORMAT}')"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    f"for validation is '{_SUBDOMAIN_FORMAT}')"
)


def label_key_errors(key: str) -> list[str]:
    """Return why a text is not a label key; resource names follow the same rule."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        rest = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_NAME_RULE} {rest}"]
    errors = []
    if slash and not prefix:
        errors.append("prefix part must be non-empty")
    elif slash:
        errors += [f"prefix part {problem}" for problem in _too_long(prefix, 253)]
        if _SUBDOMAIN.fullmatch(prefix) is None:
            errors.append(f"prefix part {_SUBDOMAIN_RULE}")
    errors += [f"name part {problem}" for problem in _too_long(name, 63)]
    if not name:
        errors.append("name part must be non-empty")
    if _NAME.fullmatch(name) is None:
        errors.append(f"name part {_NAME_RULE}")
    return errors


def label_value_errors(value: str) -> list[str]:
    """Return why a text is not a label value."""
    errors = _too_long(value, 63)
    if _VALUE.fullmatch(value) is None:
        errors.append(_VALUE_RULE)
    return errors


def _too_long(text: str, limit: int) -> list[str]:
    return (
        [f"must be no more than {limit} bytes"]
        if len(text.encode(errors="surrogatepass")) > limit
        else []
    )


def _invalid(path: str, bad: str | Sequence[str], detail: str) -> str:
    return f"{path}: Invalid value: {_quoted(bad)}: {detail}"


def _unsupported(path: str, operator: str, supported: Sequence[str]) -> str:
    listed = ", ".join(f'"{name}"' for name in supported)
    at = _child(path, "operator")
    return f"{at}: Unsupported value: {_quoted(operator)}: supported values: {listed}"


def _quoted(bad: str | Sequence[str]) -> str:
    """Quote a rejected value, truncated, on one line; an absent list is null, as on the wire."""
    if not isinstance(bad, str):
        return _cut(json.dumps(bad, separators=(",", ":"))) if bad else "null"
    bad = _cut(bad)
    return json.dumps(bad, ensure_ascii=not bad.isprintable())


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_LENGTH else text[:_SHOWN_LENGTH] + "…"


def _child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _aggregate(errors: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(errors))
    if len(distinct) > _SHOWN_ERRORS:
        distinct[_SHOWN_ERRORS:] = [f"… and {len(distinct) - _SHOWN_ERRORS} more"]
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


# --- the text form ----------------------------------------------------------------------------

_TOKEN: Final = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^=!(),<> \t\r\n]+|\Z)")
_SYMBOLS: Final = frozenset({"", "==", "!=", "=", "!", "(", ")", ",", "<", ">"})
_END: Final = ""
_OPERATORS: Final = {
    "in": IN,
    "notin": NOT_IN,
    "=": IN,
    "==": IN,
    "!=": NOT_IN,
    ">": GREATER,
    "<": LESS,
}


def parse(text: str) -> Selector:
    """Compile the text form, as in ``?labelSelector=``: ``a=b,c!=d,e in (x,y),!f,g>1,h``."""
    return Selector.of(_SelectorParser(text).requirements())


class _SelectorParser:
    """A recursive descent parser with one token of lookahead."""

    def __init__(self, text: str) -> None:
        self._tokens = [match[1] for match in _TOKEN.finditer(text)]
        self._position = 0

    def requirements(self) -> Iterator[Requirement]:
        if self._next == _END:
            return
        while True:
            if self._next != "!" and not self._at_identifier:
                raise _unexpected(self._next, ", expected: !, identifier, or 'end of string'")
            try:
                yield self._requirement()
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            word = self._take()
            if word == _END:
                return
            if word != ",":
                raise _unexpected(word, ", expected: ',' or 'end of string'")
            if self._next != "!" and not self._at_identifier:
                raise _unexpected(self._next, ", expected: identifier after ','")

    def _requirement(self) -> Requirement:
        absent = self._next == "!"
        if absent:
            self._take()
        key = self._take()
        if key in _SYMBOLS:
            raise _unexpected(key, ", expected: identifier")
        if problems := label_key_errors(key):
            raise SelectorError(_invalid("<nil>", key, "; ".join(problems)))
        if absent:
            return Requirement(key, DOES_NOT_EXIST)
        if self._next in (_END, ","):
            return Requirement(key, EXISTS)
        word = self._take()
        if word not in _OPERATORS:
            raise _unexpected(word, ", expected: in, notin, =, ==, !=, gt, lt")
        values = self._value_set() if word in ("in", "notin") else (self._exact_value(),)
        return Requirement.checked(key, _OPERATORS[word], values)

    def _exact_value(self) -> str:
        if self._next in (_END, ","):
            return ""
        word = self._take()
        if word in _SYMBOLS:
            raise _unexpected(word, ", expected: identifier")
        return word

    def _value_set(self) -> tuple[str, ...]:
        word = self._take()
        if word != "(":
            raise _unexpected(word, " expected: '('")
        if self._next not in (",", ")") and not self._at_identifier:
            raise _unexpected(self._next, ", expected: ',', ')' or identifier")
        values: set[str] = set()
        while True:
            # A missing value, before, between or after commas, is the empty value.
            if self._at_identifier:
                values.add(self._take())
                if self._next not in (",", ")"):
                    raise _unexpected(self._next, ", expected: ',' or ')'")
            elif self._next in (",", ")"):
                values.add("")
            else:
                raise _unexpected(self._next, ", expected: ',', or identifier")
            if self._take() == ")":
                return tuple(sorted(values))

    @property
    def _next(self) -> str:
        return self._tokens[self._position]

    @property
    def _at_identifier(self) -> bool:
        return self._next not in _SYMBOLS

    def _take(self) -> str:
        word = self._next
        self._position += 1
        return word


def _unexpected(word: str, expected: str) -> SelectorError:
    return SelectorError(f"found '{_cut(word)}'{expected}")

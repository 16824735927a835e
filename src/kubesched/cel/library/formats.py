"""Named formats of Kubernetes: ``format.dns1123Label().validate(name)``."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import ClassVar, Final

from kubesched.cel.functions import Function, Overload, member
from kubesched.cel.library.urls import request_uri_problem
from kubesched.cel.regex import compile_regex
from kubesched.cel.types import FORMAT, STRING, Type, list_of, optional_of
from kubesched.cel.values import NO_SUCH_OVERLOAD, NONE, Object, Optional, Value

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_UUID: Final = re.compile(
    r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE | re.ASCII
)
_BASE64: Final = re.compile(
    r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
)
_TIME: Final = re.compile(
    r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))"
)
_KEY_TEXT: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character"
)
_EDGES: Final = "and must start and end with an alphanumeric character"


def _wrong(message: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{message} (e.g. {shown}regex used for validation is '{pattern}')"


def _too_long(text: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} bytes"] if len(text.encode()) > limit else []


def _fits(pattern: str, text: str) -> bool:
    """Whether all of a text has the pattern; a text of any length takes linear time."""
    return compile_regex(f"^(?:{pattern})$").matches(text)


def _label(text: str) -> list[str]:
    problems = _too_long(text, 63)
    if not _fits(_LABEL, text):
        if _fits(_SUBDOMAIN, text):
            problems.append("must not contain dots")
        else:
            message = (
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters "
                f"or '-', {_EDGES}"
            )
            problems.append(_wrong(message, _LABEL, "my-name", "123-abc"))
    return problems


def _subdomain(text: str) -> list[str]:
    problems = _too_long(text, 253)
    if not _fits(_SUBDOMAIN, text):
        message = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
            f"'-' or '.', {_EDGES}"
        )
        problems.append(_wrong(message, _SUBDOMAIN, "example.com"))
    return problems


def _label_1035(text: str) -> list[str]:
    problems = _too_long(text, 63)
    if not _fits(_LABEL_1035, text):
        message = (
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start "
            "with an alphabetic character, and end with an alphanumeric character"
        )
        problems.append(_wrong(message, _LABEL_1035, "my-name", "abc-123"))
    return problems


def _prefix(validate: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Names that something will be appended to, so that they may end in a dash."""

    def masked(text: str) -> list[str]:
        return validate(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)

    return masked


def _qualified_name(text: str) -> list[str]:
    parts = text.split("/")
    examples = ("MyName", "my.name", "123-abc")
    if len(parts) > 2:
        return [
            f"a valid label key {_wrong(_KEY_TEXT, _KEY, *examples)} with an optional DNS "
            "subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    problems: list[str] = []
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        else:
            problems += [f"prefix part {problem}" for problem in _subdomain(parts[0])]
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    problems += [f"name part {problem}" for problem in _too_long(name, 63)]
    if not _fits(_KEY, name):
        problems.append(f"name part {_wrong(_KEY_TEXT, _KEY, *examples)}")
    return problems


def _label_value(text: str) -> list[str]:
    problems = _too_long(text, 63)
    if not _fits(f"({_KEY})?", text):
        message = f"a valid label must be an empty string or {_KEY_TEXT.removeprefix('must ')}"
        problems.append(_wrong(message, f"({_KEY})?", "MyValue", "my_value", "12345"))
    return problems


def _uri(text: str) -> list[str]:
    problem = request_uri_problem(text)
    return [] if problem is None else [problem]


def _uuid(text: str) -> list[str]:
    return [] if _UUID.fullmatch(text) else ["does not match the UUID format"]


def _byte(text: str) -> list[str]:
    return [] if _BASE64.fullmatch(text) else ["invalid base64"]


def _date(text: str) -> list[str]:
    return [] if _is_date(text) else ["invalid date"]


def _datetime(text: str) -> list[str]:
    day, separator, rest = text.lower().partition("t")
    time, _, _ = rest.partition("t")
    match = _TIME.fullmatch(time)
    is_time = match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"
    return [] if separator and is_time and _is_date(day) else ["invalid datetime"]


def _is_date(text: str) -> bool:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    year, month, day = map(int, text.split("-"))
    try:
        date(year or 400, month, day)
    except ValueError:
        return False
    return True


class Format(Object):
    """A format; ``cost_size`` stands for the size of its pattern where costs are computed."""

    __slots__ = ("cost_size", "name", "validate")
    type: ClassVar[Type] = FORMAT

    def __init__(self, name: str, validate: Callable[[str], list[str]], cost_size: int) -> None:
        self.name = name
        self.validate = validate
        self.cost_size = cost_size

    def equals(self, other: Value) -> Value:
        """Whether both are the same format."""
        return self.name == other.name if isinstance(other, Format) else NO_SUCH_OVERLOAD


_FORMATS: Final = {
    "dns1123Label": Format("DNS1123Label", _label, 30),
    "dns1123Subdomain": Format("DNS1123Subdomain", _subdomain, 60),
    "dns1035Label": Format("DNS1035Label", _label_1035, 30),
    "qualifiedName": Format("QualifiedName", _qualified_name, 60),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", _prefix(_label), 30),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", _prefix(_subdomain), 60),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", _prefix(_label_1035), 30),
    "labelValue": Format("LabelValue", _label_value, 40),
    "uri": Format("URI", _uri, 1103),
    "uuid": Format("uuid", _uuid, 70),
    "byte": Format("byte", _byte, 84),
    "date": Format("date", _date, 71),
    "datetime": Format("datetime", _datetime, 71),
}


def _validated(format_: Format, text: str) -> Value:
    problems = format_.validate(text)
    return Optional(problems) if problems else NONE


def _named(name: str) -> Value:
    return Optional(_FORMATS[name]) if name in _FORMATS else NONE


def _constant(format_: Format) -> Callable[[], Value]:
    return lambda: format_


FUNCTIONS: Final = [
    Function(
        "validate",
        (member("format-validate", (FORMAT, STRING), optional_of(list_of(STRING)), _validated),),
    ),
    Function(
        "format.named", (Overload("format-named", (STRING,), optional_of(FORMAT), _named),)
    ),
    *(
        Function(f"format.{name}", (Overload(f"format.{name}", (), FORMAT, _constant(format_)),))
        for name, format_ in _FORMATS.items()
    ),
]

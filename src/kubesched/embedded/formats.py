"""Formats of names, labels and keys, with kube-apiserver's messages.

Each function returns the errors of a text, none if it is valid. Results are cached: ten thousand
pods have few distinct label keys.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_NAME: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE: Final = f"({_NAME})?"

_LABEL_PATTERN: Final = re.compile(_LABEL)
_SUBDOMAIN_PATTERN: Final = re.compile(_SUBDOMAIN)
_NAME_PATTERN: Final = re.compile(_NAME)
_LABEL_VALUE_PATTERN: Final = re.compile(_LABEL_VALUE)

_LABEL_LENGTH: Final = 63
_SUBDOMAIN_LENGTH: Final = 253
_CACHE_SIZE: Final = 16384

Complaints = tuple[str, ...]


def _regex(rule: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


def _at_most(length: int) -> str:
    return f"must be no more than {length} bytes"


_LABEL_RULE: Final = _regex(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_RULE: Final = _regex(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character",
    _SUBDOMAIN,
    "example.com",
)
_NAME_RULE: Final = _regex(
    "name part must consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character",
    _NAME,
    "MyName",
    "my.name",
    "123-abc",
)
_LABEL_VALUE_RULE: Final = _regex(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character",
    _LABEL_VALUE,
    "MyValue",
    "my_value",
    "12345",
)
_QUALIFIED_RULE: Final = (
    "a valid label key "
    + _regex(
        "must consist of alphanumeric characters, '-', '_' or '.', "
        "and must start and end with an alphanumeric character",
        _NAME,
        "MyName",
        "my.name",
        "123-abc",
    )
    + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)


@lru_cache(maxsize=_CACHE_SIZE)
def dns_label(text: str) -> Complaints:
    """Check the name of a container, a namespace, a port."""
    found: list[str] = []
    if len(text) > _LABEL_LENGTH:
        found.append(_at_most(_LABEL_LENGTH))
    if not _LABEL_PATTERN.fullmatch(text):
        if _SUBDOMAIN_PATTERN.fullmatch(text):
            found.append("must not contain dots")
        else:
            found.append(_LABEL_RULE)
    return tuple(found)


def dns_subdomain(text: str) -> Complaints:
    """Check the name of most objects. Not cached: names are many, and each is seen once."""
    if len(text) <= _SUBDOMAIN_LENGTH and _SUBDOMAIN_PATTERN.fullmatch(text):
        return ()
    found: list[str] = []
    if len(text) > _SUBDOMAIN_LENGTH:
        found.append(_at_most(_SUBDOMAIN_LENGTH))
    if not _SUBDOMAIN_PATTERN.fullmatch(text):
        found.append(_SUBDOMAIN_RULE)
    return tuple(found)


@lru_cache(maxsize=_CACHE_SIZE)
def qualified_name(text: str) -> Complaints:
    """Check a label key, an annotation key, a finalizer, a scheduling gate."""
    parts = text.split("/")
    found: list[str] = []
    if len(parts) > 2:
        return (_QUALIFIED_RULE,)
    if len(parts) == 2:
        prefix = parts[0]
        if not prefix:
            found.append("prefix part must be non-empty")
        else:
            found += [f"prefix part {complaint}" for complaint in dns_subdomain(prefix)]
    name = parts[-1]
    if not name:
        found.append("name part must be non-empty")
    elif len(name) > _LABEL_LENGTH:
        found.append(f"name part {_at_most(_LABEL_LENGTH)}")
    if not _NAME_PATTERN.fullmatch(name):
        found.append(_NAME_RULE)
    return tuple(found)


@lru_cache(maxsize=_CACHE_SIZE)
def label_value(text: str) -> Complaints:
    """Check the value of a label."""
    found: list[str] = []
    if len(text) > _LABEL_LENGTH:
        found.append(_at_most(_LABEL_LENGTH))
    if not _LABEL_VALUE_PATTERN.fullmatch(text):
        found.append(_LABEL_VALUE_RULE)
    return tuple(found)

"""Content negotiation: matches an ``Accept`` header with the available media types.

"application/json;v=v1beta1;g=config.k8s.io;as=Statusz, text/plain;q=0.5"
    ──> clauses, best first ──> the first offer that a clause matches and a rule allows
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

JSON = "application/json"
YAML = "application/yaml"
TEXT = "text/plain"
CBOR = "application/cbor"

#: Parameters that request an object of a certain kind.
_CONVERSION = ("g", "v", "as")


class Target(NamedTuple):
    """The requested kind of object."""

    group: str
    version: str
    kind: str


class MediaChoice(NamedTuple):
    """A media type, and the kind of object if requested."""

    media_type: str
    target: Target | None = None


class _Clause(NamedTuple):
    main: str
    sub: str
    quality: float
    parameters: Mapping[str, str]


def negotiate(
    header: str,
    offers: Sequence[str],
    *,
    allows: Callable[[MediaChoice], bool] = lambda choice: choice.target is None,
) -> MediaChoice | None:
    """Return the best offer, the first one if there is no preference, None if there is none."""
    if not header.strip():
        return MediaChoice(offers[0])
    for clause in _clauses(header):
        for offer in offers:
            choice = MediaChoice(offer, _target(clause.parameters))
            if _matches(clause, offer) and allows(choice):
                return choice
    return None


def _clauses(header: str) -> list[_Clause]:
    clauses = [_clause(part) for part in header.split(",") if part.strip()]
    return sorted(clauses, key=lambda each: (-each.quality, each.main == "*", each.sub == "*"))


def _clause(text: str) -> _Clause:
    media_type, *rest = (piece.strip() for piece in text.split(";"))
    pairs = (piece.partition("=") for piece in rest)
    parameters = {name.strip().lower(): value.strip() for name, _, value in pairs}
    main, _, sub = media_type.partition("/")
    try:
        quality = float(parameters.pop("q", "1"))
    except ValueError:
        quality = 1.0
    return _Clause(main, sub or "*", quality, parameters)


def _matches(clause: _Clause, offer: str) -> bool:
    main, _, sub = offer.partition("/")
    return clause.main in (main, "*") and clause.sub in (sub, "*")


def _target(parameters: Mapping[str, str]) -> Target | None:
    if not any(name in parameters for name in _CONVERSION):
        return None
    return Target(*(parameters.get(name, "") for name in _CONVERSION))

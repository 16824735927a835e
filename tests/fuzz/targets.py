"""All targets, those of the most exposed inputs first."""

from __future__ import annotations

from importlib import import_module

from .target import FuzzTarget

_MODULES = (
    "http_requests",
    "extender_answers",
    "http_answers",
    "watches",
    "expressions",
    "quantities",
    "selectors",
)


def all_targets() -> dict[str, FuzzTarget]:
    """Return the targets by name; imports what they test, which atheris then instruments."""
    found: dict[str, FuzzTarget] = {}
    for name in _MODULES:
        for target in import_module(f"tests.fuzz.{name}").TARGETS:
            assert target.name not in found, target.name
            found[target.name] = target
    return found

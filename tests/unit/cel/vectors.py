"""Answers of Kubernetes' own CEL environment, and devices for tests.

``expressions.jsonl`` was written by hand to reach every function and every error,
``random_expressions.jsonl`` was drawn at random. Both say what
k8s.io/dynamic-resource-allocation/cel v0.37.1 answers for the three devices of their first line: a
value or an error for each, and what the evaluation cost. Or why the expression does not compile.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from kubesched.cel import CelDevice
from kubesched.cel.library import quantities, semvers
from kubesched.cel.values import Value

FOLDER = Path(__file__).parent


class Vector(NamedTuple):
    """An expression, and what upstream says of it."""

    expression: str
    #: the error of compilation
    refused: str | None
    #: for each device, a bool or an error
    answers: list[bool | str]
    #: None where the evaluation ended early
    costs: list[int] | None


def read(name: str) -> tuple[list[CelDevice], list[Vector]]:
    """Return the devices and the vectors of a file."""
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    devices = [device_of(spec) for spec in json.loads(lines[0])["devices"]]
    vectors = []
    for line in lines[1:]:
        entry = json.loads(line)
        vectors.append(
            Vector(
                entry["expression"],
                entry.get("refused"),
                entry.get("answers", []),
                entry.get("costs"),
            )
        )
    return devices, vectors


def device_of(spec: dict[str, Any]) -> CelDevice:
    """Return the device of a ResourceSlice's JSON."""
    return CelDevice(
        spec["driver"],
        {name: attribute_of(value) for name, value in spec.get("attributes", {}).items()},
        {name: quantity(value["value"]) for name, value in spec.get("capacity", {}).items()},
        allow_multiple_allocations=spec.get("allowMultipleAllocations", False),
    )


def attribute_of(spec: dict[str, Any]) -> Value:
    ((kind, value),) = spec.items()
    if kind == "version":
        return semvers.parse(value)
    return [semvers.parse(text) for text in value] if kind == "versions" else value


def quantity(text: str) -> quantities.Quantity:
    parsed = quantities.parse(text)
    assert isinstance(parsed, quantities.Quantity)
    return parsed

"""Reads conformance cases: one gzip-compressed file of JSON lines a theme."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

Json = Any

VECTORS = Path(__file__).parent / "vectors"


class Vector(msgspec.Struct):
    """A cluster with a pod, and what kube-scheduler answered."""

    case: dict[str, Json]
    expect: dict[str, Json]

    @property
    def name(self) -> str:
        return str(self.case["id"])


def themes(folder: Path = VECTORS) -> list[str]:
    """Name the themes that a folder has."""
    return sorted(path.name.removesuffix(".jsonl.gz") for path in folder.glob("*.jsonl.gz"))


def read(theme: str, folder: Path = VECTORS) -> Iterator[Vector]:
    """Read all cases of a theme."""
    decoder = msgspec.json.Decoder(Vector)
    with gzip.open(folder / f"{theme}.jsonl.gz") as lines:
        for line in lines:
            yield decoder.decode(line)

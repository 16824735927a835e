"""Reads conformance cases: one gzip-compressed file of JSON lines a theme."""

from __future__ import annotations

import gzip
import json
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


#: Themes of which every plugin is built.
COMPLETE = [
    "affinity",
    "edge",
    "images",
    "podaffinity",
    "ports",
    "resources",
    "spread",
    "taints",
    "volumes",
]
#: What only plugins read that are not built yet.
DEVICES_AND_GROUPS = {"deviceClasses", "podGroups", "resourceClaims", "resourceSlices"}


def is_built(vector: Vector) -> bool:
    """Tell whether a case has neither device claims nor pod groups."""
    objects = vector.case["objects"]
    if any(objects.get(kind) for kind in DEVICES_AND_GROUPS):
        return False
    pods = json.dumps([vector.case.get("pod"), vector.case.get("pending"), objects.get("pods")])
    return '"resourceClaims"' not in pods

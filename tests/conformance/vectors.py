"""Reads conformance cases: one gzip-compressed file of JSON lines a theme."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from kubesched.kinds import KINDS

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


#: What FORMAT.md and FORMAT-podgroups.md say that a case and an expected answer may have.
CASE_FIELDS: Final = frozenset(
    {
        "id",
        "tags",
        "config",
        "featureGates",
        "objects",
        "pod",
        "pending",
        "preemption",
        "queue",
    }
)
EXPECTED_FIELDS: Final = frozenset(
    {
        "id",
        "nodeOrder",
        "preenqueue",
        "prefilter",
        "filter",
        "feasible",
        "nominatedFits",
        "raw",
        "scores",
        "total",
        "best",
        "fitError",
        "scheduleError",
        "postfilter",
        "results",
        "attempts",
        "gated",
        "placed",
    }
)
#: Lists are called after resources, but in camel case.
LISTS: Final = frozenset(kind.path.plural for kind in KINDS.values())


def unknown_fields(vector: Vector) -> list[str]:
    """Name what a case has that is read by none of us: it cannot be judged."""
    return [
        *(f"case.{name}" for name in vector.case if name not in CASE_FIELDS),
        *(
            f"case.objects.{name}"
            for name, objects in vector.case.get("objects", {}).items()
            if objects and name.lower() not in LISTS
        ),
        *(f"expect.{name}" for name in vector.expect if name not in EXPECTED_FIELDS),
    ]


#: Themes of which every case must match.
COMPLETE: Final = (
    "affinity",
    "edge",
    "images",
    "podaffinity",
    "ports",
    "preemption",
    "resources",
    "spread",
    "taints",
    "volumes",
)
#: Themes of which every case without devices and pod groups must match.
WITHOUT_DEVICES_AND_GROUPS: Final = ("config", "mixed", "sequence")
#: Themes that are about what is not built yet, with the reason.
NOT_BUILT: Final = {
    "dra": "DynamicResources allocates no devices yet",
    "podgroups": "there is no group cycle yet",
}
#: What only plugins read that are not built yet.
DEVICES_AND_GROUPS: Final = frozenset(
    {"deviceClasses", "deviceTaintRules", "podGroups", "resourceClaims", "resourceSlices"}
)


def is_built(vector: Vector) -> bool:
    """Tell whether a case has neither device claims nor pod groups."""
    objects = vector.case["objects"]
    if any(objects.get(kind) for kind in DEVICES_AND_GROUPS):
        return False
    pods = json.dumps([vector.case.get("pod"), vector.case.get("pending"), objects.get("pods")])
    return '"resourceClaims"' not in pods

"""Reads conformance cases: one gzip-compressed file of JSON lines a theme."""

from __future__ import annotations

import gzip
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
    "dra",
    "edge",
    "images",
    "mixed",
    "podaffinity",
    "ports",
    "preemption",
    "resources",
    "sequence",
    "spread",
    "taints",
    "volumes",
)
#: Themes of which every case without pod groups must match.
WITHOUT_GROUPS: Final = ("config",)
#: Themes that are about what is not built yet, with the reason.
NOT_BUILT: Final = {
    "podgroups": "there is no group cycle yet",
}


def is_built(vector: Vector) -> bool:
    """Tell whether a case has no pod groups."""
    return not vector.case["objects"].get("podGroups")

"""The objects of a snapshot, by kind, and notes about skipped ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field

from kubesched.api.core import Node, Pod
from kubesched.api.resource import ResourceClaimTemplate
from kubesched.api.scheduling import PriorityClass
from kubesched.kinds import KINDS


class Snapshot(Struct):
    """A cluster's objects at one moment."""

    #: name of the source, for messages
    source: str
    #: kind → objects
    objects: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in KINDS})
    #: notes about missing or skipped objects, one line each
    notes: list[str] = field(default_factory=list)

    @property
    def nodes(self) -> list[Node]:
        """All nodes."""
        return self.objects["Node"]

    @property
    def pods(self) -> list[Pod]:
        """All pods, terminated ones included."""
        return self.objects["Pod"]

    @property
    def priority_classes(self) -> list[PriorityClass]:
        """All priority classes."""
        return self.objects["PriorityClass"]

    @property
    def claim_templates(self) -> list[ResourceClaimTemplate]:
        """All templates of claims to devices."""
        return self.objects["ResourceClaimTemplate"]

    def add(self, kind: str, obj: Any) -> None:  # noqa: ANN401 (of the kind's type)
        """Add an object."""
        self.objects[kind].append(obj)

    def counts(self) -> Iterator[tuple[str, int]]:
        """Yield the number of objects of each kind, without empty kinds."""
        for name, objects in self.objects.items():
            if objects:
                yield name, len(objects)

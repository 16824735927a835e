"""The objects of a snapshot, by kind, and what had to be left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field

from kubesched.api.core import Node, Pod
from kubesched.api.scheduling import PriorityClass
from kubesched.kinds import KINDS


class Snapshot(Struct):
    """A cluster's objects at one moment."""

    #: where they come from, as messages call it
    source: str
    #: name of the kind → objects
    objects: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in KINDS})
    #: what is missing or was left out, one line each
    notes: list[str] = field(default_factory=list)

    @property
    def nodes(self) -> list[Node]:
        """All nodes."""
        return self.objects["Node"]

    @property
    def pods(self) -> list[Pod]:
        """All pods, those that are over included."""
        return self.objects["Pod"]

    @property
    def priority_classes(self) -> list[PriorityClass]:
        """All priority classes."""
        return self.objects["PriorityClass"]

    def add(self, kind: str, obj: Any) -> None:  # noqa: ANN401 (of the kind's type)
        """Take an object in."""
        self.objects[kind].append(obj)

    def counts(self) -> Iterator[tuple[str, int]]:
        """Return how many objects of each kind there are, kinds without any left out."""
        for name, objects in self.objects.items():
            if objects:
                yield name, len(objects)

"""Which nodes have which container images, and how large they are."""

from __future__ import annotations

import numpy as np

from kubesched.api.core import Node
from kubesched.cluster.arrays import IndexArray


class ImageState:
    """One image name, cluster-wide."""

    __slots__ = ("_rows_array", "rows", "size_bytes", "spread")

    def __init__(self, size_bytes: int) -> None:
        #: as reported by the first node that has it
        self.size_bytes = size_bytes
        self.rows: set[int] = set()
        #: the size, and the number of nodes that have it
        self.spread = (size_bytes, 0)
        self._rows_array: IndexArray | None = None

    def add(self, row: int) -> None:
        """Record that the node at `row` has the image."""
        self.rows.add(row)
        self._changed()

    def discard(self, row: int) -> None:
        """Record that the node at `row` no longer has the image."""
        self.rows.discard(row)
        self._changed()

    def resize(self, size_bytes: int) -> None:
        """Update the size."""
        self.size_bytes = size_bytes
        self._changed()

    def _changed(self) -> None:
        self.spread = self.size_bytes, len(self.rows)
        self._rows_array = None

    def rows_array(self) -> IndexArray:
        """Return the rows that have the image."""
        if self._rows_array is None:
            self._rows_array = np.fromiter(self.rows, dtype=np.intp, count=len(self.rows))
        return self._rows_array


class Images:
    """All images of the cluster, by name."""

    def __init__(self) -> None:
        self._states: dict[str, ImageState] = {}

    def find(self, name: str) -> ImageState | None:
        """Return the state of an image, or None if no node has it."""
        return self._states.get(name)

    def replace(self, row: int, old: Node | None, new: Node | None) -> None:
        """Replace the images of `old` with those of `new` at `row`."""
        if old is not None and new is not None and old.status.images == new.status.images:
            self._resize_own(image_sizes(new))
            return
        before = image_sizes(old)
        after = image_sizes(new)
        # Remove all old ones first, so that an image only this node has gets its new size.
        for name in before:
            state = self._states[name]
            state.discard(row)
            if not state.rows:
                del self._states[name]
        for name, size_bytes in after.items():
            if name not in self._states:
                self._states[name] = ImageState(size_bytes)
            self._states[name].add(row)

    def _resize_own(self, sizes: dict[str, int]) -> None:
        """Update the sizes of images that no other node has."""
        for name, size_bytes in sizes.items():
            state = self._states[name]
            if len(state.rows) == 1:
                state.resize(size_bytes)


def image_sizes(node: Node | None) -> dict[str, int]:
    """Return the size of each image name that the node reports, the first one if it repeats."""
    sizes: dict[str, int] = {}
    if node is not None:
        for image in node.status.images:
            for name in image.names or ():
                sizes.setdefault(name, image.size_bytes)
    return sizes

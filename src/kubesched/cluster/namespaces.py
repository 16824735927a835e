"""Namespaces; affinity terms may select them by label."""

from __future__ import annotations

from kubesched.api.core import Namespace
from kubesched.cluster.object_store import HasMeta, NamedStore
from kubesched.cluster.term_counters import TermCounters


class Namespaces(NamedStore[Namespace]):
    """All namespaces; label changes are forwarded to the counters of affinity terms."""

    def __init__(self, term_counters: TermCounters) -> None:
        super().__init__()
        self._term_counters = term_counters

    def put(self, obj: Namespace) -> None:
        """Add or update a namespace."""
        self._term_counters.put_namespace(obj.metadata.name, obj.metadata.labels or {})
        super().put(obj)

    def remove(self, obj: HasMeta) -> None:
        """Remove a namespace."""
        self._term_counters.remove_namespace(obj.metadata.name)
        super().remove(obj)

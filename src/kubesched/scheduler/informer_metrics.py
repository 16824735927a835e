"""Metrics of the scheduler's informers, under the name that kube-scheduler gives to its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from kubesched.client.informer import Informer
from kubesched.client.resources import ResourcePath
from kubesched.metrics.recorder import Metrics

_NAME: Final = "kube-scheduler"
#: More digits than these, and a resource version is no longer exact as a float.
_EXACT_DIGITS: Final = 15


def processing_observer(metrics: Metrics, resource: ResourcePath) -> Callable[[float], None]:
    """Return what an informer is to tell how long it took to process a batch."""
    return metrics.informer_processing_latency.labels(*_labels(resource)).observe


def export_informers(metrics: Metrics, informers: Sequence[Informer[Any]]) -> None:
    """Show how many objects wait to be processed, and how far each informer has come."""
    metrics.informer_queued_items.set_function(
        lambda: {_labels(each.resource): each.queued_count for each in informers}
    )
    metrics.informer_store_resource_version.set_function(
        lambda: {_labels(each.resource): _version(each.resource_version) for each in informers}
    )


def _labels(resource: ResourcePath) -> tuple[str, str, str, str]:
    return _NAME, resource.group, resource.version, resource.plural


def _version(text: str) -> int:
    """Read the end of a resource version as a number; 0 before the first list."""
    end = text[-_EXACT_DIGITS:]
    return int(end) if end.isdecimal() else 0

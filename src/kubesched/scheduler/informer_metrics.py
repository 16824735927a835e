"""Metrics of the scheduler's informers, under kube-scheduler's names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from kubesched.client.informer import Informer
from kubesched.client.resources import ResourcePath
from kubesched.kinds import ObjectKind
from kubesched.metrics.recorder import Metrics

_NAME: Final = "kube-scheduler"
#: With more digits, a resource version is no longer exact as a float.
_EXACT_DIGITS: Final = 15


def processing_observer(metrics: Metrics, kind: ObjectKind) -> Callable[[float], None]:
    """Return the function that an informer calls with the duration of each batch."""
    return metrics.informer_processing_latency.labels(*_labels(kind.path, kind.name)).observe


def export_informers(metrics: Metrics, informers: Sequence[Informer[Any]]) -> None:
    """Export the number of queued objects and the resource version of each informer."""
    metrics.informer_queued_items.set_function(
        lambda: {_labels(each.resource, each.kind): each.queued_count for each in informers}
    )
    metrics.informer_store_resource_version.set_function(
        lambda: {
            _labels(each.resource, each.kind): _version(each.resource_version) for each in informers
        }
    )


def _labels(resource: ResourcePath, kind: str) -> tuple[str, str, str, str]:
    # kube-scheduler's plural is the kind with an s behind it, such as "storageclasss".
    return _NAME, resource.group, resource.version, f"{kind.lower()}s"


def _version(text: str) -> int:
    """Parse the last digits of a resource version; 0 before the first list."""
    end = text[-_EXACT_DIGITS:]
    return int(end) if end.isdecimal() else 0

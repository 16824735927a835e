"""What is shown of informers: how far they have come, and what they have yet to process."""

from __future__ import annotations

from typing import Any

import pytest

from kubesched.client.access import ClusterAccess
from kubesched.client.informer import Informer
from kubesched.client.rest import ApiClient
from kubesched.kinds import KINDS
from kubesched.metrics.recorder import Metrics
from kubesched.scheduler.informer_metrics import export_informers, processing_observer
from tests.support.exposed_metrics import Exposed
from tests.support.scheduling import DEFAULT_GATES

STORAGE_CLASS = {
    "name": "kube-scheduler",
    "group": "storage.k8s.io",
    "version": "v1",
    # What kube-scheduler calls it.
    "resource": "storageclasss",
}


def informer_of(kind: str) -> Informer[Any]:
    client = ApiClient(ClusterAccess.plain("http://127.0.0.1:1"))
    return Informer(client, KINDS[kind].path, KINDS[kind].type)


@pytest.mark.parametrize(
    ("version", "want"),
    [("", 0), ("17", 17), ("1234567890123456", 234567890123456), ("opaque", 0)],
)
def test_the_end_of_the_resource_version_is_shown(version: str, want: int) -> None:
    metrics, informer = Metrics(DEFAULT_GATES), informer_of("StorageClass")
    export_informers(metrics, [informer])
    informer._resource_version = version

    text = Exposed(metrics.render())
    assert text.value("informer_store_resource_version", **STORAGE_CLASS) == want


def test_what_waits_is_shown() -> None:
    metrics, informer = Metrics(DEFAULT_GATES), informer_of("StorageClass")
    export_informers(metrics, [informer])
    informer.queued_count = 3

    assert Exposed(metrics.render()).value("informer_queued_items", **STORAGE_CLASS) == 3


def test_durations_are_shown_from_the_start() -> None:
    metrics = Metrics(DEFAULT_GATES)
    observe = processing_observer(metrics, KINDS["StorageClass"])
    name = "informer_processing_latency_seconds_count"

    assert Exposed(metrics.render()).value(name, **STORAGE_CLASS) == 0
    observe(0.5)
    assert Exposed(metrics.render()).value(name, **STORAGE_CLASS) == 1

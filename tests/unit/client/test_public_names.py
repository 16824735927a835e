"""The surface of the package, so that a change of it is a decision."""

from __future__ import annotations

import kubesched.client


def test_public_names() -> None:
    assert kubesched.client.__all__ == [
        "JSON_PATCH",
        "MERGE_PATCH",
        "STRATEGIC_MERGE_PATCH",
        "ApiClient",
        "BadObject",
        "ClusterAccess",
        "EventRecorder",
        "Handler",
        "Informer",
        "ObjectReference",
        "ResourcePath",
        "kubeconfig",
        "resources",
    ]
    assert all(hasattr(kubesched.client, name) for name in kubesched.client.__all__)

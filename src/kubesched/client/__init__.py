"""The Kubernetes API client: credentials, HTTP, list and watch, events.

access = kubeconfig.load(path)                      # or kubeconfig.in_cluster()
async with ApiClient(access, qps=50, burst=100) as client:
    await client.post(resources.PODS.item("p", namespace="x", subresource="binding"), body)
    informer = Informer(client, resources.PODS, Pod, handler=handler)
    await informer.run()
"""

from __future__ import annotations

from kubesched.client import kubeconfig, resources
from kubesched.client.access import ClusterAccess
from kubesched.client.events import EventRecorder
from kubesched.client.informer import Handler, Informer
from kubesched.client.meta import BadObject, ObjectReference
from kubesched.client.resources import ResourcePath
from kubesched.client.rest import (
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    ApiClient,
)

__all__ = [
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

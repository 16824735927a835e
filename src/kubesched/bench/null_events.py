"""The events that a scheduler records, as the null scheduler sends them."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import msgspec

from kubesched.bench.pod_tracker import SeenPod


def event_of(pod: SeenPod, *, reason: str, action: str, note: str) -> bytes:
    """An event about a pod."""
    meta = pod.metadata
    return msgspec.json.encode(
        {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": f"{meta.name}.{uuid.uuid4().hex}", "namespace": meta.namespace},
            "eventTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "type": "Normal",
            "reason": reason,
            "action": action,
            "note": note,
            "reportingController": "default-scheduler",
            "reportingInstance": "default-scheduler-null",
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": meta.namespace,
                "name": meta.name,
                "uid": meta.uid,
            },
        }
    )

"""Pods, as a watch brings them, until a scheduler has said what becomes of them."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import msgspec

from .control_plane import ControlPlane

Json = dict[str, Any]


@contextmanager
def watching(plane: ControlPlane, path: str) -> Iterator[Iterator[Json]]:
    """Every version of every pod of a namespace, as it comes."""
    version = plane.request("GET", f"{path}?limit=1")["metadata"]["resourceVersion"]
    with closing(
        http.client.HTTPSConnection("127.0.0.1", plane.port, context=plane.tls, timeout=20)
    ) as connection:
        query = f"watch=1&resourceVersion={version}&timeoutSeconds=3600"
        headers = {"Authorization": f"Bearer {plane.admin_token}"}
        connection.request("GET", f"{path}?{query}", headers=headers)
        with connection.getresponse() as stream:
            yield (msgspec.json.decode(line)["object"] for line in stream)


def settled(seen: Iterator[Json], uid: str) -> Json:
    """Return a pod once it has a node, or a reason for having none."""
    for pod in seen:
        if pod["metadata"]["uid"] != uid:
            continue
        if pod["spec"].get("nodeName"):
            return pod
        conditions = pod["status"].get("conditions", [])
        if any(each.get("reason") in ("Unschedulable", "SchedulerError") for each in conditions):
            return pod
    raise AssertionError(f"nothing happened to {uid}")

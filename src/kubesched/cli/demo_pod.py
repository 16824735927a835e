"""A pod of the demo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

JsonObject = dict[str, Any]


def pod(
    app: str,
    number: int,
    *,
    cpu: str,
    memory: str,
    extra: dict[str, str] | None = None,
    claims: Sequence[str] = (),
    **spec: object,
) -> JsonObject:
    """Return a pod of one container; `claims` are names of its resourceClaims that it uses."""
    amounts = {"cpu": cpu, "memory": memory, **(extra or {})}
    resources: JsonObject = {"requests": amounts}
    if extra:  # of which the limit must equal the request
        resources["limits"] = extra
    if claims:
        resources["claims"] = [{"name": name} for name in claims]
    container = {
        "name": "main",
        "image": f"registry.example.com/{app}:1",
        "resources": resources,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{app}-{number:05d}",
            "namespace": "default",
            "labels": {"app": app},
        },
        "spec": {"containers": [container], **spec},
    }

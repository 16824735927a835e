"""What kubectl would do to the cluster behind the page."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

JsonObject = dict[str, Any]

JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class ClusterApi:
    """The API server of a demo; whoever can connect may do everything."""

    def __init__(self, url: str) -> None:
        self._url = url

    def create_pod(self, name: str, **spec: object) -> JsonObject:
        """Create a pod of one small container."""
        container = {"name": "main", "image": "example", "resources": spec.pop("resources", {})}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": {"containers": [container], **spec},
        }
        return self.ask("POST", "/api/v1/namespaces/default/pods", pod)

    def patch(self, path: str, patch: JsonObject) -> JsonObject:
        """Merge something into an object."""
        return self.ask("PATCH", path, patch, kind=STRATEGIC)

    def ask(
        self, method: str, path: str, body: Any = None, kind: str = "application/json"
    ) -> JsonObject:
        """Send a request; raise whatever is refused."""
        request = urllib.request.Request(  # noqa: S310 (loopback, made here)
            self._url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": kind},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            found: JsonObject = json.load(answer)
        return found

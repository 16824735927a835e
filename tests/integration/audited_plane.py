"""A control plane that writes down what the scheduler asked of it, and what it answered.

    scheduler ──> kube-apiserver ──audit log──> AuditedPlane.requests_of(user)

Lines are written before the answer is sent, so whoever has an answer can read of it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from .control_plane import ControlPlane, JsonObject

_POLICY: JsonObject = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "omitManagedFields": True,
    "rules": [{"level": "None", "users": ["admin", "system:apiserver"]}, {"level": "Metadata"}],
}


class Request(NamedTuple):
    """A request that was answered."""

    verb: str
    #: with its subresource, such as pods/binding; the path of what is no resource
    resource: str
    name: str
    code: int


class AuditedPlane(ControlPlane):
    """etcd and kube-apiserver, with an audit log."""

    def __init__(self, assets: Path) -> None:
        super().__init__(assets)
        self._policy = self.folder / "audit-policy.json"
        self._policy.write_text(json.dumps(_POLICY))
        self._audit_log = self.folder / "audit.log"

    def _apiserver_arguments(self) -> list[str]:
        return [
            *super()._apiserver_arguments(),
            f"--audit-policy-file={self._policy}",
            f"--audit-log-path={self._audit_log}",
            "--audit-log-mode=blocking",
            "--audit-log-maxsize=0",  # one file, however long
        ]

    def requests_of(self, user: str) -> list[Request]:
        """What a user asked for, in the order of the answers."""
        text = self._audit_log.read_text()
        # Others are written of at this very moment: the last line may not be whole yet.
        events = (json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines())
        return [_request(each) for each in events if each["user"].get("username") == user]


def _request(event: JsonObject) -> Request:
    reference = event.get("objectRef") or {}
    parts = (reference.get("resource"), reference.get("subresource"))
    resource = "/".join(filter(None, parts)) or event["requestURI"].partition("?")[0]
    status = event.get("responseStatus") or {}
    return Request(event["verb"], resource, reference.get("name", ""), status.get("code", 0))

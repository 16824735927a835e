"""What the contract tests share: a small client, and how answers are compared.

The tests themselves are in the ``contract_*`` modules, written once and run against two servers:
the embedded one and kube-apiserver (see ``test_apiserver_contract``). Where a test gives an answer
literally, both servers have given it.
"""

from __future__ import annotations

import base64
import http.client
import json
import re
import secrets
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import quote, urlsplit

import pytest
import yaml

#: pytest explains failed assertions only in modules that it knows to hold tests.
pytest.register_assert_rewrite(
    *(
        f"{__package__}.contract_{name}"
        for name in (
            "bindings",
            "deletes",
            "devices",
            "events",
            "groups",
            "lists",
            "objects",
            "patches",
            "pod_rules",
            "pods",
            "status",
            "tables",
            "watches",
        )
    )
)

JsonObject = dict[str, Any]

JSON = "application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

_TIMEOUT_S = 30
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass(frozen=True)
class Answer:
    """A response, its body decoded if it is JSON."""

    code: int
    body: Any
    content_type: str


class Client:
    """Talks HTTP to the server that a kubeconfig names."""

    def __init__(self, kubeconfig: str) -> None:
        config = yaml.safe_load(kubeconfig)
        cluster = config["clusters"][0]["cluster"]
        self._address = urlsplit(cluster["server"])
        self._token = config["users"][0]["user"].get("token", "")
        self._tls: ssl.SSLContext | None = None
        if self._address.scheme == "https":
            authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
            self._tls = ssl.create_default_context(cadata=authority)

    def connect(self) -> http.client.HTTPConnection:
        """Return a new connection."""
        host, port = self._address.hostname or "", self._address.port or 0
        if self._tls is not None:
            return http.client.HTTPSConnection(host, port, context=self._tls, timeout=_TIMEOUT_S)
        return http.client.HTTPConnection(host, port, timeout=_TIMEOUT_S)

    def headers(self, accept: str, content_type: str = "") -> dict[str, str]:
        """Return the headers of a request."""
        headers = {"Accept": accept}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if content_type:
            headers["Content-Type"] = content_type
        return headers

    def send(
        self, method: str, path: str, body: object, *, accept: str, content_type: str
    ) -> Answer:
        """Make one request on a connection of its own."""
        payload = body if isinstance(body, str | bytes | None) else json.dumps(body)
        kind = content_type if body is not None else ""
        connection = self.connect()
        try:
            connection.request(method, path, payload, self.headers(accept, kind))
            response = connection.getresponse()
            raw = response.read()
        finally:
            connection.close()
        is_json = raw.startswith((b"{", b"["))
        found = response.headers.get("Content-Type", "")
        return Answer(response.status, json.loads(raw) if is_json else raw.decode(), found)


class Watch:
    """The events of a watch, one after the other."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response

    def next(self) -> JsonObject:
        """Return the next event; fails when the stream ends or nothing comes for long."""
        line = self._response.readline()
        assert line, "the watch ended"
        event: JsonObject = json.loads(line)
        return event

    def rest(self) -> list[JsonObject]:
        """Return all events until the server ends the watch."""
        return [json.loads(line) for line in self._response]


@dataclass
class Api:
    """The server under test, and a namespace of the test's own."""

    client: Client
    #: a namespace that only this test uses
    namespace: str
    #: makes the server forget all versions but the newest
    forget_history: Callable[[], None]
    _cleanup: list[str] = field(default_factory=list)

    def path(self, plural: str, name: str = "", *, group: str = "", version: str = "v1") -> str:
        """Return a path in the test's namespace."""
        prefix = f"/apis/{group}/{version}" if group else f"/api/{version}"
        path = f"{prefix}/namespaces/{self.namespace}/{plural}"
        return f"{path}/{name}" if name else path

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        accept: str = JSON,
        content_type: str = JSON,
    ) -> Answer:
        """Make a request, whatever the answer."""
        return self.client.send(method, path, body, accept=accept, content_type=content_type)

    def do(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        accept: str = JSON,
        content_type: str = JSON,
    ) -> JsonObject:
        """Make a request that succeeds; return the answer."""
        answer = self.ask(method, path, body, accept=accept, content_type=content_type)
        assert answer.code < 300, answer
        found: JsonObject = answer.body
        return found

    def refused(
        self, method: str, path: str, body: object = None, *, content_type: str = JSON
    ) -> JsonObject:
        """Make a request that is refused; return the Status, which must be consistent."""
        answer = self.ask(method, path, body, content_type=content_type)
        assert answer.code >= 400, answer
        status: JsonObject = answer.body
        assert (status["kind"], status["apiVersion"]) == ("Status", "v1")
        assert (status["status"], status["code"]) == ("Failure", answer.code)
        return status

    def patch(self, path: str, body: object, *, kind: str = MERGE) -> JsonObject:
        """Patch an object."""
        return self.do("PATCH", path, body, content_type=kind)

    def create_cluster_object(self, path: str, obj: JsonObject) -> JsonObject:
        """Create an object that has no namespace; it is deleted after the test."""
        created = self.do("POST", path, obj)
        self._cleanup.append(f"{path}/{created['metadata']['name']}")
        return created

    def unique(self, prefix: str) -> str:
        """Return a name for an object that has no namespace."""
        return f"{prefix}-{secrets.token_hex(4)}"

    def config_map(self, name: str, **meta: Any) -> JsonObject:
        """Create the simplest of objects."""
        obj = {"metadata": {"name": name, **meta}, "data": {"key": "value"}}
        return self.do("POST", self.path("configmaps"), obj)

    def pod(self, name: str, **spec: Any) -> JsonObject:
        """Create a pod."""
        return self.do("POST", self.path("pods"), a_pod(name, **spec))

    def bind(self, name: str, node: str, **meta: Any) -> Answer:
        """Bind a pod."""
        return self.ask("POST", self.path("pods", f"{name}/binding"), a_binding(name, node, **meta))

    @contextmanager
    def watch(self, path: str, *, accept: str = JSON, **parameters: object) -> Iterator[Watch]:
        """Watch; the block ends the watch."""
        query = "&".join(f"{key}={quote(str(value))}" for key, value in parameters.items())
        connection = self.client.connect()
        try:
            connection.request(
                "GET", f"{path}?watch=true&{query}", headers=self.client.headers(accept)
            )
            response = connection.getresponse()
            assert response.status == 200, response.read()
            yield Watch(response)
            response.close()
        finally:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for path in self._cleanup:
            self.ask("DELETE", path, {"gracePeriodSeconds": 0})


def a_pod(name: str, **spec: Any) -> JsonObject:
    """Return a pod with one container."""
    container = {"name": "c", "image": "registry.example/app:1"}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}


def a_binding(name: str, node: str, **meta: Any) -> JsonObject:
    """Return a binding."""
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, **meta},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


def plain(value: Any) -> Any:
    """Return a value without what differs between two runs, and without nulls."""
    if isinstance(value, dict):
        return {
            name: "<set>" if name in {"uid", "resourceVersion"} and item else plain(item)
            for name, item in value.items()
            if item is not None and name not in {"managedFields", "creationTimestamp"}
        }
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, str):
        return _UUID.sub("<uid>", value)
    return value


def names(found: JsonObject) -> list[str]:
    """Return the names of a list's items, in their order."""
    return [item["metadata"]["name"] for item in found["items"]]


def version(obj: JsonObject) -> int:
    """Return an object's resource version as the number that it is in both servers."""
    return int(obj["metadata"]["resourceVersion"])


def outline(status: JsonObject) -> tuple[int, str, str]:
    """Return code, reason and message of a Status."""
    return status["code"], status.get("reason", ""), _UUID.sub("<uid>", status["message"])
